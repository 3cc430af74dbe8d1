/* nonzero_words.h - the inner loops of nonzero.c, which each form compiles for its instruction set: they find the
 * elements of a row that are not zero, as words of bits, and write the rows of coordinates of the set bits.
 *
 * Rows are made in batches, in three steps: the positions of the set bits, in logical order; their coordinates, for
 * the whole batch, axis by axis; and the stores of the columns.  Rows of four columns, the usual case, are built in
 * registers instead.  Output that bypasses the caches is written in whole cache lines. */
#ifndef DMLK_NONZERO_WORDS_H
#define DMLK_NONZERO_WORDS_H

#include "ahead.h"
#include "cancellation.h"
#include "gather.h"
#include "nontemporal.h"
#include "nonzero.h"
#include "promoted.h"

#define DMLK_NONZERO_WORD 64   /* elements whose bits are in one word */
#define DMLK_NONZERO_BATCH 512 /* rows */
#define DMLK_NONZERO_PARTS 64  /* the most threads */
#define MAX_ROWS_TO_A_LINE (DMLK_LINE / (int64_t)sizeof(uint32_t)) /* rows from one start of a cache line to the next */
#define INLINE static inline __attribute__((always_inline))

/* Division by the size of an axis: (place * factor) >> shift is place / size, exactly, for every place of 31 bits. */
struct division {
    uint32_t factor, shift; /* factor 0: the outermost axis, along which the position itself is the coordinate */
    uint32_t size;
};

typedef struct dmlk_nonzero_job {
    const dmlk_iter *iter;
    const dmlk_nonzero_table *table;
    uint64_t keep;                        /* mask of the bits that make an element nonzero, for 8 bytes of elements */
    struct division axes[DMLK_MAX_RANK];  /* by column */
    int64_t first, count;                 /* elements of this block */
    uint64_t *bits;
    int64_t rows[DMLK_NONZERO_PARTS + 1];         /* first row of each part */
    bool stream;                          /* the output bypasses the caches */
} dmlk_nonzero_job;

/* Collects bits of elements, in order, into words. */
typedef struct dmlk_nonzero_words {
    uint64_t *to, pending; /* the lowest `filled` bits of the next word */
    int64_t filled, set;   /* set: number of 1 bits */
} dmlk_nonzero_words;

/* See dispatch/choose.c. */
extern const struct dmlk_nonzero_form {
    /* Appends the bits of a piece of a row: `count` elements, `stride` apart. */
    void (*find_row)(const dmlk_nonzero_job *job, const uint8_t *at, int64_t stride, int64_t count, dmlk_nonzero_words *words);
    /* Writes the rows of words begin .. end - 1 of the block, from row `row` of the table on. */
    void (*write_words)(const dmlk_nonzero_job *job, int64_t begin, int64_t end, int64_t row);
} *dmlk_nonzero_form;

/* --- which elements are not zero --- */

/* Returns a word whose bit i says that element i is not zero, for 64 contiguous elements of 1, 2, 4 or 8 bytes. */
typedef uint64_t find_word(const uint8_t *at, int64_t bytes, uint64_t keep);

INLINE void append(dmlk_nonzero_words *words, uint64_t word, int64_t count) {
    words->set += __builtin_popcountll(word);
    words->pending |= word << words->filled;
    const int64_t filled = words->filled + count;
    if (filled >= DMLK_NONZERO_WORD) {
        *words->to++ = words->pending;
        words->pending = words->filled > 0 ? word >> (DMLK_NONZERO_WORD - words->filled) : 0;
    }
    words->filled = filled % DMLK_NONZERO_WORD;
}

