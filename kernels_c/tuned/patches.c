/* patches.c - see patches.h.
 *
 * Consecutive positions of a panel in the same output row are a run.  For each tap, the part of a run that is inside
 * the input is a piece: elements at a constant distance.  Pieces are the same for all channels.  If elements are
 * closer than channels, channels are copied one after the other, in moves of 8, 4 or 1 elements; otherwise the block
 * is transposed. */
#include "patches.h"

#include <string.h>

#include "cpu.h"
#include "float16.h"
#include "shuffle.h"
#include "transpose.h"

#define MAX_POSITIONS DMLK_PATCH_POSITIONS

enum { Z, Y, X };

struct run {
    int64_t input[DMLK_SPATIAL]; /* coordinates of the element that the first tap reads at the run's first position */
    int64_t lane, count;
};

struct piece {
    int64_t from; /* elements from the first element of the channel */
    int64_t lane, count;
};

/* A panel that is being packed; an element has `bytes` bytes. */
struct panel {
    const dmlk_patches *p;
    struct run runs[MAX_POSITIONS];
    int64_t run_count, count, pitch;
    int64_t bytes, step; /* elements from one position to the next */
};

static void find_runs(struct panel *panel, int64_t first, int64_t count) {
    const dmlk_patches *p = panel->p;
    int64_t x = first % p->sizes[X], line = first / p->sizes[X];
    panel->run_count = 0;
    panel->count = count;
    for (int64_t lane = 0; lane < count; x = 0, line++) {
        struct run *run = &panel->runs[panel->run_count++];
        const int64_t output[DMLK_SPATIAL] = {p->first[Z] + line / p->sizes[Y], p->first[Y] + line % p->sizes[Y],
                                              p->first[X] + x};
        for (int k = 0; k < DMLK_SPATIAL; k++) {
            run->input[k] = output[k] * p->axes[k].step + p->axes[k].origin;
        }
        run->lane = lane;
        run->count = count - lane < p->sizes[X] - x ? count - lane : p->sizes[X] - x;
        lane += run->count;
    }
}

static inline bool is_inside(const dmlk_taps_axis *axis, int64_t at) { return at >= 0 && at < axis->input; }

/* Finds the pieces of a tap; returns their number, and sets *whole if they cover all positions. */
static int64_t find_pieces(const struct panel *panel, const int64_t *tap, struct piece *pieces, bool *whole) {
    const dmlk_patches *p = panel->p;
    const dmlk_taps_axis *along = &p->axes[X];
    const int64_t step = along->step;
    int64_t number = 0, covered = 0;
    for (int64_t r = 0; r < panel->run_count; r++) {
        const struct run *run = &panel->runs[r];
        const int64_t z = run->input[Z] + tap[Z] * p->axes[Z].tap, y = run->input[Y] + tap[Y] * p->axes[Y].tap;
        int64_t x = run->input[X] + tap[X] * along->tap, begin = 0, end = run->count;
        if (!is_inside(&p->axes[Z], z) || !is_inside(&p->axes[Y], y)) {
            continue;
        }
        if (x < 0) {
            begin = step == 1 ? -x : (-x + step - 1) / step;
        }
        if (x + (end - 1) * step >= along->input) {
            end = along->input - x <= 0 ? 0 : step == 1 ? along->input - x : (along->input - x - 1) / step + 1;
        }
        if (begin >= end) {
            continue;
        }
        x += begin * step;
        pieces[number++] = (struct piece){.from = z * p->strides[Z] + y * p->strides[Y] + x * p->strides[X],
                                          .lane = run->lane + begin,
                                          .count = end - begin};
        covered += end - begin;
    }
    *whole = covered == panel->count;
    return number;
}

/* The pieces of one tap, for each of `channels` channels. */
struct lines {
    const uint8_t *from;
    uint8_t *to;
    int64_t channels, channel_bytes, to_bytes; /* from each to the next */
    const struct piece *pieces;
    int64_t number, step;
    int64_t pitch;
    bool whole;
};

/* --- one channel after the other: pieces are copied to their lanes, 0 to all others --- */

enum { EIGHTS, FOURS, ONES };

struct move {
    int64_t from, lane;
};

struct moves {
    struct move at[3][MAX_POSITIONS];
    int64_t counts[3];
};

static void add_move(struct moves *moves, int size, const struct lines *l, const struct piece *piece, int64_t i) {
    moves->at[size][moves->counts[size]++] = (struct move){piece->from + i * l->step, piece->lane + i};
}

/* Finds moves that cover the pieces; the last move of a piece may overlap the previous one. */
static void find_moves(const struct lines *l, struct moves *moves) {
    memset(moves->counts, 0, sizeof moves->counts);
    for (int64_t k = 0; k < l->number; k++) {
        const struct piece *piece = &l->pieces[k];
        const int64_t count = piece->count;
        if (count >= 8 && (l->step == 1 || l->step == 2)) {
            for (int64_t i = 0; i < count; i += 8) {
                add_move(moves, EIGHTS, l, piece, i + 8 <= count ? i : count - 8);
            }
        } else if (count >= 4 && l->step == 1) {
            add_move(moves, FOURS, l, piece, 0);
            add_move(moves, FOURS, l, piece, count - 4);
        } else {
            for (int64_t i = 0; i < count; i++) {
                add_move(moves, ONES, l, piece, i);
            }
        }
    }
}

typedef uint32_t words __attribute__((vector_size(32)));
typedef uint16_t shorts __attribute__((vector_size(16)));

