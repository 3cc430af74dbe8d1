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

/* Adds what one index of each tuple selects.  The indices are loaded first, as the host may change them meanwhile;
 * `drop` and `first` (the first index of the tuples) are constants where this is inlined. */
#define RESOLVE(INDEX, NEAREST, INSIDE)                                                                             \
    static inline __attribute__((always_inline)) void add_##INDEX(                                                  \
        const INDEX##_t *restrict indices, int64_t count, int64_t size, int64_t step, bool drop, bool first,        \
        int64_t *restrict offsets) {                                                                                \
        for (int64_t i = 0; i < count; i++) {                                                                       \
            const int64_t before = first ? 0 : offsets[i], offset = before + NEAREST(indices[i], size) * step;      \
            offsets[i] = drop && (before == DMLK_MISSED || !INSIDE(indices[i], size)) ? DMLK_MISSED : offset;       \
        }                                                                                                           \
    }                                                                                                               \
    DMLK_EACH_ISA(add_each_##INDEX,                                                                                 \
                  (const INDEX##_t *indices, int64_t count, int64_t size, int64_t step, bool drop, bool first,      \
                   int64_t *offsets),                                                                               \
                  (indices, count, size, step, drop, first, offsets)) {                                             \
        if (drop) {                                                                                                 \
            first ? add_##INDEX(indices, count, size, step, true, true, offsets)                                    \
                  : add_##INDEX(indices, count, size, step, true, false, offsets);                                  \
        } else {                                                                                                    \
            first ? add_##INDEX(indices, count, size, step, false, true, offsets)                                   \
                  : add_##INDEX(indices, count, size, step, false, false, offsets);                                 \
        }                                                                                                           \
    }                                                                                                               \
    static void resolve_##INDEX(const dmlk_selected *s, const uint8_t *at, int64_t stride, int64_t count, bool drop, \
                                int64_t *offsets) {                                                                 \
        INDEX##_t loaded[DMLK_CHUNK];                                                                               \
        for (uint32_t q = 0; q < s->count; q++) {                                                                   \
            const INDEX##_t *indices = (const INDEX##_t *)at + q * s->apart;                                        \
            for (int64_t i = 0; i < count; i++) {                                                                   \
                loaded[i] = DMLK_LOAD_ONCE(indices, i * stride);                                                    \
            }                                                                                                       \
            add_each_##INDEX(loaded, count, s->sizes[q], s->strides[q], drop, q == 0, offsets);                     \
        }                                                                                                           \
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
