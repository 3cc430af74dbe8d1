/* depthwise_float.c - convolutions of floats whose groups have one channel each: see convolve_float.h.
 *
 * Lanes of a vector are adjacent outputs of a row, or adjacent channels.  Each lane is one chain of fused
 * multiply-adds over the taps; a place outside of the input is a lane of 0. */
#include "convolve_float.h"

#include "cancellation.h"
#include "cpu.h"
#include "element.h"
#include "parallel.h"
#include "scratch.h"

#ifdef DMLK_X86
#include <immintrin.h>

enum { N, CHANNEL, Z, Y, X };
enum { GROUP, FILTER, OF_GROUP, WINDOW };

#define LANES 16
#define MOST_MASKS 512

struct job {
    const dmlk_float_convolution *c;
    int64_t taps, channels; /* of the output */
    float *weights;         /* by channel: [taps][channels]; otherwise [channels][taps] */
    float *bias;            /* [channels] */
    int64_t vectors;        /* of an output row */
    uint32_t inside[MOST_MASKS]; /* [vectors][taps along X]: bit l * step: lane l is inside */
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

DMLK_AVX512 static inline void store(__m512 sum, __m512 bias, __mmask16 there, float *to) {
    const __m512 x = _mm512_add_ps(_mm512_add_ps(sum, bias), _mm512_setzero_ps()); /* -0 becomes 0 */
    const __m512 nan = _mm512_set1_ps(dmlk_bits_float(DMLK_NAN_BITS));
    _mm512_mask_storeu_ps(to, there, _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan));
}

static inline __mmask16 lanes(int64_t left) { return (__mmask16)(0xffff >> (LANES - (left < LANES ? left : LANES))); }

/* --- lanes are outputs of a row --- */

DMLK_AVX512 static inline __m512 load_outputs(const float *from, uint32_t inside, int64_t step) {
    if (step == 1) {
        return _mm512_maskz_loadu_ps((__mmask16)inside, from);
    }
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(_mm512_maskz_loadu_ps((__mmask16)inside, from), even,
                                  _mm512_maskz_loadu_ps((__mmask16)(inside >> LANES), from + LANES));
}

DMLK_AVX512 static void run_row(const struct job *job, const float *plane, const float *weights, float bias,
                                const int64_t *output, float *to) {
    const dmlk_float_convolution *c = job->c;
    const dmlk_taps_axis *along = &c->axes[2];
    for (int64_t v = 0; v < job->vectors; v++) {
        const float *weight = weights;
        __m512 sum = _mm512_setzero_ps();
        for (int64_t z = 0; z < c->axes[0].window; z++) {
            for (int64_t y = 0; y < c->axes[1].window; y++) {
                const float *line = line_of(c, plane, output, z, y);
                for (int64_t x = 0; x < along->window; x++) {
                    const int64_t first = v * LANES * along->step + x * along->tap + along->origin;
                    const uint32_t inside = line == NULL ? 0 : job->inside[v * along->window + x];
                    const float *from = inside == 0 ? plane : line + first;
                    sum = _mm512_fmadd_ps(_mm512_set1_ps(*weight++), load_outputs(from, inside, along->step), sum);
                }
            }
        }
        store(sum, _mm512_set1_ps(bias), lanes(along->output - v * LANES), to + v * LANES);
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
            if (dmlk_stopped(&work, job->vectors * job->taps)) {
                return;
            }
            const int64_t output[2] = {row / out->sizes[Y], row % out->sizes[Y]};
            run_row(job, plane, job->weights + channel * job->taps, job->bias[channel], output,
                    to + output[0] * out->strides[Z] + output[1] * out->strides[Y]);
        }
    }
}

/* false: there are too many masks. */
static bool find_inside(struct job *job) {
    const dmlk_taps_axis *along = &job->c->axes[2];
    job->vectors = (along->output + LANES - 1) / LANES;
    if (along->window > MOST_MASKS || job->vectors > MOST_MASKS / along->window) {
        return false;
    }
    for (int64_t v = 0; v < job->vectors; v++) {
        for (int64_t x = 0; x < along->window; x++) {
            uint32_t *inside = &job->inside[v * along->window + x];
            for (int64_t l = 0; l < LANES && v * LANES + l < along->output; l++) {
                const int64_t at = (v * LANES + l) * along->step + x * along->tap + along->origin;
                *inside |= at >= 0 && at < along->input ? 1u << (l * along->step) : 0;
            }
        }
    }
    return true;
}

/* --- lanes are channels --- */

/* Up to 4 vectors of channels of one output. */
DMLK_AVX512 static void run_channels(const struct job *job, const float *const *places, int64_t first, float *to) {
    static const float zeros[4 * LANES];
    const int64_t left = job->channels - first;
    __m512 sums[4];
    __mmask16 there[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        sums[k] = _mm512_setzero_ps();
        there[k] = left > k * LANES ? lanes(left - k * LANES) : 0;
    }
    for (int64_t t = 0; t < job->taps; t++) {
        const float *from = places[t] == NULL ? zeros : places[t] + first;
        const float *weight = job->weights + t * job->channels + first;
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            sums[k] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(there[k], weight + k * LANES),
                                      _mm512_maskz_loadu_ps(there[k], from + k * LANES), sums[k]);
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        store(sums[k], _mm512_maskz_loadu_ps(there[k], job->bias + first + k * LANES), there[k], to + first + k * LANES);
    }
}

#define MOST_TAPS 128

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
                *place++ = line == NULL || at < 0 || at >= along->input ? NULL : line + at * in->strides[X];
            }
            for (int64_t first = 0; first < job->channels; first += 4 * LANES) {
                if (dmlk_stopped(&work, 4 * job->taps)) {
                    return;
                }
                run_channels(job, places, first, to + x * out->strides[X]);
            }
        }
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
    const int64_t step = c->axes[2].step;
    if (dmlk_isa() != DMLK_ISA_AVX512 || f->sizes[OF_GROUP] != 1 || in->type != DMLK_FLOAT32 || job.taps > MOST_TAPS) {
        return false;
    }
    const bool by_channel = f->sizes[FILTER] == 1 && job.channels > 1 && in->strides[CHANNEL] == 1 && out->strides[CHANNEL] == 1;
    const bool by_row = (in->strides[X] == 1 || in->sizes[X] == 1) && (out->strides[X] == 1 || out->sizes[X] == 1) &&
                        (step == 1 || step == 2) && find_inside(&job);
    if (!by_channel && !by_row) {
        return false;
    }
    float *memory = dmlk_take((job.taps + 1) * job.channels * (int64_t)sizeof *memory);
    if (memory == NULL) {
        return false;
    }
    job.weights = memory;
    job.bias = memory + job.taps * job.channels;
    pack(&job, by_channel);
    const int64_t items = by_channel ? out->sizes[N] * out->sizes[Z] * out->sizes[Y] : out->sizes[N] * job.channels;
    const int64_t products = dmlk_view_elements(out) * job.taps / items;
    dmlk_parallel(items, dmlk_parts(items, 1000000 / (products + 1) + 1), by_channel ? rows_part : planes_part, &job);
    dmlk_give(memory);
    return true;
}

#else

bool dmlk_convolve_floats_by_channel(const dmlk_float_convolution *c) {
    (void)c;
    return false;
}

#endif
