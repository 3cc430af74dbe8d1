/* nontemporal.h - stores that bypass the caches, for data that is not read again soon.
 *
 * An ordinary store to a line that is in no cache reads the line from memory first.  For outputs larger than the
 * caches, that is a third of the traffic of a copy. */
#ifndef DMLK_NONTEMPORAL_H
#define DMLK_NONTEMPORAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether it is faster for an output of that size.  Never in a checked kernel, whose outputs are unmapped. */
bool dmlk_stream_pays(int64_t elements, int64_t element_bytes);

/* Fetches what an output that bypasses the caches will soon be copied from: while its lines are on their way, and where
 * pages begin, CPUs read too little ahead.  To the second-level cache, as the first one waits for few lines at a time.
 * (Inlined: GCC takes functions that only fetch for superfluous.) */
static inline __attribute__((always_inline)) void dmlk_fetch(const void *from, int64_t bytes) {
    const uint8_t *at = from, *end = at + bytes;
    for (at -= (uintptr_t)at % 64; at < end; at += 64) {
        __builtin_prefetch(at, 0, 2);
    }
}

/* Fetches what will soon be written of an output that does not bypass them: stores wait for their lines in order. */
static inline __attribute__((always_inline)) void dmlk_fetch_output(void *to, int64_t bytes) {
    for (int64_t b = 0; b < bytes; b += 64) {
        __builtin_prefetch((uint8_t *)to + b, 1);
    }
}

/* Bytes between what is used and what is fetched meanwhile. */
#define DMLK_FETCHED 4096
#define DMLK_FETCHED_OUTPUT 2048

/* Copies, and fetches what follows if it is much; `from` equals `to` or does not overlap it.  Other threads may read
 * the result only after dmlk_streamed, which dmlk_for_rows calls for its rows. */
void dmlk_stream_copy(void *to, const void *from, size_t bytes);

/* The same for whole lines, without fetching. */
void dmlk_stream_lines(void *to, const void *from, size_t bytes);
void dmlk_streamed(void);

#endif
