/* convolve_tiles.c - computes the tiles of a strip and stores their sums: see convolve_plan.h. */
#include "convolve_plan.h"

#include "ahead.h"
#include "cpu.h"
#include "cancellation.h"
#include "transpose.h"
#include "promoted.h"

const struct dmlk_convolve_tiles_form *dmlk_convolve_tiles_form;

enum { N = DMLK_N, CHANNEL = DMLK_CHANNEL, Y = DMLK_Y, X = DMLK_X };

#define ROWS DMLK_S8_ROWS
#define LANES DMLK_S8_LANES
#define BLOCK DMLK_S8_BLOCK
#define GRAIN 400000 /* products of quads that justify a thread: 3 us with AMX, 20 us with AVX2 */
#define CHUNK 64 /* positions that are processed at a time if lanes are filters, at most */

/* Positions whose sums are consecutive, from `lane` on, and are stored along X, from element `to` of a filter's
 * output on. */
struct run {
    int64_t lane, count, to;
};

/* Finds the runs of `count` positions from `first` on, with `pitch` positions per row; returns the number of runs. */
static int find_runs(const dmlk_strip *s, int64_t first, int64_t count, int64_t pitch, struct run runs[CHUNK]) {
    const int64_t size = s->p->c->output.sizes[X], *strides = s->p->c->output.strides;
    if (pitch == size && strides[Y] == size * strides[X]) { /* rows are contiguous */
        runs[0] = (struct run){0, count, s->first * strides[Y] + first * strides[X]};
        return 1;
    }
    int64_t y = first / pitch, x = first % pitch;
    int found = 0;
    for (int64_t lane = 0; lane < count; y++, x = 0) {
        if (x < size) {
            const int64_t to = (s->first + y) * strides[Y] + x * strides[X];
            runs[found++] = (struct run){lane, dmlk_min(count - lane, size - x), to};
        }
        lane += pitch - x;
    }
    return found;
}

/* Filters of a group from `filter` on, and their outputs. */
struct rows {
    int64_t count;
    const int32_t *constants, *factors, *row_constants;
    const float *scales; /* NULL: sums are not finished */
    uint8_t *to; /* the output of the image and the first filter */
};

static struct rows find_rows(const dmlk_strip *s, int64_t filter, int64_t most) {
    const dmlk_plan *p = s->p;
    const dmlk_view *out = &p->c->output;
    const int64_t slot = (s->group * p->group_blocks - p->first) * p->width + filter;
    const int64_t channel = s->group * p->filters + filter;
    return (struct rows){dmlk_min(most, p->filters - filter), p->constant + slot, p->factor + slot,
                         p->row_constant != NULL ? p->row_constant + slot : NULL,
                         p->scales != NULL ? p->scales + slot : NULL,
                         out->base + (s->n * out->strides[N] + channel * out->strides[CHANNEL]) * p->bytes};
}

/* Whether no pair of products of `count` blocks of the group exceeds 16 bits. */
static bool all_fit(const dmlk_strip *s, int64_t block, int64_t count) {
    const dmlk_plan *p = s->p;
    const int64_t first = s->group * p->group_blocks + block - p->first;
    bool fit = p->fits != NULL;
    for (int64_t i = 0; i < count && fit; i++) {
        fit = p->fits[first + i];
    }
    return fit;
}

/* A range of quads. */
struct span {
    int64_t first, count;
};

/* The quads of positions in rows first .. last of the strip, without rows of taps that read only padding. */
static inline struct span find_span(const dmlk_strip *s, int64_t first, int64_t last) {
    const dmlk_plan *p = s->p;
    const dmlk_convolution *c = p->c;
    if (p->row_quads == 0) {
        return (struct span){0, p->quads};
    }
    const int64_t before = c->start[Y] - (s->first + last) * c->strides[Y]; /* lines from the first tap to the input */
    const int64_t inside = c->input.sizes[Y] + c->start[Y] - (s->first + first) * c->strides[Y];
    const int64_t dilation = c->dilations[Y], taps = p->y.taps;
    const int64_t begin = before <= 0 ? 0 : dmlk_min((before + dilation - 1) / dilation, taps);
    const int64_t end = inside > (taps - 1) * dilation ? taps : inside <= 0 ? 0 : (inside + dilation - 1) / dilation;
    return (struct span){begin * p->row_quads, end > begin ? (end - begin) * p->row_quads : 0};
}

