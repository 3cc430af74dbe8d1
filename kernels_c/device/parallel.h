/* parallel.h - the only place that knows of threads.
 *
 * Work is split into parts of consecutive items.  No kernel may give results that depend on where
 * it is split, so they do not depend on the number of threads either. */
#ifndef DMLK_PARALLEL_H
#define DMLK_PARALLEL_H

#include <stdint.h>

/* Handles items begin .. end - 1 as part number `part`. */
typedef void dmlk_part(int64_t begin, int64_t end, int part, void *context);

/* How many parts to split `items` into, if `grain` items are worth a thread.  At least 1. */
int dmlk_parts(int64_t items, int64_t grain);

void dmlk_parallel(int64_t items, int parts, dmlk_part *run, void *context);

#endif
