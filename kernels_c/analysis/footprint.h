/* footprint.h - footprints as sets: brought into one form, and painted as bits. */
#ifndef DMLK_FOOTPRINT_H
#define DMLK_FOOTPRINT_H

#include "dmlk.h"

/* A footprint without its address, counted in half bytes: blocks of spans[0], one for each choice of the
 * indices, sum(i * stride) after the first.  Dimensions that move nothing are gone, and those that together
 * make one are merged, so that different layouts of the same elements look the same. */
typedef struct dmlk_pattern {
    uint32_t rank;
    uint64_t sizes[DMLK_MAX_RANK];     /* all above 1 */
    uint64_t strides[DMLK_MAX_RANK];   /* ascending; the first is above spans[0] */
    uint64_t spans[DMLK_MAX_RANK + 1]; /* spans[d]: from begin to end when only dimensions below d move */
} dmlk_pattern;

/* False: the footprint has no meaning (rank, bits, a size of 0), or its addresses pass 64 bits. */
bool dmlk_pattern_init(dmlk_pattern *pattern, const dmlk_footprint *footprint);

/* Lets the pattern, which begins with a whole byte, grow to whole bytes.  False: some blocks begin in the
 * middle of one; then it stays as it is. */
bool dmlk_pattern_to_bytes(dmlk_pattern *pattern);

/* Half bytes from begin to end of the pattern. */
static inline uint64_t dmlk_pattern_span(const dmlk_pattern *pattern) { return pattern->spans[pattern->rank]; }

/* The touched ones of the span's bytes as bits, of span / 2 rounded up; to be freed.  NULL: no memory. */
uint64_t *dmlk_pattern_paint(const dmlk_pattern *pattern);

#endif
