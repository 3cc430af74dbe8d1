/* resolve.h - converts indices to offsets in the table. */
#ifndef DMLK_RESOLVE_H
#define DMLK_RESOLVE_H

#include "kernel.h"
#include "selected.h"

#define DMLK_MISSED (-1) /* instead of an offset: no element is selected */

/* Finds the offsets, in elements, that the indices of `count` <= DMLK_CHUNK elements select.  If an index is out of
 * range, the offset is DMLK_MISSED with `drop`, otherwise that of the nearest element.  Each index is loaded once. */
typedef void dmlk_resolve(const dmlk_selected *s, const uint8_t *at, int64_t stride, int64_t count, bool drop,
                          int64_t *offsets);

/* The usual case, without indices out of range and with a small table, takes few instructions: `outside` becomes
 * negative if an index is out of range, and offsets are products of 32 bits. */
#define RESOLVE_INSIDE(INDEX)                                                                                       \
    DMLK_EACH_ISA(find_outside_##INDEX,                                                                             \
                  (const INDEX##_t *indices, int64_t count, int64_t size, int64_t *outside),                        \
                  (indices, count, size, outside)) {                                                                \
        int64_t signs = 0;                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                                       \
            const uint64_t index = (uint64_t)indices[i];                                                            \
            signs |= (int64_t)(index | ((uint64_t)size - 1 - index)); /* one of them is negative */                 \
        }                                                                                                           \
        *outside = signs;                                                                                           \
    }                                                                                                               \
    DMLK_EACH_ISA(add_inside_##INDEX,                                                                               \
                  (const INDEX##_t *restrict indices, int64_t count, uint32_t step, bool first,                     \
                   int64_t *restrict offsets),                                                                      \
                  (indices, count, step, first, offsets)) {                                                         \
        for (int64_t i = 0; first && i < count; i++) {                                                              \
            offsets[i] = (int64_t)((uint64_t)(uint32_t)indices[i] * step);                                          \
        }                                                                                                           \
        for (int64_t i = 0; !first && i < count; i++) {                                                             \
            offsets[i] += (int64_t)((uint64_t)(uint32_t)indices[i] * step);                                         \
        }                                                                                                           \
    }
RESOLVE_INSIDE(int32)
RESOLVE_INSIDE(int64)
RESOLVE_INSIDE(uint32)
RESOLVE_INSIDE(uint64)
#undef RESOLVE_INSIDE

#ifdef DMLK_CHECKED
#define DMLK_LOAD_ROW(to, from, count) false
#else
#define DMLK_LOAD_ROW(to, from, count) (memcpy(to, from, (size_t)(count) * sizeof *(to)), true)
#endif

/* Adds the offsets of one index of each tuple.  The indices were loaded before, as the host may change them at any
 * time; `drop` and `first` (the first index of the tuples) are constants where this is inlined. */
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
        bool all_inside = true;                                                                                     \
        for (uint32_t q = 0; q < s->count; q++) {                                                                   \
            const INDEX##_t *indices = (const INDEX##_t *)at + q * s->apart;                                        \
            for (int64_t b = 0; stride == 1 && b < count * (int64_t)sizeof *indices; b += 64) {                     \
                __builtin_prefetch((const uint8_t *)(indices + count) + b); /* the next indices */                    \
            }                                                                                                       \
            const bool is_loaded = stride == 1 && DMLK_LOAD_ROW(loaded, indices, count);                            \
            for (int64_t i = 0; !is_loaded && i < count; i++) {                                                     \
                loaded[i] = DMLK_LOAD_ONCE(indices, i * stride);                                                    \
            }                                                                                                       \
            int64_t outside;                                                                                        \
            find_outside_##INDEX(loaded, count, s->sizes[q], &outside);                                             \
            all_inside = all_inside && outside >= 0;                                                                \
            if (all_inside && s->sizes[q] <= UINT32_MAX && s->strides[q] >= 0 && s->strides[q] <= UINT32_MAX) {     \
                add_inside_##INDEX(loaded, count, (uint32_t)s->strides[q], q == 0, offsets);                        \
                continue;                                                                                           \
            }                                                                                                       \
            add_each_##INDEX(loaded, count, s->sizes[q], s->strides[q], drop, q == 0, offsets);                     \
        }                                                                                                           \
    }
RESOLVE(int32, dmlk_signed_index, dmlk_signed_inside)
RESOLVE(int64, dmlk_signed_index, dmlk_signed_inside)
RESOLVE(uint32, dmlk_unsigned_index, dmlk_unsigned_inside)
RESOLVE(uint64, dmlk_unsigned_index, dmlk_unsigned_inside)
#undef RESOLVE

/* NULL: indices cannot have this type. */
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
