/* read_set.h - the input elements that a kernel reads, for kernels that do not read all of them. */
#ifndef DMLK_READ_SET_H
#define DMLK_READ_SET_H

#include "dmlk.h"
#include "slices.h"

#define DMLK_MOST_SLICES 32 /* of an axis */

/* The elements whose index on each axis is in one of the axis's slices; counts[axis] is the number of slices, and 0
 * means that there are no elements.  `has_more`: the slices also contain elements that the kernel does not read.
 * `by_data`: which elements it reads depends on data; they are marked instead. */
typedef struct dmlk_read_set {
    uint32_t counts[DMLK_MAX_RANK];
    dmlk_slice slices[DMLK_MAX_RANK][DMLK_MOST_SLICES];
    bool has_more;
    bool by_data;
    uint64_t *marks; /* a bit for each element of the tensor, last axis fastest; NULL: not known */
} dmlk_read_set;

/* dmlk_reads_<stem>, if operators/<stem>.c defines it, removes the elements of an input that the kernel does not
 * read.  If the dispatch is malformed, `reads` is undefined.
 *
 * A kernel with data-dependent reads calls dmlk_begin_marks and sets the bit of each element that it would read.
 * The host may change the data until the kernel itself runs: the kernel must not rely on these results. */
typedef void dmlk_select(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads);

/* The most elements of a tensor in an analysis: 128 MiB of marks, a few seconds to read the indices. */
#define DMLK_MOST_LOOKED_AT (INT64_C(1) << 30)

/* Allocates a bit for each element of the tensor, all 0.  NULL: the bytes of the call's tensors are not known yet, or
 * one of the tensors has more than DMLK_MOST_LOOKED_AT elements; then nothing is marked. */
uint64_t *dmlk_begin_marks(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads);

/* Calls `take` with disjoint boxes of elements, a slice along each axis, which together are exactly the marked
 * elements.  Elements in a regular pattern share a box.  False: there are more than `most` boxes. */
typedef void dmlk_take_box(const dmlk_slice *box, void *context);
bool dmlk_marks_to_boxes(const uint64_t *marks, uint32_t rank, const int64_t *sizes, uint32_t most,
                         dmlk_take_box *take, void *context);

#endif
