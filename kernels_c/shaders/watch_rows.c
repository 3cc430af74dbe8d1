/* watch_rows.c - accesses of a wave whose lanes are a step apart in one view, or in groupshared memory.
 *
 * Whole rows of words, and words that all lanes read, are compared at once where that is easy.  Everything else is told
 * lane by lane, to the hooks of watch.c: these say what is found. */
#include "watch_state.h"

/* What a hook is told. */
struct row {
    dmlk_shader_watch *watch;
    const dmlk_shader_call *call;
    dmlk_watched_wave *wave;
    uint32_t line, class, bytes, step;
    const uint8_t *values; /* NULL: not known */
    uint64_t mask;         /* of lanes that the wave has */
    uint32_t count;        /* of lanes that the wave has */
};

static bool has_all_lanes(const struct row *row) { return row->count > 0 && row->mask == dmlk_ones(row->count); }

static uint64_t record_of(const struct row *row, const dmlk_order *order, uint32_t lane, uint32_t site) {
    const uint32_t thread = row->wave->first + lane;
    return dmlk_record_of(order->start + order->fences[thread], thread, site, row->class);
}

static uint32_t site_of(const struct row *row, uint32_t view) {
    const dmlk_site site = {
        .line = row->line, .kind = row->class, .view = view, .bytes = row->bytes, .known = row->values != NULL};
    return dmlk_find_site(row->watch, &site);
}

/* --- cells of a row; the threads of a wave have the same clock, so that their records are a step apart, too --- */

#define SITE_BITS ((uint64_t)(DMLK_SITES - 1) << 2)
#define CLOCK_AND_CLASS (UINT64_MAX << 24 | 3)

static bool are_empty(const dmlk_cell *cells, uint32_t count) {
    uint64_t any = 0;
    for (uint32_t i = 0; i < count; i++) {
        any |= cells[i].a;
    }
    return any == 0;
}

/* Whether each cell has one access, like `record` and those of the next threads but for their sites. */
static bool have_only(const dmlk_cell *cells, uint32_t count, dmlk_record record) {
    uint64_t other = 0;
    for (uint32_t i = 0; i < count; i++) {
        other |= ((cells[i].a ^ (record + i * DMLK_THREAD_STEP)) & ~SITE_BITS) | cells[i].b;
    }
    return other == 0;
}

/* Whether each cell has two reads with the clock of `read`: one more reader changes nothing. */
static bool are_read_by_two(const dmlk_cell *cells, uint32_t count, dmlk_record read) {
    uint64_t other = 0;
    for (uint32_t i = 0; i < count; i++) {
        other |= (cells[i].a ^ read) | (cells[i].b ^ read);
    }
    return (other & CLOCK_AND_CLASS) == 0;
}

/* Whether each cell has one read with the clock of `read`, by another thread than the lane's: threads of a wave differ
 * from those of another in their first one. */
static bool are_read_by_another(const dmlk_cell *cells, uint32_t count, dmlk_record read) {
    const uint32_t thread = dmlk_thread_of(read), first = dmlk_thread_of(cells[0].a);
    uint64_t other = 0;
    for (uint32_t i = 0; i < count; i++) {
        const dmlk_record expected = ((read & CLOCK_AND_CLASS) | (uint64_t)first << 14) + i * DMLK_THREAD_STEP;
        other |= ((cells[i].a ^ expected) & ~SITE_BITS) | cells[i].b;
    }
    return first != thread && first + count <= DMLK_MOST_THREADS && other == 0;
}

static void set_first(dmlk_cell *cells, uint32_t count, dmlk_record record) {
    for (uint32_t i = 0; i < count; i++) {
        cells[i].a = record + i * DMLK_THREAD_STEP;
    }
}

static void set_only(dmlk_cell *cells, uint32_t count, dmlk_record record) {
    for (uint32_t i = 0; i < count; i++) {
        cells[i] = (dmlk_cell){record + i * DMLK_THREAD_STEP, 0};
    }
}

static void set_second(dmlk_cell *cells, uint32_t count, dmlk_record record) {
    for (uint32_t i = 0; i < count; i++) {
        cells[i].b = record + i * DMLK_THREAD_STEP;
    }
}

