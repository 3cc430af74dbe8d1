/* gemm_blocked.c - see gemm_blocked.h.
 *
 * The output is processed in blocks of about 384 x 240.  For each block and each piece of the depth, panels of
 * columns of b, as wide as a tile, and of 24 rows of a (unless these can be read in place) are packed as floats.  So
 * the operands of each step are contiguous, whatever their strides and types, and the tiles of microkernel_f32.h need
 * not know layouts.  A panel is packed just before it is used; its source is prefetched while the previous panel is
 * multiplied, as large matrices are not in the cache.  The sums of a block are kept in a buffer until the last piece,
 * so that they are rounded to the output's type once. */
#include "gemm_blocked.h"

#include <math.h>
#include <stdatomic.h>

#include "ahead.h"
#include "few_rows.h"
#include "microkernel_f32.h"
#include "gather.h"
#include "float16.h"
#include "cpu.h"
#include "parallel.h"
#include "scratch.h"
#include "cancellation.h"
#include "transpose.h"
#include "promoted.h"
#include "singles.h"

#define ROWS 24                /* rows of a tile: a multiple of the rows that any form processes at a time */
#define PANEL DMLK_F32_COLUMNS /* columns of a panel of b */
#define A_PANEL ROWS           /* rows of a panel of a */
#define MAX_ROWS 384 /* rows of a block; together with the sums they fit into a second-level cache */
#define MAX_COLUMNS (5 * PANEL) /* columns of a block */
#define SHIFT 2 /* where a is not packed, blocks are higher by this power of 2, and narrower: b is packed less often */
#define GROUP (2 * PANEL)      /* columns of b that are packed at a time ... */
#define GROUP_STEPS 16         /* ... in so many steps of the depth, if rows of b are contiguous */
#define FEW_ROWS 8             /* rows of a; up to this many, b is read in place */
/* Up to this many results, and elements from row to row of b, b may be read in place: rows that are further apart, or
 * used more often, are worth a copy. */
#define MOST_READ_RESULTS (INT64_C(1) << 18)
#define MOST_READ_STEP 2048
#define MAX_FEW_ROWS_COLUMNS (96 * PANEL) /* columns of a block then: sums of one row fit into the first-level cache */
#define ROW_DEPTH 8192         /* depth of a piece then */
#define CHUNK 1024             /* columns of b then that all rows multiply before the next ones are read */
#define DEPTH 256              /* depth of a piece otherwise */
#define NEAR_BYTES (INT64_C(1) << 18) /* bytes of operands and result, as floats, that fit a second-level cache */
#define WORTH_THREADS 4e6 /* products: 30 microseconds; with fewer, a second thread helps only on an idle machine */

#ifdef DMLK_X86 /* (compilers remove functions that only prefetch) */
#define FETCH(at) __asm__ volatile("prefetcht1 %0" : : "m"(*(at)))
#define FETCH_TO_WRITE(at) __asm__ volatile("prefetchw %0" : : "m"(*(at)))
#else
#define FETCH(at) __builtin_prefetch(at)
#define FETCH_TO_WRITE(at) __builtin_prefetch(at, 1)
#endif

/* Memory of one thread. */
struct scratch {
    float a[MAX_ROWS / A_PANEL][DEPTH * A_PANEL], b[DEPTH * GROUP];
    float sums[MAX_COLUMNS * MAX_ROWS];
    uint16_t halves[DEPTH * PANEL];
};

struct job {
    const dmlk_gemm_blocked *p;
    bool turned; /* p is the transposed product, with a and b swapped */
    bool reads_b; /* in place, though it is not in blocks */
    bool is_near; /* operands and result fit a second-level cache: nothing is prefetched */
    int64_t row_blocks, column_blocks;
    int64_t tile_rows;
    int64_t depth; /* of a piece */
    int64_t panel, group; /* columns of a panel of b, and of the panels that are packed at a time */
    bool finishes; /* tiles of whole vectors become results in registers, and what follows is done there: */
    dmlk_finish finish;
    atomic_bool failed; /* a thread ran out of memory */
};

/* A piece of the output, and a piece of the depth. */
struct block {
    uint8_t *at[4]; /* start of a, b, c and out */
    int64_t row, rows, column, columns;
    int64_t first, depth;
    bool is_last;
};

_Static_assert(PANEL <= DMLK_PATCH_POSITIONS, "patches fill panels");
_Static_assert(FEW_ROWS * ROW_DEPTH <= MAX_ROWS * DEPTH && DMLK_FEW_LINES * CHUNK <= DEPTH * GROUP &&
                   FEW_ROWS * MAX_FEW_ROWS_COLUMNS <= MAX_COLUMNS * MAX_ROWS,
               "few rows use the memory of panels");

