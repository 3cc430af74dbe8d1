/* depthwise.c - convolutions of bytes whose groups have one channel, with small windows.
 *
 * There is little to compute for each byte, so no planes are built (see convolve_plan.h).  Instead, quads of taps are
 * assembled in registers: from copies of rows with their padding or, with channels last, across channels from the
 * input itself. */
#include "convolve.h"

#include "gather.h"
#include "parallel.h"
#include "scratch.h"
#include "cancellation.h"
#include "transpose.h"
#include "promoted.h"

#include "permute_bytes.h"

enum { N = DMLK_N, CHANNEL = DMLK_CHANNEL, Y = DMLK_Y, X = DMLK_X };

#define MOST_TAPS 8 /* of a window, along each axis */
#define MOST_QUADS (MOST_TAPS * MOST_TAPS / 4)
#define AT_ONCE 64      /* channels that are processed at a time across channels */
#define FEWEST_CHANNELS 5 /* with fewer channels, they are not processed across channels */
#define MOST_COLUMNS 64 /* columns of quads: 16 KiB, so that rows of the input also stay in the first-level cache */
#define MOST_VECTORS 64 /* vectors of a tile */
#define MOST_WIDTH 256  /* columns of a tile */
#define MOST_POSITIONS (MOST_VECTORS * 16)
#define COPY_BYTES 4096 /* bytes of a copy of a tile's input */
#define COPY_ROOM (COPY_BYTES + 256) /* vectors are loaded past the end */
#define COPIES 4        /* planes that are copied before they are multiplied */
#define MOST_COPIES 16  /* the same if planes are transposed: channels that share a cache line of the output */
#define MOST_CHUNKS 16  /* chunks of a copied plane */

struct plan {
    const dmlk_convolution *c;
    int64_t multiplier; /* filters of a channel */
    int64_t y_quads, x_quads; /* groups of four taps along Y; along X */
    int64_t rows;             /* across channels: rows of the output that share quads, each row shifted by one tap */
    uint8_t flip, padding;
    bool signed_filters, needs_sums;
    int32_t *factors, *constants; /* [filters]: see convolve_plan.h */
    uint8_t *quads;   /* by rows: [filters][Y taps][X quads][4]; by channels: [channels / 64][X taps][Y quads][64][4] */
    const uint8_t *padding_row; /* AT_ONCE bytes of padding, before flipping */
};

/* Adds the products of input and filters, one of which is signed. */
static inline __m512i dot(__m512i sum, __m512i input, __m512i filters, const bool signed_filters) {
    return signed_filters ? _mm512_dpbusd_epi32(sum, input, filters) : _mm512_dpbusd_epi32(sum, filters, input);
}

/* --- along rows --- */

/* Planes are processed in tiles; a small plane is one tile.  The input of the tile's windows is copied, with
 * padding.  Then the quads of 16 positions, which may continue in the next row, are selected from 64 bytes of the
 * copy, or from two times 64 bytes; without permutations of bytes (VBMI), every four quads from 16 bytes.  The
 * selection is the same for all planes and, except for an offset, for every four taps.
 *
 * If rows are not contiguous, in the input or in the output, several planes are copied or written together,
 * transposed. */
struct vector {
    _Alignas(64) uint8_t index[64];
    int64_t from, second; /* offset in the copy; distance to the second 64 bytes, 0: not needed */
    int64_t lanes[4];     /* without VBMI: distances to the 16 bytes of every four positions */
    int64_t to;           /* element of the output, or of the tile if the output is transposed */
    int64_t count;        /* positions */
    __mmask16 there;      /* mask of the positions */
};

struct tile {
    int64_t rows, columns; /* of the output */
    int64_t count;
    bool in_pairs; /* some vectors need the second 64 bytes */
    struct vector vectors[MOST_VECTORS];
};

/* 64 bytes of the copy of a whole plane, selected from 64 bytes of the plane itself. */
struct chunk {
    _Alignas(64) uint8_t index[64];
    __mmask64 inside, needed; /* bytes of the copy that are not padding; bytes of the plane that are read */
    int64_t from;
};

struct tiles {
    const struct plan *p;
    bool turns_input, turns_output;
    int64_t copies, blocks;   /* channels of a block, whose planes are copied together; blocks of channels */
    int64_t pitch, copy_rows; /* of a copy */
    int64_t down, across;     /* tiles of a plane */
    int64_t quads; /* of a filter */
    int64_t offsets[MOST_QUADS];
    struct tile whole, last; /* the tiles at the end may be smaller */
    int64_t chunk_count;     /* 0: planes are copied row by row */
    struct chunk chunks[MOST_CHUNKS];
};

#ifdef __AVX512VBMI__
/* Adds the position that is `at` bytes after the first one, with its taps; false: it does not fit. */
static bool add_position(struct vector *v, int64_t at, int64_t taps, int64_t dilation, bool is_wide) {
    const int64_t reach = (taps - 1) * dilation;
    if (at + reach >= 64) { /* from the second 64 bytes */
        v->second = v->second == 0 ? at : v->second;
        at += 64 - v->second;
    }
    if (at + reach >= (is_wide ? 64 : 128)) { /* for wide rows, more vectors are cheaper than pairs */
        v->second = is_wide ? 0 : v->second;
        return false;
    }
    for (int64_t k = 0; k < taps; k++) { /* other bytes are arbitrary: they are multiplied by 0 */
        v->index[4 * v->count + k] = (uint8_t)(at + k * dilation);
    }
    v->count++;
    return true;
}

