#include "windows.h"

#include "view.h"

/* --- the walker --- */

/* Whether the parameters are a valid window.  Removes places that are outside the input and its padding for all
 * outputs, so that no number computed from the parameters exceeds 63 bits. */
static bool take_axis(dmlk_window_axis *axis) {
    int64_t farthest;
    if (axis->window < 1 || axis->stride < 1 || axis->dilation < 1 || axis->start < 0 || axis->end < 0) {
        return false;
    }
    /* With this stride, as with any larger one, all windows but the first are outside the input and its padding. */
    axis->stride = dmlk_min(axis->stride, axis->start + axis->input + axis->end + 1);
    if (__builtin_mul_overflow(axis->output, axis->stride, &farthest) || farthest > INT64_MAX / 4) {
        return false;
    }
    axis->window = dmlk_min(axis->window, (axis->start + axis->input + axis->end - 1) / axis->dilation + 1);
    return true;
}

/* Rows go along the axis with the smallest stride of the output. */
static uint32_t choose_axis(const dmlk_windows *w) {
    uint32_t along = DMLK_WINDOW_AXES - 1;
    for (uint32_t a = DMLK_WINDOW_AXES; a-- > 0;) {
        const bool is_better = w->axes[along].output == 1 || w->out_strides[a] < w->out_strides[along];
        along = w->axes[a].output > 1 && is_better ? a : along;
    }
    return along;
}

static void set_rows(dmlk_windows *w) {
    const dmlk_window_axis *axis = &w->axes[w->along];
    w->row_step = (int64_t)((uint64_t)axis->stride * (uint64_t)w->in_strides[w->along]);
    /* If the stride exceeds the input, a place is inside the input for at most one window: in a row of several outputs,
     * most places would be inside for none of them. */
    w->row_length = axis->stride > axis->input ? 1 : dmlk_min(DMLK_CHUNK, axis->output);
    w->pieces = (axis->output + w->row_length - 1) / w->row_length;
    w->rows = w->pieces;
    w->places = 1;
    for (uint32_t a = 0; a < DMLK_WINDOW_AXES; a++) {
        w->place_steps[a] = (uint64_t)w->axes[a].dilation * (uint64_t)w->in_strides[a];
        w->rows *= a == w->along ? 1 : w->axes[a].output; /* no more than there are elements */
        if (__builtin_mul_overflow(w->places, w->axes[a].window, &w->places)) {
            w->places = INT64_MAX;
        }
    }
    for (int64_t t = 0; t < dmlk_min(axis->window, DMLK_KNOWN_PLACES); t++) {
        w->inside[t] = dmlk_outputs_inside(axis, t);
    }
}

int dmlk_windows_init(dmlk_windows *w, const dmlk_view *in, const dmlk_view *out, const dmlk_window_axis *axes,
                      uint32_t spatial) {
    if (spatial < 1 || spatial > 3 || in->rank != spatial + 2 || out->rank != spatial + 2 ||
        in->sizes[0] != out->sizes[0] || in->sizes[1] != out->sizes[1]) {
        return DMLK_BAD_PACKET;
    }
    *w = (dmlk_windows){.in = in->base,
                        .out = out->base,
                        .in_bytes = dmlk_type_bytes(in->type),
                        .out_bytes = dmlk_type_bytes(out->type)};
    for (uint32_t a = 0; a < DMLK_WINDOW_AXES; a++) {
        w->axes[a] = (dmlk_window_axis){.input = 1, .output = 1, .window = 1, .stride = 1, .dilation = 1};
    }
    for (uint32_t d = 0; d < in->rank; d++) {
        const uint32_t a = d < 2 ? d : d + DMLK_WINDOW_AXES - in->rank;
        if (d >= 2) {
            w->axes[a] = axes[d - 2];
        }
        w->axes[a].input = in->sizes[d];
        w->axes[a].output = out->sizes[d];
        w->in_strides[a] = in->strides[d];
        w->out_strides[a] = out->strides[d];
        if (!take_axis(&w->axes[a])) {
            return DMLK_BAD_PACKET;
        }
    }
    w->along = choose_axis(w);
    set_rows(w);
    return DMLK_OK;
}