static inline uint8_t *element(const dmlk_matrix *matrix, uint8_t *base, int64_t row, int64_t column) {
    const int64_t from_row = matrix->row_at == NULL ? row * matrix->row_stride : matrix->row_at[row];
    const int64_t from_column = matrix->column_at == NULL ? column * matrix->column_stride : matrix->column_at[column];
    return base + (from_row + from_column) * dmlk_type_bytes(matrix->type);
}

/* --- panels --- */

/* The elements from the first step to step k: a constant distance each, or what a table says. */
static inline __attribute__((always_inline)) int64_t steps_to(int64_t k, int64_t step, const int64_t *at) {
    return at == NULL ? k * step : at[k] - at[0];
}

static inline __attribute__((always_inline)) void copy_lines_of(int64_t count, const float *from, int64_t step,
                                                                const int64_t *at, int64_t lines, float *to,
                                                                int64_t pitch) {
    for (int64_t line = 0; line < lines; line++, to += pitch) {
        memcpy(to, from + steps_to(line, step, at), (size_t)count * sizeof *to);
    }
}

static void copy_lines(const float *from, int64_t step, const int64_t *at, int64_t lines, int64_t count, float *to,
                       int64_t pitch) {
    switch (count) { /* constant sizes avoid calls */
    case PANEL: copy_lines_of(PANEL, from, step, at, lines, to, pitch); return;
    case PANEL / 2: copy_lines_of(PANEL / 2, from, step, at, lines, to, pitch); return;
    case PANEL / 3: copy_lines_of(PANEL / 3, from, step, at, lines, to, pitch); return;
    default: break;
    }
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        copy_lines_of(4, from + i, step, at, lines, to + i, pitch);
    }
    for (; i < count; i++) {
        copy_lines_of(1, from + i, step, at, lines, to + i, pitch);
    }
}

/* to[k * pitch + i] = the element i strides and k steps from `from`, i < count <= pitch <= PANEL.  `at`: see steps_to;
 * then the stride is 1. */
static void pack(uint32_t type, const uint8_t *from, int64_t step, const int64_t *at, int64_t stride, int64_t depth,
                 int64_t count, float *to, int64_t pitch, uint16_t *halves) {
    const int64_t bytes = dmlk_type_bytes(type);
    const bool half = type == DMLK_FLOAT16;
    uint8_t *bits = half ? (uint8_t *)halves : (uint8_t *)to; /* the elements of one k after the other */
    const int64_t bits_step = pitch * bytes;
    if (stride == 1 && !half) {
        copy_lines((const float *)(const void *)from, step, at, depth, count, to, pitch);
        return;
    }
    for (int64_t k = 0; k < depth && stride == 1; k++) {
        dmlk_widen_float16((const uint16_t *)(const void *)from + steps_to(k, step, at), count, to + k * pitch);
    }
    if (stride == 1) {
        return;
    }
    if (step < stride) {
        dmlk_transpose(bytes, from, stride * bytes, step * bytes, bits, bits_step, depth, count);
    } else {
        for (int64_t k = 0; k < depth; k++) {
            dmlk_gather(from + k * step * bytes, stride * bytes, bytes, count, bits + k * bits_step);
        }
    }
    if (half && count == pitch) {
        dmlk_widen_float16(halves, depth * pitch, to);
    } else if (half) {
        for (int64_t k = 0; k < depth; k++) {
            dmlk_widen_float16(halves + k * pitch, count, to + k * pitch);
        }
    }
}

/* The part of the next source of `pack` that is not yet prefetched, as roughly contiguous lines. */
struct source {
    const uint8_t *at;
    const int64_t *each; /* if not NULL, where the lines are, in elements; `at` is the place of the first one */
    int64_t lines, step, length, apart;
    int64_t share; /* lines to prefetch at once */
};

static struct source source_of(uint32_t type, const uint8_t *from, int64_t step, const int64_t *at, int64_t stride,
                               int64_t depth, int64_t count, int64_t shares) {
    const int64_t bytes = dmlk_type_bytes(type), apart = (at == NULL ? dmlk_min(step, stride) : stride) * bytes;
    struct source s = {.at = from, .each = at, .lines = depth, .step = stride * bytes, .length = count * apart};
    if (at == NULL && step < stride) {
        s.lines = count;
        s.length = depth * apart;
    } else {
        s.step = at == NULL ? step * bytes : bytes;
    }
    s.apart = apart > DMLK_LINE ? apart : DMLK_LINE;
    s.share = (s.lines + shares - 1) / shares;
    return s;
}

static void fetch_share(struct source *s) {
    const int64_t rest = s->lines > s->share ? s->lines - s->share : 0;
    for (; s->lines > rest; s->lines--) {
        for (int64_t i = 0; i < s->length; i += s->apart) {
            FETCH(s->at + i);
        }
        if (s->each == NULL) {
            s->at += s->step;
        } else if (s->lines > 1) {
            s->at += (s->each[1] - s->each[0]) * s->step;
            s->each++;
        }
    }
}

/* --- results --- */

