/* The host can stop every long-running kernel. */
#include <stdatomic.h>
#include <time.h>

#include "convolution_float.h"
#include "convolution_integer.h"
#include "cumulative.h"
#include "device.h"
#include "element_wise.h"
#include "gemm.h"
#include "nonzero_coordinates.h"
#include "reduce.h"
#include "selection.h"
#include "softmax.h"

#define BIG (INT64_C(1) << 20)

static atomic_int polls;

static int poll_once(void) {
    polls++;
    return 1;
}

static int never(void) {
    polls++;
    return 0;
}

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Adds a tensor of these sizes whose elements are all the same in memory (stride 0). */
static void repeated(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes) {
    const int64_t strides[DMLK_MAX_RANK] = {0};
    const int64_t first[DMLK_MAX_RANK] = {0};
    set_element(device_tensor(d, type, rank, sizes, strides), first, 1);
}

/* The packet would run for minutes: it stops soon after the first and only poll. */
static void expect_stopped(device *d) {
    polls = 0;
    dmlk_set_poll(poll_once);
    const double begin = seconds();
    CHECK_EQUAL(device_dispatch(d), DMLK_STOPPED);
    CHECK_EQUAL(d->fault.status, DMLK_STOPPED);
    CHECK_EQUAL(polls, 1);
    CHECK(seconds() - begin < 5);
    dmlk_set_poll(NULL);
    device_end(d);
}

TEST(rows) {
    device d;
    device_begin(&d, "tanh");
    repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){BIG, BIG});
    repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){BIG, BIG});
    const dmlk_element_wise k = {0};
    device_constants(&d, &k, sizeof k, 0);
    expect_stopped(&d);
}

/* Inputs with another order of axes: one that is read across rows, and one whose rows are short. */
TEST(tiles) {
    const int64_t sizes[] = {1 << 12, 1 << 7, 1 << 6};
    const int64_t strides[][3] = {{1, 1 << 12, 1 << 19}, {1 << 6, 1 << 18, 1}};
    for (int i = 0; i < 2; i++) {
        device d;
        device_begin(&d, "gelu");
        const dmlk_view *in = device_tensor(&d, DMLK_FLOAT32, 3, sizes, strides[i]);
        memset(in->base, 0x3E, in->byte_size); /* 0.2 */
        device_tensor(&d, DMLK_FLOAT32, 3, sizes, NULL);
        const dmlk_element_wise k = {0};
        device_constants(&d, &k, sizeof k, 0);
        expect_stopped(&d);
    }
}

TEST(reductions) {
    for (uint32_t mask = 1; mask <= 2; mask++) { /* few outputs of many inputs, then many of few */
        for (uint32_t kernel = 0; kernel < dmlk_kernel_count(); kernel++) {
            const char *name = dmlk_kernel_name(kernel);
            const bool place = strncmp(name, "reduce_arg", strlen("reduce_arg")) == 0;
            if (strcmp(dmlk_kernel_family(kernel), "reduce") != 0) {
                continue;
            }
            device d;
            device_begin(&d, name);
            repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){BIG, BIG});
            repeated(&d, place ? DMLK_INT32 : DMLK_FLOAT32, 2,
                     mask == 1 ? (const int64_t[]){1, BIG} : (const int64_t[]){BIG, 1});
            const dmlk_reduce k = {.axes_mask = mask};
            device_constants(&d, &k, sizeof k, 0);
            expect_stopped(&d);
        }
    }
}

static void stop_a_long_line(const char *kernel, int threads) {
    const int before = dmlk_threads();
    dmlk_set_threads(threads);
    device d;
    device_begin(&d, kernel);
    repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){BIG, BIG});
    repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){1, 1});
    const dmlk_reduce k = {.axes_mask = 3};
    device_constants(&d, &k, sizeof k, 0);
    expect_stopped(&d);
    dmlk_set_threads(before);
}

/* Segments of one line, all processed by one thread. */
TEST(a_long_line) { stop_a_long_line("reduce_sum", 1); }

