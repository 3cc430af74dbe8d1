/* watch_state.h - what the parts of the analysis of a watched dispatch share.
 *
 *   watch.c          the hooks: bounds, groupshared memory, barriers, lanes, findings
 *   watch_cells.c    which accesses of a few bytes are kept, and when two of them race
 *   watch_pages.c    the shadow of buffers, by pages of 4 KiB
 *   watch_atomics.c  groups that atomic accesses order
 *   watch_rows.c     accesses of a wave whose lanes are a step apart, and which of them need not be told
 *   watch_parts.c    a dispatch on several threads, if nothing is to be found
 */
#ifndef DMLK_WATCH_STATE_H
#define DMLK_WATCH_STATE_H

#include <string.h>

#include "watch.h"

#define DMLK_MOST_THREADS 1024

/* --- records: one access in 64 bits: clock (40), thread (10), site (12), class (2) --- */

/* Two clocks count, one for buffers and one for groupshared memory.  A thread's clock is the time at which its group
 * began, plus the fences of that memory that the thread has executed; the next group begins later than any of them. */
typedef uint64_t dmlk_record; /* 0: none; class 0: the number of a wide cell */

enum { DMLK_SITES = 1 << 12, DMLK_CLASSES = 3 }; /* class: DMLK_SHADER_READ, WRITE or ATOMIC */

static inline dmlk_record dmlk_record_of(uint64_t clock, uint32_t thread, uint32_t site, uint32_t class) {
    return clock << 24 | (uint64_t)thread << 14 | site << 2 | class;
}
static inline uint64_t dmlk_clock_of(dmlk_record r) { return r >> 24; }
static inline uint32_t dmlk_thread_of(dmlk_record r) { return r >> 14 & 1023; }
static inline uint32_t dmlk_site_of(dmlk_record r) { return r >> 2 & (DMLK_SITES - 1); }
static inline uint32_t dmlk_class_of(dmlk_record r) { return r & 3; }

/* What all accesses of one instruction have in common.  Site 0: any, when there are too many. */
typedef struct dmlk_site {
    uint32_t line, kind, view, bytes;
    uint32_t phase; /* of an atomic access: address % 8 */
    bool known;     /* the values written are known */
    bool used;
} dmlk_site;

/* --- the order of a group's threads, for one kind of memory --- */

/* A barrier at which all threads wait orders an access with everything after it, if the thread has executed a fence
 * of that memory since the access: by the barrier itself, or before. */
typedef struct dmlk_order {
    uint64_t start;  /* the time at which the group began */
    uint32_t most;   /* fences of a thread so far */
    uint32_t fences[DMLK_MOST_THREADS];
    /* The thread's clock when it came to its barriers: the last one with an odd number and with an even one.  A
     * thread is at most one barrier ahead of those that it waits for. */
    uint64_t released[2][DMLK_MOST_THREADS];
    uint64_t safe;        /* what dmlk_safe_clock found, for threads that have passed so many barriers */
    uint32_t safe_passed; /* 0: not known */
} dmlk_order;

/* --- cells --- */

/* The accesses kept for a few bytes: two records of any classes, or `a` is the number of a wide cell. */
typedef struct dmlk_cell {
    dmlk_record a, b;
} dmlk_cell;

/* Two records of each class, by two threads. */
typedef struct dmlk_wide_cell {
    dmlk_record of[DMLK_CLASSES][2];
} dmlk_wide_cell;

/* Wide cells are numbered from 1. */
typedef struct dmlk_wide_cells {
    dmlk_wide_cell **blocks;
    uint64_t count, blocks_room;
} dmlk_wide_cells;

/* --- pages of buffers --- */

enum { DMLK_PAGE_BITS = 12, DMLK_PAGE = 1 << DMLK_PAGE_BITS, DMLK_PAGE_WORDS = DMLK_PAGE / 64, DMLK_CACHED = 256 };

/* Most lines are accessed only by whole waves, each lane its own word.  Such a line has one cell, that of its first
 * word; the records of the others are a thread further each. */
enum { DMLK_LINE = DMLK_PAGE / 64, DMLK_LINE_CELLS = DMLK_LINE / 4 };
#define DMLK_THREAD_STEP (UINT64_C(1) << 14)

typedef struct dmlk_page {
    uint64_t number;                                           /* address / DMLK_PAGE */
    uint64_t read[DMLK_PAGE_WORDS], written[DMLK_PAGE_WORDS]; /* a bit for each byte: the footprint */
    dmlk_cell *lines;  /* for DMLK_LINE bytes each; NULL: all is in cells, or bytes that nobody can write, so far */
    uint64_t in_cells; /* a bit for each line: it is in cells */
    dmlk_cell *cells;  /* NULL: no line is */
    uint8_t *values;   /* last written; NULL: none known */
    uint32_t shift;    /* a cell has 1 << shift bytes */
} dmlk_page;