/* Rows of sums that are converted to results. */
struct rows {
    int64_t rows, columns;
    const float *sums, *c; /* NULL: none */
    float *out;
    int64_t sums_stride, c_stride, out_stride; /* from row to row */
    bool c_repeats; /* one number for each row */
};

/* out = alpha sums + beta c + last. */
DMLK_EACH_ISA(scale, (const dmlk_gemm_blocked *p, struct rows r), (p, r)) {
    const float alpha = p->alpha, beta = p->beta, last = p->last;
    for (int64_t row = 0; row < r.rows; row++, r.sums += r.sums_stride, r.out += r.out_stride) {
        const float *restrict sums = r.sums, *c = r.c;
        float *to = r.out;
        const float added = c == NULL ? -0.0f : beta * c[0];
        if (c == NULL || r.c_repeats) {
#pragma GCC ivdep /* c may be the output itself */
            for (int64_t j = 0; j < r.columns; j++) {
                to[j] = dmlk_one_nan(alpha * sums[j] + added + last);
            }
        } else {
#pragma GCC ivdep
            for (int64_t j = 0; j < r.columns; j++) {
                to[j] = dmlk_one_nan(alpha * sums[j] + beta * c[j] + last);
            }
        }
        r.c = c == NULL ? NULL : c + r.c_stride;
    }
}

/* Stores `count` <= PANEL elements of a row. */
static void store_row(const struct job *job, const uint8_t *c, uint8_t *out, int64_t count, const float *sums) {
    const dmlk_gemm_blocked *p = job->p;
    const int64_t stride = p->out.column_stride, bytes = dmlk_type_bytes(p->out.type);
    const bool half = p->out.type == DMLK_FLOAT16;
    float results[PANEL], from_c[PANEL];
    uint16_t halves[PANEL];
    struct rows row = {.rows = 1, .columns = count, .sums = sums};
    row.out = stride == 1 && !half ? (float *)out : results;
    if (p->has_c) {
        pack(p->c.type, c, 0, NULL, p->c.column_stride, 1, count, from_c, PANEL, halves);
        row.c = from_c;
    }
    scale(p, row);
    if (half) {
        dmlk_narrow_floats(results, count, stride == 1 ? (uint16_t *)out : halves);
    }
    if (stride != 1) {
        dmlk_scatter(half ? (const uint8_t *)halves : (const uint8_t *)results, bytes, count, out, stride * bytes);
    }
}

/* Prefetches the output of a tile while it is computed, and what is added to it. */
static void fetch_results(const struct job *job, const struct block *block, int64_t row, int64_t column,
                          const dmlk_f32_kernel *tile) {
    const dmlk_matrix *out = &job->p->out;
    const int64_t bytes = out->column_stride == 1 ? tile->columns * dmlk_type_bytes(out->type) : 0;
    const bool adds = job->finishes && job->finish.added != NULL;
    const uint8_t *added = (const uint8_t *)job->finish.added;
    for (int64_t r = 0; r < tile->rows; r++) {
        const uint8_t *to = element(out, block->at[3], block->row + row + r, block->column + column);
        for (int64_t i = 0; i < bytes; i += DMLK_LINE) {
            FETCH_TO_WRITE(to + i);
        }
        for (int64_t i = 0; i < bytes && adds; i += DMLK_LINE) {
            FETCH(added + (to - job->p->followers->base) + i);
        }
    }
}

/* Stores all rows of a panel, transposed, from the buffer of sums; used if columns of the output are contiguous. */
static void store_panel(const struct job *job, const struct block *block, const dmlk_f32_kernel *tile, int64_t column,
                        uint16_t *halves) {
    const dmlk_gemm_blocked *p = job->p;
    const int64_t bytes = dmlk_type_bytes(p->out.type);
    float added[PANEL];
    struct rows rows = {.rows = block->rows, .columns = tile->columns, .sums = tile->sums, .out = tile->sums};
    rows.sums_stride = rows.out_stride = tile->sums_stride;
    if (p->has_c) {
        pack(p->c.type, element(&p->c, block->at[2], 0, block->column + column), 0, NULL, p->c.column_stride, 1,
             tile->columns, added, PANEL, halves);
        rows.c = added;
    }
    scale(p, rows);
    for (int64_t r = 0; r < block->rows && bytes == 2; r++) {
        float *row = tile->sums + r * tile->sums_stride;
        dmlk_narrow_floats(row, tile->columns, halves);
        memcpy(row, halves, (size_t)(tile->columns * bytes));
    }
    dmlk_transpose(bytes, (const uint8_t *)tile->sums, tile->sums_stride * (int64_t)sizeof(float), bytes,
                   element(&p->out, block->at[3], block->row, block->column + column), p->out.column_stride * bytes,
                   tile->columns, block->rows);
}

static bool is_stored_in_panels(const dmlk_gemm_blocked *p) {
    return p->out.row_stride == 1 && p->out.column_stride != 1 && (!p->has_c || p->c.row_stride == 0);
}

