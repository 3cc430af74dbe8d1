/* Views and the iterator over them. */
#include "device.h"
#include "staged_rows.h"
#include "view.h"

static dmlk_view make_view(uint32_t rank, const int64_t *sizes, const int64_t *strides) {
    dmlk_view view = {.type = DMLK_UINT8, .rank = rank};
    memcpy(view.sizes, sizes, rank * sizeof *sizes);
    memcpy(view.strides, strides, rank * sizeof *strides);
    return view;
}

TEST(packed_views_become_one_row) {
    const dmlk_view view = make_view(4, (int64_t[]){2, 1, 3, 4}, (int64_t[]){12, 99, 4, 1});
    dmlk_iter iter;
    CHECK_EQUAL(dmlk_iter_init(&iter, DMLK_LOGICAL_ORDER, (const dmlk_view *[]){&view, &view}, 2), DMLK_OK);
    CHECK_EQUAL(iter.rank, 1);
    CHECK_EQUAL(iter.sizes[0], 24);
    CHECK_EQUAL(iter.strides[0][0], 1);
}

TEST(axes_merge_only_if_contiguous_in_all_operands) {
    const dmlk_view packed = make_view(2, (int64_t[]){3, 4}, (int64_t[]){4, 1});
    const dmlk_view padded = make_view(2, (int64_t[]){3, 4}, (int64_t[]){5, 1});
    dmlk_iter iter;
    CHECK_EQUAL(dmlk_iter_init(&iter, DMLK_ANY_ORDER, (const dmlk_view *[]){&packed, &padded}, 2), DMLK_OK);
    CHECK_EQUAL(iter.rank, 2);
}

TEST(innermost_loop_has_the_smallest_output_stride) {
    const dmlk_view in = make_view(3, (int64_t[]){2, 3, 4}, (int64_t[]){12, 4, 1});
    const dmlk_view out = make_view(3, (int64_t[]){2, 3, 4}, (int64_t[]){1, 2, 7});
    dmlk_iter iter;
    CHECK_EQUAL(dmlk_iter_init(&iter, DMLK_ANY_ORDER, (const dmlk_view *[]){&in, &out}, 2), DMLK_OK);
    CHECK_EQUAL(iter.rank, 3);
    CHECK_EQUAL(iter.strides[2][1], 1);
    CHECK_EQUAL(iter.strides[0][1], 7);
    CHECK_EQUAL(iter.strides[2][0], 12);
}

TEST(broadcast_axes_merge) {
    const dmlk_view view = make_view(3, (int64_t[]){5, 6, 7}, (int64_t[]){0, 0, 0});
    dmlk_iter iter;
    CHECK_EQUAL(dmlk_iter_init(&iter, DMLK_LOGICAL_ORDER, (const dmlk_view *[]){&view}, 1), DMLK_OK);
    CHECK_EQUAL(iter.rank, 1);
    CHECK_EQUAL(iter.count, 210);
}

TEST(different_sizes_are_refused) {
    const dmlk_view a = make_view(2, (int64_t[]){3, 4}, (int64_t[]){4, 1});
    const dmlk_view b = make_view(2, (int64_t[]){4, 3}, (int64_t[]){3, 1});
    dmlk_iter iter;
    CHECK_EQUAL(dmlk_iter_init(&iter, DMLK_ANY_ORDER, (const dmlk_view *[]){&a, &b}, 2), DMLK_BAD_PACKET);
}

TEST(half_bytes_are_refused) {
    dmlk_view view = make_view(1, (int64_t[]){3}, (int64_t[]){1});
    view.type = DMLK_INT4;
    dmlk_iter iter;
    CHECK_EQUAL(dmlk_iter_init(&iter, DMLK_ANY_ORDER, (const dmlk_view *[]){&view}, 1), DMLK_NOT_IMPLEMENTED);
}

/* Advancing by steps of any length, from any position, visits the elements in logical order. */
TEST(cursor_follows_logical_order) {
    for (int round = 0; round < 300; round++) {
        int64_t sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK];
        const uint32_t rank = random_sizes(sizes);
        random_strides(rank, sizes, true, strides);
        const dmlk_view view = make_view(rank, sizes, strides);
        dmlk_iter iter;
        CHECK_EQUAL(dmlk_iter_init(&iter, DMLK_LOGICAL_ORDER, (const dmlk_view *[]){&view}, 1), DMLK_OK);
        int64_t index[DMLK_MAX_RANK] = {0};
        int64_t position = random_between(0, iter.count - 1);
        for (int64_t i = 0; i < position; i++) {
            next_index(rank, sizes, index);
        }
        dmlk_cursor cursor;
        dmlk_iter_seek(&iter, position, &cursor);
        while (position < iter.count) {
            const int64_t steps = random_between(1, dmlk_iter_row_left(&iter, &cursor));
            for (int64_t i = 0; i < steps; i++) {
                CHECK(cursor.at[0] + i * dmlk_iter_row_strides(&iter)[0] == element_at(&view, index));
                next_index(rank, sizes, index);
            }
            dmlk_iter_advance(&iter, &cursor, steps);
            position += steps;
        }
        CHECK_EQUAL(position, iter.count);
    }
}

static void count_visit(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    (void)context;
    for (int64_t i = 0; i < count; i++) {
        at[0][i * strides[0]]++;
    }
}

