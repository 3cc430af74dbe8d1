/* depthwise_float.c - convolutions of floats whose groups have one channel each: see convolve_float.h.
 *
 * Up to LANES adjacent outputs of a row, or adjacent channels of an output, are computed at once.  Each is one chain of
 * fused multiply-adds over the taps. */
#include "convolve_float.h"

#include <math.h>
#include <string.h>

#include "cancellation.h"
#include "cpu.h"
#include "element.h"
#include "parallel.h"
#include "promoted.h"
#include "scratch.h"

enum { N, CHANNEL, Z, Y, X };
enum { GROUP, FILTER, OF_GROUP, WINDOW };

#define LANES 32
#define MOST_TAPS 128

struct job {
    const dmlk_float_convolution *c;
    int64_t taps, channels; /* of the output */
    float *weights;         /* by channel: [taps][channels]; otherwise [channels][taps] */
    float *bias;            /* [channels] */
    float *zeros;           /* [channels] */
};

static inline const float *floats(const uint8_t *base) { return (const float *)(const void *)base; }

/* The line of the input that taps of row (z, y) of the window meet at output (oz, oy); NULL: it is outside. */
static inline const float *line_of(const dmlk_float_convolution *c, const float *plane, const int64_t *output, int64_t z,
                                   int64_t y) {
    const dmlk_taps_axis *along_z = &c->axes[0], *along_y = &c->axes[1];
    const int64_t at_z = output[0] * along_z->step + z * along_z->tap + along_z->origin;
    const int64_t at_y = output[1] * along_y->step + y * along_y->tap + along_y->origin;
    if (at_z < 0 || at_z >= along_z->input || at_y < 0 || at_y >= along_y->input) {
        return NULL;
    }
    return plane + at_z * c->input.strides[Z] + at_y * c->input.strides[Y];
}

/* --- lanes are outputs of a row --- */

/* Lanes begin .. end - 1 of one tap; lane l meets from[l * step]. */
static inline __attribute__((always_inline)) void add_lanes(float weight, const float *from, int64_t step, int64_t begin,
                                                            int64_t end, float *restrict sums) {
    if (step == 1 && begin == 0 && end == LANES) {
        for (int64_t l = 0; l < LANES; l++) {
            sums[l] = fmaf(weight, from[l], sums[l]);
        }
    } else if (step == 1) {
        for (int64_t l = begin; l < end; l++) {
            sums[l] = fmaf(weight, from[l], sums[l]);
        }
    } else {
        for (int64_t l = begin; l < end; l++) {
            sums[l] = fmaf(weight, from[l * step], sums[l]);
        }
    }
}

/* Lanes that meet a 0: only an infinite or NaN weight changes them, but for the sign of a 0, which is lost at the end. */
static inline void add_zeros(float weight, int64_t begin, int64_t end, float *sums) {
    for (int64_t l = begin; l < end && !(fabsf(weight) <= 0x1.fffffep127f); l++) {
        sums[l] = fmaf(weight, 0, sums[l]);
    }
}

DMLK_EACH_ISA(run_row, (const dmlk_float_convolution *c, const float *plane, const float *weights, float bias,
                        const int64_t *output, float *to),
              (c, plane, weights, bias, output, to)) {
    const dmlk_taps_axis along = c->axes[2];
    const int64_t stride = c->input.strides[X];
    for (int64_t left = 0; left < along.output; left += LANES) {
        const float *weight = weights;
        const int64_t count = dmlk_min(LANES, along.output - left);
        float sums[LANES] = {0};
        for (int64_t z = 0; z < c->axes[0].window; z++) {
            for (int64_t y = 0; y < c->axes[1].window; y++) {
                const float *line = line_of(c, plane, output, z, y);
                for (int64_t x = 0; x < along.window; x++, weight++) {
                    const int64_t first = left * along.step + x * along.tap + along.origin;
                    const int64_t rest = along.input - first; /* lanes l with l * step below it are not past the end */
                    const int64_t before = first >= 0 ? 0 : (-first + along.step - 1) / along.step;
                    const int64_t inside = rest <= 0 ? 0 : rest > LANES * along.step ? count : (rest - 1) / along.step + 1;
                    const int64_t begin = line == NULL ? count : dmlk_min(before, count);
                    const int64_t end = line == NULL || inside < begin ? begin : dmlk_min(inside, count);
                    add_zeros(*weight, 0, begin, sums);
                    if (begin < end) {
                        add_lanes(*weight, line + first * stride, along.step * stride, begin, end, sums);
                    }
                    add_zeros(*weight, end, count, sums);
                }
            }
        }
        for (int64_t l = 0; l < count; l++) {
            to[left + l] = dmlk_one_nan(sums[l] + bias + 0.0f);
        }
    }
}

/* Items: planes of the output. */
static void planes_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const dmlk_float_convolution *c = job->c;
    const dmlk_view *in = &c->input, *out = &c->output;
    int64_t work = 0;
    for (int64_t item = begin; item < end; item++) {
        const int64_t n = item / job->channels, channel = item % job->channels;
        const float *plane = floats(in->base) + n * in->strides[N] + channel / c->filter.sizes[FILTER] * in->strides[CHANNEL];
        float *to = (float *)(void *)out->base + n * out->strides[N] + channel * out->strides[CHANNEL];
        for (int64_t row = 0; row < out->sizes[Z] * out->sizes[Y]; row++) {
            if (dmlk_stopped(&work, out->sizes[X] * job->taps / 8 + 1)) {
                return;
            }
            const int64_t output[2] = {row / out->sizes[Y], row % out->sizes[Y]};
            float *line = to + output[0] * out->strides[Z] + output[1] * out->strides[Y];
            run_row(c, plane, job->weights + channel * job->taps, job->bias[channel], output, line);
            dmlk_follow(c->followers, (const uint8_t *)line, 1, 1, out->sizes[X], 1);
        }
    }
}

