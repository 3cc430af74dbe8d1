/* take_sequences: copies sequences of different lengths, with zeros after their ends; the input is not read there. */
#include "boxes.h"

static int64_t length_of(const dmlk_view *lengths, int64_t item, int64_t most) {
    const uint32_t length = DMLK_LOAD_ONCE((const uint32_t *)(const void *)lengths->base, item * lengths->strides[lengths->rank - 1]);
    return dmlk_min(length, most);
}

/* Views: in {1, T, B, I}, lengths {1, 1, 1, B}, out {1, T, B, I}. */
static bool sizes_fit(const dmlk_call *call) {
    const dmlk_view *in = &call->views[0], *lengths = &call->views[1];
    return in->rank == 4 && in->sizes[0] == 1 && dmlk_same_sizes(in, &call->views[2]) && lengths->rank == 4 &&
           lengths->sizes[3] == in->sizes[2] && dmlk_view_elements(lengths) == lengths->sizes[3];
}

void dmlk_reads_take_sequences(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    uint64_t *marks = tensor == 0 && sizes_fit(call) ? dmlk_begin_marks(call, tensor, reads) : NULL;
    const int64_t *sizes = call->views[0].sizes;
    for (int64_t item = 0; marks != NULL && item < sizes[2]; item++) {
        const int64_t length = length_of(&call->views[1], item, sizes[1]);
        for (int64_t t = 0; t < length; t++) {
            for (int64_t i = 0; i < sizes[3]; i++) {
                const int64_t element = (t * sizes[2] + item) * sizes[3] + i;
                marks[element / 64] |= UINT64_C(1) << element % 64;
            }
        }
    }
}

bool dmlk_indices_take_sequences(const dmlk_call *call, dmlk_index_use *use) {
    *use = (dmlk_index_use){.indices = 1, .target = 0, .axis = 1, .count = 1, .are_lengths = true};
    if (!dmlk_has_views(call, 3, 0) || !sizes_fit(call)) {
        return false;
    }
    use->sizes[0] = call->views[0].sizes[1];
    return true;
}

int dmlk_run_take_sequences(const dmlk_call *call) {
    if (!dmlk_has_views(call, 3, 0) || !sizes_fit(call)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *lengths = &call->views[1], *out = &call->views[2];
    if (lengths->type != DMLK_UINT32 || dmlk_bits_type(in->type) == DMLK_UNKNOWN || out->type != in->type) {
        return DMLK_NOT_IMPLEMENTED;
    }
    static const uint64_t zero = 0;
    int status = DMLK_OK;
    for (int64_t item = 0; status == DMLK_OK && item < in->sizes[2]; item++) {
        const int64_t length = length_of(lengths, item, in->sizes[1]), rest = in->sizes[1] - length;
        dmlk_view from = *in, to = *out;
        dmlk_cut(&from, 2, item, 1, 1);
        dmlk_cut(&to, 2, item, 1, 1);
        dmlk_view behind = to;
        if (length > 0) {
            dmlk_cut(&from, 1, 0, 1, length);
            dmlk_cut(&to, 1, 0, 1, length);
            status = dmlk_copy_elements(&from, &to);
        }
        if (status == DMLK_OK && rest > 0) {
            dmlk_cut(&behind, 1, length, 1, rest);
            status = dmlk_fill(&behind, &zero);
        }
    }
    return status;
}
