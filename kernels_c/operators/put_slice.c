/* put_slice: out[first + i * step] = in[i] along each axis, bit by bit, and 0 elsewhere; steps may be negative. */
#include "put_slice.h"

#include "boxes.h"

static const uint64_t zero;

int dmlk_run_put_slice(const dmlk_call *call) {
    dmlk_put_slice k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    dmlk_view in = call->views[0], out = call->views[1];
    if (dmlk_bits_type(in.type) == DMLK_UNKNOWN || dmlk_bits_type(in.type) != dmlk_bits_type(out.type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    int64_t low[DMLK_MAX_RANK], covered[DMLK_MAX_RANK];
    bool fits = in.rank == out.rank, gaps = false;
    for (uint32_t d = 0; fits && d < in.rank; d++) {
        const int64_t span = (in.sizes[d] - 1) * k.step[d], last = k.first[d] + span;
        low[d] = span < 0 ? last : k.first[d];
        covered[d] = (span < 0 ? -span : span) + 1;
        gaps = gaps || covered[d] > in.sizes[d];
        fits = last >= 0 && last < out.sizes[d] && k.first[d] < out.sizes[d] && (k.step[d] != 0 || in.sizes[d] == 1);
    }
    if (!fits) {
        return DMLK_BAD_PACKET;
    }
    int status = dmlk_fill_around(&out, low, covered, &zero);
    if (status == DMLK_OK && gaps) {
        status = dmlk_fill(&out, &zero);
    }
    for (uint32_t d = 0; d < in.rank; d++) { /* writes in ascending order; may read backwards */
        const int64_t step = k.step[d] < 0 ? -(int64_t)k.step[d] : k.step[d];
        dmlk_cut(&out, d, 0, in.sizes[d] == 1 ? 1 : step, in.sizes[d]);
        if (k.step[d] < 0) {
            dmlk_cut(&in, d, in.sizes[d] - 1, -1, in.sizes[d]);
        }
    }
    return status == DMLK_OK ? dmlk_copy_elements(&in, &out) : status;
}
