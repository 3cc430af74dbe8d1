#include "window_rows.h"

#include <immintrin.h>

#include "element.h"

#define LANES 16
#define ROWS 8     /* of a tile: with fewer, each sum would wait for the previous one */
#define FEW_ROWS 4 /* of a tile of lower planes */
#define INLINE static inline __attribute__((always_inline))

/* A column of tiles. */
struct column {
    __m512 weights[DMLK_WINDOW_ROWS_MOST * DMLK_WINDOW_ROWS_MOST], bias;
    __mmask16 inside[DMLK_WINDOW_ROWS_MOST], stored; /* of each tap along x, and of outputs */
    int64_t step[DMLK_WINDOW_ROWS_MOST];             /* of each tap along x, in bytes */
};

/* Lanes begin to end - 1. */
INLINE __mmask16 lanes_from(int64_t begin, int64_t end) {
    const uint32_t skipped = begin <= 0 ? 0 : begin < LANES ? (uint32_t)begin : LANES;
    const uint32_t taken = end <= 0 ? 0 : end < LANES ? (uint32_t)end : LANES;
    return (__mmask16)(((1u << taken) - 1u) & ~0u << skipped);
}

/* Other lanes are 0, and their elements are not read. */
INLINE __m512 load(__mmask16 lanes, bool halves, const uint8_t *from) {
    return halves ? _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, from)) : _mm512_maskz_loadu_ps(lanes, from);
}

INLINE void store(__mmask16 lanes, bool halves, uint8_t *to, __m512 v) {
    if (halves) {
        _mm256_mask_storeu_epi16(to, lanes, _mm512_maskz_cvtps_ph(lanes, v, _MM_FROUND_TO_NEAREST_INT));
    } else {
        _mm512_mask_storeu_ps(to, lanes, v);
    }
}

INLINE __m512 finish(__m512 sum, __m512 bias) {
    const __m512 y = _mm512_add_ps(_mm512_add_ps(sum, bias), _mm512_setzero_ps());
    const __mmask16 is_nan = _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q);
    return _mm512_castsi512_ps(_mm512_mask_set1_epi32(_mm512_castps_si512(y), is_nan, (int)DMLK_NAN_BITS));
}

/* Outputs of `rows` rows, whose first tap is in row `top` of `height` rows of the input; `from`: where that row begins.  Each
 * row of the input is loaded once for all outputs that it adds to. */
INLINE void tile(const struct column *c, bool halves, int window, int rows, int64_t top, int64_t height, const uint8_t *from,
                 int64_t from_step, uint8_t *to, int64_t to_step) {
    __m512 sums[ROWS];
#pragma GCC unroll 8
    for (int k = 0; k < rows; k++) {
        sums[k] = _mm512_setzero_ps();
    }
#pragma GCC unroll 12
    for (int row = 0; row < rows + window - 1; row++, from += from_step) {
        const bool is_there = top + row >= 0 && top + row < height;
        __m512 values[DMLK_WINDOW_ROWS_MOST];
#pragma GCC unroll 5
        for (int x = 0; x < window; x++) {
            values[x] = is_there ? load(c->inside[x], halves, from + c->step[x]) : _mm512_setzero_ps();
        }
#pragma GCC unroll 5
        for (int y = window - 1; y >= 0; y--) {
#pragma GCC unroll 5
            for (int x = 0; x < window; x++) {
                if (row - y >= 0 && row - y < rows) {
                    sums[row - y] = _mm512_fmadd_ps(c->weights[y * window + x], values[x], sums[row - y]);
                }
            }
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < rows; k++, to += to_step) {
        store(c->stored, halves, to, finish(sums[k], c->bias));
    }
}

/* A vector of columns from `left` on, of all rows.  The last tile is computed in part again, so that it is whole. */
INLINE void column(const dmlk_window_rows *r, struct column *c, bool halves, int window, int64_t left) {
    const dmlk_taps_axis *down = &r->axes[0], *along = &r->axes[1];
    const int64_t bytes = halves ? 2 : 4, first = r->first[1] + left;
    const int64_t from_step = r->row_step * bytes, to_step = r->to_step * bytes;
    for (int x = 0; x < window; x++) {
        const int64_t at = first + x * along->tap;
        c->inside[x] = lanes_from(-at, along->input - at);
        c->step[x] = at * bytes;
    }
    c->stored = lanes_from(0, r->width - left);
    const int64_t rows = r->height < FEW_ROWS ? 1 : r->height < ROWS ? FEW_ROWS : ROWS;
    for (int64_t row = 0; row < r->height; row += rows) {
        row = row < r->height - rows ? row : r->height - rows;
        const int64_t top = r->first[0] + row;
        const uint8_t *from = r->plane + top * from_step;
        uint8_t *to = r->to + row * to_step + left * bytes;
        if (rows == ROWS) {
            tile(c, halves, window, ROWS, top, down->input, from, from_step, to, to_step);
        } else if (rows == FEW_ROWS) {
            tile(c, halves, window, FEW_ROWS, top, down->input, from, from_step, to, to_step);
        } else {
            tile(c, halves, window, 1, top, down->input, from, from_step, to, to_step);
        }
    }
}

/* (The last column is computed in part again, so that it is whole.) */
INLINE void columns(const dmlk_window_rows *r, bool halves, int window) {
    struct column c = {.bias = _mm512_set1_ps(r->bias)};
    for (int t = 0; t < window * window; t++) {
        c.weights[t] = _mm512_set1_ps(r->weights[t]);
    }
    const int64_t last = r->width > LANES ? r->width - LANES : 0;
    for (int64_t left = 0; left < r->width; left += LANES) {
        column(r, &c, halves, window, left < last ? left : last);
    }
}

#define CONVOLVE(kind, halves)                                                             \
    static void convolve_##kind##_3(const dmlk_window_rows *r) { columns(r, halves, 3); } \
    static void convolve_##kind##_5(const dmlk_window_rows *r) { columns(r, halves, 5); }
CONVOLVE(halves, true)
CONVOLVE(singles, false)

static void convolve(const dmlk_window_rows *r) {
    const bool is_3 = r->axes[0].window == 3;
    if (r->halves) {
        is_3 ? convolve_halves_3(r) : convolve_halves_5(r);
    } else {
        is_3 ? convolve_singles_3(r) : convolve_singles_5(r);
    }
}

const struct dmlk_window_rows_form dmlk_window_rows_avx512 = {convolve};
