/* sanitizer.h - runs a kernel with every load and store of tensor memory checked.
 *
 * The kernel works on private copies of its outputs.  Each view's base is an unmapped address, 2^44 bytes from the
 * bases of the other views, so that each access identifies its view, even where views share memory.  An invalid access
 * is recorded and not performed. */
#ifndef DMLK_CHECKED_H
#define DMLK_CHECKED_H

#include "dmlk.h"

typedef int dmlk_run(const dmlk_call *call);

/* The checker for dispatches of the calling thread; NULL: they are not checked. */
dmlk_checker *dmlk_current_checker(void);

/* Runs `checked`, the kernel compiled with DMLK_CHECKED, and if there are no findings also `run`, whose results
 * must be bit-identical.  Otherwise the results are those of `checked`.  Returns the kernel's status. */
int dmlk_check(dmlk_checker *checker, uint32_t kernel, dmlk_run *checked, dmlk_run *run, const dmlk_call *call);

#endif