static inline __m512i select_quads(const struct vector *v, const uint8_t *at, __m512i index, const bool in_pairs) {
    const __m512i bytes = _mm512_loadu_si512(at);
    return in_pairs ? dmlk_permute_bytes_of_two(index, bytes, _mm512_loadu_si512(at + v->second))
                    : dmlk_permute_bytes(index, bytes);
}

static bool can_select(const dmlk_convolution *c) { return 15 * c->strides[X] + 3 * c->dilations[X] < 128; }
#else
static bool add_position(struct vector *v, int64_t at, int64_t taps, int64_t dilation, bool is_wide) {
    int64_t *lane = &v->lanes[v->count / 4];
    (void)is_wide;
    if (v->count % 4 == 0) {
        *lane = at;
    } else if (at - *lane + (taps - 1) * dilation >= 16) {
        return false;
    }
    for (int64_t k = 0; k < taps; k++) {
        v->index[4 * v->count + k] = (uint8_t)(at - *lane + k * dilation);
    }
    v->count++;
    return true;
}

static inline __m512i select_quads(const struct vector *v, const uint8_t *at, __m512i index, const bool in_pairs) {
    __m512i bytes = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(at + v->lanes[0])));
    (void)in_pairs;
    bytes = _mm512_inserti32x4(bytes, _mm_loadu_si128((const __m128i *)(at + v->lanes[1])), 1);
    bytes = _mm512_inserti32x4(bytes, _mm_loadu_si128((const __m128i *)(at + v->lanes[2])), 2);
    bytes = _mm512_inserti32x4(bytes, _mm_loadu_si128((const __m128i *)(at + v->lanes[3])), 3);
    return _mm512_shuffle_epi8(bytes, index);
}

static bool can_select(const dmlk_convolution *c) { return 3 * c->strides[X] + 3 * c->dilations[X] < 16; }
#endif

/* Chooses the positions for one vector, from row *y and column *x of the tile on, and moves *y and *x after them. */
static struct vector choose_vector(const struct tiles *t, const struct tile *tile, int64_t *y, int64_t *x) {
    const dmlk_convolution *c = t->p->c;
    const int64_t taps = dmlk_min(4, c->filter_sizes[X]), y_step = c->strides[Y] * t->pitch, x_step = c->strides[X];
    const int64_t row = t->turns_output ? tile->columns : c->output.strides[Y]; /* elements to the next row's results */
    struct vector v = {.from = *y * y_step + *x * x_step, .to = *y * row + *x};
    bool goes_on = true;
    while (goes_on && v.count < 16 &&
           add_position(&v, *y * y_step + *x * x_step - v.from, taps, c->dilations[X], tile->columns >= 16)) {
        if (++*x == tile->columns) {
            *x = 0;
            goes_on = ++*y < tile->rows && row == tile->columns;
        }
    }
    v.there = (__mmask16)(0xffff >> (16 - v.count));
    return v;
}

/* Plans the vectors of a tile; false: there are too many. */
static bool plan_tile(const struct tiles *t, int64_t rows, int64_t columns, struct tile *tile) {
    tile->rows = rows, tile->columns = columns, tile->count = 0, tile->in_pairs = false;
    int64_t y = 0, x = 0;
    while (y < rows && tile->count < MOST_VECTORS) {
        struct vector *v = &tile->vectors[tile->count++];
        *v = choose_vector(t, tile, &y, &x);
        tile->in_pairs = tile->in_pairs || v->second != 0;
    }
    return y == rows;
}

/* Plans the copies of planes with short contiguous rows. */
static int64_t plan_chunks(struct tiles *t) {
    const dmlk_convolution *c = t->p->c;
    const int64_t size = t->pitch * t->copy_rows, count = (size + 63) / 64;
    if (t->turns_input || t->down * t->across > 1 || count > MOST_CHUNKS) {
        return 0;
    }
    int64_t y = -c->start[Y], x = -c->start[X];
    for (int64_t i = 0; i < count; i++) {
        struct chunk *chunk = &t->chunks[i];
        *chunk = (struct chunk){.from = 0};
        for (int64_t k = 0; k < dmlk_min(64, size - 64 * i); k++) {
            const int64_t at = y * c->input.strides[Y] + x;
            if (y >= 0 && y < c->input.sizes[Y] && x >= 0 && x < c->input.sizes[X]) {
                chunk->from = chunk->needed == 0 ? at : chunk->from;
                if (at < chunk->from || at - chunk->from >= 64) { /* (rows may overlap) */
                    return 0;
                }
                chunk->index[k] = (uint8_t)(at - chunk->from);
                chunk->inside |= (__mmask64)1 << k;
                chunk->needed |= (__mmask64)1 << (at - chunk->from);
            }
            if (++x == t->pitch - c->start[X]) {
                x = -c->start[X], y++;
            }
        }
    }
    return count;
}

