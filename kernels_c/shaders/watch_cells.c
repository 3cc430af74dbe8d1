/* watch_cells.c - which accesses of a few bytes are kept, and when two of them race.
 *
 * Of each class (read, write, atomic) two accesses by different threads are kept.  That is enough to find the first
 * race of every byte:
 *
 * - An access of an earlier group races with any later one of a class that conflicts, since groups are not ordered.
 *   One such access is kept for good.  (What atomic accesses order, see watch_atomics.c, is not told; races of others
 *   may then be missed.)
 * - Of the current group, an access that is ordered before now is ordered before all that follows.  Of those that are
 *   not, a later access by thread t races with any whose thread is not t: two of different threads contain one.
 * - Of atomic accesses only those of other sizes race; bytes that have atomic accesses of several sizes, ordered among
 *   each other, are the one case in which a race can be missed.
 * - Several writes by different threads without a race are impossible, except for writes of the same value, which
 *   are reported less severely; two are kept for the sake of the reads that follow. */
#include <stdlib.h>

#include "watch_state.h"

#define WIDE_BLOCK 4096 /* cells */

static dmlk_wide_cell *wide_at(const dmlk_wide_cells *wide, uint64_t number) {
    return &wide->blocks[(number - 1) / WIDE_BLOCK][(number - 1) % WIDE_BLOCK];
}

/* The number of a new wide cell; 0: no memory. */
static uint64_t new_wide_cell(dmlk_shader_watch *watch) {
    dmlk_wide_cells *wide = &watch->wide;
    const uint64_t block = wide->count / WIDE_BLOCK;
    if (block == wide->blocks_room) {
        const uint64_t room = block == 0 ? 16 : 2 * block;
        dmlk_wide_cell **blocks = realloc(wide->blocks, room * sizeof *blocks);
        if (blocks == NULL) {
            return 0;
        }
        wide->blocks = blocks;
        wide->blocks_room = room;
    }
    if (wide->count % WIDE_BLOCK == 0) {
        wide->blocks[block] = dmlk_take_shadow(watch, WIDE_BLOCK * sizeof(dmlk_wide_cell));
        if (wide->blocks[block] == NULL) {
            return 0;
        }
    }
    return ++wide->count;
}

void dmlk_free_wide_cells(dmlk_wide_cells *wide) { free(wide->blocks); }

/* --- what a cell contains --- */

static bool is_wide(const dmlk_cell *cell) { return cell->a != 0 && dmlk_class_of(cell->a) == 0; }

static void unpack(const dmlk_shader_watch *watch, const dmlk_cell *cell, dmlk_wide_cell *all) {
    if (is_wide(cell)) {
        *all = *wide_at(&watch->wide, cell->a >> 2);
        return;
    }
    *all = (dmlk_wide_cell){0};
    const dmlk_record records[] = {cell->a, cell->b};
    for (int i = 0; i < 2 && records[i] != 0; i++) {
        dmlk_record *pair = all->of[dmlk_class_of(records[i]) - 1];
        pair[pair[0] != 0] = records[i];
    }
}

/* False: no memory for a wide cell; the cell keeps what it had. */
static bool pack(dmlk_shader_watch *watch, dmlk_cell *cell, const dmlk_wide_cell *all) {
    dmlk_record records[3] = {0};
    uint32_t count = 0;
    for (int i = 0; i < 2 * DMLK_CLASSES && count < 3; i++) {
        const dmlk_record record = all->of[i / 2][i % 2];
        if (record != 0) {
            records[count++] = record;
        }
    }
    if (!is_wide(cell)) {
        if (count <= 2) {
            *cell = (dmlk_cell){records[0], records[1]};
            return true;
        }
        const uint64_t number = new_wide_cell(watch);
        if (number == 0) {
            return false;
        }
        *cell = (dmlk_cell){number << 2, 0};
    }
    *wide_at(&watch->wide, cell->a >> 2) = *all;
    return true;
}

