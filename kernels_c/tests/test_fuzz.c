/* Broken packets and descriptors.  Whatever they hold, a dispatch must stay inside the memory given
 * to it (the sanitizers watch, and every third round the checked kernels) and answer with a status. */
#include "convolution_integer.h"
#include "device.h"
#include "element.h"
#include "element_wise_unary.h"
#include "gemm.h"
#include "nonzero_coordinates.h"
#include "reduce.h"

static const dmlk_view *add(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes, bool input) {
    int64_t strides[DMLK_MAX_RANK];
    random_strides(rank, sizes, input, strides);
    const dmlk_view *view = device_tensor(d, type, rank, sizes, strides);
    for (uint64_t i = 0; i < view->byte_size; i++) {
        view->base[i] = (uint8_t)random_bits();
    }
    return view;
}

#define SIZES(...) (const int64_t[]){__VA_ARGS__}

/* The tensors before the last one are only read. */
static void set_inputs(device *d) {
    for (uint32_t k = 0; k + 1 < d->tensor_count; k++) {
        dmlk_tensor tensor = device_get_tensor(d, k);
        tensor.access = DMLK_READ;
        device_set_tensor(d, k, &tensor);
    }
}

static void begin_convolution(device *d) {
    const dmlk_convolution_integer k = {.spatial = 2,
                                        .groups = 1,
                                        .strides = {1, 2},
                                        .dilations = {1, 1},
                                        .start_padding = {1, 0},
                                        .end_padding = {0, 2}};
    device_begin(d, "convolution_integer");
    add(d, DMLK_UINT8, 4, SIZES(1, 2, 4, 5), true);
    add(d, DMLK_UINT8, 1, SIZES(1), true);
    add(d, DMLK_INT8, 4, SIZES(3, 2, 3, 2), true);
    add(d, DMLK_INT8, 1, SIZES(3), true);
    add(d, DMLK_INT32, 4, SIZES(1, 3, 3, 3), false);
    set_inputs(d);
    device_constants(d, &k, sizeof k, 0);
}

static void begin_gemm(device *d) {
    const dmlk_gemm k = {.trans_b = 1, .alpha = 1, .beta = 1};
    device_begin(d, "gemm");
    add(d, DMLK_FLOAT16, 3, SIZES(2, 3, 4), true);
    add(d, DMLK_FLOAT16, 3, SIZES(2, 5, 4), true);
    add(d, DMLK_FLOAT16, 3, SIZES(2, 3, 5), true);
    add(d, DMLK_FLOAT32, 3, SIZES(2, 3, 5), false);
    set_inputs(d);
    device_constants(d, &k, sizeof k, 0);
}

static void begin_reduce(device *d) {
    const dmlk_reduce k = {.function = (uint32_t)random_between(0, 11), .axes_mask = 5};
    device_begin(d, "reduce");
    add(d, DMLK_FLOAT32, 3, SIZES(2, 3, 4), true);
    add(d, k.function <= DMLK_REDUCE_ARGMIN ? DMLK_UINT32 : DMLK_FLOAT32, 3, SIZES(1, 3, 1), false);
    device_constants(d, &k, sizeof k, 0);
}

static void begin_nonzero(device *d) {
    const dmlk_nonzero_coordinates k = {.columns = 2};
    device_begin(d, "nonzero_coordinates");
    add(d, DMLK_INT16, 3, SIZES(1, 3, 4), true);
    add(d, DMLK_UINT32, 3, SIZES(1, 1, 1), false);
    add(d, DMLK_UINT32, 3, SIZES(1, 12, 2), false);
    device_constants(d, &k, sizeof k, (uint32_t)random_between(0, 1));
}

static void begin_unary(device *d) {
    static const enum dmlk_type types[] = {DMLK_FLOAT32, DMLK_FLOAT16, DMLK_UINT8, DMLK_INT32, DMLK_INT64};
    const dmlk_element_wise_unary k = {.function = (uint32_t)random_between(0, 18),
                                       .has_scale_bias = (uint32_t)random_between(0, 1),
                                       .scale = 3,
                                       .alpha = 1,
                                       .min_bits = random_bits(),
                                       .max_bits = random_bits()};
    const enum dmlk_type type = types[random_between(0, 4)];
    device_begin(d, "element_wise_unary");
    add(d, type, 4, SIZES(2, 3, 1, 4), true);
    add(d, type, 4, SIZES(2, 3, 1, 4), false);
    device_constants(d, &k, sizeof k, 0);
}

