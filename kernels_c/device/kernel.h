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

/* One dmlk_run_<name> for each file operators/<name>.c and each line of a table operators/<family>/functions.inc, and
 * its checked build (see access.h).  Where there is no dmlk_reads_<name> (see read_set.h) or dmlk_indices_<name> (see
 * indices.h), that is NULL; of the two builds it does not matter which one is taken.  The outputs of a kernel are its
 * last views: as many as dmlk_outputs_<name> says, where there is one, else one. */
#define DMLK_KERNEL(name, family)                                    \
    int dmlk_run_##name(const dmlk_call *call);                      \
    int dmlk_checked_run_##name(const dmlk_call *call);              \
    extern __attribute__((weak)) const uint32_t dmlk_outputs_##name; \
    __attribute__((weak)) dmlk_select dmlk_reads_##name;             \
    __attribute__((weak)) dmlk_find_indices dmlk_indices_##name;
#include "kernel_list.inc"
#undef DMLK_KERNEL

/* The name of dmlk_run_<name> in this build, for those that a table makes. */
#ifdef DMLK_CHECKED
#define DMLK_RUN(name) dmlk_checked_run_##name
#else
#define DMLK_RUN(name) dmlk_run_##name
#endif

/* Are there `views` views, and is each present whose bit in `optional_mask` is 0? */
bool dmlk_has_views(const dmlk_call *call, uint32_t views, uint32_t optional_mask);

/* Copies the constants into the kernel's struct (the packet need not be aligned). */
bool dmlk_get_constants(const dmlk_call *call, void *constants, uint64_t size);

/* Says that of tensor `tensor` only the first `count` indices of a dimension were defined. */
void dmlk_define_part(const dmlk_call *call, uint32_t tensor, uint32_t dimension, int64_t count);

/* Copies the bits of every element of `in` to that of `out`; both have elements of the same whole bytes. */
int dmlk_copy_elements(const dmlk_view *in, const dmlk_view *out);

#endif
