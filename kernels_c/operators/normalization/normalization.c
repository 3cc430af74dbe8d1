/* normalization: out = (in - m) * (r * scale) + bias + add, where m and r are given, or computed from each group of
 * elements, as defined in functions.inc.
 *
 * Statistics are sums of doubles, computed in one pass.  Element i of a group is added to partial sum i % LANES,
 * whatever the layout and the number of threads.  For moments, one element of the group is first subtracted from all:
 * its distance d from the mean is at most sqrt(n * variance), so the variance (sum of squares - d * d * n) / n loses
 * at most a factor of n of the precision of doubles, whatever the mean is.  Outputs are computed in double and
 * rounded to FLOAT32; where all elements of a group have the same scale and bias, in FLOAT32 (affine.h).  Whether they
 * have is a matter of their values: bits depend neither on strides nor on whether the output replaces the input. */
#include "normalization.h"

#include <math.h>

#include "affine.h"
#include "doubles.h"
#include "floats.h"
#include "parallel.h"
#include "scratch.h"
#include "sums.h"
#include "walkers.h"

#define LANES DMLK_SUM_LANES
#define GRAIN (1 << 16) /* elements worth a thread */
#define PREPARED 256    /* elements of a group that take several times as long as its factor */
#define NEAR (1 << 12)  /* elements that stay in the first-level cache */
#define ALIGNED 32      /* elements: the part of a thread begins at a multiple, so that none shares a cache line */
#define MENDED (4 * DMLK_CHUNK) /* elements that are examined together, at least those of a row */

enum kind { GIVEN, MOMENTS, MEAN, SQUARES, NONE, L1, L2 };

enum operand { IN, SCALE, BIAS, ADD, OUT, ALONG, GIVEN_MEAN = ALONG, GIVEN_VARIANCE, OUT_MEAN, OUT_VARIANCE, OPERANDS };

struct job {
    enum kind kind;
    double epsilon;
    bool has_add;
    uint32_t types[OPERANDS];
    dmlk_lines lines;
    bool is_constant; /* all elements of a group have the same scale and the same bias */
    double *factors;  /* if all groups have the same: the scales of a group's elements, then the biases; or NULL */
    int64_t first, n; /* the elements of each group whose outputs are computed */
};

/* The groups being processed. */
struct block {
    const struct job *job;
    int64_t lines;
    double shift[DMLK_CHUNK];    /* is subtracted from elements before they are added */
    double m[DMLK_CHUNK], r[DMLK_CHUNK];
    double variance[DMLK_CHUNK]; /* GIVEN, MOMENTS */
    bool constant[DMLK_CHUNK];   /* all elements of the group have the same scale and the same bias */
    bool are_constant;           /* all groups are */
    dmlk_promoted scale, bias;   /* of the groups' first elements */
    double factor[DMLK_CHUNK];   /* r * scale, are_constant */
    bool is_affine;              /* outputs of groups that are constant are computed by affine.h */
    bool in_place;               /* outputs replace the inputs */
    dmlk_affine affine;
    /* Lane k of line i is at i * LANES + k along lines, at k * lines + i across them. */
    double sums[LANES * DMLK_CHUNK], squares[LANES * DMLK_CHUNK];
};

/* --- statistics --- */

typedef int64_t bits4 __attribute__((vector_size(32)));

#define SELF(d) (d)
#define MAGNITUDE(d) ((dmlk_doubles4)((bits4)(d) & INT64_MAX))
#define SELF_1(d) (d)
#define MAGNITUDE_1(d) fabs(d)

#define ADD_ONE(term)                                        \
    do {                                                     \
        const double d = (double)x[i] - shift;               \
        sums[(index + i) % LANES] += term##_1(d);            \
        squares[(index + i) % LANES] += d * d;               \
        i++;                                                 \
    } while (0)

#define ADD_FOUR(term, k)                                    \
    do {                                                     \
        const float *f = x + i + 4 * k;                      \
        const dmlk_doubles4 d = DMLK_WIDE(f) - each;         \
        s##k = s##k + term(d);                               \
        q##k = q##k + d * d;                                 \
    } while (0)

