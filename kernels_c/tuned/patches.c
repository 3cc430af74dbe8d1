/* patches.c - see patches.h.
 *
 * Positions of a panel that follow each other along an output row are a run.  Of each tap, the part of a run that is
 * inside the input is a piece: elements at a constant distance.  A piece is the same for all channels: they are copied
 * one after the other if elements are closer than channels, otherwise the block is transposed. */
#include "patches.h"

#include <string.h>

#include "cpu.h"
#include "float16.h"
#include "transpose.h"

#define MOST DMLK_PATCH_POSITIONS

enum { Z, Y, X };

struct run {
    int64_t output[DMLK_SPATIAL]; /* of its first position */
    int64_t lane, count;
};

struct piece {
    int64_t from; /* elements from the first of the channel */
    int64_t lane, count;
};

/* The taps and channels of one panel; lines of `bytes` per element. */
struct panel {
    const dmlk_patches *p;
    struct run runs[MOST];
    int64_t run_count, count;
    int64_t bytes, step; /* elements from one position to the next */
};

static void find_runs(struct panel *panel, int64_t first, int64_t count) {
    const dmlk_patches *p = panel->p;
    panel->run_count = 0;
    panel->count = count;
    for (int64_t lane = 0; lane < count;) {
        const int64_t position = first + lane, line = position / p->sizes[X], x = position % p->sizes[X];
        struct run *run = &panel->runs[panel->run_count++];
        run->output[X] = p->first[X] + x;
        run->output[Y] = p->first[Y] + line % p->sizes[Y];
        run->output[Z] = p->first[Z] + line / p->sizes[Y];
        run->lane = lane;
        run->count = count - lane < p->sizes[X] - x ? count - lane : p->sizes[X] - x;
        lane += run->count;
    }
}

/* The input that a tap meets; false: outside. */
static inline bool meets(const dmlk_taps_axis *axis, int64_t output, int64_t tap, int64_t *at) {
    *at = output * axis->step + tap * axis->tap + axis->origin;
    return *at >= 0 && *at < axis->input;
}

/* The pieces of a tap; returns their number, and in `*whole` whether they are all positions. */
static int64_t find_pieces(const struct panel *panel, const int64_t *tap, struct piece *pieces, bool *whole) {
    const dmlk_patches *p = panel->p;
    const dmlk_taps_axis *along = &p->axes[X];
    int64_t number = 0, covered = 0;
    for (int64_t r = 0; r < panel->run_count; r++) {
        const struct run *run = &panel->runs[r];
        int64_t z, y, x = run->output[X] * along->step + tap[X] * along->tap + along->origin;
        if (!meets(&p->axes[Z], run->output[Z], tap[Z], &z) || !meets(&p->axes[Y], run->output[Y], tap[Y], &y)) {
            continue;
        }
        int64_t begin = 0, end = run->count;
        if (x < 0) {
            begin = along->step == 1 ? -x : (-x + along->step - 1) / along->step;
        }
        if (x + (end - 1) * along->step >= along->input) {
            end = along->input - x <= 0 ? 0 : along->step == 1 ? along->input - x : (along->input - x - 1) / along->step + 1;
        }
        if (begin >= end) {
            continue;
        }
        x += begin * along->step;
        pieces[number++] = (struct piece){.from = z * p->strides[Z] + y * p->strides[Y] + x * p->strides[X],
                                          .lane = run->lane + begin,
                                          .count = end - begin};
        covered += end - begin;
    }
    *whole = covered == panel->count;
    return number;
}

/* --- one channel after the other: to + lane = from + piece, 0 elsewhere --- */

struct lines {
    const uint8_t *from;
    uint8_t *to;
    int64_t channels, channel_bytes, to_bytes; /* from each to the next */
    const struct piece *pieces;
    int64_t number, step;
    bool whole;
};

static void copy_lines(const struct lines *l, int64_t bytes) {
    for (int64_t c = 0; c < l->channels; c++) {
        const uint8_t *from = l->from + c * l->channel_bytes;
        uint8_t *to = l->to + c * l->to_bytes;
        if (!l->whole) {
            memset(to, 0, (size_t)(MOST * bytes));
        }
        for (int64_t k = 0; k < l->number; k++) {
            const struct piece piece = l->pieces[k];
            const uint8_t *source = from + piece.from * bytes;
            uint8_t *target = to + piece.lane * bytes;
            if (l->step == 1) {
                memcpy(target, source, (size_t)(piece.count * bytes));
                continue;
            }
            for (int64_t i = 0; i < piece.count; i++) {
                memcpy(target + i * bytes, source + i * l->step * bytes, (size_t)bytes);
            }
        }
    }
}