/* --- lanes are channels --- */

/* All channels of one output; places[t]: what tap t meets, of the first channel, or zeros of all. */
DMLK_EACH_ISA(run_channels, (const struct job *job, const float *const *places, float *to), (job, places, to)) {
    for (int64_t first = 0; first < job->channels; first += LANES) {
        const int64_t count = dmlk_min(LANES, job->channels - first);
        float sums[LANES] = {0};
        for (int64_t t = 0; t < job->taps; t++) {
            const float *restrict from = places[t] + first, *restrict weight = job->weights + t * job->channels + first;
            if (count == LANES) {
                for (int64_t l = 0; l < LANES; l++) {
                    sums[l] = fmaf(weight[l], from[l], sums[l]);
                }
                continue;
            }
            for (int64_t l = 0; l < count; l++) {
                sums[l] = fmaf(weight[l], from[l], sums[l]);
            }
        }
        for (int64_t l = 0; l < count; l++) {
            to[first + l] = dmlk_one_nan(sums[l] + job->bias[first + l] + 0.0f);
        }
    }
}

/* Items: rows of the output of all images. */
static void rows_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const dmlk_float_convolution *c = job->c;
    const dmlk_view *in = &c->input, *out = &c->output;
    const dmlk_taps_axis *along = &c->axes[2];
    int64_t work = 0;
    for (int64_t item = begin; item < end; item++) {
        const int64_t n = item / out->sizes[Y] / out->sizes[Z];
        const int64_t output[2] = {item / out->sizes[Y] % out->sizes[Z], item % out->sizes[Y]};
        const float *image = floats(in->base) + n * in->strides[N];
        float *to = (float *)(void *)out->base + n * out->strides[N] + output[0] * out->strides[Z] + output[1] * out->strides[Y];
        for (int64_t x = 0; x < out->sizes[X]; x++) {
            const float *places[MOST_TAPS], **place = places;
            for (int64_t t = 0; t < job->taps; t++) {
                const int64_t row = t / along->window, at = x * along->step + t % along->window * along->tap + along->origin;
                const float *line = line_of(c, image, output, row / c->axes[1].window, row % c->axes[1].window);
                *place++ = line == NULL || at < 0 || at >= along->input ? job->zeros : line + at * in->strides[X];
            }
            if (dmlk_stopped(&work, job->channels * job->taps / 8 + 1)) {
                return;
            }
            run_channels(job, places, to + x * out->strides[X]);
        }
        dmlk_follow(c->followers, (const uint8_t *)to, out->sizes[X], out->strides[X], job->channels, 1);
    }
}

/* --- both --- */

static void pack(const struct job *job, bool by_channel) {
    const dmlk_float_convolution *c = job->c;
    const dmlk_view *f = &c->filter;
    for (int64_t channel = 0; channel < job->channels; channel++) {
        const float *from = floats(f->base) + channel / f->sizes[FILTER] * f->strides[GROUP] +
                            channel % f->sizes[FILTER] * f->strides[FILTER];
        for (int64_t t = 0; t < job->taps; t++) {
            const int64_t row = t / f->sizes[WINDOW + 2];
            const float weight = from[row / f->sizes[WINDOW + 1] * f->strides[WINDOW] +
                                      row % f->sizes[WINDOW + 1] * f->strides[WINDOW + 1] +
                                      t % f->sizes[WINDOW + 2] * f->strides[WINDOW + 2]];
            job->weights[by_channel ? t * job->channels + channel : channel * job->taps + t] = weight;
        }
        job->bias[channel] = c->bias.base == NULL ? 0 : floats(c->bias.base)[channel * c->bias.strides[0]];
    }
}

bool dmlk_convolve_floats_by_channel(const dmlk_float_convolution *c) {
    const dmlk_view *in = &c->input, *out = &c->output, *f = &c->filter;
    struct job job = {.c = c, .channels = out->sizes[CHANNEL], .taps = f->sizes[WINDOW] * f->sizes[WINDOW + 1] * f->sizes[WINDOW + 2]};
    if (f->sizes[OF_GROUP] != 1 || in->type != DMLK_FLOAT32 || job.taps > MOST_TAPS) {
        return false;
    }
    const bool by_channel = f->sizes[FILTER] == 1 && job.channels > 1 && in->strides[CHANNEL] == 1 && out->strides[CHANNEL] == 1;
    const bool by_row = out->strides[X] == 1 || out->sizes[X] == 1;
    if (!by_channel && !by_row) {
        return false;
    }
    float *memory = dmlk_take((job.taps + 2) * job.channels * (int64_t)sizeof *memory);
    if (memory == NULL) {
        return false;
    }
    job.weights = memory;
    job.bias = memory + job.taps * job.channels;
    job.zeros = memory + (job.taps + 1) * job.channels;
    memset(job.zeros, 0, (size_t)job.channels * sizeof *memory);
    pack(&job, by_channel);
    const int64_t items = by_channel ? out->sizes[N] * out->sizes[Z] * out->sizes[Y] : out->sizes[N] * job.channels;
    const int64_t products = dmlk_view_elements(out) * job.taps / items;
    dmlk_parallel(items, dmlk_parts(items, 1000000 / (products + 1) + 1), by_channel ? rows_part : planes_part, &job);
    dmlk_give(memory);
    return true;
}

