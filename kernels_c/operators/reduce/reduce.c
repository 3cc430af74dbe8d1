/* reduce: out = function over the reduced axes of in, as defined in functions.inc.
 *
 * Inputs are processed in segments of SEGMENT inputs, whose results are combined in logical order: so threads can share
 * the segments of a few long lines.  Results do not depend on layout or threads:
 *   - integers are added and multiplied modulo 2^bits, and elements are compared, as raw bits (reduce.inc); any order
 *     gives the same result, only places are found in logical order;
 *   - sums and products of floats are computed in double and in logical order (sums.h). */
#include "reduce.h"

#include <math.h>
#include <stdatomic.h>

#include "dmlk_math.h"
#include "exponentials.h"
#include "kernel.h"
#include "largest.h"
#include "scratch.h"
#include "singles.h"
#include "sums.h"
#include "walkers.h"

#define SEGMENT (1 << 16) /* inputs of a line */
#define SEGMENTS 256      /* segments of a block that are computed before they are combined */
#define PIECE DMLK_PLACE_MOST /* inputs that are compared before the place of the largest is searched for */
#define NEAR 2048         /* exponentials that are computed together */
#define ACCURATE 1.000001  /* logarithms of FLOAT32 sums above this are accurate: see reduce_shifted */
#define GLANCE 64         /* inputs that are searched at once */
#define SHORT DMLK_SUMS_LONG /* inputs; lines with fewer are transposed: their sums have one lane */
#define WIDE DMLK_SUMS_MOST  /* lines of a block whose rows are read as they are in memory */
#define GRAIN (1 << 16)   /* inputs worth a thread: 0.006 (SUM) to 0.1 ms (LOG_SUM_EXP in double) */
#define FEW_LINES 16      /* fewer long lines are split into segments for threads */

enum family { SUMS, LARGEST_OF_ALL, PLACES };

/* The kind of comparison of LARGEST_OF_ALL and PLACES. */
enum comparison { LARGEST_INTEGER, LARGEST_FLOAT, PLACE_OF_INTEGER, PLACE_OF_FLOAT };

struct job;
struct block;

/* The results of a block. */
struct results {
    union {
        uint64_t bits[WIDE]; /* an array of the input's type, as raw bits */
        double sums[WIDE];
    };
    int64_t place[WIDE]; /* PLACES: index of the value among the reduced elements */
    bool is_simple;      /* for sums of exponentials: see exponentials.h */
};

/* How inputs of one type are combined. */
struct methods {
    void (*start)(struct block *block, int64_t inputs);
    dmlk_line_visitor visitor; /* its context is the block */
    void (*settle)(struct block *block, struct results *results);
    void (*combine)(const struct job *job, struct results *results, const struct results *more, int64_t count);
    void (*finish)(const struct job *job, struct results *results, int64_t count, const double *shift, uint8_t *at,
                   int64_t stride);
};

/* Loops that sum terms of FLOAT32s directly from memory (see sums.inc). */
struct direct {
    void (*along)(dmlk_sums *sums, int64_t sum, const float *from, int64_t n, int64_t index);
    void (*rows)(dmlk_sums *sums, const float *from, int64_t rows, int64_t step, int64_t index, bool cached);
    void (*lines)(const float *from, int64_t stride, int64_t lines, int64_t n, int64_t ahead, double *results);
};

/* A line of functions.inc. */
struct function {
    enum family family;
    bool is_product, is_shifted;
    const struct methods *integers;                                                  /* sums, by type; NULL: only floats */
    void (*terms)(double *inputs, int64_t count, const double *m, int64_t m_stride); /* replaces floats by their terms */
    void (*last)(double *sums, int64_t count, double n, const double *m);
    const struct direct *direct; /* for contiguous FLOAT32s, or NULL */
    uint64_t flip; /* all ones for the smallest */
    /* is_shifted: replaces `last` for sums of FLOAT32 exponentials */
    void (*single)(double *sums, int64_t count, const double *scales, const double *shifts);
};

struct job {
    const struct function *function;
    bool last_index;
    uint32_t in, out; /* types */
    dmlk_lines lines; /* of in; operands: in, out */
    const struct methods *methods;
    enum comparison how;
    uint64_t flip, infinity, raise, nothing; /* for comparisons: see reduce.inc */
    uint64_t sign;           /* the sign bit of signed integers, otherwise 0 */
    int parts;               /* threads that share the segments of a block */
    const dmlk_exponentials *relative; /* for sums of exponentials; NULL: they are simple */
    atomic_bool *not_simple; /* simple exponentials failed in some block, and are no longer tried */
};

