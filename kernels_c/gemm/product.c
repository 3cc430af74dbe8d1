/* product.c - see product.h.
 *
 * The output is worked on in blocks of about 384 x 240.  For each, a piece of the depth after the other, the rows
 * of a (unless they can be read where they are) and the columns of b are copied as floats into panels in which the
 * numbers that are multiplied together lie next to each other, whatever their strides and types; the tiles of
 * dot32.h know no layouts.  Sums of a block stay
 * in memory of their own until the last piece, so that they are rounded to the output's type once. */
#include "product.h"

#include <stdatomic.h>

#include "access.h"
#include "dot32.h"
#include "element.h"
#include "isa.h"
#include "parallel.h"
#include "scratch.h"
#include "stop.h"
#include "transpose.h"
#include "wide.h"

#ifdef DMLK_X86
#include <immintrin.h>
#endif

#define ROWS DMLK_DOT32_ROWS
#define COLUMNS DMLK_DOT32_COLUMNS
#define BLOCK_ROWS 384 /* together with the next two, panels and sums of a block fit into a second-level cache */
#define BLOCK_PANELS 5 /* of COLUMNS columns */
#define BLOCK_DEPTH 192

/* Memory of one thread. */
struct scratch {
    float a[BLOCK_ROWS][BLOCK_DEPTH];
    float b[BLOCK_PANELS][BLOCK_DEPTH][COLUMNS];
    float sums[BLOCK_PANELS][BLOCK_ROWS][COLUMNS];
};

struct job {
    const dmlk_product *p;
    int64_t row_blocks, panel_blocks;
    dmlk_dot32 *tile;
    enum dmlk_isa isa;
    atomic_bool failed; /* a thread had no memory */
};

/* A piece of the output: its rows and columns. */
struct block {
    int64_t row, rows, column, columns;
};

static inline float read_float(uint32_t type, const uint8_t *base, int64_t i) {
    if (type == DMLK_FLOAT32) {
        float x;
        memcpy(&x, base + 4 * i, 4);
        return x;
    }
    uint16_t half;
    memcpy(&half, base + 2 * i, 2);
    return dmlk_half_to_float(half);
}

/* --- panels --- */

#ifdef DMLK_X86
DMLK_AVX512 static void halves_to_floats(const uint16_t *from, int64_t count, float *to) {
    for (int64_t i = 0; i < count; i += 16) {
        const __mmask16 there = (__mmask16)(0xffff >> (16 - dmlk_min(16, count - i)));
        const __m256i halves = _mm256_maskz_loadu_epi16(there, from + i);
        _mm512_mask_storeu_ps(to + i, there, _mm512_cvtph_ps(halves));
    }
}
#endif

/* to[line][i] = element i of each line, lines `line_stride` apart; for those whose elements follow each other. */
static void pack_lines(const struct job *job, const dmlk_matrix *matrix, const uint8_t *base, int64_t line_stride,
                       int64_t stride, int64_t lines, int64_t count, float *to, int64_t to_stride) {
    const uint32_t type = matrix->type;
    for (int64_t line = 0; line < lines; line++, to += to_stride) {
        const uint8_t *from = base + line * line_stride * dmlk_type_bytes(type);
        if (stride == 1 && type == DMLK_FLOAT32) {
            memcpy(to, from, (size_t)count * sizeof *to);
            continue;
        }
#ifdef DMLK_X86
        if (stride == 1 && job->isa == DMLK_ISA_AVX512) {
            halves_to_floats((const uint16_t *)from, count, to);
            continue;
        }
#endif
        for (int64_t i = 0; i < count; i++) {
            to[i] = read_float(type, from, i * stride);
        }
    }
}

/* The same where elements of neighbouring lines follow each other rather than those of a line. */
static void pack_across(const dmlk_matrix *matrix, const uint8_t *base, int64_t line_stride, int64_t stride,
                        int64_t lines, int64_t count, float *to, int64_t to_stride) {
    const int64_t bytes = dmlk_type_bytes(matrix->type);
    if (matrix->type == DMLK_FLOAT32 && line_stride == 1) {
        dmlk_transpose(bytes, base, stride * bytes, bytes, (uint8_t *)to, to_stride * bytes, lines, count, 0);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        for (int64_t line = 0; line < lines; line++) {
            to[line * to_stride + i] = read_float(matrix->type, base + i * stride * bytes, line * line_stride);
        }
    }
}