typedef struct dmlk_pages {
    dmlk_page **table; /* by hash of the number; NULL: free */
    uint64_t room, count;
    dmlk_page *cache[DMLK_CACHED];
    uint8_t *block; /* memory of the arena; each block begins with the address of the one before */
    uint64_t block_used, block_size;
} dmlk_pages;

/* --- groups that atomic accesses order --- */

typedef struct dmlk_release { /* of a thread, by an atomic access */
    uint64_t start;           /* the time at which its group began */
    uint64_t safe;            /* accesses of the group before this time are released, */
    uint64_t clock;           /* and those of the thread itself before this one */
    uint32_t thread;
} dmlk_release;

typedef struct dmlk_sync_place { /* what was released by atomic accesses to an address; 0: free */
    uint64_t address;
    dmlk_release *releases; /* in the order of groups */
    uint64_t count, releases_room;
} dmlk_sync_place;

typedef struct dmlk_acquired { /* by a thread of the current group, after so many barriers */
    uint64_t address;
    uint32_t thread, passed;
} dmlk_acquired;

typedef struct dmlk_atomics {
    dmlk_sync_place *places; /* by hash of the address */
    uint64_t room, count, releases;
    dmlk_acquired acquired[64];
    uint32_t acquired_count;
    uint64_t acquired_group; /* the number of the group for which they are */
} dmlk_atomics;

/* --- the watch --- */

typedef struct dmlk_start { /* of a group */
    uint64_t clock[2];      /* of buffers, of groupshared memory */
    uint32_t group[3];
} dmlk_start;

typedef struct dmlk_sync { /* a barrier of the current group: the wave that came to it first */
    uint32_t line, thread;
} dmlk_sync;

struct dmlk_shader_watch {
    dmlk_shader_watch_options options;
    dmlk_shader_watch_result result;
    uint64_t bytes; /* of memory that the analysis of buffers takes */

    dmlk_shader_watch **parts; /* of a watch in parts; owned */
    int part_count;
    bool has_atomics; /* buffers were accessed atomically */

    dmlk_site *sites;
    uint32_t last_site;

    dmlk_start *starts; /* of the groups that ran, in this order */
    uint64_t groups, groups_room;
    uint32_t group[3]; /* the current one */
    dmlk_order buffers, shared;
    uint32_t arrived[DMLK_MOST_THREADS]; /* barriers that the thread has come to */

    uint32_t wave_syncs[DMLK_MOST_THREADS]; /* barriers that the wave has come to */
    dmlk_sync *syncs;
    uint64_t sync_count, syncs_room;
    bool diverged; /* a barrier of the current group was reached by a part of a wave */
    bool is_uneven; /* so was a fence or barrier: threads of a wave may have different clocks */

    dmlk_wide_cells wide;
    dmlk_pages pages;
    dmlk_atomics atomics;

    dmlk_cell *shared_cells; /* groupshared memory: cells of 1 << shared_shift bytes */
    uint32_t shared_shift;
    uint64_t *shared_last; /* of each DMLK_LINE bytes: the clock of the last access */
    bool shared_is_wide;   /* one of the cells was wide */
    uint64_t *shared_written; /* a bit for each byte */
    uint8_t *shared_values;
    uint64_t *shared_known; /* a bit for each word: one more read with this clock changes nothing */
    uint64_t shared_known_clock; /* 0: no bit counts */

    dmlk_shader_finding *findings;
    dmlk_shader_finding *last; /* the finding that was counted last */
};

/* --- watch_cells.c --- */

/* An access of one thread to one cell. */
typedef struct dmlk_touch {
    dmlk_shader_watch *watch;
    const dmlk_order *order;
    dmlk_record record;
    uint64_t offset;      /* of the cell's first byte that is accessed, in the view or in groupshared memory */
    const uint8_t *value; /* of a write: the cell's new bytes; NULL: not known */
    uint8_t *kept;        /* the cell's bytes as last written; NULL: not known */
    uint32_t size;        /* of the cell in bytes */
    bool is_shared;
} dmlk_touch;

/* Compares the access with those kept in the cell, and keeps it. */
void dmlk_meet(const dmlk_touch *touch, dmlk_cell *cell);
/* Makes 1 << by cells of one: `to` has room for them. */
bool dmlk_split_cell(dmlk_shader_watch *watch, const dmlk_cell *cell, dmlk_cell *to, uint32_t by);
/* The last access that has changed the cell; 0: none. */
dmlk_record dmlk_last_change(const dmlk_shader_watch *watch, const dmlk_cell *cell);
void dmlk_free_wide_cells(dmlk_wide_cells *wide);

/* The accesses of the current group with smaller clocks are ordered before the thread, by the barriers that it has
 * passed. */
