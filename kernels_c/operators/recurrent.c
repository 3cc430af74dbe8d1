/* recurrent: the steps of recurrent networks, from the products of their inputs and weights.
 *
 * The units are divided into blocks of 48.  The recurrence weights of a block and a gate are packed once into a
 * panel, so that each step multiplies states by panels from the cache (microkernel_f32.h); each element of a product
 * is one chain of fused multiply-adds.  Threads share the blocks; every step advances both directions.  States, gates
 * and activations are FLOAT32 whatever the type of the tensors; results are rounded when they are stored. */
#include "recurrent.h"

#include <math.h>
#include <string.h>

#include "element_wise.h"
#include "kernel.h"
#include "microkernel_f32.h"
#include "scratch.h"
#include "singles.h"
#include "transpose.h"

#define UNITS DMLK_F32_COLUMNS /* units of a block */
#define ROWS DMLK_F32_ROWS     /* items that are multiplied together */
#define PIECE 128              /* weights of a row that are packed at a time */
#define DEPTH 128              /* states whose weights for a block stay in the first-level cache */
#define GRAIN (1 << 17)        /* weights worth a thread, in each step */

enum { PRODUCTS, RECURRENCE, BIAS, HIDDEN, CELL, LENGTHS, PEEPHOLES, SEQUENCE, LAST_HIDDEN, LAST_CELL, VIEWS };
enum { I, O, F, C };   /* gates of LSTM */
enum { Z, R, N };      /* gates of GRU; RNN has one */

static const int64_t gates_of[] = {[DMLK_CELL_RNN] = 1, [DMLK_CELL_LSTM] = 4, [DMLK_CELL_GRU] = 3};
static const int64_t functions_of[] = {[DMLK_CELL_RNN] = 1, [DMLK_CELL_LSTM] = 3, [DMLK_CELL_GRU] = 2};

#include "kernel_list.inc" /* declares all kernels */
#undef DMLK_KERNEL

static const struct {
    const char *family;
    int (*run)(const dmlk_call *call);
} kernels[] = {
#define DMLK_KERNEL(name, family) {#family, DMLK_RUN(name)},
#include "kernel_list.inc"
#undef DMLK_KERNEL
};

struct job {
    dmlk_recurrent k;
    const dmlk_view *views;
    int64_t directions, steps, items, gates, units, blocks;
    int64_t step;
    bool second; /* GRU: the second half of a step, which needs r of all units */
    int64_t *lengths;          /* of each item */
    float (*panels)[UNITS];    /* {direction, gate, block, state} of weights */
    float *values;             /* {direction, items, gate, block, UNITS}: see struct piece */
    float *states[2], *cells;  /* {direction, item, unit}: states before and after a step */
    float *reset;              /* GRU: states times r */
};

/* Consecutive items in one step of one direction, and blocks of units. */
struct piece {
    const struct job *job;
    int64_t direction, item, items, block, blocks;
};

/* --- where things are --- */

static inline uint8_t *element(const dmlk_view *view, const int64_t *index) {
    int64_t at = 0;
    for (uint32_t d = 0; d < view->rank; d++) {
        at += index[d] * view->strides[d];
    }
    return view->base + at * dmlk_type_bytes(view->type);
}

#define ELEMENT(view, ...) element(view, (const int64_t[]){__VA_ARGS__})

static inline int64_t stride_of(const dmlk_view *view) { return view->strides[view->rank - 1]; }

static bool is_backward(const struct job *job, int64_t direction) { return job->k.direction == 1 || direction == 1; }

/* The position in an item's sequence that this step processes. */
static int64_t time_of(const struct job *job, int64_t direction, int64_t item) {
    return is_backward(job, direction) ? job->lengths[item] - 1 - job->step : job->step;
}

/* The values of a gate, for the piece: contiguous, {block, item, UNITS}. */
static float *values_of(const struct piece *p, int64_t gate) {
    const struct job *job = p->job;
    const int64_t before = (p->direction * job->items + p->item) * job->gates * job->blocks;
    return job->values + (before + (gate * job->blocks + p->block) * p->items) * UNITS;
}

static int64_t count_of(const struct piece *p) { return p->blocks * p->items * UNITS; }

static int64_t state_at(const struct job *job, int64_t direction, int64_t item, int64_t unit) {
    return (direction * job->items + item) * job->units + unit;
}

