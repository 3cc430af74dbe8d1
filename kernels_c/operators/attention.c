/* attention: out = softmax(scale * queries keys^T + relative bias, masked) values, for each head.
 *
 * First keys and values are packed as floats: new ones after past ones, keys in panels of 48 keys, values in panels
 * of 48 elements.  Then blocks of queries are multiplied by them (microkernel_f32.h), so that scores stay in the
 * cache.  All arithmetic is in FLOAT32; each element of a product is one chain of fused multiply-adds. */
#include "attention.h"

#include <math.h>

#include "dmlk_float_math.h"
#include "kernel.h"
#include "microkernel_f32.h"
#include "scratch.h"
#include "singles.h"
#include "transpose.h"

#define PANEL DMLK_F32_COLUMNS /* keys, or elements of values, of a panel */
#define QUERIES (3 * DMLK_F32_ROWS) /* queries of a block */
#define DEPTH 128          /* values multiplied at a time: a tile's columns of them stay in the first-level cache */
#define LANES 16           /* lanes in which sums are computed */
#define RANGE_LANES 32     /* lanes in which the largest and smallest scores are found */
#define EASY 80            /* DMLK_EASY_EXPF */
#define GRAIN (1 << 18)    /* products worth a thread */

enum {
    QUERY, KEY, VALUE, QUERY_BIAS, KEY_BIAS, VALUE_BIAS, MASK, RELATIVE, PAST_KEY, PAST_VALUE, LENGTHS,
    OUT, PRESENT_KEY, PRESENT_VALUE, VIEWS
};

struct job {
    dmlk_attention k;
    const dmlk_view *views;
    int64_t items, heads, groups, queries, fresh, keys; /* B, H, G, S, N, T */
    int64_t size, value_size, longest;                  /* E, V, and the larger one */
    int64_t panels, value_panels;
    int64_t *past;        /* of each item, the valid past keys */
    float *packed_keys;   /* {item, group, panel, element, PANEL} */
    float *packed_values; /* {item, group, panel, key, PANEL} */
    uint8_t *scratch;     /* of each part */
    int64_t scratch_bytes;
};

static inline uint8_t *element(const dmlk_view *view, const int64_t *index) {
    int64_t at = 0;
    for (uint32_t d = 0; d < view->rank; d++) {
        at += index[d] * view->strides[d];
    }
    return view->base + at * dmlk_type_bytes(view->type);
}

#define ELEMENT(view, ...) element(view, (const int64_t[]){__VA_ARGS__})

static int64_t stride_of(const dmlk_view *view) { return view->strides[view->rank - 1]; }

static int64_t panels_of(int64_t count) { return (count + PANEL - 1) / PANEL; }

/* Between the scores of a query and the next one's: 16 more than needed, so that rows do not share cache sets. */
static int64_t score_stride(const struct job *job) { return job->panels * PANEL + 16; }

static bool has_lengths(const struct job *job) { return job->views[LENGTHS].base != NULL; }

/* The number of an item's keys that its last query uses. */
static int64_t keys_of(const struct job *job, int64_t item) {
    return has_lengths(job) ? job->past[item] + job->fresh : job->keys;
}

/* --- packing of keys and values --- */

/* The tensors that keys (`which` 0) or values (`which` 1) come from and go to. */
struct source {
    const dmlk_view *fresh, *bias, *past, *present;
    bool in_place; /* `past` and `present` are the same memory */
    int64_t size;
};

static struct source source_of(const struct job *job, int which) {
    const dmlk_view *views = job->views;
    const dmlk_view *past = &views[PAST_KEY + which], *present = &views[PRESENT_KEY + which];
    return (struct source){.fresh = &views[KEY + which], .bias = &views[KEY_BIAS + which], .past = past, .present = present,
                           .in_place = past->base != NULL && past->base == present->base,
                           .size = which ? job->value_size : job->size};
}

static void add_bias(const dmlk_view *bias, int64_t head, int64_t size, float *row, float *buffer) {
    if (bias->base != NULL) {
        dmlk_load_singles(bias->type, ELEMENT(bias, head, 0), stride_of(bias), size, buffer);
        for (int64_t i = 0; i < size; i++) {
            row[i] += buffer[i];
        }
    }
}

