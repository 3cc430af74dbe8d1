/* gemm: out = alpha * op(a) op(b) + beta * c, for each pair of matrices along the leading axes.
 *
 * The output is worked on in blocks of 64 x 256.  Rows of op(a) and columns of op(b) are first
 * copied, as floats, into panels in which the numbers that are multiplied together are neighbours;
 * so the multiplication itself knows no strides.  Each element of the output is one float32 sum in
 * ascending order of k, whatever the layout and the number of threads. */
#include "gemm.h"

#include <stdlib.h>

#include "kernel.h"

#define ROWS 4     /* of a panel of op(a) */
#define COLUMNS 16 /* of a panel of op(b) */
#define BLOCK_ROWS 64
#define BLOCK_COLUMNS 256

/* One matrix of a batch: strides in elements, after op(). */
struct matrix {
    const uint8_t *base;
    uint32_t type;
    int64_t row_stride, column_stride;
};

struct job {
    dmlk_gemm k;
    struct matrix a, b, c, out; /* base: of the first matrix */
    bool has_c;
    int64_t m, n, depth; /* out is m x n; depth is the length of the sums */
    int64_t row_blocks, column_blocks;
    dmlk_iter batch; /* operands: a, b, c, out */
    float *scratch;  /* per part: panels of BLOCK_ROWS rows, then one panel of columns */
};

static inline float read(uint32_t type, const uint8_t *base, int64_t i) {
    return type == DMLK_FLOAT32 ? DMLK_LOAD((const float *)base, i)
                                : dmlk_half_to_float(DMLK_LOAD((const uint16_t *)base, i));
}

/* panel[i][r] = element i of line r; lines past `lines` are 0. */
static void pack(const struct matrix *matrix, const uint8_t *base, int64_t line_stride, int64_t stride,
                 int64_t lines, int64_t width, int64_t depth, float *panel) {
    memset(panel, 0, (size_t)(depth * width) * sizeof *panel);
    if (line_stride < stride) {
        for (int64_t i = 0; i < depth; i++) {
            for (int64_t r = 0; r < lines; r++) {
                panel[i * width + r] = read(matrix->type, base, r * line_stride + i * stride);
            }
        }
    } else {
        for (int64_t r = 0; r < lines; r++) {
            for (int64_t i = 0; i < depth; i++) {
                panel[i * width + r] = read(matrix->type, base, r * line_stride + i * stride);
            }
        }
    }
}

/* sums[r][j] = sum over i of a[i][r] * b[i][j].  The four rows stand apart so that compilers keep them in registers. */
DMLK_CLONES static void multiply(const float *restrict a, const float *restrict b, int64_t depth,
                                 float (*restrict sums)[COLUMNS]) {
    float s0[COLUMNS] = {0}, s1[COLUMNS] = {0}, s2[COLUMNS] = {0}, s3[COLUMNS] = {0};
    for (int64_t i = 0; i < depth; i++) {
        const float a0 = a[i * ROWS], a1 = a[i * ROWS + 1], a2 = a[i * ROWS + 2], a3 = a[i * ROWS + 3];
        for (int j = 0; j < COLUMNS; j++) {
            const float x = b[i * COLUMNS + j];
            s0[j] += a0 * x;
            s1[j] += a1 * x;
            s2[j] += a2 * x;
            s3[j] += a3 * x;
        }
    }
    memcpy(sums[0], s0, sizeof s0);
    memcpy(sums[1], s1, sizeof s1);
    memcpy(sums[2], s2, sizeof s2);
    memcpy(sums[3], s3, sizeof s3);
}

/* Writes rows x columns sums at row `row` and column `column` of the matrices that c and out point to. */
static void store(const struct job *job, const uint8_t *c, uint8_t *out, int64_t row, int64_t column, int64_t rows,
                  int64_t columns, float (*sums)[COLUMNS]) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < columns; j++) {
            float x = job->k.alpha * sums[r][j];
            if (job->has_c) {
                int64_t at = (row + r) * job->c.row_stride + (column + j) * job->c.column_stride;
                x += job->k.beta * read(job->c.type, c, at);
            }
            int64_t at = (row + r) * job->out.row_stride + (column + j) * job->out.column_stride;
            if (job->out.type == DMLK_FLOAT32) {
                DMLK_STORE((float *)out, at, x);
            } else {
                DMLK_STORE((uint16_t *)out, at, dmlk_float_to_half(x));
            }
        }
    }
}

/* The block at (row, column) of the matrices at[]. */
static void multiply_block(const struct job *job, uint8_t *const *at, int64_t row, int64_t column, float *panels,
                           int64_t *work) {
    const int64_t row_end = dmlk_min(row + BLOCK_ROWS, job->m), column_end = dmlk_min(column + BLOCK_COLUMNS, job->n);
    const int64_t a_bytes = dmlk_type_bytes(job->a.type), b_bytes = dmlk_type_bytes(job->b.type);
    float *b_panel = panels + BLOCK_ROWS * job->depth;
    for (int64_t r = row; r < row_end && !dmlk_stopped(work, ROWS * job->depth); r += ROWS) {
        pack(&job->a, at[0] + r * job->a.row_stride * a_bytes, job->a.row_stride, job->a.column_stride,
             dmlk_min(ROWS, row_end - r), ROWS, job->depth, panels + (r - row) * job->depth);
    }
    for (int64_t j = column; j < column_end && !dmlk_stopped(work, COLUMNS * job->depth); j += COLUMNS) {
        const int64_t columns = dmlk_min(COLUMNS, column_end - j);
        pack(&job->b, at[1] + j * job->b.column_stride * b_bytes, job->b.column_stride, job->b.row_stride, columns,
             COLUMNS, job->depth, b_panel);
        for (int64_t r = row; r < row_end && !dmlk_stopped(work, COLUMNS * job->depth); r += ROWS) {
            float sums[ROWS][COLUMNS];
            multiply(panels + (r - row) * job->depth, b_panel, job->depth, sums);
            store(job, at[2], at[3], r, j, dmlk_min(ROWS, row_end - r), columns, sums);
        }
    }
}

