/* shadow.c - shadow memory: one bit per byte, set if it was written.
 *
 * The bits of a footprint are visited word by word: rows without gaps 64 bytes at a time, as are rows of elements
 * up to 64 bytes apart, whose bits form a repeating pattern. */
#include <stdlib.h>
#include <string.h>

#include "footprint.h"

#define TILE_WORDS 1024    /* words of bits for a tile of 64 KiB */
#define NOWHERE UINT64_MAX /* instead of an address or a bit's index: none */
#define CHUNK DMLK_SHADOW_CHUNK_WORDS

enum action { FIND_UNWRITTEN, SET, CLEAR };

/* An operation on the bits of one shadow. */
struct visit {
    const dmlk_shadow *shadow;
    enum action action;
    uint64_t lowest; /* index of the lowest 0 bit found, or NOWHERE */
};

static uint64_t lowest_bits(uint64_t count) { return count < 64 ? ((uint64_t)1 << count) - 1 : UINT64_MAX; }

static bool is_null(const dmlk_shadow *s, uint64_t word) {
    const uint64_t tile = word / TILE_WORDS;
    return s->null_tiles != NULL && (s->null_tiles[tile / 64] >> tile % 64 & 1) != 0;
}

/* Reads a word of bits; the bits of NULL tiles are 1. */
static inline uint64_t read_word(const dmlk_shadow *s, uint64_t word) {
    const uint64_t bits = s->bits[word];
    return bits == UINT64_MAX || !is_null(s, word) ? bits : UINT64_MAX;
}

/* --- chunks of words --- */

/* Whether all words of the chunk are known to be all ones. */
static inline bool is_full(const dmlk_shadow *s, uint64_t chunk) {
    return s->full != NULL && s->full[0] == 0 && s->full[1 + chunk] != 0;
}

static inline void note_full(const dmlk_shadow *s, uint64_t chunk) {
    if (s->full != NULL) {
        s->full[1 + chunk] = 1;
    }
}

/* Called after words first .. last have changed. */
static inline void not_full(const dmlk_shadow *s, uint64_t first, uint64_t last) {
    if (s->full != NULL) {
        memset(s->full + 1 + first / CHUNK, 0, last / CHUNK - first / CHUNK + 1);
    }
}

/* --- visiting bits; each function returns false once a bit was found and later ones are higher --- */

static inline bool visit_word(struct visit *v, enum action action, uint64_t word, uint64_t mask) {
    if (action == SET) {
        v->shadow->bits[word] |= mask;
    } else if (action == CLEAR) {
        v->shadow->bits[word] &= ~mask;
        not_full(v->shadow, word, word);
    } else if ((mask & ~v->shadow->bits[word]) != 0) {
        const uint64_t missing = mask & ~read_word(v->shadow, word);
        if (missing != 0) {
            const uint64_t bit = word * 64 + (uint64_t)__builtin_ctzll(missing);
            v->lowest = bit < v->lowest ? bit : v->lowest;
            return false;
        }
    }
    return true;
}

/* Visits up to 64 bits from `bit` on. */
static inline bool visit_bits(struct visit *v, enum action action, uint64_t bit, uint64_t mask) {
    const uint64_t shift = bit % 64, high = mask >> 1 >> (63 - shift);
    return visit_word(v, action, bit / 64, mask << shift) && (high == 0 || visit_word(v, action, bit / 64 + 1, high));
}

static bool are_ones(const uint64_t *words, uint64_t count) {
    uint64_t all = UINT64_MAX;
    for (uint64_t i = 0; i < count; i++) {
        all &= words[i];
    }
    return all == UINT64_MAX;
}

/* The first word before `end` that is not all ones, or `end`. */
static uint64_t skip_full_words(const dmlk_shadow *s, uint64_t word, uint64_t end) {
    while (word < end) {
        const uint64_t next = (word / CHUNK + 1) * CHUNK, stop = next < end ? next : end;
        const bool whole = stop - word == CHUNK;
        if (is_full(s, word / CHUNK)) {
            word = stop;
        } else if (are_ones(s->bits + word, stop - word)) {
            if (whole) {
                note_full(s, word / CHUNK);
            }
            word = stop;
        } else {
            while (word < stop && s->bits[word] == UINT64_MAX) { /* another thread may have set them */
                word++;
            }
            if (word < stop && !is_null(s, word)) {
                return word;
            }
            word = word < stop ? (word / TILE_WORDS + 1) * TILE_WORDS : stop;
        }
    }
    return end;
}

