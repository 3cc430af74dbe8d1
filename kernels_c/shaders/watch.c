/* watch.c - the hooks of checked code: bounds, groupshared memory, barriers, lanes, and the list of findings. */
#include <stdlib.h>

#include "watch_state.h"

/* --- findings --- */

static bool is_same_side(const dmlk_shader_side *a, const dmlk_shader_side *b) {
    return a->line == b->line && a->kind == b->kind && a->view == b->view;
}

/* Of two threads that race, either may come first. */
static bool is_like(const dmlk_shader_finding *a, const dmlk_shader_finding *b) {
    if (a->kind != b->kind) {
        return false;
    }
    return (is_same_side(&a->later, &b->later) && is_same_side(&a->earlier, &b->earlier)) ||
           (a->kind <= DMLK_FOUND_SHARED_RACE_SAME && is_same_side(&a->later, &b->earlier) &&
            is_same_side(&a->earlier, &b->later));
}

/* Keeps the first of all findings that are alike, and counts the others. */
static void note(dmlk_shader_watch *watch, const dmlk_shader_finding *finding) {
    dmlk_shader_watch_result *result = &watch->result;
    if (watch->last != NULL && is_like(watch->last, finding)) {
        watch->last->count++;
        return;
    }
    for (uint64_t i = 0; i < result->count; i++) {
        if (is_like(&watch->findings[i], finding)) {
            watch->last = &watch->findings[i];
            watch->last->count++;
            return;
        }
    }
    if (result->count == watch->options.most_findings) {
        result->dropped++;
        return;
    }
    watch->last = &watch->findings[result->count++];
    *watch->last = *finding;
    watch->last->count = 1;
}

uint64_t dmlk_group_of(const dmlk_shader_watch *watch, dmlk_record record, bool is_shared) {
    uint64_t first = 0, end = watch->groups;
    while (end - first > 1) {
        const uint64_t middle = first + (end - first) / 2;
        if (watch->starts[middle].clock[is_shared] <= dmlk_clock_of(record)) {
            first = middle;
        } else {
            end = middle;
        }
    }
    return first;
}

static dmlk_shader_side side_of(const dmlk_shader_watch *watch, dmlk_record record, bool is_shared) {
    const dmlk_site *site = &watch->sites[dmlk_site_of(record)];
    dmlk_shader_side side = {.thread = dmlk_thread_of(record),
                            .line = site->line,
                            .kind = dmlk_class_of(record),
                            .view = site->view,
                            .bytes = site->bytes};
    memcpy(side.group, watch->starts[dmlk_group_of(watch, record, is_shared)].group, sizeof side.group);
    return side;
}

/* The last access that has changed the byte of the page; 0: none. */
static dmlk_record last_change_at(const dmlk_shader_watch *watch, const dmlk_page *page, uint32_t at) {
    const uint32_t line = at / DMLK_LINE;
    if ((page->in_cells >> line & 1) != 0) {
        return dmlk_last_change(watch, &page->cells[at >> page->shift]);
    }
    const dmlk_record first = page->lines == NULL ? 0 : dmlk_last_change(watch, &page->lines[line]);
    return first == 0 ? 0 : first + at % DMLK_LINE / 4 * DMLK_THREAD_STEP;
}

int dmlk_shader_last_writer(const dmlk_shader_watch *watch, uint64_t address, dmlk_shader_side *writer) {
    const dmlk_page *page = dmlk_page_with(&watch->pages, address);
    const dmlk_record last = page == NULL ? 0 : last_change_at(watch, page, address % DMLK_PAGE);
    if (last == 0) {
        return 0;
    }
    *writer = side_of(watch, last, false);
    return 1;
}

void dmlk_note_race(const dmlk_touch *touch, dmlk_record earlier, bool same_value) {
    const bool is_shared = touch->is_shared;
    dmlk_shader_finding finding = {.offset = touch->offset,
                                  .later = side_of(touch->watch, touch->record, is_shared),
                                  .earlier = side_of(touch->watch, earlier, is_shared)};
    if (is_shared) {
        finding.kind = same_value ? DMLK_FOUND_SHARED_RACE_SAME : DMLK_FOUND_SHARED_RACE;
    } else {
        finding.kind = same_value ? DMLK_FOUND_RACE_SAME : DMLK_FOUND_RACE;
    }
    note(touch->watch, &finding);
}