/* Loads one key or value, a past or a new one, and stores it in `present`, too. */
static void load_row(const struct job *job, const struct source *s, int64_t item, int64_t group, int64_t key, float *row,
                     float *buffer) {
    const int64_t past = job->past[item];
    const bool is_past = key < past || key >= past + job->fresh;
    if (is_past) {
        dmlk_load_singles(s->past->type, ELEMENT(s->past, item, group, key, 0), stride_of(s->past), s->size, row);
    } else {
        dmlk_load_singles(s->fresh->type, ELEMENT(s->fresh, item, group, key - past, 0), stride_of(s->fresh), s->size, row);
        add_bias(s->bias, group, s->size, row, buffer);
    }
    if (s->present->base != NULL && !(is_past && s->in_place)) {
        dmlk_store_singles(s->present->type, ELEMENT(s->present, item, group, key, 0), stride_of(s->present), s->size, row);
    }
}

/* Whether a tensor's rows are contiguous FLOAT32s that need no bias. */
static bool are_floats(const dmlk_view *view, const dmlk_view *bias) {
#ifdef DMLK_CHECKED
    return (void)view, (void)bias, false; /* each load must be checked */
#else
    return view->type == DMLK_FLOAT32 && stride_of(view) == 1 && bias->base == NULL;
#endif
}

/* Whether all keys or values are new and only have to be packed. */
static bool is_copy(const struct job *job, const struct source *s) {
    return job->fresh == job->keys && s->present->base == NULL && are_floats(s->fresh, s->bias);
}

/* Panel number `panel` of the keys. */
static void pack_keys(const struct job *job, int64_t item, int64_t group, int64_t panel, float *rows, float *buffer) {
    const struct source source = source_of(job, 0);
    const int64_t first = panel * PANEL, size = job->size;
    const int64_t count = dmlk_min(PANEL, keys_of(job, item) - first);
    float *to = job->packed_keys + ((item * job->groups + group) * job->panels + panel) * size * PANEL;
    const int64_t bytes = sizeof *rows;
    if (is_copy(job, &source)) {
        const uint8_t *from = ELEMENT(source.fresh, item, group, first, 0);
        dmlk_transpose(bytes, from, source.fresh->strides[2] * bytes, bytes, (uint8_t *)to, PANEL * bytes, size, count);
        return;
    }
    for (int64_t j = 0; j < count; j++) {
        load_row(job, &source, item, group, first + j, rows + j * size, buffer);
    }
    dmlk_transpose(bytes, (const uint8_t *)rows, size * bytes, bytes, (uint8_t *)to, PANEL * bytes, size, count);
}

/* (Compilers make a call of a memcpy of unknown size.) */
static void copy_vectors(const float *from, int64_t count, float *to) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        memcpy(to + i, from + i, 8 * sizeof *to);
    }
    for (; i < count; i++) {
        to[i] = from[i];
    }
}

/* `count` values from number `first` on; `row` has room for one. */
static void pack_values(const struct job *job, int64_t item, int64_t group, int64_t first, int64_t count, float *row,
                        float *buffer) {
    const struct source source = source_of(job, 1);
    const bool copies = is_copy(job, &source);
    float *to = job->packed_values + ((item * job->groups + group) * job->value_panels * job->keys + first) * PANEL;
    const float *from = copies ? (const float *)(const void *)ELEMENT(source.fresh, item, group, first, 0) : row;
    for (int64_t key = 0; key < count; key++, to += PANEL) {
        if (!copies) {
            load_row(job, &source, item, group, first + key, row, buffer);
        }
        for (int64_t at = 0; at < job->value_size; at += PANEL) {
            copy_vectors(from + at, dmlk_min(PANEL, job->value_size - at), to + at * job->keys);
        }
        from += copies ? source.fresh->strides[2] : 0;
    }
}

/* Copies the past keys and values that are not used to `present`. */
static void keep_rest(const struct job *job, int64_t item, int64_t group, float *row, float *buffer) {
    for (int which = 0; which < 2; which++) {
        const struct source source = source_of(job, which);
        for (int64_t key = keys_of(job, item); key < job->keys && source.present->base != NULL && !source.in_place; key++) {
            load_row(job, &source, item, group, key, row, buffer);
        }
    }
}