static float *panel(const struct job *job, int64_t direction, int64_t gate, int64_t block) {
    return job->panels[((direction * job->gates + gate) * job->blocks + block) * job->units];
}

static int64_t units_of(const struct job *job, int64_t block) { return dmlk_min(UNITS, job->units - block * UNITS); }

/* The values of a gate for one item in one block: of `n` units from `unit` on. */
struct line {
    int64_t item, unit, n;
    float *at;
};

/* Line number `i` of a piece; false: there are fewer. */
static bool find_line(const struct piece *p, int64_t gate, int64_t i, struct line *line) {
    const int64_t block = p->block + i / p->items;
    *line = (struct line){p->item + i % p->items, block * UNITS, units_of(p->job, block), values_of(p, gate) + i * UNITS};
    return i < p->blocks * p->items;
}

#define EACH_LINE(p, gate, line) \
    struct line line;            \
    for (int64_t i_ = 0; find_line(p, gate, i_, &line); i_++)

/* --- the parts of a step --- */

/* Applies activation `which` of the piece's direction, in place. */
static void activate(const struct piece *p, int64_t which, float *values) {
    const dmlk_recurrent *k = &p->job->k;
    const int64_t function = p->direction * functions_of[k->cell] + which;
    const dmlk_view view = {.base = (uint8_t *)values, .byte_size = (uint64_t)count_of(p) * sizeof *values,
                            .type = DMLK_FLOAT32, .rank = 1, .sizes = {count_of(p)}, .strides = {1},
                            .access = DMLK_READ_WRITE};
    const dmlk_view both[] = {view, view};
    const dmlk_call call = {.views = both, .view_count = 2, .constants = k->parameters[function],
                            .constants_size = sizeof k->parameters[function]};
    kernels[k->functions[function]].run(&call);
}

/* Sets the values of a gate to the states times the gate's weights, of which several items share each piece. */
static void multiply(const struct piece *p, int64_t gate, const float *states) {
    const struct job *job = p->job;
    const int64_t most = p->items == 1 ? job->units : DEPTH;
    float *to = values_of(p, gate);
    for (int64_t block = p->block; block < p->block + p->blocks; block++, to += p->items * UNITS) {
        for (int64_t first = 0; first < job->units; first += most) {
            const dmlk_f32_kernel tile = {.rows = p->items,
                                          .columns = units_of(job, block),
                                          .depth = dmlk_min(most, job->units - first),
                                          .is_first = first == 0,
                                          .row = states + state_at(job, p->direction, p->item, first),
                                          .row_stride = job->units,
                                          .row_step = 1,
                                          .column = panel(job, p->direction, gate, block) + first * UNITS,
                                          .column_step = UNITS,
                                          .sums = to,
                                          .sums_stride = UNITS};
            dmlk_f32_tile(&tile);
        }
    }
}

static void add_bias(const struct piece *p, int64_t gate) {
    const dmlk_view *bias = &p->job->views[BIAS];
    float b[UNITS];
    if (bias->base != NULL) {
        EACH_LINE(p, gate, line) {
            dmlk_load_singles(bias->type, ELEMENT(bias, p->direction, gate, line.unit), stride_of(bias), line.n, b);
            for (int64_t j = 0; j < line.n; j++) {
                line.at[j] += b[j];
            }
        }
    }
}

static void add_products(const struct piece *p, int64_t gate) {
    const dmlk_view *x = &p->job->views[PRODUCTS];
    float product[UNITS];
    EACH_LINE(p, gate, line) {
        const int64_t t = time_of(p->job, p->direction, line.item);
        dmlk_load_singles(x->type, ELEMENT(x, p->direction, t, line.item, gate, line.unit), stride_of(x), line.n, product);
        for (int64_t j = 0; j < line.n; j++) {
            line.at[j] += product[j];
        }
    }
}

/* Sums up the terms of a gate, except for peepholes. */
static void sum_gate(const struct piece *p, int64_t gate, const float *states) {
    multiply(p, gate, states);
    add_bias(p, gate);
    add_products(p, gate);
}

