/* values.c - classifies the elements of a tensor, for checks of values. */
#include "cpu.h"
#include "view.h"
#include "promoted.h"

#define PIECE 128 /* elements that are classified at a time; their number fits 8 bits */

/* How the bits of an element are interpreted: see values.inc. */
struct type {
    enum dmlk_kind kind;
    uint64_t infinity, lowest, highest;
    uint64_t flip, flip_negative;
    uint64_t magnitude; /* the bits that are 0 in a zero */
};

/* Statistics of a piece of a row; min and max are ordered bits (see values.inc). */
struct piece {
    uint64_t counts[DMLK_VALUE_CLASSES];
    uint64_t min, max;
};

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "values.inc"
#include "each_type.inc"

static const struct {
    void (*scan)(const struct type *type, const uint8_t *at, int64_t stride, int64_t n, struct piece *piece);
    int64_t (*find)(const struct type *type, const uint8_t *at, int64_t stride, int64_t n, uint32_t classes);
} methods[] = {
#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "values_table.inc"
#include "each_type.inc"
};

static struct type type_of(uint32_t number) {
    const uint32_t bits = dmlk_type_bits(number);
    const uint64_t all = UINT64_MAX >> (64 - bits), sign = UINT64_C(1) << (bits - 1);
    struct type type = {.kind = dmlk_type_kind(number), .highest = all, .magnitude = all};
    if (type.kind == DMLK_KIND_FLOAT) {
        type.infinity = bits == 16 ? 0x7c00 : bits == 32 ? 0x7f800000 : 0x7ff0000000000000;
        type.highest = type.infinity - 1;
        type.lowest = type.highest | sign;
        type.flip = sign;
        type.flip_negative = type.magnitude = all ^ sign;
    } else if (type.kind == DMLK_KIND_SIGNED) {
        type.highest = all ^ sign;
        type.lowest = type.flip = sign;
    }
    return type;
}

/* Checks that sizes, strides and type are valid, and that the elements are inside the view's bytes. */
static int check_view(const dmlk_view *view) {
    uint64_t bits;
    if (view->rank < 1 || view->rank > DMLK_MAX_RANK || dmlk_type_bits(view->type) == 0 ||
        dmlk_view_elements(view) < 0) {
        return DMLK_BAD_PACKET;
    }
    for (uint32_t d = 0; d < view->rank; d++) {
        if (view->strides[d] < 0) {
            return DMLK_BAD_PACKET;
        }
    }
    if (dmlk_type_bytes(view->type) == 0) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (view->base == NULL || (uintptr_t)view->base % (uintptr_t)dmlk_type_bytes(view->type) != 0) {
        return DMLK_BAD_ADDRESS;
    }
    return dmlk_view_extent(view, &bits) && bits / 8 <= view->byte_size ? DMLK_OK : DMLK_OUT_OF_RANGE;
}

/* Byte offset of element `index` from the base. */
static int64_t offset_of(const dmlk_view *view, uint64_t index) {
    int64_t offset = 0;
    for (uint32_t d = view->rank; d-- > 0;) {
        const uint64_t size = (uint64_t)view->sizes[d];
        offset += (int64_t)(index % size) * view->strides[d];
        index /= size;
    }
    return offset * dmlk_type_bytes(view->type);
}

static dmlk_number load(uint32_t type, const uint8_t *at) {
    dmlk_promoted x;
    dmlk_load_promoted(type, at, 1, 1, &x);
    return (dmlk_number){.u = x.u[0]};
}

int dmlk_read_element(const dmlk_view *view, uint64_t index, dmlk_number *out) {
    int status = check_view(view);
    if (status != DMLK_OK || index >= (uint64_t)dmlk_view_elements(view)) {
        return status != DMLK_OK ? status : DMLK_OUT_OF_RANGE;
    }
    *out = load(view->type, view->base + offset_of(view, index));
    return DMLK_OK;
}

/* --- scanning --- */