/* Any kernel, with tensors of equal sizes and constants of some size. */
static void begin_any(device *d) {
    static const enum dmlk_type types[] = {DMLK_FLOAT32, DMLK_FLOAT16, DMLK_UINT8, DMLK_INT8,
                                           DMLK_INT32,   DMLK_UINT32,  DMLK_INT64};
    int64_t sizes[DMLK_MAX_RANK];
    device_begin(d, dmlk_kernel_name((uint32_t)random_between(0, dmlk_kernel_count() - 1)));
    const int64_t tensors = random_between(2, 5);
    const uint32_t rank = (uint32_t)random_between(1, 5);
    const enum dmlk_type type = types[random_between(0, 6)];
    for (uint32_t i = 0; i < rank; i++) {
        sizes[i] = random_between(1, 4);
    }
    for (int64_t k = 0; k < tensors; k++) {
        add(d, random_between(0, 4) ? type : types[random_between(0, 6)], rank, sizes, k + 1 < tensors);
    }
    static const uint32_t constant_sizes[] = {
        0, 4, 12, 16, sizeof(dmlk_convolution_integer), sizeof(dmlk_element_wise_unary)};
    uint32_t constants[16];
    for (int i = 0; i < 16; i++) {
        constants[i] = random_between(0, 3) ? (uint32_t)random_between(0, 4) : (uint32_t)random_bits();
    }
    device_constants(d, constants, constant_sizes[random_between(0, 5)], (uint32_t)random_between(0, 1));
}

static void (*const begins[])(device *) = {begin_convolution, begin_gemm,  begin_reduce, begin_nonzero,
                                           begin_unary,       begin_any,   begin_any};

/* A number that is likely to hit an edge. */
static uint32_t nasty(void) {
    static const uint32_t numbers[] = {0, 1,  2,   3,     4,          5,          7,          8,
                                       9, 16, 255, 65535, 0x7fffffff, 0x80000000, UINT32_MAX, UINT32_MAX - 1};
    return random_between(0, 9) ? numbers[random_between(0, 15)] : (uint32_t)random_bits();
}

static void break_something(device *d) {
    const uint32_t word = nasty();
    if (random_between(0, 3) == 0) {
        uint8_t *heap = (uint8_t *)d->descriptors;
        memcpy(heap + 4 * random_between(0, DEVICE_MAX_TENSORS * 8 - 1), &word, sizeof word);
    } else if (random_between(0, 9) == 0) {
        d->packet_size = (uint32_t)random_between(0, d->packet_size);
    } else if (d->packet_size >= sizeof word) {
        memcpy(d->packet + 4 * random_between(0, d->packet_size / 4 - 1), &word, sizeof word);
    }
}

/* Sizes with stride 0 need no memory: such a tensor may be legal and take for ever.  Not tried here. */
static bool is_small(const device *d) {
    const dmlk_dispatch_header header = device_get_header(d);
    double most = 1;
    for (uint32_t k = 0; k < header.tensor_count && k < DEVICE_MAX_TENSORS; k++) {
        const dmlk_tensor tensor = device_get_tensor(d, k);
        double elements = 1;
        for (uint32_t i = 0; i < tensor.rank && i < DMLK_MAX_RANK; i++) {
            elements *= tensor.sizes[i];
        }
        most = elements > most ? elements : most;
    }
    return most < 1e5;
}

/* In an array of exactly its size; every one has a begin and an end. */
static void look_at_footprints(const device *d) {
    const uint32_t capacity = (uint32_t)random_between(0, 12);
    dmlk_footprint *f = malloc(capacity * sizeof *f + 1);
    const int count =
        dmlk_footprints(d->packet, d->packet_size, d->segments, d->segment_count, f, capacity);
    for (int i = 0; i < count && i < (int)capacity; i++) {
        CHECK(f[i].address < f[i].end);
        CHECK(f[i].rank >= 1 && f[i].rank <= DMLK_MAX_RANK);
    }
    free(f);
}

TEST(broken_packets) {
    dmlk_checker checker = {0};
    int64_t runs = 0, good = 0, statuses[DMLK_OUT_OF_MEMORY + 1] = {0};
    for (int round = 0; round < 100000; round++) {
        device d;
        begins[round % 7](&d);
        for (int64_t i = random_between(0, 3); i > 0; i--) {
            break_something(&d);
        }
        look_at_footprints(&d);
        if (is_small(&d)) {
            dmlk_set_checker(round % 3 == 0 ? &checker : NULL);
            const int status = device_dispatch(&d);
            dmlk_set_checker(NULL);
            CHECK(status >= DMLK_OK && status <= DMLK_OUT_OF_MEMORY);
            CHECK_EQUAL(d.fault.status, status);
            statuses[status]++;
            good += status == DMLK_OK;
            runs++;
        }
        device_end(&d);
    }
    CHECK(checker.dispatches > 10000);
    for (int kind = DMLK_MEM_OOB_READ; kind <= DMLK_MEM_GAP_WRITE; kind++) {
        CHECK_EQUAL(checker.findings[kind].count, 0);
    }
    CHECK_EQUAL(checker.findings[DMLK_MEM_MISALIGNED].count, 0);
    CHECK(good > 10000); /* else the packets are too broken to reach the kernels */
    for (int status = DMLK_BAD_PACKET; status <= DMLK_NOT_IMPLEMENTED; status++) {
        CHECK(statuses[status] > 100);
    }
    printf("%" PRId64 " dispatches, %" PRId64 " of them executed\n", runs, good);
}

int main(void) {
    RUN(broken_packets);
    return RESULT();
}