/* The constants of `count` filters without the skipped taps: in `changed`, or the usual ones if no tap is skipped. */
static const int32_t *find_constants(const dmlk_plan *p, const struct rows *rows, const struct span *span,
                                     int64_t count, int32_t *changed) {
    if (rows->row_constants == NULL || span->count == p->quads) {
        return rows->constants;
    }
    memcpy(changed, rows->constants, (size_t)count * sizeof *changed);
    for (int64_t tap = 0; tap < p->y.taps; tap++) {
        const bool is_in = tap * p->row_quads >= span->first && tap * p->row_quads < span->first + span->count;
        const int32_t *row = rows->row_constants + tap * p->row_constants;
        for (int64_t i = 0; i < count && !is_in; i++) {
            changed[i] = (int32_t)((uint32_t)changed[i] + (uint32_t)row[i]);
        }
    }
    return changed;
}

/* Stores `count` elements of `bytes` bytes. */
static inline void store_run(const uint8_t *from, int64_t count, uint8_t *to, int64_t stride, int64_t bytes) {
    if (stride == 1) {
        memcpy(to, from, (size_t)(count * bytes));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + i * stride * bytes, from + i * bytes, bytes == 1 ? 1 : 4);
    }
}

/* --- sums that are finished --- */

/* Finishes a whole row of sums; the scales are one for all (`step` 0) or one for each. */
DMLK_EACH_ISA(finish_row, (const int32_t *restrict sums, const float *restrict scales, int64_t step,
                           const float *restrict added, const dmlk_sums_finish *finish, float *restrict floats,
                           uint8_t *restrict bytes),
              (sums, scales, step, added, finish, floats, bytes)) {
    const dmlk_sums_finish f = *finish;
    for (int64_t i = 0; i < LANES && step == 0; i++) {
        floats[i] = (float)sums[i] * *scales + f.summand;
    }
    for (int64_t i = 0; i < LANES && step != 0; i++) {
        floats[i] = (float)sums[i] * scales[i] + f.summand;
    }
    for (int64_t i = 0; i < LANES && f.added != NULL; i++) {
        floats[i] += added[i];
    }
    for (int64_t i = 0; i < LANES && f.is_bounded; i++) {
        const float x = floats[i], least = x > f.low ? x : f.low;
        floats[i] = least < f.high ? least : f.high;
    }
    for (int64_t i = 0; i < LANES && f.bytes != NULL; i++) {
        bytes[i] = dmlk_quantized_float(floats[i] / f.step, f.zero, &f.integers);
    }
    for (int64_t i = 0; i < LANES && f.floats != NULL && !f.is_bounded; i++) {
        floats[i] = dmlk_one_nan_float(floats[i]);
    }
}

/* (Vectors are read soon after, which waits for stores of single floats.) */
static inline void load_run(const float *from, int64_t stride, int64_t count, float *to) {
    if (stride == 1) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = from[i * stride];
    }
}

/* The same, and stores runs of it, whose elements are `stride` apart; `first` is the element that they count from. */
static void finish_runs(const dmlk_plan *p, const int32_t *sums, const float *scales, int64_t step, const struct run *runs,
                        int run_count, int64_t first, int64_t stride) {
    const dmlk_sums_finish *f = p->c->finish;
    float added[LANES] = {0}, floats[LANES];
    uint8_t bytes[LANES];
    for (int k = 0; k < run_count && f->added != NULL; k++) {
        load_run(f->added + first + runs[k].to, stride, runs[k].count, added + runs[k].lane);
    }
    finish_row(sums, scales, step, added, f, floats, bytes);
    for (int k = 0; k < run_count; k++) {
        const int64_t to = first + runs[k].to, lane = runs[k].lane, count = runs[k].count;
        if (f->floats != NULL) {
            store_run((const uint8_t *)(floats + lane), count, (uint8_t *)(f->floats + to), stride, sizeof *floats);
        }
        if (f->bytes != NULL) {
            store_run(bytes + lane, count, f->bytes + to, stride, sizeof *bytes);
        }
    }
}