static dmlk_shader_side side_at(const dmlk_watched_wave *wave, uint32_t thread, uint32_t line) {
    dmlk_shader_side side = {.thread = thread, .line = line};
    memcpy(side.group, wave->group, sizeof side.group);
    return side;
}

/* --- sites --- */

uint32_t dmlk_look_up_site(dmlk_shader_watch *watch, const dmlk_site *site) {
    uint32_t slot = (site->line * 31 + site->kind * 7 + site->view * 131 + site->bytes * 17 + site->phase) % DMLK_SITES;
    for (uint32_t tries = 0; tries < DMLK_SITES; tries++, slot = (slot + 1) % DMLK_SITES) {
        dmlk_site *at = &watch->sites[slot];
        if (slot != 0 && !at->used) {
            *at = *site;
            at->used = true;
        }
        if (slot != 0 && dmlk_is_site(at, site)) {
            return watch->last_site = slot;
        }
    }
    return 0;
}

/* --- groups --- */

static bool has_room(void **array, uint64_t *room, uint64_t count, size_t size) {
    if (count < *room) {
        return true;
    }
    const uint64_t more = *room == 0 ? 64 : 2 * *room;
    void *grown = realloc(*array, more * size);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *room = more;
    return true;
}

static void restart(const dmlk_shader_watch *watch, dmlk_order *order) {
    order->start += 1 + order->most;
    if (order->most > 0) { /* what is left in `released` is before the start */
        memset(order->fences, 0, watch->options.threads * sizeof *order->fences);
    }
    order->most = 0;
    order->safe_passed = 0;
}

/* Reports waves that did not come to the last barrier of their group. */
static void end_group(dmlk_shader_watch *watch) {
    const dmlk_shader_watch_options *options = &watch->options;
    const uint32_t waves = (options->threads + options->lanes - 1) / options->lanes;
    for (uint32_t wave = 0; wave < waves && watch->sync_count > 0 && !watch->diverged; wave++) {
        if (watch->wave_syncs[wave] < watch->sync_count) {
            const dmlk_sync *sync = &watch->syncs[watch->wave_syncs[wave]];
            dmlk_shader_finding finding = {.kind = DMLK_FOUND_WAIT_IN_VAIN,
                                          .later = {.thread = sync->thread, .line = sync->line},
                                          .earlier = {.thread = wave * options->lanes}};
            const uint32_t *group = watch->starts[watch->groups - 1].group;
            memcpy(finding.later.group, group, sizeof finding.later.group);
            memcpy(finding.earlier.group, group, sizeof finding.earlier.group);
            note(watch, &finding);
            break;
        }
    }
    if (watch->sync_count > 0 || watch->diverged) {
        memset(watch->arrived, 0, options->threads * sizeof *watch->arrived);
        memset(watch->wave_syncs, 0, waves * sizeof *watch->wave_syncs);
    }
    watch->sync_count = 0;
    watch->diverged = false;
}

bool dmlk_begin_group(dmlk_shader_watch *watch, const dmlk_watched_wave *wave) {
    if (watch->groups > 0) {
        end_group(watch);
    }
    if (!has_room((void **)&watch->starts, &watch->groups_room, watch->groups, sizeof *watch->starts)) {
        watch->result.unchecked++;
        return false;
    }
    restart(watch, &watch->buffers);
    restart(watch, &watch->shared);
    watch->is_uneven = false;
    dmlk_start *start = &watch->starts[watch->groups++];
    *start = (dmlk_start){.clock = {watch->buffers.start, watch->shared.start}};
    memcpy(start->group, wave->group, sizeof start->group);
    memcpy(watch->group, wave->group, sizeof watch->group);
    watch->shared_known_clock = 0;
    memset(watch->shared_written, 0, (watch->options.shared_bytes + 63) / 64 * sizeof(uint64_t));
    return true;
}

/* --- accesses of buffers --- */

/* The largest cells (at most 4 bytes) that an access consists of. */
static uint32_t shift_of(uint64_t offset, uint64_t bytes) {
    const uint64_t bits = offset | bytes;
    return bits & 1 ? 0 : bits & 2 ? 1 : 2;
}

/* What the accesses of all lanes have in common. */
struct hook {
    dmlk_shader_watch *watch;
    const dmlk_watched_wave *wave;
    uint32_t line, class, bytes;
    bool is_shared;
};

/* An access of one thread: of bytes [offset, offset + bytes) of what begins at `base`. */
struct part {
    uint64_t base, offset;
    const uint8_t *value;
    dmlk_record record;
    uint32_t bytes;
};

