/* gemm: out = alpha * op(a) op(b) + beta * c, for each pair of matrices along the leading axes.
 *
 * Each output element is one chain of float32 fused multiply-adds, in ascending order of the summed index, whatever
 * the layout.  This is the definition; tuned/gemm_blocked.c gives the same bits. */
#include "gemm.h"

#include <math.h>

#include "kernel.h"
#include "gemm_blocked.h"

static inline float read(const dmlk_matrix *matrix, const uint8_t *base, int64_t row, int64_t column) {
    const int64_t block = matrix->block, inner = block == 0 ? column : column % block;
    const int64_t at = row * matrix->row_stride + inner * matrix->column_stride +
                       (block == 0 ? 0 : column / block * matrix->block_step);
    return matrix->type == DMLK_FLOAT32 ? DMLK_LOAD((const float *)base, at)
                                        : dmlk_float16_to_float(DMLK_LOAD((const uint16_t *)base, at));
}

static inline void write(const dmlk_matrix *matrix, uint8_t *base, int64_t row, int64_t column, float x) {
    const int64_t at = row * matrix->row_stride + column * matrix->column_stride;
    if (matrix->type == DMLK_FLOAT32) {
        DMLK_STORE((float *)base, at, x);
    } else {
        DMLK_STORE((uint16_t *)base, at, dmlk_float_to_float16(x));
    }
}

/* Items: the rows of all output matrices. */
static void plain_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const dmlk_gemm_blocked *p = context;
    int64_t work = 0;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item % p->m;
        dmlk_cursor matrices; /* a, b, c, out */
        dmlk_iter_seek(&p->batch, item / p->m, &matrices);
        for (int64_t column = 0; column < p->n && !dmlk_stopped(&work, p->depth); column++) {
            float sum = 0;
            for (int64_t k = 0; k < p->depth; k++) {
                sum = fmaf(read(&p->a, matrices.at[0], row, k), read(&p->b, matrices.at[1], k, column), sum);
            }
            float x = p->alpha * sum;
            if (p->has_c) {
                x += p->beta * read(&p->c, matrices.at[2], row, column);
            }
            write(&p->out, matrices.at[3], row, column, dmlk_one_nan(x));
        }
    }
}

static dmlk_matrix last_axes(const dmlk_view *view, bool transposed) {
    const uint32_t row = view->rank - 2 + transposed, column = view->rank - 1 - transposed;
    return (dmlk_matrix){.type = view->type, .row_stride = view->strides[row], .column_stride = view->strides[column]};
}

/* Joins the two axes of blocked columns, the blocks and the columns of a block, into one axis. */
static dmlk_view join_blocks(const dmlk_view *b, uint32_t rank, bool transposed, dmlk_matrix *matrix) {
    dmlk_view joined = *b;
    if (b->rank == rank + 1) {
        const uint32_t axis = rank - 1 - transposed; /* of the blocks */
        matrix->block = b->sizes[axis + 1];
        matrix->block_step = b->strides[axis];
        joined.rank = rank;
        joined.sizes[axis] *= b->sizes[axis + 1];
        joined.strides[axis] = b->strides[axis + 1];
        for (uint32_t i = axis + 1; i < rank; i++) {
            joined.sizes[i] = b->sizes[i + 1];
            joined.strides[i] = b->strides[i + 1];
        }
    }
    return joined;
}

/* Checks that the sizes match, and sets m, n and depth. */
static bool set_sizes(dmlk_gemm_blocked *p, const dmlk_gemm *k, const dmlk_view *a, const dmlk_view *b,
                      const dmlk_view *out) {
    const uint32_t rank = out->rank;
    if (rank < 2 || a->rank != rank || b->rank != rank) {
        return false;
    }
    p->m = out->sizes[rank - 2];
    p->n = out->sizes[rank - 1];
    p->depth = a->sizes[k->trans_a ? rank - 2 : rank - 1];
    return a->sizes[k->trans_a ? rank - 1 : rank - 2] == p->m &&
           b->sizes[k->trans_b ? rank - 1 : rank - 2] == p->depth &&
           b->sizes[k->trans_b ? rank - 2 : rank - 1] == p->n;
}

static bool types_fit(const dmlk_view *a, const dmlk_view *b, const dmlk_view *c, const dmlk_view *out) {
    bool inputs = (a->type == DMLK_FLOAT32 || a->type == DMLK_FLOAT16) && b->type == a->type;
    return inputs && (c->base == NULL || c->type == a->type) && (out->type == a->type || out->type == DMLK_FLOAT32);
}

/* c is not read if beta is 0. */
void dmlk_reads_gemm(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_gemm k;
    if (tensor == 2 && dmlk_get_constants(call, &k, sizeof k) && k.beta == 0) {
        reads->counts[0] = 0;
    }
}

int dmlk_run_gemm(const dmlk_call *call) {
    dmlk_gemm k;
    if (!dmlk_has_views(call, 4, 1 << 2) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *a = &call->views[0], *c = &call->views[2], *out = &call->views[3];
    dmlk_matrix blocks = {0};
    const dmlk_view joined = join_blocks(&call->views[1], out->rank, k.trans_b != 0, &blocks), *b = &joined;
    if (!types_fit(a, b, c, out)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    dmlk_gemm_blocked p; /* not cleared, as it is large: see dmlk_iter */
    p.alpha = k.alpha;
    p.beta = k.beta;
    p.last = -0.0f;
    p.followers = call->followers;
    p.before = NULL;
    p.may_read_b = false;
    if (!set_sizes(&p, &k, a, b, out) || (c->base != NULL && !dmlk_same_sizes(c, out))) {
        return DMLK_BAD_PACKET;
    }
    p.has_c = c->base != NULL && k.beta != 0;
    c = p.has_c ? c : out; /* so that the batch always has four operands */
    p.a = last_axes(a, k.trans_a != 0);
    p.b = last_axes(b, k.trans_b != 0);
    p.b.block = blocks.block;
    p.b.block_step = blocks.block_step;
    p.c = last_axes(c, false);
    p.out = last_axes(out, false);
    const uint32_t leading = (1u << (out->rank - 2)) - 1;
    const dmlk_view batch[4] = {dmlk_view_select(a, leading), dmlk_view_select(b, leading),
                                dmlk_view_select(c, leading), dmlk_view_select(out, leading)};
    int status = dmlk_iter_init(&p.batch, DMLK_ANY_ORDER,
                                (const dmlk_view *[]){&batch[0], &batch[1], &batch[2], &batch[3]}, 4);
    if (status != DMLK_OK) {
        return status;
    }
#ifndef DMLK_CHECKED
    if (dmlk_multiply(&p)) {
        dmlk_followed(call);
        return DMLK_OK;
    }
#endif
    const int64_t rows = p.batch.count * p.m;
    dmlk_parallel(rows, dmlk_parts(rows, 1), plain_part, &p);
    return DMLK_OK;
}