static void set_words(const dmlk_shadow *s, uint64_t word, uint64_t end) {
    while (word < end) {
        const uint64_t next = (word / CHUNK + 1) * CHUNK, stop = next < end ? next : end;
        if (!is_full(s, word / CHUNK)) {
            memset(s->bits + word, 0xff, (stop - word) * sizeof(uint64_t));
            if (stop - word == CHUNK) {
                note_full(s, word / CHUNK);
            }
        }
        word = stop;
    }
}

static void clear_words(const dmlk_shadow *s, uint64_t word, uint64_t end) {
    if (word < end) {
        memset(s->bits + word, 0, (end - word) * sizeof(uint64_t));
        not_full(s, word, end - 1);
    }
}

static inline bool visit_range(struct visit *v, enum action action, uint64_t begin, uint64_t end) {
    const uint64_t first = begin / 64, last = (end - 1) / 64;
    const uint64_t head = UINT64_MAX << begin % 64, tail = UINT64_MAX >> (63 - (end - 1) % 64);
    if (first == last) {
        return visit_word(v, action, first, head & tail);
    }
    if (!visit_word(v, action, first, head)) {
        return false;
    }
    if (action == FIND_UNWRITTEN) {
        const uint64_t word = skip_full_words(v->shadow, first + 1, last);
        if (word < last) {
            return visit_word(v, action, word, UINT64_MAX);
        }
    } else if (action == SET) {
        set_words(v->shadow, first + 1, last);
    } else {
        clear_words(v->shadow, first + 1, last);
    }
    return visit_word(v, action, last, tail);
}

/* Visits a comb: `size` groups of `width` bits, `stride` (at most 64, more than width) apart. */
static inline bool visit_comb(struct visit *v, enum action action, uint64_t begin, uint64_t size, uint64_t stride,
                              uint64_t width) {
    const uint64_t end = begin + (size - 1) * stride + width, last = (end - 1) / 64;
    uint64_t low = lowest_bits(width), high; /* 128 bits of the comb */
    for (uint64_t step = stride; step < 64; step *= 2) {
        low |= low << step;
    }
    /* Bit 64 of the comb is its bit 64 % stride. */
    const uint64_t offset = 64 % stride;
    high = offset == 0 ? low : low >> offset | low << (stride - offset);
    /* The comb's phase at bit 0 of the word. */
    uint64_t phase = (stride - begin % 64 % stride) % stride;
    uint64_t mask = UINT64_MAX << begin % 64;
    for (uint64_t word = begin / 64; word <= last; word++) {
        mask &= low >> phase | high << 1 << (63 - phase);
        mask &= word < last ? UINT64_MAX : UINT64_MAX >> (63 - (end - 1) % 64);
        if (!visit_word(v, action, word, mask)) {
            return false;
        }
        mask = UINT64_MAX;
        phase += offset;
        phase -= phase >= stride ? stride : 0;
    }
    return true;
}

static inline bool visit_row(struct visit *v, enum action action, uint64_t begin, uint64_t size, uint64_t stride,
                             uint64_t width) {
    if (stride <= 64) {
        return visit_comb(v, action, begin, size, stride, width);
    }
    const uint64_t mask = lowest_bits(width);
    for (uint64_t i = 0, bit = begin; i < size; i++, bit += stride) {
        if (!(width <= 64 ? visit_bits(v, action, bit, mask) : visit_range(v, action, bit, bit + width))) {
            return false;
        }
    }
    return true;
}

/* Visits dimension 0 of a pattern in whole bytes, or its only block. */
static inline void visit_innermost(struct visit *v, enum action action, const dmlk_pattern *p, uint64_t begin) {
    if (p->rank == 0) {
        visit_range(v, action, begin, begin + p->spans[0]);
    } else {
        visit_row(v, action, begin, p->sizes[0], p->strides[0], p->spans[0]);
    }
}

/* Visits the dimensions below `rank`. */
static void visit_dimensions(struct visit *v, const dmlk_pattern *p, uint32_t rank, uint64_t begin) {
    if (rank > 1) {
        for (uint64_t i = 0; i < p->sizes[rank - 1] && begin < v->lowest; i++) {
            visit_dimensions(v, p, rank - 1, begin);
            begin += p->strides[rank - 1];
        }
        return;
    }
    switch (v->action) { /* a specialized copy of the loops for each action */
    case FIND_UNWRITTEN: visit_innermost(v, FIND_UNWRITTEN, p, begin); break;
    case SET: visit_innermost(v, SET, p, begin); break;
    case CLEAR: visit_innermost(v, CLEAR, p, begin); break;
    }
}

/* Paints the pattern and visits its bits from bit `begin` on; false: out of memory. */
static bool visit_painted(struct visit *v, const dmlk_pattern *p, uint64_t begin, uint64_t size) {
    uint64_t *masks = dmlk_pattern_paint(p);
    if (masks == NULL) {
        return false;
    }
    for (uint64_t bit = 0; bit < size && visit_bits(v, v->action, begin + bit, masks[bit / 64]); bit += 64) {
    }
    free(masks);
    return true;
}