/* The number that values.inc maps to these ordered bits. */
static dmlk_number number_of(uint32_t type, uint64_t ordered) {
    const uint64_t sign = UINT64_C(1) << (dmlk_type_bits(type) - 1);
    uint64_t bits = ordered;
    if (dmlk_type_kind(type) == DMLK_KIND_FLOAT) {
        bits = ordered & sign ? ordered ^ sign : ~ordered;
    } else if (dmlk_type_kind(type) == DMLK_KIND_SIGNED) {
        bits = ordered ^ sign;
    }
    return load(type, (const uint8_t *)&bits); /* little endian: the low bytes */
}

/* The view with each repeated element only once, and how often each is repeated. */
static dmlk_view without_repeats(const dmlk_view *view, uint64_t *repeats) {
    dmlk_view once = *view;
    *repeats = 1;
    for (uint32_t d = 0; d < view->rank; d++) {
        if (view->strides[d] == 0) {
            *repeats *= (uint64_t)view->sizes[d];
            once.sizes[d] = 1;
        }
    }
    return once;
}

/* Index in `view` of element `position` of `once`. */
static uint64_t index_in(const dmlk_view *view, const dmlk_view *once, uint64_t position) {
    uint64_t index = 0, step = 1;
    for (uint32_t d = view->rank; d-- > 0;) {
        index += position % (uint64_t)once->sizes[d] * step;
        position /= (uint64_t)once->sizes[d];
        step *= (uint64_t)view->sizes[d];
    }
    return index;
}

struct scan {
    struct type type;
    uint32_t bits_type;
    uint64_t min, max;
};

static void take_in(struct scan *scan, dmlk_values *out, const uint8_t *at, int64_t stride, int64_t n,
                    uint64_t position) {
    struct piece piece;
    methods[scan->bits_type].scan(&scan->type, at, stride, n, &piece);
    scan->min = piece.min < scan->min ? piece.min : scan->min;
    scan->max = piece.max > scan->max ? piece.max : scan->max;
    for (int class = 0; class < DMLK_VALUE_CLASSES; class++) {
        if (piece.counts[class] > 0 && out->counts[class] == 0) {
            const int64_t i = methods[scan->bits_type].find(&scan->type, at, stride, n, 1u << class);
            out->firsts[class] = position + (uint64_t)dmlk_min(i, n - 1); /* (n: overwritten since) */
        }
        out->counts[class] += piece.counts[class];
    }
}

/* Converts the statistics of `once` to those of the view. */
static void finish(const struct scan *scan, const dmlk_view *view, const dmlk_view *once, uint64_t repeats,
                   dmlk_values *out) {
    for (int class = 0; class < DMLK_VALUE_CLASSES; class++) {
        if (out->counts[class] > 0) {
            out->firsts[class] = index_in(view, once, out->firsts[class]);
            out->counts[class] *= repeats;
        }
    }
    out->count = (uint64_t)dmlk_view_elements(view);
    out->has_finite = out->count > out->counts[DMLK_VALUE_NAN] + out->counts[DMLK_VALUE_INFINITY];
    if (out->has_finite) {
        out->min = number_of(view->type, scan->min);
        out->max = number_of(view->type, scan->max);
    }
}