/* The touch of a part's cell; its first byte is `done` bytes after the part's. */
static dmlk_touch touch_of(const struct hook *hook, const struct part *part, uint32_t done, uint32_t size,
                           uint8_t *kept) {
    return (dmlk_touch){.watch = hook->watch,
                        .order = hook->is_shared ? &hook->watch->shared : &hook->watch->buffers,
                        .record = part->record,
                        .offset = part->offset + done,
                        .value = part->value == NULL ? NULL : part->value + done,
                        .kept = kept,
                        .size = size,
                        .is_shared = hook->is_shared};
}

/* Compares and keeps an access that is in one page, or in groupshared memory; `first`: its first byte there. */
static void touch_cells(const struct hook *hook, const struct part *part, dmlk_cell *cells, uint8_t *values,
                        uint32_t shift, uint32_t first) {
    dmlk_shader_watch *watch = hook->watch;
    const uint64_t start = hook->is_shared
                               ? dmlk_safe_clock(watch, &watch->shared, dmlk_thread_of(part->record))
                               : watch->buffers.start;
    const uint32_t size = 1u << shift;
    if (hook->is_shared) {
        dmlk_note_shared(watch, first, part->bytes, dmlk_clock_of(part->record));
    }
    for (uint32_t done = 0; done < part->bytes; done += size) {
        dmlk_cell *cell = &cells[(first + done) >> shift];
        if (!dmlk_meet_quickly(cell, part->record, start, hook->is_shared)) {
            const dmlk_touch touch = touch_of(hook, part, done, size, values == NULL ? NULL : values + first + done);
            dmlk_meet(&touch, cell);
        }
    }
    if (part->value != NULL && values != NULL) {
        memcpy(values + first, part->value, part->bytes);
    }
}

/* An access inside of a page. */
static void touch_page(const struct hook *hook, const struct part *part, bool is_read_only) {
    dmlk_shader_watch *watch = hook->watch;
    const uint64_t address = part->base + part->offset;
    const uint32_t first = address % DMLK_PAGE;
    dmlk_page *page = dmlk_page_at(watch, address);
    if (page == NULL) {
        watch->result.unchecked++;
        return;
    }
    dmlk_mark(page, first, part->bytes, hook->class);
    if (is_read_only) {
        return;
    }
    const uint32_t shift = shift_of(address, part->bytes);
    const bool is_ready = dmlk_is_prepared(page, shift, part->value != NULL) ||
                          dmlk_prepare_page(watch, page, shift, part->value != NULL);
    dmlk_cell *cells = is_ready ? dmlk_cells_with(watch, page, first, part->bytes) : NULL;
    if (cells == NULL) {
        watch->result.unchecked++;
        return;
    }
    touch_cells(hook, part, cells, page->values, page->shift, first);
}

/* An access inside of a view; in most cases in one page. */
static void touch_view(const struct hook *hook, struct part part, bool is_read_only) {
    uint64_t left = part.bytes;
    while (left > 0) {
        const uint64_t room = DMLK_PAGE - (part.base + part.offset) % DMLK_PAGE;
        part.bytes = (uint32_t)(left < room ? left : room);
        touch_page(hook, &part, is_read_only);
        part.offset += part.bytes;
        part.value = part.value == NULL ? NULL : part.value + part.bytes;
        left -= part.bytes;
    }
}

static void note_outside(const struct hook *hook, uint32_t kind, uint32_t view, uint32_t lane, uint64_t offset) {
    dmlk_shader_finding finding = {.kind = kind,
                                  .offset = offset,
                                  .later = side_at(hook->wave, hook->wave->first + lane, hook->line)};
    finding.later.kind = hook->class;
    finding.later.view = view;
    finding.later.bytes = hook->bytes;
    note(hook->watch, &finding);
}

/* The part of an access that is inside, in whole components of 4 bytes; 0: nothing. */
static uint32_t inside(uint64_t size, uint64_t offset, uint32_t bytes) {
    if (offset >= size) {
        return 0;
    }
    const uint64_t room = size - offset;
    return room >= bytes ? bytes : (uint32_t)(room / 4 * 4);
}

