/* reduce: out = function over the reduced axes of in.
 *
 * Up to DMLK_CHUNK neighbouring outputs are worked on at once.  The input is read along whichever
 * is closer in memory, the reduced or the kept axes; either way each output meets its inputs in
 * logical order, so that results do not depend on layout or threads.  Floats are accumulated in
 * double, integers modulo 2^64 (the low bits are right for every narrower type). */
#include "reduce.h"

#include <math.h>

#include "kernel.h"

/* What remains to be done once each input was mapped (to its square, say). */
enum combination { SUM, PRODUCT, MAXIMUM, MINIMUM };

struct job {
    uint32_t function;
    enum combination combination;
    bool last_index;
    uint32_t in, out; /* types */
    enum dmlk_kind kind;
    dmlk_iter kept;    /* operands: in, out */
    dmlk_iter reduced; /* operand: in */
};

/* The outputs worked on. */
struct block {
    int64_t count;
    dmlk_wide value;
    dmlk_wide place; /* MAXIMUM, MINIMUM: where the value stands among the reduced elements */
    dmlk_wide shift; /* LOG_SUM_EXP: subtracted before exp */
};

static void map_floats(uint32_t function, double *x, int64_t n, const double *shift, int64_t shift_stride) {
    switch (function) {
    case DMLK_REDUCE_L1:
        for (int64_t i = 0; i < n; i++) {
            x[i] = fabs(x[i]);
        }
        break;
    case DMLK_REDUCE_L2:
    case DMLK_REDUCE_SUM_SQUARE:
        for (int64_t i = 0; i < n; i++) {
            x[i] *= x[i];
        }
        break;
    case DMLK_REDUCE_LOG_SUM_EXP:
        for (int64_t i = 0; i < n; i++) {
            x[i] = exp(x[i] - shift[i * shift_stride]);
        }
        break;
    default: break;
    }
}

static void map_integers(uint32_t function, enum dmlk_kind kind, uint64_t *x, int64_t n) {
    if (function == DMLK_REDUCE_L1 && kind == DMLK_KIND_SIGNED) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = x[i] >> 63 ? 0 - x[i] : x[i];
        }
    } else if (function == DMLK_REDUCE_SUM_SQUARE) {
        for (int64_t i = 0; i < n; i++) {
            x[i] *= x[i];
        }
    }
}

#define W double
#define A double
#define IS_NAN(x) ((x) != (x))
#define NAME(x) x##_float
#include "reduce.inc"

#define W int64_t
#define A uint64_t
#define IS_NAN(x) false
#define NAME(x) x##_signed
#include "reduce.inc"

#define W uint64_t
#define A uint64_t
#define IS_NAN(x) false
#define NAME(x) x##_unsigned
#include "reduce.inc"

/* Takes n inputs into the block: all into output `first` (step 0), or into n outputs from there (step 1). */
static void take_in(const struct job *job, struct block *block, int64_t first, int64_t step, dmlk_wide *x,
                    int64_t n, int64_t index) {
    int64_t *place = block->place.i + first;
    switch (job->kind) {
    case DMLK_KIND_FLOAT:
        map_floats(job->function, x->f, n, block->shift.f + first, step);
        combine_float(job, block->value.f + first, place, step, x->f, n, index);
        break;
    case DMLK_KIND_SIGNED:
        map_integers(job->function, job->kind, x->u, n);
        combine_signed(job, block->value.i + first, place, step, x->i, n, index);
        break;
    case DMLK_KIND_UNSIGNED:
        map_integers(job->function, job->kind, x->u, n);
        combine_unsigned(job, block->value.u + first, place, step, x->u, n, index);
        break;
    }
}

/* A row of m reduced positions, the first being number `index`, for each output of the block. */
static void take_in_row(const struct job *job, struct block *block, const uint8_t *at, int64_t m, int64_t index) {
    const int64_t bytes = job->kept.bytes[0];
    const int64_t kept = dmlk_iter_row_strides(&job->kept)[0];
    const int64_t reduced = dmlk_iter_row_strides(&job->reduced)[0];
    dmlk_wide x;
    if (block->count == 1 || reduced < kept) {
        for (int64_t j = 0; j < block->count; j++) {
            for (int64_t r = 0; r < m; r += DMLK_CHUNK) {
                int64_t n = dmlk_min(m - r, DMLK_CHUNK);
                dmlk_load_wide(job->in, at + (j * kept + r * reduced) * bytes, reduced, n, &x);
                take_in(job, block, j, 0, &x, n, index + r);
            }
        }
    } else {
        for (int64_t r = 0; r < m; r++) {
            dmlk_load_wide(job->in, at + r * reduced * bytes, kept, block->count, &x);
            take_in(job, block, 0, 1, &x, block->count, index + r);
        }
    }
}

/* All reduced positions.  `at` is the input of the first output. */
static void take_in_all(const struct job *job, struct block *block, const uint8_t *at) {
    dmlk_cursor cursor;
    dmlk_iter_seek(&job->reduced, 0, &cursor);
    for (int64_t index = 0; index < job->reduced.count;) {
        int64_t m = dmlk_iter_row_left(&job->reduced, &cursor);
        take_in_row(job, block, at + (cursor.at[0] - job->reduced.base[0]), m, index);
        dmlk_iter_advance(&job->reduced, &cursor, m);
        index += m;
    }
}

