/* reverse_subsequences: reverses the first L elements of each line along an axis; the others keep their places.  L is
 * the line's length in the second input, at most the size of the axis.  Elements are copied bit by bit. */
#include "reverse_subsequences.h"

#include "boxes.h"
#include "ahead.h"
#include "nontemporal.h"

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "reverse_subsequences.inc"
#include "each_type.inc"

typedef void copy_part(const uint8_t *in, int64_t in_stride, uint8_t *out, int64_t out_stride, int64_t count);

static copy_part *const copiers[] = {
#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "reverse_subsequences_table.inc"
#include "each_type.inc"
};

struct job {
    const dmlk_view *in, *lengths, *out; /* lengths: sizes as the others, stride 0 along the axis */
    uint32_t axis, row;                  /* row: the axis of rows, `axis` or one along which elements are nearer */
    copy_part *copy;
    int64_t streamed; /* bytes of an element, if rows are contiguous and bypass the caches; otherwise 0 */
};

/* The length at `at`, loaded once: the host may change it while the kernel runs. */
static int64_t length_at(uint32_t type, const uint8_t *at, int64_t most) {
    const uint64_t length = type == DMLK_UINT64 ? DMLK_LOAD_ONCE((const uint64_t *)at, 0) : DMLK_LOAD_ONCE((const uint32_t *)at, 0);
    return length < (uint64_t)most ? (int64_t)length : most;
}

/* Writes a row that is one sequence. */
static void write_sequence(const struct job *job, const int64_t *index) {
    const int64_t size = job->out->sizes[job->axis];
    const int64_t length = length_at(job->lengths->type, dmlk_element(job->lengths, index), size);
    const int64_t in_stride = job->in->strides[job->axis], out_stride = job->out->strides[job->axis];
    const int64_t in_bytes = in_stride * dmlk_type_bytes(job->in->type), out_bytes = out_stride * dmlk_type_bytes(job->out->type);
    const uint8_t *in = dmlk_element(job->in, index);
    uint8_t *out = dmlk_element(job->out, index);
    job->copy(in + (length - 1) * in_bytes, -in_stride, out, out_stride, length);
    job->copy(in + length * in_bytes, in_stride, out + length * out_bytes, out_stride, size - length);
}

/* Writes a row across sequences, at index[axis] of each: consecutive sequences of equal length share a copy. */
static void write_across(const struct job *job, int64_t *index) {
    const uint32_t row = job->row, axis = job->axis;
    const int64_t count = job->out->sizes[row], size = job->out->sizes[axis], at = index[axis];
    const int64_t length_bytes = job->lengths->strides[row] * dmlk_type_bytes(job->lengths->type);
    const uint8_t *lengths = dmlk_element(job->lengths, index);
    for (int64_t i = 0, end; i < count; i = end) {
        const int64_t length = length_at(job->lengths->type, lengths + i * length_bytes, size);
        end = length_bytes == 0 ? count : i + 1;
        while (end < count && length_at(job->lengths->type, lengths + end * length_bytes, size) == length) {
            end++;
        }
        index[row] = i;
        uint8_t *out = dmlk_element(job->out, index);
        index[axis] = at < length ? length - 1 - at : at;
        const uint8_t *in = dmlk_element(job->in, index);
        if (job->streamed > 0) {
            const int64_t bytes = (end - i) * job->streamed;
            dmlk_fetch(in + (at < length ? -DMLK_FETCHED : DMLK_FETCHED), dmlk_min(bytes, DMLK_FETCHED));
            dmlk_stream_copy(out, in, (size_t)bytes);
        } else {
            job->copy(in, job->in->strides[row], out, job->out->strides[row], end - i);
        }
        index[axis] = at;
    }
}

static void write_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    int64_t work = 0, index[DMLK_MAX_RANK];
    dmlk_row_start(job->out, job->row, begin, index);
    for (int64_t r = begin; r < end && !dmlk_stopped(&work, job->out->sizes[job->row]); r++, dmlk_next_row(job->out, job->row, index)) {
        if (job->row == job->axis) {
            write_sequence(job, index);
        } else {
            write_across(job, index);
        }
    }
    dmlk_streamed();
}

int dmlk_run_reverse_subsequences(const dmlk_call *call) {
    dmlk_reverse_subsequences k;
    if (!dmlk_has_views(call, 3, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[2];
    dmlk_view lengths = call->views[1];
    const uint32_t width = dmlk_bits_type(in->type);
    if (width == DMLK_UNKNOWN || dmlk_bits_type(out->type) != width ||
        (lengths.type != DMLK_UINT32 && lengths.type != DMLK_UINT64)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (k.axis >= in->rank || lengths.rank != in->rank || lengths.sizes[k.axis] != 1) {
        return DMLK_BAD_PACKET;
    }
    lengths.sizes[k.axis] = in->sizes[k.axis];
    lengths.strides[k.axis] = 0;
    if (!dmlk_same_sizes(in, out) || !dmlk_same_sizes(&lengths, out)) {
        return DMLK_BAD_PACKET;
    }
    struct job job = {in, &lengths, out, k.axis, dmlk_nearest_axis(out), copiers[width], 0};
    const int64_t bytes = dmlk_type_bytes(out->type);
    if (in->strides[job.row] == 1 && out->strides[job.row] == 1 && dmlk_stream_pays(dmlk_view_elements(out), bytes)) {
        job.streamed = bytes;
    }
    const int64_t rows = dmlk_rows_along(out, job.row);
    dmlk_parallel(rows, dmlk_row_parts(rows, out->sizes[job.row]), write_rows, &job);
    return DMLK_OK;
}
