/* nontemporal.h - writing what will not be read again soon: past the caches.
 *
 * An ordinary store of a line that is in no cache reads it from memory first.  Where an output is larger than the
 * caches, that is a third of the traffic of a copy. */
#ifndef DMLK_NONTEMPORAL_H
#define DMLK_NONTEMPORAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does it pay for an output of so many elements?  Never in a checked kernel, whose outputs are no memory. */
bool dmlk_stream_pays(int64_t elements, int64_t element_bytes);

/* Copies; `from` is `to` or apart from it.  What is written may be seen by other threads only after dmlk_streamed,
 * which dmlk_for_rows calls for its rows. */
void dmlk_stream_copy(void *to, const void *from, size_t bytes);
void dmlk_streamed(void);

#endif