static void start(const struct job *job, struct block *block, const uint8_t *at) {
    if (job->combination == MAXIMUM || job->combination == MINIMUM) {
        dmlk_load_wide(job->in, at, dmlk_iter_row_strides(&job->kept)[0], block->count, &block->value);
        memset(&block->place, 0, sizeof block->place);
        return;
    }
    for (int64_t i = 0; i < block->count; i++) {
        if (job->kind == DMLK_KIND_FLOAT) {
            block->value.f[i] = job->combination == PRODUCT ? 1 : 0;
        } else {
            block->value.u[i] = job->combination == PRODUCT ? 1 : 0;
        }
    }
}

/* exp(x) overflows where log(sum(exp(x))) does not: sum exp(x - maximum), and add the maximum at the end. */
static void find_shift(const struct job *log_sum_exp, struct block *block, const uint8_t *at) {
    struct job job = *log_sum_exp;
    job.function = DMLK_REDUCE_MAX;
    job.combination = MAXIMUM;
    start(&job, block, at);
    take_in_all(&job, block, at);
    for (int64_t i = 0; i < block->count; i++) {
        block->shift.f[i] = isfinite(block->value.f[i]) ? block->value.f[i] : 0;
    }
}

static void finish(const struct job *job, struct block *block) {
    double *v = block->value.f;
    for (int64_t i = 0; i < block->count; i++) {
        switch (job->function) {
        case DMLK_REDUCE_AVERAGE: v[i] /= (double)job->reduced.count; break;
        case DMLK_REDUCE_L2: v[i] = sqrt(v[i]); break;
        case DMLK_REDUCE_LOG_SUM: v[i] = log(v[i]); break;
        case DMLK_REDUCE_LOG_SUM_EXP: v[i] = log(v[i]) + block->shift.f[i]; break;
        default: return;
        }
    }
}

static void reduce_block(const struct job *job, uint8_t *const *at, int64_t count) {
    const int64_t out_stride = dmlk_iter_row_strides(&job->kept)[1];
    struct block block;
    block.count = count;
    if (job->function == DMLK_REDUCE_LOG_SUM_EXP) {
        find_shift(job, &block, at[0]);
    }
    start(job, &block, at[0]);
    take_in_all(job, &block, at[0]);
    if (job->function == DMLK_REDUCE_ARGMAX || job->function == DMLK_REDUCE_ARGMIN) {
        dmlk_store_wide(job->out, at[1], out_stride, count, DMLK_KIND_SIGNED, &block.place);
        return;
    }
    finish(job, &block);
    dmlk_store_wide(job->out, at[1], out_stride, count, job->kind, &block.value);
}

static void reduce_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    dmlk_cursor cursor;
    dmlk_iter_seek(&job->kept, begin, &cursor);
    while (begin < end) {
        int64_t count = dmlk_min(dmlk_min(dmlk_iter_row_left(&job->kept, &cursor), DMLK_CHUNK), end - begin);
        reduce_block(job, cursor.at, count);
        dmlk_iter_advance(&job->kept, &cursor, count);
        begin += count;
    }
}

/* Is there code for the function on these types?  Sets what follows from the function. */
static bool choose_function(struct job *job) {
    static const enum combination combinations[] = {
        [DMLK_REDUCE_ARGMAX] = MAXIMUM, [DMLK_REDUCE_ARGMIN] = MINIMUM, [DMLK_REDUCE_MAX] = MAXIMUM,
        [DMLK_REDUCE_MIN] = MINIMUM,    [DMLK_REDUCE_MULTIPLY] = PRODUCT, [DMLK_REDUCE_SUM_SQUARE] = SUM};
    if (job->function > DMLK_REDUCE_SUM_SQUARE) {
        return false;
    }
    job->combination = combinations[job->function];
    switch (job->function) {
    case DMLK_REDUCE_ARGMAX:
    case DMLK_REDUCE_ARGMIN:
        return dmlk_type_kind(job->out) != DMLK_KIND_FLOAT && dmlk_type_bytes(job->out) >= 4;
    case DMLK_REDUCE_AVERAGE:
    case DMLK_REDUCE_L2:
    case DMLK_REDUCE_LOG_SUM:
    case DMLK_REDUCE_LOG_SUM_EXP: return job->kind == DMLK_KIND_FLOAT && job->in == job->out;
    default: return job->in == job->out;
    }
}

int dmlk_run_reduce(const dmlk_call *call) {
    dmlk_reduce k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    struct job job = {.function = k.function,
               .last_index = k.last_index != 0,
               .in = in->type,
               .out = out->type,
               .kind = dmlk_type_kind(in->type)};
    if (!choose_function(&job)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const dmlk_view reduced_out = dmlk_view_select(out, k.axes_mask);
    if (in->rank != out->rank || k.axes_mask >> in->rank != 0 || dmlk_view_elements(&reduced_out) != 1) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view kept_in = dmlk_view_select(in, ~k.axes_mask), kept_out = dmlk_view_select(out, ~k.axes_mask);
    const dmlk_view reduced = dmlk_view_select(in, k.axes_mask);
    int status = dmlk_iter_init(&job.kept, DMLK_ANY_ORDER, (const dmlk_view *[]){&kept_in, &kept_out}, 2);
    if (status == DMLK_OK) {
        status = dmlk_iter_init(&job.reduced, DMLK_LOGICAL_ORDER, (const dmlk_view *[]){&reduced}, 1);
    }
    if (status == DMLK_OK) {
        const int64_t outputs_worth_a_thread = 65536 / job.reduced.count;
        dmlk_parallel(job.kept.count, dmlk_parts(job.kept.count, outputs_worth_a_thread), reduce_part, &job);
    }
    return status;
}
