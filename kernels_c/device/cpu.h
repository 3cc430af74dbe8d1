/* cpu.h - which instructions kernels may use: chosen once, by what the CPU has. */
#ifndef DMLK_CPU_H
#define DMLK_CPU_H

/* Each has what those before it have. */
enum dmlk_isa {
    DMLK_ISA_GENERIC = 0, /* C as the compiler translates it for every CPU of its kind */
    DMLK_ISA_AVX2 = 1,    /* and FMA and F16C */
    DMLK_ISA_AVX512 = 2   /* F, BW, VL, DQ, VBMI and VNNI */
};

extern enum dmlk_isa dmlk_chosen_isa;

/* The best one that the CPU has, or the lower one that the environment variable DMLEMU_ISA names: generic, avx2
 * or avx512.  The same from before main on. */
static inline enum dmlk_isa dmlk_isa(void) { return dmlk_chosen_isa; }

#if defined(__x86_64__) && defined(__GNUC__) && !defined(DMLK_CHECKED)
#define DMLK_X86 1
#define DMLK_AVX2 __attribute__((target("avx2,fma,f16c")))
#define DMLK_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vnni,avx2,fma,f16c")))
#endif

/* Stands in place of `static void name(...)` before the body of a function whose loops gain from wider vectors than
 * every x86-64 has: it is compiled once for each enum dmlk_isa, and a call runs what dmlk_isa chose.  Only where the
 * results are the same bits either way. */
#define DMLK_EACH_ISA(name, parameters, arguments) DMLK_EACH_ISA_(name, parameters, arguments) /* names expand */
#ifdef DMLK_X86
#define DMLK_EACH_ISA_(name, parameters, arguments)                                         \
    static inline __attribute__((always_inline)) void name##_any parameters;                \
    static void name##_generic parameters { name##_any arguments; }                         \
    DMLK_AVX2 static void name##_avx2 parameters { name##_any arguments; }                  \
    DMLK_AVX512 static void name##_avx512 parameters { name##_any arguments; }              \
    static void name parameters {                                                           \
        static void(*const each[]) parameters = {name##_generic, name##_avx2, name##_avx512}; \
        each[dmlk_isa()] arguments;                                                         \
    }                                                                                       \
    static inline __attribute__((always_inline)) void name##_any parameters
#else
#define DMLK_EACH_ISA_(name, parameters, arguments) static void name parameters
#endif

/* The same for a dmlk_row (see view.h). */
#define DMLK_ROW_OF_EACH_ISA(name)                                                                                \
    DMLK_EACH_ISA(name, (uint8_t *const *at, const int64_t *strides, int64_t count, const void *context), \
                  (at, strides, count, context))

#endif