/* Appends the bits of a piece of a row: `count` elements, `stride` apart. */
INLINE void find_row(find_word *find, const dmlk_nonzero_job *job, const uint8_t *at, int64_t stride, int64_t count,
                            dmlk_nonzero_words *words) {
    const int64_t bytes = job->iter->bytes[0], step = stride * bytes;
    int64_t i = 0;
    for (; stride == 1 && i + DMLK_NONZERO_WORD <= count; i += DMLK_NONZERO_WORD) {
        append(words, find(at + i * bytes, bytes, job->keep), DMLK_NONZERO_WORD);
    }
    for (; i < count; i += DMLK_NONZERO_WORD) {
        uint64_t piece[DMLK_NONZERO_WORD]; /* for elements of any size */
        const int64_t n = dmlk_min(count - i, DMLK_NONZERO_WORD);
        dmlk_gather(at + i * step, step, bytes, n, (uint8_t *)piece);
        const uint64_t word = find((const uint8_t *)piece, bytes, job->keep);
        append(words, n < DMLK_NONZERO_WORD ? word & ((UINT64_C(1) << n) - 1) : word, n);
    }
}

/* --- the positions of set bits --- */

/* Writes `base` + the index of each set bit to `to`, and returns the end; may write up to 64 numbers in any case. */
typedef uint32_t *spread_word(uint64_t word, uint32_t base, uint32_t *to);

/* --- coordinates --- */

struct batch {
    uint32_t places[DMLK_NONZERO_BATCH + 16]; /* a vector may start at any place */
    uint32_t columns[DMLK_MAX_RANK][DMLK_NONZERO_BATCH], rows[DMLK_MAX_RANK * DMLK_NONZERO_BATCH];
};

/* Finds the coordinates of `count` positions, rounded up to a multiple of 16, along one axis, and replaces the
 * positions by those along the outer axes. */
typedef void divide_places(const struct division *by, uint32_t *restrict places, int64_t count,
                           uint32_t *restrict rests);

INLINE void divide(const struct division *by, uint32_t *restrict places, int64_t count, uint32_t *restrict rests) {
    for (int64_t i = 0; i < (count + 15) / 16 * 16; i++) {
        const uint32_t quotient = (uint32_t)((uint64_t)places[i] * by->factor >> by->shift);
        rests[i] = places[i] - quotient * by->size;
        places[i] = quotient;
    }
}

/* Writes contiguous rows of four columns, 16 rows at a time, built in registers; false: the table has another layout. */
typedef bool write_fours(const dmlk_nonzero_job *job, const struct batch *batch, int64_t count, int64_t row);

/* Stores columns as rows; the number of columns is a constant where this is inlined. */
INLINE void join(uint32_t columns[][DMLK_NONZERO_BATCH], int64_t width, int64_t count, uint32_t *restrict to) {
    for (int64_t i = 0; i < count; i++) {
        for (int64_t c = 0; c < width; c++) {
            to[i * width + c] = columns[c][i];
        }
    }
}

INLINE void join_columns(uint32_t columns[][DMLK_NONZERO_BATCH], int64_t width, int64_t count, uint32_t *to) {
    switch (width) {
    case 2: join(columns, 2, count, to); break;
    case 3: join(columns, 3, count, to); break;
    case 4: join(columns, 4, count, to); break;
    case 5: join(columns, 5, count, to); break;
    case 6: join(columns, 6, count, to); break;
    case 7: join(columns, 7, count, to); break;
    case 8: join(columns, 8, count, to); break;
    default: memcpy(to, columns[0], (size_t)count * sizeof *to);
    }
}

INLINE void store(const dmlk_nonzero_job *job, uint32_t *to, const uint32_t *from, int64_t count) {
    const size_t bytes = (size_t)count * sizeof *to;
    if (job->stream) {
        dmlk_stream_copy(to, from, bytes);
    } else {
        memcpy(to, from, bytes);
    }
}

