/* followers.h - element-wise functions that run on each piece of a product's output as soon as the piece is complete,
 * while it is in the cache.
 *
 * They are the kernels of the packets after the product's.  A kernel that runs its followers sets `done`.  All other
 * kernels ignore them, and the packets are then dispatched as usual; the results have the same bits.
 *
 * Behind a product of integers, a packet may scale its sums to bytes.  A product that does so writes the bytes alone:
 * packets are marked as fused only if no other packet reads the sums.  Or packets convert the sums to floats, scale, add,
 * bound and quantize these: a product may do so before it stores anything (sums_finish.h), and then does not write what
 * only the next packet reads. */
#ifndef DMLK_FOLLOWERS_H
#define DMLK_FOLLOWERS_H

#include "scaling.h"
#include "view.h"

#define DMLK_MOST_FOLLOWERS 12 /* of one product */
#define DMLK_REPEATED 512 /* how often a number is repeated for a row: a power of 2 */

/* Functions of FLOAT32 that kernels know: see dmlk_find_finish and sums_finish.h. */
enum dmlk_known_function {
    DMLK_NOT_KNOWN,
    DMLK_CAST, /* of INT32 to FLOAT32 */
    DMLK_SCALE, /* x * low + high, with two roundings */
    DMLK_MULTIPLY,
    DMLK_ADD,
    DMLK_RELU, /* a lower bound of 0, which replaces -0 */
    DMLK_LOW, /* a lower bound: the other operand, or of one operand `low`, with which a zero keeps its sign */
    DMLK_HIGH,
    DMLK_LOW_AND_HIGH,
    DMLK_QUANTIZE /* to `integers`: operands are x, a scale and a zero point */
};

/* A row and its context, set by the kernel of a packet (see dmlk_prepare).  Operand k of the row is view order[k] of
 * the packet; the output is the last operand and the last view. */
typedef struct dmlk_follower {
    dmlk_row *row;
    uint32_t operands;
    uint32_t order[4];
    uint8_t *base[4]; /* of the operands */
    int64_t bytes[4]; /* of an element */
    int32_t number; /* the operand that is one number for all elements; negative: none is */
    bool reads_one; /* all operands but the first and the last are such numbers, and its row reads them with a stride of 0 */
    bool is_passed; /* its output is read by the next packet alone */
    enum dmlk_known_function known;
    float low, high; /* what a known function has no operand for */
    dmlk_integers integers;
    _Alignas(64) uint8_t numbers[DMLK_REPEATED * 8]; /* the number, again and again: as rows of vectors read it */
    _Alignas(16) uint8_t context[256];
} dmlk_follower;

/* Sets row, operands, order and context; false: the kernel does not run row by row with these types. */
typedef bool dmlk_prepare(const dmlk_call *call, dmlk_follower *follower);

/* The tensors of followers have the layout of the product's output: an element has the same offset, in elements, in
 * each.  One tensor of each may be a number, repeated to its sizes. */
typedef struct dmlk_followers {
    uint8_t *base; /* of the product's output */
    int64_t bytes;
    uint32_t count;
    uint32_t done; /* how many of the packets after the product's were run, on all elements */
    bool is_passed; /* the product's output is read by the next packet alone */
    dmlk_follower each[DMLK_MOST_FOLLOWERS];
    const dmlk_scaling *scaling; /* of the sums, by the one packet that follows; `count` is 0.  NULL: none does */
} dmlk_followers;

/* Makes operand k of the follower a number, which `at` points to. */
void dmlk_follow_number(dmlk_follower *follower, uint32_t k, const uint8_t *at);

/* Runs the followers (NULL: none) on rows x columns elements of the product's output, from `at` on; strides in
 * elements. */
void dmlk_follow(const dmlk_followers *followers, const uint8_t *at, int64_t rows, int64_t row_stride, int64_t columns,
                 int64_t column_stride);

/* What followers do to FLOAT32s, if that is little: an addition, then a lower and an upper bound.  A kernel can do so
 * to its sums while they are in registers, and only store the results. */
typedef struct dmlk_finish {
    const float *added; /* the element that is added to the product's first one, others at the same offset; NULL: none */
    bool has_low, has_high;
    float low, high; /* y > low ? y : low, then y < high ? y : high: so a NaN becomes a bound */
    bool for_positive_zeros; /* only if no result of the product is -0 */
} dmlk_finish;

/* False: the followers (NULL: none) do something else. */
bool dmlk_find_finish(const dmlk_followers *followers, dmlk_finish *finish);

/* Whether all functions of bounds treat this bound alike; they do not for a NaN, -0 as the lower one and 0 as the upper one. */
bool dmlk_is_usual_low(float low);
bool dmlk_is_usual_high(float high);

/* Called by a kernel that has run the followers of its call, if there are any. */
static inline void dmlk_followed(const dmlk_call *call) {
    if (call->followers != NULL) {
        call->followers->done = call->followers->count;
    }
}

#endif