/* Plans the tiles of all planes; false: windows are too large. */
static bool plan_tiles(struct tiles *t, const struct plan *p) {
    const dmlk_convolution *c = p->c;
    const int64_t height = c->output.sizes[Y], width = c->output.sizes[X], columns = dmlk_min(width, MOST_WIDTH);
    const int64_t window = (c->filter_sizes[Y] - 1) * c->dilations[Y] + 1;
    t->p = p;
    t->turns_input = c->input.strides[X] != 1, t->turns_output = c->output.strides[X] != 1;
    t->copies = t->turns_input || t->turns_output ? MOST_COPIES / p->multiplier : COPIES;
    t->blocks = (c->groups + t->copies - 1) / t->copies;
    t->pitch = (columns - 1) * c->strides[X] + (c->filter_sizes[X] - 1) * c->dilations[X] + 1;
    t->quads = p->x_quads * c->filter_sizes[Y];
    if (t->pitch > COPY_BYTES || window > COPY_BYTES / t->pitch) {
        return false;
    }
    for (int64_t k = 0; k < t->quads; k++) {
        t->offsets[k] = k / p->x_quads * c->dilations[Y] * t->pitch + k % p->x_quads * 4 * c->dilations[X];
    }
    int64_t rows = columns < width ? 1 : dmlk_min(height, (COPY_BYTES / t->pitch - window) / c->strides[Y] + 1);
    for (; !plan_tile(t, rows, columns, &t->whole); rows = (rows + 1) / 2) {
        if (rows == 1) {
            return false;
        }
    }
    t->down = (height + rows - 1) / rows, t->across = (width + columns - 1) / columns;
    rows = (height + t->down - 1) / t->down; /* so that all tiles are about equally high */
    t->copy_rows = (rows - 1) * c->strides[Y] + window;
    const int64_t last_rows = height - (t->down - 1) * rows, last_columns = width - (t->across - 1) * columns;
    t->chunk_count = plan_chunks(t);
    return (rows == t->whole.rows || plan_tile(t, rows, columns, &t->whole)) &&
           ((last_rows == rows && last_columns == columns) || plan_tile(t, last_rows, last_columns, &t->last));
}

/* Copies the rows of a plane that a tile reads, from (y, x) of the input on, which may be in the padding. */
static void copy_rows(const struct tiles *t, const uint8_t *plane, int64_t y, int64_t x, uint8_t *to) {
    const dmlk_convolution *c = t->p->c;
    const int64_t size = c->input.sizes[X];
    const __m512i flips = _mm512_set1_epi8((char)t->p->flip), padding = _mm512_set1_epi8((char)t->p->padding);
    __mmask64 inside[COPY_BYTES / 64];
    for (int64_t k = 0; 64 * k < t->pitch; k++) {
        const int64_t at = x + 64 * k;
        const __mmask64 low = at >= 0 ? ~(__mmask64)0 : at <= -64 ? 0 : ~(__mmask64)0 << -at;
        const __mmask64 high = size - at >= 64 ? ~(__mmask64)0 : size <= at ? 0 : ~(__mmask64)0 >> (64 - (size - at));
        inside[k] = low & high;
    }
    for (int64_t row = 0; row < t->copy_rows; row++, y++, to += t->pitch) {
        const bool is_there = y >= 0 && y < c->input.sizes[Y];
        const uint8_t *from = plane + y * c->input.strides[Y] + x;
        for (int64_t k = 0; 64 * k < t->pitch; k++) { /* also past the row's end, as the next row follows */
            if (is_there) {
                const __m512i bytes = _mm512_xor_si512(_mm512_maskz_loadu_epi8(inside[k], from + 64 * k), flips);
                _mm512_storeu_si512(to + 64 * k, _mm512_mask_mov_epi8(padding, inside[k], bytes));
            } else {
                _mm512_storeu_si512(to + 64 * k, padding);
            }
        }
    }
}

/* The same for whole planes. */
static void copy_plane(const struct tiles *t, const uint8_t *plane, uint8_t *to) {
    const __m512i flips = _mm512_set1_epi8((char)t->p->flip), padding = _mm512_set1_epi8((char)t->p->padding);
    for (int64_t i = 0; i < t->chunk_count; i++) {
        const struct chunk *chunk = &t->chunks[i];
        const __m512i bytes = _mm512_xor_si512(_mm512_maskz_loadu_epi8(chunk->needed, plane + chunk->from), flips);
        const __m512i index = _mm512_loadu_si512(chunk->index);
        _mm512_store_si512(to + 64 * i, _mm512_mask_mov_epi8(padding, chunk->inside, dmlk_permute_bytes(index, bytes)));
    }
}

