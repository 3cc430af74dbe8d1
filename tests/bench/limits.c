/* What the machine can do at most, by loops that do nothing else: a shared library that limits.py compiles and calls
 * in each thread. */
#include <emmintrin.h>
#include <stddef.h>
#include <string.h>

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define CLOBBER                                                                                              \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
        "xmm13", "xmm14", "xmm15"

#define INT8(n) "vpdpbusd %%zmm30, %%zmm31, %%zmm" #n "\n"
#define FP32(n) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" #n "\n"
#define FP32_AVX2(n) "vfmadd231ps %%ymm15, %%ymm15, %%ymm" #n "\n"

enum kind { VNNI, FMA_512, FMA_256 };

/* Operations of each of the ``steps``. */
static int operations(enum kind kind) { return 16 * (kind == VNNI ? 128 : kind == FMA_512 ? 32 : 16); }

static double spin(enum kind kind, long steps) {
    if (kind != FMA_256) { /* (denormal numbers would take longer) */
        __asm__ volatile("vpxord %%zmm30, %%zmm30, %%zmm30\n vpxord %%zmm31, %%zmm31, %%zmm31" :::);
    }
    for (long i = 0; i < steps; i++) {
        if (kind == VNNI) {
            __asm__ volatile(EACH(INT8)::: CLOBBER);
        } else if (kind == FMA_512) {
            __asm__ volatile(EACH(FP32)::: CLOBBER);
        } else {
            __asm__ volatile(EACH(FP32_AVX2)::: CLOBBER);
        }
    }
    __asm__ volatile("vzeroupper");
    return (double)steps * operations(kind);
}

/* Each returns how many operations it made; 0: the CPU has no such instruction. */
double limits_int8(long steps) { return __builtin_cpu_supports("avx512vnni") ? spin(VNNI, steps) : 0; }

double limits_float32(long steps) {
    return __builtin_cpu_supports("avx512f") ? spin(FMA_512, steps) : __builtin_cpu_supports("fma") ? spin(FMA_256, steps) : 0;
}

static void stream(char *to, const char *from, size_t bytes) {
    for (size_t i = 0; i + 16 <= bytes; i += 16) {
        _mm_stream_si128((__m128i *)(to + i), _mm_load_si128((const __m128i *)(from + i)));
    }
    _mm_sfence();
}

/* With ordinary or with non-temporal stores. */
void limits_copy(char *to, const char *from, size_t bytes, long repeats, int is_streaming) {
    for (long r = 0; r < repeats; r++) {
        if (is_streaming) {
            stream(to, from, bytes);
        } else {
            memcpy(to, from, bytes);
        }
        __asm__ volatile("" ::: "memory");
    }
}

/* With what CPUs fetch by themselves, or with instructions that fetch two pages ahead. */
void limits_read(const char *from, size_t bytes, long repeats, int is_fetching) {
    __m128i a = _mm_setzero_si128(), b = a, c = a, d = a;
    for (long r = 0; r < repeats; r++) {
        for (size_t i = 0; i + 64 <= bytes; i += 64) {
            if (is_fetching) {
                _mm_prefetch(from + i + 8192, _MM_HINT_T0);
            }
            a = _mm_or_si128(a, _mm_load_si128((const __m128i *)(from + i)));
            b = _mm_or_si128(b, _mm_load_si128((const __m128i *)(from + i + 16)));
            c = _mm_or_si128(c, _mm_load_si128((const __m128i *)(from + i + 32)));
            d = _mm_or_si128(d, _mm_load_si128((const __m128i *)(from + i + 48)));
        }
        __asm__ volatile("" ::"x"(a), "x"(b), "x"(c), "x"(d) : "memory");
    }
}
