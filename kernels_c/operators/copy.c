/* copy: out = in, bit by bit; only the layout may differ. */
#include "half_bytes.h"
#include "kernel.h"

#define PIECE 1024 /* elements */

static void copy_half_bytes(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    (void)context;
    for (int64_t i = 0; i < count; i += PIECE) {
        const int64_t n = dmlk_min(count - i, PIECE);
        uint8_t piece[PIECE];
        dmlk_load_half_bytes(at[0] + i * strides[0], strides[0], n, piece);
        dmlk_store_half_bytes(at[1] + i * strides[1], strides[1], n, piece);
    }
}

int dmlk_run_copy(const dmlk_call *call) {
    if (!dmlk_has_views(call, 2, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    if (dmlk_is_half_byte(in->type) && dmlk_is_half_byte(out->type)) {
        const dmlk_view from = dmlk_half_byte_view(in), to = dmlk_half_byte_view(out);
        return dmlk_indexed_rows((const dmlk_view *[]){&from, &to}, 2, copy_half_bytes, NULL);
    }
    if (dmlk_bits_type(in->type) == DMLK_UNKNOWN || dmlk_bits_type(in->type) != dmlk_bits_type(out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    return dmlk_copy_elements(in, out);
}