/* The number of the element of a finished output at an address. */
static int64_t element_at(const dmlk_plan *p, const uint8_t *at) { return (at - p->c->finish->base) / p->bytes; }

/* Fetches what the finish of a tile adds and overwrites, while its sums are computed: rows are short and far apart.
 * Runs that are also far apart are not fetched.  (Inlined, as GCC removes calls of functions that only prefetch.) */
static inline __attribute__((always_inline)) void fetch_rows(const dmlk_strip *s, const struct rows *rows,
                                                             const struct run *runs, int run_count) {
    const dmlk_plan *p = s->p;
    const dmlk_sums_finish *f = p->c->finish;
    if (rows->scales == NULL || run_count == 0 || f->added == NULL || p->c->output.strides[X] != 1) {
        return;
    }
    const int64_t first = element_at(p, rows->to) + runs[0].to;
    const int64_t count = runs[run_count - 1].to + runs[run_count - 1].count - runs[0].to;
    for (int64_t r = 0; r < rows->count && count <= 2 * LANES; r++) {
        const int64_t at = first + r * p->c->output.strides[CHANNEL];
        for (int64_t i = 0; i < count; i += DMLK_LINE / 4) {
            dmlk_fetch_line((const uint8_t *)(f->added + at + i));
            if (f->floats != NULL) {
                dmlk_fetch_line((const uint8_t *)(f->floats + at + i));
            }
        }
        dmlk_fetch_line((const uint8_t *)(f->added + at + count - 1));
    }
}

/* --- lanes are positions --- */

/* Writes sums[filter][position]. */
static void store_runs(const dmlk_strip *s, const struct rows *rows, const struct run *runs, int run_count,
                       int32_t (*sums)[LANES]) {
    const dmlk_plan *p = s->p;
    const int64_t *strides = p->c->output.strides, first = rows->scales != NULL ? element_at(p, rows->to) : 0;
    uint64_t lanes = 0;
    bool packed = dmlk_convolve_tiles_form != NULL && strides[X] == 1;
    for (int k = 0; packed && k < run_count; k++) {
        lanes |= (~UINT64_C(0) >> (64 - runs[k].count)) << runs[k].lane;
        packed = k == 0 || runs[k].to == runs[k - 1].to + runs[k - 1].count;
    }
    if (packed && rows->scales != NULL) {
        int64_t at[LANES];
        for (int64_t r = 0; r < rows->count; r++) {
            at[r] = first + r * strides[CHANNEL] + runs[0].to;
        }
        dmlk_convolve_tiles_form->store_finished(sums, lanes, rows->scales, false, p->c->finish, rows->count, at);
        return;
    }
    if (packed) {
        dmlk_convolve_tiles_form->store_lanes(sums, lanes, rows->count, (int32_t *)rows->to + runs[0].to,
                                              strides[CHANNEL]);
        return;
    }
    for (int64_t r = 0; r < rows->count; r++) {
        if (rows->scales != NULL) {
            finish_runs(p, sums[r], rows->scales + r, 0, runs, run_count, first + r * strides[CHANNEL], strides[X]);
            continue;
        }
        for (int k = 0; k < run_count; k++) {
            store_run((const uint8_t *)(sums[r] + runs[k].lane), runs[k].count,
                      rows->to + (r * strides[CHANNEL] + runs[k].to) * p->bytes, strides[X], p->bytes);
        }
    }
}

