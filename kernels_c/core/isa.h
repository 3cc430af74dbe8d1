/* isa.h - which instructions the tuned kernels may use: chosen once, by what the CPU has. */
#ifndef DMLK_ISA_H
#define DMLK_ISA_H

/* Each has what those before it have. */
enum dmlk_isa {
    DMLK_ISA_GENERIC = 0, /* C as the compiler translates it for every CPU of its kind */
    DMLK_ISA_AVX2 = 1,    /* and FMA */
    DMLK_ISA_AVX512 = 2   /* F, BW, VL, DQ, VBMI and VNNI */
};

/* The best one that the CPU has, or the lower one that the environment variable DMLEMU_ISA names: generic, avx2
 * or avx512. */
enum dmlk_isa dmlk_isa(void);

#if defined(__x86_64__) && defined(__GNUC__) && !defined(DMLK_CHECKED)
#define DMLK_X86 1
#define DMLK_AVX2 __attribute__((target("avx2,fma,f16c")))
#define DMLK_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vnni,avx2,fma,f16c")))
#endif

#endif
