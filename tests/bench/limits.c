/* What the machine can do at most, by loops that do nothing else: prints "int8 GOP/s, fp32 GFLOP/s" of so many
 * threads.  Built and run by limits.py. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define CLOBBER                                                                                              \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
        "xmm13", "xmm14", "xmm15"
#define STEPS 2000000

#define INT8(n) "vpdpbusd %%zmm30, %%zmm31, %%zmm" #n "\n"
#define FP32(n) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" #n "\n"
#define FP32_AVX2(n) "vfmadd231ps %%ymm15, %%ymm15, %%ymm" #n "\n"

enum kind { VNNI, FMA_512, FMA_256 };

static void spin(enum kind kind) {
    for (long i = 0; i < STEPS; i++) {
        if (kind == VNNI) {
            __asm__ volatile(EACH(INT8)::: CLOBBER);
        } else if (kind == FMA_512) {
            __asm__ volatile(EACH(FP32)::: CLOBBER);
        } else {
            __asm__ volatile(EACH(FP32_AVX2)::: CLOBBER);
        }
    }
}

static double rate(enum kind kind, int threads, double operations) {
    double best = 0;
    for (int round = 0; round < 5; round++) {
        const double begin = omp_get_wtime();
#pragma omp parallel num_threads(threads)
        spin(kind);
        const double now = threads * operations * 16 * STEPS / (omp_get_wtime() - begin) * 1e-9;
        best = now > best ? now : best;
    }
    return best;
}

int main(int count, char **arguments) {
    const int threads = count > 1 ? atoi(arguments[1]) : 1;
    const int avx512 = __builtin_cpu_supports("avx512f");
    const double int8 = __builtin_cpu_supports("avx512vnni") ? rate(VNNI, threads, 128) : 0;
    printf("%.0f %.0f\n", int8, avx512 ? rate(FMA_512, threads, 32) : rate(FMA_256, threads, 16));
    return 0;
}
