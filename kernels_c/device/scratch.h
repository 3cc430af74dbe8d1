/* scratch.h - working memory of kernels.
 *
 * Fresh memory costs a page fault every 4 KiB, which can take longer than the work itself; so a few released blocks
 * are kept for later dispatches. */
#ifndef DMLK_SCRATCH_H
#define DMLK_SCRATCH_H

#include <stdint.h>

/* At least `bytes` bytes, aligned to 64, contents undefined; NULL: out of memory. */
void *dmlk_take(int64_t bytes);

/* Releases a block, or NULL. */
void dmlk_give(void *block);

#endif
