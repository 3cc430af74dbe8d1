/* element_wise_binary: out = function(a, b). */
#include "element_wise_binary.h"

#include "kernel.h"
#include "staged_rows.h"

#define DMLK_BODY "element_wise_binary.inc"
#include "each_type.inc"

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "element_wise_binary_bits.inc"
#include "each_type.inc"

/* For sums that go on to a fused activation before they are rounded to FLOAT16. */
static void row_float16_float32(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    (void)context;
    const uint16_t *a = (const uint16_t *)at[0], *b = (const uint16_t *)at[1];
    float *out = (float *)at[2];
    const int64_t a_stride = strides[0], b_stride = strides[1], out_stride = strides[2];
    for (int64_t i = 0; i < count; i++) {
        const float x = dmlk_float16_to_float(DMLK_LOAD(a, i * a_stride));
        const float y = dmlk_float16_to_float(DMLK_LOAD(b, i * b_stride));
        DMLK_STORE(out, i * out_stride, dmlk_one_nan(x + y));
    }
}

static dmlk_row *const add_rows[] = {
#define DMLK_BODY "row_table.inc"
#include "each_type.inc"
};

static dmlk_row *choose_row(uint32_t function, uint32_t in, uint32_t out) {
    if (dmlk_bits_type(in) == DMLK_UNKNOWN) {
        return NULL;
    }
    switch (function) {
    case DMLK_BINARY_ADD:
        if (in == DMLK_FLOAT16 && out == DMLK_FLOAT32) {
            return row_float16_float32;
        }
        return in == out ? add_rows[in] : NULL;
    case DMLK_BINARY_BIT_XOR: {
        static dmlk_row *const xor_rows[] = {
            [DMLK_UINT8] = xor_uint8,
            [DMLK_UINT16] = xor_uint16,
            [DMLK_UINT32] = xor_uint32,
            [DMLK_UINT64] = xor_uint64,
        };
        return in == out ? xor_rows[dmlk_bits_type(in)] : NULL;
    }
    default: return NULL;
    }
}

int dmlk_run_element_wise_binary(const dmlk_call *call) {
    dmlk_element_wise_binary k;
    if (!dmlk_has_views(call, 3, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *a = &call->views[0], *b = &call->views[1], *out = &call->views[2];
    dmlk_row *row = a->type == b->type ? choose_row(k.function, a->type, out->type) : NULL;
    if (row == NULL) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const dmlk_view *const views[] = {a, b, out};
#ifndef DMLK_CHECKED
    if (k.function == DMLK_BINARY_ADD && a->type == DMLK_FLOAT16) { /* what it is rounded to is up to the output */
        return dmlk_float_rows(views, 3, row_float32, NULL);
    }
#endif
    return dmlk_staged_rows(views, 3, row, NULL);
}
