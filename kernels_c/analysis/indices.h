/* indices.h - tensors whose elements are indices into other tensors, as of GATHER. */
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

/* Elements of tensor `indices` index an axis of tensor `target`, whose size is `size`. */
typedef struct dmlk_index_use {
    uint32_t indices, target, axis;
    int64_t size;
} dmlk_index_use;

/* dmlk_indices_<stem>, if operators/<stem>.c defines it.  False: the dispatch is malformed. */
typedef bool dmlk_find_indices(const dmlk_call *call, dmlk_index_use *use);

/* Finds the first element of an integer view that is outside 0 .. size - 1 or, if signed, -size .. size - 1, and
 * counts all of them.  Returns an enum dmlk_status; count 0: there is none. */
int dmlk_find_outside(const dmlk_view *indices, int64_t size, dmlk_bad_index *out);

#endif