/* Items: the heads of keys. */
static void pack_part(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    float *rows = (float *)(void *)(job->scratch + part * job->scratch_bytes), *buffer = rows + PANEL * job->longest;
    int64_t work = 0;
    for (int64_t i = begin; i < end; i++) {
        const int64_t item = i / job->groups, group = i % job->groups, count = keys_of(job, item);
        for (int64_t panel = 0; panel < panels_of(count) && !dmlk_stopped(&work, PANEL * job->size); panel++) {
            pack_keys(job, item, group, panel, rows, buffer);
        }
        for (int64_t key = 0; key < count && !dmlk_stopped(&work, PANEL * job->value_size); key += PANEL) {
            pack_values(job, item, group, key, dmlk_min(PANEL, count - key), rows, buffer);
        }
        keep_rest(job, item, group, rows, buffer);
    }
}

/* --- scores --- */

/* The scores of a query. */
struct line {
    const struct job *job;
    int64_t item, head, query;
    int64_t keys; /* that the query uses */
    float *scores;
};

/* Replaces products by scores. */
DMLK_EACH_ISA(scale_scores, (float *x, int64_t n, float scale), (x, n, scale)) {
    for (int64_t i = 0; i < n; i++) {
        x[i] *= scale;
    }
}

static void add_relative(const struct line *line, int64_t first, int64_t n, float *x) {
    const dmlk_view *relative = &line->job->views[RELATIVE];
    float bias[PANEL];
    if (relative->base != NULL) {
        dmlk_load_singles(relative->type, ELEMENT(relative, line->item, line->head, line->query, first), stride_of(relative), n, bias);
        for (int64_t i = 0; i < n; i++) {
            x[i] += bias[i];
        }
    }
}

/* Masks all keys but start .. end - 1. */
static void mask_outside(float filter, int64_t start, int64_t end, int64_t first, int64_t n, float *x) {
    for (int64_t i = 0; i < n; i++) {
        x[i] = first + i >= start && first + i < end ? x[i] : filter;
    }
}

static void mask_scores(const struct line *line, int64_t first, int64_t n, float *x) {
    const struct job *job = line->job;
    const dmlk_view *mask = &job->views[MASK];
    const float filter = job->k.filter;
    const int32_t *at = (const int32_t *)(const void *)mask->base;
    if (job->k.mask == DMLK_MASK_LENGTH) {
        mask_outside(filter, 0, DMLK_LOAD_ONCE(at, line->item * mask->strides[0]), first, n, x);
    } else if (job->k.mask == DMLK_MASK_END_START) {
        at += line->item * mask->strides[1];
        mask_outside(filter, DMLK_LOAD_ONCE(at, mask->strides[0]), DMLK_LOAD_ONCE(at, 0), first, n, x);
    } else if (job->k.mask == DMLK_MASK_BOOLEAN) {
        at = (const int32_t *)(const void *)ELEMENT(mask, line->item, line->head, line->query, first);
        for (int64_t i = 0; i < n; i++) {
            x[i] += DMLK_LOAD(at, i * mask->strides[3]) == 0 ? filter : 0;
        }
    }
}

/* Whether the mask would add a finite filter to every score, which changes no weight: without it, no score is
 * rounded. */
static bool mask_cancels_out(const struct line *line) {
    const struct job *job = line->job;
    const dmlk_view *mask = &job->views[MASK];
    if (job->k.mask != DMLK_MASK_BOOLEAN || !isfinite(job->k.filter)) {
        return false;
    }
    const int32_t *at = (const int32_t *)(const void *)ELEMENT(mask, line->item, line->head, line->query, 0);
    int64_t i = 0;
    while (i < line->keys && DMLK_LOAD(at, i * mask->strides[3]) == 0) {
        i++;
    }
    return i == line->keys;
}

/* Replaces scores, whose number is a multiple of LANES, by their exponentials, and adds these to the sums in the
 * lanes. */
#define FIND_EXPONENTIALS(name, exponential)                                                                          \
    DMLK_EACH_ISA(name, (float *restrict x, int64_t n, float largest, float *restrict lanes), (x, n, largest, lanes)) { \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            x[i] = exponential(x[i] - largest);                                                                       \
        }                                                                                                             \
        for (int64_t i = 0; i < n; i += LANES) {                                                                      \
            for (int64_t lane = 0; lane < LANES; lane++) {                                                            \
                lanes[lane] += x[i + lane];                                                                           \
            }                                                                                                         \
        }                                                                                                             \
    }