TEST(rows_visit_every_element_once) {
    for (int round = 0; round < 200; round++) {
        int64_t sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK];
        uint32_t rank = random_sizes(sizes);
        if (round == 0) { /* enough for several threads */
            rank = 2;
            sizes[0] = 1100;
            sizes[1] = 1001;
        }
        random_strides(rank, sizes, false, strides);
        device d;
        device_begin(&d, "copy");
        const dmlk_view *view = device_tensor(&d, DMLK_UINT8, rank, sizes, strides);
        fill_random(view, 0, 0);
        CHECK_EQUAL(dmlk_for_rows(&view, 1, count_visit, NULL), DMLK_OK);
        int64_t index[DMLK_MAX_RANK] = {0}, visits = 0, elements = 0;
        do {
            visits += *element_at(view, index) == 1;
            elements++;
        } while (next_index(rank, sizes, index));
        CHECK_EQUAL(visits, elements);
        CHECK(gaps_untouched(view));
        device_end(&d);
    }
}

/* The last operand becomes the sum of the others. */
static void add_all(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const uint32_t out = *(const uint32_t *)context - 1;
    for (int64_t i = 0; i < count; i++) {
        int32_t sum = 0;
        for (uint32_t k = 0; k < out; k++) {
            sum += ((const int32_t *)at[k])[i * strides[k]];
        }
        ((int32_t *)at[out])[i * strides[out]] = sum;
    }
}

/* Any layouts, so that rows, tiles and pieces occur, in memory of exactly their size. */
TEST(loops_go_over_many_operands) {
    for (uint32_t round = 0; round < 400; round++) {
        const uint32_t operands = 2 + round % (DMLK_MAX_OPERANDS - 1), out = operands - 1;
        int64_t sizes[DMLK_MAX_RANK], index[DMLK_MAX_RANK] = {0}, wrong = 0;
        const uint32_t rank = random_sizes(sizes);
        dmlk_view views[DMLK_MAX_OPERANDS];
        const dmlk_view *all[DMLK_MAX_OPERANDS];
        for (uint32_t k = 0; k < operands; k++) {
            int64_t strides[DMLK_MAX_RANK];
            uint64_t bits = 0;
            random_strides(rank, sizes, k < out, strides);
            views[k] = make_view(rank, sizes, strides);
            views[k].type = DMLK_INT32;
            CHECK(dmlk_view_extent(&views[k], &bits));
            views[k].byte_size = bits / 8;
            views[k].base = malloc(bits / 8);
            memset(views[k].base, DEVICE_UNTOUCHED, bits / 8);
            if (k < out) {
                fill_random(&views[k], -9, 9);
            }
            all[k] = &views[k];
        }
        CHECK_EQUAL((round % 2 ? dmlk_for_rows : dmlk_staged_rows)(all, operands, add_all, &operands), DMLK_OK);
        do {
            double sum = 0;
            for (uint32_t k = 0; k < out; k++) {
                sum += get_element(&views[k], index);
            }
            wrong += get_element(&views[out], index) != sum;
        } while (next_index(rank, sizes, index));
        CHECK_EQUAL(wrong, 0);
        CHECK(gaps_untouched(&views[out]));
        for (uint32_t k = 0; k < operands; k++) {
            free(views[k].base);
        }
    }
}

TEST(more_operands_are_refused) {
    const dmlk_view view = make_view(1, (int64_t[]){2}, (int64_t[]){1});
    const dmlk_view *all[DMLK_MAX_OPERANDS + 1];
    dmlk_iter iter;
    for (uint32_t k = 0; k <= DMLK_MAX_OPERANDS; k++) {
        all[k] = &view;
    }
    CHECK_EQUAL(dmlk_iter_init(&iter, DMLK_ANY_ORDER, all, DMLK_MAX_OPERANDS), DMLK_OK);
    CHECK_EQUAL(dmlk_iter_init(&iter, DMLK_ANY_ORDER, all, DMLK_MAX_OPERANDS + 1), DMLK_NOT_IMPLEMENTED);
}

TEST(counts_and_extents_are_checked_for_overflow) {
    const int64_t big = UINT32_MAX;
    dmlk_view view = make_view(3, (int64_t[]){big, big, big}, (int64_t[]){0, 0, 0});
    CHECK_EQUAL(dmlk_view_elements(&view), -1);
    view = make_view(2, (int64_t[]){3, 0}, (int64_t[]){1, 1});
    CHECK_EQUAL(dmlk_view_elements(&view), -1);
    uint64_t bits;
    view = make_view(2, (int64_t[]){big, big}, (int64_t[]){big, big});
    CHECK(!dmlk_view_extent(&view, &bits));
    view = make_view(2, (int64_t[]){3, 4}, (int64_t[]){10, 2});
    view.type = DMLK_UINT4;
    CHECK(dmlk_view_extent(&view, &bits));
    CHECK_EQUAL(bits, (2 * 10 + 3 * 2 + 1) * 4);
}

int main(void) {
    RUN(packed_views_become_one_row);
    RUN(axes_merge_only_if_contiguous_in_all_operands);
    RUN(innermost_loop_has_the_smallest_output_stride);
    RUN(broadcast_axes_merge);
    RUN(different_sizes_are_refused);
    RUN(half_bytes_are_refused);
    RUN(cursor_follows_logical_order);
    RUN(rows_visit_every_element_once);
    RUN(loops_go_over_many_operands);
    RUN(more_operands_are_refused);
    RUN(counts_and_extents_are_checked_for_overflow);
    return RESULT();
}
