/* ahead.h - fetching what is read or written soon.  CPUs do so by themselves, but stop at the end of a page: alone, they read
 * half as much per second from beyond the caches as with these. */
#ifndef DMLK_AHEAD_H
#define DMLK_AHEAD_H

#include <stdint.h>

#define DMLK_LINE 64 /* bytes of a cache line */

/* Bytes from `at` to where the next line begins, or 0 where one does. */
static inline int64_t dmlk_before_line(const void *at) { return (int64_t)(-(uintptr_t)at % DMLK_LINE); }

/* Bytes between what is used and what is fetched meanwhile: of inputs that are only read, of those that are copied past the
 * caches, and of outputs. */
#define DMLK_AHEAD 8192
#define DMLK_FETCHED 4096
#define DMLK_FETCHED_OUTPUT 2048

/* The same in each of several rows that are read side by side. */
#define DMLK_AHEAD_IN_ROW 512

/* Fetches the line of `at` into the first-level cache. */
static inline void dmlk_fetch_line(const void *at) { __builtin_prefetch(at); }

/* Fetches it into the second-level cache: of what is read later. */
static inline void dmlk_fetch_line_far(const void *at) { __builtin_prefetch(at, 0, 2); }

/* Fetches what an output that bypasses the caches will soon be copied from: while its lines are on their way, and where
 * pages begin, CPUs read too little ahead.  To the second-level cache, as the first one waits for few lines at a time.
 * (Inlined: GCC takes functions that only fetch for superfluous.) */
static inline __attribute__((always_inline)) void dmlk_fetch(const void *from, int64_t bytes) {
    const uint8_t *at = from, *end = at + bytes;
    for (at -= bytes > 0 ? (uintptr_t)at % DMLK_LINE : 0; at < end; at += DMLK_LINE) {
        dmlk_fetch_line_far(at);
    }
}

/* Fetches what will soon be written of an output that does not bypass them: stores wait for their lines in order. */
static inline __attribute__((always_inline)) void dmlk_fetch_output(void *to, int64_t bytes) {
    for (int64_t b = 0; b < bytes; b += DMLK_LINE) {
        __builtin_prefetch((uint8_t *)to + b, 1);
    }
}

/* How far ahead to fetch, in bytes, where lines of `bytes` bytes are read one after the other, `stride` bytes apart: into
 * this line, or if lines are short, to the same place in a later one. */
static inline int64_t dmlk_ahead(int64_t bytes, int64_t stride) {
    return bytes >= DMLK_AHEAD || stride <= 0 ? DMLK_AHEAD : (DMLK_AHEAD + stride - 1) / stride * stride;
}

/* The same of narrow rows that are read one after the other: further on if they follow each other, otherwise a few rows later,
 * as these are in different pages. */
static inline int64_t dmlk_ahead_of_row(int64_t bytes, int64_t stride) {
    const int64_t read = 2048; /* bytes, before what is fetched */
    return stride == bytes || stride == 0 ? DMLK_AHEAD : (read + bytes - 1) / bytes * stride;
}

/* How far ahead to fetch, in elements, where `rows` rows are read one after the other, `step` elements apart: from row `row` to
 * the one that is `between` <= rows rows later.  Behind the rows others follow, `next` elements behind these. */
static inline int64_t dmlk_row_ahead(int64_t row, int64_t rows, int64_t between, int64_t step, int64_t next) {
    return between * step + (row + between < rows ? 0 : next - rows * step);
}

#endif
