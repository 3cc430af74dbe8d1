/* element.h - data types, and one element in memory: sizes, float16, narrowing to integers. */
#ifndef DMLK_ELEMENT_H
#define DMLK_ELEMENT_H

#include <string.h>

#include "dmlk.h"

/* Bits of one element; 0: no such type. */
static inline uint32_t dmlk_type_bits(uint32_t type) {
    static const uint8_t bits[] = {0, 32, 16, 32, 16, 8, 32, 16, 8, 64, 64, 64, 4, 4};
    return type < sizeof bits ? bits[type] : 0;
}

/* Bytes of one element; 0: no such type, or elements smaller than a byte. */
static inline int64_t dmlk_type_bytes(uint32_t type) { return dmlk_type_bits(type) / 8; }

enum dmlk_kind { DMLK_KIND_FLOAT, DMLK_KIND_SIGNED, DMLK_KIND_UNSIGNED };

static inline enum dmlk_kind dmlk_type_kind(uint32_t type) {
    switch (type) {
    case DMLK_FLOAT16:
    case DMLK_FLOAT32:
    case DMLK_FLOAT64: return DMLK_KIND_FLOAT;
    case DMLK_INT4:
    case DMLK_INT8:
    case DMLK_INT16:
    case DMLK_INT32:
    case DMLK_INT64: return DMLK_KIND_SIGNED;
    default: return DMLK_KIND_UNSIGNED;
    }
}

/* The unsigned type as wide as `type`, for kernels that use raw bits; 0: smaller than a byte. */
static inline uint32_t dmlk_bits_type(uint32_t type) {
    switch (dmlk_type_bits(type)) {
    case 8: return DMLK_UINT8;
    case 16: return DMLK_UINT16;
    case 32: return DMLK_UINT32;
    case 64: return DMLK_UINT64;
    default: return DMLK_UNKNOWN;
    }
}

static inline uint32_t dmlk_float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float dmlk_bits_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t dmlk_double_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double dmlk_bits_double(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Results are bit-identical on every CPU.  The sign and payload of a NaN result depend on the instructions, the
 * order of the operands and the split of the work, so kernels store every NaN result as this NaN. */
#define DMLK_NAN_BITS 0x7fc00000u /* as FLOAT64 and FLOAT16 7ff8000000000000 and 7e00 */

static inline float dmlk_one_nan_float(float x) { return x == x ? x : dmlk_bits_float(DMLK_NAN_BITS); }
static inline double dmlk_one_nan_double(double x) { return x == x ? x : (double)dmlk_bits_float(DMLK_NAN_BITS); }
#define dmlk_one_nan(x) _Generic((x), float: dmlk_one_nan_float, double: dmlk_one_nan_double)(x)

/* Exact; a NaN becomes quiet and keeps its sign and payload, as on CPUs.
 * float16: 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits. */
static inline float dmlk_float16_to_float(uint16_t half) {
    uint32_t magnitude = half & 0x7fffu;
    /* Normal: same fraction, exponent moved from bias 15 to bias 127.  Infinity, NaN: exponent all ones. */
    uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
    normal |= magnitude >= 0x7c00u ? 0x7f800000u : 0u;
    normal |= magnitude > 0x7c00u ? 0x400000u : 0u; /* quiet */
    /* Denormal: in the low bits of 0.5f they are units of 2^-24. */
    float denormal = dmlk_bits_float(0x3f000000u | magnitude) - 0.5f;
    uint32_t bits = magnitude < 0x400u ? dmlk_float_bits(denormal) : normal;
    return dmlk_bits_float(bits | (uint32_t)(half & 0x8000u) << 16);
}

/* Rounds to nearest even, overflows to infinity; a NaN becomes quiet and keeps its sign and the upper bits of its
 * payload. */
static inline uint16_t dmlk_float_to_float16(float x) {
    uint32_t bits = dmlk_float_bits(x), magnitude = bits & 0x7fffffffu;
    /* Normal: drop 13 fraction bits; the rounding may correctly carry into the exponent. */
    uint32_t half = ((magnitude + 0xfffu + (magnitude >> 13 & 1u)) >> 13) - ((127u - 15u) << 10);
    /* Below 2^-14: the addition rounds to multiples of 2^-24, which are then the low bits. */
    uint32_t denormal = dmlk_float_bits(dmlk_bits_float(magnitude) + 0.5f) - 0x3f000000u;
    half = magnitude < 0x38800000u ? denormal : half;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half; /* 65520 and more */
    half = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000u));
}

/* The same from float64, with a single rounding; through float32 there would be two. */
static inline uint16_t dmlk_double_to_float16(double x) {
    uint64_t bits = dmlk_double_bits(x), magnitude = bits & 0x7fffffffffffffffu;
    uint64_t half = ((magnitude + 0x1ffffffffffu + (magnitude >> 42 & 1u)) >> 42) - ((1023u - 15u) << 10);
    /* Below 2^-14; float64s near 2^28 are 2^-24 apart. */
    uint64_t denormal = dmlk_double_bits(dmlk_bits_double(magnitude) + 0x1p28) - dmlk_double_bits(0x1p28);
    half = magnitude < 0x3f10000000000000u ? denormal : half;
    half = magnitude >= 0x40effe0000000000u ? 0x7c00u : half; /* 65520 and more */
    half = magnitude > 0x7ff0000000000000u ? 0x7e00u | (magnitude >> 42 & 0x3ffu) : half;
    return (uint16_t)(half | (bits >> 48 & 0x8000u));
}

#endif