static void add_peephole(const struct piece *p, int64_t gate) {
    const dmlk_view *peepholes = &p->job->views[PEEPHOLES];
    float weights[UNITS];
    if (peepholes->base != NULL) {
        EACH_LINE(p, gate, line) {
            const float *cell = p->job->cells + state_at(p->job, p->direction, line.item, line.unit);
            dmlk_load_singles(peepholes->type, ELEMENT(peepholes, p->direction, gate, line.unit), stride_of(peepholes),
                              line.n, weights);
            for (int64_t j = 0; j < line.n; j++) {
                line.at[j] += weights[j] * cell[j];
            }
        }
    }
}

static void clip(const struct piece *p, int64_t gate) {
    float *at = values_of(p, gate);
    const float limit = p->job->k.clip;
    for (int64_t i = 0; i < count_of(p) && p->job->k.clips; i++) {
        at[i] = at[i] > limit ? limit : at[i] < -limit ? -limit : at[i];
    }
}

static void store_if(const dmlk_view *view, const int64_t *index, int64_t n, const float *from) {
    if (view->base != NULL) {
        dmlk_store_singles(view->type, element(view, index), stride_of(view), n, from);
    }
}

#define STORE_IF(view, n, from, ...) store_if(view, (const int64_t[]){__VA_ARGS__}, n, from)

/* Stores the values of the gate as the new states. */
static void store_states(const struct piece *p, int64_t gate) {
    const struct job *job = p->job;
    const int64_t d = p->direction;
    EACH_LINE(p, gate, line) {
        const int64_t state = state_at(job, d, line.item, line.unit), n = line.n;
        memcpy(job->states[1] + state, line.at, (size_t)n * sizeof *line.at);
        STORE_IF(&job->views[SEQUENCE], n, line.at, time_of(job, d, line.item), d, line.item, line.unit);
        if (job->step == job->lengths[line.item] - 1) {
            STORE_IF(&job->views[LAST_HIDDEN], n, line.at, d, line.item, line.unit);
            STORE_IF(&job->views[LAST_CELL], n, job->cells + state, d, line.item, line.unit);
        }
    }
}

/* --- cells --- */

static void step_rnn(const struct piece *p) {
    sum_gate(p, 0, p->job->states[0]);
    activate(p, 0, values_of(p, 0));
    store_states(p, 0);
}

static void finish_gate(const struct piece *p, int64_t gate, int64_t function) {
    clip(p, gate);
    activate(p, function, values_of(p, gate));
}

static void step_lstm(const struct piece *p) {
    const bool couples = p->job->k.couples;
    float *const i = values_of(p, I), *const o = values_of(p, O), *const f = values_of(p, F), *const c = values_of(p, C);
    for (int64_t gate = I; gate <= C; gate++) {
        if (gate != F || !couples) {
            sum_gate(p, gate, p->job->states[0]);
        }
    }
    add_peephole(p, I);
    finish_gate(p, I, 0);
    if (!couples) {
        add_peephole(p, F);
        finish_gate(p, F, 0);
    }
    finish_gate(p, C, 1);
    EACH_LINE(p, I, line) {
        float *cell = p->job->cells + state_at(p->job, p->direction, line.item, line.unit);
        const int64_t first = line.at - i;
        for (int64_t j = 0; j < line.n; j++) {
            const int64_t x = first + j;
            cell[j] = (couples ? 1 - i[x] : f[x]) * cell[j] + i[x] * c[x];
            c[x] = cell[j];
        }
    }
    add_peephole(p, O); /* of the new cell */
    finish_gate(p, O, 0);
    activate(p, 2, c);
    for (int64_t x = 0; x < count_of(p); x++) {
        o[x] *= c[x];
    }
    store_states(p, O);
}

static void step_gru(const struct piece *p) {
    const struct job *job = p->job;
    float *const z = values_of(p, Z), *const r = values_of(p, R), *const next = values_of(p, N);
    if (!job->second) {
        sum_gate(p, Z, job->states[0]);
        activate(p, 0, z);
        sum_gate(p, R, job->states[0]);
        activate(p, 0, r);
    }
    if (!job->second && !job->k.linear) {
        EACH_LINE(p, R, line) {
            const int64_t state = state_at(job, p->direction, line.item, line.unit);
            for (int64_t j = 0; j < line.n; j++) {
                job->reset[state + j] = line.at[j] * job->states[0][state + j];
            }
        }
        return;
    }
    multiply(p, N, job->k.linear ? job->states[0] : job->reset);
    add_bias(p, N);
    for (int64_t x = 0; x < count_of(p) && job->k.linear; x++) {
        next[x] *= r[x];
    }
    add_products(p, N);
    activate(p, 1, next);
    EACH_LINE(p, N, line) {
        const float *state = job->states[0] + state_at(job, p->direction, line.item, line.unit);
        const float *keep = z + (line.at - next);
        for (int64_t j = 0; j < line.n; j++) {
            line.at[j] = (1 - keep[j]) * line.at[j] + keep[j] * state[j];
        }
    }
    store_states(p, N);
}

