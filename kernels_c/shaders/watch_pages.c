/* watch_pages.c - the shadow of buffers, by pages of 4 KiB, which are allocated when they are first accessed. */
#include <stdlib.h>
#include <sys/mman.h>

#include "watch_state.h"

#define LEAST_BLOCK (UINT64_C(1) << 18) /* bytes of the arena that are allocated at once: */
#define MOST_BLOCK (UINT64_C(1) << 24)  /* each block is twice as large as the one before, up to these */
#define LINK 64                         /* bytes at the beginning of a block: the address of the one before */

/* --- memory --- */

/* Large pages of the host take far fewer faults; only where the system has them. */
static void want_large_pages(uint8_t *block, uint64_t size) {
#ifdef MADV_HUGEPAGE
    const uint64_t page = UINT64_C(1) << 21, first = ((uint64_t)(uintptr_t)block + page - 1) / page * page;
    const uint64_t end = ((uint64_t)(uintptr_t)block + size) / page * page;
    if (first < end) {
        (void)madvise((void *)(uintptr_t)first, end - first, MADV_HUGEPAGE);
    }
#else
    (void)block, (void)size;
#endif
}

static bool add_block(dmlk_shader_watch *watch) {
    dmlk_pages *pages = &watch->pages;
    uint64_t size = pages->block == NULL ? LEAST_BLOCK : 2 * pages->block_size;
    size = size < MOST_BLOCK ? size : MOST_BLOCK;
    if (size > watch->options.most_bytes - watch->bytes) {
        return false;
    }
    uint8_t *block = calloc(size, 1);
    if (block == NULL) {
        return false;
    }
    want_large_pages(block, size);
    memcpy(block, &pages->block, sizeof pages->block);
    pages->block = block;
    pages->block_used = LINK;
    pages->block_size = size;
    watch->bytes += size;
    return true;
}

void *dmlk_take_shadow(dmlk_shader_watch *watch, uint64_t bytes) {
    dmlk_pages *pages = &watch->pages;
    bytes = (bytes + 63) / 64 * 64;
    if ((pages->block == NULL || bytes > pages->block_size - pages->block_used) && !add_block(watch)) {
        return NULL;
    }
    void *memory = pages->block + pages->block_used;
    pages->block_used += bytes;
    return memory;
}

void dmlk_free_pages(dmlk_pages *pages) {
    while (pages->block != NULL) {
        uint8_t *before;
        memcpy(&before, pages->block, sizeof before);
        free(pages->block);
        pages->block = before;
    }
    free(pages->table);
}

/* --- the table of pages --- */

static uint64_t slot_of(uint64_t number, uint64_t room) {
    return (number * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);
}

/* The entry of the page, or the free one in which it belongs. */
static dmlk_page **entry_of(dmlk_page **table, uint64_t room, uint64_t number) {
    uint64_t slot = slot_of(number, room);
    while (table[slot] != NULL && table[slot]->number != number) {
        slot = (slot + 1) & (room - 1);
    }
    return &table[slot];
}

static bool grow_table(dmlk_pages *pages) {
    const uint64_t room = pages->room == 0 ? 1024 : 2 * pages->room;
    dmlk_page **table = calloc(room, sizeof *table);
    if (table == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < pages->room; i++) {
        if (pages->table[i] != NULL) {
            *entry_of(table, room, pages->table[i]->number) = pages->table[i];
        }
    }
    free(pages->table);
    pages->table = table;
    pages->room = room;
    return true;
}

dmlk_page *dmlk_find_page(dmlk_shader_watch *watch, uint64_t address) {
    dmlk_pages *pages = &watch->pages;
    const uint64_t number = address >> DMLK_PAGE_BITS;
    if (2 * pages->count >= pages->room && !grow_table(pages)) {
        return NULL;
    }
    dmlk_page **entry = entry_of(pages->table, pages->room, number);
    if (*entry == NULL) {
        dmlk_page *page = dmlk_take_shadow(watch, sizeof *page);
        if (page == NULL) {
            return NULL;
        }
        page->number = number;
        page->shift = 2;
        *entry = page;
        pages->count++;
    }
    pages->cache[number % DMLK_CACHED] = *entry;
    return *entry;
}

/* Adds the footprint of another page; whether no byte that is written in one of them is touched in the other. */
static bool join_page(dmlk_page *page, const dmlk_page *other) {
    uint64_t meets = 0;
    for (int i = 0; i < DMLK_PAGE_WORDS; i++) {
        meets |= (page->written[i] & (other->read[i] | other->written[i])) | (page->read[i] & other->written[i]);
        page->read[i] |= other->read[i];
        page->written[i] |= other->written[i];
    }
    return meets == 0;
}

bool dmlk_join_pages(dmlk_pages *pages, const dmlk_pages *others) {
    for (uint64_t i = 0; i < others->room; i++) {
        dmlk_page *other = others->table[i];
        if (other == NULL) {
            continue;
        }
        if (2 * pages->count >= pages->room && !grow_table(pages)) {
            return false;
        }
        dmlk_page **entry = entry_of(pages->table, pages->room, other->number);
        if (*entry == NULL) {
            *entry = other;
            pages->count++;
        } else if (!join_page(*entry, other)) {
            return false;
        }
    }
    return true;
}

