#include "squares.h"

#ifdef __GNUC__ /* vectors */

typedef uint8_t half_lane __attribute__((vector_size(8)));

static inline __attribute__((always_inline)) half_lane load_half(const uint8_t *from, int64_t step) {
    half_lane x;
    (void)step;
    memcpy(&x, from, sizeof x);
    return x;
}

#define SQUARE square_1
#define T uint8_t
#define N 8
#define LANES 1
#define LOAD load_half
#include "transpose.inc"

#define SQUARE square_2
#define T uint16_t
#define N 8
#define LANES 1
#define LOAD load_1
#include "transpose.inc"

#define SQUARE square_4
#define T uint32_t
#define N 4
#define LANES 1
#define LOAD load_1
#include "transpose.inc"

#define SQUARE square_8
#define T uint64_t
#define N 2
#define LANES 1
#define LOAD load_1
#include "transpose.inc"

const struct dmlk_transpose_form dmlk_transpose_generic = {
    {[1] = {8, square_1}, [2] = {8, square_2}, [4] = {4, square_4}, [8] = {2, square_8}}, NULL};

#else

const struct dmlk_transpose_form dmlk_transpose_generic = {{{0, NULL}}, NULL};

#endif