/* Copies the same rows of several planes, along the axis with the closest bytes. */
static void copy_turned(const struct tiles *t, const uint8_t *planes, int64_t count, int64_t y, int64_t x,
                                    uint8_t copies[][COPY_ROOM]) {
    const int64_t *strides = t->p->c->input.strides, *sizes = t->p->c->input.sizes;
    const int64_t top = y < 0 ? -y : 0, left = x < 0 ? -x : 0, step = sizeof copies[0];
    const int64_t rows = dmlk_min(t->copy_rows, sizes[Y] - y) - top, columns = dmlk_min(t->pitch, sizes[X] - x) - left;
    for (int64_t k = 0; k < count; k++) {
        memset(copies[k], t->p->padding ^ t->p->flip, (size_t)(t->pitch * t->copy_rows));
    }
    const uint8_t *from = planes + (y + top) * strides[Y] + (x + left) * strides[X];
    uint8_t *to = copies[0] + top * t->pitch + left;
    const bool by_channels = strides[CHANNEL] <= strides[Y];
    for (int64_t row = 0; row < rows && columns > 0 && by_channels; row++) {
        dmlk_transpose(1, from + row * strides[Y], strides[X], strides[CHANNEL], to + row * t->pitch, step, count,
                       columns);
    }
    for (int64_t k = 0; k < count && rows > 0 && columns > 0 && !by_channels; k++) {
        dmlk_transpose(1, from + k * strides[CHANNEL], strides[X], strides[Y], to + k * step, t->pitch, rows,
                       columns);
    }
    for (int64_t k = 0; k < count && t->p->flip != 0; k++) {
        for (int64_t i = 0; i < t->pitch * t->copy_rows; i++) {
            copies[k][i] ^= t->p->flip;
        }
    }
}

/* Stores the results of a tile, transposed. */
static void store_turned(const struct tiles *t, const struct tile *tile, int64_t filters,
                         int32_t results[][MOST_POSITIONS], int32_t *to) {
    const int64_t *strides = t->p->c->output.strides;
    const bool is_one = strides[Y] == tile->columns * strides[X]; /* rows of the output are contiguous */
    const int64_t rows = is_one ? 1 : tile->rows, columns = is_one ? tile->rows * tile->columns : tile->columns;
    for (int64_t row = 0; row < rows; row++, to += strides[Y]) {
        const int32_t *from = results[0] + row * columns;
        if (strides[CHANNEL] == 1) {
            dmlk_transpose(4, (const uint8_t *)from, sizeof results[0], 4, (uint8_t *)to, strides[X] * 4, columns,
                           filters);
            continue;
        }
        for (int64_t f = 0; f < filters; f++, from += MOST_POSITIONS) {
            dmlk_scatter((const uint8_t *)from, 4, columns, (uint8_t *)(to + f * strides[CHANNEL]), strides[X] * 4);
        }
    }
}

/* Computes a tile of a filter's output. */
static inline void convolve_tile(const struct tiles *t, const struct tile *tile, const uint8_t *copy,
                                             int64_t filter, int32_t *to, const int64_t quads, const bool in_pairs,
                                             const bool signed_filters, const bool needs_sums) {
    const struct plan *p = t->p;
    const __m512i constant = _mm512_set1_epi32(p->constants[filter]), factor = _mm512_set1_epi32(p->factors[filter]);
    const int64_t missing = 4 * p->x_quads - p->c->filter_sizes[X], count = tile->count;
    __m512i filters[MOST_QUADS], ones[MOST_QUADS];
    const uint8_t *from[MOST_QUADS];
    for (int64_t k = 0; k < quads; k++) {
        int32_t quad;
        memcpy(&quad, p->quads + (filter * quads + k) * 4, 4);
        filters[k] = _mm512_set1_epi32(quad);
        ones[k] = _mm512_set1_epi32((int32_t)(0x01010101u >> ((k + 1) % p->x_quads == 0 ? 8 * missing : 0)));
        from[k] = copy + t->offsets[k];
    }
    for (const struct vector *v = tile->vectors; v < tile->vectors + count; v++) {
        const __m512i index = _mm512_loadu_si512(v->index);
        __m512i sum = constant, inputs = _mm512_setzero_si512();
        for (int64_t k = 0; k < quads; k++) {
            const __m512i bytes = select_quads(v, from[k] + v->from, index, in_pairs);
            sum = dot(sum, bytes, filters[k], signed_filters);
            if (needs_sums) {
                inputs = dot(inputs, bytes, ones[k], signed_filters);
            }
        }
        if (needs_sums) {
            sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(inputs, factor));
        }
        _mm512_mask_storeu_epi32(to + v->to, v->there, sum);
    }
}

static void convolve_copy(const struct tiles *t, const struct tile *tile, const uint8_t *copy,
                                      int64_t filter, int32_t *to) {
    const struct plan *p = t->p;
    const bool is_3 = t->quads == 3 && !p->needs_sums, is_signed = p->signed_filters;
    if (is_3 && is_signed && !tile->in_pairs) {
        convolve_tile(t, tile, copy, filter, to, 3, false, true, false);
    } else if (is_3 && is_signed) {
        convolve_tile(t, tile, copy, filter, to, 3, true, true, false);
    } else if (is_3 && !tile->in_pairs) {
        convolve_tile(t, tile, copy, filter, to, 3, false, false, false);
    } else if (is_3) {
        convolve_tile(t, tile, copy, filter, to, 3, true, false, false);
    } else if (is_signed) {
        convolve_tile(t, tile, copy, filter, to, t->quads, tile->in_pairs, true, p->needs_sums);
    } else {
        convolve_tile(t, tile, copy, filter, to, t->quads, tile->in_pairs, false, p->needs_sums);
    }
}

