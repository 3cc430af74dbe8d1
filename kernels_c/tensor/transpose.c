/* transpose.c - see transpose.h. */
#include "transpose.h"

#include <stdbool.h>
#include <string.h>

#include "ahead.h"
#include "gather.h"
#include "squares.h"

#define CROWDED 1024 /* bytes; 16 cache lines at this distance conflict in a first-level cache */
#define STRIP 512 /* bytes of a row of the result that are transposed at a time */

const struct dmlk_transpose_form *dmlk_transpose_form;

/* The largest squares that fit into the block and that this CPU has a form for. */
static dmlk_squares choose(int64_t bytes, int64_t rows, int64_t columns) {
    for (const struct dmlk_transpose_form *form = dmlk_transpose_form; form != NULL; form = form->smaller) {
        const dmlk_squares s = form->squares[bytes];
        if (s.size > 0 && s.size <= rows && s.size <= columns) {
            return s;
        }
    }
    return (dmlk_squares){0, NULL};
}

#define PLAIN(T)                                                                                \
    for (int64_t j = 0; j < rows; j++) {                                                        \
        for (int64_t i = 0; i < columns; i++) {                                                 \
            ((T *)(to + j * to_step))[i] = *(const T *)(from + i * from_step + j * from_stride); \
        }                                                                                       \
    }                                                                                           \
    break

static void transpose_plain(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                            int64_t to_step, int64_t rows, int64_t columns) {
    switch (bytes) {
    case 1: PLAIN(uint8_t);
    case 2: PLAIN(uint16_t);
    case 4: PLAIN(uint32_t);
    default: PLAIN(uint64_t);
    }
}

/* Prefetches during a transposition. */
struct prefetches {
    int64_t ahead;  /* bytes from a block to another block that is prefetched; 0: none */
    bool to_memory; /* cache lines of the result are prefetched before they are written */
};

/* Copies a strided row to contiguous elements. */
static inline void copy_row(int64_t bytes, const uint8_t *from, int64_t stride, uint8_t *to, int64_t count) {
    const int64_t size = count * bytes;
    if (stride != bytes) {
        dmlk_gather(from, stride, bytes, count, to);
    } else if (size < DMLK_LINE) {
        memcpy(to, from, (size_t)size);
    } else {
        for (int64_t b = 0; b < size; b += DMLK_LINE) {
            b = b < size - DMLK_LINE ? b : size - DMLK_LINE;
            memcpy(to + b, from + b, DMLK_LINE);
        }
    }
}

/* Transposes to rows of at most STRIP bytes.  If the rows of a square would evict each other from the cache, as with
 * steps that are multiples of a large power of two, or if their elements are strided, they are first copied to a
 * strip. */
static void transpose_block(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                            int64_t to_step, int64_t rows, int64_t columns, struct prefetches prefetches) {
    _Alignas(DMLK_LINE) uint8_t strip[16 * STRIP];
    const dmlk_squares s = choose(bytes, rows, columns);
    if (s.size == 0) {
        transpose_plain(bytes, from, from_step, from_stride, to, to_step, rows, columns);
        return;
    }
    const bool to_strip = from_stride != bytes || from_step % CROWDED == 0;
    const int64_t step = to_strip ? (rows * bytes + DMLK_LINE - 1) / DMLK_LINE * DMLK_LINE : from_step;
    /* The last squares end with the block and overlap the previous ones. */
    for (int64_t i = 0; i < columns; i += s.size) {
        i = i < columns - s.size ? i : columns - s.size;
        const uint8_t *first = from + i * from_step;
        for (int64_t k = 0; k < s.size; k++) {
            dmlk_fetch(first + k * from_step + prefetches.ahead, prefetches.ahead != 0 ? rows * from_stride : 0);
            if (to_strip) {
                copy_row(bytes, first + k * from_step, from_stride, strip + k * step, rows);
            }
        }
        for (int64_t j = 0; j < rows; j += s.size) {
            j = j < rows - s.size ? j : rows - s.size;
            uint8_t *at = to + j * to_step + i * bytes;
            for (int64_t k = 0; k < s.size && prefetches.to_memory; k++) { /* for the squares of the next iteration */
                __builtin_prefetch(at + k * to_step + s.size * bytes, 1);
            }
            s.run((to_strip ? strip : first) + j * bytes, step, at, to_step);
        }
    }
}

static void transpose(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                      int64_t to_step, int64_t rows, int64_t columns, struct prefetches prefetches) {
    const int64_t ahead = prefetches.ahead;
    if (from_step == bytes) { /* nothing to transpose */
        for (int64_t j = 0; j < rows; j++) {
            dmlk_fetch(from + j * from_stride + ahead, ahead != 0 ? columns * bytes : 0);
            copy_row(bytes, from + j * from_stride, bytes, to + j * to_step, columns);
        }
        return;
    }
    const int64_t most = STRIP / bytes;
    for (int64_t j = 0; j < rows; j += most) {
        transpose_block(bytes, from + j * from_stride, from_step, from_stride, to + j * to_step, to_step,
                        rows - j < most ? rows - j : most, columns, prefetches);
    }
}

void dmlk_transpose(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                    int64_t to_step, int64_t rows, int64_t columns) {
    transpose(bytes, from, from_step, from_stride, to, to_step, rows, columns, (struct prefetches){0});
}

void dmlk_transpose_fetching(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                             int64_t to_step, int64_t rows, int64_t columns, int64_t ahead) {
    transpose(bytes, from, from_step, from_stride, to, to_step, rows, columns, (struct prefetches){.ahead = ahead});
}

void dmlk_transpose_to_memory(int64_t bytes, const uint8_t *from, int64_t from_step, int64_t from_stride, uint8_t *to,
                              int64_t to_step, int64_t rows, int64_t columns) {
    transpose(bytes, from, from_step, from_stride, to, to_step, rows, columns, (struct prefetches){.to_memory = true});
}