FIND_EXPONENTIALS(find_exponentials, dmlk_expf)
FIND_EXPONENTIALS(find_easy_exponentials, dmlk_easy_expf)

/* The largest of n > 0 scores, and the smallest (any number if one is a NaN). */
DMLK_EACH_ISA(find_range, (const float *restrict x, int64_t n, float *largest, float *smallest), (x, n, largest, smallest)) {
    float most[RANGE_LANES], least[RANGE_LANES];
    for (int64_t lane = 0; lane < RANGE_LANES; lane++) {
        most[lane] = -INFINITY;
        least[lane] = INFINITY;
    }
    int64_t i = 0;
    for (; i + RANGE_LANES <= n; i += RANGE_LANES) {
        for (int64_t lane = 0; lane < RANGE_LANES; lane++) {
            most[lane] = x[i + lane] > most[lane] ? x[i + lane] : most[lane];
            least[lane] = x[i + lane] < least[lane] ? x[i + lane] : least[lane];
        }
    }
    for (int64_t lane = 0; i < n; i++, lane++) {
        most[lane] = x[i] > most[lane] ? x[i] : most[lane];
        least[lane] = x[i] < least[lane] ? x[i] : least[lane];
    }
    for (int64_t lane = 1; lane < RANGE_LANES; lane++) {
        most[0] = most[lane] > most[0] ? most[lane] : most[0];
        least[0] = least[lane] < least[0] ? least[lane] : least[0];
    }
    *largest = most[0];
    *smallest = least[0];
}

/* Replaces n scores by exponentials, whose sum it returns. */
static float exponentials_of(float *x, int64_t n) {
    float largest, smallest, sums[LANES] = {0}, last[LANES], sum = 0;
    const int64_t whole = n / LANES * LANES, rest = n - whole;
    find_range(x, n, &largest, &smallest);
    const bool is_easy = smallest - largest >= -EASY;
    (is_easy ? find_easy_exponentials : find_exponentials)(x, whole, largest, sums);
    if (rest > 0) {
        for (int64_t i = 0; i < LANES; i++) {
            last[i] = i < rest ? x[whole + i] : -INFINITY;
        }
        find_exponentials(last, LANES, largest, sums);
        memcpy(x + whole, last, (size_t)rest * sizeof *x);
    }
    for (int lane = 0; lane < LANES; lane++) {
        sum += sums[lane];
    }
    return sum;
}

/* Replaces products by weights, and returns the sum by which the results must be divided. */
static float weigh(const struct line *line) {
    const struct job *job = line->job;
    const bool is_masked = job->k.mask != DMLK_MASK_NONE && !mask_cancels_out(line);
    scale_scores(line->scores, line->keys, job->k.scale);
    for (int64_t first = 0; first < line->keys && (is_masked || job->views[RELATIVE].base != NULL); first += PANEL) {
        const int64_t n = dmlk_min(PANEL, line->keys - first);
        add_relative(line, first, n, line->scores + first);
        if (is_masked) {
            mask_scores(line, first, n, line->scores + first);
        }
    }
    return exponentials_of(line->scores, line->keys);
}

/* --- blocks of queries --- */

struct block {
    const struct job *job;
    int64_t item, head, query, count; /* queries */
    int64_t keys;                     /* of the last query */
    const float *first; /* element of the queries, or of their copy in `rows` */
    int64_t row_stride;
    float *rows, *scores, *results, *buffer;
};

static void load_queries(struct block *b) {
    const dmlk_view *queries = &b->job->views[QUERY];
    if (are_floats(queries, &b->job->views[QUERY_BIAS])) {
        b->first = (const float *)(const void *)ELEMENT(queries, b->item, b->head, b->query, 0);
        b->row_stride = queries->strides[2];
        return;
    }
    b->first = b->rows, b->row_stride = b->job->size;
    for (int64_t i = 0; i < b->count; i++) {
        float *row = b->rows + i * b->job->size;
        dmlk_load_singles(queries->type, ELEMENT(queries, b->item, b->head, b->query + i, 0), stride_of(queries), b->job->size, row);
        add_bias(&b->job->views[QUERY_BIAS], b->head, b->job->size, row, b->buffer);
    }
}

static int64_t group_of(const struct block *b) {
    return b->item * b->job->groups + b->head / (b->job->heads / b->job->groups);
}