/* Copies the input of a tile's windows, for several planes. */
static void copy_planes(const struct tiles *t, const uint8_t *planes, int64_t count, int64_t y, int64_t x,
                        uint8_t copies[][COPY_ROOM]) {
    const int64_t stride = t->p->c->input.strides[CHANNEL];
    if (t->turns_input) {
        copy_turned(t, planes, count, y, x, copies);
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        if (t->chunk_count > 0) {
            copy_plane(t, planes + k * stride, copies[k]);
        } else {
            copy_rows(t, planes + k * stride, y, x, copies[k]);
        }
    }
}

/* Items: tiles of blocks of channels of all images.  (All channels of a block are copied before they are multiplied:
 * bytes that were just stored cannot be loaded in other pieces before they reach the cache.) */
static void tiles_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct tiles *t = context;
    const dmlk_convolution *c = t->p->c;
    const int64_t tiles = t->down * t->across;
    const int64_t multiplier = t->p->multiplier, *strides = c->output.strides;
    _Alignas(64) uint8_t copies[MOST_COPIES][COPY_ROOM];
    int32_t results[MOST_COPIES][MOST_POSITIONS];
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, t->copies * t->quads * 16 * t->whole.count); i++) {
        const int64_t y = i % tiles / t->across * t->whole.rows, x = i % t->across * t->whole.columns;
        const int64_t n = i / tiles / t->blocks, first = i / tiles % t->blocks * t->copies;
        const bool is_last = y + t->whole.rows > c->output.sizes[Y] || x + t->whole.columns > c->output.sizes[X];
        const struct tile *tile = is_last ? &t->last : &t->whole;
        const int64_t count = dmlk_min(t->copies, c->groups - first);
        const uint8_t *planes = c->input.base + n * c->input.strides[N] + first * c->input.strides[CHANNEL];
        copy_planes(t, planes, count, y * c->strides[Y] - c->start[Y], x * c->strides[X] - c->start[X], copies);
        int32_t *to = (int32_t *)c->output.base + n * strides[N] + y * strides[Y] + x * strides[X];
        to += first * multiplier * strides[CHANNEL];
        for (int64_t f = 0; f < count * multiplier; f++) {
            convolve_copy(t, tile, copies[f / multiplier], first * multiplier + f,
                          t->turns_output ? results[f] : to + f * strides[CHANNEL]);
        }
        if (t->turns_output) {
            store_turned(t, tile, count * multiplier, results, to);
        }
    }
}

static bool is_by_rows(const struct plan *p) {
    const dmlk_convolution *c = p->c;
    return p->multiplier <= 2 && c->filter_sizes[X] <= MOST_TAPS && c->filter_sizes[Y] <= MOST_TAPS &&
           can_select(c);
}

/* --- across channels --- */

/* Makes the quads of 64 channels at one X: interleaves the four taps along Y, four vectors of bytes, to 4 vectors of
 * 16 quads.  Interleaving works within 16-byte lanes, each of which contributes to every result; so words were
 * permuted before: word 4 k + i was exchanged with word 4 i + k. */
static inline void weave(const __m512i taps[4], const bool half, __m512i quads[4]) {
    const __m512i low_01 = _mm512_unpacklo_epi8(taps[0], taps[1]), low_23 = _mm512_unpacklo_epi8(taps[2], taps[3]);
    _mm512_store_si512(quads, _mm512_unpacklo_epi16(low_01, low_23));
    _mm512_store_si512(quads + 1, _mm512_unpackhi_epi16(low_01, low_23));
    if (half) {
        return;
    }
    const __m512i high_01 = _mm512_unpackhi_epi8(taps[0], taps[1]), high_23 = _mm512_unpackhi_epi8(taps[2], taps[3]);
    _mm512_store_si512(quads + 2, _mm512_unpacklo_epi16(high_01, high_23));
    _mm512_store_si512(quads + 3, _mm512_unpackhi_epi16(high_01, high_23));
}

/* Several channels of one row of the output, and of the rows that share its quads. */
struct channels {
    int64_t first, count;
    const uint8_t *rows[MOST_TAPS]; /* of the input, for each tap along Y of all these rows */
    int64_t steps[MOST_TAPS];       /* bytes from an X to the next; 0: the row is padding */
    int32_t *to;
};

