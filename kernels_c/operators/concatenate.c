/* concatenate: out = the inputs one after another along an axis, bit by bit; any number of inputs. */
#include "concatenate.h"

#include "boxes.h"
#include "packed_output.h"
#include "checked.h"

/* --- packed tensors --- */

struct job {
    const dmlk_view *inputs, *out;
    uint32_t axis;
    int64_t elements; /* of the output, for each index of the axes before `axis` */
};

/* Appends rows [begin, end) of at most DMLK_MOST_PIECES inputs, from `first` on; returns the next input. */
static const dmlk_view *join_rows(const struct job *job, const dmlk_view *first, int64_t begin, int64_t end,
                                  dmlk_packed_output *o) {
    dmlk_piece pieces[DMLK_MOST_PIECES];
    const dmlk_view *in = first;
    for (; in < job->out && in < first + DMLK_MOST_PIECES; in++) {
        const int64_t elements = job->elements / job->out->sizes[job->axis] * in->sizes[job->axis];
        const int64_t step = elements * o->bytes;
        pieces[in - first] = (dmlk_piece){in->base + begin * step, step, 1, elements};
    }
    dmlk_packed_rows(o, pieces, (int)(in - first), end - begin);
    return in;
}

static void join_packed(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const bool together = job->out - job->inputs <= DMLK_MOST_PIECES;
    dmlk_packed_output o;
    dmlk_packed_begin(&o, job->out, begin * job->elements);
    for (int64_t next = 0; begin < end && !dmlk_stopped(&o.work, 1); begin = next) {
        next = together ? end : begin + 1;
        for (const dmlk_view *in = job->inputs; in < job->out;) {
            in = join_rows(job, in, begin, next, &o);
        }
    }
    dmlk_packed_end(&o);
}

#define LONG_PIECE 4096 /* bytes; longer pieces are faster if they are copied one by one */

/* Whether all tensors are packed and have the same sizes except along the axis, and some have short pieces. */
static bool all_packed(const dmlk_call *call, uint32_t axis) {
    const dmlk_view *out = &call->views[call->view_count - 1];
    int64_t bytes = dmlk_type_bytes(out->type);
    for (uint32_t d = axis; d < out->rank; d++) {
        bytes *= out->sizes[d];
    }
    bool packed = !dmlk_in_checked_kernel() && bytes / (call->view_count - 1) < LONG_PIECE;
    for (const dmlk_view *view = call->views; view <= out; view++) {
        packed = packed && dmlk_is_packed(view);
        for (uint32_t d = 0; d < out->rank; d++) {
            packed = packed && (d == axis || view->sizes[d] == out->sizes[d]);
        }
    }
    return packed;
}

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
    if (left == 0 && all_packed(call, k.axis)) {
        struct job job = {call->views, out, k.axis, 1};
        int64_t items = 1;
        for (uint32_t d = 0; d < out->rank; d++) {
            *(d < k.axis ? &items : &job.elements) *= out->sizes[d];
        }
        dmlk_parallel(items, dmlk_row_parts(items, job.elements), join_packed, &job);
        return DMLK_OK;
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
