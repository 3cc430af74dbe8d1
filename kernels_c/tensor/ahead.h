/* ahead.h - fetching what is read soon.  CPUs do so by themselves, but stop at the end of a page: alone, they read half as
 * much per second from beyond the caches as with these. */
#ifndef DMLK_AHEAD_H
#define DMLK_AHEAD_H

#include <stdint.h>

#define DMLK_LINE 64     /* bytes of a cache line */
#define DMLK_AHEAD 8192  /* bytes: two pages */

/* Fetches the line of `at` into the first-level cache: of what is read after some KiB. */
static inline void dmlk_fetch(const void *at) { __builtin_prefetch(at); }

/* Fetches it into the second-level cache: of what is read later. */
static inline void dmlk_fetch_far(const void *at) { __builtin_prefetch(at, 0, 2); }

/* How far ahead to fetch, in bytes, where lines of `bytes` bytes are read one after the other, `stride` bytes apart: into
 * this line, or if lines are short, to the same place in a later one. */
static inline int64_t dmlk_ahead(int64_t bytes, int64_t stride) {
    return bytes >= DMLK_AHEAD || stride <= 0 ? DMLK_AHEAD : (DMLK_AHEAD + stride - 1) / stride * stride;
}

/* The same in elements, of rows of `count` elements that are read one after the other, `step` elements apart: for row `row` of
 * `rows`, behind which rows follow that are `next` elements behind these; about `ahead` elements ahead. */
static inline int64_t dmlk_row_ahead(int64_t row, int64_t rows, int64_t count, int64_t step, int64_t next, int64_t ahead) {
    const int64_t wanted = (ahead + count - 1) / count, between = wanted < rows ? wanted : rows;
    return between * step + (row + between < rows ? 0 : next - rows * step);
}

#endif