/* Runs one tile, which writes its sums directly to the output if all of them are valid and contiguous. */
static void run_tile(const dmlk_strip *s, const uint8_t *blocks, int64_t filter, int64_t first, int64_t count) {
    const dmlk_plan *p = s->p;
    const int64_t *strides = p->c->output.strides, of_block = filter - s->first_block * p->width;
    const struct rows rows = find_rows(s, filter, ROWS);
    const struct span span = find_span(s, first / p->pitch, (first + count - 1) / p->pitch);
    struct run runs[CHUNK];
    const int run_count = find_runs(s, first, count, p->pitch, runs);
    const bool in_place = run_count == 1 && runs[0].count % 16 == 0 && runs[0].count == count && strides[X] == 1 &&
                          rows.count == ROWS && rows.scales == NULL;
    _Alignas(64) int32_t sums[ROWS][LANES];
    int32_t changed[ROWS], *to[ROWS];
    fetch_rows(s, &rows, runs, run_count);
    for (int64_t r = 0; r < ROWS; r++) {
        to[r] = in_place ? (int32_t *)rows.to + runs[0].to + r * strides[CHANNEL] : sums[r];
    }
    const dmlk_s8_start start = {find_constants(p, &rows, &span, p->filters == 1 ? 1 : ROWS, changed), rows.factors,
                                 p->needs_sums ? s->sums + first : NULL, all_fit(s, filter / p->width, 1)};
    (p->filters == 1 ? p->tiles.one_filter : p->tiles.positions)(
        s->positions + first * 4, p->offsets + span.first, span.count,
        blocks + of_block / p->width * p->block_bytes + (of_block % p->width + span.first * p->width) * 4,
        4 * p->width, (int)(count + 15) / 16 * 16, &start, to);
    if (!in_place && run_count > 0) {
        store_runs(s, &rows, runs, run_count, sums);
    }
}

/* Tiles of filters, eight at a time. */
static int64_t count_row_tiles(const dmlk_strip *s) {
    const dmlk_plan *p = s->p;
    return (dmlk_min(s->blocks * p->width, p->filters - s->first_block * p->width) + ROWS - 1) / ROWS;
}

/* Items: tiles of positions, each with all filters, eight at a time. */
static void positions_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const dmlk_plan *p = s->p;
    const int64_t positions = s->rows * p->pitch - (p->pitch - p->c->output.sizes[X]);
    const int64_t tiles = count_row_tiles(s);
    const uint8_t *blocks = p->blocks + (s->group * p->group_blocks + s->first_block - p->first) * p->block_bytes;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, p->quads * ROWS * LANES / 8); i++) {
        const int64_t first = i / tiles * LANES;
        run_tile(s, blocks, s->first_block * p->width + i % tiles * ROWS, first, dmlk_min(LANES, positions - first));
    }
}

static void leave_tiles(void) {
    if (dmlk_microkernel_s8_form->leave != NULL) {
        dmlk_microkernel_s8_form->leave();
    }
}

/* --- lanes are positions, in tile registers --- */

/* Runs one or two tiles from number `first` on, with one or two blocks of filters. */
static void run_lines(const dmlk_strip *s, int64_t block, int64_t blocks, int64_t first, int64_t count) {
    const dmlk_plan *p = s->p;
    const int64_t *sizes = p->c->output.sizes, *strides = p->c->output.strides;
    const struct rows rows = find_rows(s, block * BLOCK, blocks * BLOCK);
    const struct span span = find_span(s, first / p->lines, (first + count - 1) / p->lines);
    const uint8_t *filters = p->turned + (s->group * p->group_blocks + block - p->first) * BLOCK * p->row_bytes;
    bool in_place = strides[X] == 1 && rows.count == blocks * BLOCK && rows.scales == NULL;
    _Alignas(64) int32_t sums[2 * BLOCK][LANES];
    int32_t changed[2 * BLOCK];
    struct run runs[2];
    dmlk_s8_line lines[2];
    for (int64_t t = 0; t < count; t++) {
        const int64_t y = (first + t) / p->lines, x = (first + t) % p->lines * p->lanes, at = y * p->pitch + x;
        runs[t] = (struct run){BLOCK * t, dmlk_min(p->lanes, sizes[X] - x), (s->first + y) * strides[Y] + x * strides[X]};
        in_place = in_place && runs[t].count == p->lanes;
        lines[t] = (dmlk_s8_line){s->positions + 4 * at, p->needs_sums ? s->sums + at : NULL, &sums[0][BLOCK * t], LANES};
    }
    fetch_rows(s, &rows, runs, (int)count);
    for (int64_t t = 0; t < count && in_place; t++) {
        lines[t].sums = (int32_t *)(void *)rows.to + runs[t].to;
        lines[t].step = strides[CHANNEL];
    }
    p->tiles.lines(lines, (int)count, (int)p->lanes, p->offsets + span.first, span.count, p->depth, filters + 4 * span.first,
                   p->row_bytes, (int)blocks, find_constants(p, &rows, &span, blocks * BLOCK, changed), rows.factors);
    if (!in_place) {
        store_runs(s, &rows, runs, (int)count, sums);
    }
}