static void multiply_keys(const struct block *b) {
    const struct job *job = b->job;
    const float *keys = job->packed_keys + group_of(b) * job->panels * job->size * PANEL;
    for (int64_t first = 0; first < b->keys; first += PANEL) {
        const dmlk_f32_kernel tile = {.rows = b->count,
                                      .columns = dmlk_min(PANEL, b->keys - first),
                                      .depth = job->size,
                                      .is_first = true,
                                      .row = b->first,
                                      .row_stride = b->row_stride,
                                      .row_step = 1,
                                      .column = keys + first * job->size,
                                      .column_step = PANEL,
                                      .sums = b->scores + first,
                                      .sums_stride = score_stride(job)};
        dmlk_f32_tile(&tile);
    }
}

/* Multiplies the weights by the values: results {value panel, query, PANEL}. */
static void multiply_values(const struct block *b) {
    const struct job *job = b->job;
    const float *values = job->packed_values + group_of(b) * job->value_panels * job->keys * PANEL;
    for (int64_t first = 0; first < b->keys; first += DEPTH) {
        for (int64_t panel = 0; panel < job->value_panels; panel++) {
            const dmlk_f32_kernel tile = {.rows = b->count,
                                          .columns = dmlk_min(PANEL, job->value_size - panel * PANEL),
                                          .depth = dmlk_min(DEPTH, b->keys - first),
                                          .is_first = first == 0,
                                          .row = b->scores + first,
                                          .row_stride = score_stride(job),
                                          .row_step = 1,
                                          .column = values + (panel * job->keys + first) * PANEL,
                                          .column_step = PANEL,
                                          .sums = b->results + panel * QUERIES * PANEL,
                                          .sums_stride = PANEL};
            dmlk_f32_tile(&tile);
        }
    }
}

DMLK_EACH_ISA(divide, (const float *x, int64_t n, float sum, float *to), (x, n, sum, to)) {
    for (int64_t i = 0; i < n; i++) {
        to[i] = dmlk_one_nan(x[i] / sum);
    }
}

static void store_results(const struct block *b, const float *sums) {
    const dmlk_view *out = &b->job->views[OUT];
    const bool direct = are_floats(out, &(dmlk_view){.base = NULL});
    for (int64_t i = 0; i < b->count; i++) {
        for (int64_t panel = 0; panel < b->job->value_panels; panel++) {
            const int64_t n = dmlk_min(PANEL, b->job->value_size - panel * PANEL);
            float *row = b->results + (panel * QUERIES + i) * PANEL;
            uint8_t *to = ELEMENT(out, b->item, b->head, b->query + i, panel * PANEL);
            divide(row, n, sums[i], direct ? (float *)(void *)to : row);
            if (!direct) {
                dmlk_store_singles(out->type, to, stride_of(out), n, row);
            }
        }
    }
}

static void run_block(struct block *b) {
    const struct job *job = b->job;
    float sums[QUERIES];
    load_queries(b);
    multiply_keys(b);
    for (int64_t i = 0; i < b->count; i++) {
        /* If there are past lengths, a query does not see the new keys after its own. */
        const int64_t seen = has_lengths(job) ? dmlk_min(b->keys, job->past[b->item] + b->query + i + 1) : b->keys;
        const struct line line = {job, b->item, b->head, b->query + i, seen, b->scores + i * score_stride(job)};
        sums[i] = weigh(&line);
        memset(line.scores + seen, 0, (size_t)(b->keys - seen) * sizeof(float));
    }
    multiply_values(b);
    store_results(b, sums);
}

/* Items: blocks of queries. */
static void run_part(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    const int64_t blocks = (job->queries + QUERIES - 1) / QUERIES;
    int64_t work = 0;
    float *memory = (float *)(void *)(job->scratch + part * job->scratch_bytes);
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, QUERIES * job->keys * (job->size + job->value_size) / 16); i++) {
        struct block b = {.job = job, .item = i / blocks / job->heads, .head = i / blocks % job->heads};
        b.query = i % blocks * QUERIES;
        b.count = dmlk_min(QUERIES, job->queries - b.query);
        b.keys = keys_of(job, b.item);
        b.scores = memory;
        b.results = b.scores + QUERIES * score_stride(job);
        b.rows = b.results + job->value_panels * QUERIES * PANEL;
        b.buffer = b.rows + QUERIES * job->size;
        run_block(&b);
    }
}

