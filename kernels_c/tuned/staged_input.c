/* staged_input.c - see staged_input.h. */
#include "staged_input.h"

#include "cancellation.h"
#include "kernel.h"
#include "singles.h"

enum { N, CHANNEL, Z, Y, X };

/* Planes begin in different sets of a cache. */
static int64_t plane_of(int64_t floats) { return (floats + 31) / 32 * 32 + 16; }

/* So do places with channels that would fill whole kilobytes. */
static int64_t place_of(int64_t channels) { return channels % 256 == 0 ? channels + 16 : channels; }

void dmlk_lay_out_stage(dmlk_stage *s) {
    const int64_t *sizes = s->view.sizes, channels = sizes[CHANNEL];
    int64_t *to = s->view.strides;
    s->view.type = DMLK_FLOAT32;
    to[X] = s->last ? place_of(channels) : 1;
    to[Y] = sizes[X] * to[X];
    to[Z] = sizes[Y] * to[Y];
    to[CHANNEL] = s->last ? 1 : plane_of(sizes[Z] * to[Z]);
    to[N] = s->last ? sizes[Z] * to[Z] : channels * to[CHANNEL];
}

double dmlk_stage_floats(const dmlk_stage *s) {
    const int64_t *sizes = s->view.sizes;
    return (double)sizes[X] * (double)sizes[Y] * (double)sizes[Z] * (double)sizes[CHANNEL];
}

int64_t dmlk_stage_lines(const dmlk_stage *s) {
    const int64_t *sizes = s->view.sizes;
    return sizes[N] * sizes[Z] * sizes[Y] * (s->last ? 1 : sizes[CHANNEL]);
}

/* Elements of a line of which all are in the input. */
static void load_line(const dmlk_stage *s, const uint8_t *from, int64_t count, float *line) {
    const dmlk_view *in = s->input;
    const int64_t channels = s->view.sizes[CHANNEL], place = s->view.strides[X], stride = in->strides[X];
    if (!s->last) {
        dmlk_load_singles(in->type, from, stride, count, line);
    } else if (stride == channels && place == channels) {
        dmlk_load_singles(in->type, from, 1, count * channels, line);
    } else {
        for (int64_t i = 0; i < count; i++) {
            dmlk_load_singles(in->type, from + i * stride * dmlk_type_bytes(in->type), 1, channels, line + i * place);
        }
    }
}

/* (Calls would take longer than a few numbers.) */
static void clear(float *line, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        line[i] = 0;
    }
}

/* Line y, z of an image and a channel; `from` is their first element, `left` .. `right` - 1 are elements in the input. */
static void fill_line(const dmlk_stage *s, const uint8_t *from, int64_t z, int64_t y, int64_t left, int64_t right, float *line) {
    const dmlk_view *in = s->input;
    const int64_t place = s->view.strides[X], size = s->view.sizes[X];
    const int64_t from_z = z + s->low[0], from_y = y + s->low[1];
    if (from_z < 0 || from_z >= in->sizes[Z] || from_y < 0 || from_y >= in->sizes[Y] || left >= right) {
        clear(line, size * place);
        return;
    }
    const int64_t first = from_z * in->strides[Z] + from_y * in->strides[Y] + (left + s->low[2]) * in->strides[X];
    clear(line, left * place);
    load_line(s, from + first * dmlk_type_bytes(in->type), right - left, line + left * place);
    clear(line + right * place, (size - right) * place);
}

void dmlk_fill_stage(const dmlk_stage *s, int64_t begin, int64_t end) {
    const dmlk_view *in = s->input, *to = &s->view;
    const int64_t *sizes = to->sizes, lines = sizes[Z] * sizes[Y], channels = s->last ? 1 : sizes[CHANNEL];
    const int64_t left = dmlk_min(sizes[X], dmlk_max(0, -s->low[2]));
    const int64_t right = dmlk_max(left, dmlk_min(sizes[X], in->sizes[X] - s->low[2]));
    int64_t work = 0;
    for (int64_t item = begin; item < end && !dmlk_stopped(&work, 0);) {
        const int64_t plane = item / lines, image = plane / channels, channel = plane % channels;
        const uint8_t *from = in->base + (image * in->strides[N] + channel * in->strides[CHANNEL]) * dmlk_type_bytes(in->type);
        float *first = (float *)(void *)to->base + image * to->strides[N] + channel * to->strides[CHANNEL];
        const int64_t last = dmlk_min(end, (plane + 1) * lines);
        int64_t z = item % lines / sizes[Y], y = item % lines % sizes[Y];
        for (; item < last && !dmlk_stopped(&work, to->strides[Y]); item++) {
            fill_line(s, from, z, y, left, right, first + z * to->strides[Z] + y * to->strides[Y]);
            if (++y == sizes[Y]) {
                y = 0;
                z++;
            }
        }
    }
}
