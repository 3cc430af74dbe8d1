/* padding: out[o] = in[o - start] along each axis; outside the input, a constant or elements of the input, according
 * to the mode.  Elements are copied bit by bit.
 *
 * Each axis of the output is cut into runs that copy consecutive inputs, forwards or backwards, or no input.  A
 * packed output is written from its first byte to its last; in other outputs, the runs along all axes form boxes,
 * which are copied or filled. */
#include "padding.h"

#include "boxes.h"
#include "packed_output.h"
#include "checked.h"

/* The run that starts at position p of an input of n elements; p may be outside. */
static dmlk_span run_at(uint32_t mode, int64_t p, int64_t n) {
    const int64_t rest = INT64_MAX / 2;
    if (mode == DMLK_PADDING_CONSTANT && (p < 0 || p >= n)) {
        return (dmlk_span){.count = p < 0 ? -p : rest, .is_constant = true};
    }
    if (mode == DMLK_PADDING_CONSTANT) {
        return (dmlk_span){p, 1, n - p, false};
    }
    if (mode == DMLK_PADDING_EDGE || n == 1) {
        return p < 0       ? (dmlk_span){0, 0, -p, false}
               : p < n - 1 ? (dmlk_span){p, 1, n - p, false}
                           : (dmlk_span){n - 1, 0, rest, false};
    }
    const int64_t period = mode == DMLK_PADDING_WRAP ? n : mode == DMLK_PADDING_SYMMETRIC ? 2 * n : 2 * (n - 1);
    const int64_t q = p % period < 0 ? p % period + period : p % period;
    if (q < n) {
        return (dmlk_span){q, 1, n - q, false};
    }
    const int64_t back = mode == DMLK_PADDING_SYMMETRIC ? period - 1 - q : period - q;
    return (dmlk_span){back, -1, period - q, false};
}

struct job {
    uint32_t mode;
    uint32_t rank; /* of the tensors; the boxes may have further axes that repeat the input */
    const uint32_t *start;
    const int64_t *sizes; /* of the input */
    int64_t work;
};

static int copy_runs(struct job *job, uint32_t d, const dmlk_view *in, const dmlk_view *out);

/* Copies `periods` repetitions of the input along axis d, from output o on, as one box with an additional axis. */
static int copy_periods(struct job *job, uint32_t d, int64_t o, int64_t periods, dmlk_view in, dmlk_view out) {
    const int64_t n = job->sizes[d];
    out.strides[out.rank] = n * out.strides[d];
    in.strides[in.rank] = 0;
    out.sizes[out.rank++] = in.sizes[in.rank++] = periods;
    dmlk_cut(&out, d, o, 1, n);
    return copy_runs(job, d + 1, &in, &out);
}

/* Copies all boxes along axes d, d + 1, ... */
static int copy_runs(struct job *job, uint32_t d, const dmlk_view *in, const dmlk_view *out) {
    if (d == job->rank) {
        return dmlk_copy_elements(in, out);
    }
    int status = DMLK_OK;
    const int64_t n = job->sizes[d], size = out->sizes[d];
    dmlk_span run;
    for (int64_t o = 0; status == DMLK_OK && o < size && !dmlk_stopped(&job->work, 1); o += run.count) {
        run = run_at(job->mode, o - job->start[d], n);
        run.count = dmlk_min(run.count, size - o);
        const int64_t periods = (size - o) / n;
        if (job->mode == DMLK_PADDING_WRAP && run.in == 0 && run.step == 1 && periods > 1 && in->rank < DMLK_MAX_RANK) {
            run.count = periods * n;
            status = copy_periods(job, d, o, periods, *in, *out);
            continue;
        }
        dmlk_view from = *in, to = *out;
        dmlk_cut(&from, d, run.in, run.step, run.count);
        dmlk_cut(&to, d, o, 1, run.count);
        status = copy_runs(job, d + 1, &from, &to);
    }
    return status;
}

static dmlk_span span_of(const void *context, uint32_t d, int64_t o) {
    const struct job *job = context;
    return run_at(job->mode, o - job->start[d], job->sizes[d]);
}

/* Whether the output is packed and the rows of the input are contiguous. */
static bool has_packed_rows(const dmlk_view *in, const dmlk_view *out) {
    return !dmlk_in_checked_kernel() && dmlk_is_packed(out) && in->strides[in->rank - 1] == 1;
}

int dmlk_run_padding(const dmlk_call *call) {
    dmlk_padding k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k) || k.mode > DMLK_PADDING_WRAP) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0];
    dmlk_view out = call->views[1];
    if (dmlk_bits_type(in->type) == DMLK_UNKNOWN || dmlk_bits_type(in->type) != dmlk_bits_type(out.type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    int64_t first[DMLK_MAX_RANK];
    bool fits = in->rank == out.rank;
    for (uint32_t d = 0; fits && d < in->rank; d++) {
        first[d] = k.start[d];
        fits = first[d] + in->sizes[d] <= out.sizes[d];
    }
    if (!fits) {
        return DMLK_BAD_PACKET;
    }
    struct job job = {.mode = k.mode, .rank = in->rank, .start = k.start, .sizes = in->sizes};
    if (has_packed_rows(in, &out)) {
        const dmlk_spans spans = {in, out.sizes, in->rank, span_of, &job, &k.value};
        dmlk_write_spans(&spans, &out);
        return DMLK_OK;
    }
    if (k.mode == DMLK_PADDING_CONSTANT) {
        const int status = dmlk_fill_around(&out, first, in->sizes, &k.value);
        return status == DMLK_OK ? dmlk_copy_elements(in, &out) : status;
    }
    return copy_runs(&job, 0, in, &out);
}
