/* sanitizer.h - running a kernel so that every load and store of tensor memory is tested.
 *
 * The kernel works on private copies of its outputs.  Each view's base is an address for which there is no
 * memory, 2^44 bytes from those of the other views: so each access tells through which view it was made,
 * even where views share memory.  A bad one is noted and not carried out. */
#ifndef DMLK_CHECKED_H
#define DMLK_CHECKED_H

#include "dmlk.h"

typedef int dmlk_run(const dmlk_call *call);

/* What dispatches of the calling thread are checked with; NULL: they are not. */
dmlk_checker *dmlk_current_checker(void);

/* Runs `checked`, the kernel compiled with DMLK_CHECKED, and if nothing was found `run` too, whose results must
 * be the same bits.  Otherwise the results of `checked` stand.  Returns the kernel's status. */
int dmlk_check(dmlk_checker *checker, uint32_t kernel, dmlk_run *checked, dmlk_run *run, const dmlk_call *call);

/* Is the calling thread in a checked kernel?  Those work on one thread. */
int dmlk_in_checked_kernel(void);

#endif
