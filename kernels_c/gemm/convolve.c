/* convolve.c - convolutions of bytes as sums of products of quads (see dot8.h).
 *
 * The input is laid out anew so that the quads of positions that follow each other do so too, whatever its strides,
 * and whatever stride and dilation the convolution has: one plane for each way a tap can fall between the window's
 * steps,
 *
 *     quads of channels:  plane[channels / 4][y phase][x phase], position = 4 channels of one element;
 *     quads of taps:      plane[channel][y phase][taps / 4],     position = 4 taps of one window row.
 *
 * (Nothing is laid out if positions can be those of the input: without padding, where channels come last.)
 *
 * Within a plane, a tap is a constant distance from the position.  Rows follow each other without a gap, so that
 * tiles whose lanes are positions run on over their ends: what they compute between two rows is thrown away.
 *
 * Zero points: with u = input and w = filter, one of them signed (the input's sign bit is flipped if need be),
 * sum (u - A)(w - B) = sum uw - B sum u + (taps A B - A sum w).  Padding is A. */
#include "convolve.h"

#include <stdlib.h>

#include "dot8.h"
#include "isa.h"
#include "parallel.h"
#include "scratch.h"
#include "stop.h"
#include "transpose.h"
#include "wide.h"

#ifdef DMLK_X86
#include <immintrin.h>
#endif

enum { N = DMLK_N, CHANNEL = DMLK_CHANNEL, Y = DMLK_Y, X = DMLK_X };

#define ROWS DMLK_DOT8_ROWS
#define LANES DMLK_DOT8_LANES
#define BLOCK DMLK_DOT8_BLOCK
#define CHUNK (7 * DMLK_DOT8_POSITIONS) /* positions worked on at once where lanes are filters */
#define PANEL_BYTES (INT64_C(15) << 15) /* of planes: with filters, they fit into a second-level cache */
#define MOST_QUADS (INT64_C(1) << 16)
#define FILTER_BYTES (INT64_C(1) << 21) /* of packed filters */
#define PACKED_QUADS 256                /* of a filter at a time */

/* How the taps of an axis fall: tap k is in the plane of phase index[k], shift[k] positions on. */
struct axis {
    int64_t taps;
    int64_t *index, *shift; /* [taps] */
    int64_t *phases;        /* [count], each from 0 to before the stride */
    int64_t count;
    int64_t reach; /* the largest shift */
};

/* Quads of one kind along a row: the elements that their bytes begin at, and which of them are all inside. */
struct window {
    int64_t x[4];
    int64_t begin, end;
};

/* Where a quad's first byte comes from: a channel and a tap. */
struct quad {
    int64_t at[4]; /* of CHANNEL, Y, X */
};

struct plan {
    const dmlk_convolution *c;
    enum dmlk_isa isa;
    dmlk_dot8 tiles;
    uint8_t flip, padding;
    int zero;                  /* A */
    bool needs_sums;           /* some B is not 0 */
    struct axis y, x;
    int64_t channels, filters; /* of a group */
    bool by_taps;
    bool channels_close; /* in the output, closer than positions */
    bool lanes_are_filters;
    bool direct;     /* positions are those of the input itself, there are no planes */
    bool transposed; /* planes of four channels each are a transposition of the input's rows */
    bool in_order;   /* blocks are one of filters, which lie as quads in memory */

    int64_t quads;
    int64_t fours; /* groups of four channels, or of four taps along X */
    int order[3], step[4];  /* axes of quads, the innermost first; from each quad to the next */
    int64_t *offsets;       /* [quads]: from a position */
    int64_t (*taps)[4];     /* [quads], if they are packed: the elements of each in a filter, -1: none, it is 0 */
    uint8_t *ones;          /* [quads][4], if sums are needed: 1 for each tap that there is */

    int64_t pitch; /* positions in a row of a plane */
    int64_t strip; /* rows of the output worked on at once */
    int64_t planes, plane_bytes;
    int64_t row_step, position_step; /* bytes from each position to the next, of planes or of the input */
    struct window *windows;          /* by taps: [fours]; by channels: [x.count] */

    int64_t width, group_blocks; /* filters in a block, at most BLOCK; blocks of a group */
    int64_t block_bytes;
    const uint8_t *blocks; /* from `first` on */
    uint8_t *packed;       /* where they are, if not in the filter tensor itself: room for `room` */
    int64_t first, room;   /* blocks of all groups, numbered */
    int32_t *factor;       /* [room][width]: B */
    int32_t *constant;     /* [room][width]: taps A B - A sum w */
};

/* What is computed at once: rows first .. first + rows - 1 of the output of one group of one image. */
struct strip {
    const struct plan *p;
    int64_t n, group, first, rows;
    int64_t first_block, blocks; /* of the group */
    const uint8_t *positions;    /* the first one, in the planes or in the input */
    uint8_t *planes;
    int32_t *sums; /* [rows][pitch], rounded up to LANES: of u */
};

/* --- laying out the input --- */

/* Elements begin .. end - 1 of a row are inside the input; element i is `step` on from the one before. */
static void inside(int64_t first, int64_t step, int64_t size, int64_t count, int64_t *begin, int64_t *end) {
    *begin = first >= 0 ? 0 : dmlk_min((-first + step - 1) / step, count);
    *end = first >= size ? 0 : dmlk_min((size - 1 - first) / step + 1, count);
    *end = *end < *begin ? *begin : *end;
}

/* Quads begin .. end - 1, wherever they are. */
static void fill_any(const struct plan *p, const uint8_t *const from[4], const struct window *w, int64_t begin,
                     int64_t end, uint8_t *to) {
    const int64_t size = p->c->input.sizes[X], stride = p->c->input.strides[X], step = p->c->strides[X];
    for (int64_t i = begin; i < end; i++) {
        for (int j = 0; j < 4; j++) {
            const int64_t x = w->x[j] + i * step;
            to[4 * i + j] = x < 0 || x >= size ? p->padding : from[j][x * stride] ^ p->flip;
        }
    }
}

