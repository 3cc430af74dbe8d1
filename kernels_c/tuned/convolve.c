/* convolve.c - see convolve.h. */
#include "convolve.h"

#include "convolve_plan.h"
#include "parallel.h"
#include "scratch.h"
#include "cancellation.h"
#include "promoted.h"

enum { N = DMLK_N, CHANNEL = DMLK_CHANNEL, Y = DMLK_Y, X = DMLK_X };

#define LANES DMLK_S8_LANES

/* Working memory: one part for each thread if threads process separate groups, otherwise one part for all threads. */
struct scratch {
    int parts;
    uint8_t *planes;
    int64_t planes_bytes;
    int32_t *sums;
    int64_t sums_count;
};

/* The bytes of planes.  Tiles run past the end of the last row, and taps that have no planes of their own reach further. */
static int64_t scratch_planes(const dmlk_plan *p) {
    const int64_t bytes = p->planes * p->plane_bytes + (LANES + (p->by_taps ? 0 : p->x.reach)) * 4;
    return p->patch > 0 ? (bytes + 63) / 64 * 64 : bytes;
}

/* Computes blocks first_block .. first_block + blocks - 1 of one group, on all rows of one image.  `pack`, if not NULL, is
 * run before any block is used. */
static void run_group(const dmlk_plan *p, int64_t n, int64_t group, int64_t first_block, int64_t blocks, int parts,
                      uint8_t *planes, int32_t *sums, const dmlk_pool_phase *pack, int64_t *work) {
    const dmlk_view *in = &p->c->input;
    const int64_t strip_work = p->strip * p->pitch * (p->quads + p->planes);
    const uint8_t *input = in->base + n * in->strides[N] + group * p->channels * in->strides[CHANNEL];
    for (int64_t first = 0; first < p->c->output.sizes[Y] && !dmlk_stopped(work, strip_work); first += p->strip) {
        dmlk_pool_phase phases[DMLK_MOST_PHASES];
        const bool packs = pack != NULL && first == 0;
        int count = 0;
        const int64_t rows = dmlk_min(p->strip, p->c->output.sizes[Y] - first);
        uint8_t *patches = planes + scratch_planes(p);
        const uint8_t *positions = p->direct ? input + first * p->row_step : p->patch > 0 ? patches : planes;
        dmlk_strip strip = {.p = p,
                            .n = n,
                            .group = group,
                            .first = first,
                            .rows = rows,
                            .first_block = first_block,
                            .blocks = blocks,
                            .input = input,
                            .positions = positions,
                            .planes = planes,
                            .patches = patches,
                            .sums = sums};
        if (packs) {
            phases[count++] = *pack;
        }
        unsigned after = packs ? 1 : 0;
        count += dmlk_fill_planes(&strip, parts, phases + count);
        const int filled = count - 1;
        if (p->needs_sums) {
            strip.elements = sums + p->strip * p->pitch + LANES;
            strip.columns = strip.elements + dmlk_lines(p, p->strip) * p->line;
            count += dmlk_sum_windows(&strip, parts, phases + count);
        }
        if (p->patch > 0) {
            after |= p->needs_sums ? 1U << (count - 1) : 0;
            phases[count++] = dmlk_fill_patches(&strip, parts, 1U << filled);
        }
        count += dmlk_convolve_strip(&strip, parts, after, phases + count);
        dmlk_run_phases(phases, count);
    }
}

struct groups {
    const dmlk_plan *p;
    const struct scratch *scratch;
    int64_t first_group, count;
};

/* Items: groups of all images, each processed by one thread. */
static void groups_part(int64_t begin, int64_t end, int part, void *context) {
    const struct groups *g = context;
    const struct scratch *s = g->scratch;
    int64_t work = 0;
    for (int64_t i = begin; i < end && !dmlk_watch_stopped(); i++) {
        run_group(g->p, i / g->count, g->first_group + i % g->count, 0, g->p->group_blocks, 1,
                  s->planes + part * s->planes_bytes, s->sums + part * s->sums_count, NULL, &work);
    }
}

static void run(dmlk_plan *p, const struct scratch *scratch, int parts) {
    const int64_t images = p->c->output.sizes[N], groups = p->c->groups, blocks = p->group_blocks;
    const int64_t at_once = p->room / blocks; /* groups whose filters are packed at a time */
    int64_t work = 0;
    for (int64_t group = 0; at_once > 0 && group < groups && !dmlk_watch_stopped(); group += at_once) {
        const int64_t count = dmlk_min(at_once, groups - group);
        const dmlk_pool_phase pack = dmlk_pack_filters(p, group * blocks, count * blocks);
        struct groups groups_at_once = {p, scratch, group, count};
        if (scratch->parts > 1 && images * count >= 4 * parts) {
            const dmlk_pool_phase multiply = {
                .items = images * count, .parts = parts, .run = groups_part, .context = &groups_at_once, .after = 1};
            dmlk_run_phases((dmlk_pool_phase[]){pack, multiply}, 2);
            continue;
        }
        for (int64_t i = 0; i < images * count && !dmlk_watch_stopped(); i++) {
            run_group(p, i / count, group + i % count, 0, blocks, parts, scratch->planes, scratch->sums,
                      i == 0 ? &pack : NULL, &work);
        }
    }
    for (int64_t group = 0; at_once == 0 && group < groups && !dmlk_watch_stopped(); group++) {
        for (int64_t block = 0; block < blocks && !dmlk_watch_stopped(); block += p->room) {
            const int64_t count = dmlk_min(p->room, blocks - block);
            const dmlk_pool_phase pack = dmlk_pack_filters(p, group * blocks + block, count);
            for (int64_t n = 0; n < images && !dmlk_watch_stopped(); n++) {
                run_group(p, n, group, block, count, parts, scratch->planes, scratch->sums, n == 0 ? &pack : NULL, &work);
            }
        }
    }
}

