/* gather_elements: out[c] = in[c with c[axis] = indices[c]].  out has the sizes of indices, and along all axes but
 * `axis` those of in.  Elements are copied bit by bit. */
#include "gather_elements.h"

#include "kernel.h"
#include "walkers.h"

/* Elements of in along the axis. */
typedef struct dmlk_line {
    int64_t size, stride;
} dmlk_line;

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "gather_elements.inc"
#include "each_type.inc"

#define ROWS(width) \
    {[DMLK_INT32] = gather_int32_##width, [DMLK_INT64] = gather_int64_##width, [DMLK_UINT32] = gather_uint32_##width, \
     [DMLK_UINT64] = gather_uint64_##width}

static dmlk_row *row_of(uint32_t type, uint32_t index_type) {
    static dmlk_row *const rows[][DMLK_INT64 + 1] = {[DMLK_UINT8] = ROWS(uint8),
                                                     [DMLK_UINT16] = ROWS(uint16),
                                                     [DMLK_UINT32] = ROWS(uint32),
                                                     [DMLK_UINT64] = ROWS(uint64)};
    const uint32_t width = dmlk_bits_type(type);
    return width == DMLK_UNKNOWN || index_type > DMLK_INT64 ? NULL : rows[width][index_type];
}

/* Sets k; false: the sizes do not match. */
static bool set_up(const dmlk_call *call, dmlk_gather_elements *k) {
    const dmlk_view *in = &call->views[0], *indices = &call->views[1], *out = &call->views[2];
    bool fits = call->view_count == 3 && dmlk_get_constants(call, k, sizeof *k) && k->axis < in->rank &&
                dmlk_same_sizes(indices, out) && in->rank == out->rank;
    for (uint32_t d = 0; fits && d < in->rank; d++) {
        fits = d == k->axis || in->sizes[d] == out->sizes[d];
    }
    return fits;
}

bool dmlk_indices_gather_elements(const dmlk_call *call, dmlk_index_use *use) {
    dmlk_gather_elements k;
    if (!set_up(call, &k) || row_of(call->views[0].type, call->views[1].type) == NULL) {
        return false;
    }
    *use = (dmlk_index_use){.indices = 1, .target = 0, .axis = k.axis, .size = call->views[0].sizes[k.axis]};
    return true;
}

static int64_t chosen_at(const dmlk_view *indices, int64_t i, int64_t size) {
    switch (indices->type) {
    case DMLK_INT32: return dmlk_signed_index(DMLK_LOAD_ONCE((const int32_t *)indices->base, i), size);
    case DMLK_INT64: return dmlk_signed_index(DMLK_LOAD_ONCE((const int64_t *)indices->base, i), size);
    case DMLK_UINT32: return dmlk_unsigned_index(DMLK_LOAD_ONCE((const uint32_t *)indices->base, i), size);
    default: return dmlk_unsigned_index(DMLK_LOAD_ONCE((const uint64_t *)indices->base, i), size);
    }
}

/* The elements of in that the indices select. */
void dmlk_reads_gather_elements(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_index_use use;
    if (tensor != 0 || !dmlk_indices_gather_elements(call, &use)) {
        return;
    }
    const dmlk_view *in = &call->views[0], *indices = &call->views[1];
    uint64_t *marks = dmlk_begin_marks(call, tensor, reads);
    int64_t steps[DMLK_MAX_RANK], step = 1, index[DMLK_MAX_RANK] = {0};
    for (uint32_t d = in->rank; d-- > 0;) {
        steps[d] = step;
        step *= in->sizes[d];
    }
    for (int64_t left = marks != NULL ? dmlk_view_elements(indices) : 0; left > 0; left--) {
        int64_t at = 0, number = 0;
        for (uint32_t d = 0; d < in->rank; d++) {
            at += index[d] * indices->strides[d];
            number += d == use.axis ? 0 : index[d] * steps[d];
        }
        number += chosen_at(indices, at, use.size) * steps[use.axis];
        marks[number / 64] |= UINT64_C(1) << number % 64;
        for (uint32_t d = in->rank; d-- > 0 && ++index[d] == indices->sizes[d];) {
            index[d] = 0;
        }
    }
}

int dmlk_run_gather_elements(const dmlk_call *call) {
    dmlk_gather_elements k;
    if (!dmlk_has_views(call, 3, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *indices = &call->views[1], *out = &call->views[2];
    dmlk_row *row = row_of(in->type, indices->type);
    if (row == NULL || dmlk_bits_type(in->type) != dmlk_bits_type(out->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (!set_up(call, &k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_line line = {.size = in->sizes[k.axis], .stride = in->strides[k.axis]};
    dmlk_view begins = *in; /* start of the line for each element of out */
    begins.sizes[k.axis] = out->sizes[k.axis];
    begins.strides[k.axis] = 0;
    return dmlk_indexed_rows((const dmlk_view *[]){&begins, indices, out}, 3, row, &line);
}
