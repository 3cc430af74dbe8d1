/* footprint.c - the bytes that two footprints share.
 *
 * To find the lowest shared byte, a search descends into both patterns and prunes the parts that cannot overlap: by
 * their first and last byte, and by remainders (two columns of a matrix share no byte, however many rows they have).
 * Patterns that overlap themselves can make the search exponential.  So its steps are limited, and beyond the limit
 * both patterns are painted as bits: time and memory then depend on the interval that they cover, not on the number of
 * elements. */
#include "footprint.h"

#include <stdlib.h>
#include <string.h>

#include "read_set.h"

#define MAX_BITS ((uint64_t)1 << 32) /* the most bits that are painted for one pattern: 512 MiB */

#ifndef MAX_STEPS /* a test sets it to 1 to force painting */
#define MAX_STEPS ((uint64_t)1 << 22) /* of a search */
#endif

/* --- patterns --- */

static void set_spans(dmlk_pattern *p) {
    for (uint32_t d = 0; d < p->rank; d++) {
        p->spans[d + 1] = p->spans[d] + (p->sizes[d] - 1) * p->strides[d];
    }
}

static void remove_dimension(dmlk_pattern *p, uint32_t d) {
    p->rank--;
    memmove(p->sizes + d, p->sizes + d + 1, (p->rank - d) * sizeof p->sizes[0]);
    memmove(p->strides + d, p->strides + d + 1, (p->rank - d) * sizeof p->strides[0]);
}

/* Merges two dimensions whose offsets together are consecutive multiples of the smaller stride. */
static bool merge_two(dmlk_pattern *p) {
    for (uint32_t d = 1; d < p->rank; d++) {
        for (uint32_t e = 0; e < d; e++) {
            const uint64_t ratio = p->strides[d] / p->strides[e];
            if (ratio <= p->sizes[e] && p->strides[d] % p->strides[e] == 0) {
                p->sizes[e] += ratio * (p->sizes[d] - 1);
                remove_dimension(p, d);
                return true;
            }
        }
    }
    return false;
}

static void merge(dmlk_pattern *p) {
    do {
        while (p->rank > 0 && p->strides[0] <= p->spans[0]) { /* merge adjacent blocks */
            p->spans[0] += (p->sizes[0] - 1) * p->strides[0];
            remove_dimension(p, 0);
        }
    } while (merge_two(p));
    set_spans(p);
}

static void insert_dimension(dmlk_pattern *p, uint64_t size, uint64_t stride) {
    uint32_t d = p->rank++;
    for (; d > 0 && p->strides[d - 1] > stride; d--) {
        p->sizes[d] = p->sizes[d - 1];
        p->strides[d] = p->strides[d - 1];
    }
    p->sizes[d] = size;
    p->strides[d] = stride;
}

/* Sets the pattern of dimensions first .. rank - 1 of the footprint; false: it is malformed. */
static bool init_from(dmlk_pattern *p, const dmlk_footprint *f, uint32_t first) {
    if (f->rank > DMLK_MAX_RANK || f->bits == 0 || f->bits % 4 != 0) {
        return false;
    }
    const uint64_t width = f->bits / 4;
    uint64_t span = width, end;
    p->rank = 0;
    p->spans[0] = width;
    for (uint32_t d = f->rank; d-- > first;) { /* the last dimension usually has the smallest stride */
        uint64_t stride, length;
        if (f->sizes[d] == 0) {
            return false;
        }
        if (f->sizes[d] == 1 || f->strides[d] == 0) {
            continue;
        }
        if (__builtin_mul_overflow(f->strides[d], width, &stride) ||
            __builtin_mul_overflow(f->sizes[d] - 1, stride, &length) ||
            __builtin_add_overflow(span, length, &span) || span > UINT64_MAX / 4) {
            return false;
        }
        insert_dimension(p, f->sizes[d], stride);
    }
    merge(p);
    return !__builtin_add_overflow(f->address, span / 2 + span % 2, &end);
}

