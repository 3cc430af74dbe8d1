/* ahead.h - prefetching.  CPUs prefetch by themselves, but stop at the end of a page: without these functions,
 * kernels read data that is in no cache at half the speed. */
#ifndef DMLK_AHEAD_H
#define DMLK_AHEAD_H

#include <stdint.h>

#define DMLK_LINE 64 /* bytes of a cache line */

/* Bytes from `at` to the next cache line; 0 if `at` is aligned to one. */
static inline int64_t dmlk_before_line(const void *at) { return (int64_t)(-(uintptr_t)at % DMLK_LINE); }

/* Prefetch distances in bytes. */
#define DMLK_AHEAD 8192          /* for inputs that are only read */
#define DMLK_FETCHED 4096        /* for inputs that are copied to an output that bypasses the caches */
#define DMLK_FETCHED_OUTPUT 2048 /* for outputs */
#define DMLK_AHEAD_IN_ROW 512    /* within each of several rows that are read side by side */

/* Prefetches the cache line of `at` into the first-level cache. */
static inline void dmlk_fetch_line(const void *at) { __builtin_prefetch(at); }

/* Prefetches it into the second-level cache, for data that is read later. */
static inline void dmlk_fetch_line_far(const void *at) { __builtin_prefetch(at, 0, 2); }

/* Prefetches `bytes` bytes that will soon be copied to an output that bypasses the caches: while lines are on their
 * way to memory, and at the start of a page, CPUs do not read far enough ahead.  Into the second-level cache, as the
 * first-level cache can wait for only a few lines at a time.  (Inlined, as GCC removes calls of functions that only
 * prefetch.) */
static inline __attribute__((always_inline)) void dmlk_fetch(const void *from, int64_t bytes) {
    const uint8_t *at = from, *end = at + bytes;
    for (at -= bytes > 0 ? (uintptr_t)at % DMLK_LINE : 0; at < end; at += DMLK_LINE) {
        dmlk_fetch_line_far(at);
    }
}

/* Prefetches part of an output that does not bypass the caches: stores wait for their cache lines in order. */
static inline __attribute__((always_inline)) void dmlk_fetch_output(void *to, int64_t bytes) {
    for (int64_t b = 0; b < bytes; b += DMLK_LINE) {
        __builtin_prefetch((uint8_t *)to + b, 1);
    }
}

/* The prefetch distance in bytes where lines of `bytes` bytes are read one after the other, `stride` bytes apart:
 * within the line or, if lines are short, to the same position in a later line. */
static inline int64_t dmlk_ahead(int64_t bytes, int64_t stride) {
    return bytes >= DMLK_AHEAD || stride <= 0 ? DMLK_AHEAD : (DMLK_AHEAD + stride - 1) / stride * stride;
}

/* The same for narrow rows: DMLK_AHEAD if the rows are contiguous; otherwise to the same position a few rows later,
 * as distant rows are in different pages. */
static inline int64_t dmlk_ahead_of_row(int64_t bytes, int64_t stride) {
    const int64_t read = 2048; /* bytes of the rows between the current position and the prefetched one */
    return stride == bytes || stride == 0 ? DMLK_AHEAD : (read + bytes - 1) / bytes * stride;
}

/* The prefetch distance in elements where `rows` rows, `step` elements apart, are read one after the other: from row
 * `row` to the row that is `between` <= rows rows later.  After the last row, `rows` more rows follow: `next`
 * elements after these. */
static inline int64_t dmlk_row_ahead(int64_t row, int64_t rows, int64_t between, int64_t step, int64_t next) {
    return between * step + (row + between < rows ? 0 : next - rows * step);
}

#endif