bool dmlk_split_cell(dmlk_shader_watch *watch, const dmlk_cell *cell, dmlk_cell *to, uint32_t by) {
    for (uint32_t i = 0; i < 1u << by; i++) {
        to[i] = *cell;
        if (i > 0 && is_wide(cell)) { /* each has a wide cell of its own */
            const dmlk_wide_cell all = *wide_at(&watch->wide, cell->a >> 2);
            const uint64_t number = new_wide_cell(watch);
            if (number == 0) {
                return false;
            }
            to[i].a = number << 2;
            *wide_at(&watch->wide, number) = all;
        }
    }
    return true;
}

dmlk_record dmlk_last_change(const dmlk_shader_watch *watch, const dmlk_cell *cell) {
    dmlk_wide_cell all;
    unpack(watch, cell, &all);
    dmlk_record last[2];
    for (int i = 0; i < 2; i++) { /* the second one of a class is the later */
        const dmlk_record *pair = all.of[(i == 0 ? DMLK_SHADER_WRITE : DMLK_SHADER_ATOMIC) - 1];
        last[i] = pair[1] != 0 ? pair[1] : pair[0];
    }
    return dmlk_clock_of(last[0]) >= dmlk_clock_of(last[1]) ? last[0] : last[1];
}

/* --- order --- */

static bool is_of_group(const dmlk_order *order, dmlk_record record) { return dmlk_clock_of(record) >= order->start; }

/* Whether an access by another thread of the current group is ordered before the touch by a barrier. */
static bool is_released(const dmlk_touch *touch, dmlk_record earlier) {
    const dmlk_shader_watch *watch = touch->watch;
    const uint32_t other = dmlk_thread_of(earlier), passed = watch->arrived[dmlk_thread_of(touch->record)];
    if (watch->arrived[other] < passed) {
        return true; /* it did not come to the barrier, which is reported: what follows from that is not */
    }
    return dmlk_clock_of(earlier) < touch->order->released[passed % 2][other];
}

uint64_t dmlk_find_safe_clock(const dmlk_shader_watch *watch, dmlk_order *order, uint32_t passed) {
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < watch->options.threads; i++) {
        const uint64_t clock = order->released[passed % 2][i];
        least = watch->arrived[i] >= passed && clock < least ? clock : least;
    }
    order->safe_passed = passed;
    order->safe = least;
    return least;
}

/* Whether the earlier access is of the same thread, or ordered before the touch. */
static bool is_ordered(const dmlk_touch *touch, dmlk_record earlier) {
    if (!is_of_group(touch->order, earlier)) {
        return dmlk_is_acquired(touch->watch, earlier, dmlk_thread_of(touch->record));
    }
    return dmlk_thread_of(earlier) == dmlk_thread_of(touch->record) || is_released(touch, earlier);
}

/* --- races --- */

static bool is_same_place(const dmlk_shader_watch *watch, dmlk_record a, dmlk_record b) {
    const dmlk_site *x = &watch->sites[dmlk_site_of(a)], *y = &watch->sites[dmlk_site_of(b)];
    return x->bytes == y->bytes && x->phase == y->phase;
}

static bool is_same_value(const dmlk_touch *touch, dmlk_record earlier) {
    return touch->value != NULL && touch->kept != NULL && touch->watch->sites[dmlk_site_of(earlier)].known &&
           memcmp(touch->value, touch->kept, touch->size) == 0;
}

/* The last atomic access of a cell comes after all others.  If its thread is that of the touch, or it is ordered
 * before the touch, so are all of them. */
static bool are_atomics_ordered(const dmlk_touch *touch, const dmlk_record *atomics) {
    return is_ordered(touch, atomics[1] != 0 ? atomics[1] : atomics[0]);
}