/* Quads whose bytes are all there, `step` bytes apart from each to the next. */
DMLK_CLONES static void fill_inside(const uint8_t *const from[4], int64_t step, int64_t count, uint8_t flip,
                                    uint8_t *to) {
    const uint8_t *restrict a = from[0], *restrict b = from[1], *restrict c = from[2], *restrict d = from[3];
    uint8_t *restrict quad = to;
    if (step == 1) {
        for (int64_t i = 0; i < count; i++) {
            quad[4 * i] = a[i] ^ flip;
            quad[4 * i + 1] = b[i] ^ flip;
            quad[4 * i + 2] = c[i] ^ flip;
            quad[4 * i + 3] = d[i] ^ flip;
        }
    } else if (step == 2) {
        for (int64_t i = 0; i < count; i++) {
            quad[4 * i] = a[2 * i] ^ flip;
            quad[4 * i + 1] = b[2 * i] ^ flip;
            quad[4 * i + 2] = c[2 * i] ^ flip;
            quad[4 * i + 3] = d[2 * i] ^ flip;
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            quad[4 * i] = a[step * i] ^ flip;
            quad[4 * i + 1] = b[step * i] ^ flip;
            quad[4 * i + 2] = c[step * i] ^ flip;
            quad[4 * i + 3] = d[step * i] ^ flip;
        }
    }
}

#ifdef DMLK_X86
/* 16 quads of bytes that lie close: byte j of quad i at from + i * step + j * next, within 128 bytes. */
DMLK_AVX512 static void fill_close(const uint8_t *from, int64_t step, int64_t next, int64_t count, uint8_t flip,
                                   uint8_t *to) {
    uint8_t order[64];
    for (int k = 0; k < 64; k++) {
        order[k] = (uint8_t)(k / 4 * step + k % 4 * next);
    }
    const __m512i index = _mm512_loadu_si512(order), flips = _mm512_set1_epi8((char)flip);
    for (int64_t i = 0; i < count; i += 16) {
        const int64_t quads = dmlk_min(16, count - i), bytes = (quads - 1) * step + 3 * next + 1;
        const __mmask64 low = bytes >= 64 ? ~(__mmask64)0 : ~(__mmask64)0 >> (64 - bytes);
        const __mmask64 high = bytes <= 64 ? 0 : ~(__mmask64)0 >> (128 - bytes);
        const __m512i a = _mm512_maskz_loadu_epi8(low, from + i * step);
        const __m512i b = _mm512_maskz_loadu_epi8(high, from + i * step + 64);
        const __m512i result = _mm512_xor_si512(_mm512_permutex2var_epi8(a, index, b), flips);
        _mm512_mask_storeu_epi32(to + 4 * i, (__mmask16)(0xffff >> (16 - quads)), result);
    }
}
#endif

/* Row `row` of planes with that Y phase: the input's, from channel 0 of the group on; NULL: it is padding. */
static const uint8_t *find_row(const struct strip *s, int64_t y_phase, int64_t row) {
    const dmlk_convolution *c = s->p->c;
    const int64_t y = (s->first + row) * c->strides[Y] + s->p->y.phases[y_phase] - c->start[Y];
    return y < 0 || y >= c->input.sizes[Y] ? NULL
                                           : c->input.base + s->n * c->input.strides[N] + y * c->input.strides[Y] +
                                                 s->group * s->p->channels * c->input.strides[CHANNEL];
}

/* One row of a plane. */
static void fill_row(const struct strip *s, int64_t plane, int64_t row, uint8_t *to) {
    const struct plan *p = s->p;
    const dmlk_convolution *c = p->c;
    const int64_t kinds = p->by_taps ? p->fours : p->x.count;
    const uint8_t *base = find_row(s, plane / kinds % p->y.count, row);
    if (base == NULL) {
        memset(to, p->padding, (size_t)p->pitch * 4);
        return;
    }
    const struct window *w = &p->windows[plane % kinds];
    const int64_t channel = plane / kinds / p->y.count * (p->by_taps ? 1 : 4);
    const uint8_t *from[4], *inner[4];
    const int64_t step = c->strides[X] * c->input.strides[X], count = w->end - w->begin;
    for (int j = 0; j < 4; j++) {
        /* Bytes of channels and taps that are not there meet a 0 in the filter, whatever they are. */
        const int64_t of = p->by_taps ? channel : dmlk_min(channel + j, p->channels - 1);
        from[j] = base + of * c->input.strides[CHANNEL];
        inner[j] = from[j] + w->x[j] * c->input.strides[X] + w->begin * step;
    }
    fill_any(p, from, w, 0, w->begin, to);
    fill_any(p, from, w, w->end, p->pitch, to);
    to += 4 * w->begin;
#ifdef DMLK_X86
    const int64_t next = inner[1] - inner[0];
    const bool even = inner[2] - inner[1] == next && inner[3] - inner[2] == next && next >= 0;
    if (p->isa == DMLK_ISA_AVX512 && even && step >= 0 && step < 128 && 15 * step + 3 * next < 128) {
        fill_close(inner[0], step, next, count, p->flip, to);
        return;
    }
#endif
    fill_inside(inner, step, count, p->flip, to);
}

DMLK_CLONES static void flip_bytes(uint8_t *bytes, int64_t count, uint8_t flip) {
    for (int64_t i = 0; i < count; i++) {
        bytes[i] ^= flip;
    }
}

/* One row of all planes of a phase of Y and X: all groups of four channels of each element, which lie together. */
static void fill_transposed(const struct strip *s, int64_t phase, int64_t row, uint8_t *to) {
    const struct plan *p = s->p;
    const int64_t four_step = p->y.count * p->x.count * p->plane_bytes, stride = p->c->input.strides[X];
    const struct window *w = &p->windows[phase % p->x.count];
    const uint8_t *base = find_row(s, phase / p->x.count, row);
    const int64_t begin = base == NULL ? 0 : w->begin, end = base == NULL ? 0 : w->end, step = p->c->strides[X];
    if (end > begin) {
        dmlk_transpose(4, base + (w->x[0] + begin * step) * stride, step * stride, 4, to + 4 * begin, four_step,
                       p->fours, end - begin, 0);
    }
    for (int64_t i = 0; i < p->fours; i++, to += four_step) {
        memset(to, p->padding, (size_t)(4 * begin));
        memset(to + 4 * end, p->padding, (size_t)(4 * (p->pitch - end)));
        if (p->flip != 0) {
            flip_bytes(to + 4 * begin, 4 * (end - begin), p->flip);
        }
    }
}

/* Rows of planes, numbered. */
static void fill_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct strip *s = context;
    const struct plan *p = s->p;
    const int64_t rows = s->rows + p->y.reach, row_work = p->pitch * (p->transposed ? p->fours : 1);
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, row_work); i++) {
        uint8_t *to = s->planes + i / rows * p->plane_bytes + i % rows * p->pitch * 4;
        if (p->transposed) {
            fill_transposed(s, i / rows, i % rows, to);
        } else {
            fill_row(s, i / rows, i % rows, to);
        }
    }
}