static void access_lane(const struct hook *hook, const dmlk_shader_view *view, uint32_t site, uint32_t lane,
                        uint64_t offset, const uint8_t *value) {
    const uint32_t bytes = inside(view->bytes, offset, hook->bytes);
    if (bytes < hook->bytes) {
        const bool is_root = (view->flags & DMLK_SHADER_ROOT) != 0;
        note_outside(hook, is_root ? DMLK_FOUND_ROOT_OUTSIDE : DMLK_FOUND_OUTSIDE, view->id, lane, offset + bytes);
    }
    const uint32_t thread = hook->wave->first + lane;
    const dmlk_order *order = &hook->watch->buffers;
    const struct part part = {.base = (uint64_t)(uintptr_t)view->base,
                              .offset = offset,
                              .value = value,
                              .record = dmlk_record_of(order->start + order->fences[thread], thread, site, hook->class),
                              .bytes = bytes};
    if (hook->class == DMLK_SHADER_ATOMIC && bytes > 0) {
        dmlk_note_atomic(hook->watch, part.base + offset, thread);
    }
    touch_view(hook, part, (view->flags & DMLK_SHADER_READ_ONLY) != 0 && hook->class == DMLK_SHADER_READ);
}

static uint32_t next_lane(uint64_t *mask) {
    const uint32_t lane = (uint32_t)__builtin_ctzll(*mask);
    *mask &= *mask - 1;
    return lane;
}

static void access_view(const struct hook *hook, const dmlk_shader_view *view, uint32_t lane, uint64_t offset,
                        const uint8_t *values) {
    if (view->base == NULL || hook->wave->first + lane >= hook->watch->options.threads) {
        return;
    }
    const dmlk_site site = {
        .line = hook->line,
        .kind = hook->class,
        .view = view->id,
        .bytes = hook->bytes,
        .phase = hook->class == DMLK_SHADER_ATOMIC ? ((uintptr_t)view->base + offset) % 8 : 0,
        .known = values != NULL};
    access_lane(hook, view, dmlk_find_site(hook->watch, &site), lane, offset,
                values == NULL ? NULL : values + (uint64_t)lane * hook->bytes);
}

/* How many lanes from `lane` on access the same view, each `step` bytes behind the one before. */
static uint32_t count_alike(const dmlk_shader_view *const *views, const uint64_t *offsets, uint32_t step,
                            uint64_t mask, uint32_t lane) {
    uint32_t end = lane + 1;
    while (end < 64 && (mask >> end & 1) != 0 && views[end] == views[lane] && offsets[end] == offsets[end - 1] + step) {
        end++;
    }
    return end - lane;
}

/* Accesses of as many lanes to `count` words, one after the other.  False: it is not as simple as that, and nothing was
 * done. */
static bool access_words(const struct hook *hook, const dmlk_shader_view *view, uint32_t lane, uint64_t offset,
                         uint32_t count, const uint8_t *values) {
    dmlk_shader_watch *watch = hook->watch;
    const uint64_t address = (uint64_t)(uintptr_t)view->base + offset, bytes = 4 * (uint64_t)count;
    const uint32_t first = address % DMLK_PAGE;
    const bool is_read_only = (view->flags & DMLK_SHADER_READ_ONLY) != 0 && hook->class == DMLK_SHADER_READ;
    if (view->base == NULL || address % 4 != 0 || bytes > view->bytes || offset > view->bytes - bytes ||
        first + bytes > DMLK_PAGE || hook->wave->first + lane + count > watch->options.threads) {
        return false;
    }
    dmlk_page *page = dmlk_page_at(watch, address);
    if (page == NULL || (!is_read_only && (page->shift != 2 || !dmlk_is_prepared(page, 2, values != NULL)))) {
        return false;
    }
    dmlk_cell *cells = is_read_only ? NULL : dmlk_cells_with(watch, page, first, (uint32_t)bytes);
    if (!is_read_only && cells == NULL) {
        return false;
    }
    dmlk_mark(page, first, (uint32_t)bytes, hook->class);
    if (is_read_only) {
        return true;
    }
    const dmlk_site site = {
        .line = hook->line, .kind = hook->class, .view = view->id, .bytes = 4, .known = values != NULL};
    const dmlk_order *order = &watch->buffers;
    struct part part = {.base = (uint64_t)(uintptr_t)view->base, .bytes = 4};
    const uint32_t number = dmlk_find_site(watch, &site);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t thread = hook->wave->first + lane + i;
        part.record = dmlk_record_of(order->start + order->fences[thread], thread, number, hook->class);
        part.offset = offset + 4 * i;
        part.value = values == NULL ? NULL : values + 4 * ((uint64_t)lane + i);
        touch_cells(hook, &part, cells, page->values, 2, first + 4 * i);
    }
    return true;
}

