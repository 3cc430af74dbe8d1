/* nontemporal.h - stores that bypass the caches, for data that is not read again soon.
 *
 * An ordinary store to a line that is in no cache first reads the line from memory.  For outputs larger than the
 * caches, these reads are a third of the memory traffic of a copy. */
#ifndef DMLK_NONTEMPORAL_H
#define DMLK_NONTEMPORAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether bypassing the caches is faster for an output of this size.  Never in a checked kernel, whose outputs are
 * unmapped. */
bool dmlk_stream_pays(int64_t elements, int64_t element_bytes);

/* Copies past the caches; long copies prefetch their input.  `from` equals `to` or does not overlap it.  Other
 * threads may read the result only after dmlk_streamed, which dmlk_for_rows calls for its rows. */
void dmlk_stream_copy(void *to, const void *from, size_t bytes);

/* The same for whole cache lines, without prefetching. */
void dmlk_stream_lines(void *to, const void *from, size_t bytes);
void dmlk_streamed(void);

/* Forms of dmlk_stream_lines (see dispatch/choose.c); `to` is aligned to a line. */
extern const struct dmlk_nontemporal_form {
    void (*copy_lines)(uint8_t *to, const uint8_t *from, size_t bytes);
} *dmlk_nontemporal_form;

#endif