static void sum_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct strip *s = context;
    const int32_t zero = 0;
    int64_t work = 0;
    for (int64_t t = begin; t < end && !dmlk_stopped(&work, s->p->quads); t++) {
        s->p->tiles.one_filter(s->planes + t * LANES * 4, s->p->offsets, s->p->quads, s->p->ones, 4, LANES, &zero,
                               (int32_t (*)[LANES])(s->sums + t * LANES));
    }
}

/* --- writing sums --- */

/* Positions whose sums follow each other, from `lane` on: to element `to` of a filter's output and on along X.
 * `at`: of the first one in a plane. */
struct run {
    int64_t lane, count, to, at;
};

/* The runs of positions from `first` on, numbered with `pitch` of them in a row; returns how many there are. */
static int find_runs(const struct strip *s, int64_t first, int64_t count, int64_t pitch, struct run runs[CHUNK]) {
    const int64_t size = s->p->c->output.sizes[X], *strides = s->p->c->output.strides;
    if (pitch == size && s->p->pitch == size && strides[Y] == size * strides[X]) { /* rows follow each other */
        runs[0] = (struct run){0, count, s->first * strides[Y] + first * strides[X], first};
        return 1;
    }
    int64_t y = first / pitch, x = first % pitch;
    int found = 0;
    for (int64_t lane = 0; lane < count; y++, x = 0) {
        if (x < size) {
            const int64_t to = (s->first + y) * strides[Y] + x * strides[X];
            runs[found++] = (struct run){lane, dmlk_min(count - lane, size - x), to, y * s->p->pitch + x};
        }
        lane += pitch - x;
    }
    return found;
}

/* to[i] = sums[i] - factor * inputs[i] */
static inline void finish(const int32_t *sums, const int32_t *inputs, uint32_t factor, int64_t count, int32_t *to,
                          int64_t stride) {
    for (int64_t i = 0; i < count; i++) {
        const uint32_t rest = inputs != NULL ? factor * (uint32_t)inputs[i] : 0;
        to[i * stride] = (int32_t)((uint32_t)sums[i] - rest);
    }
}

#ifdef DMLK_X86
DMLK_AVX512 static void finish_avx512(const int32_t *sums, const int32_t *inputs, uint32_t factor, int64_t count,
                                      int32_t *to) {
    const __m512i factors = _mm512_set1_epi32((int32_t)factor);
    for (int64_t i = 0; i < count; i += 16) {
        const __mmask16 there = (__mmask16)(0xffff >> (16 - dmlk_min(16, count - i)));
        __m512i sum = _mm512_maskz_loadu_epi32(there, sums + i);
        if (inputs != NULL) {
            const __m512i input = _mm512_maskz_loadu_epi32(there, inputs + i);
            sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(input, factors));
        }
        _mm512_mask_storeu_epi32(to + i, there, sum);
    }
}
#endif

/* Filters of a group from `filter` on, and where theirs are. */
struct rows {
    int64_t count;
    const int32_t *constants, *factors;
    int32_t *to; /* of image and filter */
};

static struct rows find_rows(const struct strip *s, int64_t filter, int64_t most) {
    const struct plan *p = s->p;
    const dmlk_view *out = &p->c->output;
    const int64_t slot = (s->group * p->group_blocks - p->first) * p->width + filter;
    const int64_t channel = s->group * p->filters + filter;
    return (struct rows){dmlk_min(most, p->filters - filter), p->constant + slot, p->factor + slot,
                         (int32_t *)out->base + s->n * out->strides[N] + channel * out->strides[CHANNEL]};
}

/* Writes sums[filter][position] of filters from `filter` on, at most `most`, `row` apart. */
static void store_runs(const struct strip *s, int64_t filter, int64_t most, const struct run *runs, int run_count,
                       const int32_t *sums, int64_t row) {
    const struct plan *p = s->p;
    const int64_t *strides = p->c->output.strides;
    struct rows rows = find_rows(s, filter, most);
    for (int64_t r = 0; r < rows.count; r++, sums += row, rows.to += strides[CHANNEL]) {
        const uint32_t factor = (uint32_t)rows.factors[r];
        for (int k = 0; k < run_count; k++) {
            const struct run run = runs[k];
            const int32_t *inputs = p->needs_sums ? s->sums + run.at : NULL;
#ifdef DMLK_X86
            if (strides[X] == 1 && p->isa == DMLK_ISA_AVX512) {
                finish_avx512(sums + run.lane, inputs, factor, run.count, rows.to + run.to);
                continue;
            }
#endif
            finish(sums + run.lane, inputs, factor, run.count, rows.to + run.to, strides[X]);
        }
    }
}

/* --- lanes are positions --- */

/* Tiles: position by position, all filters for each, eight at a time. */
static void positions_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct strip *s = context;
    const struct plan *p = s->p;
    const int64_t positions = s->rows * p->pitch - (p->pitch - p->c->output.sizes[X]);
    const int64_t filters = dmlk_min(s->blocks * p->width, p->filters - s->first_block * p->width);
    const int64_t tiles = (filters + ROWS - 1) / ROWS;
    const uint8_t *blocks = p->blocks + (s->group * p->group_blocks + s->first_block - p->first) * p->block_bytes;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, p->quads * ROWS * LANES / 8); i++) {
        const int64_t filter = i % tiles * ROWS, first = i / tiles * LANES;
        const int64_t count = dmlk_min(LANES, positions - first);
        int32_t sums[ROWS][LANES];
        (p->filters == 1 ? p->tiles.one_filter : p->tiles.positions)(
            s->positions + first * 4, p->offsets, p->quads,
            blocks + filter / p->width * p->block_bytes + filter % p->width * 4, 4 * p->width,
            (int)(count + 15) / 16 * 16, find_rows(s, s->first_block * p->width + filter, ROWS).constants, sums);
        struct run runs[CHUNK];
        const int run_count = find_runs(s, first, count, p->pitch, runs);
        store_runs(s, s->first_block * p->width + filter, ROWS, runs, run_count, sums[0], LANES);
    }
}

/* --- lanes are filters --- */

#ifdef DMLK_X86
/* Positions of a chunk: what they read, where their results go, and what they have a sum of. */
struct chunk {
    int64_t count;
    const uint8_t *from[CHUNK];
    int32_t *to[CHUNK];
    int64_t at[CHUNK];
};