static void access_views(const struct hook *hook, const dmlk_shader_view *const *views, const uint64_t *offsets,
                         const uint8_t *values, uint64_t mask) {
    const bool are_words = hook->bytes == 4 && hook->class != DMLK_SHADER_ATOMIC;
    while (mask != 0) {
        const uint32_t lane = (uint32_t)__builtin_ctzll(mask);
        const dmlk_shader_view *view = views[lane];
        uint32_t done = 1;
        if (are_words && view != NULL) {
            const uint32_t row = count_alike(views, offsets, 4, mask, lane);
            if (access_words(hook, view, lane, offsets[lane], row, values)) {
                done = row;
                view = NULL;
                if (row == 1 && (views[lane]->flags & DMLK_SHADER_READ_ONLY) != 0 && hook->class == DMLK_SHADER_READ) {
                    done = count_alike(views, offsets, 0, mask, lane); /* only the footprint counts */
                }
            }
        }
        if (view != NULL) {
            access_view(hook, view, lane, offsets[lane], values);
        }
        mask &= ~(dmlk_ones(done) << lane);
    }
}

/* The counter of a structured buffer: 4 bytes that are not in the view. */
static void access_counters(struct hook *hook, const dmlk_shader_view *const *views, uint64_t mask) {
    hook->class = DMLK_SHADER_ATOMIC;
    hook->bytes = 4;
    while (mask != 0) {
        const uint32_t lane = next_lane(&mask);
        if (views[lane] != NULL) {
            const dmlk_shader_view counter = {.base = views[lane]->counter, .bytes = 4, .id = views[lane]->id};
            access_view(hook, &counter, lane, 0, NULL);
        }
    }
}

void dmlk_shader_accessed(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t kind,
                          const dmlk_shader_view *const *views, const uint64_t *offsets, uint32_t bytes,
                          uint64_t mask) {
    struct hook hook = {.watch = call->watch, .wave = wave, .line = line, .class = kind, .bytes = bytes};
    if (!dmlk_enter(call->watch, wave)) {
        return;
    }
    if (kind == DMLK_SHADER_COUNTER) {
        access_counters(&hook, views, mask);
    } else {
        access_views(&hook, views, offsets, NULL, mask);
    }
}

void dmlk_shader_accessed_typed(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t kind,
                                const dmlk_shader_view *const *views, const uint32_t *indices, uint64_t mask) {
    struct hook hook = {.watch = call->watch, .wave = wave, .line = line, .class = kind};
    if (!dmlk_enter(call->watch, wave)) {
        return;
    }
    while (mask != 0) {
        const uint32_t lane = next_lane(&mask);
        if (views[lane] != NULL) {
            hook.bytes = views[lane]->stride;
            access_view(&hook, views[lane], lane, (uint64_t)indices[lane] * hook.bytes, NULL);
        }
    }
}

void dmlk_shader_stored(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line,
                        const dmlk_shader_view *const *views, const uint64_t *offsets, const uint8_t *values,
                        uint32_t bytes, uint64_t mask) {
    struct hook hook = {.watch = call->watch, .wave = wave, .line = line, .class = DMLK_SHADER_WRITE, .bytes = bytes};
    if (dmlk_enter(call->watch, wave)) {
        access_views(&hook, views, offsets, values, mask);
    }
}

/* --- groupshared memory --- */

static bool split_shared(dmlk_shader_watch *watch, uint32_t shift) {
    const uint64_t bytes = watch->options.shared_bytes;
    const uint32_t by = watch->shared_shift - shift;
    dmlk_cell *cells = calloc((bytes >> shift) + 4, sizeof *cells);
    bool is_split = cells != NULL;
    for (uint64_t i = 0; is_split && i < (bytes + 3) / 4 * 4 >> watch->shared_shift; i++) {
        is_split = dmlk_split_cell(watch, &watch->shared_cells[i], &cells[i << by], by);
    }
    if (!is_split) {
        free(cells);
        return false;
    }
    free(watch->shared_cells);
    watch->shared_cells = cells;
    watch->shared_shift = shift;
    return true;
}

/* Whether all of the bytes are written; marks them if `written`. */
static bool look_at_shared(dmlk_shader_watch *watch, uint64_t offset, uint32_t bytes, bool written) {
    bool all = true;
    for (uint64_t i = offset; i < offset + bytes;) {
        const uint64_t shift = i % 64, now = offset + bytes - i < 64 - shift ? offset + bytes - i : 64 - shift;
        const uint64_t bits = dmlk_ones(now) << shift;
        all = all && (watch->shared_written[i / 64] & bits) == bits;
        watch->shared_written[i / 64] |= written ? bits : 0;
        i += now;
    }
    return all;
}

