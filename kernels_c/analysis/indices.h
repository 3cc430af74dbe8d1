/* indices.h - tensors whose elements are indices into other tensors, such as the indices of GATHER. */
#ifndef DMLK_INDICES_H
#define DMLK_INDICES_H

#include "dmlk.h"

/* A signed index below 0 counts from the end.  Out-of-range indices are clamped, so that a kernel stays inside its
 * tensor whatever the host writes to the indices while it runs. */
static inline int64_t dmlk_signed_index(int64_t index, int64_t size) {
    index += index < 0 ? size : 0;
    return index < 0 ? 0 : index < size ? index : size - 1;
}

static inline int64_t dmlk_unsigned_index(uint64_t index, int64_t size) {
    return index < (uint64_t)size ? (int64_t)index : size - 1;
}

static inline bool dmlk_signed_inside(int64_t index, int64_t size) { return index >= -size && index < size; }
static inline bool dmlk_unsigned_inside(uint64_t index, int64_t size) { return index < (uint64_t)size; }

/* A float is truncated; a NaN is outside. */
static inline bool dmlk_float_inside(double index, int64_t size) { return index > -1 && index < (double)size; }

/* Elements of tensor `indices` index `count` axes of tensor `target`, from `axis` on, in turn: element n of the
 * indices, last axis fastest, indexes axis number n % count, of size sizes[n % count]; size 0: the element is not an
 * index. */
typedef struct dmlk_index_use {
    uint32_t indices, target, axis, count;
    int64_t sizes[DMLK_MAX_RANK];
    bool are_lengths; /* the elements are lengths of parts of the axis instead: 0 .. size */
} dmlk_index_use;

/* dmlk_indices_<stem>, if operators/<stem>.c defines it.  False: the dispatch is malformed. */
typedef bool dmlk_find_indices(const dmlk_call *call, dmlk_index_use *use);

/* Finds the first index that is outside 0 .. size - 1 or, if signed, -size .. size - 1, and counts all of them.
 * Returns an enum dmlk_status; count 0: there is none. */
int dmlk_find_outside(const dmlk_view *indices, const dmlk_index_use *use, dmlk_bad_index *out);

/* dmlk_races_<stem>, if operators/<stem>.c defines it: finds elements of an output to which the kernel writes several
 * values, in no documented order.  False: there are none, or the dispatch is malformed. */
typedef bool dmlk_find_races(const dmlk_call *call, dmlk_scatter_race *race);

#endif
