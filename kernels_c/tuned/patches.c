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

#ifdef DMLK_X86
#include <immintrin.h>
#endif

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

#ifdef DMLK_X86
/* Elements i .. i + 15 of a piece that are there, `step` (1 or 2) apart. */
DMLK_AVX512 static inline __m512 take_avx512(const float *from, int64_t left, int64_t step) {
    const __mmask16 there = (__mmask16)(0xffff >> (16 - (left < 16 ? left : 16)));
    if (step == 1) {
        return _mm512_maskz_loadu_ps(there, from);
    }
    const int64_t span = left >= 16 ? 31 : 2 * left - 1;
    const uint32_t both = (uint32_t)((UINT64_C(1) << span) - 1);
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512 low = _mm512_maskz_loadu_ps((__mmask16)both, from);
    const __m512 high = _mm512_maskz_loadu_ps((__mmask16)(both >> 16), from + 16);
    return _mm512_permutex2var_ps(low, even, high);
}

DMLK_AVX512 static void copy_lines_avx512(const struct lines *l) {
    for (int64_t c = 0; c < l->channels; c++) {
        const float *from = (const float *)(const void *)(l->from + c * l->channel_bytes);
        float *to = (float *)(void *)(l->to + c * l->to_bytes);
        if (!l->whole) {
            for (int64_t i = 0; i < MOST; i += 16) {
                _mm512_storeu_ps(to + i, _mm512_setzero_ps());
            }
        }
        for (int64_t k = 0; k < l->number; k++) {
            const struct piece *piece = &l->pieces[k];
            for (int64_t i = 0; i < piece->count; i += 16) {
                const int64_t left = piece->count - i;
                const __mmask16 there = (__mmask16)(0xffff >> (16 - (left < 16 ? left : 16)));
                _mm512_mask_storeu_ps(to + piece->lane + i, there, take_avx512(from + piece->from + i * l->step, left, l->step));
            }
        }
    }
}
#endif

static void copy(const struct lines *l, int64_t bytes) {
#ifdef DMLK_X86
    if (dmlk_isa() == DMLK_ISA_AVX512 && bytes == 4 && (l->step == 1 || l->step == 2)) {
        copy_lines_avx512(l);
        return;
    }
#endif
    copy_lines(l, bytes);
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
