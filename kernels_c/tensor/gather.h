/* gather.h - gather and scatter: packing and unpacking strided elements. */
#ifndef DMLK_GATHER_H
#define DMLK_GATHER_H

#include <stdint.h>

/* Elements of 1, 2, 4 or 8 bytes, aligned, `step` bytes apart on one side and packed on the other. */
void dmlk_gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to);
void dmlk_scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step);

/* Copies `count` elements that are `step` bytes apart on both sides; the bytes between are unchanged. */
void dmlk_copy_apart(const uint8_t *from, uint8_t *to, int64_t step, int64_t bytes, int64_t count);

/* Forms of these for strides of 2, 3 and 4 elements, which process as many of the first elements as they can, and
 * return their number (see dispatch/choose.c). */
typedef int64_t dmlk_apart(const uint8_t *from, int64_t stride, int64_t bytes, int64_t count, uint8_t *to);
extern const struct dmlk_gather_form {
    dmlk_apart *gather, *scatter, *copy;
} *dmlk_gather_form;

#endif