/* Compares and keeps accesses of words by lanes `lane` to `end` - 1.  Lane 0 has the first cell, `kept` value, `record`
 * and `offset`; `start`: see dmlk_meet_quickly. */
static void meet_each(const struct row *row, uint32_t lane, uint32_t end, dmlk_cell *cells, uint8_t *kept,
                      dmlk_record record, uint64_t start, uint64_t offset, bool is_shared) {
    for (uint32_t i = lane; i < end; i++) {
        if (!dmlk_meet_quickly(&cells[i], record + i * DMLK_THREAD_STEP, start, is_shared)) {
            const dmlk_touch touch = {.watch = row->watch,
                                      .order = is_shared ? &row->watch->shared : &row->watch->buffers,
                                      .record = record + i * DMLK_THREAD_STEP,
                                      .offset = offset + 4 * (uint64_t)i,
                                      .value = row->values == NULL ? NULL : row->values + 4 * i,
                                      .kept = kept == NULL ? NULL : kept + 4 * i,
                                      .size = 4,
                                      .is_shared = is_shared};
            dmlk_meet(&touch, &cells[i]);
        }
    }
}

/* --- buffers --- */

/* The cells begin with that of lane 0. */
static void meet_cells(const struct row *row, dmlk_cell *cells, uint8_t *kept, dmlk_record record, uint64_t offset) {
    const uint32_t class = dmlk_class_of(cells[0].a), count = row->count;
    if (are_empty(cells, count)) {
        set_first(cells, count, record);
    } else if ((class == DMLK_SHADER_READ || class == DMLK_SHADER_WRITE) &&
               have_only(cells, count, (record & ~UINT64_C(3)) | class)) {
        (class == row->class ? set_first : set_second)(cells, count, record);
    } else {
        meet_each(row, 0, count, cells, kept, record, row->watch->buffers.start, offset, false);
    }
}

/* Whole lines, from `first` of the page on.  What one cell of a line would become, all do: their records differ from
 * `record` and those of the next threads alike. */
static void meet_lines(const struct row *row, dmlk_page *page, uint32_t first, uint8_t *kept, dmlk_record record,
                       uint64_t offset) {
    dmlk_shader_watch *watch = row->watch;
    const uint64_t start = watch->buffers.start;
    for (uint32_t lane = 0; lane < row->count; lane += DMLK_LINE_CELLS) {
        const uint32_t at = first + 4 * lane, line = at / DMLK_LINE;
        if ((page->in_cells >> line & 1) == 0 &&
            dmlk_meet_quickly(&page->lines[line], record + lane * DMLK_THREAD_STEP, start, false)) {
            continue;
        }
        dmlk_cell *cells = dmlk_cells_with(watch, page, at, DMLK_LINE);
        if (cells == NULL) {
            watch->result.unchecked += DMLK_LINE_CELLS;
            continue;
        }
        meet_each(row, lane, lane + DMLK_LINE_CELLS, &cells[first / 4], kept, record, start, offset, false);
    }
}

/* False: no memory, and nothing was done. */
static bool meet_buffer(const struct row *row, const dmlk_shader_view *view, dmlk_page *page, uint64_t offset) {
    dmlk_shader_watch *watch = row->watch;
    const uint32_t first = ((uintptr_t)view->base + offset) % DMLK_PAGE, count = row->count;
    const bool are_lines = first % DMLK_LINE == 0 && count % DMLK_LINE_CELLS == 0;
    dmlk_cell *cells = are_lines ? NULL : dmlk_cells_with(watch, page, first, 4 * count);
    if (!are_lines && cells == NULL) {
        return false;
    }
    dmlk_mark(page, first, 4 * count, row->class);
    const dmlk_record record = record_of(row, &watch->buffers, 0, site_of(row, view->id));
    uint8_t *kept = page->values == NULL ? NULL : page->values + first;
    if (are_lines) {
        meet_lines(row, page, first, kept, record, offset);
    } else {
        meet_cells(row, &cells[first / 4], kept, record, offset);
    }
    if (row->values != NULL) {
        memcpy(kept, row->values, 4 * (size_t)count);
    }
    return true;
}

