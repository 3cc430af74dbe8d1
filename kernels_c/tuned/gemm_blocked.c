/* gemm_blocked.c - see gemm_blocked.h.
 *
 * The output is processed in blocks of about 384 x 240.  For each block and each piece of the depth, panels of 48
 * columns of b and (unless they can be read in place) of 48 rows of a are packed as floats, so that the operands of
 * one step are contiguous, whatever their strides and types; the tiles of microkernel_f32.h are layout-independent.
 * A panel is packed just before it is used; its source is prefetched while the previous panel is multiplied, as
 * large matrices are not in the cache.  Sums of a block are kept in a buffer until the last piece, so that they are
 * rounded to the output's type once. */
#include "gemm_blocked.h"

#include <stdatomic.h>

#include "microkernel_f32.h"
#include "gather.h"
#include "float16.h"
#include "cpu.h"
#include "parallel.h"
#include "scratch.h"
#include "cancellation.h"
#include "transpose.h"
#include "promoted.h"

#ifdef DMLK_X86
#include <immintrin.h>
#endif

#define ROWS DMLK_F32_ROWS
#define PANEL DMLK_F32_COLUMNS
#define A_PANELS 8 /* of a block: together with the sums they fit into a second-level cache */
#define B_PANELS 5
#define ROW_PANELS 64 /* of a single row: its sums fit into the first-level cache */
#define DEPTH 256
#define LINE 64
#define NEAR_BYTES (INT64_C(1) << 18) /* of operands and result, as floats */
#define WORTH_THREADS 4e6 /* products: 30 microseconds; below, a second thread helps only on an idle machine */

#ifdef DMLK_X86 /* (compilers remove functions that only prefetch) */
#define FETCH(at) __asm__ volatile("prefetcht1 %0" : : "m"(*(at)))
#define FETCH_TO_WRITE(at) __asm__ volatile("prefetchw %0" : : "m"(*(at)))
#else
#define FETCH(at) __builtin_prefetch(at)
#define FETCH_TO_WRITE(at) __builtin_prefetch(at, 1)
#endif

/* Memory of one thread. */
struct scratch {
    float a[A_PANELS][DEPTH][PANEL], b[DEPTH][PANEL];
    float sums[B_PANELS][A_PANELS * PANEL][PANEL];
    uint16_t halves[DEPTH * PANEL];
};

struct job {
    const dmlk_gemm_blocked *p;
    bool turned; /* p is the transposed product, with a and b swapped */
    bool is_near; /* everything fits into a second-level cache: no prefetching */
    int64_t row_blocks, column_blocks;
    enum dmlk_isa isa;
    atomic_bool failed; /* a thread ran out of memory */
};

/* A piece of the output, and a piece of the depth. */
struct block {
    uint8_t *at[4]; /* start of a, b, c and out */
    int64_t row, rows, column, columns;
    int64_t first, depth;
    bool is_last;
};

_Static_assert(PANEL == DMLK_PATCH_POSITIONS, "patches fill panels");

static inline uint8_t *element(const dmlk_matrix *matrix, uint8_t *base, int64_t row, int64_t column) {
    return base + (row * matrix->row_stride + column * matrix->column_stride) * dmlk_type_bytes(matrix->type);
}

/* --- panels --- */

static void copy_lines(const uint8_t *from, int64_t step, int64_t lines, int64_t count, float *to, int64_t to_stride) {
    for (int64_t line = 0; line < lines; line++, from += step, to += to_stride) {
        int64_t i = 0;
        if (count == PANEL) { /* constant sizes avoid calls */
            memcpy(to, from, PANEL * sizeof *to);
            continue;
        }
        for (; i + 4 <= count; i += 4) {
            memcpy(to + i, from + i * (int64_t)sizeof *to, 4 * sizeof *to);
        }
        for (; i < count; i++) {
            memcpy(to + i, from + i * (int64_t)sizeof *to, sizeof *to);
        }
    }
}