#define LOAD_LANES(k)                              \
    dmlk_doubles4 s##k, q##k;                           \
    memcpy(&s##k, sums + 4 * k, sizeof s##k);      \
    memcpy(&q##k, squares + 4 * k, sizeof q##k)
#define STORE_LANES(k)                             \
    memcpy(sums + 4 * k, &s##k, sizeof s##k);      \
    memcpy(squares + 4 * k, &q##k, sizeof q##k)

/* Adds numbers index .. index + n - 1 to the lanes of one group. */
#define SUM_ALONG(name, term)                                                                              \
    DMLK_EACH_ISA(name, (double *sums, double *squares, const float *x, int64_t n, int64_t index, double shift), \
                  (sums, squares, x, n, index, shift)) {                                                   \
        const dmlk_doubles4 each = {shift, shift, shift, shift};                                                \
        int64_t i = 0;                                                                                     \
        while (i < n && (index + i) % LANES != 0) {                                                        \
            ADD_ONE(term);                                                                                 \
        }                                                                                                  \
        LOAD_LANES(0);                                                                                     \
        LOAD_LANES(1);                                                                                     \
        LOAD_LANES(2);                                                                                     \
        LOAD_LANES(3);                                                                                     \
        for (; i + LANES <= n; i += LANES) {                                                               \
            ADD_FOUR(term, 0);                                                                             \
            ADD_FOUR(term, 1);                                                                             \
            ADD_FOUR(term, 2);                                                                             \
            ADD_FOUR(term, 3);                                                                             \
        }                                                                                                  \
        STORE_LANES(0);                                                                                    \
        STORE_LANES(1);                                                                                    \
        STORE_LANES(2);                                                                                    \
        STORE_LANES(3);                                                                                    \
        while (i < n) {                                                                                    \
            ADD_ONE(term);                                                                                 \
        }                                                                                                  \
    }
SUM_ALONG(add_along, SELF)
SUM_ALONG(add_magnitudes_along, MAGNITUDE)

#define ADD_FOUR_ACROSS(term, k)                           \
    do {                                                   \
        const float *f = x + row * step + i + 4 * (k);     \
        const dmlk_doubles4 d = DMLK_WIDE(f) - each[k];    \
        s[k] = s[k] + term(d);                             \
        q[k] = q[k] + d * d;                               \
    } while (0)

/* Adds `rows` numbers, `step` apart, to the same lane of each of n groups. */
#define SUM_ACROSS(name, term)                                                                             \
    DMLK_EACH_ISA(name, (double *restrict sums, double *restrict squares, const float *restrict x, int64_t n, \
                         int64_t rows, int64_t step, const double *restrict shift),                        \
                  (sums, squares, x, n, rows, step, shift)) {                                              \
        int64_t i = 0;                                                                                     \
        for (; i + 8 <= n; i += 8) {                                                                       \
            dmlk_doubles4 s[2], q[2], each[2];                                                             \
            memcpy(s, sums + i, sizeof s);                                                                 \
            memcpy(q, squares + i, sizeof q);                                                              \
            memcpy(each, shift + i, sizeof each);                                                          \
            for (int64_t row = 0; row < rows; row++) {                                                     \
                ADD_FOUR_ACROSS(term, 0);                                                                  \
                ADD_FOUR_ACROSS(term, 1);                                                                  \
            }                                                                                              \
            memcpy(sums + i, s, sizeof s);                                                                 \
            memcpy(squares + i, q, sizeof q);                                                              \
        }                                                                                                  \
        for (; i < n; i++) {                                                                               \
            for (int64_t row = 0; row < rows; row++) {                                                     \
                const double d = (double)x[row * step + i] - shift[i];                                     \
                sums[i] += term##_1(d);                                                                    \
                squares[i] += d * d;                                                                       \
            }                                                                                              \
        }                                                                                                  \
    }
SUM_ACROSS(add_across, SELF)
SUM_ACROSS(add_magnitudes_across, MAGNITUDE)

static void sum_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                      int64_t index) {
    struct block *block = context;
    const struct job *job = block->job;
    const uint32_t type = job->types[IN];
    const int64_t step = strides[IN] * dmlk_type_bytes(type);
    const int64_t most = dmlk_are_floats(type, strides[IN]) ? n : DMLK_CHUNK;
    double *sums = &block->sums[line * LANES], *squares = &block->squares[line * LANES];
    float room[DMLK_CHUNK];
    for (int64_t i = 0; i < n; i += most) {
        const int64_t count = dmlk_min(n - i, most);
        const float *x = dmlk_floats(type, at[IN] + i * step, strides[IN], count, room);
        if (job->kind == L1) {
            add_magnitudes_along(sums, squares, x, count, index + i, 0);
        } else {
            add_along(sums, squares, x, count, index + i, block->shift[line]);
        }
    }
}

static void add_rows(struct block *block, const float *x, int64_t rows, int64_t step, int64_t index) {
    double *sums = &block->sums[index % LANES * block->lines], *squares = &block->squares[index % LANES * block->lines];
    if (block->job->kind == L1) {
        add_magnitudes_across(sums, squares, x, block->lines, rows, step, block->shift);
    } else {
        add_across(sums, squares, x, block->lines, rows, step, block->shift);
    }
}

static void sum_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    struct block *block = context;
    float room[DMLK_CHUNK];
    add_rows(block, dmlk_floats(block->job->types[IN], at[IN], strides[IN], count, room), 1, 0, index);
}

static void sum_rows(void *context, uint8_t *const *at, const int64_t *steps, int64_t rows, int64_t index,
                     int64_t next) {
    (void)next;
    for (int64_t first = 0; first < dmlk_min(rows, LANES); first++) {
        const float *x = (const float *)at[IN] + first * steps[IN];
        add_rows(context, x, (rows - first - 1) / LANES + 1, LANES * steps[IN], index + first);
    }
}

static const dmlk_line_visitor sum_them = {.along = sum_along, .across = sum_across};
static const dmlk_line_visitor sum_in_rows = {.along = sum_along, .across = sum_across, .rows = sum_rows};

/* The sum of the lanes of each line, pairwise.  If there are fewer numbers than lanes, only as many lanes are added. */
static const double *total(const struct block *block, double *lanes, double *room) {
    const int64_t lines = block->lines, n = dmlk_min(block->job->lines.along.count, LANES);
    if (!block->job->lines.across) {
        dmlk_sums_fold(false, lanes, lines, room);
        return room;
    }
    for (int64_t width = LANES / 2; width > 0; width /= 2) {
        for (int64_t i = 0; i < dmlk_min(width, n - width) * lines; i++) {
            lanes[i] += lanes[width * lines + i];
        }
    }
    return lanes;
}

static void add_up(struct block *block, const dmlk_line_block *lines) {
    const struct job *job = block->job;
    dmlk_promoted first;
    dmlk_load_promoted(job->types[IN], lines->at[IN], lines->strides[IN], lines->count, &first);
    for (int64_t i = 0; i < lines->count; i++) {
        const bool is_shifted = (job->kind == MOMENTS || job->kind == MEAN) && isfinite(first.f[i]);
        block->shift[i] = is_shifted ? first.f[i] : 0;
    }
    const int64_t used = job->lines.across ? dmlk_min(job->lines.along.count, LANES) : LANES;
    memset(block->sums, 0, (size_t)(used * lines->count) * sizeof *block->sums);
    memset(block->squares, 0, (size_t)(used * lines->count) * sizeof *block->squares);
    const bool are_floats = dmlk_are_floats(job->types[IN], lines->strides[IN]);
    dmlk_visit_lines(&job->lines, lines, 0, job->lines.along.count, are_floats ? &sum_in_rows : &sum_them, block);
}

static void set_statistics(struct block *block) {
    const struct job *job = block->job;
    const double n = (double)job->lines.along.count;
    double room[2][DMLK_CHUNK];
    const double *sums = total(block, block->sums, room[0]), *sums_of_squares = total(block, block->squares, room[1]);
    for (int64_t i = 0; i < block->lines; i++) {
        const double sum = sums[i], squares = sums_of_squares[i];
        const double norm = job->kind == L1 ? sum : sqrt(squares);
        const double variance = (squares - sum * sum / n) / n;
        block->m[i] = job->kind == MOMENTS || job->kind == MEAN ? block->shift[i] + sum / n : 0;
        block->variance[i] = job->kind == SQUARES ? squares / n : variance < 0 ? 0 : variance;
        block->r[i] = job->kind == MEAN   ? 1
                      : job->kind == L1 || job->kind == L2 ? 1 / (norm <= job->epsilon ? job->epsilon : norm)
                                          : 1 / sqrt(block->variance[i] + job->epsilon);
    }
}

static void take_given(struct block *block, const dmlk_line_block *lines) {
    const struct job *job = block->job;
    dmlk_promoted mean, variance;
    dmlk_load_promoted(job->types[GIVEN_MEAN], lines->at[GIVEN_MEAN], lines->strides[GIVEN_MEAN], lines->count, &mean);
    dmlk_load_promoted(job->types[GIVEN_VARIANCE], lines->at[GIVEN_VARIANCE], lines->strides[GIVEN_VARIANCE],
                       lines->count, &variance);
    for (int64_t i = 0; i < lines->count; i++) {
        block->m[i] = mean.f[i];
        block->r[i] = 1 / sqrt(variance.f[i] + job->epsilon);
    }
}

/* --- outputs --- */

/* n elements, as floats.  m and r belong to one group or to n groups; scale and bias to one element or to n elements. */
struct piece {
    const double *m, *r, *scale, *bias;
    const float *x, *add;
};

#define ONE(at, i) ((dmlk_doubles4){*(at), *(at), *(at), *(at)})
#define EACH(at, i) DMLK_FOUR_OF((at) + (i))

/* Computes elements i .. i + 3 in double. */
#define PUT_FOUR(v, i, OF_GROUP, OF_ELEMENT, has_add)                                                      \
    do {                                                                                                   \
        const float *f = x + (i), *g = has_add ? add + (i) : f;                                            \
        v = DMLK_WIDE(f) - OF_GROUP(m, i);                                                                 \
        v = v * (OF_GROUP(r, i) * OF_ELEMENT(scale, i)) + OF_ELEMENT(bias, i);                             \
        v = has_add ? v + DMLK_WIDE(g) : v;                                                                \
    } while (0)

#define PUT(name, OF_GROUP, OF_ELEMENT, has_add)                                                           \
    DMLK_EACH_ISA(name, (float *restrict y, const struct piece *p, int64_t n), (y, p, n)) {                \
        const double *restrict m = p->m, *restrict r = p->r, *restrict scale = p->scale, *restrict bias = p->bias; \
        const float *restrict x = p->x, *restrict add = p->add;                                            \
        int64_t i = 0;                                                                                     \
        for (; i + 8 <= n; i += 8) {                                                                       \
            dmlk_doubles4 v, w;                                                                                 \
            PUT_FOUR(v, i, OF_GROUP, OF_ELEMENT, has_add);                                                 \
            PUT_FOUR(w, i + 4, OF_GROUP, OF_ELEMENT, has_add);                                             \
            DMLK_STORE_EIGHT(y + i, v, w);                                                                 \
        }                                                                                                  \
        for (; i < n; i++) {                                                                               \
            const double factor = OF_GROUP##_1(r, i) * OF_ELEMENT##_1(scale, i);                           \
            const double v = ((double)x[i] - OF_GROUP##_1(m, i)) * factor + OF_ELEMENT##_1(bias, i);       \
            y[i] = dmlk_one_nan_float((float)(has_add ? v + (double)add[i] : v));                          \
        }                                                                                                  \
    }
#define ONE_1(at, i) ((at)[0])
#define EACH_1(at, i) ((at)[i])
PUT(put_one_one, ONE, ONE, false)
PUT(put_one_each, ONE, EACH, false)
PUT(put_each_one, EACH, ONE, false)
PUT(put_each_each, EACH, EACH, false)
PUT(put_one_one_add, ONE, ONE, true)
PUT(put_one_each_add, ONE, EACH, true)
PUT(put_each_one_add, EACH, ONE, true)
PUT(put_each_each_add, EACH, EACH, true)

typedef void put_function(float *y, const struct piece *p, int64_t n);
static put_function *const put_functions[2][2][2] = {
    {{put_one_one, put_one_one_add}, {put_one_each, put_one_each_add}},
    {{put_each_one, put_each_one_add}, {put_each_each, put_each_each_add}}};

/* Replaces those of n results that do not stand by what is computed in double; `each`: they belong to n groups, whose
 * scales are then as many as these. */
static void mend(const struct block *block, int64_t line, bool each, float *y, const struct piece *p, int64_t n) {
    const int32_t *least = &block->affine.least[line];
    struct piece part = *p;
    float exact[DMLK_CHUNK];
    for (int64_t i = 0; i < n; i += DMLK_CHUNK) {
        const int64_t count = dmlk_min(n - i, DMLK_CHUNK);
        part.x = p->x + i;
        put_functions[each][each][false](exact, &part, count);
        for (int64_t k = 0; k < count; k++) {
            y[i + k] = dmlk_affine_stands(y[i + k], least[each ? k : 0]) ? y[i + k] : exact[k];
        }
    }
}

static void put_affine(const struct block *block, int64_t line, bool each, float *y, const struct piece *p,
                       int64_t count) {
    float room[MENDED]; /* inputs, which are read again where results are mended */
    for (int64_t i = 0; i < count; i += MENDED) {
        const int64_t n = dmlk_min(count - i, MENDED);
        struct piece part = *p;
        part.x = p->x + i;
        if (block->in_place) {
            part.x = memcpy(room, part.x, (size_t)n * sizeof *room);
        }
        bool stand;
        (each ? dmlk_affine_across : dmlk_affine_along)(y + i, 0, part.x, 0, 1, n, &block->affine, line, &stand);
        if (!stand) {
            mend(block, line, each, y + i, &part, n);
        }
    }
}

/* Stores `count` outputs, at most DMLK_CHUNK if an operand needs a copy; `line` is the first or only group. */
static void put(const struct block *block, int64_t line, bool each, uint8_t *const *at, const int64_t *strides,
                int64_t count, int64_t index) {
    const struct job *job = block->job;
    const bool are_constant = each ? block->are_constant : block->constant[line];
    const bool one = (!each && are_constant) || (strides[SCALE] == 0 && strides[BIAS] == 0);
    const bool direct = dmlk_are_floats(job->types[OUT], strides[OUT]);
    float x[DMLK_CHUNK], add[DMLK_CHUNK], y[DMLK_CHUNK];
    struct piece piece = {
        .m = &block->m[line],
        .r = &block->r[line],
        .scale = &block->scale.f[line],
        .bias = &block->bias.f[line],
        .x = dmlk_floats(job->types[IN], at[IN], strides[IN], count, x),
        .add = job->has_add ? dmlk_floats(job->types[ADD], at[ADD], strides[ADD], count, add) : NULL};
    dmlk_promoted scale, bias;
    if (job->factors != NULL) {
        piece.scale = job->factors + index;
        piece.bias = job->factors + job->lines.along.count + index;
    } else if (!are_constant) {
        dmlk_load_promoted(job->types[SCALE], at[SCALE], strides[SCALE], count, &scale);
        dmlk_load_promoted(job->types[BIAS], at[BIAS], strides[BIAS], count, &bias);
        piece.scale = scale.f;
        piece.bias = bias.f;
    }
    float *to = direct ? (float *)at[OUT] : y;
    if (block->is_affine && (each || are_constant)) {
        put_affine(block, line, each, to, &piece, count);
    } else {
        put_functions[each][!one][job->has_add](to, &piece, count);
    }
    if (!direct) {
        dmlk_store_floats(job->types[OUT], at[OUT], strides[OUT], count, y);
    }
}

static void put_along(void *context, int64_t line, uint8_t *const *at, const int64_t *strides, int64_t n,
                      int64_t index) {
    const struct block *block = context;
    const struct job *job = block->job;
    const bool direct = dmlk_are_floats(job->types[IN], strides[IN]) && dmlk_are_floats(job->types[OUT], strides[OUT]) &&
                        (block->constant[line] || job->factors != NULL) &&
                        (!job->has_add || dmlk_are_floats(job->types[ADD], strides[ADD]));
    const int64_t most = direct ? n : DMLK_CHUNK;
    for (int64_t i = 0; i < n; i += most) {
        uint8_t *piece[ALONG];
        for (uint32_t k = 0; k < ALONG; k++) {
            piece[k] = at[k] + i * strides[k] * job->lines.along.bytes[k];
        }
        put(block, line, false, piece, strides, dmlk_min(n - i, most), index + i);
    }
}

static void put_across(void *context, uint8_t *const *at, const int64_t *strides, int64_t count, int64_t index) {
    put(context, 0, true, at, strides, count, index);
}

/* Stores FLOAT32s of neighbouring groups: `rows` rows of one element of each group, with the group's m, factor and
 * bias. */
#define PUT_ROWS(name, has_add)                                                                            \
    DMLK_EACH_ISA(name, (const struct block *block, uint8_t *const *at, const int64_t *steps, int64_t rows), \
                  (block, at, steps, rows)) {                                                              \
        const double *m = block->m, *factor = block->factor, *bias = block->bias.f;                        \
        const int64_t n = block->lines;                                                                    \
        for (int64_t row = 0; row < rows; row++) {                                                         \
            const float *x = (const float *)at[IN] + row * steps[IN];                                      \
            const float *add = has_add ? (const float *)at[ADD] + row * steps[ADD] : x;                    \
            float *restrict y = (float *)at[OUT] + row * steps[OUT];                                       \
            int64_t i = 0;                                                                                 \
            for (; i + 8 <= n; i += 8) {                                                                   \
                dmlk_doubles4 v[2];                                                                        \
                for (int64_t k = 0; k < 2; k++) {                                                          \
                    const float *f = x + i + 4 * k, *g = add + i + 4 * k;                                  \
                    v[k] = (DMLK_WIDE(f) - EACH(m, i + 4 * k)) * EACH(factor, i + 4 * k) + EACH(bias, i + 4 * k); \
                    v[k] = has_add ? v[k] + DMLK_WIDE(g) : v[k];                                           \
                }                                                                                          \
                DMLK_STORE_EIGHT(y + i, v[0], v[1]);                                                       \
            }                                                                                              \
            for (; i < n; i++) {                                                                           \
                const double v = ((double)x[i] - m[i]) * factor[i] + bias[i];                              \
                y[i] = dmlk_one_nan_float((float)(has_add ? v + (double)add[i] : v));                      \
            }                                                                                              \
        }                                                                                                  \
    }
PUT_ROWS(put_each, false)
PUT_ROWS(put_each_add, true)

static void put_affine_rows(const struct block *block, uint8_t *const *at, const int64_t *steps, int64_t rows) {
    struct piece piece = {.m = block->m, .r = block->r, .scale = block->scale.f, .bias = block->bias.f};
    const int64_t lines = block->lines, most = MENDED / lines;
    float room[MENDED]; /* inputs, which are read again where results are mended */
    for (int64_t first = 0; first < rows; first += most) {
        const int64_t count = dmlk_min(rows - first, most);
        const float *x = (const float *)at[IN] + first * steps[IN];
        float *y = (float *)at[OUT] + first * steps[OUT];
        for (int64_t row = 0; row < count && block->in_place; row++) {
            memcpy(room + row * lines, x + row * steps[IN], (size_t)lines * sizeof *room);
        }
        const int64_t step = block->in_place ? lines : steps[IN];
        x = block->in_place ? room : x;
        bool stand;
        dmlk_affine_across(y, steps[OUT], x, step, count, lines, &block->affine, 0, &stand);
        for (int64_t row = 0; row < count && !stand; row++) {
            piece.x = x + row * step;
            mend(block, 0, true, y + row * steps[OUT], &piece, lines);
        }
    }
}

static void put_rows(void *context, uint8_t *const *at, const int64_t *steps, int64_t rows, int64_t index,
                     int64_t next) {
    (void)next;
    const struct block *block = context;
    (void)index;
    if (block->is_affine) {
        put_affine_rows(block, at, steps, rows);
        return;
    }
    block->job->has_add ? put_each_add(block, at, steps, rows) : put_each(block, at, steps, rows);
}

static const dmlk_line_visitor put_them = {.along = put_along, .across = put_across};
static const dmlk_line_visitor put_in_rows = {.along = put_along, .across = put_across, .rows = put_rows};

/* Stores a number for each group, if the tensor is present. */
static void put_statistic(const struct job *job, enum operand k, const dmlk_line_block *lines, const double *from) {
    dmlk_promoted values;
    if (job->types[k] != DMLK_UNKNOWN) {
        for (int64_t i = 0; i < lines->count; i++) {
            values.f[i] = dmlk_one_nan_double(from[i]);
        }
        dmlk_store_promoted(job->types[k], lines->at[k], lines->strides[k], lines->count, DMLK_KIND_FLOAT, &values);
    }
}

/* Whether n numbers have the same bits as the one at `first`. */
static bool are_equal(const double *x, int64_t n, const double *first) {
    uint64_t differences = 0;
    for (int64_t i = 0; i < n; i++) {
        differences |= dmlk_double_bits(x[i]) ^ dmlk_double_bits(*first);
    }
    return differences == 0;
}

/* Sets `constant`: which groups have elements that all have the scale and the bias of the first one. */
static void compare_factors(struct block *block, const dmlk_line_block *lines) {
    const dmlk_iter *along = &block->job->lines.along;
    const int64_t *strides = dmlk_iter_row_strides(along);
    const double *firsts[] = {[SCALE] = block->scale.f, [BIAS] = block->bias.f};
    int64_t left = lines->count;
    dmlk_cursor cursor;
    dmlk_promoted x;
    memset(block->constant, true, (size_t)lines->count * sizeof *block->constant);
    dmlk_iter_seek(along, 0, &cursor);
    for (int64_t i = 0, n = 0; i < along->count && left > 0; i += n) {
        /* Most that differ, differ at once; lines that are visited across share cache lines. */
        const int64_t most = i == 0 || block->job->lines.across ? ALIGNED / 2 : DMLK_CHUNK;
        n = dmlk_min(dmlk_min(dmlk_iter_row_left(along, &cursor), along->count - i), most);
        for (int64_t line = 0; line < lines->count; line++) {
            for (uint32_t k = SCALE; k <= BIAS && block->constant[line]; k++) {
                const int64_t from_first = line * lines->strides[k] * along->bytes[k] + (cursor.at[k] - along->base[k]);
                dmlk_load_promoted(block->job->types[k], lines->at[k] + from_first, strides[k], n, &x);
                block->constant[line] = are_equal(x.f, n, &firsts[k][line]);
                left -= !block->constant[line];
            }
        }
        dmlk_iter_advance(along, &cursor, n);
    }
}

static void take_factors(struct block *block, const dmlk_line_block *lines) {
    const struct job *job = block->job;
    const bool may_be_affine = !job->has_add && job->types[OUT] == DMLK_FLOAT32;
    dmlk_load_promoted(job->types[SCALE], lines->at[SCALE], lines->strides[SCALE], lines->count, &block->scale);
    dmlk_load_promoted(job->types[BIAS], lines->at[BIAS], lines->strides[BIAS], lines->count, &block->bias);
    if (!job->is_constant && job->factors == NULL && may_be_affine) {
        compare_factors(block, lines);
    } else {
        memset(block->constant, job->is_constant, (size_t)lines->count * sizeof *block->constant);
    }
    block->are_constant = true;
    block->is_affine = false;
    for (int64_t i = 0; i < lines->count; i++) {
        block->factor[i] = block->r[i] * block->scale.f[i];
        if (block->constant[i]) {
            dmlk_set_affine(&block->affine, i, block->m[i], block->factor[i], block->bias.f[i]);
        } else {
            dmlk_set_no_affine(&block->affine, i);
        }
        block->are_constant = block->are_constant && block->constant[i];
        block->is_affine = block->is_affine || (block->constant[i] && may_be_affine);
    }
    block->in_place = lines->at[IN] == lines->at[OUT];
}

static void run_block(const dmlk_line_block *lines, void *context) {
    const struct job *job = context;
    struct block block;
    block.job = job;
    block.lines = lines->count;
    if (job->kind == GIVEN) {
        take_given(&block, lines);
    } else if (job->kind == NONE) {
        for (int64_t i = 0; i < lines->count; i++) {
            block.m[i] = 0;
            block.r[i] = 1;
        }
    } else {
        add_up(&block, lines);
        set_statistics(&block);
        put_statistic(job, OUT_MEAN, lines, block.m);
        put_statistic(job, OUT_VARIANCE, lines, block.variance);
    }
    take_factors(&block, lines);
    const bool in_rows = block.are_constant && dmlk_are_floats(job->types[IN], lines->strides[IN]) &&
                         dmlk_are_floats(job->types[OUT], lines->strides[OUT]) &&
                         (!job->has_add || dmlk_are_floats(job->types[ADD], lines->strides[ADD]));
    dmlk_visit_lines(&job->lines, lines, job->first, job->n, in_rows ? &put_in_rows : &put_them, &block);
}

static bool are_fixed(const dmlk_iter *iter) {
    for (uint32_t d = 0; d < iter->rank; d++) {
        if (iter->strides[d][SCALE] != 0 || iter->strides[d][BIAS] != 0) {
            return false;
        }
    }
    return true;
}

/* Converts scale and bias once, if that saves work; otherwise, or if memory runs out, they are converted for each
 * group. */
static void prepare_factors(struct job *job) {
    const dmlk_iter *along = &job->lines.along;
    const int64_t n = along->count;
    job->is_constant = are_fixed(along);
    if (job->is_constant || n > NEAR || job->lines.each.count < 4 || !are_fixed(&job->lines.each)) {
        return;
    }
    job->factors = dmlk_take(2 * n * (int64_t)sizeof *job->factors);
    dmlk_cursor cursor;
    dmlk_promoted x;
    dmlk_iter_seek(along, 0, &cursor);
    for (int64_t i = 0; job->factors != NULL && i < n;) {
        const int64_t *strides = dmlk_iter_row_strides(along);
        const int64_t count = dmlk_min(dmlk_min(dmlk_iter_row_left(along, &cursor), n - i), DMLK_CHUNK);
        for (uint32_t k = 0; k < 2; k++) {
            dmlk_load_promoted(job->types[SCALE + k], cursor.at[SCALE + k], strides[SCALE + k], count, &x);
            memcpy(job->factors + k * n + i, x.f, (size_t)count * sizeof *x.f);
        }
        dmlk_iter_advance(along, &cursor, count);
        i += count;
    }
    if (job->factors == NULL) {
        return;
    }
    const double *scale = job->factors, *bias = scale + n;
    if (are_equal(scale, n, scale) && are_equal(bias, n, bias)) {
        job->is_constant = true;
        dmlk_give(job->factors);
        job->factors = NULL;
    }
}

/* Sets the views by operand.  An absent input becomes one number for all elements.  An absent output, and a statistic
 * that is not given, become the first element of the input, with type UNKNOWN. */
static void order_views(const dmlk_call *call, const dmlk_normalization *k, dmlk_view views[OPERANDS], struct job *job) {
    static const float one = 1, zero = 0;
    static const enum operand order[] = {IN,       SCALE,    BIAS,         ADD, GIVEN_MEAN, GIVEN_VARIANCE,
                                         OUT_MEAN, OUT_VARIANCE, OUT};
    for (uint32_t v = 0; v < OPERANDS; v++) {
        const enum operand operand = order[v];
        dmlk_view *view = &views[operand];
        *view = call->views[v].base != NULL ? call->views[v] : call->views[0];
        job->types[operand] = call->views[v].base != NULL ? view->type : DMLK_UNKNOWN;
        if (call->views[v].base == NULL && (operand == SCALE || operand == BIAS || operand == ADD)) {
            view->type = job->types[operand] = DMLK_FLOAT32;
            view->base = (uint8_t *)(uintptr_t)(operand == SCALE ? &one : &zero);
            memset(view->strides, 0, sizeof view->strides);
        }
        for (uint32_t d = 0; operand >= ALONG && call->views[v].base == NULL && d < view->rank; d++) {
            view->sizes[d] = k->axes_mask >> d & 1 ? 1 : view->sizes[d];
        }
    }
    job->has_add = call->views[3].base != NULL;
}

/* Computes a part of the outputs of every group: elements begin * ALIGNED .. end * ALIGNED - 1. */
static void run_range(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    struct job job = *(const struct job *)context;
    job.first = begin * ALIGNED;
    job.n = dmlk_min(end * ALIGNED, job.lines.along.count) - job.first;
    dmlk_for_lines(&job.lines, DMLK_MOST_LINES, job.lines.each.count, run_block, &job);
}

/* Whether threads take some elements of all groups instead of groups: where those are neighbours, threads would share
 * cache lines and read narrow columns. */
static bool are_split_along(const struct job *job) {
    const bool needs_sums = job->kind != GIVEN && job->kind != NONE;
    return job->lines.across && !needs_sums && job->lines.along.count > job->lines.each.count;
}

static int run(const dmlk_call *call, enum kind kind) {
    const uint32_t statistics = 3u << 4, optional = 7u << 1 | 3u << 6 | (kind == GIVEN ? 0 : statistics);
    dmlk_normalization k;
    if (!dmlk_has_views(call, OPERANDS, optional) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    for (uint32_t v = 4; v < OPERANDS; v++) {
        const bool may_be_present = v == 8 || (v < 6 ? kind == GIVEN : kind == MOMENTS);
        if (!may_be_present && call->views[v].base != NULL) {
            return DMLK_BAD_PACKET;
        }
    }
    if (!dmlk_have_floats(call)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    struct job job = {.kind = kind, .epsilon = (double)k.epsilon};
    dmlk_view views[OPERANDS];
    const dmlk_view *pointers[OPERANDS];
    order_views(call, &k, views, &job);
    for (uint32_t v = 0; v < OPERANDS; v++) {
        pointers[v] = &views[v];
        if (v >= ALONG && !dmlk_is_one_along(&views[v], k.axes_mask)) {
            return DMLK_BAD_PACKET;
        }
    }
    const int status = dmlk_lines_init(&job.lines, DMLK_LOGICAL_ORDER, k.axes_mask, pointers, OPERANDS, ALONG);
    if (status == DMLK_OK) {
        const int64_t n = job.lines.along.count;
        const int64_t together = job.lines.across ? DMLK_MOST_LINES : n < NEAR ? NEAR / n : 1;
        prepare_factors(&job);
        job.n = n;
        if (are_split_along(&job)) {
            const int64_t pieces = (n - 1) / ALIGNED + 1, least = dmlk_max(GRAIN / job.lines.each.count, PREPARED);
            dmlk_parallel(pieces, dmlk_parts(pieces, least / ALIGNED), run_range, &job);
        } else {
            dmlk_for_lines(&job.lines, together, dmlk_lines_grain(&job.lines, GRAIN / n, ALIGNED / 2), run_block, &job);
        }
        dmlk_give(job.factors);
    }
    return status;
}

#define STATISTICS(name, kind)                                           \
    const uint32_t dmlk_outputs_##name = 3;                              \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call, kind); }
#include "functions.inc"
