/* checked.h - whether a thread runs a checked kernel (see access.h). */
#ifndef DMLK_IN_CHECKED_H
#define DMLK_IN_CHECKED_H

#include <stdbool.h>

/* Whether the calling thread runs a checked kernel.  Checked kernels do not use other threads. */
bool dmlk_in_checked_kernel(void);

/* Called by sanitizer.c before and after a checked kernel. */
void dmlk_set_in_checked_kernel(bool is_checked);

#endif
