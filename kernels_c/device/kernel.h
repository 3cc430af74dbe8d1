/* kernel.h - the header for files in operators/: views, rows, and the checks at the start of a kernel. */
#ifndef DMLK_KERNEL_H
#define DMLK_KERNEL_H

#include "access.h"
#include "dmlk.h"
#include "element.h"
#include "followers.h"
#include "indices.h"
#include "cpu.h"
#include "parallel.h"
#include "read_set.h"
#include "cancellation.h"
#include "view.h"
#include "promoted.h"

/* Declares the functions of one kernel: a file operators/<name>.c, or a line of a table
 * operators/<family>/functions.inc. dmlk_run_<name> runs it, dmlk_checked_run_<name> is its checked build (see
 * access.h).  The other names are NULL where the kernel does not define them: dmlk_reads_<name> (see read_set.h),
 * dmlk_indices_<name> and dmlk_races_<name> (see indices.h), which both builds define alike; and dmlk_prepare_<name>,
 * only in the tuned build, for kernels that may follow others (see followers.h); dmlk_scaling_<name>, the same for
 * those that scale sums (see scaling.h).  The last dmlk_outputs_<name> views
 * of a kernel are its outputs; without that name, the last one is. */
#define DMLK_KERNEL(name, family)                                    \
    int dmlk_run_##name(const dmlk_call *call);                      \
    int dmlk_checked_run_##name(const dmlk_call *call);              \
    extern __attribute__((weak)) const uint32_t dmlk_outputs_##name; \
    __attribute__((weak)) dmlk_select dmlk_reads_##name;             \
    __attribute__((weak)) dmlk_find_indices dmlk_indices_##name;     \
    __attribute__((weak)) dmlk_find_races dmlk_races_##name;         \
    __attribute__((weak)) dmlk_prepare dmlk_prepare_##name;         \
    __attribute__((weak)) dmlk_find_scaling dmlk_scaling_##name;
#ifdef DMLK_KERNELS /* a file that lists the kernels of this source file; see CMakeLists.txt */
#include DMLK_KERNELS
#endif

/* The name of dmlk_run_<name> in this build, for kernels defined by a table. */
#ifdef DMLK_CHECKED
#define DMLK_RUN(name) dmlk_checked_run_##name
#else
#define DMLK_RUN(name) dmlk_run_##name
#endif

/* Whether there are `views` views, and each view whose bit in `optional_mask` is 0 is present. */
bool dmlk_has_views(const dmlk_call *call, uint32_t views, uint32_t optional_mask);

/* Copies the constants into the kernel's struct (the packet need not be aligned). */
bool dmlk_get_constants(const dmlk_call *call, void *constants, uint64_t size);

/* Reports that only the first `count` indices of a dimension of tensor `tensor` were defined. */
void dmlk_define_part(const dmlk_call *call, uint32_t tensor, uint32_t dimension, int64_t count);

/* Copies every element of `in` to `out` bit by bit; elements have the same size, a whole number of bytes.  Strides of
 * `in` may be negative. */
int dmlk_copy_elements(const dmlk_view *in, const dmlk_view *out);

#endif