/* The outputs being processed, and a segment of their inputs. */
struct block {
    const struct job *job;
    int64_t count;
    const double *shift; /* is_shifted: m of each output */
    union {
        uint64_t bits[WIDE]; /* an array of the input's type, as raw bits */
        dmlk_sums sums;
    };
    dmlk_exponentials e;       /* for sums of exponentials */
    int64_t first;             /* number of the segment's first input */
    int32_t place[WIDE]; /* relative to `first` */
};

#define VISIT_ALONG(name)                                                                                       \
    DMLK_EACH_ISA(name, (void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,    \
                         int64_t index),                                                                        \
                  (context, line, at, strides, n, index))
#define VISIT_ACROSS(name)                                                                                      \
    DMLK_EACH_ISA(name, (void *context, uint8_t *const *at, const int64_t *strides, int64_t count,              \
                         int64_t index),                                                                        \
                  (context, at, strides, count, index))

/* Whether inputs are compared as floats, directly from memory: NaNs lose all comparisons. */
#ifdef DMLK_CHECKED
#define COMPARES_FLOATS(T, how, stride) false /* loads are checked one by one */
#else
#define COMPARES_FLOATS(T, how, stride) \
    (sizeof(T) == sizeof(float) && ((how) == LARGEST_FLOAT || (how) == PLACE_OF_FLOAT) && (stride) == 1)
#endif

typedef int8_t signed_uint8;
typedef int16_t signed_uint16;
typedef int32_t signed_uint32;
typedef int64_t signed_uint64;

#define magnitude(x) ((x) & sign ? 0 - (x) : (x))
#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "reduce.inc"
#include "each_type.inc"
#undef magnitude

#define METHODS(name, type) \
    {start_##type, {.along = name##along_##type, .across = name##across_##type, .least_along = SHORT}, settle_##type, combine_##type, finish_##type}

static const struct methods comparisons[] = {
    [DMLK_UINT8] = METHODS(, uint8),
    [DMLK_UINT16] = METHODS(, uint16),
    [DMLK_UINT32] = METHODS(, uint32),
    [DMLK_UINT64] = METHODS(, uint64),
};

/* --- FLOAT32s in memory --- */

/* Whether a result of comparing floats is not final: the sign of a zero is not known, and a result that is infinite
 * may mean that all inputs are NaN. */
static inline bool is_open(const struct job *job, float best) {
    return best - best != 0 || (best == 0 && job->how != PLACE_OF_FLOAT);
}

/* Stores `count` results unless they are open; sets *any_open if one is.  Has no branches. */
DMLK_EACH_ISA(take_compared, (const struct job *job, const float *restrict best, const int32_t *restrict place,
                              int64_t count, int32_t *restrict values, int32_t *restrict places, bool *any_open),
              (job, best, place, count, values, places, any_open)) {
    const struct job mapping = {.flip = job->flip, .raise = job->raise};
    const uint32_t least = job->how != PLACE_OF_FLOAT, numbers = 0x7f800000 - least;
    const int32_t is_last = job->last_index;
    int32_t closed = 1;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = dmlk_float_bits(best[i]);
        const int32_t mapped = map_uint32(&mapping, PLACE_OF_FLOAT, bits), value = values[i], before = places[i];
        const int32_t is_closed = (bits & INT32_MAX) - least < numbers;
        const int32_t better = 0 - (is_closed & ((mapped > value) | (is_last & (mapped == value))));
        closed &= is_closed;
        values[i] = (mapped & better) | (value & ~better);
        places[i] = (place[i] & better) | (before & ~better);
    }
    *any_open = !closed;
}

/* If a result is open, all numbers are compared again as integers, which changes no other result. */
static void compare_rows(void *context, uint8_t *const *at, const int64_t *steps, int64_t rows, int64_t index,
                         int64_t next) {
    struct block *block = context;
    const struct job *job = block->job;
    const int64_t one = 1;
    const dmlk_best_rows r = {job->flip != 0, job->last_index, (const float *)at[0], rows, steps[0], block->count, next == 0};
    float best[WIDE];
    int32_t place[WIDE];
    bool any_open;
    if (job->how == PLACE_OF_FLOAT) {
        dmlk_best_places_of_rows(&r, best, place);
    } else {
        dmlk_best_of_rows(&r, best);
    }
    const int32_t before = (int32_t)(index - block->first);
    for (int64_t i = 0; i < block->count; i++) {
        place[i] = job->how == PLACE_OF_FLOAT ? before + place[i] : 0;
    }
    take_compared(job, best, place, block->count, (int32_t *)block->bits, block->place, &any_open);
    for (int64_t row = 0; row < rows && any_open; row++) {
        uint8_t *from = at[0] + row * steps[0] * (int64_t)sizeof *best;
        across_uint32(context, &from, &one, block->count, index + row);
    }
}