/* to[k][i] = the element i strides and k steps from `from`, i < count <= PANEL. */
static void pack(uint32_t type, const uint8_t *from, int64_t step, int64_t stride, int64_t depth, int64_t count,
                 float (*to)[PANEL], uint16_t *halves) {
    const int64_t bytes = dmlk_type_bytes(type);
    const bool half = type == DMLK_FLOAT16;
    uint8_t *bits = half ? (uint8_t *)halves : (uint8_t *)to; /* of one k after the other */
    const int64_t bits_step = PANEL * bytes;
    if (stride == 1 && !half) {
        copy_lines(from, step * bytes, depth, count, to[0], PANEL);
        return;
    }
    for (int64_t k = 0; k < depth && stride == 1; k++) {
        dmlk_widen_float16((const uint16_t *)from + k * step, count, to[k]);
    }
    if (stride == 1) {
        return;
    }
    if (step < stride) {
        dmlk_transpose(bytes, from, stride * bytes, step * bytes, bits, bits_step, depth, count, 0);
    } else {
        for (int64_t k = 0; k < depth; k++) {
            dmlk_gather(from + k * step * bytes, stride * bytes, bytes, count, bits + k * bits_step);
        }
    }
    for (int64_t k = 0; k < depth && half; k++) {
        dmlk_widen_float16(halves + k * PANEL, count, to[k]);
    }
}

/* The source of the next `pack`, or the part not yet prefetched: roughly contiguous lines. */
struct source {
    const uint8_t *at;
    int64_t lines, step, length, apart;
    int64_t share; /* lines to prefetch at once */
};

static struct source source_of(uint32_t type, const uint8_t *from, int64_t step, int64_t stride, int64_t depth,
                               int64_t count, int64_t shares) {
    const int64_t bytes = dmlk_type_bytes(type), apart = dmlk_min(step, stride) * bytes;
    struct source s = {.at = from, .lines = depth, .step = stride * bytes, .length = count * apart};
    if (step < stride) {
        s.lines = count;
        s.length = depth * apart;
    } else {
        s.step = step * bytes;
    }
    s.apart = apart > LINE ? apart : LINE;
    s.share = (s.lines + shares - 1) / shares;
    return s;
}

static void fetch_share(struct source *s) {
    const int64_t rest = s->lines > s->share ? s->lines - s->share : 0;
    for (; s->lines > rest; s->lines--, s->at += s->step) {
        for (int64_t i = 0; i < s->length; i += s->apart) {
            FETCH(s->at + i);
        }
    }
}

/* --- results --- */

#ifdef DMLK_X86
/* (Few stores, as they wait for memory.) */
DMLK_AVX512 static inline void scale_avx512(const dmlk_gemm_blocked *p, const float *c, int64_t count, const float *sums,
                                            float *to) {
    const __m512 alpha = _mm512_set1_ps(p->alpha), beta = _mm512_set1_ps(p->beta);
    const __m512 nan = _mm512_set1_ps(dmlk_bits_float(DMLK_NAN_BITS)), last = _mm512_set1_ps(p->last);
    for (int64_t j = 0; j < count; j += 16) {
        const __mmask16 there = (__mmask16)(0xffff >> (16 - dmlk_min(16, count - j)));
        __m512 x = _mm512_mul_ps(alpha, _mm512_maskz_loadu_ps(there, sums + j));
        if (c != NULL && p->c.column_stride == 0) {
            x = _mm512_add_ps(x, _mm512_mul_ps(beta, _mm512_set1_ps(c[0])));
        } else if (c != NULL) {
            x = _mm512_add_ps(x, _mm512_mul_ps(beta, _mm512_maskz_loadu_ps(there, c + j)));
        }
        x = _mm512_add_ps(x, last);
        x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
        _mm512_mask_storeu_ps(to + j, there, x);
    }
}
#endif

