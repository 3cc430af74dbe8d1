#include "view.h"

int64_t dmlk_view_elements(const dmlk_view *view) {
    int64_t count = 1;
    for (uint32_t d = 0; d < view->rank; d++) {
        if (view->sizes[d] <= 0 || __builtin_mul_overflow(count, view->sizes[d], &count)) {
            return -1;
        }
    }
    return count;
}

bool dmlk_view_extent(const dmlk_view *view, uint64_t *bits) {
    uint64_t elements = 1;
    for (uint32_t d = 0; d < view->rank; d++) {
        uint64_t span;
        if (__builtin_mul_overflow((uint64_t)view->sizes[d] - 1, (uint64_t)view->strides[d], &span) ||
            __builtin_add_overflow(elements, span, &elements)) {
            return false;
        }
    }
    return !__builtin_mul_overflow(elements, (uint64_t)dmlk_type_bits(view->type), bits);
}

bool dmlk_same_sizes(const dmlk_view *a, const dmlk_view *b) {
    bool same = a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = a->sizes[d] == b->sizes[d];
    }
    return same;
}

dmlk_view dmlk_view_select(const dmlk_view *view, uint32_t axes_mask) {
    dmlk_view result = *view;
    result.rank = 0;
    for (uint32_t d = 0; d < view->rank; d++) {
        if (axes_mask >> d & 1) {
            result.sizes[result.rank] = view->sizes[d];
            result.strides[result.rank++] = view->strides[d];
        }
    }
    if (result.rank == 0) {
        result.sizes[0] = 1;
        result.strides[0] = 0;
        result.rank = 1;
    }
    return result;
}

/* Whether loop `a` belongs inside loop `b`: by the strides of the output, then those of the inputs. */
static bool is_inner(const dmlk_iter *iter, uint32_t a, uint32_t b) {
    for (uint32_t k = iter->operands; k-- > 0;) {
        if (iter->strides[a][k] != iter->strides[b][k]) {
            return iter->strides[a][k] < iter->strides[b][k];
        }
    }
    return false;
}

void dmlk_iter_swap(dmlk_iter *iter, uint32_t a, uint32_t b) {
    int64_t size = iter->sizes[a];
    iter->sizes[a] = iter->sizes[b];
    iter->sizes[b] = size;
    for (uint32_t k = 0; k < iter->operands; k++) {
        int64_t stride = iter->strides[a][k];
        iter->strides[a][k] = iter->strides[b][k];
        iter->strides[b][k] = stride;
    }
}

static void sort_loops(dmlk_iter *iter) {
    for (uint32_t last = 1; last < iter->rank; last++) {
        for (uint32_t d = last; d > 0 && is_inner(iter, d - 1, d); d--) {
            dmlk_iter_swap(iter, d - 1, d);
        }
    }
}

/* Whether a step of loop `outer` equals a whole run of loop `inner`, in every operand. */
static bool can_merge(const dmlk_iter *iter, uint32_t outer, uint32_t inner) {
    for (uint32_t k = 0; k < iter->operands; k++) {
        int64_t run;
        if (__builtin_mul_overflow(iter->sizes[inner], iter->strides[inner][k], &run) ||
            iter->strides[outer][k] != run) {
            return false;
        }
    }
    return true;
}

static void merge_loops(dmlk_iter *iter) {
    uint32_t kept = 0;
    for (uint32_t d = 1; d < iter->rank; d++) {
        int64_t size = iter->sizes[d];
        if (can_merge(iter, kept, d)) {
            size *= iter->sizes[kept];
        } else {
            kept++;
        }
        iter->sizes[kept] = size;
        for (uint32_t k = 0; k < iter->operands; k++) {
            iter->strides[kept][k] = iter->strides[d][k];
        }
    }
    iter->rank = kept + 1;
}

int dmlk_iter_init(dmlk_iter *iter, enum dmlk_order order, const dmlk_view *const *views, uint32_t operands) {
    if (operands > DMLK_MAX_OPERANDS) {
        return DMLK_NOT_IMPLEMENTED;
    }
    iter->operands = operands;
    iter->rank = 0;
    iter->count = dmlk_view_elements(views[0]);
    for (uint32_t k = 0; k < operands; k++) {
        if (!dmlk_same_sizes(views[0], views[k])) {
            return DMLK_BAD_PACKET;
        }
        iter->base[k] = views[k]->base;
        iter->bytes[k] = dmlk_type_bytes(views[k]->type);
        if (iter->bytes[k] == 0) {
            return DMLK_NOT_IMPLEMENTED;
        }
    }
    for (uint32_t d = 0; d < views[0]->rank; d++) {
        if (views[0]->sizes[d] == 1) {
            continue;
        }
        iter->sizes[iter->rank] = views[0]->sizes[d];
        for (uint32_t k = 0; k < operands; k++) {
            iter->strides[iter->rank][k] = views[k]->strides[d];
        }
        iter->rank++;
    }
    if (iter->rank == 0) { /* a single element */
        iter->rank = 1;
        iter->sizes[0] = 1;
        memset(iter->strides[0], 0, operands * sizeof iter->strides[0][0]);
    }
    if (order == DMLK_ANY_ORDER) {
        sort_loops(iter);
    }
    merge_loops(iter);
    return DMLK_OK;
}

void dmlk_iter_seek(const dmlk_iter *iter, int64_t position, dmlk_cursor *cursor) {
    memcpy(cursor->at, iter->base, iter->operands * sizeof cursor->at[0]);
    for (uint32_t d = iter->rank; d-- > 0;) {
        cursor->index[d] = position % iter->sizes[d];
        position /= iter->sizes[d];
        for (uint32_t k = 0; k < iter->operands; k++) {
            cursor->at[k] += cursor->index[d] * iter->strides[d][k] * iter->bytes[k];
        }
    }
}

/* Moves the cursor along loop d. */
static void move(const dmlk_iter *iter, dmlk_cursor *cursor, uint32_t d, int64_t steps) {
    cursor->index[d] += steps;
    for (uint32_t k = 0; k < iter->operands; k++) {
        cursor->at[k] += steps * iter->strides[d][k] * iter->bytes[k];
    }
}

void dmlk_iter_advance(const dmlk_iter *iter, dmlk_cursor *cursor, int64_t count) {
    uint32_t d = iter->rank - 1;
    if (cursor->index[d] + count < iter->sizes[d]) {
        move(iter, cursor, d, count);
        return;
    }
    /* Moves to the start of the next row: resets the loops that ended, and steps the next outer one. */
    move(iter, cursor, d, -cursor->index[d]);
    while (d-- > 0) {
        if (cursor->index[d] + 1 < iter->sizes[d]) {
            move(iter, cursor, d, 1);
            return;
        }
        move(iter, cursor, d, -cursor->index[d]);
    }
}
