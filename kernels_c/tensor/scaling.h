/* scaling.h - floats quantized to small integers, and sums of INT32 scaled to bytes: what the kernel scale_sums does, for
 * products that scale their sums before they store them (see followers.h). */
#ifndef DMLK_SCALING_H
#define DMLK_SCALING_H

#include <float.h>

#include "element.h"
#include "view.h"

/* A type of at most 8 bits as raw bytes: element = (raw ^ flip) + low. */
typedef struct dmlk_integers {
    int32_t flip, low, high;
    bool is_half;
} dmlk_integers;

/* Rounds a number to an integer, half to even.  It may be clamped before it is rounded, as the limits are integers. */
static inline uint8_t dmlk_quantized_number(float x, uint8_t zero, const dmlk_integers *type) {
    const int32_t base = zero ^ type->flip;
    const float low = (float)-base, high = (float)(type->high - type->low - base);
    const float least = x > low ? x : low, near = least < high ? least : high;
    const float integer = near + 0x1.8p23f; /* floats of this size are 1 apart */
    return (uint8_t)((dmlk_float_bits(integer) - dmlk_float_bits(0x1.8p23f) + (uint32_t)base) ^ (uint32_t)type->flip);
}

/* The same; NaN: 0. */
static inline uint8_t dmlk_quantized_float(float x, uint8_t zero, const dmlk_integers *type) {
    return dmlk_quantized_number(x == x ? x : 0, zero, type);
}

/* The output, and what its elements are scaled with: numbers, or a number for each channel (axis 1).
 * Element = (sum + bias) * (first scale * second scale / third scale), quantized. */
typedef struct dmlk_scaling {
    const dmlk_view *out, *bias, *scales[3]; /* bias->base NULL: there is none */
    uint8_t zero;
    dmlk_integers type;
} dmlk_scaling;

/* Sets the scaling from a call of scale_sums, which is valid; false: it is of another form. */
typedef bool dmlk_find_scaling(const dmlk_call *call, dmlk_scaling *scaling);

static inline uint32_t dmlk_scaling_bias(const dmlk_scaling *s, int64_t channel) {
    return s->bias->base == NULL ? 0 : ((const uint32_t *)s->bias->base)[channel * s->bias->strides[1]];
}

/* A number by which sums give the same bytes as by the exact factor, which may be NaN or infinite: 0 times that is
 * NaN, which is rounded to 0. */
static inline float dmlk_scaling_factor(const dmlk_scaling *s, int64_t channel) {
    float of[3];
    for (int k = 0; k < 3; k++) {
        of[k] = ((const float *)s->scales[k]->base)[channel * s->scales[k]->strides[1]];
    }
    const float factor = of[0] * of[1] / of[2];
    return factor != factor ? 0 : factor > FLT_MAX ? FLT_MAX : factor < -FLT_MAX ? -FLT_MAX : factor;
}

#endif