static struct channels find_channels(const struct plan *p, int64_t n, int64_t y, int64_t first) {
    const dmlk_convolution *c = p->c;
    struct channels s = {.first = first, .count = dmlk_min(AT_ONCE, c->groups - first)};
    for (int64_t tap = 0; tap < 4 * p->y_quads; tap++) {
        const int64_t at = y * c->strides[Y] + tap * c->dilations[Y] - c->start[Y];
        const bool is_there = tap < c->filter_sizes[Y] + p->rows - 1 && at >= 0 && at < c->input.sizes[Y];
        s.rows[tap] = is_there ? c->input.base + n * c->input.strides[N] + at * c->input.strides[Y] + first
                               : p->padding_row;
        s.steps[tap] = is_there ? c->input.strides[X] : 0;
    }
    s.to = (int32_t *)c->output.base + n * c->output.strides[N] + y * c->output.strides[Y] + first;
    return s;
}

static void fill_padding(__m512i *quads, int64_t count, uint8_t padding) {
    for (int64_t i = 0; i < count; i++) {
        quads[i] = _mm512_set1_epi8((char)padding);
    }
}

/* Fills in the quads of `count` columns, `step` vectors apart, from the four rows at `rows`.  Only `there` taps
 * exist; the bytes of the others are arbitrary, as their filter elements are 0. */
static inline void fill_inside(const uint8_t *const *rows, const int64_t *steps, int64_t x, int64_t count,
                                           __mmask64 channels, const int there, const bool half, uint8_t flip,
                                           __m512i *quads, int64_t step) {
    const __m512i flips = _mm512_set1_epi8((char)flip);
    const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const uint8_t *from[4];
    int64_t steps_of[4];
    for (int j = 0; j < 4; j++) {
        from[j] = rows[j] + x * steps[j];
        steps_of[j] = steps[j];
    }
    for (int64_t i = 0; i < count; i++, quads += step) {
        __m512i taps[4];
        for (int j = 0; j < there; j++, from[j - 1] += steps_of[j - 1]) {
            const __m512i bytes = _mm512_maskz_loadu_epi8(channels, from[j]);
            taps[j] = _mm512_xor_si512(_mm512_permutexvar_epi32(order, bytes), flips);
        }
        for (int j = there; j < 4; j++) {
            taps[j] = taps[there - 1];
        }
        weave(taps, half, quads);
    }
}

/* Fills in the columns of quads for elements begin .. end - 1 of the input's rows. */
static void fill_columns(const struct plan *p, const struct channels *s, int64_t begin, int64_t end,
                                     __m512i (*columns)[4]) {
    const int64_t y_quads = p->y_quads, first = begin < 0 ? dmlk_min(0, end) : begin, size = p->c->input.sizes[X];
    const int64_t last = dmlk_min(end, size) < first ? first : dmlk_min(end, size), count = last - first;
    const __mmask64 there = ~(__mmask64)0 >> (64 - s->count);
    fill_padding(columns[0], 4 * y_quads * (first - begin), p->padding);
    fill_padding(columns[(last - begin) * y_quads], 4 * y_quads * (end - last), p->padding);
    for (int64_t q = 0; q < y_quads; q++) {
        const uint8_t *const *rows = s->rows + 4 * q;
        const int64_t *steps = s->steps + 4 * q, step = 4 * y_quads;
        __m512i *quads = columns[(first - begin) * y_quads + q];
        const bool is_3 = p->c->filter_sizes[Y] == 3 && p->rows == 1, half = s->count <= AT_ONCE / 2;
        if (is_3 && half) {
            fill_inside(rows, steps, first, count, there, 3, true, p->flip, quads, step);
        } else if (is_3) {
            fill_inside(rows, steps, first, count, there, 3, false, p->flip, quads, step);
        } else if (half) {
            fill_inside(rows, steps, first, count, there, 4, true, p->flip, quads, step);
        } else {
            fill_inside(rows, steps, first, count, there, 4, false, p->flip, quads, step);
        }
    }
}

/* Computes 16 channels of `count` positions of a row.  The quads of the next position are `step` vectors later, those
 * of the next tap `tap_step` vectors. */
static inline void convolve_16(const struct plan *p, const __m512i *columns, int64_t step,
                                           int64_t tap_step, int64_t first, __mmask16 there, int64_t count, int64_t row,
                                           int32_t *to, const int64_t taps, const int64_t y_quads,
                                           const bool signed_filters, const bool needs_sums) {
    const uint8_t *from = p->quads + first / AT_ONCE * AT_ONCE * 4 * taps * y_quads + first % AT_ONCE * 4;
    const __m512i constant = _mm512_maskz_loadu_epi32(there, p->constants + first);
    const __m512i factor = _mm512_maskz_loadu_epi32(there, p->factors + first);
    const int64_t stride = p->c->output.strides[X], last = (p->c->filter_sizes[Y] - 1) % 4;
    __m512i filters[MOST_QUADS], ones[MOST_TAPS / 4];
    for (int64_t k = 0; k < taps * y_quads; k++) {
        filters[k] = _mm512_sll_epi32(_mm512_loadu_si512(from + k * AT_ONCE * 4), _mm_cvtsi64_si128(8 * row));
        const int64_t missing = k % y_quads + 1 < y_quads ? 0 : 3 - last;
        ones[k % y_quads] = _mm512_set1_epi32((int32_t)(0x01010101u >> 8 * missing << 8 * row));
    }
    for (int64_t i = 0; i < count; i++, columns += step, to += stride) {
        __m512i sum = constant, inputs = _mm512_setzero_si512();
        for (int64_t k = 0; k < taps; k++) {
            for (int64_t q = 0; q < y_quads; q++) {
                const __m512i input = columns[k * tap_step + 4 * q];
                sum = dot(sum, input, filters[k * y_quads + q], signed_filters);
                if (needs_sums) {
                    inputs = dot(inputs, input, ones[q], signed_filters);
                }
            }
        }
        if (needs_sums) {
            sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(inputs, factor));
        }
        _mm512_mask_storeu_epi32(to, there, sum);
    }
}