/* Fills fresh memory, so that bytes that threads did not write are not valid bools, and UndefinedBehaviorSanitizer
 * reports their use. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "max_malloc_fill_size=100000000"; }

TEST(segments_that_no_thread_takes) { stop_a_long_line("reduce_log_sum_exp", 3); }

/* Softmax and scans, along and across lines. */
TEST(lines) {
    static const char *const names[] = {"softmax", "log_softmax", "cumulative_summation", "cumulative_product"};
    for (int i = 0; i < 8; i++) {
        const dmlk_softmax softmax = {.axes_mask = 1u << i % 2};
        const dmlk_cumulative cumulative = {.axis = (uint32_t)i % 2};
        device d;
        device_begin(&d, names[i / 2]);
        repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){BIG, BIG});
        repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){BIG, BIG});
        if (i < 4) {
            device_constants(&d, &softmax, sizeof softmax, 0);
        } else {
            device_constants(&d, &cumulative, sizeof cumulative, 0);
        }
        expect_stopped(&d);
    }
}

TEST(products) {
    device d;
    device_begin(&d, "gemm");
    repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){8192, 1 << 16});
    repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){1 << 16, 8192});
    device_no_tensor(&d);
    repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){8192, 8192});
    const dmlk_gemm k = {.alpha = 1};
    device_constants(&d, &k, sizeof k, 0);
    expect_stopped(&d);
}

TEST(convolutions) {
    const int64_t sizes[][3][4] = {
        {{1, 64, 4096, 4096}, {64, 64, 3, 3}, {1, 64, 4094, 4094}},            /* many positions */
        {{1, 4096, 64, 64}, {4096, 4096, 1, 1}, {1, 4096, 64, 64}},            /* many channels */
        {{1, 1, 1, INT64_C(1) << 22}, {64, 1, 1, INT64_C(1) << 21}, {1, 64, 1, (INT64_C(1) << 21) + 1}},
    };
    for (int i = 0; i < 3; i++) {
        device d;
        device_begin(&d, "convolution_integer");
        repeated(&d, DMLK_INT8, 4, sizes[i][0]);
        device_no_tensor(&d);
        repeated(&d, DMLK_INT8, 4, sizes[i][1]);
        device_no_tensor(&d);
        device_no_tensor(&d);
        repeated(&d, DMLK_INT32, 4, sizes[i][2]);
        const dmlk_convolution_integer k = {.spatial = 2, .groups = 1, .strides = {1, 1}, .dilations = {1, 1}};
        device_constants(&d, &k, sizeof k, 0);
        expect_stopped(&d);
    }
}

/* Filters that are too large to be packed; all windows but the last are outside the input. */
TEST(windows_outside_of_the_input) {
    const int64_t sizes[] = {1, INT64_C(1) << 28, 1, 1}, out[] = {1, 1, 1, (INT64_C(1) << 22) + 1};
    device d;
    device_begin(&d, "convolution_integer");
    repeated(&d, DMLK_INT8, 4, sizes);
    device_no_tensor(&d);
    repeated(&d, DMLK_INT8, 4, sizes);
    device_no_tensor(&d);
    device_no_tensor(&d);
    repeated(&d, DMLK_INT32, 4, out);
    const dmlk_convolution_integer k = {
        .spatial = 2, .groups = 1, .strides = {1, 1}, .dilations = {1, 1}, .start_padding = {0, 1 << 22}};
    device_constants(&d, &k, sizeof k, 0);
    expect_stopped(&d);
}

TEST(a_row_of_few_columns) {
    device d;
    device_begin(&d, "gemm");
    repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){1, UINT32_MAX});
    const int64_t sizes[] = {UINT32_MAX, 8}, strides[] = {0, 1}, one[] = {1, 8};
    device_tensor(&d, DMLK_FLOAT32, 2, sizes, strides);
    device_no_tensor(&d);
    device_tensor(&d, DMLK_FLOAT32, 2, one, NULL);
    const dmlk_gemm k = {.alpha = 1};
    device_constants(&d, &k, sizeof k, 0);
    expect_stopped(&d);
}

