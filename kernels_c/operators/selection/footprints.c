/* footprints.c - which elements gathers and scatters read, and which elements scatters write twice. */
#include <stdlib.h>

#include "resolve.h"
#include "selection.h"

/* --- the selected elements, piece by piece --- */

/* `count` consecutive elements in the logical order of the selection, from element number `position` on.  Element i
 * of these is element value + i * value_step of the values and table + i * table_step + offsets[i] of the table; a
 * selection by numbers gives numbers of elements, any other one offsets. */
struct piece {
    int64_t position, value, value_step, table, table_step, count;
    const int64_t *offsets;
};

typedef void take_piece(const struct piece *piece, void *context);

/* Passes on the pieces of one row; returns early if the host stops the search. */
static void take_row(const dmlk_selected *s, struct piece piece, const uint8_t *indices, bool drop, take_piece *take,
                     void *context, int64_t *work) {
    dmlk_resolve *resolve = dmlk_resolve_of(s->indices.type);
    const int64_t stride = s->indices.strides[s->indices.rank - 1], bytes = dmlk_type_bytes(s->indices.type);
    int64_t offsets[DMLK_CHUNK];
    piece.offsets = offsets;
    for (int64_t left = piece.count; left > 0 && !dmlk_stopped(work, DMLK_CHUNK); left -= piece.count) {
        piece.count = dmlk_min(left, DMLK_CHUNK);
        resolve(s, indices, stride, piece.count, drop, offsets);
        take(&piece, context);
        indices += piece.count * stride * bytes;
        piece.position += piece.count;
        piece.value += piece.count * piece.value_step;
        piece.table += piece.count * piece.table_step;
    }
}

/* `drop`: see resolve.h. */
static void take_pieces(const dmlk_selected *s, bool drop, take_piece *take, void *context) {
    const uint32_t last = s->values.rank - 1;
    const int64_t bytes = dmlk_type_bytes(s->indices.type), row = s->values.sizes[last];
    int64_t index[DMLK_MAX_RANK] = {0};
    const int64_t elements = dmlk_view_elements(&s->values);
    int64_t work = 0;
    for (int64_t position = 0; position < elements && !dmlk_stopped(&work, 1); position += row) {
        const uint8_t *indices = s->indices.base;
        struct piece piece = {.position = position,
                              .value_step = s->values.strides[last],
                              .table_step = s->table.strides[last],
                              .count = row};
        for (uint32_t d = 0; d < last; d++) {
            indices += index[d] * s->indices.strides[d] * bytes;
            piece.value += index[d] * s->values.strides[d];
            piece.table += index[d] * s->table.strides[d];
        }
        take_row(s, piece, indices, drop, take, context, &work);
        for (uint32_t d = last; d-- > 0 && ++index[d] == s->values.sizes[d];) {
            index[d] = 0;
        }
    }
}

/* --- the kernels' tensors --- */

static bool begin(const dmlk_call *call, uint32_t views, dmlk_selection *k) {
    return call->view_count == views && dmlk_get_constants(call, k, sizeof *k) &&
           dmlk_resolve_of(call->views[1].type) != NULL;
}

/* The selection by numbers of elements, in logical order, of table and values instead of offsets. */
static bool select_numbers(const dmlk_selection *k, const dmlk_view *table, const dmlk_view *indices,
                           const dmlk_view *values, dmlk_selected *s) {
    const dmlk_view numbered_table = dmlk_view_numbered(table), numbered_values = dmlk_view_numbered(values);
    return dmlk_selected_init(k, &numbered_table, indices, &numbered_values, s);
}

static void use_of(const dmlk_selection *k, const dmlk_selected *s, uint32_t target, dmlk_index_use *use) {
    *use = (dmlk_index_use){.indices = 1, .target = target, .axis = k->axis, .count = s->count};
    memcpy(use->sizes, s->sizes, s->count * sizeof use->sizes[0]);
}

static bool can_inspect(const dmlk_view *views, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (views[i].base == NULL || dmlk_view_elements(&views[i]) > DMLK_MOST_LOOKED_AT) {
            return false;
        }
    }
    return true;
}

/* --- gather --- */

bool dmlk_indices_gather(const dmlk_call *call, dmlk_index_use *use) {
    dmlk_selection k;
    dmlk_selected s;
    if (!begin(call, 3, &k) || !dmlk_selected_init(&k, &call->views[0], &call->views[1], &call->views[2], &s)) {
        return false;
    }
    use_of(&k, &s, 0, use);
    return true;
}

static void mark(uint64_t *marks, int64_t number) { marks[number / 64] |= UINT64_C(1) << number % 64; }

static void mark_table(const struct piece *piece, void *marks) {
    for (int64_t i = 0; i < piece->count; i++) {
        mark(marks, piece->table + i * piece->table_step + piece->offsets[i]);
    }
}