bool dmlk_pattern_init(dmlk_pattern *pattern, const dmlk_footprint *footprint) {
    return init_from(pattern, footprint, 0);
}

bool dmlk_pattern_to_bytes(dmlk_pattern *p) {
    for (uint32_t d = 0; d < p->rank; d++) {
        if (p->strides[d] % 2 != 0) {
            return false;
        }
    }
    if (p->spans[0] % 2 != 0) {
        p->spans[0]++;
        merge(p);
    }
    return true;
}

/* --- painting: bit arrays, followed by a word of 0 --- */

static const uint64_t even_bits = 0x5555555555555555;

/* 64 bits from `position` on, which is at most the array's end. */
static uint64_t get_bits(const uint64_t *words, uint64_t position) {
    const uint64_t word = position / 64, shift = position % 64;
    return shift == 0 ? words[word] : words[word] >> shift | words[word + 1] << (64 - shift);
}

/* bits |= bits << shift; bits from `end` on are 0. */
static void paint_shifted(uint64_t *words, uint64_t end, uint64_t shift) {
    const uint64_t far = shift / 64, near = shift % 64;
    for (uint64_t word = (end + shift - 1) / 64 + 1; word-- > far;) {
        uint64_t bits = words[word - far] << near;
        if (near != 0 && word > far) {
            bits |= words[word - far - 1] >> (64 - near);
        }
        words[word] |= bits;
    }
}

/* Paints the pattern from bit `begin` (0 or 1) on, one bit per `unit` half bytes.  NULL: out of memory. */
static uint64_t *paint(const dmlk_pattern *p, uint64_t unit, uint64_t begin) {
    uint64_t *words = calloc((begin + dmlk_pattern_span(p) / unit) / 64 + 2, sizeof *words);
    if (words == NULL) {
        return NULL;
    }
    uint64_t end = begin + 1;
    words[0] = (uint64_t)1 << begin;
    for (uint32_t d = 0; d <= p->rank; d++) { /* bits in a block first, then each dimension */
        const uint64_t size = d == 0 ? p->spans[0] / unit : p->sizes[d - 1];
        const uint64_t stride = d == 0 ? 1 : p->strides[d - 1] / unit;
        for (uint64_t done = 1; done < size;) {
            const uint64_t step = done < size - done ? done : size - done;
            paint_shifted(words, end, step * stride);
            end += step * stride;
            done += step;
        }
    }
    return words;
}

/* Sets both bits of each pair in which at least one is set. */
static void paint_pairs(uint64_t *words, uint64_t count) {
    for (uint64_t word = 0; word < count; word++) {
        words[word] |= (words[word] & even_bits) << 1 | (words[word] >> 1 & even_bits);
    }
}

/* Packs every second bit into the lower half. */
static uint64_t squeeze(uint64_t bits) {
    bits &= even_bits;
    bits = (bits | bits >> 1) & 0x3333333333333333;
    bits = (bits | bits >> 2) & 0x0f0f0f0f0f0f0f0f;
    bits = (bits | bits >> 4) & 0x00ff00ff00ff00ff;
    bits = (bits | bits >> 8) & 0x0000ffff0000ffff;
    return (bits | bits >> 16) & 0x00000000ffffffff;
}

uint64_t *dmlk_pattern_paint(const dmlk_pattern *pattern) {
    dmlk_pattern bytes = *pattern;
    if (dmlk_pattern_to_bytes(&bytes)) {
        return paint(&bytes, 2, 0);
    }
    uint64_t *words = paint(pattern, 1, 0);
    if (words != NULL) {
        const uint64_t count = dmlk_pattern_span(pattern) / 64 + 2;
        paint_pairs(words, count);
        for (uint64_t word = 0; word < count / 2; word++) {
            words[word] = squeeze(words[2 * word]) | squeeze(words[2 * word + 1]) << 32;
        }
    }
    return words;
}