static bool are_floats(const dmlk_matrix *matrix) {
    return matrix->type == DMLK_FLOAT32 && matrix->column_stride == 1;
}

/* Whether `scale` can read c directly: floats, or one number for each row. */
static bool can_add(const dmlk_matrix *c) { return are_floats(c) || (c->type == DMLK_FLOAT32 && c->column_stride == 0); }

static void store_tile(const struct job *job, const struct block *block, int64_t row, int64_t column,
                       const dmlk_f32_kernel *tile) {
    const dmlk_gemm_blocked *p = job->p;
    row += block->row;
    column += block->column;
    if (are_floats(&p->out) && (!p->has_c || can_add(&p->c))) { /* directly */
        scale(p, (struct rows){.rows = tile->rows,
                               .columns = tile->columns,
                               .sums = tile->sums,
                               .sums_stride = tile->sums_stride,
                               .c = p->has_c ? (const float *)(const void *)element(&p->c, block->at[2], row, column) : NULL,
                               .c_stride = p->c.row_stride,
                               .c_repeats = p->c.column_stride == 0,
                               .out = (float *)(void *)element(&p->out, block->at[3], row, column),
                               .out_stride = p->out.row_stride});
        return;
    }
    for (int64_t r = 0; r < tile->rows; r++) {
        const uint8_t *c = p->has_c ? element(&p->c, block->at[2], row + r, column) : NULL;
        store_row(job, c, element(&p->out, block->at[3], row + r, column), tile->columns, tile->sums + r * tile->sums_stride);
    }
}

/* --- results in registers --- */

static bool can_finish(const struct job *job) {
    const dmlk_gemm_blocked *p = job->p;
    const bool has_offsets = !p->has_c || p->c.row_stride == 0 || p->c.column_stride == 0;
    return dmlk_microkernel_f32_form->lanes != 0 && are_floats(&p->out) && p->alpha == 1 && has_offsets;
}

/* Whether the panel of columns that starts at `column` has whole vectors; only the last one of a block may not. */
static bool is_whole(const struct job *job, const struct block *block, int64_t column) {
    return job->finishes && dmlk_min(job->panel, block->columns - column) % dmlk_microkernel_f32_form->lanes == 0;
}

/* The columns of a block whose results are finished in registers. */
static int64_t finished_columns(const struct job *job, const struct block *block) {
    const int64_t last = (block->columns - 1) / job->panel * job->panel;
    return !job->finishes ? 0 : is_whole(job, block, last) ? block->columns : last;
}

static bool has_offsets_of_rows(const dmlk_gemm_blocked *p) { return p->has_c && p->c.row_stride != 0; }

/* Computes beta c + last for `count` columns or rows. */
static void load_offsets(const dmlk_gemm_blocked *p, const uint8_t *c, int64_t stride, int64_t count, float *offsets) {
    if (p->has_c) {
        dmlk_load_singles(p->c.type, c, stride, count, offsets);
    }
    for (int64_t i = 0; i < count; i++) {
        offsets[i] = (p->has_c ? p->beta * offsets[i] : -0.0f) + p->last;
    }
}

/* Sets where the results of a tile are stored.  `offsets` are those of its columns, unless they are those of rows. */
static void set_results(const struct job *job, const struct block *block, int64_t row, int64_t column, int64_t rows,
                        float *offsets, dmlk_f32_results *results) {
    const dmlk_gemm_blocked *p = job->p;
    uint8_t *out = element(&p->out, block->at[3], block->row + row, block->column + column);
    *results = (dmlk_f32_results){.out = (float *)(void *)out,
                                  .stride = p->out.row_stride,
                                  .offsets = offsets,
                                  .are_of_rows = has_offsets_of_rows(p),
                                  .finish = &job->finish};
    if (job->finish.added != NULL) {
        results->added = job->finish.added + (out - p->followers->base) / p->followers->bytes;
    }
    if (results->are_of_rows) {
        load_offsets(p, element(&p->c, block->at[2], block->row + row, 0), p->c.row_stride, rows, offsets);
    }
}

/* --- blocks --- */

/* Step `k` of the block of columns of b, or of rows of a, that starts at `first`. */
static const float *in_block(const dmlk_matrix *matrix, const uint8_t *base, int64_t first, int64_t k) {
    return (const float *)(const void *)base + first / DMLK_F32_BLOCK * matrix->block_step + k * DMLK_F32_BLOCK;
}

static const int64_t *table_from(const int64_t *table, int64_t first) { return table == NULL ? NULL : table + first; }

/* Packs a panel of rows of a, as the columns of a transposed. */
static void pack_a(const struct job *job, const struct block *block, int64_t row, struct scratch *s) {
    const dmlk_matrix *a = &job->p->a;
    if (a->patches != NULL) {
        dmlk_pack_patches(a->patches, block->at[0], block->first, block->depth, block->row + row,
                          dmlk_min(A_PANEL, block->rows - row), s->a[row / A_PANEL], A_PANEL, s->halves);
        return;
    }
    pack(a->type, element(a, block->at[0], block->row + row, block->first), a->column_stride,
         table_from(a->column_at, block->first), a->row_stride, block->depth, dmlk_min(A_PANEL, block->rows - row),
         s->a[row / A_PANEL], A_PANEL, s->halves);
}

