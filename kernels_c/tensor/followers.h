/* followers.h - element-wise functions that follow a product, run on each piece of its output as soon as that is complete,
 * while it is in the cache.
 *
 * They are the kernels of the next packets.  A kernel that knows followers sets `done`; all others ignore them, and the
 * packets are dispatched after it: the results have the same bits. */
#ifndef DMLK_FOLLOWERS_H
#define DMLK_FOLLOWERS_H

#include "view.h"

#define DMLK_MOST_FOLLOWERS 4

/* A row and its context, set by the kernel of a packet (see dmlk_prepare).  `order`: the view that each operand of the
 * row is; the output is the last of both. */
typedef struct dmlk_follower {
    dmlk_row *row;
    uint32_t operands;
    uint32_t order[4];
    uint8_t *base[4]; /* of the operands */
    int64_t bytes[4]; /* of an element */
    _Alignas(16) uint8_t context[256];
} dmlk_follower;

/* Sets row, operands, order and context; false: the kernel does not run row by row with these types. */
typedef bool dmlk_prepare(const dmlk_call *call, dmlk_follower *follower);

/* All their tensors have the layout of the product's output: an element is at the same distance in each. */
typedef struct dmlk_followers {
    uint8_t *base; /* of the product's output */
    int64_t bytes;
    uint32_t count;
    bool done; /* they were run on all elements */
    dmlk_follower each[DMLK_MOST_FOLLOWERS];
} dmlk_followers;

/* Runs them on rows x columns elements of the product's output from `at` on; strides in elements.  NULL: there are none. */
void dmlk_follow(const dmlk_followers *followers, const uint8_t *at, int64_t rows, int64_t row_stride, int64_t columns,
                 int64_t column_stride);

/* A kernel has run the followers of its call, if there are any. */
static inline void dmlk_followed(const dmlk_call *call) {
    if (call->followers != NULL) {
        call->followers->done = true;
    }
}

#endif