DMLK_EACH_ISA(scale_floats, (const dmlk_gemm_blocked *p, const float *c, int64_t count, const float *restrict sums,
                          float *restrict to),
              (p, c, count, sums, to)) {
    const float alpha = p->alpha, beta = p->beta, last = p->last;
    for (int64_t j = 0; j < count && c == NULL; j++) {
        to[j] = dmlk_one_nan(alpha * sums[j] + last);
    }
    for (int64_t j = 0; j < count && c != NULL; j++) {
        to[j] = dmlk_one_nan(alpha * sums[j] + beta * c[j] + last);
    }
}

/* to = alpha sums + beta c, if there is a c. */
static void scale(const struct job *job, const float *c, int64_t count, const float *sums, float *to) {
    const dmlk_gemm_blocked *p = job->p;
#ifdef DMLK_X86
    if (job->isa == DMLK_ISA_AVX512) {
        scale_avx512(p, c, count, sums, to);
        return;
    }
#endif
    scale_floats(p, c, count, sums, to);
}

/* `count` <= PANEL elements of a row. */
static void store_row(const struct job *job, const uint8_t *c, uint8_t *out, int64_t count, const float *sums) {
    const dmlk_gemm_blocked *p = job->p;
    const int64_t stride = p->out.column_stride, bytes = dmlk_type_bytes(p->out.type);
    const bool half = p->out.type == DMLK_FLOAT16;
    float results[PANEL], from_c[1][PANEL];
    uint16_t halves[PANEL];
    float *to = stride == 1 && !half ? (float *)out : results;
    if (p->has_c) {
        pack(p->c.type, c, 0, p->c.column_stride, 1, count, from_c, halves);
    }
    scale(job, p->has_c ? from_c[0] : NULL, count, sums, to);
    if (half) {
        dmlk_narrow_floats(results, count, stride == 1 ? (uint16_t *)out : halves);
    }
    if (stride != 1) {
        dmlk_scatter(half ? (const uint8_t *)halves : (const uint8_t *)results, bytes, count, out, stride * bytes);
    }
}

/* Prefetches the output of a tile while it is computed. */
static void fetch_results(const struct job *job, const struct block *block, int64_t row, int64_t column,
                          const dmlk_f32_kernel *tile) {
    const dmlk_matrix *out = &job->p->out;
    const int64_t bytes = out->column_stride == 1 ? tile->columns * dmlk_type_bytes(out->type) : 0;
    for (int64_t r = 0; r < tile->rows; r++) {
        const uint8_t *to = element(out, block->at[3], block->row + row + r, block->column + column);
        for (int64_t i = 0; i < bytes; i += LINE) {
            FETCH_TO_WRITE(to + i);
        }
    }
}

#ifdef DMLK_X86
/* The same for floats with contiguous columns, stored directly. */
DMLK_AVX512 static void store_floats(const dmlk_gemm_blocked *p, const uint8_t *c, uint8_t *out, const dmlk_f32_kernel *tile) {
    const float *from = (const float *)(const void *)c;
    float *to = (float *)(void *)out;
    for (int64_t r = 0; r < tile->rows; r++, to += p->out.row_stride) {
        scale_avx512(p, from, tile->columns, tile->sums[r], to);
        from = from == NULL ? NULL : from + p->c.row_stride;
    }
}

static bool are_floats(const dmlk_matrix *matrix) {
    return matrix->type == DMLK_FLOAT32 && matrix->column_stride == 1;
}

/* One number for each row is as good. */
static bool can_add(const dmlk_matrix *c) { return are_floats(c) || (c->type == DMLK_FLOAT32 && c->column_stride == 0); }
#endif