static const struct methods compared_floats = {
    start_uint32, {.along = along_uint32, .across = across_uint32, .rows = compare_rows, .least_along = SHORT}, settle_uint32, combine_uint32, finish_uint32};

#ifdef DMLK_CHECKED

/* Loads are checked one by one. */
#define DIRECT(name) static const struct direct name = {NULL, NULL, NULL};

#else

#define DIRECT(name) static const struct direct name = {along_##name, rows_##name, lines_##name};

#define SUMS_NAME(x) x##_plain
#define SUMS_T float
#define SUMS_PRODUCT 0
#define SUMS_TERM(x) (x)
#define SUMS_TERMS(x) (x)
#define SUMS_LINES
#define SUMS_ROWS
#include "sums.inc"

#define SUMS_NAME(x) x##_product
#define SUMS_T float
#define SUMS_PRODUCT 1
#define SUMS_TERM(x) (x)
#define SUMS_TERMS(x) (x)
#define SUMS_LINES
#define SUMS_ROWS
#include "sums.inc"

#define SUMS_NAME(x) x##_squares
#define SUMS_T float
#define SUMS_PRODUCT 0
#define SUMS_TERM(x) ((x) * (x))
#define SUMS_TERMS(x) ((x) * (x))
#define SUMS_LINES
#define SUMS_ROWS
#include "sums.inc"

typedef int64_t sign_free __attribute__((vector_size(sizeof(dmlk_sums_vector))));

#define SUMS_NAME(x) x##_magnitudes
#define SUMS_T float
#define SUMS_PRODUCT 0
#define SUMS_TERM(x) fabs(x)
#define SUMS_TERMS(x) ((dmlk_sums_vector)((sign_free)(x) & INT64_MAX))
#define SUMS_LINES
#define SUMS_ROWS
#include "sums.inc"

#endif

DIRECT(plain)
DIRECT(product)
DIRECT(squares)
DIRECT(magnitudes)

/* --- the lines of the table --- */