/* Computes the channels of `count` positions of a row, whose quads start at `columns`. */
static void convolve_channels(const struct plan *p, const struct channels *s, __m512i (*columns)[4],
                                          int64_t count, int64_t row, int32_t *to) {
    const int64_t step = p->c->strides[X] * p->y_quads * 4, tap_step = p->c->dilations[X] * p->y_quads * 4;
    const int64_t taps = p->c->filter_sizes[X];
    for (int64_t k = 0; 16 * k < s->count; k++) {
        const int64_t first = s->first + 16 * k;
        const __mmask16 there = (__mmask16)(0xffff >> (16 - dmlk_min(16, s->count - 16 * k)));
        const __m512i *from = &columns[0][k];
        int32_t *result = to + 16 * k;
        if (taps != 3 || p->y_quads != 1) {
            convolve_16(p, from, step, tap_step, first, there, count, row, result, taps, p->y_quads, p->signed_filters,
                        p->needs_sums);
        } else if (p->signed_filters && p->needs_sums) {
            convolve_16(p, from, step, tap_step, first, there, count, row, result, 3, 1, true, true);
        } else if (p->signed_filters) {
            convolve_16(p, from, step, tap_step, first, there, count, row, result, 3, 1, true, false);
        } else if (p->needs_sums) {
            convolve_16(p, from, step, tap_step, first, there, count, row, result, 3, 1, false, true);
        } else {
            convolve_16(p, from, step, tap_step, first, there, count, row, result, 3, 1, false, false);
        }
    }
}

/* Items: rows of all images, 64 channels each. */
static void channels_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct plan *p = context;
    const dmlk_convolution *c = p->c;
    const int64_t height = c->output.sizes[Y], size = c->output.sizes[X];
    const int64_t blocks = (c->groups + AT_ONCE - 1) / AT_ONCE;
    const int64_t steps = (height + p->rows - 1) / p->rows, reach = (c->filter_sizes[X] - 1) * c->dilations[X] + 1;
    const int64_t most = (MOST_COLUMNS / p->y_quads - reach) / c->strides[X] + 1; /* positions */
    __m512i columns[MOST_COLUMNS][4];
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_watch_stopped(); i++) {
        const int64_t y = i / blocks % steps * p->rows, rows = dmlk_min(p->rows, height - y);
        const struct channels s = find_channels(p, i / blocks / steps, y, i % blocks * AT_ONCE);
        for (int64_t x = 0; x < size && !dmlk_stopped(&work, most * p->y_quads * 16); x += most) {
            const int64_t count = dmlk_min(most, size - x);
            const int64_t from = x * c->strides[X] - c->start[X];
            fill_columns(p, &s, from, from + (count - 1) * c->strides[X] + reach, columns);
            for (int64_t row = 0; row < rows; row++) {
                int32_t *to = s.to + row * c->output.strides[Y] + x * c->output.strides[X];
                convolve_channels(p, &s, columns, count, row, to);
            }
        }
    }
}

static bool is_across_channels(const struct plan *p) {
    const dmlk_convolution *c = p->c;
    return p->multiplier == 1 && c->groups >= FEWEST_CHANNELS && c->input.strides[CHANNEL] == 1 &&
           c->output.strides[CHANNEL] == 1 &&
           c->filter_sizes[X] <= MOST_TAPS && c->filter_sizes[Y] <= MOST_TAPS &&
           (c->filter_sizes[X] - 1) * c->dilations[X] < MOST_COLUMNS / 4;
}

/* --- along rows and across channels --- */

/* The bytes of a filter, row after row: in place if they are stored in this order, otherwise in `room`. */
static const uint8_t *find_window(const dmlk_convolution *c, int64_t filter, uint8_t *room) {
    const uint8_t *from = c->filter.base + dmlk_filter_at(c, filter);
    const int64_t y_taps = c->filter_sizes[Y], x_taps = c->filter_sizes[X];
    const int64_t y_stride = c->filter.strides[4], x_stride = c->filter.strides[5];
    if ((x_taps == 1 || x_stride == 1) && (y_taps == 1 || y_stride == x_taps)) {
        return from;
    }
    for (int64_t k = 0; k < y_taps * x_taps; k++) {
        room[k] = from[k / x_taps * y_stride + k % x_taps * x_stride];
    }
    return room;
}

