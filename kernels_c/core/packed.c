#include "packed.h"

#include "checked.h"
#include "gather.h"
#include "half.h"
#include "stream.h"
#include "wide.h"

#define PIECE 512 /* elements that are handled at a time, near the core */
#define SHORT 16  /* rows of fewer are not worth the detour */
#define LINE 64
#define FETCHED (PIECE * 16) /* bytes; more would push each other out of the nearest cache */

struct packed {
    dmlk_row *row;
    const void *context;
    uint32_t operands;
    int64_t bytes[DMLK_MAX_OPERANDS];
    bool halves[DMLK_MAX_OPERANDS]; /* that the row takes for floats */
    bool floats;                    /* are there such? */
    bool stream;
};

/* `count` elements of operand k, next to each other: in `piece`, or where they are. */
static uint8_t *load(const struct packed *job, uint32_t k, uint8_t *at, int64_t stride, int64_t count, uint8_t *piece) {
    uint16_t halves[PIECE];
    uint8_t *to = job->halves[k] ? (uint8_t *)halves : piece;
    if (stride != 1) {
        dmlk_gather(at, stride * job->bytes[k], job->bytes[k], count, to);
        at = to;
    }
    if (job->halves[k]) {
        dmlk_widen_halves((const uint16_t *)at, count, (float *)piece);
        at = piece;
    }
    return at;
}

/* `piece` becomes elements of the output. */
static void store(const struct packed *job, uint8_t *piece, int64_t count, uint8_t *at, int64_t stride) {
    const uint32_t out = job->operands - 1;
    uint16_t halves[PIECE];
    if (job->halves[out]) {
        uint16_t *to = stride == 1 && !job->stream ? (uint16_t *)at : halves;
        dmlk_narrow_floats((const float *)piece, count, to);
        piece = (uint8_t *)to;
    }
    if (stride != 1) {
        dmlk_scatter(piece, job->bytes[out], count, at, stride * job->bytes[out]);
    } else if (job->stream) {
        dmlk_stream_copy(at, piece, (size_t)(count * job->bytes[out]));
    } else if (piece != at) {
        memmove(at, piece, (size_t)(count * job->bytes[out]));
    }
}

/* (Reading a piece before any of it is written also helps where strides are large: loads that share the low bits
 * of their addresses with stores that are under way would wait for these.) */
static void packed_piece(const struct packed *job, uint8_t *const *at, const int64_t *strides, int64_t count) {
    _Alignas(LINE) uint8_t pieces[DMLK_MAX_OPERANDS][PIECE * 8];
    const int64_t ones[DMLK_MAX_OPERANDS] = {1, 1, 1, 1};
    const uint32_t out = job->operands - 1;
    const bool in_place = job->row != NULL && strides[out] == 1 && !job->stream && !job->halves[out];
    uint8_t *packed[DMLK_MAX_OPERANDS] = {0};
    if (out > 1 && strides[out] > 1) { /* while several inputs are read, lines that are to be changed can come */
        const int64_t size = count * strides[out] * job->bytes[out];
        for (int64_t i = 0; i < size && size <= FETCHED; i += LINE) {
            __builtin_prefetch(at[out] + i, 1);
        }
    }
    for (uint32_t k = 0; k < out; k++) {
        packed[k] = load(job, k, at[k], strides[k], count, pieces[k]);
    }
    packed[out] = job->row == NULL ? packed[0] : in_place ? at[out] : pieces[out];
    if (job->row != NULL) {
        job->row(packed, ones, count, job->context);
    }
    if (!in_place) {
        store(job, packed[out], count, at[out], strides[out]);
    }
}

static void packed_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct packed *job = context;
    bool direct = true;
    for (uint32_t k = 0; k < job->operands; k++) {
        direct = direct && strides[k] == 1;
    }
    if (job->row != NULL && !job->floats && !job->stream && (direct || count < SHORT)) {
        job->row(at, strides, count, job->context);
        return;
    }
    const int64_t most = job->row == NULL && direct && !job->floats ? count : PIECE; /* copied as it lies */
    for (int64_t i = 0; i < count; i += most) {
        uint8_t *piece[DMLK_MAX_OPERANDS];
        for (uint32_t k = 0; k < job->operands; k++) {
            piece[k] = at[k] + i * strides[k] * job->bytes[k];
        }
        packed_piece(job, piece, strides, dmlk_min(count - i, most));
    }
}

static int run(struct packed *job, const dmlk_view *const *views, bool floats) {
    const uint32_t operands = job->operands;
    const dmlk_view *out = views[operands - 1];
    job->stream = dmlk_stream_pays(dmlk_view_elements(out), dmlk_type_bytes(out->type));
    for (uint32_t k = 0; k < operands; k++) {
        job->bytes[k] = dmlk_type_bytes(views[k]->type);
        job->halves[k] = floats && views[k]->type == DMLK_FLOAT16;
        job->stream = job->stream && (k + 1 == operands || views[k]->base != out->base); /* in place it is read anyway */
        job->floats = job->floats || job->halves[k];
    }
    return dmlk_for_rows(views, operands, packed_row, job);
}

int dmlk_packed_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context) {
    struct packed job = {.row = row, .context = context, .operands = operands};
    if (dmlk_in_checked_kernel()) {
        return dmlk_for_rows(views, operands, row, context);
    }
    return run(&job, views, false);
}

int dmlk_float_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context) {
    struct packed job = {.row = row, .context = context, .operands = operands};
    return run(&job, views, true);
}
