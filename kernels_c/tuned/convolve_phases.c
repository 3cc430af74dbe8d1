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
#include "windows.h"

enum { Z = 2, WINDOW = 3 }; /* the first spatial axes of input and output, and of the filter */

#define MOST_PHASES 4096
#define LEAST_OUTPUTS 64 /* outputs of a phase; with fewer, preparing it takes longer than the plain kernel */

/* Leaves out the taps that meet no place of the input. */
static void trim(const dmlk_taps_axis *axis, dmlk_phase *p) {
    const int64_t tap = p->tap < 0 ? -p->tap : p->tap;
    const int64_t low = 1 - p->outputs - p->place, high = axis->input - 1 - p->place; /* of j * tap */
    const int64_t from = p->tap < 0 ? -high : low, to = p->tap < 0 ? -low : high;
    const int64_t skipped = from > 0 ? dmlk_ceil_div(from, tap) : 0;
    const int64_t end = to < 0 ? 0 : dmlk_min(p->taps, to / tap + 1);
    p->first += skipped * p->step;
    p->place += skipped * p->tap;
    p->taps = dmlk_max(0, end - skipped);
}

dmlk_phase dmlk_phase_of(const dmlk_taps_axis *axis, int64_t o) {
    const int64_t spread = axis->spread, apart = axis->tap < 0 ? -axis->tap : axis->tap;
    const int64_t q = spread / (int64_t)dmlk_gcd((uint64_t)spread, (uint64_t)apart);
    dmlk_phase phase = {.outputs = (axis->output - o + spread - 1) / spread, .step = q, .tap = q * axis->tap / spread};
    const int64_t end = dmlk_min(q, axis->window);
    while (phase.first < end && (o * axis->step + phase.first * axis->tap + axis->origin) % spread != 0) {
        phase.first++;
    }
    if (phase.first < end) {
        phase.taps = (axis->window - phase.first + q - 1) / q;
        phase.place = (o * axis->step + phase.first * axis->tap + axis->origin) / spread;
        trim(axis, &phase);
    }
    return phase;
}

/* Restricts axis k of `phase`, a copy of `c`, to outputs o0, o0 + spread, ... */
static void restrict_axis(dmlk_float_convolution *phase, const dmlk_float_convolution *c, int k, int64_t o0) {
    const dmlk_taps_axis *axis = &c->axes[k];
    const dmlk_phase p = dmlk_phase_of(axis, o0);
    dmlk_taps_axis *to = &phase->axes[k];
    *to = (dmlk_taps_axis){.input = axis->input, .output = p.outputs, .step = 1, .spread = 1};
    to->window = p.taps;
    to->tap = p.tap;
    to->origin = p.place;
    const int64_t first = p.taps > 0 ? p.first : 0;
    if (p.taps == 0) { /* one that is always outside of the input adds as little */
        to->window = to->tap = 1;
        to->origin = axis->input;
    }
    phase->filter.base += first * c->filter.strides[WINDOW + k] * dmlk_type_bytes(c->filter.type);
    phase->filter.strides[WINDOW + k] *= p.step;
    phase->filter.sizes[WINDOW + k] = to->window;
    phase->output.base += o0 * c->output.strides[Z + k] * dmlk_type_bytes(c->output.type);
    phase->output.strides[Z + k] *= axis->spread;
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
        elements *= (c->axes[k].output + c->axes[k].spread - 1) / c->axes[k].spread;
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