/* Sets the fields that are derived from row->index. */
static void take_row(const dmlk_windows *w, dmlk_window_row *row) {
    const dmlk_window_axis *along = &w->axes[w->along];
    row->count = dmlk_min(w->row_length, along->output - row->index[w->along]);
    int64_t offset = 0;
    row->origin = 0;
    for (uint32_t a = 0; a < DMLK_WINDOW_AXES; a++) {
        const dmlk_window_axis *axis = &w->axes[a];
        const int64_t origin = row->index[a] * axis->stride - axis->start;
        const int64_t last = a == w->along ? origin + (row->count - 1) * axis->stride : origin;
        row->begin[a] = dmlk_first_place(axis, last, 0);
        row->end[a] = dmlk_first_place(axis, origin, axis->input);
        offset += row->index[a] * w->out_strides[a];
        row->origin += (uint64_t)origin * (uint64_t)w->in_strides[a];
    }
    row->out = w->out + offset * w->out_bytes;
}

void dmlk_window_seek(const dmlk_windows *w, int64_t number, dmlk_window_row *row) {
    row->index[w->along] = number % w->pieces * w->row_length;
    number /= w->pieces;
    for (uint32_t a = DMLK_WINDOW_AXES; a-- > 0;) {
        if (a != w->along) {
            row->index[a] = number % w->axes[a].output;
            number /= w->axes[a].output;
        }
    }
    take_row(w, row);
}

void dmlk_window_next(const dmlk_windows *w, dmlk_window_row *row) {
    row->index[w->along] += w->row_length;
    if (row->index[w->along] >= w->axes[w->along].output) {
        row->index[w->along] = 0;
        for (uint32_t a = DMLK_WINDOW_AXES; a-- > 0;) {
            if (a != w->along && ++row->index[a] < w->axes[a].output) {
                break;
            }
            row->index[a] = 0;
        }
    }
    take_row(w, row);
}

/* --- the inputs that windows cover --- */

/* Clips the slice to an axis of `size` indices; false: nothing remains. */
static bool clip(dmlk_slice *slice, int64_t size) {
    if (slice->first < 0) {
        const int64_t outside = (-slice->first + slice->step - 1) / slice->step;
        slice->first += outside * slice->step;
        slice->count -= outside;
    }
    if (slice->count <= 0 || slice->first >= size) {
        return false;
    }
    slice->count = dmlk_min(slice->count, (size - 1 - slice->first) / slice->step + 1);
    return true;
}

/* The sums i * step + j * other step, with i and j each from 0 to a count - 1. */
struct sums {
    int64_t step, count, other_step, other_count;
};

/* The number of slices that the sums form; `divisor` divides both steps.  Sums whose difference is a multiple of
 * `step` share a slice, if the other step leaves no gaps. */
static int64_t slices_of(const struct sums *s, int64_t divisor) {
    const bool touch = s->other_step / divisor <= s->count;
    return touch ? dmlk_min(s->other_count, s->step / divisor) : s->other_count;
}

/* Usually one slice; gaps between windows, or between the places of a window, may need more. */
uint32_t dmlk_window_slices(const dmlk_window_axis *axis, dmlk_slice *slices, bool *has_more) {
    const int64_t farthest = axis->start + axis->input - 1; /* from place 0 of output 0 to the last input */
    struct sums s = {axis->stride, dmlk_min(axis->output, farthest / axis->stride + 1), axis->dilation,
                     dmlk_min(axis->window, farthest / axis->dilation + 1)};
    const int64_t divisor = (int64_t)dmlk_gcd((uint64_t)s.step, (uint64_t)s.other_step);
    const struct sums swapped = {s.other_step, s.other_count, s.step, s.count};
    if (slices_of(&swapped, divisor) < slices_of(&s, divisor)) {
        s = swapped;
    }
    const int64_t number = slices_of(&s, divisor), far = s.other_step / divisor;
    if (number > DMLK_MOST_SLICES) {
        slices[0] = (dmlk_slice){.first = 0, .step = 1, .count = axis->input};
        *has_more = true;
        return 1;
    }
    uint32_t kept = 0;
    for (int64_t i = 0; i < number; i++) {
        const int64_t more = far <= s.count ? (s.other_count - 1 - i) / number : 0;
        slices[kept] = (dmlk_slice){i * s.other_step - axis->start, s.step, s.count + more * far};
        kept += clip(&slices[kept], axis->input);
    }
    return dmlk_join(slices, kept);
}

void dmlk_windows_reads(const dmlk_windows *w, uint32_t spatial, dmlk_read_set *reads) {
    for (uint32_t d = 0; d < spatial; d++) {
        const dmlk_window_axis *axis = &w->axes[DMLK_WINDOW_AXES - spatial + d];
        reads->counts[2 + d] = dmlk_window_slices(axis, reads->slices[2 + d], &reads->has_more);
    }
}
