/* What the machine can do at most, by loops that do nothing else.  Built and run by limits.py.
 *
 *   limits THREADS 0      int8 GOP/s and fp32 GFLOP/s
 *   limits THREADS BYTES  GB/s, read and written, of copies of one half of so many bytes to the other
 *   limits THREADS BYTES read  GB/s of reading so many bytes */
#define _DEFAULT_SOURCE /* madvise */
#include <emmintrin.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define CLOBBER                                                                                              \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
        "xmm13", "xmm14", "xmm15"
#define STEPS 2000000
#define LARGE_PAGE ((size_t)1 << 21)

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

static void stream(char *to, const char *from, size_t bytes) {
    for (size_t i = 0; i + 16 <= bytes; i += 16) {
        _mm_stream_si128((__m128i *)(to + i), _mm_load_si128((const __m128i *)(from + i)));
    }
    _mm_sfence();
}

/* With what CPUs fetch by themselves, or with instructions that fetch two pages ahead. */
static __m128i read_all(const char *from, size_t bytes, int is_fetching) {
    __m128i a = _mm_setzero_si128(), b = a, c = a, d = a;
    for (size_t i = 0; i + 64 <= bytes; i += 64) {
        if (is_fetching) {
            _mm_prefetch(from + i + 8192, _MM_HINT_T0);
        }
        a = _mm_or_si128(a, _mm_load_si128((const __m128i *)(from + i)));
        b = _mm_or_si128(b, _mm_load_si128((const __m128i *)(from + i + 16)));
        c = _mm_or_si128(c, _mm_load_si128((const __m128i *)(from + i + 32)));
        d = _mm_or_si128(d, _mm_load_si128((const __m128i *)(from + i + 48)));
    }
    return _mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d));
}

/* In large pages, if the system has them and so much is asked for. */
static char *allocate(size_t bytes, int content) {
    const size_t page = bytes < LARGE_PAGE ? 4096 : LARGE_PAGE, size = (bytes + page - 1) / page * page;
    char *memory = aligned_alloc(page, size);
    if (memory == NULL) {
        abort();
    }
    if (page == LARGE_PAGE) {
        madvise(memory, size, MADV_HUGEPAGE);
    }
    return memset(memory, content, size);
}

/* Best of several rounds of a hundredth of a second, with ordinary or non-temporal stores. */
static double copy_rate(int threads, size_t bytes, int is_streaming) {
    const size_t part = (bytes / 2 / (size_t)threads + 63) / 64 * 64;
    double best = 0;
#pragma omp parallel num_threads(threads)
    {
        char *from = allocate(part, 1), *to = allocate(part, 2);
        const long repeats = 1 + (long)(100000000 / (double)(bytes + 1000));
        for (int round = 0; round < 12; round++) {
#pragma omp barrier
            const double begin = omp_get_wtime();
            for (long i = 0; i < repeats; i++) {
                if (is_streaming) {
                    stream(to, from, part);
                } else {
                    memcpy(to, from, part);
                }
                __asm__ volatile("" ::: "memory");
            }
#pragma omp barrier
            const double now = 2e-9 * (double)(part * (size_t)threads) * (double)repeats / (omp_get_wtime() - begin);
#pragma omp master
            best = now > best ? now : best;
        }
        free(from);
        free(to);
    }
    return best;
}

/* The same of reading. */
static double read_rate(int threads, size_t bytes, int is_fetching) {
    const size_t part = (bytes / (size_t)threads + 63) / 64 * 64;
    double best = 0;
#pragma omp parallel num_threads(threads)
    {
        char *from = allocate(part, 1);
        const long repeats = 1 + (long)(100000000 / (double)(bytes + 1000));
        for (int round = 0; round < 12; round++) {
#pragma omp barrier
            const double begin = omp_get_wtime();
            for (long i = 0; i < repeats; i++) {
                const __m128i all = read_all(from, part, is_fetching);
                __asm__ volatile("" ::"x"(all) : "memory");
            }
#pragma omp barrier
            const double now = 1e-9 * (double)(part * (size_t)threads) * (double)repeats / (omp_get_wtime() - begin);
#pragma omp master
            best = now > best ? now : best;
        }
        free(from);
    }
    return best;
}

int main(int count, char **arguments) {
    const int threads = count > 1 ? atoi(arguments[1]) : 1;
    const size_t bytes = count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    if (count > 3) {
        const double plain = read_rate(threads, bytes, 0), fetching = read_rate(threads, bytes, 1);
        printf("%.3f\n", plain > fetching ? plain : fetching);
        return 0;
    }
    if (bytes > 0) {
        const double plain = copy_rate(threads, bytes, 0), streamed = copy_rate(threads, bytes, 1);
        printf("%.3f\n", plain > streamed ? plain : streamed);
        return 0;
    }
    const int avx512 = __builtin_cpu_supports("avx512f");
    const double int8 = __builtin_cpu_supports("avx512vnni") ? rate(VNNI, threads, 128) : 0;
    printf("%.0f %.0f\n", int8, avx512 ? rate(FMA_512, threads, 32) : rate(FMA_256, threads, 16));
    return 0;
}