/* The same for floats: 8 at a time, the last ones of a piece as far as they are there. */
DMLK_EACH_ISA(copy_floats, (const struct lines *l), (l)) {
    for (int64_t c = 0; c < l->channels; c++) {
        const float *restrict from = (const float *)(const void *)(l->from + c * l->channel_bytes);
        float *restrict to = (float *)(void *)(l->to + c * l->to_bytes);
        for (int64_t i = 0; i < MOST && !l->whole; i++) {
            to[i] = 0;
        }
        for (int64_t k = 0; k < l->number; k++) {
            const struct piece piece = l->pieces[k];
            const float *restrict source = from + piece.from;
            float *restrict target = to + piece.lane;
            int64_t i = 0;
            for (; i + 8 <= piece.count && l->step == 1; i += 8) {
                memcpy(target + i, source + i, 8 * sizeof *to);
            }
            if (l->step == 1 && piece.count >= 8) { /* the last 8 again, in part */
                memcpy(target + piece.count - 8, source + piece.count - 8, 8 * sizeof *to);
                continue;
            }
            for (; i < piece.count; i++) {
                target[i] = source[i * l->step];
            }
        }
    }
}

static void copy(const struct lines *l, int64_t bytes) {
    if (bytes == 4) {
        copy_floats(l);
    } else {
        copy_lines(l, bytes);
    }
}

static void transpose(const struct lines *l, int64_t bytes) {
    for (int64_t c = 0; c < l->channels && !l->whole; c++) {
        memset(l->to + c * l->to_bytes, 0, (size_t)(MOST * bytes));
    }
    for (int64_t k = 0; k < l->number; k++) {
        const struct piece *piece = &l->pieces[k];
        dmlk_transpose(bytes, l->from + piece->from * bytes, l->step * bytes, l->channel_bytes, l->to + piece->lane * bytes,
                       l->to_bytes, l->channels, piece->count, 0);
    }
}

/* The channels of one tap that are in columns first_column .. first_column + depth - 1. */
static void pack_tap(const struct panel *panel, const uint8_t *base, const int64_t *tap, int64_t number, int64_t taps,
                     int64_t first_column, int64_t depth, uint8_t *to) {
    const int64_t begin = first_column <= number ? 0 : (first_column - number + taps - 1) / taps;
    const int64_t before = first_column + depth - number; /* channels * taps are below it */
    const int64_t end = before <= 0 ? 0 : (before + taps - 1) / taps;
    if (begin >= end) {
        return;
    }
    struct piece pieces[MOST];
    const int64_t bytes = panel->bytes, channel_bytes = panel->p->channel_stride * bytes;
    struct lines lines = {.from = base + begin * channel_bytes,
                          .to = to + (begin * taps + number - first_column) * MOST * bytes,
                          .channels = end - begin,
                          .channel_bytes = channel_bytes,
                          .to_bytes = taps * MOST * bytes,
                          .pieces = pieces,
                          .step = panel->step};
    lines.number = find_pieces(panel, tap, pieces, &lines.whole);
    if (lines.channels > 1 && panel->p->channel_stride < panel->step && panel->p->channel_stride > 0) {
        transpose(&lines, bytes);
    } else {
        copy(&lines, bytes);
    }
}

void dmlk_pack_patches(const dmlk_patches *p, const uint8_t *base, int64_t first_column, int64_t depth, int64_t first,
                       int64_t count, float (*to)[DMLK_PATCH_POSITIONS], uint16_t *halves) {
    const bool half = p->type == DMLK_FLOAT16;
    struct panel panel = {.p = p, .bytes = half ? 2 : 4, .step = p->axes[X].step * p->strides[X]};
    find_runs(&panel, first, count);
    const int64_t width = p->axes[X].window, height = p->axes[Y].window, taps = p->axes[Z].window * height * width;
    const bool all = depth >= taps;
    for (int64_t i = 0; i < (all ? taps : depth); i++) {
        const int64_t t = all ? i : (first_column + i) % taps;
        const int64_t tap[DMLK_SPATIAL] = {t / width / height, t / width % height, t % width};
        pack_tap(&panel, base, tap, t, taps, first_column, depth, half ? (uint8_t *)halves : (uint8_t *)to);
    }
    for (int64_t k = 0; k < depth && half; k++) {
        dmlk_widen_float16(halves + k * MOST, count, to[k]);
    }
}