int dmlk_scan_values(const dmlk_view *view, dmlk_values *out) {
    *out = (dmlk_values){.firsts = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    int status = check_view(view);
    if (status != DMLK_OK) {
        return status;
    }
    uint64_t repeats;
    const dmlk_view once = without_repeats(view, &repeats);
    struct scan scan = {.type = type_of(view->type), .bits_type = dmlk_bits_type(view->type), .min = UINT64_MAX};
    dmlk_iter iter;
    status = dmlk_iter_init(&iter, DMLK_LOGICAL_ORDER, (const dmlk_view *[]){&once}, 1);
    dmlk_cursor cursor;
    dmlk_iter_seek(&iter, 0, &cursor);
    const int64_t stride = dmlk_iter_row_strides(&iter)[0];
    for (int64_t done = 0; done < iter.count;) {
        const int64_t n = dmlk_min(dmlk_iter_row_left(&iter, &cursor), PIECE);
        take_in(&scan, out, cursor.at[0], stride, n, (uint64_t)done);
        dmlk_iter_advance(&iter, &cursor, n);
        done += n;
    }
    finish(&scan, view, &once, repeats, out);
    return status;
}

/* --- finding where NaNs and infinities first appear --- */

/* Whether no element is NaN or infinite. */
static bool all_finite(const dmlk_view *view) {
    const uint32_t classes = 1u << DMLK_VALUE_NAN | 1u << DMLK_VALUE_INFINITY;
    const struct type type = type_of(view->type);
    uint64_t repeats;
    const dmlk_view once = without_repeats(view, &repeats);
    dmlk_iter iter;
    dmlk_cursor cursor;
    if (type.kind != DMLK_KIND_FLOAT ||
        dmlk_iter_init(&iter, DMLK_ANY_ORDER, (const dmlk_view *[]){&once}, 1) != DMLK_OK) {
        return true;
    }
    dmlk_iter_seek(&iter, 0, &cursor);
    const int64_t stride = dmlk_iter_row_strides(&iter)[0];
    for (int64_t done = 0; done < iter.count;) {
        const int64_t n = dmlk_iter_row_left(&iter, &cursor);
        if (methods[dmlk_bits_type(view->type)].find(&type, cursor.at[0], stride, n, classes) < n) {
            return false;
        }
        dmlk_iter_advance(&iter, &cursor, n);
        done += n;
    }
    return true;
}

/* The elements of one source that element `index` was computed from. */
static dmlk_view made_from(const dmlk_source *source, uint64_t index) {
    dmlk_view inner = source->inner;
    inner.base = source->outer.base + offset_of(&source->outer, index);
    return inner;
}

/* Checks that the source has the sizes of the output, and that all elements of the source are inside its bytes. */
static int check_source(const dmlk_view *output, const dmlk_source *source) {
    dmlk_view outer = source->outer, inner = source->inner;
    uint64_t outer_bits, inner_bits;
    if (!dmlk_same_sizes(output, &outer) || outer.type != inner.type) {
        return DMLK_BAD_PACKET;
    }
    inner.base = outer.base;
    inner.byte_size = outer.byte_size;
    int status = check_view(&outer);
    status = status == DMLK_OK ? check_view(&inner) : status;
    if (status == DMLK_OK) {
        dmlk_view_extent(&outer, &outer_bits);
        dmlk_view_extent(&inner, &inner_bits);
        const uint64_t last = (outer_bits - dmlk_type_bits(outer.type)) / 8; /* the last start of inner */
        status = inner_bits / 8 <= outer.byte_size - last ? DMLK_OK : DMLK_OUT_OF_RANGE;
    }
    return status;
}

static bool born_at(const dmlk_source *sources, uint32_t count, uint64_t index) {
    for (uint32_t k = 0; k < count; k++) {
        const dmlk_view from = made_from(&sources[k], index);
        if (!all_finite(&from)) {
            return false;
        }
    }
    return true;
}

int dmlk_find_born(const dmlk_view *output, uint32_t classes, const dmlk_source *sources, uint32_t count,
                   uint64_t from, uint64_t *index) {
    *index = UINT64_MAX;
    int status = check_view(output);
    for (uint32_t k = 0; k < count && status == DMLK_OK; k++) {
        status = check_source(output, &sources[k]);
    }
    dmlk_iter iter;
    if (status == DMLK_OK) {
        status = dmlk_iter_init(&iter, DMLK_LOGICAL_ORDER, (const dmlk_view *[]){output}, 1);
    }
    if (status != DMLK_OK || from >= (uint64_t)iter.count) {
        return status;
    }
    const struct type type = type_of(output->type);
    const int64_t stride = dmlk_iter_row_strides(&iter)[0];
    dmlk_cursor cursor;
    int64_t position = (int64_t)from;
    dmlk_iter_seek(&iter, position, &cursor);
    while (position < iter.count) {
        const int64_t n = dmlk_iter_row_left(&iter, &cursor);
        const int64_t i = methods[dmlk_bits_type(output->type)].find(&type, cursor.at[0], stride, n, classes);
        if (i < n && born_at(sources, count, (uint64_t)(position + i))) {
            *index = (uint64_t)(position + i);
            break;
        }
        const int64_t step = i < n ? i + 1 : n;
        dmlk_iter_advance(&iter, &cursor, step);
        position += step;
    }
    return DMLK_OK;
}