/* The pairs of tiles of a strip, and of blocks. */
static int64_t count_line_pairs(const dmlk_strip *s) { return (s->rows * s->p->lines + 1) / 2; }
static int64_t count_block_pairs(const dmlk_strip *s) { return (s->blocks + 1) / 2; }

/* Items: all pairs of tiles, for each of the groups that the pairs of blocks are divided into. */
static void lines_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const int64_t tiles = s->rows * s->p->lines, last = s->first_block + s->blocks;
    const int64_t pairs = count_line_pairs(s), block_pairs = count_block_pairs(s);
    int64_t work = 0;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / pairs, pair = i % pairs;
        const int64_t to = dmlk_min(last, s->first_block + (group + 1) * block_pairs / s->tiles * 2);
        int64_t block = s->first_block + group * block_pairs / s->tiles * 2;
        for (; block < to && !dmlk_stopped(&work, s->p->quads * 2 * BLOCK); block += 2) {
            run_lines(s, block, dmlk_min(2, last - block), 2 * pair, dmlk_min(2, tiles - 2 * pair));
        }
    }
    leave_tiles();
}

/* --- lanes are filters --- */

/* The positions of a chunk: their inputs, their outputs and their sums of u. */
struct chunk {
    int64_t count;
    const uint8_t *from[CHUNK];
    uint8_t *to[CHUNK];
    int32_t inputs[CHUNK];
    int64_t row[CHUNK]; /* of the strip */
};

/* Finds positions from `first` on, numbered without gaps between rows; the last position is repeated to fill the last
 * tile. */
DMLK_EACH_ISA(find_chunk, (const dmlk_strip *s, int64_t first, int64_t count, uint8_t *to, struct chunk *c),
              (s, first, count, to, c)) {
    const dmlk_plan *p = s->p;
    const int64_t y_stride = p->c->output.strides[Y] * p->bytes, stride = p->c->output.strides[X] * p->bytes;
    const int64_t step = p->position_step;
    const int64_t size = p->c->output.sizes[X];
    int64_t y = first / size, x = first % size;
    c->count = count;
    for (int64_t i = 0, end; i < count; i = end, y++, x = 0) {
        end = dmlk_min(count, i + size - x);
        const int64_t row = y * p->row_step + (x - i) * step;
        const int64_t row_to = (s->first + y) * y_stride + (x - i) * stride;
        for (int64_t k = i; k < end; k++) {
            c->from[k] = s->positions + row + k * step;
            c->to[k] = to + row_to + k * stride;
            c->row[k] = y;
        }
        if (p->needs_sums) {
            memcpy(c->inputs + i, s->sums + y * p->pitch + x, (size_t)(end - i) * sizeof *c->inputs);
        }
    }
    for (int64_t k = count; k % p->tiles.rows != 0; k++) {
        c->from[k] = c->from[count - 1];
        c->to[k] = c->to[count - 1];
        c->row[k] = c->row[count - 1];
        c->inputs[k] = p->needs_sums ? c->inputs[count - 1] : 0;
    }
}

/* Writes sums[position][filter], one position after the other. */
static void store_chunk(const dmlk_strip *s, const struct rows *rows, const struct chunk *c, int32_t (*sums)[LANES]) {
    const dmlk_plan *p = s->p;
    const int64_t stride = p->c->output.strides[CHANNEL];
    const struct run run = {.count = rows->count};
    for (int64_t i = 0; i < c->count; i++) {
        if (rows->scales != NULL) {
            finish_runs(p, sums[i], rows->scales, 1, &run, 1, element_at(p, c->to[i]), stride);
        } else {
            store_run((const uint8_t *)sums[i], rows->count, c->to[i], stride, sizeof **sums);
        }
    }
}