/* --- steps --- */

/* Items: blocks of units. */
static void step_blocks(int64_t begin, int64_t end, int part, void *context) {
    static void (*const step_of[])(const struct piece *) = {step_rnn, step_lstm, step_gru};
    (void)part;
    const struct job *job = context;
    int64_t work = 0;
    for (int64_t d = 0; d < job->directions; d++) {
        for (int64_t item = 0, after; item < job->items; item = after) {
            after = item + 1;
            if (job->step >= job->lengths[item]) {
                continue;
            }
            while (after < job->items && after < item + ROWS && job->step < job->lengths[after]) {
                after++;
            }
            const struct piece p = {job, d, item, after - item, begin, end - begin};
            step_of[job->k.cell](&p);
            if (dmlk_stopped(&work, (end - begin) * UNITS * job->units * job->gates)) {
                return;
            }
        }
    }
}

static void run_steps(struct job *job) {
    const int64_t weights = job->directions * job->gates * job->units * UNITS; /* of a block */
    const int parts = dmlk_parts(job->blocks, GRAIN / weights);
    int64_t work = 0;
    for (job->step = 0; job->step < job->steps && !dmlk_stopped(&work, 64); job->step++) {
        job->second = false;
        dmlk_parallel(job->blocks, parts, step_blocks, job);
        if (job->k.cell == DMLK_CELL_GRU && !job->k.linear) {
            job->second = true;
            dmlk_parallel(job->blocks, parts, step_blocks, job);
        }
        float *const after = job->states[1];
        job->states[1] = job->states[0];
        job->states[0] = after;
    }
}

/* Packs `count` weights, at most PIECE, of each of n rows, from element `first` on. */
static void pack_piece(const dmlk_view *weights, const int64_t *first, int64_t n, int64_t count, float *to) {
    const int64_t bytes = sizeof *to;
    float rows[UNITS][PIECE];
    const uint8_t *from = element(weights, first);
    int64_t step = weights->strides[2] * bytes, ahead = PIECE * bytes;
#ifndef DMLK_CHECKED
    const bool in_place = weights->type == DMLK_FLOAT32 && stride_of(weights) == 1;
#else
    const bool in_place = false; /* each load must be checked */
#endif
    for (int64_t j = 0; j < n && !in_place; j++) {
        const uint8_t *row = ELEMENT(weights, first[0], first[1], first[2] + j, first[3]);
        dmlk_load_singles(weights->type, row, stride_of(weights), count, rows[j]);
    }
    if (!in_place) {
        from = (const uint8_t *)rows, step = sizeof rows[0], ahead = 0;
    }
    dmlk_transpose_fetching(bytes, from, step, bytes, (uint8_t *)to, UNITS * bytes, count, n, ahead);
}

/* Items: the panels. */
static void pack_panels(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_stopped(&work, UNITS * job->units); i++) {
        const int64_t block = i % job->blocks, gate = i / job->blocks % job->gates, d = i / job->blocks / job->gates;
        float *to = panel(job, d, gate, block);
        for (int64_t k = 0; k < job->units && !(job->k.couples && gate == F); k += PIECE) {
            const int64_t first[] = {d, gate, block * UNITS, k};
            pack_piece(&job->views[RECURRENCE], first, units_of(job, block), dmlk_min(PIECE, job->units - k), to + k * UNITS);
        }
    }
}

/* Loads the initial states, stores them as the last states of items of length 0, and stores zeros after the ends of
 * sequences. */