static void swap(int64_t *a, int64_t *b) {
    const int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Swaps X and Y, so that positions of the output are closer along X. */
static void turn(dmlk_convolution *c) {
    for (int k = 0; k < 2; k++) {
        dmlk_view *view = k == 0 ? &c->input : &c->output;
        swap(&view->sizes[Y], &view->sizes[X]);
        swap(&view->strides[Y], &view->strides[X]);
    }
    swap(&c->filter.sizes[4], &c->filter.sizes[5]);
    swap(&c->filter.strides[4], &c->filter.strides[5]);
    swap(&c->filter_sums.sizes[1], &c->filter_sums.sizes[2]);
    swap(&c->filter_sums.strides[1], &c->filter_sums.strides[2]);
    swap(&c->filter_sizes[Y], &c->filter_sizes[X]);
    swap(&c->strides[Y], &c->strides[X]);
    swap(&c->dilations[Y], &c->dilations[X]);
    swap(&c->start[Y], &c->start[X]);
}

/* For 1x1 windows: the number of rows that are contiguous in input and output, so that they can be joined. */
static int64_t count_joined(const dmlk_convolution *c) {
    const int64_t *in = c->input.strides, *out = c->output.strides, x = c->input.sizes[X], y = c->input.sizes[Y];
    const bool follow = c->filter_sizes[Y] == 1 && c->filter_sizes[X] == 1 && c->strides[Y] == 1 &&
                        c->strides[X] == 1 && c->start[Y] == 0 && c->start[X] == 0 && c->output.sizes[Y] == y &&
                        c->output.sizes[X] == x && in[Y] == x * in[X] && out[Y] == x * out[X];
    const int64_t most = DMLK_PANEL_BYTES / c->filter_sizes[CHANNEL] / x;
    int64_t count = follow && y > 0 ? dmlk_min(y, most) : 1;
    while (count > 1 && y % count != 0) {
        count--;
    }
    return count;
}

static void join_rows(dmlk_convolution *c, int64_t count) {
    for (int k = 0; k < 2; k++) {
        dmlk_view *view = k == 0 ? &c->input : &c->output;
        view->sizes[Y] /= count;
        view->sizes[X] *= count;
        view->strides[Y] *= count;
    }
}

bool dmlk_has_filter_zeros(const dmlk_convolution *c) {
    bool found = false;
    for (int64_t i = 0; !found && c->filter_zero->base != NULL && i < c->filter_zero->sizes[0]; i++) {
        found = dmlk_filter_zero(c, i) != 0;
    }
    return found;
}

bool dmlk_convolve_bytes(const dmlk_convolution *convolution) {
    dmlk_convolution turned = *convolution;
    const dmlk_convolution *c = &turned;
    for (int axis = Y; axis <= X; axis++) {
        if (c->input.sizes[axis] == 1) { /* the stride is unused, and may be huge */
            turned.input.strides[axis] = 0;
        }
    }
    if (c->output.sizes[Y] > 1 && (c->output.sizes[X] == 1 || c->output.strides[Y] < c->output.strides[X])) {
        turn(&turned);
    }
    const int64_t joined = count_joined(c);
    if (joined > 1) {
        join_rows(&turned, joined);
    }
    if (c->finish != NULL && c->filter_sizes[CHANNEL] == 1) {
        return false; /* the next kernels store sums only */
    }
    if (dmlk_convolve_depthwise(c) || dmlk_convolve_bytes_by_channel(c)) {
        return true;
    }
    dmlk_plan plan;
    struct scratch scratch = {0};
    bool done = dmlk_plan_convolution(&plan, c);
    if (done) {
        const double products = (double)dmlk_view_elements(&c->output) * (double)plan.quads * 4;
        const int parts = dmlk_parts(INT64_MAX, products < (plan.channels == 1 ? 1e6 : 4e6) ? INT64_MAX : 1);
        scratch.planes_bytes = scratch_planes(&plan) + plan.strip * plan.pitch * plan.patch;
        scratch.sums_count = plan.sums;
        scratch.parts = scratch.planes_bytes <= DMLK_PANEL_BYTES ? parts : 1;
        scratch.planes = dmlk_take(scratch.parts * scratch.planes_bytes);
        scratch.sums = dmlk_take(scratch.parts * scratch.sums_count * (int64_t)sizeof *scratch.sums);
        done = scratch.planes != NULL && scratch.sums != NULL;
        if (done) {
            run(&plan, &scratch, parts);
        }
    }
    dmlk_give(scratch.planes);
    dmlk_give(scratch.sums);
    dmlk_free_plan(&plan);
    return done;
}