/* The source of the next panel of rows, or of the next tile in blocks, if there is one. */
static struct source source_of_a(const struct job *job, const struct block *block, int64_t row) {
    const dmlk_matrix *a = &job->p->a;
    const int64_t next = row + (a->block != 0 ? job->tile_rows : A_PANEL);
    if (next < block->rows && a->block != 0) {
        const uint8_t *from = (const uint8_t *)in_block(a, block->at[0], block->row + next, block->first);
        return source_of(a->type, from, DMLK_F32_BLOCK, NULL, 1, block->depth, DMLK_F32_BLOCK, 1);
    }
    if (next >= block->rows || a->patches != NULL) {
        return (struct source){0};
    }
    return source_of(a->type, element(a, block->at[0], block->row + next, block->first), a->column_stride,
                     table_from(a->column_at, block->first), a->row_stride, block->depth,
                     dmlk_min(A_PANEL, block->rows - next), A_PANEL / ROWS);
}

/* Packs the panels of columns `column` .. `end` - 1, a few rows of b at a time, as rows may be pages apart. */
static void pack_b(const struct job *job, const struct block *block, int64_t column, int64_t end, struct scratch *s) {
    const dmlk_matrix *b = &job->p->b;
    const int64_t panel = job->panel, most = b->patches == NULL && b->column_stride == 1 ? GROUP_STEPS : block->depth;
    for (int64_t k = 0; k < block->depth; k += most) {
        const int64_t depth = dmlk_min(most, block->depth - k);
        float *to = s->b + k * panel;
        for (int64_t j = column; j < end; j += panel, to += DEPTH * panel) {
            const int64_t count = dmlk_min(panel, end - j), first = block->first + k;
            if (b->patches != NULL) {
                dmlk_pack_patches(b->patches, block->at[1], first, depth, block->column + j, count, to, panel, s->halves);
            } else {
                pack(b->type, element(b, block->at[1], first, block->column + j), b->row_stride,
                     table_from(b->row_at, first), b->column_stride, depth, count, to, panel, s->halves);
            }
        }
    }
}

/* The source of the group after the one that starts at `column`: the next columns, or the first columns of the next
 * piece of the depth. */
static struct source source_of_b(const struct job *job, const struct block *block, int64_t column, int64_t shares) {
    const dmlk_matrix *b = &job->p->b;
    const bool same = column + job->group < block->columns;
    const int64_t next = same ? column + job->group : 0, first = block->first + (same ? 0 : block->depth);
    if (first >= job->p->depth || b->patches != NULL || b->block != 0 || job->reads_b) { /* blocks are contiguous */
        return (struct source){0};
    }
    return source_of(b->type, element(b, block->at[1], first, block->column + next), b->row_stride,
                     table_from(b->row_at, first), b->column_stride, dmlk_min(block->depth, job->p->depth - first),
                     dmlk_min(job->group, block->columns - next), shares);
}

/* Whether rows of a can be read in place.  (If columns are contiguous, each element would be in another cache line.) */
static bool is_direct(const dmlk_matrix *a) {
    return a->patches == NULL && a->type == DMLK_FLOAT32 &&
           (a->column_stride == 1 || a->row_at != NULL || a->block != 0);
}

/* The rows of the tile that starts at `row`. */
static const float *rows_at(const struct job *job, const struct block *block, int64_t row, const struct scratch *s) {
    const dmlk_matrix *a = &job->p->a;
    if (a->row_at != NULL) {
        return (const float *)(const void *)block->at[0];
    }
    if (a->block != 0) {
        return in_block(a, block->at[0], block->row + row, block->first);
    }
    return is_direct(a) ? (const float *)(const void *)element(a, block->at[0], block->row + row, block->first)
                        : &s->a[row / A_PANEL][row % A_PANEL];
}

/* The columns of the tile that starts at `column`. */
static const float *columns_at(const struct job *job, const struct block *block, int64_t column, const struct scratch *s) {
    const dmlk_matrix *b = &job->p->b;
    if (b->block != 0) {
        return in_block(b, block->at[1], block->column + column, block->first);
    }
    if (!job->reads_b) {
        return s->b + column % job->group * DEPTH;
    }
    const int64_t row = b->row_at == NULL ? block->first * b->row_stride : 0; /* else the table of the tile says it */
    return (const float *)(const void *)block->at[1] + row + block->column + column;
}

/* Whether a has few rows, not read through a table, and b can be read once, in place, without panels: its rows or its
 * columns are contiguous. */
