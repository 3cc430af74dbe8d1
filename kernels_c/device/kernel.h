/* kernel.h - what a file in operators/ includes: views, rows, and the checks at its start. */
#ifndef DMLK_KERNEL_H
#define DMLK_KERNEL_H

#include "access.h"
#include "dmlk.h"
#include "element.h"
#include "indices.h"
#include "cpu.h"
#include "parallel.h"
#include "read_set.h"
#include "cancellation.h"
#include "view.h"
#include "promoted.h"

/* One dmlk_run_<stem> for each file operators/<stem>.c, and its checked build (see access.h).  Where a file
 * has no dmlk_reads_<stem> (see read_set.h), that is NULL; of the two builds it does not matter which one is taken.
 * The same is true of dmlk_indices_<stem> (see indices.h).
 * The outputs of a kernel are its last views: so many as dmlk_outputs_<stem> says, where a file has it, else one. */
#define DMLK_KERNEL(stem)                                            \
    int dmlk_run_##stem(const dmlk_call *call);                      \
    int dmlk_checked_run_##stem(const dmlk_call *call);              \
    extern __attribute__((weak)) const uint32_t dmlk_outputs_##stem; \
    __attribute__((weak)) dmlk_select dmlk_reads_##stem;             \
    __attribute__((weak)) dmlk_find_indices dmlk_indices_##stem;
#include "kernel_list.inc"
#undef DMLK_KERNEL

/* Are there `views` views, and is each present whose bit in `optional_mask` is 0? */
bool dmlk_has_views(const dmlk_call *call, uint32_t views, uint32_t optional_mask);

/* Copies the constants into the kernel's struct (the packet need not be aligned). */
bool dmlk_get_constants(const dmlk_call *call, void *constants, uint64_t size);

/* Says that of tensor `tensor` only the first `count` indices of a dimension were defined. */
void dmlk_define_part(const dmlk_call *call, uint32_t tensor, uint32_t dimension, int64_t count);

/* Copies the bits of every element of `in` to that of `out`; both have elements of the same whole bytes. */
int dmlk_copy_elements(const dmlk_view *in, const dmlk_view *out);

#endif