/* False: it is not as simple as that, and nothing was done. */
static bool access_buffer(const struct row *row, const dmlk_shader_view *view, uint64_t offset) {
    dmlk_shader_watch *watch = row->watch;
    const bool is_read_only = (view->flags & DMLK_SHADER_READ_ONLY) != 0 && row->class == DMLK_SHADER_READ;
    const bool is_row = row->step == row->bytes && has_all_lanes(row);
    const bool is_word = row->step == 0 && is_read_only && row->mask != 0;
    const uint64_t bytes = is_row ? (uint64_t)row->bytes * row->count : row->bytes;
    const uint64_t address = (uint64_t)(uintptr_t)view->base + offset;
    const uint32_t first = address % DMLK_PAGE;
    if (view->base == NULL || !(is_row || is_word) || bytes > view->bytes || offset > view->bytes - bytes ||
        first + bytes > DMLK_PAGE) {
        return false;
    }
    if (!is_read_only &&
        (row->bytes != 4 || address % 4 != 0 || row->class == DMLK_SHADER_ATOMIC || watch->is_uneven)) {
        return false;
    }
    dmlk_page *page = dmlk_page_at(watch, address);
    if (page == NULL || (!is_read_only && page->shift != 2)) {
        return false;
    }
    if (is_read_only) {
        dmlk_mark(page, first, (uint32_t)bytes, row->class);
        return true;
    }
    const bool values = row->values != NULL;
    return (dmlk_is_prepared(page, 2, values) || dmlk_prepare_page(watch, page, 2, values)) &&
           meet_buffer(row, view, page, offset);
}

static struct row row_of(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint64_t mask) {
    const uint32_t count = dmlk_lane_count(call->watch, wave);
    return (struct row){
        .watch = call->watch, .call = call, .wave = wave, .mask = mask & dmlk_ones(count), .count = count};
}

static __attribute__((noinline)) void access_each(const struct row *row, const dmlk_shader_view *view, uint64_t offset,
                                                  uint64_t mask) {
    const dmlk_shader_view *views[DMLK_MOST_LANES];
    uint64_t offsets[DMLK_MOST_LANES];
    for (uint32_t i = 0; i < DMLK_MOST_LANES; i++) {
        views[i] = view;
        offsets[i] = offset + (uint64_t)i * row->step;
    }
    if (row->values != NULL) {
        dmlk_shader_stored(row->call, row->wave, row->line, views, offsets, row->values, row->bytes, mask);
    } else {
        dmlk_shader_accessed(row->call, row->wave, row->line, row->class, views, offsets, row->bytes, mask);
    }
}

void dmlk_shader_accessed_row(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t kind,
                              const dmlk_shader_view *view, uint64_t offset, uint32_t step, uint32_t bytes,
                              const uint8_t *values, uint64_t mask) {
    if (!dmlk_enter(call->watch, wave)) {
        return;
    }
    struct row row = row_of(call, wave, mask);
    row.line = line, row.class = kind, row.bytes = bytes, row.step = step, row.values = values;
    if (access_buffer(&row, view, offset)) {
        return;
    }
    access_each(&row, view, offset, mask);
}

/* --- groupshared memory --- */

/* Whether all words of the row were written by the group; marks them if `written`. */
static bool look_at_words(dmlk_shader_watch *watch, uint32_t offset, uint32_t bytes, bool written) {
    uint64_t missing = 0;
    for (uint32_t at = offset; at < offset + bytes;) {
        const uint32_t shift = at % 64, left = offset + bytes - at, now = left < 64 - shift ? left : 64 - shift;
        const uint64_t bits = dmlk_ones(now) << shift;
        uint64_t *word = &watch->shared_written[at / 64];
        missing |= bits & ~*word;
        *word |= written ? bits : 0;
        at += now;
    }
    return missing == 0;
}

/* Whether the words of a row are known to have two reads with the clock of the wave, and nothing else. */
static bool is_known(const dmlk_shader_watch *watch, const dmlk_watched_wave *wave, uint32_t offset, uint32_t count) {
    const uint64_t word = offset / 4, shift = word % 64;
    if (offset % 4 != 0 || 4 * (word + count) > watch->options.shared_bytes || shift + count > 64 || watch->is_uneven ||
        watch->shared.start + watch->shared.fences[wave->first] != watch->shared_known_clock) {
        return false;
    }
    return (~watch->shared_known[word / 64] >> shift & dmlk_ones(count)) == 0;
}