static void gemm_part(int64_t begin, int64_t end, int part, void *context) {
    const struct job *job = context;
    float *panels = job->scratch + part * (BLOCK_ROWS + COLUMNS) * job->depth;
    int64_t work = 0;
    for (int64_t item = begin; item < end && !dmlk_stopped(&work, 0); item++) {
        const int64_t column = item % job->column_blocks * BLOCK_COLUMNS;
        const int64_t row = item / job->column_blocks % job->row_blocks * BLOCK_ROWS;
        dmlk_cursor cursor;
        dmlk_iter_seek(&job->batch, item / job->column_blocks / job->row_blocks, &cursor);
        multiply_block(job, cursor.at, row, column, panels, &work);
    }
}

static struct matrix last_axes(const dmlk_view *view, bool transposed) {
    const uint32_t row = view->rank - 2 + transposed, column = view->rank - 1 - transposed;
    return (struct matrix){view->base, view->type, view->strides[row], view->strides[column]};
}

/* Do the sizes fit each other?  Sets m, n and depth. */
static bool set_sizes(struct job *job, const dmlk_view *a, const dmlk_view *b, const dmlk_view *out) {
    const uint32_t rank = out->rank;
    if (rank < 2 || a->rank != rank || b->rank != rank) {
        return false;
    }
    job->m = out->sizes[rank - 2];
    job->n = out->sizes[rank - 1];
    job->depth = a->sizes[job->k.trans_a ? rank - 2 : rank - 1];
    return a->sizes[job->k.trans_a ? rank - 1 : rank - 2] == job->m &&
           b->sizes[job->k.trans_b ? rank - 1 : rank - 2] == job->depth &&
           b->sizes[job->k.trans_b ? rank - 2 : rank - 1] == job->n;
}

static bool types_fit(const dmlk_view *a, const dmlk_view *b, const dmlk_view *c, const dmlk_view *out) {
    bool inputs = (a->type == DMLK_FLOAT32 || a->type == DMLK_FLOAT16) && b->type == a->type;
    return inputs && (c->base == NULL || c->type == a->type) && (out->type == a->type || out->type == DMLK_FLOAT32);
}

static int run_blocks(struct job *job) {
    job->row_blocks = (job->m + BLOCK_ROWS - 1) / BLOCK_ROWS;
    job->column_blocks = (job->n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    const int64_t items = job->batch.count * job->row_blocks * job->column_blocks;
    const int64_t multiplications = dmlk_min(job->m, BLOCK_ROWS) * dmlk_min(job->n, BLOCK_COLUMNS) * job->depth;
    const int parts = dmlk_parts(items, 500000 / multiplications);
    size_t bytes;
    if (__builtin_mul_overflow((size_t)(parts * (BLOCK_ROWS + COLUMNS)) * sizeof(float), (size_t)job->depth, &bytes)) {
        return DMLK_OUT_OF_MEMORY;
    }
    job->scratch = malloc(bytes);
    if (job->scratch == NULL) {
        return DMLK_OUT_OF_MEMORY;
    }
    dmlk_parallel(items, parts, gemm_part, job);
    free(job->scratch);
    return DMLK_OK;
}

/* Without c, if that counts nothing. */
void dmlk_reads_gemm(const dmlk_call *call, uint32_t tensor, dmlk_reads *reads) {
    dmlk_gemm k;
    if (tensor == 2 && dmlk_get_constants(call, &k, sizeof k) && k.beta == 0) {
        reads->counts[0] = 0;
    }
}

int dmlk_run_gemm(const dmlk_call *call) {
    struct job job;
    if (!dmlk_has_views(call, 4, 1 << 2) || !dmlk_get_constants(call, &job.k, sizeof job.k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *a = &call->views[0], *b = &call->views[1], *c = &call->views[2], *out = &call->views[3];
    if (!types_fit(a, b, c, out)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (!set_sizes(&job, a, b, out) || (c->base != NULL && !dmlk_same_sizes(c, out))) {
        return DMLK_BAD_PACKET;
    }
    job.has_c = c->base != NULL && job.k.beta != 0;
    c = job.has_c ? c : out; /* so that the batch always has four operands */
    job.a = last_axes(a, job.k.trans_a != 0);
    job.b = last_axes(b, job.k.trans_b != 0);
    job.c = last_axes(c, false);
    job.out = last_axes(out, false);
    const uint32_t leading = (1u << (out->rank - 2)) - 1;
    const dmlk_view batch[4] = {dmlk_view_select(a, leading), dmlk_view_select(b, leading),
                                dmlk_view_select(c, leading), dmlk_view_select(out, leading)};
    int status = dmlk_iter_init(&job.batch, DMLK_ANY_ORDER,
                                (const dmlk_view *[]){&batch[0], &batch[1], &batch[2], &batch[3]}, 4);
    return status == DMLK_OK ? run_blocks(&job) : status;
}
