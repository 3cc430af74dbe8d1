/* slices.h - regular sets of indices of an axis. */
#ifndef DMLK_SLICES_H
#define DMLK_SLICES_H

#include <stdint.h>

/* `count` indices of an axis: first, first + step, ... */
typedef struct dmlk_slice {
    int64_t first, step, count;
} dmlk_slice;

/* The smallest slice that contains all the given slices (at least one). */
dmlk_slice dmlk_enclose(const dmlk_slice *slices, uint32_t count);

/* Merges disjoint slices into one slice, if that contains no further index; returns the number of slices. */
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