/* --- where two patterns overlap --- */

/* Positions are in half bytes from a common origin: pattern a starts at at_a, b at at_b. */
struct search {
    const dmlk_pattern *a, *b;
    bool bytes;     /* the two halves of a byte also count as an overlap; begin and end are then even */
    bool found;
    uint64_t begin; /* search from here */
    uint64_t end;   /* search up to here: the lowest overlap found so far */
    uint64_t steps; /* left before both are painted */
};

struct interval {
    uint64_t begin, end;
};

static struct interval cover(const struct search *s, uint64_t begin, uint64_t size) {
    struct interval i = {begin, begin + size};
    if (s->bytes) {
        i.begin -= i.begin % 2;
        i.end += i.end % 2;
    }
    return i;
}

/* Whether two intervals that repeat every `period` never overlap. */
static bool never_meet(const struct search *s, uint64_t period, uint64_t at_a, uint64_t span_a, uint64_t at_b,
                       uint64_t span_b) {
    struct interval a = cover(s, at_a, span_a), b = cover(s, at_b, span_b);
    if (s->bytes && period % 2 != 0) { /* they start at even and at odd half bytes: widen both ends by one */
        a = (struct interval){at_a, at_a + span_a + 2};
        b = (struct interval){at_b, at_b + span_b + 2};
    }
    const uint64_t before = a.begin <= b.begin ? 0 : (a.begin - b.begin) % period;
    const uint64_t after = a.begin <= b.begin ? (b.begin - a.begin) % period : (period - before) % period;
    const uint64_t size_a = a.end - a.begin, size_b = b.end - b.begin;
    return size_a <= after && size_b <= period && after <= period - size_b;
}

/* Whether remainders prove that the lowest rank_a and rank_b dimensions of the patterns do not overlap.  For each
 * group of dimensions, the steps are multiples of a period, within which the other dimensions cover an interval. */
static bool apart(const struct search *s, uint32_t rank_a, uint64_t at_a, uint32_t rank_b, uint64_t at_b) {
    uint64_t period_a = 0;
    for (uint32_t d = rank_a + 1; d-- > 0;) {
        period_a = d < rank_a ? dmlk_gcd(period_a, s->a->strides[d]) : 0;
        uint64_t period = period_a;
        for (uint32_t e = rank_b + 1; e-- > 0;) {
            period = e < rank_b ? dmlk_gcd(period, s->b->strides[e]) : period;
            if (period != 0 && never_meet(s, period, at_a, s->a->spans[d], at_b, s->b->spans[e])) {
                return true;
            }
        }
    }
    return false;
}

/* Finds the first and last index of a dimension that may reach into the interval; false: none does.  (With `bytes`,
 * the interval consists of whole bytes.) */
static bool index_range(struct interval in, uint64_t at, uint64_t size, uint64_t stride, uint64_t inner,
                        uint64_t *first, uint64_t *last) {
    const uint64_t reach = at + inner;
    if (at >= in.end) {
        return false;
    }
    *first = reach > in.begin ? 0 : (in.begin - reach) / stride + 1;
    *last = (in.end - 1 - at) / stride;
    *last = *last < size - 1 ? *last : size - 1;
    return *first <= *last;
}