static void store_tile(const struct job *job, const struct block *block, int64_t row, int64_t column,
                       const dmlk_f32_kernel *tile) {
    const dmlk_gemm_blocked *p = job->p;
#ifdef DMLK_X86
    if (job->isa == DMLK_ISA_AVX512 && are_floats(&p->out) && (!p->has_c || can_add(&p->c))) {
        const uint8_t *c = p->has_c ? element(&p->c, block->at[2], block->row + row, block->column + column) : NULL;
        store_floats(p, c, element(&p->out, block->at[3], block->row + row, block->column + column), tile);
        return;
    }
#endif
    for (int64_t r = 0; r < tile->rows; r++) {
        const int64_t at_row = block->row + row + r, at_column = block->column + column;
        const uint8_t *c = p->has_c ? element(&p->c, block->at[2], at_row, at_column) : NULL;
        store_row(job, c, element(&p->out, block->at[3], at_row, at_column), tile->columns, tile->sums[r]);
    }
}

/* --- blocks --- */

/* Panels of rows of a are panels of columns of a transposed. */
static void pack_a(const struct job *job, const struct block *block, int64_t row, struct scratch *s) {
    const dmlk_matrix *a = &job->p->a;
    if (a->patches != NULL) {
        dmlk_pack_patches(a->patches, block->at[0], block->first, block->depth, block->row + row,
                          dmlk_min(PANEL, block->rows - row), s->a[row / PANEL], s->halves);
        return;
    }
    pack(a->type, element(a, block->at[0], block->row + row, block->first), a->column_stride, a->row_stride,
         block->depth, dmlk_min(PANEL, block->rows - row), s->a[row / PANEL], s->halves);
}

/* The next panel of rows, if any. */
static struct source source_of_a(const struct job *job, const struct block *block, int64_t row) {
    const dmlk_matrix *a = &job->p->a;
    const int64_t next = row + PANEL;
    if (next >= block->rows || a->patches != NULL) {
        return (struct source){0};
    }
    return source_of(a->type, element(a, block->at[0], block->row + next, block->first), a->column_stride,
                     a->row_stride, block->depth, dmlk_min(PANEL, block->rows - next), PANEL / ROWS);
}

static void pack_b(const struct job *job, const struct block *block, int64_t column, struct scratch *s) {
    const dmlk_matrix *b = &job->p->b;
    if (b->patches != NULL) {
        dmlk_pack_patches(b->patches, block->at[1], block->first, block->depth, block->column + column,
                          dmlk_min(PANEL, block->columns - column), s->b, s->halves);
        return;
    }
    pack(b->type, element(b, block->at[1], block->first, block->column + column), b->row_stride, b->column_stride,
         block->depth, dmlk_min(PANEL, block->columns - column), s->b, s->halves);
}

/* The panel after the one that begins at `column`: the next columns, or the first of the next piece of the depth. */
static struct source source_of_b(const struct job *job, const struct block *block, int64_t column, int64_t shares) {
    const dmlk_matrix *b = &job->p->b;
    const bool same = column + PANEL < block->columns;
    const int64_t next = same ? column + PANEL : 0, first = block->first + (same ? 0 : block->depth);
    if (first >= job->p->depth || b->patches != NULL) {
        return (struct source){0};
    }
    return source_of(b->type, element(b, block->at[1], first, block->column + next), b->row_stride, b->column_stride,
                     dmlk_min(block->depth, job->p->depth - first), dmlk_min(PANEL, block->columns - next), shares);
}

/* Whether rows of a can be read in place: rows or columns are contiguous. */
static bool is_direct(const dmlk_matrix *a) {
    return a->patches == NULL && a->type == DMLK_FLOAT32 && (a->column_stride == 1 || a->row_stride == 1);
}

/* The rows of the tile that begins at `row`. */
static const float *rows_at(const struct job *job, const struct block *block, int64_t row, const struct scratch *s) {
    const dmlk_matrix *a = &job->p->a;
    return is_direct(a) ? (const float *)(const void *)element(a, block->at[0], block->row + row, block->first)
                        : &s->a[row / PANEL][0][row % PANEL];
}