#define INTEGERS(name)                                                                                           \
    static const struct methods name##_integers[] = {                                                            \
        [DMLK_UINT8] = METHODS(name##_, uint8), [DMLK_UINT16] = METHODS(name##_, uint16),                              \
        [DMLK_UINT32] = METHODS(name##_, uint32), [DMLK_UINT64] = METHODS(name##_, uint64)};

#define FLOATS(name, term, result)                                                                               \
    DMLK_EACH_ISA(name##_terms, (double *inputs, int64_t count, const double *ms, int64_t m_stride),             \
                  (inputs, count, ms, m_stride)) {                                                               \
        for (int64_t i = 0; i < count; i++) {                                                                    \
            const double x = inputs[i], m = ms[i * m_stride];                                                    \
            (void)m;                                                                                             \
            inputs[i] = (term);                                                                                  \
        }                                                                                                        \
    }                                                                                                            \
    DMLK_EACH_ISA(name##_last, (double *sums, int64_t count, double n, const double *ms), (sums, count, n, ms)) { \
        for (int64_t i = 0; i < count; i++) {                                                                    \
            const double y = sums[i], m = ms[i];                                                                 \
            (void)m, (void)n;                                                                                    \
            sums[i] = dmlk_one_nan_double(result);                                                               \
        }                                                                                                        \
    }

#define FUNCTION(name, ...) static const struct function name##_function = {__VA_ARGS__};
#define SUM(name, direct, floats, integers, result)                                                                      \
    INTEGERS(name) FLOATS(name, floats, result) FUNCTION(name, SUMS, false, false, name##_integers, name##_terms, name##_last, &direct, 0, NULL)
#define PRODUCT(name, direct, floats, integers, result)                                                                  \
    INTEGERS(name) FLOATS(name, floats, result) FUNCTION(name, SUMS, true, false, name##_integers, name##_terms, name##_last, &direct, 0, NULL)
#define FLOAT(name, direct, floats, result)                                                                              \
    FLOATS(name, floats, result) FUNCTION(name, SUMS, false, false, NULL, name##_terms, name##_last, &direct, 0, NULL)
#define SHIFTED(name, floats, result, single)                                                                    \
    FLOATS(name, floats, result)                                                                                 \
    DMLK_EACH_ISA(name##_single, (double *sums, int64_t count, const double *scales, const double *shifts),      \
                  (sums, count, scales, shifts)) {                                                               \
        for (int64_t i = 0; i < count; i++) {                                                                    \
            const double y = sums[i], scale = scales[i], shift = shifts[i];                                      \
            sums[i] = (single);                                                                                  \
        }                                                                                                        \
    }                                                                                                            \
    FUNCTION(name, SUMS, false, true, NULL, name##_terms, name##_last, NULL, 0, name##_single)
#define LARGEST(name, bits) FUNCTION(name, LARGEST_OF_ALL, .flip = bits)
#define PLACE(name, bits) FUNCTION(name, PLACES, .flip = bits)
#include "functions.inc"

/* --- sums and products of floats --- */

static void start_floats(struct block *block, int64_t inputs) {
    dmlk_sums_start(&block->sums, block->job->function->is_product, block->count, inputs);
}

static bool is_direct(const struct job *job) {
    return job->in == DMLK_FLOAT32 && job->function->direct != NULL && job->function->direct->along != NULL;
}

static void floats_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                         int64_t index) {
    struct block *block = context;
    const struct job *job = block->job;
    const int64_t step = strides[0] * job->lines.along.bytes[0];
    dmlk_promoted x;
    if (is_direct(job) && strides[0] == 1 && block->sums.lanes > 1) {
        block->sums.along = true;
        job->function->direct->along(&block->sums, line, (const float *)at[0], n, index);
        return;
    }
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        dmlk_load_promoted(job->in, at[0] + i * step, strides[0], count, &x);
        job->function->terms(x.f, count, block->shift + line, 0);
        dmlk_sums_along(&block->sums, line, x.f, count, index + i);
    }
}

static void floats_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    const struct job *job = block->job;
    dmlk_promoted x;
    dmlk_load_promoted(job->in, at[0], strides[0], count, &x);
    job->function->terms(x.f, count, block->shift, 1);
    dmlk_sums_across(&block->sums, x.f, index);
}

static void floats_rows(void *context, uint8_t *const *at, const int64_t *steps, int64_t rows, int64_t index,
                        int64_t next) {
    struct block *block = context;
    block->job->function->direct->rows(&block->sums, (const float *)at[0], rows, steps[0], index, next == 0);
}

static void settle_floats(struct block *block, struct results *results) {
    dmlk_sums_finish(&block->sums, results->sums);
}

static void combine_floats(const struct job *job, struct results *results, const struct results *more,
                           int64_t count) {
    dmlk_sums_combine(job->function->is_product, results->sums, more->sums, count);
}

static void finish_floats(const struct job *job, struct results *results, int64_t count, const double *shift,
                          uint8_t *at, int64_t stride) {
    for (int64_t i = 0; i < count; i += DMLK_CHUNK) {
        const int64_t n = dmlk_min(count - i, DMLK_CHUNK);
        dmlk_promoted y;
        memcpy(y.f, results->sums + i, (size_t)n * sizeof *y.f);
        job->function->last(y.f, n, (double)job->lines.along.count, shift); /* a shifted block is not wide */
        dmlk_store_promoted(job->out, at + i * stride * dmlk_type_bytes(job->out), stride, n, DMLK_KIND_FLOAT, &y);
    }
}

static const struct methods float_methods = {
    start_floats, {.along = floats_along, .across = floats_across, .least_along = SHORT}, settle_floats, combine_floats, finish_floats};
static const struct methods direct_methods = {
    start_floats, {.along = floats_along, .across = floats_across, .rows = floats_rows, .least_along = SHORT}, settle_floats, combine_floats, finish_floats};

/* --- sums of FLOAT32 exponentials (exponentials.h) --- */

static void start_exponentials(struct block *block, int64_t inputs) {
    if (block->job->relative != NULL) {
        block->e = *block->job->relative;
    } else {
        dmlk_exponentials_simply(&block->e, block->count);
    }
    dmlk_sums_start(&block->sums, false, block->count, inputs);
}

static void exponentials_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                               int64_t index) {
    struct block *block = context;
    const struct job *job = block->job;
    const int64_t step = strides[0] * job->lines.along.bytes[0];
    float room[DMLK_CHUNK], e[DMLK_CHUNK];
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        const float *x = dmlk_singles(job->in, at[0] + i * step, strides[0], count, room);
        dmlk_exponentials_along(&block->e, &block->sums, line, x, count, index + i, e);
    }
}

static void exponentials_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    float room[DMLK_CHUNK], e[DMLK_CHUNK];
    const float *x = dmlk_singles(block->job->in, at[0], strides[0], count, room);
    dmlk_exponentials_across(&block->e, &block->sums, x, 1, 0, 0, index, e, 0);
}

