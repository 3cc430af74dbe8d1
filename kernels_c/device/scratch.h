/* scratch.h - working memory of kernels.
 *
 * Fresh memory costs a page fault every 4 KiB, which can take longer than the work it is for; so what is given
 * back is kept for the next dispatch, a few blocks of it. */
#ifndef DMLK_SCRATCH_H
#define DMLK_SCRATCH_H

#include <stdint.h>

/* At least `bytes` bytes, aligned to 64, whatever their contents; NULL: there is no memory. */
void *dmlk_take(int64_t bytes);

/* Gives a block back; NULL is fine. */
void dmlk_give(void *block);

#endif