/* Searches for a lower overlap of the lowest rank_a and rank_b dimensions, which start at at_a and at_b. */
static void descend(struct search *s, uint32_t rank_a, uint64_t at_a, uint32_t rank_b, uint64_t at_b) {
    const struct interval a = cover(s, at_a, s->a->spans[rank_a]), b = cover(s, at_b, s->b->spans[rank_b]);
    struct interval in = {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
    in.begin = in.begin > s->begin ? in.begin : s->begin;
    in.end = in.end < s->end ? in.end : s->end;
    if (in.begin >= in.end) {
        return;
    }
    if (rank_a == 0 && rank_b == 0) {
        s->end = in.begin;
        s->found = true;
        return;
    }
    const bool split_a = rank_b == 0 || (rank_a > 0 && s->a->spans[rank_a] >= s->b->spans[rank_b]);
    const dmlk_pattern *p = split_a ? s->a : s->b;
    const uint32_t d = (split_a ? rank_a : rank_b) - 1;
    uint64_t first, last;
    if (!index_range(in, split_a ? at_a : at_b, p->sizes[d], p->strides[d], p->spans[d], &first, &last) ||
        (last - first > 3 && apart(s, rank_a, at_a, rank_b, at_b))) {
        return;
    }
    for (uint64_t i = first; i <= last && s->steps > 0; i++) {
        const uint64_t step = i * p->strides[d];
        if ((split_a ? at_a : at_b) + step >= s->end) {
            return;
        }
        s->steps--;
        if (split_a) {
            descend(s, d, at_a + step, rank_b, at_b);
        } else {
            descend(s, rank_a, at_a, d, at_b + step);
        }
    }
}

/* Removes the part of the pattern that is outside the search's interval; false: nothing remains. */
static bool trim(const struct search *s, dmlk_pattern *p, uint64_t *at) {
    const struct interval in = {s->begin, s->end};
    for (uint32_t d = p->rank; d-- > 0;) {
        uint64_t first, last;
        const uint64_t others = dmlk_pattern_span(p) - (p->sizes[d] - 1) * p->strides[d];
        if (!index_range(in, *at, p->sizes[d], p->strides[d], others, &first, &last)) {
            return false;
        }
        *at += first * p->strides[d];
        p->sizes[d] = last - first + 1;
        if (p->sizes[d] == 1) {
            remove_dimension(p, d);
        }
        set_spans(p);
    }
    return true;
}

/* The first bit in [begin, end) that is set in both; false: none. */
static bool first_common(const uint64_t *a, uint64_t at_a, const uint64_t *b, uint64_t at_b, uint64_t begin,
                         uint64_t end, uint64_t *first) {
    for (uint64_t at = begin; at < end; at += 64) {
        const uint64_t common = get_bits(a, at - at_a) & get_bits(b, at - at_b);
        if (common != 0) {
            *first = at + (uint64_t)__builtin_ctzll(common);
            return *first < end;
        }
    }
    return false;
}

/* The part of a pattern that is compared as bits. */
struct painting {
    dmlk_pattern pattern;
    uint64_t at, begin, end; /* half bytes; bit 0 is `begin`, which is `at` or one less */
    uint64_t *words;
};

static bool paint_for(const struct search *s, struct painting *p, uint64_t unit) {
    const bool pairs = s->bytes && unit % 2 != 0;
    const uint64_t size = dmlk_pattern_span(&p->pattern) / unit;
    p->begin = p->at - (pairs ? p->at % 2 : 0);
    p->end = p->at + size * unit;
    p->end += pairs ? p->end % 2 : 0;
    p->words = size <= MAX_BITS ? paint(&p->pattern, unit, p->at - p->begin) : NULL;
    if (p->words != NULL && pairs) {
        paint_pairs(p->words, (p->at - p->begin + size) / 64 + 1);
    }
    return p->words != NULL;
}

static uint64_t common_unit(const dmlk_pattern *p, uint64_t unit) {
    unit = dmlk_gcd(unit, p->spans[0]);
    for (uint32_t d = 0; d < p->rank; d++) {
        unit = dmlk_gcd(unit, p->strides[d]);
    }
    return unit;
}

/* Returns 1, 0 or -1, as dmlk_footprints_meet does. */
static int meet_painted(const struct search *s, uint64_t at_a, uint64_t at_b, uint64_t *first) {
    struct painting a = {.pattern = *s->a, .at = at_a}, b = {.pattern = *s->b, .at = at_b};
    if (!trim(s, &a.pattern, &a.at) || !trim(s, &b.pattern, &b.at)) {
        return 0;
    }
    uint64_t unit = a.at > b.at ? a.at - b.at : b.at - a.at;
    unit = common_unit(&a.pattern, common_unit(&b.pattern, unit));
    unit = s->bytes && unit % 2 != 0 ? 1 : unit;
    int status = -1;
    if (paint_for(s, &a, unit) && paint_for(s, &b, unit)) {
        /* In units, from the start of the painting that starts first. */
        const uint64_t origin = a.begin < b.begin ? a.begin : b.begin;
        struct interval in = {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
        in.begin = in.begin > s->begin ? in.begin : s->begin;
        in.end = in.end < s->end ? in.end : s->end;
        in.begin = (in.begin - origin) / unit;
        in.end = in.end > origin ? (in.end - origin + unit - 1) / unit : 0;
        status = first_common(a.words, (a.begin - origin) / unit, b.words, (b.begin - origin) / unit, in.begin,
                              in.end, first);
        *first = origin + *first * unit;
        *first = *first > s->begin ? *first : s->begin;
    }
    free(a.words);
    free(b.words);
    return status;
}

/* Finds the lowest overlap in the interval; returns 1, 0 or -1, as dmlk_footprints_meet does. */
static int meet(const dmlk_pattern *a, uint64_t at_a, const dmlk_pattern *b, uint64_t at_b, bool bytes,
                struct interval in, uint64_t *first) {
    /* A step takes as long as painting about 1000 half bytes. */
    const uint64_t steps = 256 + (in.end - in.begin) / 1024;
    struct search s = {a, b, bytes, false, in.begin, in.end, steps < MAX_STEPS ? steps : MAX_STEPS};
    descend(&s, a->rank, at_a, b->rank, at_b);
    int status = s.found;
    *first = s.end;
    if (s.steps == 0) {
        uint64_t lower = 0;
        const int painted = meet_painted(&s, at_a, at_b, &lower);
        if (painted == 1) {
            *first = lower;
        }
        status = s.found ? 1 : painted;
    }
    return status;
}

/* A footprint prepared for several comparisons. */
struct place {
    uint64_t begin, end; /* addresses */
    bool whole;          /* the pattern consists of whole bytes */
    dmlk_pattern pattern;
};

static bool init_place(struct place *p, const dmlk_footprint *f, int64_t shift) {
    if (!dmlk_pattern_init(&p->pattern, f)) {
        return false;
    }
    p->whole = dmlk_pattern_to_bytes(&p->pattern);
    const uint64_t span = dmlk_pattern_span(&p->pattern);
    return !__builtin_add_overflow(f->address, shift, &p->begin) &&
           !__builtin_add_overflow(p->begin, span / 2 + span % 2, &p->end);
}

static int meet_places(const struct place *a, const struct place *b, uint64_t low, uint64_t high, uint64_t *byte) {
    struct interval in = {a->begin > b->begin ? a->begin : b->begin, a->end < b->end ? a->end : b->end};
    in.begin = in.begin > low ? in.begin : low;
    in.end = in.end < high ? in.end : high;
    if (in.begin >= in.end) {
        return 0;
    }
    const uint64_t origin = a->begin < b->begin ? a->begin : b->begin;
    in.begin = (in.begin - origin) * 2;
    in.end = (in.end - origin) * 2;
    uint64_t first = 0;
    const int status = meet(&a->pattern, (a->begin - origin) * 2, &b->pattern, (b->begin - origin) * 2,
                            !a->whole || !b->whole, in, &first);
    *byte = status == 1 ? origin + first / 2 : *byte;
    return status;
}

int dmlk_footprints_meet(const dmlk_footprint *a, const dmlk_footprint *b, int64_t shift, uint64_t low,
                         uint64_t high, uint64_t *byte) {
    struct place place_a, place_b;
    if (!init_place(&place_a, a, 0) || !init_place(&place_b, b, shift)) {
        return -1;
    }
    return meet_places(&place_a, &place_b, low, high, byte);
}

int64_t dmlk_footprints_find(const dmlk_footprint *a, const dmlk_footprint *entries, const uint8_t *skip,
                             uint64_t start, uint64_t count, uint64_t *byte) {
    const uint32_t changes = DMLK_WRITE | DMLK_UNDEFINE;
    const uint32_t concerned = a->access & changes ? UINT32_MAX : changes;
    struct place place, other;
    bool ready = false;
    for (uint64_t i = start; i < count; i++) {
        const dmlk_footprint *entry = &entries[i];
        if (entry->address >= a->end || a->address >= entry->end || !(entry->access & concerned) ||
            (skip != NULL && skip[i] != 0)) {
            continue;
        }
        if (!ready && !init_place(&place, a, 0)) {
            return -1;
        }
        ready = true;
        if (init_place(&other, entry, 0) && meet_places(&place, &other, 0, UINT64_MAX, byte) == 1) {
            return (int64_t)i;
        }
    }
    return -1;
}

/* --- from a byte to its element --- */

int dmlk_footprint_holds(const dmlk_footprint *f, uint64_t address) {
    struct place place;
    if (!init_place(&place, f, 0)) {
        return -1;
    }
    if (address >= place.end) {
        return 0;
    }
    const struct place byte = {address, address + 1, true, {.rank = 0, .spans = {2}}};
    uint64_t unused;
    return meet_places(&place, &byte, 0, UINT64_MAX, &unused);
}

/* Finds the smallest index of dimension d for which the inner dimensions reach the byte at `byte`, if the outer
 * dimensions start at `at` (half bytes from the address): an overlap of the inner dimensions with the byte moved back
 * by each index.  Computed in reverse, so that the smallest index is found first. */
static int find_index(const dmlk_footprint *f, uint32_t d, uint64_t at, uint64_t byte, uint64_t end,
                      uint64_t *index) {
    const uint64_t stride = f->strides[d] * (f->bits / 4);
    dmlk_pattern bytes = {.rank = 1, .sizes = {f->sizes[d]}, .strides = {stride}, .spans = {2}}, behind;
    if (!init_from(&behind, f, d + 1)) {
        return -1;
    }
    merge(&bytes);
    const uint64_t at_bytes = end - byte - 2, at_behind = end - at - dmlk_pattern_span(&behind);
    uint64_t first;
    const int status = meet(&bytes, at_bytes, &behind, at_behind, false, (struct interval){0, end}, &first);
    *index = status != 1 || first < at_bytes + 2 ? 0 : (first - at_bytes - 2) / stride + 1;
    return status;
}

int dmlk_footprint_index(const dmlk_footprint *f, uint64_t address, uint64_t *index) {
    dmlk_pattern pattern;
    if (!dmlk_pattern_init(&pattern, f)) {
        return -1;
    }
    const uint64_t end = dmlk_pattern_span(&pattern) + 2;
    if (address < f->address || address - f->address >= end / 2) {
        return 0;
    }
    const uint64_t byte = 2 * (address - f->address), width = f->bits / 4;
    uint64_t at = 0;
    for (uint32_t d = 0; d < f->rank; d++) {
        index[d] = 0;
        if (f->sizes[d] > 1 && f->strides[d] > 0) {
            const int status = find_index(f, d, at, byte, end, &index[d]);
            if (status != 1) {
                return status;
            }
            at += index[d] * f->strides[d] * width;
        }
    }
    if (at >= byte + 2 || byte >= at + width) {
        return 0;
    }
    for (uint32_t d = 0; d < f->rank; d++) { /* of the tensor */
        index[d] = f->first[d] + index[d] * (f->skipped[d] + UINT64_C(1));
    }
    return 1;
}