uint64_t dmlk_find_safe_clock(const dmlk_shader_watch *watch, dmlk_order *order, uint32_t passed);

static inline uint64_t dmlk_safe_clock(const dmlk_shader_watch *watch, dmlk_order *order, uint32_t thread) {
    const uint32_t passed = watch->arrived[thread];
    return passed == 0                    ? order->start
           : passed == order->safe_passed ? order->safe
                                          : dmlk_find_safe_clock(watch, order, passed);
}

/* Most accesses need no comparison: the cell is empty, or has only accesses of the same thread, or of readers like
 * this one.  Of groupshared memory, accesses before `start` count no more.  True: that was so, and the access is
 * kept. */
static inline bool dmlk_meet_quickly(dmlk_cell *cell, dmlk_record record, uint64_t start, bool is_shared) {
    const dmlk_record begin = start << 24;
    if (is_shared && dmlk_class_of(cell->a) != 0) {
        cell->b = cell->b < begin ? 0 : cell->b;
        if (cell->a < begin) {
            *cell = (dmlk_cell){cell->b, 0};
        }
    }
    const dmlk_record a = cell->a, b = cell->b;
    if (a == 0) {
        cell->a = record;
        return true;
    }
    const uint32_t class = dmlk_class_of(record), class_a = dmlk_class_of(a);
    if (class_a == 0) {
        return false;
    }
    if (b == 0 && a >= begin && dmlk_thread_of(a) == dmlk_thread_of(record) &&
        (class != DMLK_SHADER_ATOMIC || class_a != DMLK_SHADER_ATOMIC || dmlk_site_of(a) == dmlk_site_of(record))) {
        *(class == class_a ? &cell->a : &cell->b) = record;
        return true;
    }
    if (class != DMLK_SHADER_READ || class_a != DMLK_SHADER_READ) {
        return false;
    }
    if (!is_shared && a < begin && (b == 0 || dmlk_class_of(b) == DMLK_SHADER_READ)) {
        return true; /* any write of this group races with that of the earlier one */
    }
    if (is_shared && b == 0) {
        cell->b = record;
        return true;
    }
    return dmlk_class_of(b) == DMLK_SHADER_READ && (a ^ record) >> 24 == 0 && (b ^ record) >> 24 == 0;
}

/* --- watch_pages.c --- */

/* The page of an address; NULL: no memory. */
dmlk_page *dmlk_find_page(dmlk_shader_watch *watch, uint64_t address);
/* The page of an address if it is there; else NULL. */
const dmlk_page *dmlk_page_with(const dmlk_pages *pages, uint64_t address);
/* Gives the page lines, or cells of 1 << shift bytes if these are less than 4; and room for values if `values`. */
bool dmlk_prepare_page(dmlk_shader_watch *watch, dmlk_page *page, uint32_t shift, bool values);
/* Moves lines into cells. */
bool dmlk_add_cells(dmlk_shader_watch *watch, dmlk_page *page, uint64_t lines);
void dmlk_free_pages(dmlk_pages *pages);
/* Adds the footprints of other pages, which must live as long.  False: a byte that is written in one of them is touched
 * in the other one, or there is no memory. */
bool dmlk_join_pages(dmlk_pages *pages, const dmlk_pages *others);
/* Takes memory within the limit, filled with zeros; NULL: none left. */
void *dmlk_take_shadow(dmlk_shader_watch *watch, uint64_t bytes);

static inline dmlk_page *dmlk_page_at(dmlk_shader_watch *watch, uint64_t address) {
    const uint64_t number = address >> DMLK_PAGE_BITS;
    dmlk_page *page = watch->pages.cache[number % DMLK_CACHED];
    return page != NULL && page->number == number ? page : dmlk_find_page(watch, address);
}

static inline bool dmlk_is_prepared(const dmlk_page *page, uint32_t shift, bool values) {
    return (page->lines != NULL || page->cells != NULL) && shift >= page->shift && (!values || page->values != NULL);
}

/* The cells of a page that is prepared, with those of bytes [first, first + bytes); NULL: no memory. */
static inline dmlk_cell *dmlk_cells_with(dmlk_shader_watch *watch, dmlk_page *page, uint32_t first, uint32_t bytes) {
    const uint32_t line = first / DMLK_LINE, count = (first + bytes - 1) / DMLK_LINE - line + 1;
    const uint64_t lines = (count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX) << line & ~page->in_cells;
    return lines == 0 || dmlk_add_cells(watch, page, lines) ? page->cells : NULL;
}

/* --- watch_atomics.c --- */

/* A thread of the current group accesses the address of a buffer atomically. */
void dmlk_note_atomic(dmlk_shader_watch *watch, uint64_t address, uint32_t thread);
/* Whether an access of an earlier group is ordered before what the thread does now. */
bool dmlk_is_acquired(const dmlk_shader_watch *watch, dmlk_record earlier, uint32_t thread);
void dmlk_free_atomics(dmlk_atomics *atomics);