static void begin_items(const struct job *job) {
    const dmlk_view *hidden = &job->views[HIDDEN], *cell = &job->views[CELL], *sequence = &job->views[SEQUENCE];
    int64_t work = 0;
    for (int64_t i = 0; i < job->directions * job->items && !dmlk_stopped(&work, job->units); i++) {
        const int64_t d = i / job->items, item = i % job->items;
        float *state = job->states[0] + i * job->units, *c = job->cells + i * job->units;
        if (hidden->base != NULL) {
            dmlk_load_singles(hidden->type, ELEMENT(hidden, d, item, 0), stride_of(hidden), job->units, state);
        }
        if (cell->base != NULL) {
            dmlk_load_singles(cell->type, ELEMENT(cell, d, item, 0), stride_of(cell), job->units, c);
        }
        if (job->lengths[item] == 0) {
            STORE_IF(&job->views[LAST_HIDDEN], job->units, state, d, item, 0);
            STORE_IF(&job->views[LAST_CELL], job->units, c, d, item, 0);
        }
        static const float zeros[UNITS];
        for (int64_t t = job->lengths[item]; t < job->steps && sequence->base != NULL; t++) {
            for (int64_t block = 0; block < job->blocks && !dmlk_stopped(&work, UNITS); block++) {
                STORE_IF(sequence, units_of(job, block), zeros, t, d, item, block * UNITS);
            }
        }
    }
}

/* --- set up --- */

static bool has_sizes(const dmlk_view *view, uint32_t rank, const int64_t *sizes) {
    return view->base == NULL || (view->rank == rank && memcmp(view->sizes, sizes, rank * sizeof *sizes) == 0);
}

static bool sizes_fit(const struct job *job) {
    const dmlk_view *views = job->views;
    const int64_t d = job->directions, t = job->steps, b = job->items, g = job->gates, h = job->units;
    const int64_t state[] = {d, b, h};
    bool fit = has_sizes(&views[RECURRENCE], 4, (const int64_t[]){d, g, h, h}) &&
               has_sizes(&views[BIAS], 3, (const int64_t[]){d, g, h}) && has_sizes(&views[LENGTHS], 1, &b) &&
               has_sizes(&views[PEEPHOLES], 3, (const int64_t[]){d, 3, h}) &&
               has_sizes(&views[SEQUENCE], 4, (const int64_t[]){t, d, b, h});
    static const int states[] = {HIDDEN, CELL, LAST_HIDDEN, LAST_CELL};
    for (int i = 0; i < 4; i++) {
        fit = fit && has_sizes(&views[states[i]], 3, state);
    }
    return fit;
}

static int set_up(const dmlk_call *call, struct job *job) {
    const uint32_t needed = 1 << PRODUCTS | 1 << RECURRENCE;
    if (!dmlk_has_views(call, VIEWS, ~needed) || !dmlk_get_constants(call, &job->k, sizeof job->k) ||
        job->k.cell > DMLK_CELL_GRU || job->k.direction > 2 || call->views[PRODUCTS].rank != 5) {
        return DMLK_BAD_PACKET;
    }
    const int64_t *sizes = call->views[PRODUCTS].sizes;
    job->views = call->views;
    job->directions = sizes[0], job->steps = sizes[1], job->items = sizes[2], job->gates = sizes[3], job->units = sizes[4];
    job->blocks = (job->units + UNITS - 1) / UNITS;
    job->k.couples = job->k.couples && job->k.cell == DMLK_CELL_LSTM;
    const bool both = job->k.direction == 2, lstm = job->k.cell == DMLK_CELL_LSTM;
    const bool has_cells = call->views[CELL].base != NULL || call->views[LAST_CELL].base != NULL || call->views[PEEPHOLES].base != NULL;
    if (job->directions != 1 + both || job->gates != gates_of[job->k.cell] || (has_cells && !lstm) || !sizes_fit(job)) {
        return DMLK_BAD_PACKET;
    }
    for (int i = 0; i < VIEWS; i++) {
        const uint32_t type = call->views[i].type;
        const bool fits = i == PRODUCTS ? type == DMLK_FLOAT32 : i == LENGTHS ? type == DMLK_UINT32 : dmlk_is_single(type);
        if (call->views[i].base != NULL && !fits) {
            return DMLK_NOT_IMPLEMENTED;
        }
    }
    return DMLK_OK;
}