/* Remembers that. */
static inline void know(dmlk_shader_watch *watch, const dmlk_watched_wave *wave, uint32_t offset, uint32_t count) {
    const uint64_t clock = watch->shared.start + watch->shared.fences[wave->first], word = offset / 4;
    if (clock != watch->shared_known_clock) {
        memset(watch->shared_known, 0, (watch->options.shared_bytes / 256 + 1) * sizeof *watch->shared_known);
        watch->shared_known_clock = clock;
    }
    if (word % 64 + count <= 64) {
        watch->shared_known[word / 64] |= dmlk_ones(count) << word % 64;
    }
}

/* Tells the wave, all of whose lanes have read a word at that line, of the other words that are simple with it. */
static void tell_simple(dmlk_watched_wave *wave, uint32_t line, uint32_t word, dmlk_cell *cells) {
    wave->simple = dmlk_ones(DMLK_LINE_CELLS);
    wave->simple_line = line;
    wave->simple_first = word / DMLK_LINE_CELLS * DMLK_LINE_CELLS;
    wave->pair[0] = cells[word].a;
    wave->pair[1] = cells[word].b;
    wave->cells = &cells->a;
}

/* A read of one word by two lanes or more.  False: it is not as simple as that, and nothing was done. */
static bool read_word(dmlk_shader_watch *watch, dmlk_watched_wave *wave, uint32_t line, uint32_t offset,
                      uint64_t mask) {
    if (offset % 4 != 0 || offset >= watch->options.shared_bytes || watch->options.shared_bytes - offset < 4 ||
        watch->shared_shift != 2 || watch->is_uneven || (mask & (mask - 1)) == 0 ||
        (~watch->shared_written[offset / 64] >> offset % 64 & 15) != 0) {
        return false;
    }
    dmlk_cell *cell = &watch->shared_cells[offset / 4];
    const uint64_t clock = watch->shared.start + watch->shared.fences[wave->first];
    if (are_read_by_two(cell, 1, dmlk_record_of(clock, 0, 0, DMLK_SHADER_READ))) {
        know(watch, wave, offset, 1);
        dmlk_tell_known(watch, wave, false);
        return true;
    }
    const uint64_t begin = dmlk_safe_clock(watch, &watch->shared, wave->first) << 24;
    const bool is_wide = cell->a != 0 && dmlk_class_of(cell->a) == 0;
    if (is_wide || cell->a >= begin || cell->b >= begin) {
        return false;
    }
    const bool is_simple = mask == dmlk_lanes_of(watch, wave) && ~watch->shared_written[offset / DMLK_LINE] == 0 &&
                           dmlk_is_past_shared(watch, offset, 4, begin >> 24);
    dmlk_note_shared(watch, offset, 4, clock);
    const dmlk_site site = {.line = line, .kind = DMLK_SHADER_READ, .bytes = 4};
    const uint32_t number = dmlk_find_site(watch, &site), first = wave->first + (uint32_t)__builtin_ctzll(mask);
    const uint32_t second = wave->first + (uint32_t)__builtin_ctzll(mask & (mask - 1));
    *cell = (dmlk_cell){dmlk_record_of(clock, first, number, DMLK_SHADER_READ),
                        dmlk_record_of(clock, second, number, DMLK_SHADER_READ)};
    know(watch, wave, offset, 1);
    dmlk_tell_known(watch, wave, false);
    if (is_simple) {
        tell_simple(wave, line, offset / 4, watch->shared_cells);
    }
    return true;
}

void dmlk_tell_known(const dmlk_shader_watch *watch, dmlk_watched_wave *wave, bool others_run) {
    static const uint64_t nothing[DMLK_MOST_SHARED / 256 + 2];
    const uint64_t clock = watch->shared.start + watch->shared.fences[wave->first];
    const bool holds = !others_run && !watch->is_uneven && watch->shared_known_clock == clock;
    wave->known = holds ? watch->shared_known : nothing;
    wave->simple = 0;
}

