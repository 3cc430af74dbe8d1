/* footprint.h - footprints as sets: in normal form, and as bits. */
#ifndef DMLK_FOOTPRINT_H
#define DMLK_FOOTPRINT_H

#include "dmlk.h"

/* A footprint without its address, in half bytes: blocks of spans[0], one for each combination of indices, sum(i *
 * stride) after the first.  Dimensions of stride 0 are removed and mergeable ones are merged, so that different
 * layouts of the same elements give the same pattern. */
typedef struct dmlk_pattern {
    uint32_t rank;
    uint64_t sizes[DMLK_MAX_RANK];     /* all above 1 */
    uint64_t strides[DMLK_MAX_RANK];   /* ascending; the first is above spans[0] */
    uint64_t spans[DMLK_MAX_RANK + 1]; /* spans[d]: extent of the dimensions below d */
} dmlk_pattern;

/* False: the footprint is malformed (rank, bits, a size of 0), or its addresses exceed 64 bits. */
bool dmlk_pattern_init(dmlk_pattern *pattern, const dmlk_footprint *footprint);

/* Extends the pattern, which starts at a whole byte, to whole bytes.  False: some blocks start in the middle of a
 * byte; the pattern is unchanged. */
bool dmlk_pattern_to_bytes(dmlk_pattern *pattern);

/* Extent of the pattern in half bytes. */
static inline uint64_t dmlk_pattern_span(const dmlk_pattern *pattern) { return pattern->spans[pattern->rank]; }

/* One bit per byte of the span (span / 2 rounded up), set if accessed; the caller frees it.  NULL: out of memory. */
uint64_t *dmlk_pattern_paint(const dmlk_pattern *pattern);

#endif
