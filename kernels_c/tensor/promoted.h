/* promoted.h - elements of any type in a few wide types: every float as a double, every integer as an int64_t or a
 * uint64_t, exactly.  A type-independent kernel loads a piece of a row, processes it, and stores it. */
#ifndef DMLK_PROMOTED_H
#define DMLK_PROMOTED_H

#include "element.h"

#define DMLK_CHUNK 256 /* elements */

typedef union dmlk_promoted {
    double f[DMLK_CHUNK];   /* DMLK_KIND_FLOAT */
    int64_t i[DMLK_CHUNK];  /* DMLK_KIND_SIGNED */
    uint64_t u[DMLK_CHUNK]; /* DMLK_KIND_UNSIGNED */
} dmlk_promoted;

/* Reads count <= DMLK_CHUNK elements of a type of at least a byte; `to` has the kind of the type. */
void dmlk_load_promoted(uint32_t type, const uint8_t *at, int64_t stride, int64_t count, dmlk_promoted *to);

/* Writes count <= DMLK_CHUNK elements of kind `kind`:
 *   to a float: rounded to nearest even, overflow to infinity; a NaN keeps its sign and the upper bits of its payload;
 *   float to integer: truncated toward zero, saturated, NaN to 0;
 *   integer to narrower integer: the low bits. */
void dmlk_store_promoted(uint32_t type, uint8_t *at, int64_t stride, int64_t count, enum dmlk_kind kind,
                     const dmlk_promoted *from);

static inline int64_t dmlk_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t dmlk_max(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
