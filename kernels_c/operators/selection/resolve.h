/* resolve.h - indices as offsets in the table. */
#ifndef DMLK_RESOLVE_H
#define DMLK_RESOLVE_H

#include "kernel.h"
#include "selected.h"

#define DMLK_MISSED (-1) /* no element of the table */

/* The offsets that the indices of `count` <= DMLK_CHUNK elements select, in elements; with `drop` DMLK_MISSED where
 * one of them is out of range, otherwise that of the nearest element.  Each index is loaded once. */
typedef void dmlk_resolve(const dmlk_selected *s, const uint8_t *at, int64_t stride, int64_t count, bool drop,
                          int64_t *offsets);

#define RESOLVE(INDEX, NEAREST, INSIDE)                                                                          \
    static inline void resolve_##INDEX(const dmlk_selected *s, const uint8_t *at, int64_t stride, int64_t count, \
                                       bool drop, int64_t *offsets) {                                            \
        for (uint32_t q = 0; q < s->count; q++) {                                                                \
            const INDEX##_t *indices = (const INDEX##_t *)at + q * s->apart;                                     \
            const int64_t size = s->sizes[q], step = s->strides[q];                                              \
            for (int64_t i = 0; i < count; i++) {                                                                \
                const INDEX##_t index = DMLK_LOAD_ONCE(indices, i * stride);                                     \
                const int64_t before = q == 0 ? 0 : offsets[i];                                                  \
                const bool missed = drop && (before == DMLK_MISSED || !INSIDE(index, size));                     \
                offsets[i] = missed ? DMLK_MISSED : before + NEAREST(index, size) * step;                        \
            }                                                                                                    \
        }                                                                                                        \
    }
RESOLVE(int32, dmlk_signed_index, dmlk_signed_inside)
RESOLVE(int64, dmlk_signed_index, dmlk_signed_inside)
RESOLVE(uint32, dmlk_unsigned_index, dmlk_unsigned_inside)
RESOLVE(uint64, dmlk_unsigned_index, dmlk_unsigned_inside)
#undef RESOLVE

/* NULL: it is no type of indices. */
static inline dmlk_resolve *dmlk_resolve_of(uint32_t type) {
    switch (type) {
    case DMLK_INT32: return resolve_int32;
    case DMLK_INT64: return resolve_int64;
    case DMLK_UINT32: return resolve_uint32;
    case DMLK_UINT64: return resolve_uint64;
    default: return NULL;
    }
}

#endif