/* The same, finished, with channels last. */
static void store_channels(const dmlk_strip *s, const struct rows *rows, const struct chunk *c, int32_t (*sums)[LANES]) {
    int64_t at[CHUNK];
    for (int64_t i = 0; i < c->count; i++) {
        at[i] = element_at(s->p, c->to[i]);
    }
    dmlk_convolve_tiles_form->store_finished(sums, ~UINT64_C(0) >> (64 - rows->count), rows->scales, true, s->p->c->finish,
                                             c->count, at);
}

/* The same for positions that are contiguous in memory. */
static void store_transposed(const dmlk_strip *s, const struct rows *rows, int64_t first, int64_t count,
                             int32_t (*sums)[LANES]) {
    const dmlk_view *out = &s->p->c->output;
    struct run runs[CHUNK];
    const int run_count = find_runs(s, first, count, out->sizes[X], runs);
    if (run_count == 1 && rows->scales == NULL) { /* in place */
        dmlk_transpose(4, (const uint8_t *)sums, sizeof *sums, 4, rows->to + runs[0].to * 4, out->strides[CHANNEL] * 4,
                       rows->count, count);
        return;
    }
    for (int64_t done = 0; done < count; done += LANES) {
        const int64_t n = dmlk_min(LANES, count - done);
        _Alignas(64) int32_t turned[LANES][LANES];
        dmlk_transpose(4, (const uint8_t *)sums[done], sizeof *sums, 4, (uint8_t *)turned, sizeof *turned, rows->count, n);
        store_runs(s, rows, runs, find_runs(s, first + done, n, out->sizes[X], runs), turned);
    }
}

/* Computes positions from `first` on, for the filters of blocks from `block` on.  With channels last, tiles write
 * their sums directly to the output. */
static void run_chunk(const dmlk_strip *s, int64_t block, int64_t blocks, int64_t first, int64_t count) {
    const dmlk_plan *p = s->p;
    const uint8_t *filters = p->blocks + (s->group * p->group_blocks + block - p->first) * p->block_bytes;
    const struct rows rows = find_rows(s, block * BLOCK, blocks * BLOCK);
    const bool in_place = p->c->output.strides[CHANNEL] == 1 && rows.count == blocks * BLOCK && rows.scales == NULL;
    struct chunk chunk;
    _Alignas(64) int32_t sums[CHUNK][LANES];
    int32_t changed[LANES], *to[CHUNK];
    const bool fit = all_fit(s, block, blocks);
    find_chunk(s, first, count, rows.to, &chunk);
    for (int64_t i = 0, end; i < count; i = end) {
        const int64_t row_tiles = dmlk_min((count - i + p->tiles.rows - 1) / p->tiles.rows, p->tiles.row_tiles);
        end = i + row_tiles * p->tiles.rows;
        for (int64_t k = i; k < end; k++) {
            to[k] = in_place ? (int32_t *)(void *)chunk.to[k] : sums[k];
        }
        const struct span span = find_span(s, chunk.row[i], chunk.row[end - 1]);
        const dmlk_s8_start start = {find_constants(p, &rows, &span, blocks * BLOCK, changed), rows.factors,
                                     p->needs_sums ? chunk.inputs + i : NULL, fit};
        p->tiles.filters(chunk.from + i, p->tiles.rows, (int)row_tiles, p->offsets + span.first, span.count, p->depth,
                         filters + span.first * 4 * BLOCK, p->block_bytes, (int)(blocks * BLOCK), &start, to + i);
    }
    if (in_place) {
        return;
    }
    if (rows.scales != NULL && dmlk_convolve_tiles_form != NULL && p->c->output.strides[CHANNEL] == 1) {
        store_channels(s, &rows, &chunk, sums);
    } else if (!p->channels_close && p->c->output.strides[X] == 1) {
        store_transposed(s, &rows, first, count, sums);
    } else {
        store_chunk(s, &rows, &chunk, sums);
    }
}

static int64_t count_chunks(const dmlk_strip *s) {
    return (s->rows * s->p->c->output.sizes[X] + s->chunk - 1) / s->chunk;
}

/* Runs tile number `tile`, of some blocks, on a chunk of positions. */
static void run_filters(const dmlk_strip *s, int64_t tile, int64_t chunk) {
    const int64_t block = tile * s->blocks / s->tiles, blocks = (tile + 1) * s->blocks / s->tiles - block;
    const int64_t positions = s->rows * s->p->c->output.sizes[X], first = chunk * s->chunk;
    run_chunk(s, s->first_block + block, blocks, first, dmlk_min(s->chunk, positions - first));
}