/* --- set up --- */

static bool has_sizes(const dmlk_view *view, uint32_t rank, const int64_t *sizes) {
    return view->base == NULL || (view->rank == rank && memcmp(view->sizes, sizes, rank * sizeof *sizes) == 0);
}

/* Sets the sizes of the job; false: the tensors do not fit together. */
static bool find_sizes(struct job *job) {
    const dmlk_view *v = job->views, *key = &v[KEY], *past = &v[PAST_KEY], *present = &v[PRESENT_KEY];
    const dmlk_view *any = key->base != NULL ? key : past;
    if (v[QUERY].rank != 4 || v[OUT].rank != 4 || any->base == NULL || any->rank != 4 || past->rank > 4 || present->rank > 4) {
        return false;
    }
    const int64_t past_size = past->base != NULL ? past->sizes[2] : 0;
    job->items = v[QUERY].sizes[0], job->heads = v[QUERY].sizes[1], job->queries = v[QUERY].sizes[2], job->size = v[QUERY].sizes[3];
    job->groups = any->sizes[1], job->value_size = v[OUT].sizes[3];
    job->fresh = key->base != NULL ? key->sizes[2] : 0;
    job->keys = has_lengths(job) ? past_size : past_size + job->fresh;
    job->longest = job->size > job->value_size ? job->size : job->value_size;
    job->panels = panels_of(job->keys), job->value_panels = panels_of(job->value_size);
    return job->heads % job->groups == 0 && (!has_lengths(job) || (job->fresh > 0 && job->fresh <= job->keys));
}

static bool sizes_fit(const struct job *job) {
    const dmlk_view *v = job->views;
    const int64_t b = job->items, h = job->heads, g = job->groups, e[] = {job->size, job->value_size};
    const int64_t scores[] = {b, h, job->queries, job->keys}, twice[] = {2, b};
    bool fit = has_sizes(&v[QUERY_BIAS], 2, (const int64_t[]){h, e[0]}) && has_sizes(&v[RELATIVE], 4, scores) &&
               has_sizes(&v[LENGTHS], 1, &b) && has_sizes(&v[OUT], 4, (const int64_t[]){b, h, job->queries, e[1]});
    for (int i = 0; i < 2; i++) {
        fit = fit && has_sizes(&v[KEY + i], 4, (const int64_t[]){b, g, job->fresh, e[i]}) &&
              has_sizes(&v[KEY_BIAS + i], 2, (const int64_t[]){g, e[i]}) &&
              has_sizes(&v[PAST_KEY + i], 4, (const int64_t[]){b, g, has_lengths(job) ? job->keys : job->keys - job->fresh, e[i]}) &&
              has_sizes(&v[PRESENT_KEY + i], 4, (const int64_t[]){b, g, job->keys, e[i]});
    }
    switch (job->k.mask) {
    case DMLK_MASK_NONE: return fit && v[MASK].base == NULL;
    case DMLK_MASK_LENGTH: return fit && v[MASK].base != NULL && has_sizes(&v[MASK], 1, &b);
    case DMLK_MASK_END_START: return fit && v[MASK].base != NULL && has_sizes(&v[MASK], 2, twice);
    case DMLK_MASK_BOOLEAN: return fit && v[MASK].base != NULL && has_sizes(&v[MASK], 4, scores);
    default: return false;
    }
}