static void settle_exponentials(struct block *block, struct results *results) {
    settle_floats(block, results);
    results->is_simple = dmlk_are_simple(&block->e);
}

static void combine_exponentials(const struct job *job, struct results *results, const struct results *more,
                                 int64_t count) {
    combine_floats(job, results, more, count);
    results->is_simple &= more->is_simple;
}

static const struct methods exponential_methods = {
    start_exponentials,
    {.along = exponentials_along, .across = exponentials_across, .least_along = SHORT},
    settle_exponentials, combine_exponentials, finish_floats};
#ifdef DMLK_CHECKED
#define exponential_row_methods exponential_methods
#else
static void exponentials_rows(void *context, uint8_t *const *at, const int64_t *steps, int64_t rows, int64_t index,
                              int64_t next) {
    struct block *block = context;
    float e[DMLK_CHUNK];
    dmlk_exponentials_across(&block->e, &block->sums, (const float *)at[0], rows, steps[0], next, index, e, 0);
}

static const struct methods exponential_row_methods = {
    start_exponentials,
    {.along = exponentials_along, .across = exponentials_across, .rows = exponentials_rows, .least_along = SHORT},
    settle_exponentials, combine_exponentials, finish_floats};
#endif

/* Whether the lines are contiguous FLOAT32s that are processed without a visitor: for sums, lines of one segment that
 * are long enough for several lanes; for exponentials and comparisons, short lines. */
static bool are_direct_lines(const struct job *job) {
#ifdef DMLK_CHECKED
    return false; /* loads are checked one by one */
#endif
    const dmlk_iter *along = &job->lines.along;
    const int64_t most = job->methods == &direct_methods           ? SEGMENT
                         : job->methods == &exponential_row_methods ? NEAR
                         : job->methods == &compared_floats         ? PIECE
                                                                     : 0;
    return !job->lines.across && along->rank == 1 && along->count >= SHORT && along->count <= most &&
           *dmlk_iter_row_strides(along) == 1;
}

static int64_t ahead_of_lines(int64_t n, int64_t stride) {
    return dmlk_ahead(n * (int64_t)sizeof(float), stride * (int64_t)sizeof(float));
}

/* Sums up many lines with each call. */
static void add_lines(const struct job *job, const dmlk_line_block *lines, double *sums) {
    const int64_t n = job->lines.along.count, stride = lines->strides[0], most = 1 + SEGMENT / n;
    const int64_t ahead = ahead_of_lines(n, stride);
    const float *from = (const float *)lines->at[0];
    const struct direct *direct = job->function->direct;
    const bool has_form = direct == &plain && dmlk_sum_lines_form != NULL;
    for (int64_t i = 0; i < lines->count && !dmlk_stopped(lines->work, most * n); i += most) {
        (has_form ? dmlk_sum_lines_form->sum : direct->lines)(from + i * stride, stride, dmlk_min(lines->count - i, most), n, ahead,
                                                              sums + i);
    }
}

static void add_exponentials_of_lines(const struct job *job, const dmlk_line_block *lines, double *sums, double *scales,
                                      double *shifts) {
    const int64_t n = job->lines.along.count, stride = lines->strides[0], most = NEAR / n;
    _Alignas(64) float to[NEAR];
    dmlk_exponentials e;
    for (int64_t i = 0; i < lines->count && !dmlk_stopped(lines->work, most * n); i += most) {
        const bool simply = !atomic_load(job->not_simple);
        const float *from = (const float *)lines->at[0] + i * stride;
        dmlk_exponentials_of_lines(&e, simply, from, stride, dmlk_min(lines->count - i, most), n, to, n, sums + i);
        dmlk_exponentials_of_one(&e, scales + i, shifts + i);
        if (simply && !e.simple) {
            atomic_store(job->not_simple, true);
        }
    }
}

