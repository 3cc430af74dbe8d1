/* half_bytes.h - elements of 4 bits: two share a byte, the first one in its low half.
 *
 * Only kernels whose tables list the 4-bit types use this; the walkers refuse such views.  A half-byte pointer is
 * twice the address of a byte, plus 1 for its high half: adding n moves it by n elements, as a pointer moves over
 * one-byte elements.  So dmlk_indexed_rows, which does not access memory itself, can walk dmlk_half_byte_view(view)
 * and pass half-byte pointers to the row.  No other walker can. */
#ifndef DMLK_HALF_BYTES_H
#define DMLK_HALF_BYTES_H

#include "access.h"
#include "view.h"

static inline bool dmlk_is_half_byte(uint32_t type) { return dmlk_type_bits(type) == 4; }

/* The view with a half-byte pointer as its base, and a type of one byte. */
static inline dmlk_view dmlk_half_byte_view(const dmlk_view *view) {
    dmlk_view half = *view;
    half.base = (uint8_t *)((uintptr_t)view->base << 1);
    half.type = view->type == DMLK_INT4 ? DMLK_INT8 : DMLK_UINT8;
    return half;
}

/* Loads `count` elements as bytes from 0 to 15. */
static inline void dmlk_load_half_bytes(const uint8_t *at, int64_t stride, int64_t count, uint8_t *restrict to) {
    int64_t i = 0;
#ifndef DMLK_CHECKED
    if (stride == 1 && count > 1) {
        const int64_t odd = (int64_t)((uintptr_t)at & 1), pairs = (count - odd) / 2;
        const uint8_t *bytes = (const uint8_t *)(((uintptr_t)at + 1) >> 1);
        if (odd) {
            to[0] = DMLK_LOAD_HALF(at);
        }
        for (int64_t k = 0; k < pairs; k++) {
            to[odd + 2 * k] = bytes[k] & 15;
            to[odd + 2 * k + 1] = bytes[k] >> 4;
        }
        i = odd + 2 * pairs;
    }
#endif
    for (; i < count; i++) {
        to[i] = DMLK_LOAD_HALF(at + i * stride);
    }
}

/* Stores the low halves of `count` bytes as elements.  If only one half of a byte is stored, the other half does not
 * change, even if another thread stores it at the same time. */
static inline void dmlk_store_half_bytes(uint8_t *at, int64_t stride, int64_t count, const uint8_t *restrict from) {
    int64_t i = 0;
#ifndef DMLK_CHECKED
    if (stride == 1 && count > 1) {
        const int64_t odd = (int64_t)((uintptr_t)at & 1), pairs = (count - odd) / 2;
        uint8_t *bytes = (uint8_t *)(((uintptr_t)at + 1) >> 1);
        if (odd) {
            DMLK_STORE_HALF(at, from[0]);
        }
        for (int64_t k = 0; k < pairs; k++) {
            bytes[k] = (uint8_t)((from[odd + 2 * k] & 15) | from[odd + 2 * k + 1] << 4);
        }
        i = odd + 2 * pairs;
    }
#endif
    for (; i < count; i++) {
        DMLK_STORE_HALF(at + i * stride, from[i]);
    }
}

#endif