/* --- watch_parts.c --- */

void dmlk_free_parts(dmlk_shader_watch *watch);

/* --- watch.c --- */

/* Begins a group.  False: there is no memory to go on. */
bool dmlk_begin_group(dmlk_shader_watch *watch, const dmlk_watched_wave *wave);

/* Called by each hook.  False: there is no memory to go on. */
static inline bool dmlk_enter(dmlk_shader_watch *watch, const dmlk_watched_wave *wave) {
    if (watch == NULL) {
        return false;
    }
    const uint32_t *now = watch->group;
    return (now[0] == wave->group[0] && now[1] == wave->group[1] && now[2] == wave->group[2] && watch->groups > 0) ||
           dmlk_begin_group(watch, wave);
}

static inline bool dmlk_is_site(const dmlk_site *a, const dmlk_site *b) {
    return a->line == b->line && a->kind == b->kind && a->view == b->view && a->bytes == b->bytes &&
           a->phase == b->phase && a->known == b->known;
}

uint32_t dmlk_look_up_site(dmlk_shader_watch *watch, const dmlk_site *site);

/* The number of the site; 0: the table is full. */
static inline uint32_t dmlk_find_site(dmlk_shader_watch *watch, const dmlk_site *site) {
    const uint32_t last = watch->last_site;
    return dmlk_is_site(&watch->sites[last], site) ? last : dmlk_look_up_site(watch, site);
}

static inline uint64_t dmlk_ones(uint64_t count) { return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX; }

/* How many lanes the wave has: the last wave of a group may have fewer. */
static inline uint32_t dmlk_lane_count(const dmlk_shader_watch *watch, const dmlk_watched_wave *wave) {
    const uint32_t left = wave->first < watch->options.threads ? watch->options.threads - wave->first : 0;
    return left < watch->options.lanes ? left : watch->options.lanes;
}

static inline uint64_t dmlk_lanes_of(const dmlk_shader_watch *watch, const dmlk_watched_wave *wave) {
    return dmlk_ones(dmlk_lane_count(watch, wave));
}

/* Called before groupshared cells change: what is known holds only for reads with its clock. */
static inline void dmlk_forget_known(dmlk_shader_watch *watch, const dmlk_watched_wave *wave, uint32_t class) {
    const uint64_t clock = watch->shared.start + watch->shared.fences[wave->first];
    if (class != DMLK_SHADER_READ || watch->is_uneven || clock != watch->shared_known_clock) {
        watch->shared_known_clock = 0;
    }
}

/* Whether all cells of bytes of groupshared memory have accesses in themselves, if any, and only before `clock`: so may
 * other cells of the same lines have. */
static inline bool dmlk_is_past_shared(const dmlk_shader_watch *watch, uint32_t offset, uint32_t bytes,
                                       uint64_t clock) {
    bool is_past = !watch->shared_is_wide;
    for (uint32_t line = offset / DMLK_LINE; line <= (offset + bytes - 1) / DMLK_LINE; line++) {
        is_past = is_past && watch->shared_last[line] < clock;
    }
    return is_past;
}

/* Called with each access of groupshared memory that changes cells. */
static inline void dmlk_note_shared(dmlk_shader_watch *watch, uint32_t offset, uint32_t bytes, uint64_t clock) {
    for (uint32_t line = offset / DMLK_LINE; line <= (offset + bytes - 1) / DMLK_LINE; line++) {
        watch->shared_last[line] = clock > watch->shared_last[line] ? clock : watch->shared_last[line];
    }
}

/* Tells the wave what is known, after it has accessed groupshared memory; or, before others run, that nothing is. */
void dmlk_tell_known(const dmlk_shader_watch *watch, dmlk_watched_wave *wave, bool others_run);

/* Marks [first, first + count) as read where it is not written yet, and as written. */
static inline void dmlk_mark(dmlk_page *page, uint32_t first, uint32_t count, uint32_t class) {
    while (count > 0) {
        const uint32_t shift = first % 64, now = count < 64 - shift ? count : 64 - shift;
        const uint64_t bits = dmlk_ones(now) << shift;
        if (class != DMLK_SHADER_WRITE) {
            page->read[first / 64] |= bits & ~page->written[first / 64];
        }
        if (class != DMLK_SHADER_READ) {
            page->written[first / 64] |= bits;
        }
        first += now;
        count -= now;
    }
}

/* The index in `starts` of the group that ran at the time of a record. */
uint64_t dmlk_group_of(const dmlk_shader_watch *watch, dmlk_record record, bool is_shared);

/* Counts a race of the touch with an access that was kept. */
void dmlk_note_race(const dmlk_touch *touch, dmlk_record earlier, bool same_value);

#endif