/* Positions from `first` on, numbered without gaps; those that are no more are the last one again. */
static void find_chunk(const struct strip *s, int64_t first, int64_t count, int32_t *to, struct chunk *c) {
    const struct plan *p = s->p;
    const int64_t *strides = p->c->output.strides, size = p->c->output.sizes[X];
    int64_t y = first / size, x = first % size;
    c->count = count;
    for (int64_t i = 0; i < CHUNK; i++) {
        c->from[i] = s->positions + y * p->row_step + x * p->position_step;
        c->to[i] = to + (s->first + y) * strides[Y] + x * strides[X];
        c->at[i] = y * p->pitch + x;
        const int64_t next = i + 1 < count;
        x += next;
        if (x == size) {
            y++, x = 0;
        }
    }
}

/* Writes sums[position][filter] where channels lie closer than positions. */
DMLK_AVX512 static void store_chunk(const struct strip *s, const struct rows *rows, const struct chunk *c,
                                    int32_t sums[CHUNK][LANES]) {
    const int64_t stride = s->p->c->output.strides[CHANNEL];
    for (int64_t l = 0; l < rows->count; l += 16) {
        const int64_t count = dmlk_min(16, rows->count - l);
        const __m512i factor = _mm512_loadu_si512(rows->factors + l);
        for (int64_t i = 0; i < c->count; i++) {
            __m512i sum = _mm512_loadu_si512(sums[i] + l);
            if (s->p->needs_sums) {
                const __m512i input = _mm512_set1_epi32(s->sums[c->at[i]]);
                sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(input, factor));
            }
            int32_t *to = c->to[i] + l * stride, results[16];
            if (stride == 1) {
                _mm512_mask_storeu_epi32(to, (__mmask16)(0xffff >> (16 - count)), sum);
                continue;
            }
            _mm512_storeu_si512(results, sum);
            for (int64_t k = 0; k < count; k++) {
                to[k * stride] = results[k];
            }
        }
    }
}

/* Positions from `first` on, with filters of blocks from `block` on.  Where channels come last, and there is nothing
 * more to do, tiles write their sums where they belong. */
static void run_chunk(const struct strip *s, int64_t block, int64_t blocks, int64_t first, int64_t count) {
    const struct plan *p = s->p;
    const uint8_t *filters = p->blocks + (s->group * p->group_blocks + block - p->first) * p->block_bytes;
    const struct rows rows = find_rows(s, block * BLOCK, blocks * BLOCK);
    const bool in_place = p->channels_close && p->c->output.strides[CHANNEL] == 1 && rows.count == blocks * BLOCK &&
                          !p->needs_sums;
    struct chunk chunk;
    int32_t sums[CHUNK][LANES], *to[CHUNK];
    find_chunk(s, first, count, rows.to, &chunk);
    for (int64_t i = 0; i < CHUNK && !in_place; i++) {
        to[i] = sums[i];
    }
    for (int64_t i = 0; i < count; i += DMLK_DOT8_POSITIONS) {
        p->tiles.filters(chunk.from + i, p->offsets, p->quads, filters, p->block_bytes, (int)(blocks * BLOCK),
                         rows.constants, in_place ? chunk.to + i : to + i);
    }
    if (p->channels_close && !in_place) {
        store_chunk(s, &rows, &chunk, sums);
    } else if (!p->channels_close) {
        int32_t turned[LANES][CHUNK];
        struct run runs[CHUNK];
        dmlk_transpose(4, (const uint8_t *)sums, sizeof sums[0], 4, (uint8_t *)turned, sizeof turned[0],
                       blocks * BLOCK, count, 0);
        const int run_count = find_runs(s, first, count, p->c->output.sizes[X], runs);
        store_runs(s, block * BLOCK, blocks * BLOCK, runs, run_count, turned[0], CHUNK);
    }
}

/* Tiles of up to three blocks, all positions for each, in chunks. */
static void filters_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct strip *s = context;
    const struct plan *p = s->p;
    const int64_t positions = s->rows * p->c->output.sizes[X], chunks = (positions + CHUNK - 1) / CHUNK;
    const int64_t tiles = (s->blocks + 2) / 3, size = s->blocks / tiles, longer = s->blocks % tiles;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, p->quads * CHUNK * LANES / 8); i++) {
        const int64_t tile = i / chunks, block = s->first_block + tile * size + dmlk_min(tile, longer);
        const int64_t first = i % chunks * CHUNK;
        run_chunk(s, block, size + (tile < longer), first, dmlk_min(CHUNK, positions - first));
    }
}
#endif

static void run_strip(struct strip *s, int most_parts) {
    const struct plan *p = s->p;
    const int64_t planes = p->transposed ? p->y.count * p->x.count : p->planes, rows = planes * (s->rows + p->y.reach);
    const int64_t row_bytes = p->pitch * 4 * (p->transposed ? p->fours : 1);
    if (!p->direct) {
        dmlk_parallel(rows, (int)dmlk_min(most_parts, dmlk_parts(rows, 1 + 32768 / row_bytes)), fill_part, s);
    }
    const int64_t tiles = (s->rows * p->pitch + LANES - 1) / LANES;
    const int64_t grain = 1 + 40000 / p->quads / ROWS;
    if (p->needs_sums) {
        dmlk_parallel(tiles, (int)dmlk_min(most_parts, dmlk_parts(tiles, grain)), sum_part, s);
    }
#ifdef DMLK_X86
    if (p->lanes_are_filters) {
        const int64_t chunks = (s->rows * p->c->output.sizes[X] + CHUNK - 1) / CHUNK;
        const int64_t items = chunks * ((s->blocks + 2) / 3);
        dmlk_parallel(items, (int)dmlk_min(most_parts, dmlk_parts(items, 1 + grain / 7)), filters_part, s);
        return;
    }
#endif
    const int64_t filters = dmlk_min(s->blocks * p->width, p->filters - s->first_block * p->width);
    const int64_t positions = s->rows * p->pitch - (p->pitch - p->c->output.sizes[X]);
    const int64_t items = (positions + LANES - 1) / LANES * ((filters + ROWS - 1) / ROWS);
    dmlk_parallel(items, (int)dmlk_min(most_parts, dmlk_parts(items, grain)), positions_part, s);
}

/* --- quads --- */

static void next_quad(const struct plan *p, struct quad *quad) {
    const int64_t ends[4] = {0, p->channels, p->y.taps, p->x.taps};
    for (int i = 0; i < 3; i++) {
        const int axis = p->order[i];
        quad->at[axis] += p->step[axis];
        if (quad->at[axis] < ends[axis]) {
            return;
        }
        quad->at[axis] = 0;
    }
}

