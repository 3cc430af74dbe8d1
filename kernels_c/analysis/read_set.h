/* read_set.h - which elements of its inputs a kernel reads, for kernels that do not read all of them. */
#ifndef DMLK_READ_SET_H
#define DMLK_READ_SET_H

#include "dmlk.h"

#define DMLK_MOST_SLICES 32

/* Of an axis the indices first, first + step, ...: `count` of them. */
typedef struct dmlk_slice {
    int64_t first, step, count;
} dmlk_slice;

/* Of a tensor the elements whose every index is in a slice of its axis.  counts[axis] == 0: there are none.
 * If which ones they are depends on the elements of other tensors, they are marked in place of that. */
typedef struct dmlk_read_set {
    uint32_t counts[DMLK_MAX_RANK];
    dmlk_slice slices[DMLK_MAX_RANK][DMLK_MOST_SLICES];
    bool by_data;
    uint64_t *marks; /* a bit for each element of the tensor, last axis fastest; NULL: nobody knows which are read */
} dmlk_read_set;

/* dmlk_reads_<stem>, if operators/<stem>.c has it, takes away what the kernel does not read of a tensor that it
 * only reads.  If the dispatch is bad, it may do anything to `reads`.
 *
 * A kernel that chooses by data calls dmlk_begin_marks and sets the bit of each element that it would read.  The
 * bytes that it looks at may change until the kernel itself runs, if the host writes to them meanwhile: the kernel
 * must not rely on what was found here. */
typedef void dmlk_select(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads);

/* Bits for the elements of the tensor, all 0.  NULL: the bytes of the call's tensors are not known yet, or one of them
 * has too many elements to look at; then nothing is marked. */
uint64_t *dmlk_begin_marks(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads);

/* Calls `take` with boxes of elements, a slice along each axis, which together are exactly the marked ones, each in
 * one box.  Elements that lie in a regular pattern share a box.  False: there are more than `most` boxes. */
typedef void dmlk_take_box(const dmlk_slice *box, void *context);
bool dmlk_marks_to_boxes(const uint64_t *marks, uint32_t rank, const int64_t *sizes, uint32_t most,
                         dmlk_take_box *take, void *context);

/* The smallest slice that contains them all (at least one). */
dmlk_slice dmlk_enclose(const dmlk_slice *slices, uint32_t count);

/* Makes of slices that share nothing a single one, if that contains nothing else; returns how many there are. */
uint32_t dmlk_join(dmlk_slice *slices, uint32_t count);

static inline uint64_t dmlk_gcd(uint64_t x, uint64_t y) {
    while (y != 0) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

#endif
