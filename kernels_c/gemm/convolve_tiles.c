/* convolve_tiles.c - the tiles of a strip, and writing their sums. */
#include "convolve_plan.h"

#include "isa.h"
#include "parallel.h"
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

/* --- writing sums --- */

/* Positions whose sums follow each other, from `lane` on: to element `to` of a filter's output and on along X.
 * `at`: of the first one in a plane. */
struct run {
    int64_t lane, count, to, at;
};

/* The runs of positions from `first` on, numbered with `pitch` of them in a row; returns how many there are. */
static int find_runs(const dmlk_strip *s, int64_t first, int64_t count, int64_t pitch, struct run runs[CHUNK]) {
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

static struct rows find_rows(const dmlk_strip *s, int64_t filter, int64_t most) {
    const dmlk_plan *p = s->p;
    const dmlk_view *out = &p->c->output;
    const int64_t slot = (s->group * p->group_blocks - p->first) * p->width + filter;
    const int64_t channel = s->group * p->filters + filter;
    return (struct rows){dmlk_min(most, p->filters - filter), p->constant + slot, p->factor + slot,
                         (int32_t *)out->base + s->n * out->strides[N] + channel * out->strides[CHANNEL]};
}

/* Writes sums[filter][position] of filters from `filter` on, at most `most`, `row` apart. */
static void store_runs(const dmlk_strip *s, int64_t filter, int64_t most, const struct run *runs, int run_count,
                       const int32_t *sums, int64_t row) {
    const dmlk_plan *p = s->p;
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
    const dmlk_strip *s = context;
    const dmlk_plan *p = s->p;
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
static void find_chunk(const dmlk_strip *s, int64_t first, int64_t count, int32_t *to, struct chunk *c) {
    const dmlk_plan *p = s->p;
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
DMLK_AVX512 static void store_chunk(const dmlk_strip *s, const struct rows *rows, const struct chunk *c,
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
static void run_chunk(const dmlk_strip *s, int64_t block, int64_t blocks, int64_t first, int64_t count) {
    const dmlk_plan *p = s->p;
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
    const dmlk_strip *s = context;
    const dmlk_plan *p = s->p;
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

void dmlk_convolve_strip(dmlk_strip *s, int most_parts) {
    const dmlk_plan *p = s->p;
    const int64_t grain = 1 + 40000 / p->quads / ROWS;
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
