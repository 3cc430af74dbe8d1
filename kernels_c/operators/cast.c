/* cast: out = in, converted as dmlk_store_wide says.  Equal types: the bits are copied. */
#include "kernel.h"

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

int dmlk_run_cast(const dmlk_call *call) {
    if (!dmlk_has_views(call, 2, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    struct types type = {in->type, out->type};
    if (type.in == type.out && dmlk_type_bytes(type.in) != 0) {
        return dmlk_copy_elements(in, out);
    }
    return dmlk_for_rows((const dmlk_view *[]){in, out}, 2, cast_row, &type);
}
