/* take_slice: out[o] = in[first + o * step] along each axis, bit by bit; steps may be negative. */
#include "take_slice.h"

#include "boxes.h"

/* Sets k and the lowest index that is read along each axis; false: part of the slice is outside the input. */
static bool set_up(const dmlk_call *call, dmlk_take_slice *k, int64_t *low) {
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    bool fits = call->view_count == 2 && dmlk_get_constants(call, k, sizeof *k) && in->rank == out->rank;
    for (uint32_t d = 0; fits && d < in->rank; d++) {
        int64_t span;
        fits = !__builtin_mul_overflow(out->sizes[d] - 1, k->step[d], &span) && span > -in->sizes[d] &&
               span < in->sizes[d];
        const int64_t last = k->first[d] + (fits ? span : 0);
        low[d] = last < k->first[d] ? last : k->first[d];
        fits = fits && last >= 0 && last < in->sizes[d] && k->first[d] < in->sizes[d];
    }
    return fits;
}

void dmlk_reads_take_slice(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_take_slice k;
    int64_t low[DMLK_MAX_RANK];
    if (tensor == 0 && set_up(call, &k, low)) {
        for (uint32_t d = 0; d < call->views[0].rank; d++) {
            const int64_t step = k.step[d], count = step == 0 ? 1 : call->views[1].sizes[d];
            reads->slices[d][0] = (dmlk_slice){
                .first = low[d], .step = count == 1 ? 1 : step < 0 ? -step : step, .count = count};
        }
    }
}

int dmlk_run_take_slice(const dmlk_call *call) {
    dmlk_take_slice k;
    int64_t low[DMLK_MAX_RANK];
    if (!dmlk_has_views(call, 2, 0) || !set_up(call, &k, low)) {
        return DMLK_BAD_PACKET;
    }
    dmlk_view in = call->views[0];
    const dmlk_view *out = &call->views[1];
    if (dmlk_bits_type(in.type) == DMLK_UNKNOWN || dmlk_bits_type(in.type) != dmlk_bits_type(out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    for (uint32_t d = 0; d < in.rank; d++) {
        dmlk_cut(&in, d, k.first[d], k.step[d], out->sizes[d]);
    }
    return dmlk_copy_elements(&in, out);
}
