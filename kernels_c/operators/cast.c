/* cast: out = in, converted by the rules of dmlk_store_promoted.  Equal types: the bits are copied. */
#include <math.h>
#include <string.h>

#include "float16.h"
#include "kernel.h"
#include "staged_rows.h"

struct types {
    uint32_t in, out;
};

static void cast_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct types *type = context;
    const int64_t in_step = strides[0] * dmlk_type_bytes(type->in);
    const int64_t out_step = strides[1] * dmlk_type_bytes(type->out);
    for (int64_t i = 0; i < count; i += DMLK_CHUNK) {
        int64_t n = dmlk_min(count - i, DMLK_CHUNK);
        dmlk_promoted x;
        dmlk_load_promoted(type->in, at[0] + i * in_step, strides[0], n, &x);
        dmlk_store_promoted(type->out, at[1] + i * out_step, strides[1], n, dmlk_type_kind(type->in), &x);
    }
}

#ifndef DMLK_CHECKED

/* Frequent pairs of types have direct rows, which compilers vectorize. */

/* Truncates toward zero and saturates; NaN becomes 0, as in dmlk_store_promoted. */
static inline int32_t to_int32(float x) { /* 2^31 - 1 is not a float */
    const float least = x > -0x1p31f ? x : -0x1p31f, number = x < 0x1p31f ? least : 0;
    return x >= 0x1p31f ? INT32_MAX : (int32_t)number;
}

/* The same to a one-byte type.  Clamps bits and integers: compilers turn float clamps into branches. */
static inline int32_t limited(float x, int32_t low, int32_t high) {
    const uint32_t bits = dmlk_float_bits(x), magnitude = bits & 0x7fffffffu, most = dmlk_float_bits(1024);
    const int32_t number = (int32_t)dmlk_bits_float((magnitude < most ? magnitude : most) | (bits & 0x80000000u));
    const int32_t least = number > low ? number : low, result = least < high ? least : high;
    return magnitude <= dmlk_float_bits(INFINITY) ? result : 0;
}

#define PAIRS(PAIR)                                           \
    PAIR(FLOAT32, float, FLOAT64, double, x)                  \
    PAIR(FLOAT64, double, FLOAT32, float, x)                  \
    PAIR(FLOAT32, float, INT32, int32_t, to_int32(x))         \
    PAIR(FLOAT32, float, INT8, int8_t, limited(x, -128, 127)) \
    PAIR(FLOAT32, float, UINT8, uint8_t, limited(x, 0, 255))  \
    PAIR(INT32, int32_t, FLOAT32, float, x)                   \
    PAIR(INT8, int8_t, FLOAT32, float, x)                     \
    PAIR(UINT8, uint8_t, FLOAT32, float, x)                   \
    PAIR(INT8, int8_t, INT32, int32_t, x)                     \
    PAIR(UINT8, uint8_t, INT32, int32_t, x)                   \
    PAIR(INT32, int32_t, INT8, int8_t, x)                     \
    PAIR(INT32, int32_t, UINT8, uint8_t, x)                   \
    PAIR(INT32, int32_t, INT64, int64_t, x)                   \
    PAIR(UINT32, uint32_t, INT64, int64_t, x)                 \
    PAIR(INT64, int64_t, INT32, int32_t, x)                   \
    PAIR(INT64, int64_t, UINT32, uint32_t, x)

#define ROW(in_type, from, out_type, to, value)                        \
    DMLK_ROW_OF_EACH_ISA(in_type##_##out_type) {                       \
        (void)context;                                                 \
        const from *in = (const from *)at[0];                          \
        to *out = (to *)at[1];                                         \
        const int64_t in_stride = strides[0], out_stride = strides[1]; \
        for (int64_t i = 0; i < count; i++) {                          \
            const from x = in[i * in_stride];                          \
            out[i * out_stride] = (to)(value);                         \
        }                                                              \
    }
#define ENTRY(in_type, from, out_type, to, value) [DMLK_##in_type][DMLK_##out_type] = in_type##_##out_type,

PAIRS(ROW)

/* (dmlk_staged_rows passes strided elements only in short rows.) */
static void widen_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    if (strides[0] == 1 && strides[1] == 1) {
        dmlk_widen_float16((const uint16_t *)at[0], count, (float *)at[1]);
    } else {
        cast_row(at, strides, count, context);
    }
}

static void narrow_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    if (strides[0] == 1 && strides[1] == 1) {
        dmlk_narrow_floats((const float *)at[0], count, (uint16_t *)at[1]);
    } else {
        cast_row(at, strides, count, context);
    }
}

static dmlk_row *choose_row(uint32_t in, uint32_t out) {
    static dmlk_row *const rows[DMLK_INT64 + 1][DMLK_INT64 + 1] = {
        [DMLK_FLOAT16][DMLK_FLOAT32] = widen_row, [DMLK_FLOAT32][DMLK_FLOAT16] = narrow_row, PAIRS(ENTRY)};
    return rows[in][out] != NULL ? rows[in][out] : cast_row;
}

/* Behind sums of INT32 alone. */
bool dmlk_prepare_cast(const dmlk_call *call, dmlk_follower *follower) {
    const struct types types = {DMLK_INT32, DMLK_FLOAT32};
    if (!dmlk_has_views(call, 2, 0) || call->views[0].type != types.in || call->views[1].type != types.out) {
        return false;
    }
    follower->row = choose_row(types.in, types.out);
    follower->operands = 2;
    follower->order[0] = 0, follower->order[1] = 1;
    follower->known = DMLK_CAST;
    memcpy(follower->context, &types, sizeof types);
    return true;
}

static int convert(const dmlk_view *in, const dmlk_view *out) {
    const dmlk_view *const views[] = {in, out};
    struct types type = {in->type, out->type};
    const bool integers = dmlk_type_kind(type.in) != DMLK_KIND_FLOAT && dmlk_type_kind(type.out) != DMLK_KIND_FLOAT;
    if (integers && dmlk_type_bytes(type.in) == dmlk_type_bytes(type.out)) {
        return dmlk_copy_elements(in, out);
    }
    dmlk_row *row = choose_row(type.in, type.out);
    const bool halves = type.in == DMLK_FLOAT16 || type.out == DMLK_FLOAT16;
    if (row != cast_row || !halves || type.in == DMLK_FLOAT64) { /* from FLOAT64 through FLOAT32 would round twice */
        return dmlk_staged_rows(views, 2, row, &type);
    }
    type.in = type.in == DMLK_FLOAT16 ? DMLK_FLOAT32 : type.in;
    type.out = type.out == DMLK_FLOAT16 ? DMLK_FLOAT32 : type.out;
    return dmlk_float_rows(views, 2, choose_row(type.in, type.out), &type);
}

#else

static int convert(const dmlk_view *in, const dmlk_view *out) {
    const struct types type = {in->type, out->type};
    return dmlk_staged_rows((const dmlk_view *[]){in, out}, 2, cast_row, &type);
}

#endif

int dmlk_run_cast(const dmlk_call *call) {
    if (!dmlk_has_views(call, 2, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    if (dmlk_type_bytes(in->type) == 0 || dmlk_type_bytes(out->type) == 0) {
        return DMLK_NOT_IMPLEMENTED;
    }
    return in->type == out->type ? dmlk_copy_elements(in, out) : convert(in, out);
}