/* Backward convolutions first check whether the filter is finite; with a stride, they process taps one by one. */
TEST(filters_of_floats) {
    const int64_t sizes[] = {1, 1, 1 << 16, 1 << 16}, filter[] = {1, 1, 1, 1 << 16, 1 << 16}, one[] = {1, 1, 1, 1};
    for (uint32_t stride = 1; stride <= 2; stride++) {
        const uint32_t start = ((1 << 16) - 1) * stride;
        const dmlk_convolution_float k = {.spatial = 2,
                                          .backward = 1,
                                          .strides = {stride, stride},
                                          .dilations = {1, 1},
                                          .start_padding = {start, start}};
        device d;
        device_begin(&d, "convolution_float");
        repeated(&d, DMLK_FLOAT32, 4, sizes);
        repeated(&d, DMLK_FLOAT32, 5, filter);
        device_no_tensor(&d);
        device_tensor(&d, DMLK_FLOAT32, 4, one, NULL);
        device_constants(&d, &k, sizeof k, 0);
        expect_stopped(&d);
    }
}

TEST(coordinates) {
    for (uint32_t rank = 1; rank <= 4; rank += 3) { /* one long row, and short ones */
        const int64_t long_row[] = {INT64_C(1) << 31}, short_rows[] = {1 << 10, 1 << 10, 1 << 10, 2};
        device d;
        device_begin(&d, "nonzero_coordinates");
        repeated(&d, DMLK_UINT8, rank, rank == 1 ? long_row : short_rows);
        device_tensor(&d, DMLK_UINT32, 1, (const int64_t[]){1}, NULL);
        repeated(&d, DMLK_UINT32, 2, (const int64_t[]){INT64_C(1) << 31, rank});
        const dmlk_nonzero_coordinates k = {.columns = rank};
        device_constants(&d, &k, sizeof k, 0);
        expect_stopped(&d);
    }
}

/* The search for bad indices can be stopped, too. */
TEST(indices) {
    const int64_t sizes[] = {BIG, BIG};
    dmlk_bad_index bad;
    device d;
    device_begin(&d, "gather");
    repeated(&d, DMLK_FLOAT32, 2, sizes);
    repeated(&d, DMLK_UINT32, 2, sizes);
    repeated(&d, DMLK_FLOAT32, 2, sizes);
    const dmlk_selection k = {.axis = 0, .count = 1, .own = 1, .trailing = 1};
    device_constants(&d, &k, sizeof k, 0);
    polls = 0;
    dmlk_set_poll(poll_once);
    CHECK_EQUAL(dmlk_find_bad_index(d.packet, d.packet_size, d.segments, d.segment_count, &bad), -1);
    CHECK_EQUAL(polls, 1);
    dmlk_set_poll(NULL);
    device_end(&d);
}

/* The search for different values of one element can be stopped, too: while it reads indices, and while it compares
 * blocks. */
TEST(scatter_races) {
    const int64_t table[] = {4, 1 << 28}, values[] = {2, 1 << 28}, one_of_each[] = {2};
    for (uint32_t of_blocks = 0; of_blocks < 2; of_blocks++) {
        const dmlk_selection k = {.count = 1, .own = 1, .trailing = !of_blocks};
        dmlk_scatter_race race;
        device d;
        device_begin(&d, "scatter");
        repeated(&d, DMLK_UINT8, 2, table);
        repeated(&d, DMLK_UINT32, of_blocks ? 1 : 2, of_blocks ? one_of_each : values);
        repeated(&d, DMLK_UINT8, 2, values);
        repeated(&d, DMLK_UINT8, 2, table);
        device_constants(&d, &k, sizeof k, 0);
        polls = 0;
        dmlk_set_poll(poll_once);
        CHECK_EQUAL(dmlk_find_scatter_race(d.packet, d.packet_size, d.segments, d.segment_count, &race), -1);
        CHECK_EQUAL(polls, 1);
        dmlk_set_poll(NULL);
        device_end(&d);
    }
}

