/* concatenate: out = the inputs one after another along an axis, bit by bit; any number of inputs. */
#include "concatenate.h"

#include "boxes.h"

int dmlk_run_concatenate(const dmlk_call *call) {
    dmlk_concatenate k;
    if (call->view_count < 2 || !dmlk_has_views(call, call->view_count, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *out = &call->views[call->view_count - 1];
    const uint32_t width = dmlk_bits_type(out->type);
    if (k.axis >= out->rank) {
        return DMLK_BAD_PACKET;
    }
    int64_t left = out->sizes[k.axis];
    for (const dmlk_view *in = call->views; in < out; in++) {
        if (width == DMLK_UNKNOWN || dmlk_bits_type(in->type) != width) {
            return DMLK_NOT_IMPLEMENTED;
        }
        if (in->rank != out->rank || in->sizes[k.axis] > left) {
            return DMLK_BAD_PACKET;
        }
        left -= in->sizes[k.axis];
    }
    int status = left == 0 ? DMLK_OK : DMLK_BAD_PACKET;
    int64_t at = 0;
    for (const dmlk_view *in = call->views; status == DMLK_OK && in < out; in++) {
        dmlk_view part = *out;
        dmlk_cut(&part, k.axis, at, 1, in->sizes[k.axis]);
        status = dmlk_copy_elements(in, &part);
        at += in->sizes[k.axis];
    }
    return status;
}