static bool has_few_rows(const dmlk_gemm_blocked *p) {
    const bool by_columns = p->b.row_stride == 1 && p->b.type == DMLK_FLOAT32 && p->n >= DMLK_FEW_COLUMNS &&
                            dmlk_few_rows_form != NULL;
    return p->m <= FEW_ROWS && p->a.row_at == NULL && p->a.column_at == NULL && p->b.row_at == NULL && p->a.patches == NULL && p->b.patches == NULL && p->a.block == 0 && p->b.block == 0 &&
           (p->b.column_stride == 1 || by_columns);
}

/* Whether to read b in place, though it is not in blocks.  (Tiles have one table, and read whole blocks of columns.) */
static bool can_read_b(const dmlk_gemm_blocked *p) {
    const dmlk_matrix *b = &p->b;
    const int64_t step = b->row_at == NULL ? b->row_stride : p->n;
    return p->may_read_b && p->n <= MOST_READ_RESULTS / p->m && step <= MOST_READ_STEP &&
           p->n % DMLK_F32_BLOCK == 0 && b->type == DMLK_FLOAT32 && b->column_stride == 1 && b->patches == NULL &&
           b->block == 0 && (p->a.row_at == NULL || b->row_at == NULL) && !has_few_rows(p);
}

/* Multiplies all rows of the block by the panel of columns that starts at `column`; `next_b` is the source to
 * prefetch. */
static void multiply_panel(const struct job *job, const struct block *block, int64_t column, struct source *next_b,
                           struct scratch *s) {
    const dmlk_matrix *a = &job->p->a;
    const bool direct = is_direct(a), in_blocks = job->p->b.block != 0, in_panels = is_stored_in_panels(job->p);
    const int64_t tiles = (block->rows + job->tile_rows - 1) / job->tile_rows;
    dmlk_f32_kernel tile = {.columns = dmlk_min(job->panel, block->columns - column),
                       .depth = block->depth,
                       .is_first = block->first == 0,
                       .row_stride = direct ? a->row_stride : 1,
                       .row_step = direct ? a->column_stride : A_PANEL,
                       .step_at = a->row_at == NULL ? NULL : a->column_at + block->first,
                       .column = columns_at(job, block, column, s),
                       .column_step = in_blocks ? DMLK_F32_BLOCK : job->reads_b ? job->p->b.row_stride : job->panel,
                       .column_at = job->reads_b ? table_from(job->p->b.row_at, block->first) : NULL,
                       .block_step = in_blocks ? job->p->b.block_step : 0,
                       .sums_stride = job->panel};
    const bool finishes = block->is_last && is_whole(job, block, column);
    float offsets[PANEL];
    dmlk_f32_results results;
    if (finishes) {
        tile.results = &results;
        if (!has_offsets_of_rows(job->p)) {
            load_offsets(job->p, element(&job->p->c, block->at[2], 0, block->column + column), job->p->c.column_stride,
                         tile.columns, offsets);
        }
    }
    struct source next_a = {0};
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t row = i * job->tile_rows;
        if ((!direct || a->block != 0) && column == 0) {
            if (!direct && row % A_PANEL == 0) {
                pack_a(job, block, row, s);
            }
            if (direct || row % A_PANEL == 0) {
                next_a = source_of_a(job, block, row);
            }
            fetch_share(&next_a);
        }
        fetch_share(next_b);
        tile.rows = dmlk_min(job->tile_rows, block->rows - row);
        tile.row = rows_at(job, block, row, s);
        tile.row_at = a->row_at == NULL ? NULL : a->row_at + block->row + row;
        tile.sums = s->sums + column * block->rows + row * job->panel;
        if (block->is_last && !job->is_near) {
            fetch_results(job, block, row, column, &tile);
        }
        if (finishes) {
            set_results(job, block, row, column, tile.rows, offsets, &results);
        }
        dmlk_f32_tile(&tile);
        if (block->is_last && !in_panels && !finishes) {
            store_tile(job, block, row, column, &tile);
        }
    }
    if (block->is_last && in_panels) {
        tile.sums = s->sums + column * block->rows;
        store_panel(job, block, &tile, column, s->halves);
    }
}

static void multiply_block(const struct job *job, struct block *block, struct scratch *s, int64_t *work) {
    const int64_t depth = job->p->depth, tiles = (block->rows + job->tile_rows - 1) / job->tile_rows;
    for (block->first = 0; block->first < depth; block->first += job->depth) {
        block->depth = dmlk_min(job->depth, depth - block->first);
        block->is_last = block->first + job->depth >= depth;
        struct source next = {0};
        for (int64_t column = 0; column < block->columns; column += job->panel) {
            if (dmlk_stopped(work, block->rows * job->panel * block->depth / 16)) {
                return;
            }
            if (column % job->group == 0) {
                const int64_t end = dmlk_min(column + job->group, block->columns);
                if (job->p->b.block == 0 && !job->reads_b) {
                    pack_b(job, block, column, end, s);
                }
                next = job->is_near ? next : source_of_b(job, block, column, tiles * ((end - column + job->panel - 1) / job->panel));
            }
            multiply_panel(job, block, column, &next, s);
        }
    }
}