/* Makes the cells of a page smaller. */
static bool split_cells(dmlk_shader_watch *watch, dmlk_page *page, uint32_t shift) {
    const uint32_t by = page->shift - shift, count = (uint32_t)DMLK_PAGE >> page->shift;
    dmlk_cell *cells = dmlk_take_shadow(watch, ((uint64_t)DMLK_PAGE >> shift) * sizeof *cells);
    if (cells == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!dmlk_split_cell(watch, &page->cells[i], &cells[i << by], by)) {
            return false;
        }
    }
    page->cells = cells;
    page->shift = shift;
    return true;
}

bool dmlk_add_cells(dmlk_shader_watch *watch, dmlk_page *page, uint64_t lines) {
    if (page->cells == NULL) {
        page->cells = dmlk_take_shadow(watch, ((uint64_t)DMLK_PAGE >> page->shift) * sizeof *page->cells);
        if (page->cells == NULL) {
            return false;
        }
    }
    page->in_cells |= lines;
    for (; lines != 0 && page->lines != NULL; lines &= lines - 1) {
        const uint32_t number = (uint32_t)__builtin_ctzll(lines);
        const dmlk_cell line = page->lines[number];
        for (uint32_t i = 0; i < DMLK_LINE_CELLS; i++) {
            dmlk_cell *cell = &page->cells[number * DMLK_LINE_CELLS + i];
            cell->a = line.a == 0 ? 0 : line.a + i * DMLK_THREAD_STEP;
            cell->b = line.b == 0 ? 0 : line.b + i * DMLK_THREAD_STEP;
        }
    }
    return true;
}

bool dmlk_prepare_page(dmlk_shader_watch *watch, dmlk_page *page, uint32_t shift, bool values) {
    if (values && page->values == NULL) {
        page->values = dmlk_take_shadow(watch, DMLK_PAGE);
        if (page->values == NULL) {
            return false;
        }
    }
    if (page->lines == NULL && page->cells == NULL) {
        if (shift < page->shift) {
            page->shift = shift;
            return dmlk_add_cells(watch, page, UINT64_MAX);
        }
        page->lines = dmlk_take_shadow(watch, DMLK_PAGE / DMLK_LINE * sizeof *page->lines);
        return page->lines != NULL;
    }
    return shift >= page->shift ||
           ((~page->in_cells == 0 || dmlk_add_cells(watch, page, ~page->in_cells)) && split_cells(watch, page, shift));
}

/* --- footprints --- */

/* The patterns found so far, of which `room` are stored; and the interval that may still grow. */
struct patterns {
    dmlk_shader_bytes *stored, last;
    uint64_t room, count, begin, end;
};

/* Adds the interval to the last pattern, or begins another one. */
static void close_interval(struct patterns *to) {
    dmlk_shader_bytes *last = &to->last;
    const uint64_t width = to->end - to->begin;
    if (width == 0) {
        return;
    }
    const bool fits = to->count > 0 && last->width == width &&
                      (last->count == 1 || to->begin == last->begin + last->count * last->stride);
    if (fits) {
        last->stride = last->count == 1 ? to->begin - last->begin : last->stride;
        last->count++;
    } else {
        *last = (dmlk_shader_bytes){to->begin, width, width, 1};
        to->count++;
    }
    if (to->count <= to->room) {
        to->stored[to->count - 1] = *last;
    }
}

static void add_interval(struct patterns *to, uint64_t begin, uint64_t end) {
    if (to->end != begin) {
        close_interval(to);
        to->begin = begin;
    }
    to->end = end;
}

/* Adds the set bits [begin, end) of a page's bits; bit 0 is `offset`. */
static void add_bits(struct patterns *to, const uint64_t *bits, uint64_t begin, uint64_t end, uint64_t offset) {
    for (uint64_t bit = begin; bit < end;) {
        const uint64_t left = bits[bit / 64] >> bit % 64;
        if (left == 0) {
            bit = (bit / 64 + 1) * 64;
            continue;
        }
        bit += (uint64_t)__builtin_ctzll(left);
        const uint64_t clear = ~(bits[bit / 64] >> bit % 64);
        const uint64_t size = clear == 0 ? 64 : (uint64_t)__builtin_ctzll(clear);
        const uint64_t stop = bit + size < end ? bit + size : end;
        if (bit < stop) {
            add_interval(to, offset + bit, offset + stop);
        }
        bit = stop;
    }
}

const dmlk_page *dmlk_page_with(const dmlk_pages *pages, uint64_t address) {
    return pages->room == 0 ? NULL : *entry_of(pages->table, pages->room, address >> DMLK_PAGE_BITS);
}

uint64_t dmlk_shader_footprint(const dmlk_shader_watch *watch, uint64_t address, uint64_t bytes, int written,
                               dmlk_shader_bytes *patterns, uint64_t room) {
    struct patterns to = {.stored = patterns, .room = room};
    const uint64_t end = address + bytes;
    for (uint64_t at = address; at < end;) {
        const uint64_t first = at >> DMLK_PAGE_BITS << DMLK_PAGE_BITS, next = first + DMLK_PAGE;
        const uint64_t stop = next < end ? next : end;
        const dmlk_page *page = dmlk_page_with(&watch->pages, at);
        if (page != NULL) {
            /* modulo 2^64: the offset of the page's first byte may be negative */
            add_bits(&to, written ? page->written : page->read, at - first, stop - first, first - address);
        }
        at = stop;
    }
    close_interval(&to);
    return to.count;
}