static void compare_lines(const struct job *job, const dmlk_line_block *lines, struct results *results) {
    const int64_t n = job->lines.along.count, stride = lines->strides[0], most = 1 + SEGMENT / n, one = 1;
    const int64_t ahead = ahead_of_lines(n, stride);
    struct block block;
    float best[WIDE];
    int32_t place[WIDE];
    bool any_open;
    block.job = job;
    block.count = lines->count;
    block.first = 0;
    start_uint32(&block, n);
    for (int64_t i = 0; i < lines->count && !dmlk_stopped(lines->work, most * n); i += most) {
        const float *from = (const float *)lines->at[0] + i * stride;
        const int64_t count = dmlk_min(lines->count - i, most);
        if (job->how == PLACE_OF_FLOAT) {
            dmlk_best_places(job->flip != 0, job->last_index, from, stride, count, n, ahead, best + i, place + i);
        } else {
            dmlk_best_lines(job->flip != 0, from, stride, count, n, ahead, best + i);
        }
        take_compared(job, best + i, place + i, count, (int32_t *)block.bits + i, block.place + i, &any_open);
        for (int64_t line = i; line < i + count && any_open; line++) {
            uint8_t *at = lines->at[0] + line * stride * (int64_t)sizeof *best;
            if (is_open(job, best[line])) {
                along_uint32(&block, line, &at, &one, n, 0);
            }
        }
    }
    settle_uint32(&block, results);
}

/* --- iterating over the inputs --- */

/* Reduces segment `number` of each line of the block. */
static void take_segment(const struct job *job, const dmlk_line_block *lines, const double *shift, int64_t number,
                         struct results *results) {
    const int64_t first = number * SEGMENT, inputs = dmlk_min(SEGMENT, job->lines.along.count - first);
    struct block block;
    block.job = job;
    block.count = lines->count;
    block.first = first;
    block.shift = shift;
    job->methods->start(&block, inputs);
    dmlk_visit_lines(&job->lines, lines, first, inputs, &job->methods->visitor, &block);
    job->methods->settle(&block, results);
}

struct split {
    const struct job *job;
    const dmlk_line_block *lines;
    const double *shift;
    int64_t first;
    struct results *segments;
};

static void take_segments(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct split *split = context;
    int64_t work = 0;
    dmlk_line_block lines = *split->lines;
    lines.work = &work;
    for (; begin < end && !dmlk_stopped(&work, 0); begin++) {
        take_segment(split->job, &lines, split->shift, split->first + begin, &split->segments[begin]);
    }
}

/* Reduces all segments of each line of the block. */
static void take_in(const struct job *job, const dmlk_line_block *lines, const double *shift,
                    struct results *results) {
    const int64_t count = (job->lines.along.count + SEGMENT - 1) / SEGMENT;
    struct results *segments = job->parts > 1 ? dmlk_take(SEGMENTS * (int64_t)sizeof *segments) : NULL;
    struct results one;
    int64_t first = 0, n = 0;
    if (segments == NULL) {
        take_segment(job, lines, shift, 0, results);
        first = 1;
    }
    for (; first < count && !dmlk_stopped(lines->work, n * SEGMENT * lines->count); first += n) {
        n = segments == NULL ? 1 : dmlk_min(SEGMENTS, count - first);
        struct split split = {job, lines, shift, first, segments == NULL ? &one : segments};
        dmlk_parallel(n, segments == NULL ? 1 : (int)dmlk_min(job->parts, n), take_segments, &split);
        if (dmlk_watch_stopped()) {
            break; /* some segments are missing */
        }
        if (first == 0) {
            *results = split.segments[0];
        }
        for (int64_t i = first == 0; i < n; i++) {
            job->methods->combine(job, results, &split.segments[i], lines->count);
        }
    }
    dmlk_give(segments);
}

/* Sets the fields derived from the function.  Unsigned integers are ordered as signed ones after the first bit is
 * flipped; for the smallest instead of the largest, all bits are flipped. */