/* Whether the access is inside and can be compared. */
static bool begin_shared(const struct hook *hook, uint32_t lane, uint64_t offset) {
    dmlk_shader_watch *watch = hook->watch;
    if (offset > watch->options.shared_bytes || hook->bytes > watch->options.shared_bytes - offset) {
        note_outside(hook, DMLK_FOUND_SHARED_OUTSIDE, 0, lane, offset);
        return false;
    }
    const bool is_written = look_at_shared(watch, offset, hook->bytes, hook->class != DMLK_SHADER_READ);
    if (hook->class != DMLK_SHADER_WRITE && !is_written) {
        note_outside(hook, DMLK_FOUND_SHARED_UNWRITTEN, 0, lane, offset);
    }
    const uint32_t shift = shift_of(offset, hook->bytes);
    if (shift < watch->shared_shift && !split_shared(watch, shift)) {
        watch->result.unchecked++;
        return false;
    }
    return true;
}

/* Whether two threads have read the word already, with the same clock: one more reader changes nothing. */
static inline bool is_read_by_two(const dmlk_cell *cell, uint64_t clock) {
    return dmlk_class_of(cell->a) == DMLK_SHADER_READ && dmlk_class_of(cell->b) == DMLK_SHADER_READ &&
           dmlk_clock_of(cell->a) == clock && dmlk_clock_of(cell->b) == clock;
}

/* The lanes whose reads of words need more than a look at their cells.  Of lanes that read one word, two are enough. */
static uint64_t look_at_reads(const struct hook *hook, const uint64_t *offsets, uint64_t mask) {
    const dmlk_shader_watch *watch = hook->watch;
    const dmlk_order *order = &watch->shared;
    const uint64_t end = watch->options.shared_bytes;
    uint64_t others = 0, known = UINT64_MAX, known_clock = 0, last = UINT64_MAX, last_clock = 0;
    while (mask != 0) {
        const uint32_t lane = next_lane(&mask), thread = hook->wave->first + lane;
        const uint64_t offset = offsets[lane];
        if (thread >= watch->options.threads || offset % 4 != 0 || offset >= end) {
            others |= UINT64_C(1) << lane;
            continue;
        }
        const uint64_t clock = order->start + order->fences[thread];
        if (offset == known && clock == known_clock) {
            continue;
        }
        const bool is_written = (watch->shared_written[offset / 64] >> offset % 64 & 15) == 15;
        if (is_written && is_read_by_two(&watch->shared_cells[offset / 4], clock)) {
            known = offset;
            known_clock = clock;
            continue;
        }
        others |= UINT64_C(1) << lane;
        if (offset == last && clock == last_clock) { /* the second one */
            known = offset;
            known_clock = clock;
        }
        last = offset;
        last_clock = clock;
    }
    return others;
}

static void access_shared(struct hook *hook, const uint64_t *offsets, const uint8_t *values, uint64_t mask) {
    dmlk_shader_watch *watch = hook->watch;
    const dmlk_order *order = &watch->shared;
    dmlk_site site = {.line = hook->line, .kind = hook->class, .bytes = hook->bytes, .known = values != NULL};
    if (mask == 0 || hook->wave->first >= watch->options.threads) {
        return;
    }
    dmlk_forget_known(watch, hook->wave, hook->class);
    if (hook->class == DMLK_SHADER_READ && hook->bytes == 4 && watch->shared_shift == 2) {
        mask = look_at_reads(hook, offsets, mask);
    }
    uint32_t number = mask != 0 ? dmlk_find_site(watch, &site) : 0;
    while (mask != 0) {
        const uint32_t lane = next_lane(&mask), thread = hook->wave->first + lane;
        if (thread >= watch->options.threads || !begin_shared(hook, lane, offsets[lane])) {
            continue;
        }
        if (hook->class == DMLK_SHADER_ATOMIC && site.phase != offsets[lane] % 8) {
            site.phase = offsets[lane] % 8;
            number = dmlk_find_site(watch, &site);
        }
        const uint64_t clock = order->start + order->fences[thread];
        const struct part part = {.offset = offsets[lane],
                                  .value = values == NULL ? NULL : values + (uint64_t)lane * hook->bytes,
                                  .record = dmlk_record_of(clock, thread, number, hook->class),
                                  .bytes = hook->bytes};
        touch_cells(hook, &part, watch->shared_cells, watch->shared_values, watch->shared_shift,
                    (uint32_t)offsets[lane]);
    }
}