/* Adds to the sums of the block's rows, which are block->columns apart: eight contiguous rows of b at a time. */
static bool add_lines(const struct job *job, const struct block *block, const float *a, float *sums, float *widened, int64_t *work) {
    const dmlk_matrix *b = &job->p->b;
    for (int64_t k = 0; k < block->depth; k += DMLK_FEW_LINES) {
        const int64_t lines = dmlk_min(DMLK_FEW_LINES, block->depth - k);
        if (dmlk_stopped(work, block->columns * lines / 16 + 1)) {
            return false;
        }
        for (int64_t first = 0; first < block->columns; first += CHUNK) {
            const int64_t count = dmlk_min(CHUNK, block->columns - first);
            const uint8_t *at = element(b, block->at[1], block->first + k, block->column + first);
            const float *from = (const float *)(const void *)at;
            int64_t stride = b->row_stride;
            for (int64_t i = 0; i < lines && b->type == DMLK_FLOAT16; i++) {
                dmlk_widen_float16((const uint16_t *)(const void *)at + i * stride, count, widened + i * CHUNK);
            }
            if (b->type == DMLK_FLOAT16) {
                from = widened, stride = CHUNK;
            }
            for (int64_t r = 0; r < block->rows; r++) {
                const float *factors = a + r * ROW_DEPTH + k;
                float *to = sums + r * block->columns + first;
                if (lines == DMLK_FEW_LINES) {
                    dmlk_add_lines(factors, from, stride, count, to);
                    continue;
                }
                for (int64_t i = 0; i < lines; i++) {
                    dmlk_f32_step(factors[i], from + i * stride, count, to);
                }
            }
        }
    }
    return true;
}

/* The same if the columns of b are contiguous. */
static bool add_columns(const struct job *job, const struct block *block, const float *a, float *sums, int64_t *work) {
    const dmlk_matrix *b = &job->p->b;
    for (int64_t column = 0; column < block->columns; column += DMLK_FEW_COLUMNS) {
        if (dmlk_stopped(work, block->depth / 2 + 1)) {
            return false;
        }
        const uint8_t *from = element(b, block->at[1], block->first, block->column + column);
        const int64_t there = block->columns - column;
        if (there >= DMLK_FEW_COLUMNS) {
            dmlk_few_rows_form->add_columns(a, ROW_DEPTH, block->rows, (const float *)(const void *)from, b->column_stride,
                                            block->depth, sums + column, block->columns);
            continue;
        }
        for (int64_t r = 0; r < block->rows; r++) {
            for (int64_t j = 0; j < there; j++) {
                float *sum = &sums[r * block->columns + column + j];
                const float *at = (const float *)(const void *)from + j * b->column_stride;
                for (int64_t k = 0; k < block->depth; k++) {
                    *sum = fmaf(a[r * ROW_DEPTH + k], at[k], *sum);
                }
            }
        }
    }
    return true;
}

static void multiply_few(const struct job *job, struct block *block, struct scratch *s, int64_t *work) {
    const dmlk_gemm_blocked *p = job->p;
    float *sums = s->sums, *a = s->a[0];
    memset(sums, 0, (size_t)(block->rows * block->columns) * sizeof *sums);
    for (block->first = 0; block->first < p->depth; block->first += ROW_DEPTH) {
        block->depth = dmlk_min(ROW_DEPTH, p->depth - block->first);
        for (int64_t r = 0; r < block->rows; r++) {
            dmlk_load_singles(p->a.type, element(&p->a, block->at[0], r, block->first), p->a.column_stride, block->depth,
                              a + r * ROW_DEPTH);
        }
        const bool by_lines = p->b.column_stride == 1;
        if (!(by_lines ? add_lines(job, block, a, sums, s->b, work) : add_columns(job, block, a, sums, work))) {
            return;
        }
    }
    for (int64_t i = 0; i < block->rows; i++) {
        for (int64_t column = 0; column < block->columns; column += PANEL) {
            const dmlk_f32_kernel tile = {.rows = 1,
                                          .columns = dmlk_min(PANEL, block->columns - column),
                                          .sums = sums + i * block->columns + column};
            store_tile(job, block, i, column, &tile);
        }
    }
}

