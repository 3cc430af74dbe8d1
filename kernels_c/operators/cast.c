/* cast: out = in, converted as dmlk_store_wide says.  Equal types: the bits are copied. */
#include "kernel.h"
#include "packed.h"

struct types {
    uint32_t in, out;
};

static void cast_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct types *type = context;
    const int64_t in_step = strides[0] * dmlk_type_bytes(type->in);
    const int64_t out_step = strides[1] * dmlk_type_bytes(type->out);
    for (int64_t i = 0; i < count; i += DMLK_CHUNK) {
        int64_t n = dmlk_min(count - i, DMLK_CHUNK);
        dmlk_wide x;
        dmlk_load_wide(type->in, at[0] + i * in_step, strides[0], n, &x);
        dmlk_store_wide(type->out, at[1] + i * out_step, strides[1], n, dmlk_type_kind(type->in), &x);
    }
}

static int convert(const dmlk_view *in, const dmlk_view *out) {
    const dmlk_view *const views[] = {in, out};
    struct types type = {in->type, out->type};
#ifndef DMLK_CHECKED
    /* By way of FLOAT32; only from FLOAT64 to FLOAT16 that would round twice. */
    const bool halves = type.in == DMLK_FLOAT16 || type.out == DMLK_FLOAT16;
    if (halves && type.in != DMLK_FLOAT64 && dmlk_type_bytes(type.in) != 0) {
        type.in = type.in == DMLK_FLOAT16 ? DMLK_FLOAT32 : type.in;
        type.out = type.out == DMLK_FLOAT16 ? DMLK_FLOAT32 : type.out;
        return dmlk_float_rows(views, 2, type.in == type.out ? NULL : cast_row, &type);
    }
#endif
    return dmlk_packed_rows(views, 2, cast_row, &type);
}

int dmlk_run_cast(const dmlk_call *call) {
    if (!dmlk_has_views(call, 2, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    const bool same = in->type == out->type && dmlk_type_bytes(in->type) != 0;
    return same ? dmlk_copy_elements(in, out) : convert(in, out);
}