/* Writes the rows of the first `count` positions. */
INLINE void write_batch(divide_places *division, const dmlk_nonzero_job *job, struct batch *batch, int64_t count,
                        int64_t row) {
    const dmlk_nonzero_table *table = job->table;
    const int64_t width = table->columns;
    uint32_t *to = table->base + row * table->row_stride;
    for (int64_t c = width; c-- > 0;) {
        const struct division *axis = &job->axes[c];
        if (axis->size > 1 && axis->factor == 0) {
            memcpy(batch->columns[c], batch->places, (size_t)count * sizeof batch->places[0]);
        } else if (axis->size > 1) { /* columns of axes of size 1 are initialized to 0 */
            division(axis, batch->places, count, batch->columns[c]);
        }
    }
    if (table->row_stride == width && (table->column_stride == 1 || width == 1)) {
        uint32_t *rows = job->stream ? batch->rows : to;
        join_columns(batch->columns, width, count, rows);
        if (job->stream) {
            store(job, to, rows, count * width);
        }
        return;
    }
    for (int64_t c = 0; c < width; c++, to += table->column_stride) {
        if (table->row_stride == 1) {
            store(job, to, batch->columns[c], count);
            continue;
        }
        for (int64_t i = 0; i < count; i++) {
            to[i * table->row_stride] = batch->columns[c][i];
        }
    }
}

/* The largest number of rows, up to `count`, that ends with a whole cache line; if there is none, `count`.  (A cache
 * line that is streamed in two pieces costs a read.) */
INLINE int64_t whole_lines(const dmlk_nonzero_table *table, int64_t row, int64_t count) {
    for (int64_t rows = count; rows > count - MAX_ROWS_TO_A_LINE && rows > 0; rows--) {
        if ((uintptr_t)(table->base + (row + rows) * table->row_stride) % DMLK_LINE == 0) {
            return rows;
        }
    }
    return count;
}

/* Writes the rows of words begin .. end - 1 of the block. */
INLINE void write_words(spread_word *spread, divide_places *division, write_fours *fours, const dmlk_nonzero_job *job,
                        int64_t begin, int64_t end, int64_t row) {
    struct batch batch;
    int64_t count = 0, work = 0;
    memset(batch.places, 0, sizeof batch.places);
    memset(batch.columns, 0, (size_t)job->table->columns * sizeof batch.columns[0]);
    for (int64_t w = begin; w < end; w++) {
        count = spread(job->bits[w], (uint32_t)(job->first + w * DMLK_NONZERO_WORD), batch.places + count) - batch.places;
        if (count <= DMLK_NONZERO_BATCH - DMLK_NONZERO_WORD && w + 1 < end) {
            continue;
        }
        if (dmlk_stopped(&work, count * job->table->columns)) {
            break;
        }
        const int64_t wanted = job->stream && w + 1 < end ? whole_lines(job->table, row, count) : count;
        uint32_t rest[MAX_ROWS_TO_A_LINE];
        memcpy(rest, batch.places + wanted, (size_t)(count - wanted) * sizeof rest[0]);
        if (!fours(job, &batch, wanted, row)) {
            write_batch(division, job, &batch, wanted, row);
        }
        memcpy(batch.places, rest, (size_t)(count - wanted) * sizeof rest[0]);
        row += wanted;
        count -= wanted;
    }
    if (job->stream) {
        dmlk_streamed();
    }
}

/* For forms without write_fours: rows of four columns are written like all others. */
INLINE bool no_fours(const dmlk_nonzero_job *job, const struct batch *batch, int64_t count, int64_t row) {
    (void)job, (void)batch, (void)count, (void)row;
    return false;
}

/* Defines the form of an instruction set from functions that are compiled for it. */
#define DMLK_NONZERO_FORM(isa, find, spread, division, fours)                                                  \
    static void find_row_of(const dmlk_nonzero_job *job, const uint8_t *at, int64_t stride, int64_t count,      \
                            dmlk_nonzero_words *words) {                                                       \
        find_row(find, job, at, stride, count, words);                                                         \
    }                                                                                                          \
    static void write(const dmlk_nonzero_job *job, int64_t begin, int64_t end, int64_t row) {                   \
        write_words(spread, division, fours, job, begin, end, row);                                            \
    }                                                                                                          \
    const struct dmlk_nonzero_form dmlk_nonzero_##isa = {find_row_of, write}

#endif