/* Where its bytes come from: four elements of a filter, -1 for none. */
static void find_taps(const struct plan *p, const struct quad *quad, int64_t *at) {
    const int64_t *strides = p->c->filter.strides; /* channels without blocks */
    for (int64_t j = 0; j < 4; j++) {
        const int64_t channel = quad->at[CHANNEL] + (p->by_taps ? 0 : j), tap_x = quad->at[X] + (p->by_taps ? j : 0);
        const bool is_there = channel < p->channels && tap_x < p->x.taps;
        at[j] = is_there ? channel * strides[2] + quad->at[Y] * strides[4] + tap_x * strides[5] : -1;
    }
}

/* Where it is, from a position on. */
static int64_t find_offset(const struct plan *p, const struct quad *quad) {
    const int64_t channel = quad->at[CHANNEL], tap_y = quad->at[Y], tap_x = quad->at[X];
    if (p->direct) {
        const int64_t *strides = p->c->input.strides, *dilations = p->c->dilations;
        return channel + tap_y * dilations[Y] * strides[Y] + tap_x * dilations[X] * strides[X];
    }
    if (p->by_taps) {
        const int64_t plane = (channel * p->y.count + p->y.index[tap_y]) * p->fours + tap_x / 4;
        return plane * p->plane_bytes + p->y.shift[tap_y] * p->pitch * 4;
    }
    const int64_t plane = (channel / 4 * p->y.count + p->y.index[tap_y]) * p->x.count + p->x.index[tap_x];
    return plane * p->plane_bytes + (p->y.shift[tap_y] * p->pitch + p->x.shift[tap_x]) * 4;
}

static bool plan_quads(struct plan *p) {
    const bool with_taps = (p->packed != NULL && !p->in_order) || p->needs_sums;
    p->offsets = dmlk_take(p->quads * (int64_t)sizeof *p->offsets);
    p->taps = with_taps ? dmlk_take(p->quads * (int64_t)sizeof *p->taps) : NULL;
    p->ones = p->needs_sums ? dmlk_take(p->quads * 4) : NULL;
    if (p->offsets == NULL || (with_taps && p->taps == NULL) || (p->needs_sums && p->ones == NULL)) {
        return false;
    }
    struct quad quad = {{0}};
    for (int64_t q = 0; q < p->quads; q++, next_quad(p, &quad)) {
        p->offsets[q] = find_offset(p, &quad);
        if (with_taps) {
            find_taps(p, &quad, p->taps[q]);
        }
        for (int j = 0; j < 4 && p->needs_sums; j++) {
            p->ones[4 * q + j] = p->taps[q][j] >= 0;
        }
    }
    return true;
}

/* --- the filters --- */

/* Quads first .. first + count - 1 of a filter, one after the other. */
static void pack_any(const struct plan *p, int64_t filter, int64_t first, int64_t count, uint8_t *to) {
    const uint8_t *base = p->c->filter.base + dmlk_filter_at(p->c, filter);
    for (int64_t q = first; q < first + count; q++, to += 4) {
        const int64_t *at = p->taps[q];
        for (int j = 0; j < 4; j++) {
            to[j] = at[j] < 0 ? 0 : base[at[j]];
        }
    }
}

#ifdef DMLK_X86
/* The same for quads of channels of filters without gaps in their layout, whose windows have at most 16 taps: four
 * channels are 4 x taps bytes, transposed.  `first` and `count` are multiples of the taps. */
DMLK_AVX512 static void pack_transposed(const struct plan *p, int64_t filter, int64_t first, int64_t count,
                                        uint8_t *to) {
    const int64_t window = p->y.taps * p->x.taps;
    const uint8_t *from = p->c->filter.base + dmlk_filter_at(p->c, filter) + 4 * first;
    uint8_t order[64];
    for (int64_t k = 0; k < 64; k++) {
        order[k] = (uint8_t)(k / 4 + k % 4 * window);
    }
    const __m512i index = _mm512_loadu_si512(order);
    const __mmask64 there = ~(__mmask64)0 >> (64 - 4 * window);
    for (int64_t i = 0; i < count; i += window, from += 4 * window, to += 4 * window) {
        _mm512_mask_storeu_epi8(to, there, _mm512_permutexvar_epi8(index, _mm512_maskz_loadu_epi8(there, from)));
    }
}

static bool can_pack_transposed(const struct plan *p) {
    const int64_t window = p->y.taps * p->x.taps, *strides = p->c->filter.strides;
    return p->isa == DMLK_ISA_AVX512 && !p->by_taps && p->order[0] == X && p->channels % 4 == 0 && window <= 16 &&
           strides[5] == 1 && strides[4] == p->x.taps && strides[2] == window;
}
#endif

/* All quads of `count` filters from `filter` on, as a block. */
static void pack_block(const struct plan *p, int64_t filter, int64_t count, uint8_t *to) {
    if (p->width == 1) {
        pack_any(p, filter, 0, p->quads, to);
        return;
    }
    if (p->in_order) {
        dmlk_transpose(4, p->c->filter.base + dmlk_filter_at(p->c, filter), p->c->filter.strides[0], 4, to,
                       4 * p->width, p->quads, count, 0);
        return;
    }
    const int64_t window = p->y.taps * p->x.taps;
    const int64_t most = window < PACKED_QUADS ? PACKED_QUADS / window * window : PACKED_QUADS;
    uint8_t rows[BLOCK][4 * PACKED_QUADS];
    for (int64_t first = 0; first < p->quads; first += most) {
        const int64_t quads = dmlk_min(most, p->quads - first);
        for (int64_t r = 0; r < p->width; r++) {
            if (r >= count) {
                memset(rows[r], 0, (size_t)(4 * quads));
                continue;
            }
#ifdef DMLK_X86
            if (can_pack_transposed(p)) {
                pack_transposed(p, filter + r, first, quads, rows[r]);
                continue;
            }
#endif
            pack_any(p, filter + r, first, quads, rows[r]);
        }
        dmlk_transpose(4, rows[0], sizeof rows[0], 4, to + first * 4 * p->width, 4 * p->width, quads, p->width, 0);
    }
}

/* What the zero points take from the sums of `count` filters. */
static void note_zero_points(const struct plan *p, int64_t filter, int64_t count, const uint32_t *sums, int64_t slot) {
    const uint32_t taps = (uint32_t)(p->channels * p->y.taps * p->x.taps), a = (uint32_t)p->zero;
    for (int64_t i = 0; i < p->width; i++) {
        const int factor = i < count ? dmlk_filter_zero(p->c, filter + i) : 0;
        p->factor[slot + i] = factor;
        p->constant[slot + i] = (int32_t)(a * (taps * (uint32_t)factor - sums[i]));
    }
}