/* --- footprints --- */

/* Converts the pattern to bytes and counts its blocks; false: it does not consist of whole bytes, or overlaps itself
 * so much that painting is faster. */
static bool count_blocks(const dmlk_pattern *pattern, dmlk_pattern *bytes, uint64_t *blocks) {
    *bytes = *pattern;
    *blocks = 1;
    if (!dmlk_pattern_to_bytes(bytes)) {
        return false;
    }
    bytes->spans[0] /= 2;
    for (uint32_t d = 0; d < bytes->rank; d++) {
        bytes->strides[d] /= 2;
        bytes->spans[d + 1] /= 2;
        if (__builtin_mul_overflow(*blocks, bytes->sizes[d], blocks)) {
            return false;
        }
    }
    return *blocks <= dmlk_pattern_span(bytes);
}

/* The shadow that contains all `size` bytes at the address, or NULL. */
static const dmlk_shadow *find(const dmlk_shadow *shadows, uint64_t count, uint64_t address, uint64_t size) {
    uint64_t first = 0, end = count;
    while (first < end) { /* the first one that starts past the address */
        const uint64_t middle = first + (end - first) / 2;
        if (shadows[middle].address <= address) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    if (first == 0) {
        return NULL;
    }
    const dmlk_shadow *shadow = &shadows[first - 1];
    const uint64_t offset = address - shadow->address;
    return offset <= shadow->size && size <= shadow->size - offset ? shadow : NULL;
}

static uint64_t bit_of(const dmlk_shadow *s, uint64_t address) { return s->first + (address - s->address); }

/* Visits the bits of a footprint.  *address: the address of the lowest 0 bit found, or NOWHERE. */
static int visit(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *f, enum action action,
                 uint64_t *address) {
    dmlk_pattern pattern, bytes;
    if (!dmlk_pattern_init(&pattern, f)) {
        return DMLK_BAD_PACKET;
    }
    const uint64_t span = dmlk_pattern_span(&pattern), size = span / 2 + span % 2;
    const dmlk_shadow *shadow = find(shadows, count, f->address, size);
    if (shadow == NULL) {
        return DMLK_BAD_ADDRESS;
    }
    struct visit v = {shadow, action, NOWHERE};
    const uint64_t begin = bit_of(shadow, f->address);
    uint64_t blocks;
    const bool walk = count_blocks(&pattern, &bytes, &blocks);
    /* Usually all bytes are written already.  Visiting a block takes as long as reading several words here. */
    if (action != CLEAR && pattern.rank > 0 && (!walk || size / 64 <= 4 * blocks)) {
        struct visit all = {shadow, FIND_UNWRITTEN, NOWHERE};
        if (visit_range(&all, FIND_UNWRITTEN, begin, begin + size)) {
            return DMLK_OK;
        }
    }
    if (walk) {
        visit_dimensions(&v, &bytes, bytes.rank, begin);
    } else if (!visit_painted(&v, &pattern, begin, size)) {
        return DMLK_OUT_OF_MEMORY;
    }
    *address = v.lowest == NOWHERE ? NOWHERE : shadow->address + (v.lowest - shadow->first);
    return DMLK_OK;
}

int dmlk_shadow_first_unwritten(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *f,
                                uint64_t *address) {
    *address = NOWHERE;
    return visit(shadows, count, f, FIND_UNWRITTEN, address);
}

int dmlk_shadow_mark_written(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *f) {
    uint64_t nowhere;
    return visit(shadows, count, f, SET, &nowhere);
}

int dmlk_shadow_mark_undefined(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *f) {
    uint64_t nowhere;
    return visit(shadows, count, f, CLEAR, &nowhere);
}

/* Whether every access is well-formed and has a shadow. */
static bool are_here(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *accesses, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        dmlk_pattern pattern;
        if (!dmlk_pattern_init(&pattern, &accesses[i])) {
            return false;
        }
        const uint64_t span = dmlk_pattern_span(&pattern);
        if (find(shadows, count, accesses[i].address, span / 2 + span % 2) == NULL) {
            return false;
        }
    }
    return true;
}

