/* packed.h - rows that are fastest where elements follow each other. */
#ifndef DMLK_PACKED_H
#define DMLK_PACKED_H

#include "view.h"

/* dmlk_for_rows for a row that is fastest where elements follow each other: those that are apart are put next to
 * each other near the core, and back.  A large output is streamed. */
int dmlk_packed_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context);

#endif
