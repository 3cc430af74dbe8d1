#include "staged_rows.h"

#include "cpu.h"
#include "checked.h"
#include "gather.h"
#include "float16.h"
#include "ahead.h"
#include "nontemporal.h"
#include "promoted.h"

#define PIECE 4096 /* bytes of each operand that are processed at a time, and stay in the first-level cache */
#define FEW 4      /* operands; with more, pieces are shorter, so that all fit the cache */
#define SHORT 16   /* elements; shorter rows are not staged */
#define COST 8     /* bytes: the least cost of an element in a row that is not cheap (see dmlk_for_costly_rows) */
#define APART 4    /* elements; up to this stride, neighbours roughly share cache lines */
#define NEAR_BYTES (1 << 20) /* bytes of an output that may fit a second-level cache */
#define STREAMED 1024 /* bytes; in a shorter row, partly filled cache lines cost more than bypassing the caches gains */
#define LONG_ROW (1 << 16) /* bytes; in a shorter row, lines that short pieces fill in part cost too much */
#define SHORT_PIECE 512    /* bytes streamed at a time in a long row, so that inputs are prefetched meanwhile */
#define LONG_PLAIN_ROW (1 << 14)      /* bytes of the widest operand from which streamed_row is used */
#define SHORT_AHEAD (4 * SHORT_PIECE) /* bytes between a piece and the prefetched input in streamed_row */

