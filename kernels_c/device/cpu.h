/* cpu.h - the features of this CPU, and the instruction sets that kernels are written for. */
#ifndef DMLK_CPU_H
#define DMLK_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Features as bits.  Read as numbers, the better of two sets of features is the larger. */
enum dmlk_feature {
    DMLK_HAS_AVX2 = 1 << 0, /* with FMA and F16C */
    DMLK_HAS_NEON = 1 << 1,
    DMLK_HAS_AVX512 = 1 << 2, /* F, BW, VL and DQ */
    DMLK_HAS_VNNI = 1 << 3,   /* AVX-512 VNNI */
    DMLK_HAS_VBMI = 1 << 4,   /* AVX-512 VBMI, BITALG and VPOPCNTDQ */
    DMLK_HAS_AMX = 1 << 5,    /* AMX-INT8, which the operating system has permitted */
    DMLK_HAS_AMX_MODEL = 1 << 6 /* AMX-INT8 in plain C, for tests: no CPU has it, but any may be asked for it */
};

/* The features that the files in isa/<set> need.  Read as a number, they are also the score of the set: a larger set
 * has a higher score.  The names are also the values of DMLEMU_ISA.  CMakeLists.txt has the compiler options of each
 * set. */
#define DMLK_SETS(SET)                                              \
    SET(generic, 0)                                                 \
    SET(amx_model, DMLK_HAS_AMX_MODEL)                              \
    SET(neon, DMLK_HAS_NEON)                                        \
    SET(avx2, DMLK_HAS_AVX2)                                        \
    SET(avx512, DMLK_SET_avx2 | DMLK_HAS_AVX512)                    \
    SET(avx512_vnni, DMLK_SET_avx512 | DMLK_HAS_VNNI)               \
    SET(avx512_vbmi, DMLK_SET_avx512_vnni | DMLK_HAS_VBMI)          \
    SET(amx, DMLK_SET_avx512_vbmi | DMLK_HAS_AMX)
#define DMLK_SET(name, needs) DMLK_SET_##name = needs,
enum { DMLK_SETS(DMLK_SET) };
#undef DMLK_SET

/* The features that kernels may use: all that the CPU has; with the environment variable DMLEMU_ISA, only those that
 * also belong to the set it names.  Set before main and before the forms of kernels are chosen, then constant. */
extern uint32_t dmlk_features;

static inline bool dmlk_has(uint32_t features) { return (dmlk_features & features) == features; }

/* The forms that DMLK_EACH_ISA compiles. */
enum dmlk_isa {
    DMLK_ISA_GENERIC = 0, /* for the baseline CPU */
    DMLK_ISA_AVX2 = 1,
    DMLK_ISA_AVX512 = 2 /* F, BW, VL and DQ */
};

extern enum dmlk_isa dmlk_chosen_isa;

/* The form that runs on this CPU. */
static inline enum dmlk_isa dmlk_isa(void) { return dmlk_chosen_isa; }

#if defined(__x86_64__) && defined(__GNUC__) && !defined(DMLK_CHECKED)
#define DMLK_X86 1
#define DMLK_AVX2 __attribute__((target("avx2,fma,f16c")))
#define DMLK_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))
#endif

/* Replaces `static void name(...)` before the body of a function whose loops profit from wider vectors than
 * baseline x86-64 has: the body is compiled once for each enum dmlk_isa, whose value it reads as dmlk_this_isa, and a
 * call runs the form that dmlk_isa selects.  Only for functions whose results are bit-identical in all forms. */
#define DMLK_EACH_ISA(name, parameters, arguments) DMLK_EACH_ISA_(name, parameters, arguments) /* names expand */
#ifdef DMLK_X86
#define DMLK_EACH_ISA_(name, parameters, arguments)                                         \
    DMLK_ANY_ISA(name, parameters);                                                         \
    static void name##_generic parameters { name##_any(DMLK_ISA_GENERIC, DMLK_LIST arguments); } \
    DMLK_AVX2 static void name##_avx2 parameters { name##_any(DMLK_ISA_AVX2, DMLK_LIST arguments); } \
    DMLK_DEFINE_AVX512(name, parameters, arguments)                                         \
    static void name parameters {                                                           \
        static void(*const each[]) parameters = {name##_generic, name##_avx2, DMLK_NAME_AVX512(name)}; \
        each[dmlk_isa()] arguments;                                                         \
    }                                                                                       \
    DMLK_ANY_ISA(name, parameters)
#define DMLK_ANY_ISA(name, parameters)                     \
    static inline __attribute__((always_inline)) void name##_any( \
        __attribute__((unused)) const enum dmlk_isa dmlk_this_isa, DMLK_LIST parameters)
#define DMLK_LIST(...) __VA_ARGS__ /* without its parentheses */
#ifdef DMLK_WITHOUT_AVX512 /* C tests on a CPU that lacks it */
#define DMLK_DEFINE_AVX512(name, parameters, arguments)
#define DMLK_NAME_AVX512(name) NULL
#else
#define DMLK_DEFINE_AVX512(name, parameters, arguments) \
    DMLK_AVX512 static void name##_avx512 parameters { name##_any(DMLK_ISA_AVX512, DMLK_LIST arguments); }
#define DMLK_NAME_AVX512(name) name##_avx512
#endif
#else
#define dmlk_this_isa DMLK_ISA_GENERIC
#define DMLK_EACH_ISA_(name, parameters, arguments) static void name parameters
#endif

/* The same for a dmlk_row (see view.h). */
#define DMLK_ROW_OF_EACH_ISA(name)                                                                                \
    DMLK_EACH_ISA(name, (uint8_t *const *at, const int64_t *strides, int64_t count, const void *context), \
                  (at, strides, count, context))

#endif