/* The first kept access that races with the touch, 0: none.  Writes of the same value come last. */
static dmlk_record find_race(const dmlk_touch *touch, const dmlk_wide_cell *all, bool *same_value) {
    static const uint32_t order[] = {DMLK_SHADER_WRITE, DMLK_SHADER_ATOMIC, DMLK_SHADER_READ};
    const uint32_t class = dmlk_class_of(touch->record);
    dmlk_record same = 0;
    for (int k = 0; k < DMLK_CLASSES; k++) {
        const dmlk_record *pair = all->of[order[k] - 1];
        if ((order[k] == DMLK_SHADER_READ && class == DMLK_SHADER_READ) ||
            (order[k] == DMLK_SHADER_ATOMIC && class != DMLK_SHADER_ATOMIC && are_atomics_ordered(touch, pair))) {
            continue;
        }
        for (int i = 0; i < 2 && pair[i] != 0; i++) {
            if (is_ordered(touch, pair[i]) || (order[k] == DMLK_SHADER_ATOMIC && class == DMLK_SHADER_ATOMIC &&
                                               is_same_place(touch->watch, pair[i], touch->record))) {
                continue;
            }
            if (order[k] != DMLK_SHADER_WRITE || class != DMLK_SHADER_WRITE || !is_same_value(touch, pair[i])) {
                *same_value = false;
                return pair[i];
            }
            same = same == 0 ? pair[i] : same;
        }
    }
    *same_value = true;
    return same;
}

/* The index of a record in the pair that the touch's record replaces; 2: none. */
static int find_own(const dmlk_touch *touch, const dmlk_record *pair) {
    for (int i = 0; i < 2 && pair[i] != 0; i++) {
        if (is_of_group(touch->order, pair[i]) && dmlk_thread_of(pair[i]) == dmlk_thread_of(touch->record) &&
            (dmlk_class_of(pair[i]) != DMLK_SHADER_ATOMIC || is_same_place(touch->watch, pair[i], touch->record))) {
            return i;
        }
    }
    return 2;
}

/* Keeps a record among those of its class; the second one is the later. */
static void keep(const dmlk_touch *touch, dmlk_record *pair) {
    const int own = find_own(touch, pair);
    if (pair[0] == 0 || (own == 0 && pair[1] == 0)) {
        pair[0] = touch->record;
        return;
    }
    const bool drops_first = pair[1] != 0 && own == 2 && is_of_group(touch->order, pair[0]) &&
                             dmlk_clock_of(pair[0]) <= dmlk_clock_of(pair[1]);
    if (own == 0 || drops_first) {
        pair[0] = pair[1];
    }
    pair[1] = touch->record;
}

/* Groupshared memory: accesses of earlier groups are of other memory, and ordered ones are never needed again.  If the
 * last atomic access is ordered, so are those before it. */
static void forget(const dmlk_touch *touch, dmlk_wide_cell *all) {
    for (int i = 0; i < DMLK_CLASSES; i++) {
        dmlk_record *pair = all->of[i];
        bool later = false;
        for (int k = 1; k >= 0; k--) {
            const bool is_needed = pair[k] != 0 && is_of_group(touch->order, pair[k]) && !is_released(touch, pair[k]);
            if (!is_needed || (later && i == DMLK_SHADER_ATOMIC - 1)) {
                later = later || pair[k] != 0;
                pair[k] = k == 0 ? pair[1] : 0;
                pair[1] = 0;
            }
        }
    }
}

void dmlk_meet(const dmlk_touch *touch, dmlk_cell *cell) {
    dmlk_wide_cell all;
    unpack(touch->watch, cell, &all);
    if (touch->is_shared) {
        forget(touch, &all);
    }
    bool same_value;
    const dmlk_record earlier = find_race(touch, &all, &same_value);
    if (earlier != 0) {
        dmlk_note_race(touch, earlier, same_value);
    }
    keep(touch, all.of[dmlk_class_of(touch->record) - 1]);
    if (!pack(touch->watch, cell, &all)) {
        touch->watch->result.unchecked++;
    }
    touch->watch->shared_is_wide = touch->watch->shared_is_wide || (touch->is_shared && is_wide(cell));
}
