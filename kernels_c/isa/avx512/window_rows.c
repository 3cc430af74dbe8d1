#include "window_rows.h"

#include <immintrin.h>

#include "element.h"

#define LANES 16
#define HALF 8     /* lanes */
#define ROWS 8     /* of a tile: with fewer, each sum would wait for the previous one */
#define FEW_ROWS 4 /* of a tile of lower planes */
#define MOST DMLK_WINDOW_ROWS_MOST
#define INLINE static inline __attribute__((always_inline))

/* What vectors hold.  Those of a row of up to 8 outputs would be half empty, so that they hold two rows. */
enum shape {
    ONE_ROW,  /* with a step of 1 */
    TWO_ROWS, /* with a step of 1 */
    TWO_PARTS /* with a step of 2: two rows, or both halves of one; inputs are two vectors */
};

/* A column of tiles. */
struct column {
    __mmask16 inside[2][MOST], stored[2]; /* of each tap along x, and of outputs; of both parts */
    int64_t step[MOST];                   /* of each tap along x, in bytes */
    int64_t rows_apart;                   /* from the row of the first part to that of the second one, in outputs, */
    int64_t apart, to_apart;              /* and from their first elements, in bytes */
    float low, high;
    bool is_bounded;
};

/* A tile; its outputs are those of the first part. */
struct tile {
    const uint8_t *from; /* where the row of the first tap begins */
    int64_t from_step;   /* in bytes, as the other ones */
    uint8_t *to;
    int64_t to_step;
    int64_t top, height; /* the row of the first tap, and how many the input has */
    const float *weights;
    float bias;
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

/* Other lanes are those of `v`. */
INLINE __m512 load_into(__m512 v, __mmask16 lanes, bool halves, const uint8_t *from) {
    return halves ? _mm512_mask_blend_ps(lanes, v, load(lanes, true, from)) : _mm512_mask_loadu_ps(v, lanes, from);
}

INLINE void store(__mmask16 lanes, bool halves, uint8_t *to, __m512 v) {
    if (halves) {
        _mm256_mask_storeu_epi16(to, lanes, _mm512_maskz_cvtps_ph(lanes, v, _MM_FROUND_TO_NEAREST_INT));
    } else {
        _mm512_mask_storeu_ps(to, lanes, v);
    }
}

/* (The sum is never -0, as no bias is; of two equal numbers, and of a NaN and a number, the bound is taken.) */
INLINE __m512 finish(const struct column *c, __m512 sum, float bias) {
    const __m512 y = _mm512_add_ps(sum, _mm512_set1_ps(bias));
    if (c->is_bounded) {
        return _mm512_min_ps(_mm512_max_ps(y, _mm512_set1_ps(c->low)), _mm512_set1_ps(c->high));
    }
    const __mmask16 is_nan = _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q);
    return _mm512_castsi512_ps(_mm512_mask_set1_epi32(_mm512_castps_si512(y), is_nan, (int)DMLK_NAN_BITS));
}

/* The elements of each tap along x in the row that begins at `from`. */
INLINE void load_taps(const struct column *c, enum shape shape, bool halves, int window, const uint8_t *from, bool is_there,
                      bool other_is_there, __m512 *taps) {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
#pragma GCC unroll 5
    for (int x = 0; x < window; x++) {
        const __mmask16 first = is_there ? c->inside[0][x] : 0, second = other_is_there ? c->inside[1][x] : 0;
        const uint8_t *at = from + c->step[x];
        if (shape == ONE_ROW) {
            taps[x] = load(first, halves, at);
        } else if (shape == TWO_ROWS) {
            taps[x] = load_into(load(first, halves, at), second, halves, at + c->apart);
        } else if (x % 2 == 0) {
            const __m512 a = load(first, halves, at), b = load(second, halves, at + c->apart);
            taps[x] = _mm512_permutex2var_ps(a, even, b);
            if (x + 1 < window) {
                taps[x + 1] = _mm512_permutex2var_ps(a, odd, b);
            }
        }
    }
}

/* The outputs of `rows` rows.  Each row of the input is loaded once for all outputs that it adds to. */
INLINE void run_tile(const struct column *c, enum shape shape, bool halves, int window, int rows, const struct tile *t) {
    const int step = shape == TWO_PARTS ? 2 : 1;
    __m512 sums[ROWS], taps[MOST];
#pragma GCC unroll 8
    for (int k = 0; k < rows; k++) {
        sums[k] = _mm512_setzero_ps();
    }
    const uint8_t *from = t->from;
#pragma GCC unroll 20
    for (int row = 0; row < (rows - 1) * step + window; row++, from += t->from_step) {
        const int64_t at = t->top + row, other = at + c->rows_apart * step;
        load_taps(c, shape, halves, window, from, at >= 0 && at < t->height, other >= 0 && other < t->height, taps);
#pragma GCC unroll 5
        for (int y = window - 1; y >= 0; y--) {
#pragma GCC unroll 5
            for (int x = 0; x < window; x++) {
                if (row >= y && (row - y) % step == 0 && (row - y) / step < rows) {
                    __m512 *sum = &sums[(row - y) / step];
                    *sum = _mm512_fmadd_ps(_mm512_set1_ps(t->weights[y * window + x]), taps[x], *sum);
                }
            }
        }
    }
    uint8_t *to = t->to;
#pragma GCC unroll 8
    for (int k = 0; k < rows; k++, to += t->to_step) {
        const __m512 y = finish(c, sums[k], t->bias);
        store(c->stored[0], halves, to, y);
        if (shape != ONE_ROW) {
            store(c->stored[1], halves, to + c->to_apart, y);
        }
    }
}