int dmlk_shadow_command(const dmlk_shadow *shadows, uint64_t count, const dmlk_footprint *accesses, uint32_t n,
                        int look) {
    if (!are_here(shadows, count, accesses, n)) {
        return 0;
    }
    uint64_t address = NOWHERE;
    int result = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (look && (accesses[i].access & DMLK_READ) != 0 &&
            (visit(shadows, count, &accesses[i], FIND_UNWRITTEN, &address) != DMLK_OK || address != NOWHERE)) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t access = accesses[i].access;
        if ((access & (DMLK_WRITE | DMLK_UNDEFINE)) != 0 &&
            visit(shadows, count, &accesses[i], (access & DMLK_WRITE) != 0 ? SET : CLEAR, &address) != DMLK_OK) {
            return 0;
        }
        result = (access & (DMLK_WRITE | DMLK_UNDEFINE)) == DMLK_UNDEFINE ? 2 : result;
    }
    return result;
}

/* --- ranges --- */

/* Reads up to 64 bits. */
static uint64_t read_bits(const dmlk_shadow *s, uint64_t bit, uint64_t count) {
    const uint64_t word = bit / 64, shift = bit % 64;
    uint64_t bits = read_word(s, word) >> shift;
    if (shift + count > 64) {
        bits |= read_word(s, word + 1) << (64 - shift);
    }
    return bits & lowest_bits(count);
}

/* Copies those of the destination's bits [begin, end) that are in `word`. */
static void copy_word(const dmlk_shadow *to, uint64_t word, uint64_t begin, uint64_t end, const dmlk_shadow *from,
                      uint64_t source) {
    const uint64_t low = begin > word * 64 ? begin : word * 64;
    const uint64_t high = end < word * 64 + 64 ? end : word * 64 + 64;
    const uint64_t mask = lowest_bits(high - low) << low % 64;
    const uint64_t bits = read_bits(from, source + (low - begin), high - low) << low % 64;
    to->bits[word] = (to->bits[word] & ~mask) | bits;
}

/* Copies whole words first .. last of the destination, in an order that reads each source before it is overwritten. */
static void copy_words(const dmlk_shadow *to, uint64_t first, uint64_t last, const dmlk_shadow *from, uint64_t bit,
                       bool upwards) {
    const uint64_t count = last - first + 1;
    if (bit % 64 == 0 && from->null_tiles == NULL) {
        memmove(to->bits + first, from->bits + bit / 64, count * sizeof(uint64_t));
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = upwards ? i : count - 1 - i;
        to->bits[first + at] = read_bits(from, bit + at * 64, 64);
    }
}

int dmlk_shadow_copy(const dmlk_shadow *shadows, uint64_t count, uint64_t destination, uint64_t source,
                     uint64_t size, int *cleared) {
    *cleared = 0;
    const dmlk_shadow *to = find(shadows, count, destination, size), *from = find(shadows, count, source, size);
    if (to == NULL || from == NULL) {
        return DMLK_BAD_ADDRESS;
    }
    if (size == 0) {
        return DMLK_OK;
    }
    const uint64_t begin = bit_of(to, destination), end = begin + size, bit = bit_of(from, source);
    struct visit origin = {from, FIND_UNWRITTEN, NOWHERE}, target = {to, SET, NOWHERE};
    if (visit_range(&origin, FIND_UNWRITTEN, bit, bit + size)) { /* the usual case */
        visit_range(&target, SET, begin, end);
        return DMLK_OK;
    }
    *cleared = 1;
    const uint64_t first = begin / 64, last = (end - 1) / 64;
    not_full(to, first, last);
    const bool upwards = to->bits != from->bits || begin <= bit;
    copy_word(to, upwards ? first : last, begin, end, from, bit);
    if (last - first > 1) {
        copy_words(to, first + 1, last - 1, from, bit + ((first + 1) * 64 - begin), upwards);
    }
    if (last > first) {
        copy_word(to, upwards ? last : first, begin, end, from, bit);
    }
    return DMLK_OK;
}

int dmlk_shadow_run(const dmlk_shadow *shadows, uint64_t count, uint64_t address, uint64_t end, int *written,
                    uint64_t *run_end) {
    const dmlk_shadow *shadow = find(shadows, count, address, end - address);
    if (address >= end || shadow == NULL) {
        return DMLK_BAD_ADDRESS;
    }
    const uint64_t bit = bit_of(shadow, address), last = bit_of(shadow, end - 1) / 64;
    uint64_t word = bit / 64, mask = UINT64_MAX << bit % 64;
    *written = read_bits(shadow, bit, 1) != 0;
    const uint64_t other = *written ? UINT64_MAX : 0; /* the state of the run's bits */
    for (; word <= last; word++, mask = UINT64_MAX) {
        const uint64_t differing = (read_word(shadow, word) ^ other) & mask;
        if (differing != 0) {
            const uint64_t stop = shadow->address + (word * 64 + (uint64_t)__builtin_ctzll(differing) - shadow->first);
            *run_end = stop < end ? stop : end;
            return DMLK_OK;
        }
    }
    *run_end = end;
    return DMLK_OK;
}