/* Items: chunks, each with all tiles. */
static void chunks_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const int64_t count = (end - begin) * s->tiles;
    int64_t work = 0;
    for (int64_t i = 0; i < count && !dmlk_stopped(&work, s->p->quads * CHUNK * LANES / 8); i++) {
        run_filters(s, i / (end - begin), begin + i % (end - begin));
    }
    leave_tiles();
}

/* Items: tiles, each with all chunks. */
static void tiles_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_strip *s = context;
    const int64_t chunks = count_chunks(s);
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, s->p->quads * CHUNK * LANES / 8); i++) {
        run_filters(s, i / chunks, i % chunks);
    }
    leave_tiles();
}

/* --- phases --- */

/* The items of the last phase of the input that contain `count` positions from `from` on, with `pitch` positions per row,
 * and what their windows reach. */
static void read_positions(const dmlk_strip *s, int64_t from, int64_t count, int64_t pitch, int64_t *first, int64_t *last) {
    const dmlk_plan *p = s->p;
    const int64_t row = from / pitch, end = dmlk_min((from + count - 1) / pitch + 1, s->rows);
    switch (s->filled) {
    case DMLK_LINES:
        *first = row * p->c->strides[Y];
        *last = *first + dmlk_lines(p, end - row);
        break;
    case DMLK_PLANE_ROWS:
        *first = row;
        *last = end + p->y.reach;
        break;
    case DMLK_SUM_TILES:
        *first = row * p->pitch / LANES;
        *last = (end * p->pitch + LANES - 1) / LANES;
        break;
    default: /* DMLK_SUM_ROWS, DMLK_PATCH_ROWS */
        *first = row;
        *last = end;
    }
}

static void chunks_read(int64_t begin, int64_t end, void *context, int64_t *first, int64_t *last) {
    const dmlk_strip *s = context;
    const int64_t width = s->p->c->output.sizes[X], from = begin * s->chunk;
    read_positions(s, from, dmlk_min(end * s->chunk, s->rows * width) - from, width, first, last);
}

static void tiles_read(int64_t begin, int64_t end, void *context, int64_t *first, int64_t *last) {
    const int64_t chunks = count_chunks(context), chunk = begin % chunks;
    if (chunk + end - begin <= chunks) {
        chunks_read(chunk, chunk + end - begin, context, first, last);
    } else { /* the end of a tile and the beginning of the next */
        chunks_read(0, chunks, context, first, last);
    }
}

/* (their lanes run past the end of a row, and their taps from there; past the last row, to the next plane) */
static void positions_read(int64_t begin, int64_t end, void *context, int64_t *first, int64_t *last) {
    const dmlk_strip *s = context;
    const int64_t tiles = count_row_tiles(s), to = ((end - 1) / tiles + 1) * LANES + s->p->x.reach;
    const int64_t from = to > s->rows * s->p->pitch ? 0 : begin / tiles * LANES;
    read_positions(s, from, to - from, s->p->pitch, first, last);
}

/* (the same in tile registers) */
static void lines_read(int64_t begin, int64_t end, void *context, int64_t *first, int64_t *last) {
    const dmlk_strip *s = context;
    const dmlk_plan *p = s->p;
    const int64_t pairs = count_line_pairs(s);
    int64_t pair = begin % pairs, pair_end = pair + end - begin;
    if (pair_end > pairs) { /* the end of a group and the beginning of the next */
        pair = 0;
        pair_end = pairs;
    }
    const int64_t tile = dmlk_min(2 * pair_end, s->rows * p->lines) - 1;
    const int64_t to = tile / p->lines * p->pitch + tile % p->lines * p->lanes + BLOCK + p->x.reach;
    const int64_t from = to > s->rows * p->pitch ? 0 : 2 * pair / p->lines * p->pitch;
    read_positions(s, from, to - from, p->pitch, first, last);
}

/* What the busiest of `parts` threads does. */
static int64_t busiest(int64_t items, int parts, int64_t work) { return (items + parts - 1) / parts * work; }