/* All rows of the block with the panel of columns that begins at `column`. */
static void multiply_panel(const struct job *job, const struct block *block, int64_t column, struct scratch *s) {
    const bool direct = is_direct(&job->p->a);
    const int64_t tiles = (block->rows + ROWS - 1) / ROWS;
    float(*sums)[PANEL] = s->sums[column / PANEL];
    dmlk_f32_kernel tile = {.columns = dmlk_min(PANEL, block->columns - column),
                       .depth = block->depth,
                       .is_first = block->first == 0,
                       .row_stride = direct ? job->p->a.row_stride : 1,
                       .row_step = direct ? job->p->a.column_stride : PANEL,
                       .column = (const float(*)[PANEL])s->b};
    struct source next_a = {0}, next_b = {0};
    if (!job->is_near) {
        next_b = source_of_b(job, block, column, tiles);
    }
    pack_b(job, block, column, s);
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t row = i * ROWS;
        if (!direct && column == 0) {
            if (row % PANEL == 0) {
                pack_a(job, block, row, s);
                next_a = source_of_a(job, block, row);
            }
            fetch_share(&next_a);
        }
        fetch_share(&next_b);
        tile.rows = dmlk_min(ROWS, block->rows - row);
        tile.row = rows_at(job, block, row, s);
        tile.sums = sums + row;
        if (block->is_last && !job->is_near) {
            fetch_results(job, block, row, column, &tile);
        }
        dmlk_f32_tile(job->isa, &tile);
        if (block->is_last) {
            store_tile(job, block, row, column, &tile);
        }
    }
}

static void multiply_block(const struct job *job, struct block *block, struct scratch *s, int64_t *work) {
    const int64_t depth = job->p->depth;
    for (block->first = 0; block->first < depth; block->first += DEPTH) {
        block->depth = dmlk_min(DEPTH, depth - block->first);
        block->is_last = block->first + DEPTH >= depth;
        for (int64_t column = 0; column < block->columns; column += PANEL) {
            if (dmlk_stopped(work, block->rows * PANEL * block->depth / 16)) {
                return;
            }
            multiply_panel(job, block, column, s);
        }
    }
}

/* A single row: b is read once, row by row in place, without panels. */
static bool is_row(const dmlk_gemm_blocked *p) {
    return p->m == 1 && p->b.column_stride == 1 && p->a.patches == NULL && p->b.patches == NULL;
}

static void multiply_row(const struct job *job, const struct block *block, struct scratch *s, int64_t *work) {
    const dmlk_gemm_blocked *p = job->p;
    float *sums = s->sums[0][0], *widened = s->b[0], factor[1][PANEL];
    memset(sums, 0, (size_t)block->columns * sizeof *sums);
    for (int64_t k = 0; k < p->depth; k++) {
        if (dmlk_stopped(work, block->columns / 16 + 1)) {
            return;
        }
        const uint8_t *from = element(&p->b, block->at[1], k, block->column);
        pack(p->a.type, element(&p->a, block->at[0], 0, k), 0, 1, 1, 1, factor, s->halves);
        if (p->b.type == DMLK_FLOAT16) {
            dmlk_widen_float16((const uint16_t *)from, block->columns, widened);
            from = (const uint8_t *)widened;
        }
        dmlk_f32_step(job->isa, factor[0][0], (const float *)(const void *)from, block->columns, sums);
    }
    for (int64_t column = 0; column < block->columns; column += PANEL) {
        const dmlk_f32_kernel tile = {.rows = 1,
                                 .columns = dmlk_min(PANEL, block->columns - column),
                                 .sums = (float(*)[PANEL])(sums + column)};
        store_tile(job, block, 0, column, &tile);
    }
}

/* Part `i` of `count` items split into `parts` parts of whole units. */
static void split(int64_t count, int64_t unit, int64_t parts, int64_t i, int64_t *first, int64_t *size) {
    const int64_t units = (count + unit - 1) / unit, begin = units * i / parts * unit;
    *first = begin;
    *size = dmlk_min(units * (i + 1) / parts * unit, count) - begin;
}