static void pack(const struct job *job, const dmlk_matrix *matrix, const uint8_t *base, int64_t line_stride,
                 int64_t stride, int64_t lines, int64_t count, float *to, int64_t to_stride) {
    if (stride <= line_stride) {
        pack_lines(job, matrix, base, line_stride, stride, lines, count, to, to_stride);
    } else {
        pack_across(matrix, base, line_stride, stride, lines, count, to, to_stride);
    }
}

/* Rows of a can be read where they are, as far as they fill tiles. */
static bool is_direct(const dmlk_matrix *a) { return a->type == DMLK_FLOAT32 && a->column_stride == 1; }

/* Rows of a, from `first` of the depth on; the last rows of the last tile are whatever they were. */
static void pack_a(const struct job *job, const uint8_t *a, const struct block *block, int64_t first, int64_t depth,
                   struct scratch *s) {
    const dmlk_matrix *matrix = &job->p->a;
    const int64_t skipped = is_direct(matrix) ? block->rows / ROWS * ROWS : 0;
    const int64_t at = (block->row + skipped) * matrix->row_stride + first * matrix->column_stride;
    pack(job, matrix, a + at * dmlk_type_bytes(matrix->type), matrix->row_stride, matrix->column_stride,
         block->rows - skipped, depth, s->a[skipped], BLOCK_DEPTH);
}

/* Columns of b, 48 to a panel; columns past the last one are 0. */
static void pack_b(const struct job *job, const uint8_t *b, const struct block *block, int64_t first, int64_t depth,
                   struct scratch *s) {
    const dmlk_matrix *matrix = &job->p->b;
    for (int64_t j = 0; j < block->columns; j += COLUMNS) {
        const int64_t count = dmlk_min(COLUMNS, block->columns - j);
        float(*panel)[COLUMNS] = s->b[j / COLUMNS];
        if (count < COLUMNS) {
            memset(panel, 0, (size_t)depth * sizeof *panel);
        }
        const int64_t at = first * matrix->row_stride + (block->column + j) * matrix->column_stride;
        pack(job, matrix, b + at * dmlk_type_bytes(matrix->type), matrix->row_stride, matrix->column_stride, depth,
             count, panel[0], COLUMNS);
    }
}

/* --- results --- */

/* One row of a tile. */
static void store_row(const dmlk_product *p, const uint8_t *c, uint8_t *out, int64_t count, const float *sums) {
    const int64_t stride = p->out.column_stride;
    for (int64_t j = 0; j < count; j++) {
        float x = p->alpha * sums[j];
        if (p->has_c) {
            x += p->beta * read_float(p->c.type, c, j * p->c.column_stride);
        }
        if (p->out.type == DMLK_FLOAT32) {
            memcpy(out + 4 * j * stride, &x, 4);
        } else {
            const uint16_t half = dmlk_float_to_half(x);
            memcpy(out + 2 * j * stride, &half, 2);
        }
    }
}