void dmlk_reads_gather(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_selection k;
    dmlk_selected s;
    if (tensor != 0 || !begin(call, 3, &k) ||
        !select_numbers(&k, &call->views[0], &call->views[1], &call->views[2], &s)) {
        return;
    }
    uint64_t *marks = dmlk_begin_marks(call, tensor, reads);
    if (marks != NULL) {
        take_pieces(&s, false, mark_table, marks);
    }
}

/* --- scatter --- */

bool dmlk_indices_scatter(const dmlk_call *call, dmlk_index_use *use) {
    dmlk_selection k;
    dmlk_selected s;
    if (!begin(call, 4, &k) || k.may_miss != 0 ||
        !dmlk_selected_init(&k, &call->views[3], &call->views[1], &call->views[2], &s)) {
        return false;
    }
    use_of(&k, &s, 3, use);
    return true;
}

struct hits {
    uint64_t *marks; /* of the values that are written; NULL: they are only counted */
    int64_t count;
};

static void mark_hits(const struct piece *piece, void *context) {
    struct hits *hits = context;
    for (int64_t i = 0; i < piece->count; i++) {
        if (piece->offsets[i] != DMLK_MISSED) {
            hits->count++;
            if (hits->marks != NULL) {
                mark(hits->marks, piece->value + i * piece->value_step);
            }
        }
    }
}

/* A value whose indices are out of range is not read.  Before the indices are known, any value may be read. */
void dmlk_reads_scatter(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_selection k;
    dmlk_selected s;
    struct hits hits = {0};
    if (tensor != 2 || !begin(call, 4, &k) || !can_inspect(call->views, 4) ||
        !select_numbers(&k, &call->views[3], &call->views[1], &call->views[2], &s)) {
        return;
    }
    const dmlk_view *values = &call->views[2];
    uint64_t bits;
    take_pieces(&s, true, mark_hits, &hits);
    if (hits.count == 0) {
        reads->counts[0] = 0;
        return;
    }
    const bool is_one = dmlk_view_extent(values, &bits) && bits == dmlk_type_bits(values->type);
    if (is_one || hits.count == dmlk_view_elements(values)) {
        return;
    }
    hits.marks = dmlk_begin_marks(call, tensor, reads);
    if (hits.marks != NULL) {
        take_pieces(&s, true, mark_hits, &hits);
    }
}

/* --- races --- */

struct cut;

/* The writes of a scatter, in the logical order of the selection: each writes the block of values at a position to
 * the block of the table that starts at element `slot`. */
struct writes {
    const dmlk_call *call;
    const struct cut *cut;
    dmlk_scatter_race *race;
    uint64_t *seen, *twice; /* a bit for each slot: written, written more than once */
    bool any_twice;
    uint32_t *before; /* for each word of `twice`, the number of 1 bits in earlier words */
    int64_t *last;    /* for each slot that is written twice, the position of the last write + 1, or REPORTED */
    int64_t first;    /* the slot that `race` describes */
    int64_t work;
};

#define REPORTED (-1) /* two writes to the slot differ, and were counted */

static bool is_marked(const uint64_t *marks, int64_t number) { return marks[number / 64] >> number % 64 & 1; }

static void find_twice(const struct piece *piece, void *context) {
    struct writes *w = context;
    for (int64_t i = 0; i < piece->count; i++) {
        if (piece->offsets[i] != DMLK_MISSED) {
            const int64_t slot = piece->table + i * piece->table_step + piece->offsets[i];
            if (is_marked(w->seen, slot)) {
                mark(w->twice, slot);
                w->any_twice = true;
            }
            mark(w->seen, slot);
        }
    }
}

/* The selection cut into writes, along the axes that the indices have; the other axes form the block of one write. */
struct cut {
    dmlk_view values, numbered_values, numbered_indices; /* along the axes of the indices */
    dmlk_view block, numbered_block, numbered_table;     /* values and table, along the other axes */
};

/* The offset of element number `position` of a view, last axis fastest, in the units of its strides. */
static int64_t offset_of(const dmlk_view *view, int64_t position) {
    int64_t offset = 0;
    for (uint32_t d = view->rank; d-- > 0;) {
        offset += position % view->sizes[d] * view->strides[d];
        position /= view->sizes[d];
    }
    return offset;
}

/* The number of the first element in which the two blocks differ; -1: there is none, or the host stopped the search. */
static int64_t find_difference(const struct cut *cut, int64_t a, int64_t b, int64_t *work) {
    const int64_t bytes = dmlk_type_bytes(cut->values.type), count = dmlk_view_elements(&cut->block);
    const uint8_t *base = cut->values.base;
    const int64_t first = offset_of(&cut->values, a), second = offset_of(&cut->values, b);
    for (int64_t i = 0; i < count && !dmlk_stopped(work, 1); i++) {
        const int64_t at = offset_of(&cut->block, i);
        if (memcmp(base + (first + at) * bytes, base + (second + at) * bytes, (size_t)bytes) != 0) {
            return i;
        }
    }
    return -1;
}