/* A host that does not stop the kernel changes nothing, and short kernels do not poll. */
TEST(kernels_go_on) {
    const int64_t sizes[] = {64, 64};
    device d;
    device_begin(&d, "copy");
    fill_random(device_tensor(&d, DMLK_FLOAT32, 2, sizes, NULL), 1, 9);
    device_tensor(&d, DMLK_FLOAT32, 2, sizes, NULL);
    device_constants(&d, NULL, 0, 0);
    polls = 0;
    dmlk_set_poll(never);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    dmlk_set_poll(NULL);
    CHECK_EQUAL(polls, 0);
    CHECK(memcmp(d.views[0].base, d.views[1].base, d.views[0].byte_size) == 0);
    device_end(&d);

    device_begin(&d, "reduce_sum");
    repeated(&d, DMLK_INT32, 2, (const int64_t[]){1 << 10, 1 << 18});
    repeated(&d, DMLK_INT32, 2, (const int64_t[]){1, 1});
    const dmlk_reduce k = {.axes_mask = 3};
    device_constants(&d, &k, sizeof k, 0);
    dmlk_set_poll(never);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    dmlk_set_poll(NULL);
    CHECK_EQUAL(*(const int32_t *)d.views[1].base, 1 << 28);
    device_end(&d);
}

/* The host may dispatch while it is polled; that dispatch runs to completion. */
static device inner;

static int poll_that_dispatches(void) {
    CHECK_EQUAL(device_dispatch(&inner), DMLK_OK);
    return poll_once();
}

TEST(dispatches_inside_a_poll) {
    const int64_t sizes[] = {4};
    device_begin(&inner, "copy");
    fill_random(device_tensor(&inner, DMLK_FLOAT32, 1, sizes, NULL), 1, 9);
    device_tensor(&inner, DMLK_FLOAT32, 1, sizes, NULL);
    device_constants(&inner, NULL, 0, 0);

    device d;
    device_begin(&d, "copy");
    repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){BIG, BIG});
    repeated(&d, DMLK_FLOAT32, 2, (const int64_t[]){BIG, BIG});
    device_constants(&d, NULL, 0, 0);
    polls = 0;
    dmlk_set_poll(poll_that_dispatches);
    CHECK_EQUAL(device_dispatch(&d), DMLK_STOPPED);
    dmlk_set_poll(NULL);
    CHECK_EQUAL(polls, 1);
    CHECK(memcmp(inner.views[0].base, inner.views[1].base, 16) == 0);
    device_end(&d);
    device_end(&inner);
}

/* The search for the elements that a gather reads can be stopped, too. */
TEST(gathers_reads) {
    const int64_t table[] = {4, 1 << 28}, indices[] = {2, 1 << 28};
    const dmlk_selection k = {.count = 1, .own = 1, .trailing = 1};
    dmlk_footprint footprints[8];
    device d;
    device_begin(&d, "gather");
    repeated(&d, DMLK_UINT8, 2, table);
    repeated(&d, DMLK_UINT32, 2, indices);
    repeated(&d, DMLK_UINT8, 2, indices);
    device_constants(&d, &k, sizeof k, 0);
    for (uint32_t i = 0; i < 3; i++) {
        dmlk_tensor tensor = device_get_tensor(&d, i);
        tensor.access = i < 2 ? DMLK_READ : DMLK_WRITE;
        device_set_tensor(&d, i, &tensor);
    }
    polls = 0;
    dmlk_set_poll(poll_once);
    CHECK_EQUAL(dmlk_footprints(d.packet, d.packet_size, d.segments, d.segment_count, 0, footprints, 8), -1);
    CHECK_EQUAL(polls, 1);
    dmlk_set_poll(NULL);
    device_end(&d);
}

int main(void) {
    RUN(rows);
    RUN(tiles);
    RUN(reductions);
    RUN(a_long_line);
    RUN(segments_that_no_thread_takes);
    RUN(lines);
    RUN(products);
    RUN(convolutions);
    RUN(windows_outside_of_the_input);
    RUN(a_row_of_few_columns);
    RUN(filters_of_floats);
    RUN(coordinates);
    RUN(indices);
    RUN(scatter_races);
    RUN(gathers_reads);
    RUN(kernels_go_on);
    RUN(dispatches_inside_a_poll);
    return RESULT();
}