/* Finds part `i` of `count` items that are split into `parts` parts of whole units. */
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
        split(job->p->n, job->panel, job->column_blocks, item % job->column_blocks, &block.column, &block.columns);
        const int64_t rest = item / job->column_blocks;
        split(job->p->m, job->tile_rows, job->row_blocks, rest % job->row_blocks, &block.row, &block.rows);
        dmlk_cursor cursor;
        dmlk_iter_seek(&job->p->batch, rest / job->row_blocks, &cursor);
        memcpy(block.at, cursor.at, sizeof block.at);
        block.at[0] = cursor.at[job->turned];
        block.at[1] = cursor.at[!job->turned];
        int64_t done = 0; /* columns whose functions have run */
        if (has_few_rows(job->p)) {
            multiply_few(job, &block, scratch, &work);
        } else {
            multiply_block(job, &block, scratch, &work);
            done = finished_columns(job, &block);
        }
        const dmlk_matrix *out = &job->p->out;
        if (done < block.columns) {
            dmlk_follow(job->p->followers, element(out, block.at[3], block.row, block.column + done), block.rows,
                        out->row_stride, block.columns - done, out->column_stride);
        }
    }
    dmlk_give(scratch);
}

/* The vectors of 16 columns in a tile of m x n. */
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
    const int64_t panels = (p->n + job->panel - 1) / job->panel, tiles = (p->m + job->tile_rows - 1) / job->tile_rows;
    const int shift = p->a.row_at == NULL ? 0 : SHIFT;
    int64_t most_rows = MAX_ROWS << shift;
    int64_t most = has_few_rows(p) ? MAX_FEW_ROWS_COLUMNS : (MAX_COLUMNS >> shift) / PANEL * PANEL;
    if (p->b.block != 0 && is_direct(&p->a)) { /* nothing is packed; long rows suit the functions that follow */
        most = dmlk_min(2 * MAX_COLUMNS, panels * job->panel);
        most_rows = MAX_ROWS * MAX_COLUMNS / most / ROWS * ROWS;
    }
    job->row_blocks = (p->m + most_rows - 1) / most_rows;
    job->column_blocks = (p->n + most - 1) / most;
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

/* Whether blocks, if there are any, can be read in place. */
static bool blocks_fit(const dmlk_matrix *matrix, int64_t stride, int64_t step) {
    return matrix->block == 0 || (matrix->block == DMLK_F32_BLOCK && matrix->type == DMLK_FLOAT32 && stride == 1 &&
                                  step == DMLK_F32_BLOCK && matrix->block_step != 0);
}

bool dmlk_multiply(const dmlk_gemm_blocked *product) {
    if (!blocks_fit(&product->a, product->a.row_stride, product->a.column_stride) ||
        !blocks_fit(&product->b, product->b.column_stride, product->b.row_stride)) {
        return false;
    }
    const dmlk_gemm_blocked turned = turn(product);
    struct job job = {.p = product};
    const bool in_blocks = product->b.block != 0;
    job.tile_rows = product->a.block != 0 ? DMLK_F32_BLOCK : ROWS;
    if (in_blocks && is_direct(&product->a)) { /* as even: a last tile of one row would wait for each sum */
        const int64_t tiles = (product->m + ROWS - 1) / ROWS;
        job.tile_rows = (product->m + tiles - 1) / tiles;
    }
    job.panel = in_blocks && product->depth <= DEPTH / 4 ? PANEL : dmlk_f32_width(in_blocks || product->a.row_at != NULL);
    if (in_blocks) { /* of even width: a last panel of 16 columns is slow */
        const int64_t most = job.panel, panels = (product->n + most - 1) / most;
        job.panel = ((product->n + panels - 1) / panels + DMLK_F32_BLOCK - 1) / DMLK_F32_BLOCK * DMLK_F32_BLOCK;
    }
    job.turned = product->a.row_at == NULL && !in_blocks && product->a.block == 0 && 2 * vectors(product->n, product->m) <= vectors(product->m, product->n);
    job.p = job.turned ? &turned : product;
    job.depth = in_blocks && product->m <= FEW_ROWS && is_direct(&product->a) ? product->depth : DEPTH;
    job.reads_b = can_read_b(job.p);
    job.finishes = can_finish(&job) && dmlk_find_finish(product->followers, &job.finish) &&
                   !(job.finish.for_positive_zeros && signbit(product->last));
    job.group = job.p->b.patches != NULL || in_blocks ? job.panel : GROUP / job.panel * job.panel;
    const double m = (double)product->m, n = (double)product->n, depth = (double)product->depth;
    job.is_near = (m * n + m * depth + depth * n) * (double)sizeof(float) <= (double)NEAR_BYTES;
    const double work = (m * n * depth + 16 * (m * depth + depth * n)) * (double)product->batch.count;
    const int threads = dmlk_parts(INT64_MAX, work < WORTH_THREADS ? INT64_MAX : 1);
    const int64_t blocks = plan_blocks(&job, threads);
    const dmlk_pool_phase multiply = {
        .items = blocks, .parts = (int)dmlk_min(threads, blocks), .run = multiply_part, .context = &job, .after = 1};
    if (product->before != NULL) {
        dmlk_run_phases((dmlk_pool_phase[]){*product->before, multiply}, 2);
    } else {
        dmlk_parallel(multiply.items, multiply.parts, multiply.run, multiply.context);
    }
    return !atomic_load(&job.failed);
}