/* Blocks of those that are packed at once, numbered. */
static void pack_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct plan *p = context;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, p->quads * p->width); i++) {
        const int64_t block = p->first + i, of_group = block % p->group_blocks * p->width;
        const int64_t filter = block / p->group_blocks * p->filters + of_group;
        const int64_t count = dmlk_min(p->width, p->filters - of_group);
        if (p->packed != NULL) {
            pack_block(p, filter, count, p->packed + i * p->block_bytes);
        }
        uint32_t sums[BLOCK] = {0};
        if (p->zero != 0) {
            dmlk_dot8_sums(p->isa, p->c->filter.type == DMLK_INT8, p->blocks + i * p->block_bytes, p->quads, p->width,
                           sums);
        }
        note_zero_points(p, filter, count, sums, i * p->width);
    }
}

static void pack_filters(struct plan *p, int64_t first, int64_t count) {
    p->first = first;
    p->blocks = p->packed != NULL ? p->packed : p->c->filter.base + first * p->block_bytes;
    const int64_t work = p->packed != NULL || p->zero != 0 ? p->quads * p->width : 1;
    dmlk_parallel(count, dmlk_parts(count, 1 + 8192 / work), pack_part, p);
}

/* --- planning --- */

static bool plan_axis(struct axis *axis, int64_t taps, int64_t dilation, int64_t stride) {
    *axis = (struct axis){.taps = taps};
    axis->index = malloc((size_t)taps * sizeof *axis->index);
    axis->shift = malloc((size_t)taps * sizeof *axis->shift);
    axis->phases = malloc((size_t)taps * sizeof *axis->phases);
    if (axis->index == NULL || axis->shift == NULL || axis->phases == NULL) {
        return false;
    }
    for (int64_t k = 0; k < taps; k++) {
        const int64_t at = k * dilation, phase = at % stride;
        int64_t i = 0;
        while (i < axis->count && axis->phases[i] != phase) {
            i++;
        }
        axis->phases[i] = phase;
        axis->count += i == axis->count;
        axis->index[k] = i;
        axis->shift[k] = at / stride;
        axis->reach = axis->shift[k] > axis->reach ? axis->shift[k] : axis->reach;
    }
    return true;
}

static void free_plan(struct plan *p) {
    free(p->x.index), free(p->x.shift), free(p->x.phases);
    free(p->y.index), free(p->y.shift), free(p->y.phases);
    free(p->windows), dmlk_give(p->offsets), dmlk_give(p->taps), dmlk_give(p->ones);
    dmlk_give(p->packed), dmlk_give(p->factor), dmlk_give(p->constant);
}

static int64_t round_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

/* Which kind of tile: the one whose lanes lie together in the output, or at least leaves fewer of them unused. */
static bool choose_lanes(const struct plan *p) {
    const int64_t *sizes = p->c->output.sizes;
    if (p->tiles.filters == NULL || p->filters < ROWS || p->pitch > PANEL_BYTES) {
        return false;
    }
    const int64_t rows = dmlk_min(sizes[Y], 64), filters = p->filters; /* enough to compare */
    const int64_t of_positions = round_up(rows * p->pitch, 16) * round_up(filters, ROWS);
    const int64_t of_filters = round_up(rows * sizes[X], DMLK_DOT8_POSITIONS) * round_up(filters, BLOCK);
    return p->channels_close ? of_filters <= 2 * of_positions : of_filters * 10 < of_positions * 9;
}

/* Can positions be those of the input? */
static bool is_direct(const struct plan *p) {
    const dmlk_convolution *c = p->c;
    bool is_inside = true;
    for (int axis = Y; axis <= X; axis++) {
        const int64_t last_window = (c->output.sizes[axis] - 1) * c->strides[axis];
        const int64_t last_tap = (c->filter_sizes[axis] - 1) * c->dilations[axis];
        is_inside = is_inside && c->start[axis] == 0 && last_window + last_tap < c->input.sizes[axis];
    }
    return is_inside && p->lanes_are_filters && !p->by_taps && p->channels % 4 == 0 &&
           c->input.strides[CHANNEL] == 1 && p->flip == 0 && !p->needs_sums;
}

/* Are the input's rows, four channels at a time, words of memory? */
static bool is_transposed(const struct plan *p) {
    const dmlk_view *in = &p->c->input;
    const uint64_t misaligned = (uintptr_t)in->base | (uint64_t)in->strides[N] | (uint64_t)in->strides[Y] |
                                (uint64_t)in->strides[X];
    return !p->by_taps && p->channels % 4 == 0 && in->strides[CHANNEL] == 1 && misaligned % 4 == 0;
}

/* Sizes of the planes; false: there is no memory for a single row. */
static bool plan_planes(struct plan *p) {
    const dmlk_convolution *c = p->c;
    const int64_t by_channels = (p->channels + 3) / 4 * p->y.taps * p->x.taps;
    const int64_t by_taps = p->channels * p->y.taps * ((p->x.taps + 3) / 4);
    p->by_taps = by_taps < by_channels;
    p->quads = p->by_taps ? by_taps : by_channels;
    p->fours = p->by_taps ? (p->x.taps + 3) / 4 : (p->channels + 3) / 4;
    p->pitch = c->output.sizes[X] + (p->by_taps ? 0 : p->x.reach);
    const int64_t *strides = c->output.strides, *sizes = c->output.sizes;
    p->channels_close = strides[CHANNEL] < strides[X] || sizes[Y] * sizes[X] == 1;
    p->lanes_are_filters = choose_lanes(p);
    p->direct = is_direct(p);
    p->transposed = is_transposed(p);
    if (p->direct) {
        const int64_t row_bytes = p->channels * c->input.sizes[X];
        p->strip = dmlk_min(c->output.sizes[Y], 1 + PANEL_BYTES / row_bytes / c->strides[Y]);
        p->row_step = c->strides[Y] * c->input.strides[Y];
        p->position_step = c->strides[X] * c->input.strides[X];
        return p->quads <= MOST_QUADS;
    }
    p->planes = p->by_taps ? p->channels * p->y.count * p->fours : p->fours * p->y.count * p->x.count;
    if (p->quads > MOST_QUADS || p->pitch > PANEL_BYTES || p->planes > PANEL_BYTES || p->y.reach > PANEL_BYTES) {
        return false;
    }
    p->position_step = 4;
    p->row_step = p->pitch * 4;
    const int64_t row_bytes = p->planes * p->row_step, fitting = PANEL_BYTES / row_bytes - p->y.reach;
    p->strip = dmlk_min(c->output.sizes[Y], fitting < 1 ? 1 : fitting);
    /* An odd number of lines, so that the quads of a position are not all in the same set of a cache. */
    p->plane_bytes = (((p->strip + p->y.reach) * p->row_step + 63) / 64 | 1) * 64;
    return p->planes * p->plane_bytes <= 2 * PANEL_BYTES;
}

