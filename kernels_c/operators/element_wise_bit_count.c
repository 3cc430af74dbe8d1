/* element_wise_bit_count: out = number of bits set in the element of in, whatever its type. */
#include "bit_count.h"
#include "kernel.h"
#include "staged_rows.h"

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "element_wise_bit_count.inc"
#include "each_type.inc"

int dmlk_run_element_wise_bit_count(const dmlk_call *call) {
    static dmlk_row *const rows[][2] = {
        [DMLK_UINT8] = {to_uint8_uint8, to_uint32_uint8},
        [DMLK_UINT16] = {to_uint8_uint16, to_uint32_uint16},
        [DMLK_UINT32] = {to_uint8_uint32, to_uint32_uint32},
        [DMLK_UINT64] = {to_uint8_uint64, to_uint32_uint64},
    };
    if (!dmlk_has_views(call, 2, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    uint32_t bits = dmlk_bits_type(in->type);
    if (bits == DMLK_UNKNOWN || (out->type != DMLK_UINT8 && out->type != DMLK_UINT32)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    dmlk_row *row = rows[bits][out->type == DMLK_UINT32];
#ifndef DMLK_CHECKED
    dmlk_row *tuned = dmlk_bit_count_row(in->type, out->type);
    row = tuned != NULL ? tuned : row;
#endif
    return dmlk_staged_rows((const dmlk_view *[]){in, out}, 2, row, NULL);
}