/* Checks the activation functions by running each on one element. */
static int try_functions(struct job *job) {
    for (int64_t i = 0; i < job->directions * functions_of[job->k.cell]; i++) {
        const uint32_t function = job->k.functions[i];
        if (function >= sizeof kernels / sizeof kernels[0] || strcmp(kernels[function].family, "element_wise") != 0) {
            return DMLK_BAD_PACKET;
        }
        float x = 0;
        const dmlk_view one = {.base = (uint8_t *)&x, .byte_size = sizeof x, .type = DMLK_FLOAT32, .rank = 1,
                               .sizes = {1}, .strides = {1}, .access = DMLK_READ_WRITE};
        const dmlk_view views[] = {one, one};
        const dmlk_call call = {.views = views, .view_count = 2, .constants = job->k.parameters[i],
                                .constants_size = sizeof job->k.parameters[i]};
        const int status = kernels[function].run(&call);
        if (status != DMLK_OK) {
            return status;
        }
    }
    return DMLK_OK;
}

/* Takes `count` floats from *memory, aligned to 64 bytes; with NULL only counts. */
static float *take(uint8_t **memory, int64_t *bytes, int64_t count) {
    float *taken = *memory == NULL ? NULL : (float *)(void *)(*memory + *bytes);
    *bytes += (count * (int64_t)sizeof *taken + 63) / 64 * 64;
    return taken;
}

/* Divides the memory (NULL: only counts) and returns the number of bytes needed. */
static int64_t divide(struct job *job, uint8_t *memory) {
    int64_t bytes = 0;
    const int64_t states = job->directions * job->items * job->units;
    const int64_t blocks = job->directions * job->gates * job->blocks;
    job->lengths = (int64_t *)(void *)take(&memory, &bytes, 2 * job->items);
    job->panels = (float(*)[UNITS])take(&memory, &bytes, blocks * job->units * UNITS);
    job->values = take(&memory, &bytes, blocks * job->items * UNITS);
    job->states[0] = take(&memory, &bytes, states);
    job->states[1] = take(&memory, &bytes, states);
    job->cells = take(&memory, &bytes, states);
    job->reset = take(&memory, &bytes, job->k.cell == DMLK_CELL_GRU ? states : 0);
    return bytes;
}

static void read_lengths(const struct job *job) {
    const dmlk_view *lengths = &job->views[LENGTHS];
    for (int64_t i = 0; i < job->items; i++) {
        const uint32_t *from = (const uint32_t *)(const void *)lengths->base;
        const int64_t given = from == NULL ? job->steps : DMLK_LOAD_ONCE(from, i * lengths->strides[0]);
        job->lengths[i] = dmlk_min(given, job->steps);
    }
}

/* With coupled gates, the operands of gate f are not read. */
void dmlk_reads_recurrent(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    struct job job;
    static const uint32_t axes[] = {[PRODUCTS] = 3, [RECURRENCE] = 1, [BIAS] = 1, [PEEPHOLES] = 1};
    if (tensor < sizeof axes / sizeof axes[0] && axes[tensor] != 0 && call->view_count == VIEWS &&
        dmlk_get_constants(call, &job.k, sizeof job.k) && job.k.cell == DMLK_CELL_LSTM && job.k.couples) {
        const uint32_t axis = axes[tensor];
        reads->slices[axis][0] = (dmlk_slice){.first = 0, .step = 1, .count = 2};
        reads->slices[axis][1] = (dmlk_slice){.first = C, .step = 1, .count = 1};
        reads->counts[axis] = tensor == PEEPHOLES ? 1 : 2;
    }
}

const uint32_t dmlk_outputs_recurrent = 3;

int dmlk_run_recurrent(const dmlk_call *call) {
    struct job job;
    int status = set_up(call, &job);
    status = status == DMLK_OK ? try_functions(&job) : status;
    if (status != DMLK_OK) {
        return status;
    }
    const int64_t bytes = divide(&job, NULL);
    uint8_t *memory = dmlk_take(bytes);
    if (memory == NULL) {
        return DMLK_OUT_OF_MEMORY;
    }
    divide(&job, memory);
    memset(job.values, 0, (size_t)(bytes - ((uint8_t *)job.values - memory)));
    read_lengths(&job);
    begin_items(&job);
    const int64_t panels = job.directions * job.gates * job.blocks;
    dmlk_parallel(panels, dmlk_parts(panels, GRAIN / (job.units * UNITS)), pack_panels, &job);
    run_steps(&job);
    dmlk_give(memory);
    return DMLK_OK;
}
