/* read_set.h - which elements of its inputs a kernel reads, for kernels that do not read all of them. */
#ifndef DMLK_READ_SET_H
#define DMLK_READ_SET_H

#include "dmlk.h"

#define DMLK_MOST_SLICES 32

/* Of an axis the indices first, first + step, ...: `count` of them. */
typedef struct dmlk_slice {
    int64_t first, step, count;
} dmlk_slice;

/* Of a tensor the elements whose every index is in a slice of its axis.  counts[axis] == 0: there are none. */
typedef struct dmlk_read_set {
    uint32_t counts[DMLK_MAX_RANK];
    dmlk_slice slices[DMLK_MAX_RANK][DMLK_MOST_SLICES];
} dmlk_read_set;

/* dmlk_reads_<stem>, if operators/<stem>.c has it, takes away what the kernel does not read of a tensor that it
 * only reads.  Views have no base; if the dispatch is bad, it may do anything to `reads`. */
typedef void dmlk_select(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads);

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
