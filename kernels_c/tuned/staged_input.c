/* staged_input.c - see staged_input.h. */
#include "staged_input.h"

#include "cancellation.h"
#include "kernel.h"
#include "singles.h"

enum { N, CHANNEL, Z, Y, X };

/* Planes begin in different sets of a cache. */
static int64_t plane(int64_t floats) { return (floats + 31) / 32 * 32 + 16; }

void dmlk_lay_out_stage(dmlk_stage *s) {
    const int64_t *sizes = s->view.sizes, channels = sizes[CHANNEL];
    int64_t *to = s->view.strides;
    s->view.type = DMLK_FLOAT32;
    to[X] = s->last ? channels : 1;
    to[Y] = sizes[X] * to[X];
    to[Z] = sizes[Y] * to[Y];
    to[CHANNEL] = s->last ? 1 : plane(sizes[Z] * to[Z]);
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
    const int64_t unit = s->view.sizes[CHANNEL], stride = in->strides[X];
    if (!s->last) {
        dmlk_load_singles(in->type, from, stride, count, line);
    } else if (stride == unit) {
        dmlk_load_singles(in->type, from, 1, count * unit, line);
    } else {
        for (int64_t i = 0; i < count; i++) {
            dmlk_load_singles(in->type, from + i * stride * dmlk_type_bytes(in->type), 1, unit, line + i * unit);
        }
    }
}

void dmlk_fill_stage(const dmlk_stage *s, int64_t begin, int64_t end) {
    const dmlk_view *in = s->input, *to = &s->view;
    const int64_t unit = s->last ? to->sizes[CHANNEL] : 1, *sizes = to->sizes;
    const int64_t left = dmlk_min(sizes[X], dmlk_max(0, -s->low[2])), size = sizes[X];
    const int64_t right = dmlk_max(left, dmlk_min(size, in->sizes[X] - s->low[2])); /* elements left .. right - 1 are there */
    int64_t work = 0;
    for (int64_t item = begin; item < end && !dmlk_stopped(&work, size * unit); item++) {
        const int64_t y = item % sizes[Y], z = item / sizes[Y] % sizes[Z], rest = item / sizes[Y] / sizes[Z];
        const int64_t channel = s->last ? 0 : rest % sizes[CHANNEL], image = s->last ? rest : rest / sizes[CHANNEL];
        float *line = (float *)(void *)to->base + image * to->strides[N] + channel * to->strides[CHANNEL] +
                      z * to->strides[Z] + y * to->strides[Y];
        const int64_t from_z = z + s->low[0], from_y = y + s->low[1];
        if (from_z < 0 || from_z >= in->sizes[Z] || from_y < 0 || from_y >= in->sizes[Y]) {
            memset(line, 0, (size_t)(size * unit) * sizeof *line);
            continue;
        }
        memset(line, 0, (size_t)(left * unit) * sizeof *line);
        memset(line + right * unit, 0, (size_t)((size - right) * unit) * sizeof *line);
        if (left < right) {
            const int64_t from = image * in->strides[N] + channel * in->strides[CHANNEL] + from_z * in->strides[Z] +
                                 from_y * in->strides[Y] + (left + s->low[2]) * in->strides[X];
            load_line(s, in->base + from * dmlk_type_bytes(in->type), right - left, line + left * unit);
        }
    }
}