void dmlk_shader_shared(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t kind,
                        const uint64_t *offsets, uint32_t bytes, uint64_t mask) {
    struct hook hook = {
        .watch = call->watch, .wave = wave, .line = line, .class = kind, .bytes = bytes, .is_shared = true};
    if (dmlk_enter(call->watch, wave)) {
        access_shared(&hook, offsets, NULL, mask);
        dmlk_tell_known(call->watch, wave, false);
    }
}

void dmlk_shader_shared_stored(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line,
                               const uint64_t *offsets, const uint8_t *values, uint32_t bytes, uint64_t mask) {
    struct hook hook = {.watch = call->watch,
                        .wave = wave,
                        .line = line,
                        .class = DMLK_SHADER_WRITE,
                        .bytes = bytes,
                        .is_shared = true};
    if (dmlk_enter(call->watch, wave)) {
        access_shared(&hook, offsets, values, mask);
        dmlk_tell_known(call->watch, wave, false);
    }
}

/* --- barriers --- */

static void note_barrier(dmlk_shader_watch *watch, const dmlk_watched_wave *wave, uint32_t kind, uint32_t line,
                         uint64_t mask, uint32_t other_line, uint32_t other) {
    const dmlk_shader_finding finding = {.kind = kind,
                                        .offset = mask,
                                        .later = side_at(wave, wave->first + (uint32_t)__builtin_ctzll(mask), line),
                                        .earlier = side_at(wave, other, other_line)};
    note(watch, &finding);
}

/* Counts the fence for each thread, and notes when it came to the barrier. */
static void fence(dmlk_order *order, uint32_t thread, bool fences, bool waits, uint32_t barrier) {
    order->fences[thread] += fences;
    order->most = order->fences[thread] > order->most ? order->fences[thread] : order->most;
    if (waits) {
        order->released[barrier % 2][thread] = order->start + order->fences[thread];
    }
}

/* The same for the threads of a wave that have the same clock. */
static void fence_wave(dmlk_order *order, uint32_t first, uint32_t count, bool fences, bool waits, uint32_t barrier) {
    const uint32_t now = order->fences[first] + fences;
    for (uint32_t i = first; i < first + count; i++) {
        order->fences[i] = now;
    }
    order->most = now > order->most ? now : order->most;
    for (uint32_t i = first; waits && i < first + count; i++) {
        order->released[barrier % 2][i] = order->start + now;
    }
}

static void fence_lanes(dmlk_shader_watch *watch, const dmlk_watched_wave *wave, uint32_t flags, uint64_t mask) {
    const bool waits = (flags & DMLK_SHADER_SYNC) != 0, shared = (flags & DMLK_SHADER_FENCE_SHARED) != 0;
    const bool buffers = (flags & (DMLK_SHADER_FENCE_UAV | DMLK_SHADER_FENCE_GROUP)) != 0;
    watch->is_uneven = watch->is_uneven || mask != dmlk_lanes_of(watch, wave);
    if (!watch->is_uneven && mask != 0) {
        const uint32_t first = wave->first, count = dmlk_lane_count(watch, wave);
        const uint32_t arrived = watch->arrived[first] + waits;
        for (uint32_t i = first; i < first + count; i++) {
            watch->arrived[i] = arrived;
        }
        fence_wave(&watch->buffers, first, count, buffers, waits, arrived);
        fence_wave(&watch->shared, first, count, shared, waits, arrived);
        return;
    }
    while (mask != 0) {
        const uint32_t thread = wave->first + next_lane(&mask);
        watch->arrived[thread] += waits;
        fence(&watch->buffers, thread, buffers, waits, watch->arrived[thread]);
        fence(&watch->shared, thread, shared, waits, watch->arrived[thread]);
    }
}

/* Compares the wave's barriers with those of the other waves of its group. */
static void come_to_barrier(dmlk_shader_watch *watch, const dmlk_watched_wave *wave, uint32_t line, uint64_t mask) {
    const uint32_t thread = wave->first + (uint32_t)__builtin_ctzll(mask);
    const uint64_t missing = dmlk_lanes_of(watch, wave) & ~mask;
    if (missing != 0) {
        note_barrier(watch, wave, DMLK_FOUND_WAIT_OF_SOME_LANES, line, mask, 0,
                     wave->first + (uint32_t)__builtin_ctzll(missing));
        watch->diverged = true;
    }
    const uint64_t number = watch->wave_syncs[wave->first / watch->options.lanes]++;
    if (number < watch->sync_count) {
        const dmlk_sync *sync = &watch->syncs[number];
        if (sync->line != line && !watch->diverged) {
            note_barrier(watch, wave, DMLK_FOUND_WAIT_ELSEWHERE, line, mask, sync->line, sync->thread);
        }
    } else if (has_room((void **)&watch->syncs, &watch->syncs_room, watch->sync_count, sizeof *watch->syncs)) {
        watch->syncs[watch->sync_count++] = (dmlk_sync){line, thread};
    }
}