/* Copies every second of 15 elements. */
static inline __attribute__((always_inline)) void move_alternate(int64_t bytes, const uint8_t *from, uint8_t *to) {
    if (bytes == 4) {
        words low, high;
        memcpy(&low, from, sizeof low);
        memcpy(&high, from + 7 * bytes, sizeof high);
        low = DMLK_SHUFFLE(words, low, high, 0, 2, 4, 6, 9, 11, 13, 15);
        memcpy(to, &low, sizeof low);
    } else {
        shorts low, high;
        memcpy(&low, from, sizeof low);
        memcpy(&high, from + 7 * bytes, sizeof high);
        low = DMLK_SHUFFLE(shorts, low, high, 0, 2, 4, 6, 9, 11, 13, 15);
        memcpy(to, &low, sizeof low);
    }
}

static inline __attribute__((always_inline)) void move_lines(const struct lines *l, const struct moves *moves,
                                                             int64_t bytes, bool alternate) {
    const uint8_t *from = l->from;
    uint8_t *to = l->to;
    for (int64_t c = 0; c < l->channels; c++, from += l->channel_bytes, to += l->to_bytes) {
        for (int64_t i = 0; i < l->pitch && !l->whole; i += 8) {
            memset(to + i * bytes, 0, (size_t)(8 * bytes));
        }
        const struct move *move = moves->at[EIGHTS];
        for (int64_t i = moves->counts[EIGHTS]; i > 0; i--, move++) {
            if (alternate) {
                move_alternate(bytes, from + move->from * bytes, to + move->lane * bytes);
            } else {
                memcpy(to + move->lane * bytes, from + move->from * bytes, (size_t)(8 * bytes));
            }
        }
        move = moves->at[FOURS];
        for (int64_t i = moves->counts[FOURS]; i > 0; i--, move++) {
            memcpy(to + move->lane * bytes, from + move->from * bytes, (size_t)(4 * bytes));
        }
        move = moves->at[ONES];
        for (int64_t i = moves->counts[ONES]; i > 0; i--, move++) {
            memcpy(to + move->lane * bytes, from + move->from * bytes, (size_t)bytes);
        }
    }
}

DMLK_EACH_ISA(copy, (const struct lines *l, const struct moves *moves, int64_t bytes), (l, moves, bytes)) {
    if (bytes == 4 && l->step == 2) {
        move_lines(l, moves, 4, true);
    } else if (bytes == 4) {
        move_lines(l, moves, 4, false);
    } else {
        move_lines(l, moves, 2, l->step == 2);
    }
}

static void transpose(const struct lines *l, int64_t bytes) {
    for (int64_t c = 0; c < l->channels && !l->whole; c++) {
        memset(l->to + c * l->to_bytes, 0, (size_t)(l->pitch * bytes));
    }
    for (int64_t k = 0; k < l->number; k++) {
        const struct piece *piece = &l->pieces[k];
        dmlk_transpose(bytes, l->from + piece->from * bytes, l->step * bytes, l->channel_bytes, l->to + piece->lane * bytes,
                       l->to_bytes, l->channels, piece->count);
    }
}

/* Packs channels begin .. end - 1 of one tap. */
static void pack_tap(const struct panel *panel, const uint8_t *base, const int64_t *tap, int64_t begin, int64_t end,
                     int64_t taps, uint8_t *to) {
    struct piece pieces[MAX_POSITIONS];
    const int64_t bytes = panel->bytes, channel_bytes = panel->p->channel_stride * bytes;
    struct lines lines = {.from = base + begin * channel_bytes,
                          .to = to,
                          .channels = end - begin,
                          .channel_bytes = channel_bytes,
                          .to_bytes = taps * panel->pitch * bytes,
                          .pieces = pieces,
                          .step = panel->step,
                          .pitch = panel->pitch};
    lines.number = find_pieces(panel, tap, pieces, &lines.whole);
    if (lines.channels > 1 && panel->p->channel_stride < panel->step && panel->p->channel_stride > 0) {
        transpose(&lines, bytes);
    } else {
        struct moves moves;
        find_moves(&lines, &moves);
        copy(&lines, &moves, bytes);
    }
}

static void next_tap(const dmlk_patches *p, int64_t *tap) {
    for (int k = X; k >= Z && ++tap[k] == p->axes[k].window; k--) {
        tap[k] = 0;
    }
}

void dmlk_pack_patches(const dmlk_patches *p, const uint8_t *base, int64_t first_column, int64_t depth, int64_t first,
                       int64_t count, float *to, int64_t pitch, uint16_t *halves) {
    const bool half = p->type == DMLK_FLOAT16;
    struct panel panel = {.p = p, .pitch = pitch, .bytes = half ? 2 : 4, .step = p->axes[X].step * p->strides[X]};
    find_runs(&panel, first, count);
    const int64_t width = p->axes[X].window, height = p->axes[Y].window, taps = p->axes[Z].window * height * width;
    const int64_t last_column = first_column + depth; /* exclusive */
    const int64_t channel = first_column / taps, last_channel = last_column / taps;
    int64_t t = first_column % taps, tap[DMLK_SPATIAL] = {t / width / height, t / width % height, t % width};
    uint8_t *bits = half ? (uint8_t *)halves : (uint8_t *)to;
    for (int64_t k = 0; k < taps && k < depth; k++) { /* tap t begins in column first_column + k */
        const int64_t begin = t >= first_column % taps ? channel : channel + 1;
        const int64_t end = t < last_column % taps ? last_channel + 1 : last_channel;
        pack_tap(&panel, base, tap, begin, end, taps, bits + k * pitch * panel.bytes);
        next_tap(p, tap);
        t = t + 1 == taps ? 0 : t + 1;
    }
    if (half && count == pitch) {
        dmlk_widen_float16(halves, depth * pitch, to);
        return;
    }
    for (int64_t k = 0; k < depth && half; k++) {
        dmlk_widen_float16(halves + k * pitch, count, to + k * pitch);
    }
}
