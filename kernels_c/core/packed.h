/* packed.h - packed rows, and writing what will not be read again soon: past the caches.
 *
 * An ordinary store of a line that is in no cache reads it from memory first.  Where an output is larger than the
 * caches, that is a third of the traffic of a copy. */
#ifndef DMLK_PACKED_H
#define DMLK_PACKED_H

#include "view.h"

/* Does it pay for an output of so many bytes?  Never in a checked kernel, whose outputs are no memory. */
bool dmlk_stream_pays(int64_t bytes);

/* memcpy; what is written may be seen by other threads only after dmlk_streamed. */
void dmlk_stream_copy(void *to, const void *from, size_t bytes);
void dmlk_streamed(void);

/* dmlk_for_rows for a row that is fastest where elements follow each other: those that are apart are put next to
 * each other near the core, and back.  A large output is streamed. */
int dmlk_packed_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context);

#endif