static const int64_t ones[DMLK_MAX_OPERANDS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

struct packed {
    dmlk_row *row;
    const void *context;
    uint32_t operands;
    int64_t room;   /* size of each operand's piece in bytes */
    int64_t most;   /* elements per piece */
    int64_t widest; /* bytes of an element of the widest operand */
    int64_t bytes[DMLK_MAX_OPERANDS];
    bool halves[DMLK_MAX_OPERANDS]; /* FLOAT16 operands that the row receives as FLOAT32 */
    bool floats;                    /* some operand is one of these */
    bool stream; /* long rows of the output bypass the caches */
    bool far; /* the output exceeds the near caches */
    bool cheap; /* the row takes less time than reading and writing its cache lines */
};

/* `count` packed elements of operand k: in `piece`, or in place. */
static uint8_t *load(const struct packed *job, uint32_t k, uint8_t *at, int64_t stride, int64_t count, uint8_t *piece) {
    uint16_t halves[PIECE / sizeof(float)];
    uint8_t *to = job->halves[k] ? (uint8_t *)halves : piece;
    if (stride != 1) {
        dmlk_gather(at, stride * job->bytes[k], job->bytes[k], count, to);
        at = to;
    }
    if (job->halves[k]) {
        dmlk_widen_float16((const uint16_t *)at, count, (float *)piece);
        at = piece;
    }
    return at;
}

/* Stores `piece` to the output, past the caches if `streams`. */
static void store(const struct packed *job, uint8_t *piece, int64_t count, uint8_t *at, int64_t stride, bool streams) {
    const uint32_t out = job->operands - 1;
    uint16_t halves[PIECE / sizeof(float)];
    if (job->halves[out]) {
        uint16_t *to = stride == 1 && !streams ? (uint16_t *)at : halves;
        dmlk_narrow_floats((const float *)piece, count, to);
        piece = (uint8_t *)to;
    }
    if (stride != 1) {
        dmlk_scatter(piece, job->bytes[out], count, at, stride * job->bytes[out]);
    } else if (streams) {
        dmlk_stream_copy(at, piece, (size_t)(count * job->bytes[out]));
    } else if (piece != at) {
        memmove(at, piece, (size_t)(count * job->bytes[out]));
    }
}

/* Packs the operands of a piece, runs the row, and unpacks the output.  (Reading a whole piece before writing also
 * helps with large strides: loads wait for pending stores with the same low address bits.) */
static void packed_piece(const struct packed *job, uint8_t *const *at, const int64_t *strides, int64_t count, bool streams) {
    _Alignas(DMLK_LINE) uint8_t pieces[FEW * PIECE];
    const uint32_t out = job->operands - 1;
    const bool in_place = job->row != NULL && strides[out] == 1 && !streams && !job->halves[out];
    uint8_t *packed[DMLK_MAX_OPERANDS]; /* (not cleared, which would take longer than a short row) */
    packed[0] = at[0];
    for (uint32_t k = 0; k < out; k++) {
        packed[k] = load(job, k, at[k], strides[k], count, pieces + k * job->room);
    }
    packed[out] = job->row == NULL ? packed[0] : in_place ? at[out] : pieces + out * job->room;
    if (job->row != NULL) {
        job->row(packed, ones, count, job->context);
    }
    for (uint32_t k = 0; k < out && job->stream; k++) {
        const int64_t size = count * strides[k] * job->bytes[k];
        dmlk_fetch(at[k] + DMLK_FETCHED, strides[k] >= 1 && strides[k] <= APART ? size : 0);
    }
    if (!in_place) {
        store(job, packed[out], count, at[out], strides[out], streams);
    }
}

/* A piece whose elements have the same `stride` in all operands.  The row also runs on the gaps, as their cache lines
 * are read anyway; the results in gaps are not stored: they may belong to other tensors, and after the last element
 * there may be no gap. */
static void whole_piece(const struct packed *job, uint8_t *const *at, int64_t stride, int64_t count, bool last) {
    _Alignas(DMLK_LINE) uint8_t pieces[FEW * PIECE];
    const uint32_t out = job->operands - 1;
    const int64_t all = last ? (count - 1) * stride + 1 : count * stride;
    uint16_t halves[PIECE / sizeof(float)];
    uint8_t *packed[DMLK_MAX_OPERANDS]; /* (not cleared, which would take longer than a short row) */
    packed[0] = at[0];
    for (uint32_t k = 0; k < out; k++) {
        packed[k] = load(job, k, at[k], 1, all, pieces + k * job->room);
    }
    packed[out] = job->row == NULL ? packed[0] : pieces + out * job->room;
    if (job->row != NULL) {
        job->row(packed, ones, all, job->context);
    }
    if (job->halves[out]) {
        dmlk_narrow_floats((const float *)packed[out], all, halves);
        packed[out] = (uint8_t *)halves;
    }
    dmlk_copy_apart(packed[out], at[out], stride * job->bytes[out], job->bytes[out], all);
}

/* Elements of a piece.  In shorter pieces, reading overlaps with lines that are streamed or written in part. */
static int64_t piece_length(const struct packed *job, int64_t stride, int64_t count, bool whole, bool streams) {
    if (whole) { /* half of the room, in whole vectors: the other half is for the output */
        return job->most / (2 * stride) / DMLK_LINE * DMLK_LINE;
    }
    const int64_t bytes = job->bytes[job->operands - 1];
    if (streams) {
        return dmlk_min((count * bytes >= LONG_ROW ? SHORT_PIECE : 2 * STREAMED) / bytes, job->most);
    }
    return stride != 1 ? job->most / 4 : job->most;
}

/* A long row of contiguous elements, whose output bypasses the caches.  Little is done between pieces: CPUs execute a
 * few hundred instructions out of order, and so start to load the next piece while this one's stores are on their way
 * to memory. */
static void streamed_row(const struct packed *job, uint8_t *const *at, int64_t count) {
    _Alignas(DMLK_LINE) uint8_t result[SHORT_PIECE];
    const uint32_t out = job->operands - 1;
    uint8_t *piece[DMLK_MAX_OPERANDS], *to = at[out];
    memcpy(piece, at, out * sizeof(*at));
    piece[out] = result;
    const int64_t length = SHORT_PIECE / job->widest, before = dmlk_before_line(to) / job->bytes[out];
    int64_t n = before > 0 ? before : length; /* a long row has more than either */
    for (int64_t left = count; left > 0; left -= n, n = dmlk_min(left, length)) {
        for (uint32_t k = 0; k < out; k++) {
            dmlk_fetch(piece[k] + SHORT_AHEAD, n * job->bytes[k]);
        }
        job->row(piece, ones, n, job->context);
        dmlk_stream_copy(to, result, (size_t)(n * job->bytes[out]));
        for (uint32_t k = 0; k < out; k++) {
            piece[k] += n * job->bytes[k];
        }
        to += n * job->bytes[out];
    }
}

static void packed_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct packed *job = context;
    const uint32_t out = job->operands - 1;
    bool alike = true;
    for (uint32_t k = 0; k < out; k++) {
        alike = alike && strides[k] == strides[out];
    }
    const bool direct = alike && strides[out] == 1;
    const bool streams = job->stream && strides[out] == 1 && count * job->bytes[out] >= STREAMED;
    if (job->row == NULL && direct) {
        store(job, at[0], count, at[out], 1, streams);
        return;
    }
    if (job->row != NULL && !job->floats && streams && direct && count * job->widest >= LONG_PLAIN_ROW) {
        streamed_row(job, at, count);
        return;
    }
    if (job->row != NULL && !job->floats && !streams && (direct || count < SHORT)) {
        job->row(at, strides, count, job->context);
        return;
    }
    /* Whether to run the row on the gaps, too.  Rows of one input that are not cheap gain little by it, even with a far
     * output, and may be slower.  With a near output, no row gains without AVX-512. */
    const bool cheap = job->row == NULL || job->cheap || (out > 1 && job->far);
    const bool whole = (job->far || dmlk_isa() == DMLK_ISA_AVX512) && job->operands <= FEW && alike && cheap &&
                       strides[out] > 1 && strides[out] <= APART && count >= SHORT;
    const int64_t length = piece_length(job, strides[out], count, whole, streams);
    const int64_t before = streams && count > length ? dmlk_before_line(at[out]) / job->bytes[out] : 0;
    int64_t most = before > 0 ? before : length;
    for (int64_t i = 0; i < count; i += most, most = length) {
        uint8_t *piece[DMLK_MAX_OPERANDS];
        for (uint32_t k = 0; k < job->operands; k++) {
            piece[k] = at[k] + i * strides[k] * job->bytes[k];
        }
        if (whole) {
            whole_piece(job, piece, strides[out], dmlk_min(count - i, most), i + most >= count);
        } else {
            packed_piece(job, piece, strides, dmlk_min(count - i, most), streams);
        }
    }
}