static void choose_methods(struct job *job) {
    const enum dmlk_kind kind = dmlk_type_kind(job->in);
    const bool is_float = kind == DMLK_KIND_FLOAT;
    const uint32_t bits = dmlk_type_bits(job->in);
    const uint32_t type = dmlk_bits_type(job->in);
    const uint64_t sign = kind == DMLK_KIND_SIGNED ? UINT64_C(1) << (bits - 1) : 0;
    if (job->function->family == SUMS) {
        const struct methods *floats = is_direct(job) ? &direct_methods : &float_methods;
        job->methods = is_float ? floats : &job->function->integers[type];
    } else if (job->in == DMLK_FLOAT32 && COMPARES_FLOATS(float, LARGEST_FLOAT, 1)) {
        job->methods = &compared_floats;
    } else {
        job->methods = &comparisons[type];
    }
    if (job->function->family == PLACES) {
        job->how = is_float ? PLACE_OF_FLOAT : PLACE_OF_INTEGER;
    } else {
        job->how = is_float ? LARGEST_FLOAT : LARGEST_INTEGER;
    }
    job->sign = sign;
    job->flip = (kind == DMLK_KIND_UNSIGNED ? UINT64_C(1) << (bits - 1) : 0) ^ job->function->flip;
    job->infinity = bits == 16 ? 0x7c00 : bits == 32 ? 0x7f800000 : 0x7ff0000000000000;
    const uint64_t lowest = UINT64_C(1) << (bits - 1);
    job->raise = is_float ? lowest - 1 - job->infinity : 0;
    job->nothing = is_float ? lowest + 2 * job->raise - 1 : lowest;
}

/* Runs another reduction of the same lines. */
static void reduce_by(const struct job *other, const struct function *function, const dmlk_line_block *lines,
                      dmlk_promoted *results) {
    struct job job = *other;
    struct results found;
    dmlk_promoted stored;
    job.function = function;
    choose_methods(&job);
    take_in(&job, lines, NULL, &found);
    job.methods->finish(&job, &found, lines->count, NULL, (uint8_t *)&stored, 1);
    dmlk_load_promoted(job.in, (const uint8_t *)&stored, 1, lines->count, results);
}

/* Sums FLOAT32 exponentials, which are relative to the largest input where they cannot be simple. */
static void add_exponentials(const struct job *job, const dmlk_line_block *lines, struct results *results, double *scales,
                             double *shifts) {
    struct job adding = *job;
    dmlk_exponentials relative, *e = &relative;
    dmlk_promoted largest;
    adding.methods = job->in == DMLK_FLOAT32 ? &exponential_row_methods : &exponential_methods;
    if (are_direct_lines(&adding)) {
        add_exponentials_of_lines(job, lines, results->sums, scales, shifts);
        return;
    }
    dmlk_exponentials_simply(e, lines->count);
    results->is_simple = false;
    if (!atomic_load(job->not_simple)) {
        take_in(&adding, lines, NULL, results);
    }
    if (!results->is_simple) {
        atomic_store(job->not_simple, true);
        reduce_by(job, &reduce_max_function, lines, &largest);
        dmlk_exponentials_start(e, lines->count);
        for (int64_t i = 0; i < lines->count; i++) {
            e->largest[i] = (float)largest.f[i];
        }
        dmlk_exponentials_relate(e);
        adding.relative = e;
        take_in(&adding, lines, NULL, results);
    }
    dmlk_exponentials_of_one(e, scales, shifts);
}

/* exp(x) overflows where log(sum(exp(x))) does not: so this sums exp(x - maximum), and adds the maximum at the end.
 *
 * FLOAT32 exponentials have a relative error of at most 0.73 2^-23, and so has their sum.  That is the absolute error
 * of the sum's logarithm, and less than a unit in the last place unless the logarithm is between -1 and 1.  Results
 * in that range are computed in double, and so are infinities, NaNs, FLOAT64, and lines of a single input, which is
 * the result. */
static void reduce_shifted(const struct job *job, const dmlk_line_block *lines) {
    const int64_t count = lines->count;
    const bool only_double = job->in == DMLK_FLOAT64 || job->lines.along.count == 1;
    bool any_open = false, open[DMLK_CHUNK];
    dmlk_promoted y, shift;
    struct results single, results;
    if (!only_double) {
        double scales[DMLK_CHUNK], shifts[DMLK_CHUNK];
        add_exponentials(job, lines, &single, scales, shifts);
        job->function->single(single.sums, count, scales, shifts);
    }
    for (int64_t i = 0; i < count; i++) {
        y.f[i] = only_double ? 0 : single.sums[i];
        open[i] = !(fabs(y.f[i]) >= ACCURATE && isfinite(y.f[i]));
        any_open |= open[i];
    }
    if (any_open) {
        reduce_by(job, &reduce_max_function, lines, &shift);
        for (int64_t i = 0; i < count; i++) {
            shift.f[i] = isfinite(shift.f[i]) ? shift.f[i] : 0;
        }
        take_in(job, lines, shift.f, &results);
        job->function->last(results.sums, count, (double)job->lines.along.count, shift.f);
    }
    for (int64_t i = 0; i < count && any_open; i++) {
        y.f[i] = open[i] ? results.sums[i] : y.f[i];
    }
    dmlk_store_promoted(job->out, lines->at[1], lines->strides[1], count, DMLK_KIND_FLOAT, &y);
}

