/* checked.h - whether a thread runs a checked kernel (see access.h). */
#ifndef DMLK_IN_CHECKED_H
#define DMLK_IN_CHECKED_H

#include <stdbool.h>

/* Whether the calling thread runs one.  Those use one thread. */
bool dmlk_in_checked_kernel(void);

/* Set by sanitizer.c around each. */
void dmlk_set_in_checked_kernel(bool is_checked);

#endif