static int set_up(const dmlk_call *call, struct job *job) {
    job->views = call->views;
    if (call->view_count != VIEWS || !dmlk_get_constants(call, &job->k, sizeof job->k) || !find_sizes(job) || !sizes_fit(job)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *v = job->views;
    for (int i = 0; i < VIEWS; i++) {
        const uint32_t type = v[i].type;
        const bool fits = i == MASK ? type == DMLK_INT32
                          : i == LENGTHS ? type == DMLK_INT32 || type == DMLK_UINT32 : dmlk_is_single(type);
        if (v[i].base != NULL && !fits) {
            return DMLK_NOT_IMPLEMENTED;
        }
    }
    const bool same = (v[KEY].base != NULL) == (v[VALUE].base != NULL) && (v[PAST_KEY].base != NULL) == (v[PAST_VALUE].base != NULL);
    return same ? DMLK_OK : DMLK_BAD_PACKET;
}

/* The number of an item's valid past keys, loaded once: the host may change it while the kernel runs. */
static int64_t past_of(const struct job *job, int64_t item) {
    const dmlk_view *lengths = &job->views[LENGTHS];
    if (lengths->base == NULL) {
        return job->keys - job->fresh;
    }
    const uint32_t bits = DMLK_LOAD_ONCE((const uint32_t *)(const void *)lengths->base, item * lengths->strides[0]);
    const int64_t length = lengths->type == DMLK_INT32 ? (int32_t)bits : (int64_t)bits;
    return length < 0 ? 0 : dmlk_min(length, job->keys - job->fresh);
}

bool dmlk_indices_attention(const dmlk_call *call, dmlk_index_use *use) {
    struct job job;
    *use = (dmlk_index_use){.indices = LENGTHS, .target = PAST_KEY, .axis = 2, .count = 1, .are_lengths = true};
    if (!dmlk_has_views(call, VIEWS, ~(1u << QUERY | 1u << OUT)) || set_up(call, &job) != DMLK_OK || !has_lengths(&job)) {
        return false;
    }
    use->sizes[0] = job.keys - job.fresh;
    return true;
}

/* Past keys and values after the valid ones are read only if they are copied to a separate present tensor. */
void dmlk_reads_attention(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    struct job job;
    const bool is_past = tensor == PAST_KEY || tensor == PAST_VALUE;
    if (!is_past || call->view_count != VIEWS || call->views[LENGTHS].rank == 0) {
        return;
    }
    const dmlk_view *past = &call->views[tensor], *present = past + (PRESENT_KEY - PAST_KEY);
    const bool is_kept = present->rank != 0 && present->address != past->address;
    uint64_t *marks = is_kept ? NULL : dmlk_begin_marks(call, tensor, reads);
    if (marks == NULL || set_up(call, &job) != DMLK_OK) {
        return;
    }
    const int64_t size = past->sizes[3];
    for (int64_t i = 0; i < job.items * job.groups; i++) {
        for (int64_t j = 0; j < past_of(&job, i / job.groups) * size; j++) {
            const int64_t at = i * job.keys * size + j;
            marks[at / 64] |= UINT64_C(1) << at % 64;
        }
    }
}

const uint32_t dmlk_outputs_attention = 3;

static int64_t floats(int64_t count) { return (count * (int64_t)sizeof(float) + 63) / 64 * 64; }

int dmlk_run_attention(const dmlk_call *call) {
    struct job job;
    const int status = dmlk_has_views(call, VIEWS, ~(1u << QUERY | 1u << OUT)) ? set_up(call, &job) : DMLK_BAD_PACKET;
    if (status != DMLK_OK) {
        return status;
    }
    const int64_t groups = job.items * job.groups;
    const int64_t blocks = job.items * job.heads * ((job.queries + QUERIES - 1) / QUERIES);
    const int64_t products = QUERIES * job.keys * (job.size + job.value_size); /* of a block */
    const int parts = dmlk_parts(blocks, 1 + GRAIN / products);
    const int64_t keys = floats(groups * job.panels * job.size * PANEL);
    const int64_t values = floats(groups * job.value_panels * job.keys * PANEL);
    const int64_t lengths = floats(2 * job.items);
    const int64_t packing = (PANEL + 1) * job.longest;
    const int64_t running = QUERIES * (score_stride(&job) + job.value_panels * PANEL + job.size) + job.longest;
    job.scratch_bytes = floats(packing > running ? packing : running);
    uint8_t *memory = dmlk_take(lengths + keys + values + parts * job.scratch_bytes);
    if (memory == NULL) {
        return DMLK_OUT_OF_MEMORY;
    }
    job.past = (int64_t *)(void *)memory;
    job.packed_keys = (float *)(void *)(memory + lengths);
    job.packed_values = (float *)(void *)(memory + lengths + keys);
    job.scratch = memory + lengths + keys + values;
    for (int64_t item = 0; item < job.items; item++) {
        job.past[item] = past_of(&job, item);
    }
    dmlk_parallel(groups, (int)dmlk_min(parts, groups), pack_part, &job);
    dmlk_parallel(blocks, parts, run_part, &job);
    dmlk_give(memory);
    return DMLK_OK;
}