/* Divides filters and positions so that the busiest thread has little to do: the larger operand alone, if that is almost as
 * even as dividing both. */
static void divide(dmlk_strip *s, dmlk_pool_phase *phase) {
    const dmlk_plan *p = s->p;
    const int64_t rows = p->tiles.rows, units = (s->rows * p->c->output.sizes[X] + rows - 1) / rows;
    const int64_t input = p->direct ? dmlk_lines(p, s->rows) * p->line * p->channels : p->planes * p->plane_bytes;
    int64_t least = INT64_MAX;
    *phase = (dmlk_pool_phase){.parts = phase->parts};
    const int64_t widest = p->tiles.blocks, longest = dmlk_min(p->tiles.chunk / rows, units);
    for (int64_t most = widest; most >= (phase->parts > 1 ? 1 : widest); most--) { /* blocks of a tile */
        const int64_t tiles = (s->blocks + most - 1) / most, blocks = (s->blocks + tiles - 1) / tiles;
        for (int64_t n = longest; n >= (phase->parts > 1 ? 1 : longest); n--) { /* tiles of a chunk */
            const int64_t chunks = (units + n - 1) / n, work = n * (4 * blocks + 3); /* wide tiles are better */
            const int64_t both = busiest(tiles * chunks, phase->parts, work), one = busiest(chunks, phase->parts, tiles * work);
            const bool splits_input = input > s->blocks * p->block_bytes && one - one / 16 <= both;
            const int64_t most_work = splits_input ? one : both;
            if (most_work < least - least / 32) { /* (chunks and tiles that are smaller take somewhat longer) */
                least = most_work;
                s->tiles = tiles;
                s->chunk = n * rows;
                phase->items = splits_input ? chunks : tiles * chunks;
                phase->run = splits_input ? chunks_part : tiles_part;
                phase->reads = splits_input ? chunks_read : tiles_read;
            }
        }
    }
}

/* Divides pairs of tiles, or each pair of blocks with all of them: threads write lines of their own in small planes, and
 * the smaller operand is the one that all of them read. */
static void divide_lines(dmlk_strip *s, dmlk_pool_phase *phase, int most_parts) {
    const dmlk_plan *p = s->p;
    const int64_t pairs = count_line_pairs(s), blocks = count_block_pairs(s);
    const int64_t grain = 1 + GRAIN / (p->quads * 2 * BLOCK * 2 * BLOCK);
    const int parts = (int)dmlk_min(most_parts, dmlk_parts(pairs * blocks, grain));
    const int64_t input = p->planes * p->plane_bytes, one = busiest(pairs, parts, blocks), both = busiest(pairs * blocks, parts, 1);
    const bool splits_input = parts == 1 || (input > s->blocks * p->block_bytes && one - one / 16 <= both);
    s->tiles = splits_input ? 1 : blocks;
    *phase = (dmlk_pool_phase){.items = pairs * s->tiles, .parts = parts, .run = lines_part, .reads = lines_read};
}

int dmlk_convolve_strip(dmlk_strip *s, int most_parts, unsigned after, dmlk_pool_phase *phases) {
    const dmlk_plan *p = s->p;
    if (p->lanes_are_filters) {
        const int64_t positions = s->rows * p->c->output.sizes[X], grain = 1 + GRAIN / (p->quads * BLOCK);
        phases->parts = (int)dmlk_min(most_parts, dmlk_parts(positions * s->blocks, grain));
        divide(s, phases);
    } else if (p->lanes > 0) {
        divide_lines(s, phases, most_parts);
    } else {
        const int64_t positions = s->rows * p->pitch - (p->pitch - p->c->output.sizes[X]);
        const int64_t items = (positions + LANES - 1) / LANES * count_row_tiles(s), grain = 1 + GRAIN / (p->quads * ROWS * LANES);
        *phases = (dmlk_pool_phase){.items = items,
                                    .parts = (int)dmlk_min(most_parts, dmlk_parts(items, grain)),
                                    .run = positions_part,
                                    .reads = positions_read};
    }
    phases->context = s;
    phases->after = after;
    if (s->filled == DMLK_NOTHING) {
        phases->reads = NULL;
    }
    return 1;
}
