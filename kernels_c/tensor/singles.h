/* singles.h - elements of FLOAT32 and FLOAT16 tensors as floats in the kernel's own memory, for kernels that compute
 * in FLOAT32. */
#ifndef DMLK_SINGLES_H
#define DMLK_SINGLES_H

#include "access.h"
#include "element.h"
#include "float16.h"

static inline bool dmlk_is_single(uint32_t type) { return type == DMLK_FLOAT32 || type == DMLK_FLOAT16; }

/* Reads `count` elements, `stride` elements apart. */
static inline void dmlk_load_singles(uint32_t type, const uint8_t *at, int64_t stride, int64_t count, float *to) {
    const float *singles = (const float *)(const void *)at;
    const uint16_t *halves = (const uint16_t *)(const void *)at;
#ifndef DMLK_CHECKED
    if (stride == 1) { /* the same, in vectors */
        if (type == DMLK_FLOAT32) {
            memcpy(to, singles, (size_t)count * sizeof *to);
        } else {
            dmlk_widen_float16(halves, count, to);
        }
        return;
    }
#endif
    for (int64_t i = 0; i < count; i++) {
        to[i] = type == DMLK_FLOAT32 ? DMLK_LOAD(singles, i * stride) : dmlk_float16_to_float(DMLK_LOAD(halves, i * stride));
    }
}

/* The same, but does not copy contiguous FLOAT32s: returns where the elements are, `room` or the tensor itself. */
static inline const float *dmlk_singles(uint32_t type, const uint8_t *at, int64_t stride, int64_t count, float *room) {
#ifndef DMLK_CHECKED
    if (type == DMLK_FLOAT32 && stride == 1) {
        return (const float *)(const void *)at;
    }
#endif
    dmlk_load_singles(type, at, stride, count, room);
    return room;
}

/* Writes `count` elements, `stride` elements apart; every NaN becomes DMLK_NAN_BITS (see element.h). */
static inline void dmlk_store_singles(uint32_t type, uint8_t *at, int64_t stride, int64_t count, const float *from) {
    float *singles = (float *)(void *)at;
    uint16_t *halves = (uint16_t *)(void *)at;
    for (int64_t i = 0; i < count && type == DMLK_FLOAT32; i++) {
        DMLK_STORE(singles, i * stride, dmlk_one_nan(from[i]));
    }
    for (int64_t i = 0; i < count && type == DMLK_FLOAT16; i++) {
        DMLK_STORE(halves, i * stride, dmlk_float_to_float16(dmlk_one_nan(from[i])));
    }
}

#endif