/* False: it is not as simple as that, and nothing was done. */
static bool access_shared_row(const struct row *row, uint32_t offset) {
    dmlk_shader_watch *watch = row->watch;
    const uint64_t room = watch->options.shared_bytes, bytes = 4 * (uint64_t)row->count;
    if (row->bytes != 4 || offset % 4 != 0 || watch->shared_shift != 2 || row->class == DMLK_SHADER_ATOMIC ||
        watch->is_uneven || bytes > room || offset > room - bytes || row->step != 4 || !has_all_lanes(row)) {
        return false;
    }
    const bool is_read = row->class == DMLK_SHADER_READ;
    if (!look_at_words(watch, offset, (uint32_t)bytes, !is_read) && is_read) {
        return false;
    }
    dmlk_cell *cells = &watch->shared_cells[offset / 4];
    if (is_read && are_read_by_two(cells, row->count, record_of(row, &watch->shared, 0, 0))) {
        know(watch, row->wave, offset, row->count);
        return true;
    }
    dmlk_forget_known(watch, row->wave, row->class);
    const dmlk_record record = record_of(row, &watch->shared, 0, site_of(row, 0));
    const uint64_t start = dmlk_safe_clock(watch, &watch->shared, row->wave->first);
    const bool are_past = dmlk_is_past_shared(watch, offset, (uint32_t)bytes, start);
    dmlk_note_shared(watch, offset, (uint32_t)bytes, dmlk_clock_of(record));
    if (are_past) {
        set_only(cells, row->count, record);
    } else if (is_read && are_read_by_another(cells, row->count, record)) {
        set_second(cells, row->count, record);
        know(watch, row->wave, offset, row->count);
    } else {
        meet_each(row, 0, row->count, cells, watch->shared_values + offset, record, start, offset, true);
    }
    if (row->values != NULL) {
        memcpy(watch->shared_values + offset, row->values, bytes);
    }
    return true;
}

static __attribute__((noinline)) void access_each_shared(const struct row *row, uint32_t offset, uint64_t inside,
                                                         uint64_t mask) {
    uint64_t offsets[DMLK_MOST_LANES];
    for (uint32_t i = 0; i < DMLK_MOST_LANES; i++) {
        offsets[i] = (inside >> i & 1) != 0 ? (uint32_t)(offset + i * row->step) : UINT64_MAX;
    }
    if (row->values != NULL) {
        dmlk_shader_shared_stored(row->call, row->wave, row->line, offsets, row->values, row->bytes, mask);
    } else {
        dmlk_shader_shared(row->call, row->wave, row->line, row->class, offsets, row->bytes, mask);
    }
}

/* What is not known yet. */
static __attribute__((noinline)) void tell_shared(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line,
                                                  uint32_t kind, uint32_t offset, uint32_t step, uint32_t bytes,
                                                  const uint8_t *values, uint64_t inside, uint64_t mask) {
    struct row row = row_of(call, wave, mask);
    row.line = line, row.class = kind, row.bytes = bytes, row.step = step, row.values = values;
    if ((row.mask & ~inside) != 0 || !access_shared_row(&row, offset)) {
        access_each_shared(&row, offset, inside, mask);
    }
}

void dmlk_shader_shared_row(const dmlk_shader_call *call, dmlk_watched_wave *wave, uint32_t line, uint32_t kind,
                            uint32_t offset, uint32_t step, uint32_t bytes, const uint8_t *values, uint64_t inside,
                            uint64_t mask) {
    dmlk_shader_watch *watch = call->watch;
    if (!dmlk_enter(watch, wave)) {
        return;
    }
    const uint32_t count = dmlk_lane_count(watch, wave);
    const uint64_t all = dmlk_ones(count);
    if (kind == DMLK_SHADER_READ && bytes == 4 && count > 0 && (all & ~inside) == 0) {
        if (step == 4 && is_known(watch, wave, offset, count)) {
            wave->known = watch->shared_known; /* for the next rows */
            return;
        }
        if (step == 0 && read_word(watch, wave, line, offset, mask & all)) {
            return;
        }
    }
    tell_shared(call, wave, line, kind, offset, step, bytes, values, inside, mask);
    dmlk_tell_known(watch, wave, false);
}
