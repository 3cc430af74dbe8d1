#include "squares.h"

#include <immintrin.h>

static inline __attribute__((always_inline)) __m128i load_lane(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)from);
}

static inline __attribute__((always_inline)) __m256i load_2(const uint8_t *from, int64_t step) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_lane(from)), load_lane(from + step), 1);
}

#define SQUARE square_1
#define T uint8_t
#define N 16
#define LANES 1
#define LOAD load_1
#include "transpose.inc"

#define SQUARE square_2
#define T uint16_t
#define N 16
#define LANES 2
#define LOAD load_2
#include "transpose.inc"

#define SQUARE square_4
#define T uint32_t
#define N 8
#define LANES 2
#define LOAD load_2
#include "transpose.inc"

#define SQUARE square_8
#define T uint64_t
#define N 4
#define LANES 2
#define LOAD load_2
#include "transpose.inc"

extern const struct dmlk_transpose_form dmlk_transpose_generic;

const struct dmlk_transpose_form dmlk_transpose_avx2 = {
    {[1] = {16, square_1}, [2] = {16, square_2}, [4] = {8, square_4}, [8] = {4, square_8}}, &dmlk_transpose_generic};
