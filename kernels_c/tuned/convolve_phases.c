/* convolve_phases.c - see convolve_phases.h.
 *
 * With a spread, output o uses tap t only if o * step + t * tap + origin is a multiple of the spread.  So outputs o0,
 * o0 + spread, o0 + 2 * spread ... of an axis use the same taps, every q-th one from t0 on, and consecutive ones use
 * consecutive elements of the input.  Such a phase is a convolution without spread.  Its taps stay in order, so that
 * it computes the same chains.  Its result goes to contiguous memory, which makes it a single product, and is copied
 * from there. */
#include "convolve_phases.h"

#include "cancellation.h"
#include "kernel.h"
#include "scratch.h"
#include "slices.h"

enum { Z = 2, WINDOW = 3 }; /* the first spatial axes of input and output, and of the filter */

#define MOST_PHASES 4096
#define LEAST_OUTPUTS 64 /* outputs of a phase; with fewer, preparing it takes longer than the plain kernel */

/* The number of outputs of a phase, along an axis. */
static int64_t outputs_of(const dmlk_taps_axis *axis, int64_t o0) {
    return (axis->output - o0 + axis->spread - 1) / axis->spread;
}

/* Restricts axis k of `phase`, a copy of `c`, to outputs o0, o0 + spread, ... */
static void restrict_axis(dmlk_float_convolution *phase, const dmlk_float_convolution *c, int k, int64_t o0) {
    const dmlk_taps_axis *axis = &c->axes[k];
    const int64_t spread = axis->spread, apart = axis->tap < 0 ? -axis->tap : axis->tap;
    const int64_t q = spread / (int64_t)dmlk_gcd((uint64_t)spread, (uint64_t)apart);
    dmlk_taps_axis *to = &phase->axes[k];
    *to = (dmlk_taps_axis){.input = axis->input, .output = outputs_of(axis, o0), .step = 1, .spread = 1};
    int64_t t0 = 0;
    while (t0 < dmlk_min(q, axis->window) && (o0 * axis->step + t0 * axis->tap + axis->origin) % spread != 0) {
        t0++;
    }
    if (t0 < dmlk_min(q, axis->window)) {
        to->window = (axis->window - t0 + q - 1) / q;
        to->tap = q * axis->tap / spread;
        to->origin = (o0 * axis->step + t0 * axis->tap + axis->origin) / spread;
    } else { /* the outputs use no tap: replaced by one that is always outside the input */
        t0 = 0;
        to->window = to->tap = 1;
        to->origin = axis->input;
    }
    phase->filter.base += t0 * c->filter.strides[WINDOW + k] * dmlk_type_bytes(c->filter.type);
    phase->filter.strides[WINDOW + k] *= q;
    phase->filter.sizes[WINDOW + k] = to->window;
    phase->output.base += o0 * c->output.strides[Z + k] * dmlk_type_bytes(c->output.type);
    phase->output.strides[Z + k] *= spread;
    phase->output.sizes[Z + k] = to->output;
}

/* The same sizes in contiguous memory. */
static dmlk_view contiguous(const dmlk_view *view, void *memory) {
    dmlk_view result = *view;
    int64_t elements = 1;
    for (uint32_t axis = view->rank; axis-- > 0; elements *= view->sizes[axis]) {
        result.strides[axis] = elements;
    }
    result.base = memory;
    return result;
}

static bool run_phase(const dmlk_float_convolution *c, const int64_t *o0, void *memory) {
    dmlk_float_convolution phase = *c;
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        restrict_axis(&phase, c, k, o0[k]);
    }
    const dmlk_view to = phase.output;
    phase.output = contiguous(&to, memory);
    return dmlk_convolve_floats(&phase) && dmlk_copy_elements(&phase.output, &to) == DMLK_OK;
}

bool dmlk_convolve_phases(const dmlk_float_convolution *c) {
    int64_t phases[DMLK_SPATIAL], count = 1, elements = c->output.sizes[0] * c->output.sizes[1];
    for (int k = 0; k < DMLK_SPATIAL; k++) {
        if (c->axes[k].spread > MOST_PHASES) { /* searching for its taps would take too long */
            return false;
        }
        phases[k] = dmlk_min(c->axes[k].spread, c->axes[k].output);
        count *= phases[k]; /* at most the cube of MOST_PHASES */
        elements *= outputs_of(&c->axes[k], 0);
    }
    if (c->block != 0 || count > MOST_PHASES || elements < LEAST_OUTPUTS) {
        return false;
    }
    void *memory = dmlk_take(elements * dmlk_type_bytes(c->output.type));
    bool done = memory != NULL;
    for (int64_t phase = 0; phase < count && done && !dmlk_watch_stopped(); phase++) {
        const int64_t o0[DMLK_SPATIAL] = {phase / phases[2] / phases[1], phase / phases[2] % phases[1],
                                          phase % phases[2]};
        done = run_phase(c, o0, memory);
    }
    dmlk_give(memory);
    return done;
}