static void multiply_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    struct job *job = context;
    struct scratch *scratch = dmlk_take((int64_t)sizeof *scratch);
    if (scratch == NULL) {
        atomic_store(&job->failed, true);
        return;
    }
    int64_t work = 0;
    for (int64_t item = begin; item < end && !dmlk_stopped(&work, 0); item++) {
        struct block block;
        split(job->p->n, PANEL, job->column_blocks, item % job->column_blocks, &block.column, &block.columns);
        const int64_t rest = item / job->column_blocks;
        split(job->p->m, ROWS, job->row_blocks, rest % job->row_blocks, &block.row, &block.rows);
        dmlk_cursor cursor;
        dmlk_iter_seek(&job->p->batch, rest / job->row_blocks, &cursor);
        memcpy(block.at, cursor.at, sizeof block.at);
        block.at[0] = cursor.at[job->turned];
        block.at[1] = cursor.at[!job->turned];
        if (is_row(job->p)) {
            multiply_row(job, &block, scratch, &work);
        } else {
            multiply_block(job, &block, scratch, &work);
        }
        const dmlk_matrix *out = &job->p->out;
        dmlk_follow(job->p->followers, element(out, block.at[3], block.row, block.column), block.rows, out->row_stride,
                    block.columns, out->column_stride);
    }
    dmlk_give(scratch);
}

/* Steps of a tile for m x n, in vectors of 16. */
static int64_t vectors(int64_t m, int64_t n) { return m * ((n + 15) / 16); }

/* out transposed = alpha (b transposed) (a transposed) + beta (c transposed). */
static dmlk_gemm_blocked turn(const dmlk_gemm_blocked *p) {
    dmlk_gemm_blocked turned = *p;
    turned.a = dmlk_transposed(p->b);
    turned.b = dmlk_transposed(p->a);
    turned.c = dmlk_transposed(p->c);
    turned.out = dmlk_transposed(p->out);
    turned.m = p->n;
    turned.n = p->m;
    return turned;
}

/* Splits the output into blocks, evenly for the threads.  Returns the number of blocks. */
static int64_t plan_blocks(struct job *job, int threads) {
    const dmlk_gemm_blocked *p = job->p;
    const int64_t panels = (p->n + PANEL - 1) / PANEL, tiles = (p->m + ROWS - 1) / ROWS;
    job->row_blocks = (p->m + A_PANELS * PANEL - 1) / (A_PANELS * PANEL);
    const int64_t most = is_row(p) ? ROW_PANELS : B_PANELS;
    job->column_blocks = (panels + most - 1) / most;
    for (;;) {
        const int64_t blocks = p->batch.count * job->row_blocks * job->column_blocks;
        if (blocks % threads == 0 || blocks >= 16 * threads) {
            return blocks;
        }
        if (job->row_blocks < tiles) {
            job->row_blocks++;
        } else if (job->column_blocks < panels) {
            job->column_blocks++;
        } else {
            return blocks;
        }
    }
}

bool dmlk_multiply(const dmlk_gemm_blocked *product) {
    const dmlk_gemm_blocked turned = turn(product);
    struct job job = {.p = product, .isa = dmlk_isa()};
    job.turned = 2 * vectors(product->n, product->m) <= vectors(product->m, product->n);
    job.p = job.turned ? &turned : product;
    const double m = (double)product->m, n = (double)product->n, depth = (double)product->depth;
    job.is_near = (m * n + m * depth + depth * n) * (double)sizeof(float) <= (double)NEAR_BYTES;
    const double work = (m * n * depth + 16 * (m * depth + depth * n)) * (double)product->batch.count;
    const int threads = dmlk_parts(INT64_MAX, work < WORTH_THREADS ? INT64_MAX : 1);
    const int64_t blocks = plan_blocks(&job, threads);
    dmlk_parallel(blocks, (int)dmlk_min(threads, blocks), multiply_part, &job);
    return !atomic_load(&job.failed);
}