static void describe(const dmlk_call *call, const struct cut *cut, int64_t slot, const int64_t positions[2],
                     int64_t in_block, dmlk_scatter_race *race) {
    race->indices = 1;
    race->values = 2;
    race->target = 3;
    race->element = (uint64_t)(slot + offset_of(&cut->numbered_table, in_block));
    for (int i = 0; i < 2; i++) {
        const int64_t block = offset_of(&cut->numbered_values, positions[i]);
        race->index_elements[i] = (uint64_t)offset_of(&cut->numbered_indices, positions[i]);
        race->value_elements[i] = (uint64_t)(block + offset_of(&cut->numbered_block, in_block));
        dmlk_read_element(&call->views[2], race->value_elements[i], &race->written[i]);
    }
}

/* Compares each write with the one before it to the same slot: if all neighbours are equal, all are. */
static void compare(const struct piece *piece, void *context) {
    struct writes *w = context;
    for (int64_t i = 0; i < piece->count; i++) {
        const int64_t slot = piece->table + i * piece->table_step + piece->offsets[i], position = piece->position + i;
        if (piece->offsets[i] == DMLK_MISSED || !is_marked(w->twice, slot)) {
            continue;
        }
        const uint64_t lower = w->twice[slot / 64] & ((UINT64_C(1) << slot % 64) - 1);
        int64_t *last = &w->last[w->before[slot / 64] + (uint32_t)__builtin_popcountll(lower)];
        const int64_t in_block = *last > 0 ? find_difference(w->cut, *last - 1, position, &w->work) : -1;
        if (in_block >= 0) {
            if (w->race->count++ == 0 || slot < w->first) {
                w->first = slot;
                describe(w->call, w->cut, slot, (int64_t[]){*last - 1, position}, in_block, w->race);
            }
            *last = REPORTED;
        } else if (*last != REPORTED) {
            *last = position + 1;
        }
    }
}

/* Allocates the memory for `compare`. */
static bool begin_comparisons(struct writes *w, size_t words) {
    uint32_t count = 0;
    w->before = malloc(words * sizeof *w->before);
    for (size_t i = 0; w->before != NULL && i < words; i++) {
        w->before[i] = count;
        count += (uint32_t)__builtin_popcountll(w->twice[i]);
    }
    w->last = calloc(count, sizeof *w->last);
    return w->before != NULL && w->last != NULL;
}

/* Sets the cut, and the selection of whole blocks by number; false: the tensors do not fit the kernel. */
static bool begin_races(const dmlk_call *call, struct cut *cut, dmlk_selected *blocks) {
    dmlk_selection k;
    dmlk_selected s, numbers;
    const dmlk_view *views = call->views;
    if (!begin(call, 4, &k) || !can_inspect(views, 4) || dmlk_bits_type(views[2].type) == DMLK_UNKNOWN) {
        return false;
    }
    const dmlk_view indices = dmlk_view_numbered(&views[1]);
    if (!select_numbers(&k, &views[3], &views[1], &views[2], &numbers) ||
        !dmlk_selected_init(&k, &views[3], &indices, &views[2], &s) || s.own == 0) {
        return false;
    }
    *cut = (struct cut){.values = dmlk_view_select(&s.values, s.indexed),
                        .numbered_values = dmlk_view_select(&numbers.values, s.indexed),
                        .numbered_indices = dmlk_view_select(&s.indices, s.indexed),
                        .block = dmlk_view_select(&s.values, ~s.indexed),
                        .numbered_block = dmlk_view_select(&numbers.values, ~s.indexed),
                        .numbered_table = dmlk_view_select(&numbers.table, ~s.indexed)};
    *blocks = numbers;
    blocks->values = cut->numbered_values;
    blocks->table = dmlk_view_select(&numbers.table, s.indexed);
    blocks->indices = dmlk_view_select(&numbers.indices, s.indexed);
    return true;
}

bool dmlk_races_scatter(const dmlk_call *call, dmlk_scatter_race *race) {
    struct cut cut;
    dmlk_selected blocks;
    struct writes w = {.call = call, .cut = &cut, .race = race};
    race->count = 0;
    if (!begin_races(call, &cut, &blocks)) {
        return false;
    }
    const size_t words = (size_t)dmlk_view_elements(&call->views[3]) / 64 + 1;
    w.seen = calloc(words, sizeof *w.seen);
    w.twice = calloc(words, sizeof *w.twice);
    if (w.seen != NULL && w.twice != NULL) {
        take_pieces(&blocks, true, find_twice, &w);
    }
    if (w.any_twice && begin_comparisons(&w, words)) {
        take_pieces(&blocks, true, compare, &w);
    }
    free(w.last);
    free(w.before);
    free(w.twice);
    free(w.seen);
    return race->count > 0;
}