static bool plan_windows(struct plan *p) {
    const dmlk_convolution *c = p->c;
    const int64_t kinds = p->by_taps ? p->fours : p->x.count, step = c->strides[X];
    p->windows = malloc((size_t)kinds * sizeof *p->windows);
    for (int64_t k = 0; p->windows != NULL && k < kinds; k++) {
        struct window *w = &p->windows[k];
        *w = (struct window){.begin = 0, .end = p->pitch};
        for (int j = 0; j < 4; j++) {
            int64_t begin, end;
            w->x[j] = (p->by_taps ? (4 * k + j) * c->dilations[X] : p->x.phases[k]) - c->start[X];
            inside(w->x[j], step, c->input.sizes[X], p->pitch, &begin, &end);
            w->begin = begin > w->begin ? begin : w->begin;
            w->end = dmlk_min(w->end, end);
        }
        w->end = w->end < w->begin ? w->begin : w->end;
    }
    return p->windows != NULL;
}

/* Do filters lie in memory as blocks of quads?  Then, this is the order of these. */
static bool find_blocks(struct plan *p) {
    const dmlk_view *f = &p->c->filter;
    const int64_t *strides = f->strides, y_step = strides[4], x_step = strides[5], tap = 16 * p->channels;
    const bool x_outside = x_step > y_step && p->y.taps > 1;
    p->order[0] = CHANNEL, p->order[1] = x_outside ? Y : X, p->order[2] = x_outside ? X : Y;
    return f->sizes[1] == BLOCK && f->sizes[3] == 4 && p->filters % BLOCK == 0 && !p->by_taps && strides[1] == 4 &&
           (p->channels == 4 || strides[2] == 64) && strides[3] == 1 &&
           (p->x.taps == 1 || x_step == tap * (x_outside ? p->y.taps : 1)) &&
           (p->y.taps == 1 || y_step == tap * (x_outside ? 1 : p->x.taps));
}

/* Are filters, without blocks, the words that are their quads? */
static bool is_in_order(const struct plan *p) {
    const dmlk_view *f = &p->c->filter;
    const int64_t *strides = f->strides;
    return !p->by_taps && p->channels % 4 == 0 && p->filters % p->width == 0 && p->width > 1 && strides[2] == 1 &&
           (p->x.taps == 1 || strides[5] == p->channels) && (p->y.taps == 1 || strides[4] == p->channels * p->x.taps) &&
           ((uintptr_t)f->base | (uint64_t)strides[0]) % 4 == 0;
}

static bool plan_filters(struct plan *p) {
    const dmlk_view *f = &p->c->filter;
    const bool in_place = find_blocks(p);
    if (!in_place && (f->sizes[1] > 1 || f->sizes[3] > 1)) {
        return false; /* blocks of another kind */
    }
    if (!in_place && (p->by_taps || f->strides[2] != 1)) {
        p->order[0] = X, p->order[1] = Y, p->order[2] = CHANNEL;
    } else if (!in_place) {
        p->order[1] = X, p->order[2] = Y;
    }
    p->step[CHANNEL] = p->by_taps ? 1 : 4, p->step[Y] = 1, p->step[X] = p->by_taps ? 4 : 1;
    p->width = p->lanes_are_filters || p->filters > BLOCK ? BLOCK : p->filters;
    p->group_blocks = (p->filters + p->width - 1) / p->width;
    p->in_order = is_in_order(p);
    p->block_bytes = in_place && p->group_blocks * p->c->groups > 1 ? f->strides[0] : p->quads * 4 * p->width;
    const int64_t all = p->c->groups * p->group_blocks;
    p->room = in_place ? all : dmlk_min(all, FILTER_BYTES / p->block_bytes);
    if (p->room < 1) {
        return false;
    }
    const int64_t more = p->width % ROWS != 0 ? ROWS : 0; /* tiles read filters that are no more */
    if (!in_place) {
        p->packed = dmlk_take(p->room * p->block_bytes + 4 * more);
    }
    p->factor = dmlk_take(p->room * p->width * (int64_t)sizeof *p->factor);
    p->constant = dmlk_take((p->room * p->width + more) * (int64_t)sizeof *p->constant);
    return (in_place || p->packed != NULL) && p->factor != NULL && p->constant != NULL;
}

bool dmlk_has_filter_zeros(const dmlk_convolution *c) {
    bool found = false;
    for (int64_t i = 0; !found && c->filter_zero->base != NULL && i < c->filter_zero->sizes[0]; i++) {
        found = dmlk_filter_zero(c, i) != 0;
    }
    return found;
}

static bool make_plan(struct plan *p, const dmlk_convolution *c) {
    *p = (struct plan){.c = c};
    p->channels = c->filter_sizes[CHANNEL];
    p->filters = c->filter_sizes[N] / c->groups;
    p->flip = dmlk_input_flip(c);
    p->zero = dmlk_flipped_zero(c);
    p->padding = (uint8_t)p->zero;
    p->needs_sums = dmlk_has_filter_zeros(c);
    p->isa = dmlk_isa();
    p->tiles = dmlk_dot8_tiles(p->isa, c->filter.type == DMLK_INT8);
    /* Sizes are below 2^32 each; the products below do not overflow. */
    return c->filter_sizes[Y] <= 1 << 12 && c->filter_sizes[X] <= 1 << 12 && p->channels <= 1 << 20 &&
           plan_axis(&p->y, c->filter_sizes[Y], c->dilations[Y], c->strides[Y]) &&
           plan_axis(&p->x, c->filter_sizes[X], c->dilations[X], c->strides[X]) && plan_planes(p) &&
           plan_windows(p) && plan_filters(p) && plan_quads(p);
}

/* --- running --- */

/* Memory of each of so many threads that work on groups of their own, or of all together. */
struct scratch {
    int parts;
    uint8_t *planes;
    int64_t planes_bytes;
    int32_t *sums;
    int64_t sums_count;
};

