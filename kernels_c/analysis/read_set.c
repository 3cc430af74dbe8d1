#include "read_set.h"

#include <stdlib.h>

#include "view.h"

/* --- data-dependent reads --- */

uint64_t *dmlk_begin_marks(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    bool known = true;
    for (uint32_t k = 0; k < call->view_count; k++) {
        const dmlk_view *view = &call->views[k];
        known = known && (view->rank == 0 || (view->base != NULL && dmlk_view_elements(view) <= DMLK_MOST_LOOKED_AT));
    }
    const uint64_t elements = (uint64_t)dmlk_view_elements(&call->views[tensor]);
    reads->by_data = true;
    reads->marks = known ? calloc(elements / 64 + 1, sizeof *reads->marks) : NULL;
    return reads->marks;
}

struct boxes {
    const uint64_t *marks;
    uint32_t rank;
    const int64_t *sizes;
    uint64_t steps[DMLK_MAX_RANK]; /* elements from one index of an axis to the next */
    dmlk_slice box[DMLK_MAX_RANK];
    uint64_t left; /* boxes left */
    dmlk_take_box *take;
    void *context;
};

/* The first marked element in [at, end), or `end`. */
static uint64_t next_marked(const uint64_t *marks, uint64_t at, uint64_t end) {
    while (at < end) {
        const uint64_t rest = marks[at / 64] >> at % 64;
        if (rest != 0) {
            at += (uint64_t)__builtin_ctzll(rest);
            return at < end ? at : end;
        }
        at += 64 - at % 64;
    }
    return end;
}

static uint64_t get_marks(const uint64_t *marks, uint64_t at, uint64_t count) {
    const uint64_t shift = at % 64;
    uint64_t bits = marks[at / 64] >> shift;
    if (shift + count > 64) {
        bits |= marks[at / 64 + 1] << (64 - shift);
    }
    return count < 64 ? bits & ((UINT64_C(1) << count) - 1) : bits;
}

static bool same_marks(const uint64_t *marks, uint64_t a, uint64_t b, uint64_t count) {
    bool same = true;
    for (uint64_t i = 0; i < count && same; i += 64) {
        const uint64_t part = count - i < 64 ? count - i : 64;
        same = get_marks(marks, a + i, part) == get_marks(marks, b + i, part);
    }
    return same;
}

/* Passes on the boxes of axis d and the inner axes, starting at element `at`: equally spaced indices with the same
 * marks in the inner axes share a box.  False: there are too many. */
static bool take_boxes(struct boxes *b, uint32_t d, uint64_t at) {
    if (d == b->rank) {
        b->take(b->box, b->context);
        return true;
    }
    const uint64_t step = b->steps[d], end = at + (uint64_t)b->sizes[d] * step;
    uint64_t marked = next_marked(b->marks, at, end);
    while (marked < end) {
        const uint64_t first = (marked - at) / step;
        uint64_t last = first, apart = 1, count = 1;
        while ((marked = next_marked(b->marks, at + (last + 1) * step, end)) < end) {
            const uint64_t next = (marked - at) / step;
            if ((count > 1 && next - last != apart) ||
                !same_marks(b->marks, at + first * step, at + next * step, step)) {
                break;
            }
            apart = next - last;
            last = next;
            count++;
        }
        if (d + 1 == b->rank && b->left-- == 0) {
            return false;
        }
        b->box[d] = (dmlk_slice){.first = (int64_t)first, .step = (int64_t)apart, .count = (int64_t)count};
        if (!take_boxes(b, d + 1, at + first * step)) {
            return false;
        }
    }
    return true;
}

bool dmlk_marks_to_boxes(const uint64_t *marks, uint32_t rank, const int64_t *sizes, uint32_t most,
                         dmlk_take_box *take, void *context) {
    struct boxes b = {.marks = marks, .rank = rank, .sizes = sizes, .left = most, .take = take, .context = context};
    uint64_t step = 1;
    for (uint32_t d = rank; d-- > 0;) {
        b.steps[d] = step;
        step *= (uint64_t)sizes[d];
    }
    return take_boxes(&b, 0, 0);
}