#ifdef DMLK_X86
/* The same where elements of a row follow each other, and without c. */
DMLK_AVX512 static void store_row_avx512(const dmlk_product *p, uint8_t *out, int64_t count, const float *sums) {
    const __m512 alpha = _mm512_set1_ps(p->alpha);
    for (int64_t j = 0; j < count; j += 16) {
        const __mmask16 there = (__mmask16)(0xffff >> (16 - dmlk_min(16, count - j)));
        const __m512 x = _mm512_mul_ps(alpha, _mm512_loadu_ps(sums + j));
        if (p->out.type == DMLK_FLOAT32) {
            _mm512_mask_storeu_ps((float *)out + j, there, x);
        } else {
            const __m256i halves = _mm512_maskz_cvtps_ph(there, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
            _mm256_mask_storeu_epi16((uint16_t *)out + j, there, halves);
        }
    }
}
#endif

static void store_block(const struct job *job, const uint8_t *c, uint8_t *out, const struct block *block,
                        const struct scratch *s) {
    const dmlk_product *p = job->p;
    const int64_t c_bytes = p->has_c ? dmlk_type_bytes(p->c.type) : 0, out_bytes = dmlk_type_bytes(p->out.type);
    for (int64_t r = 0; r < block->rows; r++) {
        for (int64_t j = 0; j < block->columns; j += COLUMNS) {
            const int64_t row = block->row + r, column = block->column + j;
            const int64_t at = (row * p->out.row_stride + column * p->out.column_stride) * out_bytes;
            const int64_t count = dmlk_min(COLUMNS, block->columns - j);
#ifdef DMLK_X86
            if (job->isa == DMLK_ISA_AVX512 && p->out.column_stride == 1 && !p->has_c) {
                store_row_avx512(p, out + at, count, s->sums[j / COLUMNS][r]);
                continue;
            }
#endif
            const int64_t at_c = (row * p->c.row_stride + column * p->c.column_stride) * c_bytes;
            store_row(p, c + at_c, out + at, count, s->sums[j / COLUMNS][r]);
        }
    }
}

/* --- blocks --- */

/* One panel of columns with all rows of the block; `a`: where the matrix begins. */
static void multiply_panel(const struct job *job, const uint8_t *a, const struct block *block, int64_t panel,
                           int64_t first, int64_t count, struct scratch *s) {
    for (int64_t r = 0; r < block->rows; r += ROWS) {
        const bool direct = is_direct(&job->p->a) && r + ROWS <= block->rows;
        const int64_t stride = direct ? job->p->a.row_stride : BLOCK_DEPTH;
        const float *rows = direct ? (const float *)a + (block->row + r) * stride + first : s->a[r];
        job->tile((const float(*)[COLUMNS])s->b[panel], rows, stride, count, s->sums[panel] + r);
    }
}

static void multiply_block(const struct job *job, uint8_t *const at[4], const struct block *block, struct scratch *s,
                           int64_t *work) {
    const int64_t depth = job->p->depth, panels = (block->columns + COLUMNS - 1) / COLUMNS;
    for (int64_t i = 0; i < panels; i++) {
        memset(s->sums[i], 0, (size_t)((block->rows + ROWS - 1) / ROWS * ROWS) * sizeof s->sums[i][0]);
    }
    for (int64_t first = 0; first < depth; first += BLOCK_DEPTH) {
        const int64_t count = dmlk_min(BLOCK_DEPTH, depth - first);
        if (dmlk_stopped(work, block->rows * block->columns * count / 16)) {
            return;
        }
        pack_a(job, at[0], block, first, count, s);
        pack_b(job, at[1], block, first, count, s);
        for (int64_t i = 0; i < panels; i++) {
            multiply_panel(job, at[0], block, i, first, count, s);
        }
    }
    store_block(job, at[2], at[3], block, s);
}

/* Part `i` of `count` things split into `parts` parts of whole `unit`s. */
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
        split(job->p->n, COLUMNS, job->panel_blocks, item % job->panel_blocks, &block.column, &block.columns);
        const int64_t rest = item / job->panel_blocks;
        split(job->p->m, ROWS, job->row_blocks, rest % job->row_blocks, &block.row, &block.rows);
        dmlk_cursor cursor;
        dmlk_iter_seek(&job->p->batch, rest / job->row_blocks, &cursor);
        multiply_block(job, cursor.at, &block, scratch, &work);
    }
    dmlk_give(scratch);
}

bool dmlk_multiply(const dmlk_product *p) {
    const int64_t panels = (p->n + COLUMNS - 1) / COLUMNS;
    struct job job = {.p = p, .isa = dmlk_isa(), .tile = dmlk_dot32_tile(dmlk_isa())};
    job.row_blocks = (p->m + BLOCK_ROWS - 1) / BLOCK_ROWS;
    job.panel_blocks = (panels + BLOCK_PANELS - 1) / BLOCK_PANELS;
    const double products = (double)p->m * (double)p->n * (double)p->depth * (double)p->batch.count;
    const int most = dmlk_parts(INT64_MAX, products < 4e6 ? INT64_MAX : 1);
    while (p->batch.count * job.row_blocks * job.panel_blocks % most != 0 && job.row_blocks < p->m / ROWS &&
           p->batch.count * job.row_blocks * job.panel_blocks < 16 * most) {
        job.row_blocks++; /* as much for each thread */
    }
    const int64_t items = p->batch.count * job.row_blocks * job.panel_blocks;
    dmlk_parallel(items, (int)dmlk_min(most, items), multiply_part, &job);
    return !atomic_load(&job.failed);
}