static int run(struct packed *job, const dmlk_view *const *views, bool floats) {
    const uint32_t operands = job->operands;
    const dmlk_view *out = views[operands - 1];
    int64_t widest = 1;
    job->stream = dmlk_stream_pays(dmlk_view_elements(out), dmlk_type_bytes(out->type));
    for (uint32_t k = 0; k < operands; k++) {
        job->bytes[k] = dmlk_type_bytes(views[k]->type);
        job->halves[k] = floats && views[k]->type == DMLK_FLOAT16;
        job->stream = job->stream && (k + 1 == operands || views[k]->base != out->base); /* (lines are read) */
        job->floats = job->floats || job->halves[k];
        const int64_t near = job->halves[k] ? (int64_t)sizeof(float) : job->bytes[k];
        widest = near > widest ? near : widest;
    }
    job->widest = widest;
    job->room = operands <= FEW ? PIECE : FEW * PIECE / (int64_t)operands / DMLK_LINE * DMLK_LINE;
    job->most = job->room / widest / DMLK_LINE * DMLK_LINE; /* so that pieces end with lines of the output */
    job->far = out->byte_size > NEAR_BYTES;
    return dmlk_for_costly_rows(views, operands, packed_row, job, job->row == NULL || job->cheap ? 0 : COST);
}

int dmlk_staged_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context) {
    struct packed job = {.row = row, .context = context, .operands = operands};
    if (dmlk_in_checked_kernel()) {
        return dmlk_for_rows(views, operands, row, context);
    }
    return run(&job, views, false);
}

int dmlk_cheap_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context) {
    struct packed job = {.row = row, .context = context, .operands = operands, .cheap = true};
    if (dmlk_in_checked_kernel()) {
        return dmlk_for_rows(views, operands, row, context);
    }
    return run(&job, views, false);
}

int dmlk_float_rows(const dmlk_view *const *views, uint32_t operands, dmlk_row *row, const void *context) {
    struct packed job = {.row = row, .context = context, .operands = operands};
    return run(&job, views, true);
}
