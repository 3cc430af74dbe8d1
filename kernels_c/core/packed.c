#include "packed.h"

#include "checked.h"
#include "gather.h"
#include "stream.h"
#include "wide.h"

#define PIECE 512 /* elements that are handled at a time, near the core */
#define SHORT 16  /* rows of fewer are not worth the detour */

struct packed {
    dmlk_row *row;
    const void *context;
    uint32_t operands;
    int64_t bytes[DMLK_MAX_OPERANDS];
    bool stream;
};

/* (Reading a piece before any of it is written also helps where strides are large: loads that share the low bits
 * of their addresses with stores that are under way would wait for these.) */
static void packed_piece(const struct packed *job, uint8_t *const *at, const int64_t *strides, int64_t count) {
    _Alignas(64) uint8_t pieces[DMLK_MAX_OPERANDS][PIECE * 8];
    const int64_t ones[DMLK_MAX_OPERANDS] = {1, 1, 1, 1};
    const uint32_t out = job->operands - 1;
    uint8_t *packed[DMLK_MAX_OPERANDS];
    for (uint32_t k = 0; k < out; k++) {
        packed[k] = strides[k] == 1 ? at[k] : pieces[k];
        if (strides[k] != 1) {
            dmlk_gather(at[k], strides[k] * job->bytes[k], job->bytes[k], count, packed[k]);
        }
    }
    packed[out] = strides[out] == 1 && !job->stream ? at[out] : pieces[out];
    job->row(packed, ones, count, job->context);
    if (strides[out] != 1) {
        dmlk_scatter(packed[out], job->bytes[out], count, at[out], strides[out] * job->bytes[out]);
    } else if (job->stream) {
        dmlk_stream_copy(at[out], packed[out], (size_t)(count * job->bytes[out]));
    }
}

static void packed_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct packed *job = context;
    bool direct = !job->stream;
    for (uint32_t k = 0; k < job->operands; k++) {
        direct = direct && strides[k] == 1;
    }
    if (direct || count < SHORT) {
        job->row(at, strides, count, job->context);
        return;
    }
    for (int64_t i = 0; i < count; i += PIECE) {
        uint8_t *piece[DMLK_MAX_OPERANDS];
        for (uint32_t k = 0; k < job->operands; k++) {
            piece[k] = at[k] + i * strides[k] * job->bytes[k];
        }
        packed_piece(job, piece, strides, dmlk_min(count - i, PIECE));
    }
}

int dmlk_packed_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context) {
    struct packed job = {.row = row, .context = context, .operands = operands};
    const dmlk_view *out = views[operands - 1];
    if (dmlk_in_checked_kernel()) {
        return dmlk_for_rows(views, operands, row, context);
    }
    job.stream = dmlk_stream_pays(dmlk_view_elements(out) * dmlk_type_bytes(out->type));
    for (uint32_t k = 0; k < operands; k++) {
        job.bytes[k] = dmlk_type_bytes(views[k]->type);
        job.stream = job.stream && (k + 1 == operands || views[k]->base != out->base); /* in place it is read anyway */
    }
    return dmlk_for_rows(views, operands, packed_row, &job);
}