static void store_places(const struct job *job, const dmlk_line_block *lines, const int64_t *places) {
    dmlk_promoted some;
    for (int64_t i = 0; i < lines->count; i += DMLK_CHUNK) {
        const int64_t n = dmlk_min(lines->count - i, DMLK_CHUNK), stride = lines->strides[1];
        memcpy(some.i, places + i, (size_t)n * sizeof *places);
        uint8_t *at = lines->at[1] + i * stride * dmlk_type_bytes(job->out);
        dmlk_store_promoted(job->out, at, stride, n, DMLK_KIND_SIGNED, &some);
    }
}

static void reduce_block(const dmlk_line_block *lines, void *context) {
    static const double no_shift[DMLK_CHUNK];
    const struct job *job = context;
    struct results results;
    if (job->function->is_shifted) {
        reduce_shifted(job, lines);
        return;
    }
    if (are_direct_lines(job) && job->function->family == SUMS) {
        add_lines(job, lines, results.sums);
    } else if (are_direct_lines(job)) {
        compare_lines(job, lines, &results);
    } else {
        take_in(job, lines, no_shift, &results);
    }
    if (job->function->family == PLACES) {
        store_places(job, lines, results.place);
    } else {
        job->methods->finish(job, &results, lines->count, no_shift, lines->at[1], lines->strides[1]);
    }
}

/* Whether the function is implemented for these types. */
static bool has_function(const struct function *function, uint32_t in, uint32_t out) {
    if (function->family == PLACES) {
        return dmlk_type_kind(out) != DMLK_KIND_FLOAT && dmlk_type_bytes(out) >= 4;
    }
    const bool only_floats = function->family == SUMS && function->integers == NULL;
    return in == out && (dmlk_type_kind(in) == DMLK_KIND_FLOAT || !only_floats);
}

/* The order of the inputs matters for positions and for the rounding of floats. */
static enum dmlk_order order_of(const struct job *job) {
    const bool is_sum = job->function->family == SUMS && dmlk_type_kind(job->in) == DMLK_KIND_FLOAT;
    return job->function->family == PLACES || is_sum ? DMLK_LOGICAL_ORDER : DMLK_ANY_ORDER;
}

static int run(const dmlk_call *call, const struct function *function) {
    dmlk_reduce k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    if (!has_function(function, in->type, out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const dmlk_view reduced_out = dmlk_view_select(out, k.axes_mask);
    if (in->rank != out->rank || k.axes_mask >> in->rank != 0 || dmlk_view_elements(&reduced_out) != 1) {
        return DMLK_BAD_PACKET;
    }
    struct job job = {.function = function, .last_index = k.last_index != 0, .in = in->type, .out = out->type};
    atomic_bool not_simple = false;
    job.not_simple = &not_simple;
    choose_methods(&job);
    int status = dmlk_lines_init(&job.lines, order_of(&job), k.axes_mask, (const dmlk_view *[]){in, out}, 2, 1);
    if (status == DMLK_OK) {
        const int64_t lines = job.lines.each.count, inputs = job.lines.along.count, grain = GRAIN;
        const bool split = lines < FEW_LINES && inputs > SEGMENT;
        const bool has_rows = job.methods->visitor.rows != NULL && *dmlk_iter_row_strides(&job.lines.each) == 1;
        job.lines.wide = job.lines.across && has_rows;
        job.parts = split ? dmlk_parts(lines * inputs, grain) : 1;
        dmlk_for_lines(&job.lines, WIDE, split ? lines : grain / inputs, reduce_block, &job);
    }
    return status;
}

#define KERNEL(name) \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, &name##_function); }
#define SUM(name, direct, floats, integers, last) KERNEL(name)
#define PRODUCT(name, direct, floats, integers, last) KERNEL(name)
#define FLOAT(name, direct, floats, last) KERNEL(name)
#define SHIFTED(name, floats, last, single) KERNEL(name)
#define LARGEST(name, flip) KERNEL(name)
#define PLACE(name, flip) KERNEL(name)
#include "functions.inc"