void dmlk_shader_barrier(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t flags,
                         uint64_t mask) {
    dmlk_shader_watch *watch = call->watch;
    if (!dmlk_enter(watch, wave)) {
        return;
    }
    mask &= dmlk_lanes_of(watch, wave);
    fence_lanes(watch, wave, flags, mask);
    dmlk_tell_known(watch, wave, true);
    if ((flags & DMLK_SHADER_SYNC) != 0 && mask != 0) {
        come_to_barrier(watch, wave, line, mask);
    }
}

/* --- wave operations --- */

void dmlk_shader_lanes(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t opcode,
                       const uint32_t *read_lanes, uint64_t mask) {
    dmlk_shader_watch *watch = call->watch;
    if (read_lanes == NULL || !dmlk_enter(watch, wave)) {
        return;
    }
    for (uint64_t left = mask; left != 0;) {
        const uint32_t lane = next_lane(&left), read = read_lanes[lane];
        const bool is_outside = read >= watch->options.lanes;
        if (is_outside || (mask >> read & 1) == 0) {
            const dmlk_shader_finding finding = {
                .kind = is_outside ? DMLK_FOUND_LANE_OUTSIDE : DMLK_FOUND_LANE_INACTIVE,
                .opcode = opcode,
                .offset = read,
                .later = side_at(wave, wave->first + lane, line)};
            note(watch, &finding);
        }
    }
}

/* --- the watch --- */

dmlk_shader_watch *dmlk_shader_watch_new(const dmlk_shader_watch_options *options) {
    if (options->threads == 0 || options->threads > DMLK_MOST_THREADS || options->lanes == 0 || options->lanes > 64 ||
        options->shared_bytes > UINT32_MAX || options->most_findings > SIZE_MAX / sizeof(dmlk_shader_finding)) {
        return NULL;
    }
    dmlk_shader_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL) {
        return NULL;
    }
    const uint64_t shared = options->shared_bytes;
    watch->options = *options;
    watch->sites = calloc(DMLK_SITES, sizeof *watch->sites);
    watch->findings = calloc(options->most_findings + 1, sizeof *watch->findings);
    watch->shared_cells = calloc(shared / 4 + 1, sizeof *watch->shared_cells);
    watch->shared_last = calloc(shared / DMLK_LINE + 1, sizeof *watch->shared_last);
    watch->shared_written = calloc(shared / 64 + 1, sizeof *watch->shared_written);
    watch->shared_values = calloc(shared + 1, 1);
    watch->shared_known = calloc(shared / 256 + 2, sizeof *watch->shared_known);
    watch->shared_shift = 2;
    watch->result.findings = watch->findings;
    if (watch->sites == NULL || watch->findings == NULL || watch->shared_cells == NULL ||
        watch->shared_last == NULL || watch->shared_written == NULL || watch->shared_values == NULL ||
        watch->shared_known == NULL) {
        dmlk_shader_watch_free(watch);
        return NULL;
    }
    return watch;
}

void dmlk_shader_watch_free(dmlk_shader_watch *watch) {
    if (watch != NULL) {
        dmlk_free_pages(&watch->pages);
        dmlk_free_wide_cells(&watch->wide);
        dmlk_free_atomics(&watch->atomics);
        dmlk_free_parts(watch);
        free(watch->sites);
        free(watch->starts);
        free(watch->syncs);
        free(watch->findings);
        free(watch->shared_cells);
        free(watch->shared_last);
        free(watch->shared_written);
        free(watch->shared_values);
        free(watch->shared_known);
        free(watch);
    }
}

void dmlk_shader_watch_finish(dmlk_shader_watch *watch, dmlk_shader_watch_result *result) {
    if (watch->groups > 0) {
        end_group(watch);
    }
    watch->result.bytes = watch->bytes;
    watch->result.has_atomics = watch->has_atomics;
    *result = watch->result;
}