/* `height` rows of a plane.  The last tile is computed in part again, if that makes it whole. */
INLINE void run_plane(const struct column *c, enum shape shape, bool halves, int window, int64_t height, const struct tile *t) {
    const int64_t step = shape == TWO_PARTS ? 2 : 1;
    for (int64_t next = 0, rows; next < height; next += rows) {
        rows = height < FEW_ROWS ? 1 : height < ROWS || height - next <= FEW_ROWS ? FEW_ROWS : ROWS;
        const int64_t row = next < height - rows ? next : height - rows;
        struct tile tile = *t;
        tile.top += row * step;
        tile.from += row * step * t->from_step;
        tile.to += row * t->to_step;
        if (rows == ROWS) {
            run_tile(c, shape, halves, window, ROWS, &tile);
        } else if (rows == FEW_ROWS) {
            run_tile(c, shape, halves, window, FEW_ROWS, &tile);
        } else {
            run_tile(c, shape, halves, window, 1, &tile);
        }
    }
}

/* The column of tiles that starts at column `left` of the outputs; if they are two rows, the second half of the rows is its
 * second part. */
INLINE struct column column_at(const dmlk_window_rows *r, enum shape shape, int window, int64_t left, bool is_paired) {
    const dmlk_taps_axis *along = &r->axes[1];
    const int64_t bytes = r->halves ? 2 : 4, first = r->first[1] + left * along->step;
    struct column c = {.is_bounded = r->is_bounded, .low = r->low, .high = r->high};
    c.rows_apart = is_paired ? r->height / 2 : 0;
    const int64_t skipped = shape == TWO_ROWS ? HALF : 0; /* lanes of the second part of inputs that the first part has */
    const int64_t columns_apart = is_paired ? 0 : LANES;
    c.apart = (c.rows_apart * along->step * r->row_step + columns_apart - skipped) * bytes;
    for (int x = 0; x < window; x++) {
        const int64_t at = first + x * along->tap, other = at + columns_apart - skipped;
        const int64_t end = shape == TWO_ROWS ? HALF : LANES;
        c.inside[0][x] = lanes_from(-at, along->input - at < end || shape == ONE_ROW ? along->input - at : end);
        c.inside[1][x] = lanes_from(-other > skipped ? -other : skipped, along->input - other);
        c.step[x] = at * bytes;
    }
    const int64_t width = r->width - left;
    if (shape == ONE_ROW) {
        c.stored[0] = lanes_from(0, width);
        return c;
    }
    c.stored[0] = lanes_from(0, width < HALF ? width : HALF);
    c.stored[1] = lanes_from(HALF, is_paired ? width + HALF : width);
    c.to_apart = is_paired ? (c.rows_apart * r->to_step - HALF) * bytes : 0;
    return c;
}

/* (The last column is computed in part again, so that it is whole.) */
INLINE void columns(const dmlk_window_rows *r, enum shape shape, bool halves, int window) {
    const bool is_paired = shape == TWO_ROWS || (shape == TWO_PARTS && r->width <= HALF && r->height > 1);
    const int64_t bytes = halves ? 2 : 4, last = r->width > LANES ? r->width - LANES : 0;
    for (int64_t next = 0; next < r->width; next += LANES) {
        const int64_t left = next < last ? next : last;
        const struct column c = column_at(r, shape, window, left, is_paired);
        const int64_t height = r->height - c.rows_apart;
        for (int64_t k = 0; k < r->planes; k++) {
            const struct tile t = {
                .from = r->plane + (k * r->plane_step + r->first[0] * r->row_step) * bytes,
                .from_step = r->row_step * bytes,
                .to = r->to + (k * r->to_plane_step + left) * bytes,
                .to_step = r->to_step * bytes,
                .top = r->first[0],
                .height = r->axes[0].input,
                .weights = r->weights + k * window * window,
                .bias = r->bias[k]};
            run_plane(&c, shape, halves, window, height, &t);
        }
    }
}

#define CONVOLVE(shape, window)                                        \
    static void convolve_##shape##_##window(const dmlk_window_rows *r) { \
        r->halves ? columns(r, shape, true, window) : columns(r, shape, false, window); \
    }
CONVOLVE(ONE_ROW, 3)
CONVOLVE(ONE_ROW, 5)
CONVOLVE(TWO_ROWS, 3)
CONVOLVE(TWO_ROWS, 5)
CONVOLVE(TWO_PARTS, 3)
CONVOLVE(TWO_PARTS, 5)

static void convolve(const dmlk_window_rows *r) {
    const bool is_3 = r->axes[0].window == 3;
    if (r->axes[0].step == 2) {
        is_3 ? convolve_TWO_PARTS_3(r) : convolve_TWO_PARTS_5(r);
    } else if (r->width <= HALF && r->height > 1) {
        is_3 ? convolve_TWO_ROWS_3(r) : convolve_TWO_ROWS_5(r);
    } else {
        is_3 ? convolve_ONE_ROW_3(r) : convolve_ONE_ROW_5(r);
    }
}

const struct dmlk_window_rows_form dmlk_window_rows_avx512 = {convolve};
