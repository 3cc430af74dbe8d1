/* gather.h - elements that are apart, next to each other, and back. */
#ifndef DMLK_GATHER_H
#define DMLK_GATHER_H

#include <stdint.h>

/* Elements of 1, 2, 4 or 8 bytes, aligned, `step` bytes apart on the one side and packed on the other. */
void dmlk_gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to);
void dmlk_scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step);

/* Copies those of `count` elements that are `step` bytes apart, from the first one on, and leaves the others alone. */
void dmlk_copy_apart(const uint8_t *from, uint8_t *to, int64_t step, int64_t bytes, int64_t count);

#endif