/* Blocks first .. first + count - 1 of one group, on all rows of one image. */
static void run_group(const struct plan *p, int64_t n, int64_t group, int64_t first_block, int64_t blocks, int parts,
                      uint8_t *planes, int32_t *sums, int64_t *work) {
    const dmlk_view *in = &p->c->input;
    const int64_t strip_work = p->strip * p->pitch * (p->quads + p->planes);
    const uint8_t *input = in->base + n * in->strides[N] + group * p->channels * in->strides[CHANNEL];
    for (int64_t first = 0; first < p->c->output.sizes[Y] && !dmlk_stopped(work, strip_work); first += p->strip) {
        const int64_t rows = dmlk_min(p->strip, p->c->output.sizes[Y] - first);
        const uint8_t *positions = p->direct ? input + first * p->row_step : planes;
        struct strip strip = {p, n, group, first, rows, first_block, blocks, positions, planes, sums};
        run_strip(&strip, parts);
    }
}

struct groups {
    const struct plan *p;
    const struct scratch *scratch;
    int64_t first_group, count;
};

/* Groups of images, numbered: each by one thread. */
static void groups_part(int64_t begin, int64_t end, int part, void *context) {
    const struct groups *g = context;
    const struct scratch *s = g->scratch;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_watch_stopped(); i++) {
        run_group(g->p, i / g->count, g->first_group + i % g->count, 0, g->p->group_blocks, 1,
                  s->planes + part * s->planes_bytes, s->sums + part * s->sums_count, &work);
    }
}

static void run(struct plan *p, const struct scratch *scratch, int parts) {
    const int64_t images = p->c->output.sizes[N], groups = p->c->groups, blocks = p->group_blocks;
    const int64_t at_once = p->room / blocks; /* groups */
    int64_t work = 0;
    for (int64_t group = 0; at_once > 0 && group < groups && !dmlk_watch_stopped(); group += at_once) {
        const int64_t count = dmlk_min(at_once, groups - group);
        pack_filters(p, group * blocks, count * blocks);
        struct groups groups_at_once = {p, scratch, group, count};
        if (scratch->parts > 1 && images * count >= 4 * parts) {
            dmlk_parallel(images * count, parts, groups_part, &groups_at_once);
            continue;
        }
        for (int64_t i = 0; i < images * count && !dmlk_watch_stopped(); i++) {
            run_group(p, i / count, group + i % count, 0, blocks, parts, scratch->planes, scratch->sums, &work);
        }
    }
    for (int64_t group = 0; at_once == 0 && group < groups && !dmlk_watch_stopped(); group++) {
        for (int64_t block = 0; block < blocks && !dmlk_watch_stopped(); block += p->room) {
            const int64_t count = dmlk_min(p->room, blocks - block);
            pack_filters(p, group * blocks + block, count);
            for (int64_t n = 0; n < images && !dmlk_watch_stopped(); n++) {
                run_group(p, n, group, block, count, parts, scratch->planes, scratch->sums, &work);
            }
        }
    }
}

static void swap(int64_t *a, int64_t *b) {
    const int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* The same convolution with X as the axis along which positions lie closer in the output. */
static void turn(dmlk_convolution *c) {
    for (int k = 0; k < 2; k++) {
        dmlk_view *view = k == 0 ? &c->input : &c->output;
        swap(&view->sizes[Y], &view->sizes[X]);
        swap(&view->strides[Y], &view->strides[X]);
    }
    swap(&c->filter.sizes[4], &c->filter.sizes[5]);
    swap(&c->filter.strides[4], &c->filter.strides[5]);
    swap(&c->filter_sizes[Y], &c->filter_sizes[X]);
    swap(&c->strides[Y], &c->strides[X]);
    swap(&c->dilations[Y], &c->dilations[X]);
    swap(&c->start[Y], &c->start[X]);
}

/* Are the rows of input and output, where each position has a window of its own element, a single one? */
static bool is_one_row(const dmlk_convolution *c) {
    const int64_t *in = c->input.strides, *out = c->output.strides, x = c->input.sizes[X], y = c->input.sizes[Y];
    return c->filter_sizes[Y] == 1 && c->filter_sizes[X] == 1 && c->strides[Y] == 1 && c->strides[X] == 1 &&
           c->start[Y] == 0 && c->start[X] == 0 && c->output.sizes[Y] == y && c->output.sizes[X] == x &&
           in[Y] == x * in[X] && out[Y] == x * out[X] && c->filter_sizes[CHANNEL] * y <= PANEL_BYTES / x;
}

static void join_rows(dmlk_convolution *c) {
    c->input.sizes[X] = c->output.sizes[X] = c->input.sizes[Y] * c->input.sizes[X];
    c->input.sizes[Y] = c->output.sizes[Y] = 1;
}

bool dmlk_convolve_bytes(const dmlk_convolution *convolution) {
    dmlk_convolution turned = *convolution;
    const dmlk_convolution *c = &turned;
    for (int axis = Y; axis <= X; axis++) {
        if (c->input.sizes[axis] == 1) { /* leads nowhere, and may be huge */
            turned.input.strides[axis] = 0;
        }
    }
    if (c->output.sizes[Y] > 1 && (c->output.sizes[X] == 1 || c->output.strides[Y] < c->output.strides[X])) {
        turn(&turned);
    }
    if (is_one_row(c)) {
        join_rows(&turned);
    }
    if (dmlk_convolve_depthwise(c)) {
        return true;
    }
    struct plan plan;
    struct scratch scratch = {0};
    bool done = make_plan(&plan, c);
    if (done) {
        const double products = (double)dmlk_view_elements(&c->output) * (double)plan.quads * 4;
        const int parts = dmlk_parts(INT64_MAX, products < (plan.channels == 1 ? 1e6 : 8e6) ? INT64_MAX : 1);
        /* Tiles run on over the end of the last row, and their taps reach further. */
        scratch.planes_bytes = plan.planes * plan.plane_bytes + (LANES + plan.x.reach) * 4;
        scratch.sums_count = plan.needs_sums ? plan.strip * plan.pitch + LANES : 0;
        scratch.parts = scratch.planes_bytes <= PANEL_BYTES ? parts : 1;
        scratch.planes = dmlk_take(scratch.parts * scratch.planes_bytes);
        scratch.sums = dmlk_take(scratch.parts * scratch.sums_count * (int64_t)sizeof *scratch.sums);
        done = scratch.planes != NULL && scratch.sums != NULL;
        if (done) {
            run(&plan, &scratch, parts);
        }
    }
    dmlk_give(scratch.planes);
    dmlk_give(scratch.sums);
    free_plan(&plan);
    return done;
}
