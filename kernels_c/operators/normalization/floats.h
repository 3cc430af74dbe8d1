/* floats.h - pieces of a row as contiguous FLOAT32s. */
#ifndef DMLK_NORMALIZATION_FLOATS_H
#define DMLK_NORMALIZATION_FLOATS_H

#include "float16.h"
#include "kernel.h"

/* Whether the elements are contiguous FLOAT32s, which need no copy. */
static inline bool dmlk_are_floats(uint32_t type, int64_t stride) {
#ifdef DMLK_CHECKED
    (void)type, (void)stride;
    return false; /* loads are checked one by one */
#else
    return type == DMLK_FLOAT32 && stride == 1;
#endif
}

/* `count` elements as contiguous floats: in place or, for at most DMLK_CHUNK elements, copied to `room`. */
static inline const float *dmlk_floats(uint32_t type, const uint8_t *at, int64_t stride, int64_t count, float *room) {
    if (dmlk_are_floats(type, stride)) {
        return (const float *)at;
    }
#ifndef DMLK_CHECKED
    if (type == DMLK_FLOAT16 && stride == 1) {
        dmlk_widen_float16((const uint16_t *)at, count, room);
        return room;
    }
#endif
    dmlk_promoted wide;
    dmlk_load_promoted(type, at, stride, count, &wide);
    for (int64_t i = 0; i < count; i++) {
        room[i] = (float)wide.f[i];
    }
    return room;
}

/* Stores `count` floats, at most DMLK_CHUNK. */
static inline void dmlk_store_floats(uint32_t type, uint8_t *at, int64_t stride, int64_t count, const float *from) {
#ifndef DMLK_CHECKED
    if (type == DMLK_FLOAT16 && stride == 1) {
        dmlk_narrow_floats(from, count, (uint16_t *)at);
        return;
    }
#endif
    dmlk_promoted wide;
    for (int64_t i = 0; i < count; i++) {
        wide.f[i] = (double)from[i];
    }
    dmlk_store_promoted(type, at, stride, count, DMLK_KIND_FLOAT, &wide);
}

/* Whether each view is absent, FLOAT16 or FLOAT32. */
static inline bool dmlk_have_floats(const dmlk_call *call) {
    for (uint32_t k = 0; k < call->view_count; k++) {
        const dmlk_view *view = &call->views[k];
        if (view->base != NULL && view->type != DMLK_FLOAT32 && view->type != DMLK_FLOAT16) {
            return false;
        }
    }
    return true;
}

/* Whether the sizes along the axes in the mask are 1. */
static inline bool dmlk_is_one_along(const dmlk_view *view, uint32_t axes_mask) {
    for (uint32_t d = 0; d < view->rank; d++) {
        if ((axes_mask >> d & 1) && view->sizes[d] != 1) {
            return false;
        }
    }
    return true;
}

#endif
