/* cpu.h - the instruction set that kernels use, selected once from what the CPU supports. */
#ifndef DMLK_CPU_H
#define DMLK_CPU_H

/* Each includes the previous ones. */
enum dmlk_isa {
    DMLK_ISA_GENERIC = 0, /* plain C, compiled for the baseline CPU */
    DMLK_ISA_AVX2 = 1,    /* and FMA and F16C */
    DMLK_ISA_AVX512 = 2   /* F, BW, VL, DQ, VBMI and VNNI */
};

extern enum dmlk_isa dmlk_chosen_isa;

/* The best one that the CPU supports, or a lower one that the environment variable DMLEMU_ISA names: generic, avx2
 * or avx512.  Set before main, then constant. */
static inline enum dmlk_isa dmlk_isa(void) { return dmlk_chosen_isa; }

#if defined(__x86_64__) && defined(__GNUC__) && !defined(DMLK_CHECKED)
#define DMLK_X86 1
#define DMLK_AVX2 __attribute__((target("avx2,fma,f16c")))
#define DMLK_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vnni,avx2,fma,f16c")))
#endif

/* Replaces `static void name(...)` before the body of a function whose loops profit from wider vectors than
 * baseline x86-64 has: the body is compiled once for each enum dmlk_isa, which it knows as dmlk_this_isa, and a call
 * runs the one that dmlk_isa selects.  Only for functions whose results are bit-identical in all of them. */
#define DMLK_EACH_ISA(name, parameters, arguments) DMLK_EACH_ISA_(name, parameters, arguments) /* names expand */
#ifdef DMLK_X86
#define DMLK_EACH_ISA_(name, parameters, arguments)                                         \
    DMLK_ANY_ISA(name, parameters);                                                         \
    static void name##_generic parameters { name##_any(DMLK_ISA_GENERIC, DMLK_LIST arguments); } \
    DMLK_AVX2 static void name##_avx2 parameters { name##_any(DMLK_ISA_AVX2, DMLK_LIST arguments); } \
    DMLK_AVX512 static void name##_avx512 parameters { name##_any(DMLK_ISA_AVX512, DMLK_LIST arguments); } \
    static void name parameters {                                                           \
        static void(*const each[]) parameters = {name##_generic, name##_avx2, name##_avx512}; \
        each[dmlk_isa()] arguments;                                                         \
    }                                                                                       \
    DMLK_ANY_ISA(name, parameters)
#define DMLK_ANY_ISA(name, parameters)                     \
    static inline __attribute__((always_inline)) void name##_any( \
        __attribute__((unused)) const enum dmlk_isa dmlk_this_isa, DMLK_LIST parameters)
#define DMLK_LIST(...) __VA_ARGS__ /* without its parentheses */
#else
#define dmlk_this_isa DMLK_ISA_GENERIC
#define DMLK_EACH_ISA_(name, parameters, arguments) static void name parameters
#endif

/* The same for a dmlk_row (see view.h). */
#define DMLK_ROW_OF_EACH_ISA(name)                                                                                \
    DMLK_EACH_ISA(name, (uint8_t *const *at, const int64_t *strides, int64_t count, const void *context), \
                  (at, strides, count, context))

#endif
