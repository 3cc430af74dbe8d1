#include "squares.h"

#include <immintrin.h>

static inline __attribute__((always_inline)) __m128i load_lane(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)from);
}

static inline __attribute__((always_inline)) __m512i load_4(const uint8_t *from, int64_t step) {
    __m512i x = _mm512_castsi128_si512(load_lane(from));
    x = _mm512_inserti32x4(x, load_lane(from + step), 1);
    x = _mm512_inserti32x4(x, load_lane(from + 2 * step), 2);
    return _mm512_inserti32x4(x, load_lane(from + 3 * step), 3);
}

#define SQUARE square_4
#define T uint32_t
#define N 16
#define LANES 4
#define LOAD load_4
#include "transpose.inc"

#define SQUARE square_8
#define T uint64_t
#define N 8
#define LANES 4
#define LOAD load_4
#include "transpose.inc"

extern const struct dmlk_transpose_form dmlk_transpose_avx2;

const struct dmlk_transpose_form dmlk_transpose_avx512 = {{[4] = {16, square_4}, [8] = {8, square_8}}, &dmlk_transpose_avx2};