/* Packs the quads of all filters, and stores the zero point corrections. */
static void pack(const struct plan *p, bool across) {
    const dmlk_convolution *c = p->c;
    const int64_t y_taps = c->filter_sizes[Y], x_taps = c->filter_sizes[X], taps = y_taps * x_taps;
    const int64_t quads = across ? x_taps * p->y_quads : y_taps * p->x_quads, step = across ? AT_ONCE * 4 : 4;
    const int32_t zero = dmlk_flipped_zero(c);
    uint8_t order[64] = {0}, room[64], packed[64];
    __mmask64 used = 0;
    for (int64_t k = 0; k < taps; k++) {
        const int64_t y = k / x_taps, x = k % x_taps, to = across ? x * p->y_quads * 4 + y : y * p->x_quads * 4 + x;
        order[to] = (uint8_t)k;
        used |= (__mmask64)1 << to;
    }
    const __m512i index = _mm512_loadu_si512(order), ones = _mm512_set1_epi8(1);
    for (int64_t f = 0; f < c->filter_sizes[N]; f++) {
        const uint8_t *from = find_window(c, f, room);
        const __m512i bytes = _mm512_maskz_loadu_epi8(~(__mmask64)0 >> (64 - taps), from);
        uint8_t *to = p->quads + (across ? f / AT_ONCE * AT_ONCE * quads + f % AT_ONCE : f * quads) * 4;
        _mm512_storeu_si512(packed, _mm512_maskz_mov_epi8(used, dmlk_permute_bytes(index, bytes)));
        for (int64_t k = 0; k < quads; k++) {
            memcpy(to + k * step, packed + 4 * k, 4);
        }
        p->factors[f] = p->needs_sums ? dmlk_filter_zero(c, f) : 0;
        p->constants[f] = 0;
        if (zero != 0) {
            const int32_t sum = _mm512_reduce_add_epi32(dot(_mm512_setzero_si512(), ones, bytes, p->signed_filters));
            p->constants[f] = (int32_t)((uint32_t)zero * ((uint32_t)(taps * p->factors[f]) - (uint32_t)sum));
        }
    }
}

/* Allocates the working memory and runs the plan: along rows with `tiles`, or across channels (NULL). */
static bool run(struct plan *p, struct tiles *tiles) {
    const dmlk_convolution *c = p->c;
    const int64_t filters = c->filter_sizes[N], blocks = (c->groups + AT_ONCE - 1) / AT_ONCE;
    const int64_t quads = tiles != NULL ? filters * tiles->quads : blocks * AT_ONCE * c->filter_sizes[X] * p->y_quads;
    p->factors = dmlk_take(filters * (int64_t)sizeof *p->factors);
    p->constants = dmlk_take(filters * (int64_t)sizeof *p->constants);
    p->quads = dmlk_take(4 * quads);
    if (p->factors == NULL || p->constants == NULL || p->quads == NULL) {
        return false;
    }
    memset(p->quads, 0, (size_t)(4 * quads));
    pack(p, tiles == NULL);
    if (tiles != NULL) {
        const int64_t items = c->output.sizes[N] * tiles->blocks * tiles->down * tiles->across;
        const int64_t work = 16 * tiles->copies * p->multiplier * tiles->whole.count;
        dmlk_parallel(items, dmlk_parts(items, 1 + 32768 / work), tiles_part, tiles);
    } else {
        const int64_t steps = (c->output.sizes[Y] + p->rows - 1) / p->rows;
        const int64_t items = c->output.sizes[N] * steps * blocks, work = 16 * p->rows * c->output.sizes[X];
        dmlk_parallel(items, dmlk_parts(items, 1 + 32768 / work), channels_part, p);
    }
    return true;
}

static bool convolve(const dmlk_convolution *c) {
    uint8_t padding[AT_ONCE];
    struct plan p = {.c = c, .multiplier = c->filter_sizes[N] / c->groups, .padding_row = padding};
    struct tiles tiles;
    p.y_quads = (c->filter_sizes[Y] + 3) / 4, p.x_quads = (c->filter_sizes[X] + 3) / 4;
    const bool is_possible = c->filter_sizes[CHANNEL] == 1;
    const bool rows_lie = c->input.strides[X] == 1 && c->output.strides[X] == 1;
    const bool across = is_possible && is_across_channels(&p);
    const bool by_rows = is_possible && is_by_rows(&p) && (rows_lie || !across) && plan_tiles(&tiles, &p);
    if (!by_rows && !across) {
        return false;
    }
    p.rows = p.y_quads == 1 && c->strides[Y] == c->dilations[Y] ? 5 - c->filter_sizes[Y] : 1;
    p.flip = dmlk_input_flip(c);
    p.padding = (uint8_t)dmlk_flipped_zero(c);
    p.signed_filters = c->filter.type == DMLK_INT8;
    p.needs_sums = dmlk_has_filter_zeros(c);
    memset(padding, p.padding ^ p.flip, sizeof padding);
    const bool done = run(&p, by_rows ? &tiles : NULL);
    dmlk_give(p.quads), dmlk_give(p.factors), dmlk_give(p.constants);
    return done;
}

#ifndef FORM /* isa/avx512_vbmi includes this file under another name */
#define FORM dmlk_depthwise_avx512_vnni
#endif
const struct dmlk_depthwise_form FORM = {convolve};
