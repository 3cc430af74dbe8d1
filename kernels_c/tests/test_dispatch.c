/* Packets that dmlk_dispatch rejects; a rejected dispatch writes nothing. */
#include <math.h>

#include "element_wise.h"
#include "fold.h"
#include "followers.h"
#include "gemm.h"
#include "packets.h"
#include "space_depth.h"
#include "upsample_2d.h"

/* A copy of 6 float32, ready to run. */
static void begin_copy(device *d) {
    const int64_t sizes[] = {2, 3};
    device_begin(d, "copy");
    fill_random(device_tensor(d, DMLK_FLOAT32, 2, sizes, NULL), 1, 9);
    device_tensor(d, DMLK_FLOAT32, 2, sizes, NULL);
    device_constants(d, NULL, 0, 0);
}

/* Dispatches the packet that begin_copy made and the test then broke. */
static void expect_fault(device *d, enum dmlk_status status, uint32_t tensor) {
    CHECK_EQUAL(device_dispatch(d), status);
    CHECK_EQUAL(d->fault.status, status);
    CHECK_EQUAL(d->fault.tensor, tensor);
    for (uint64_t i = 0; i < d->views[1].byte_size; i++) {
        CHECK_EQUAL(d->views[1].base[i], DEVICE_UNTOUCHED);
    }
    device_end(d);
}

TEST(a_good_packet_runs) {
    device d;
    begin_copy(&d);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    CHECK_EQUAL(d.fault.partial_tensor, DMLK_SLOT_NONE);
    CHECK(memcmp(d.views[0].base, d.views[1].base, 24) == 0);
    device_end(&d);
}

TEST(truncated_packets) {
    device whole;
    begin_copy(&whole);
    for (uint32_t size = 0; size < whole.packet_size; size++) {
        device d;
        begin_copy(&d);
        d.packet_size = size;
        expect_fault(&d, DMLK_BAD_PACKET, DMLK_SLOT_NONE);
    }
    device_end(&whole);
}

#define HEADER_FAULT(change)                                  \
    do {                                                      \
        device d;                                             \
        begin_copy(&d);                                       \
        dmlk_dispatch_header header = device_get_header(&d);  \
        change;                                               \
        device_set_header(&d, &header);                       \
        expect_fault(&d, DMLK_BAD_PACKET, DMLK_SLOT_NONE);    \
    } while (0)

TEST(bad_headers) {
    HEADER_FAULT(header.kernel = dmlk_kernel_count());
    HEADER_FAULT(header.kernel = UINT32_MAX);
    HEADER_FAULT(header.tensor_count = UINT32_MAX);
    HEADER_FAULT(header.tensor_count = 3);
    HEADER_FAULT(header.tensor_count = 1);
    HEADER_FAULT(header.constants_size = 8);
    HEADER_FAULT(header.constants_size = UINT32_MAX);
    HEADER_FAULT(header.size += 8);
    HEADER_FAULT(header.size -= 4);
}

#define TENSOR_FAULT(expected, change)                   \
    do {                                                 \
        device d;                                        \
        begin_copy(&d);                                  \
        dmlk_tensor tensor = device_get_tensor(&d, 1);   \
        change;                                          \
        device_set_tensor(&d, 1, &tensor);               \
        expect_fault(&d, expected, 1);                   \
    } while (0)

TEST(bad_tensors) {
    TENSOR_FAULT(DMLK_BAD_PACKET, tensor.rank = 0);
    TENSOR_FAULT(DMLK_BAD_PACKET, tensor.rank = 9);
    TENSOR_FAULT(DMLK_BAD_PACKET, tensor.type = 0);
    TENSOR_FAULT(DMLK_BAD_PACKET, tensor.type = 14);
    TENSOR_FAULT(DMLK_BAD_PACKET, tensor.access = 0);
    TENSOR_FAULT(DMLK_BAD_PACKET, tensor.access = 4);
    TENSOR_FAULT(DMLK_BAD_PACKET, tensor.sizes[1] = 0);
    TENSOR_FAULT(DMLK_BAD_ADDRESS, tensor.slot = DEVICE_MAX_TENSORS);
    TENSOR_FAULT(DMLK_BAD_ADDRESS, tensor.slot = UINT32_MAX - 1);
    TENSOR_FAULT(DMLK_BAD_DESCRIPTOR, tensor.slot = 4);
}

/* A shader resource view is enough to read, so a tensor with READ access must not be written. */
TEST(outputs_without_write_access) {
    TENSOR_FAULT(DMLK_BAD_ACCESS, tensor.access = DMLK_READ);
    for (uint32_t kernel = 0; kernel < dmlk_kernel_count(); kernel++) {
        for (int round = 0; round < 20; round++) {
            device d;
            packet_random(&d, kernel);
            for (uint32_t k = 0; k < d.tensor_count; k++) { /* outputs have WRITE access */
                dmlk_tensor tensor = device_get_tensor(&d, k);
                if (tensor.slot == DMLK_SLOT_NONE || tensor.access == DMLK_READ) {
                    continue;
                }
                const uint32_t access = tensor.access;
                tensor.access = DMLK_READ;
                device_set_tensor(&d, k, &tensor);
                CHECK_EQUAL(device_dispatch(&d), DMLK_BAD_ACCESS);
                CHECK_EQUAL(d.fault.tensor, k);
                CHECK_EQUAL(d.fault.slot, k);
                tensor.access = access;
                device_set_tensor(&d, k, &tensor);
            }
            CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
            device_end(&d);
        }
    }
}

TEST(tensors_out_of_range) {
    TENSOR_FAULT(DMLK_OUT_OF_RANGE, tensor.strides[0] = 4);
    TENSOR_FAULT(DMLK_OUT_OF_RANGE, tensor.strides[0] = UINT32_MAX);
    TENSOR_FAULT(DMLK_OUT_OF_RANGE, tensor.sizes[0] = 3);
    TENSOR_FAULT(DMLK_OUT_OF_RANGE, tensor.sizes[0] = UINT32_MAX; tensor.strides[0] = UINT32_MAX);
    TENSOR_FAULT(DMLK_OUT_OF_RANGE, tensor.byte_size = 23);
    TENSOR_FAULT(DMLK_OUT_OF_RANGE, tensor.byte_size = 28);
    TENSOR_FAULT(DMLK_OUT_OF_RANGE, tensor.byte_size = UINT64_MAX);
    TENSOR_FAULT(DMLK_OUT_OF_RANGE, tensor.offset = 4);
    TENSOR_FAULT(DMLK_OUT_OF_RANGE, tensor.offset = UINT64_MAX - 23);
}

TEST(the_fault_has_bytes_and_address) {
    device d;
    begin_copy(&d);
    dmlk_tensor tensor = device_get_tensor(&d, 1);
    tensor.strides[0] = 5;
    device_set_tensor(&d, 1, &tensor);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OUT_OF_RANGE);
    CHECK_EQUAL(d.fault.slot, 1);
    CHECK_EQUAL(d.fault.needed, (5 + 2 + 1) * 4);
    CHECK_EQUAL(d.fault.given, 24);
    CHECK_EQUAL(d.fault.address, DEVICE_TENSORS + DEVICE_DISTANCE);
    device_end(&d);
}

#define DESCRIPTOR_FAULT(expected, change)                   \
    do {                                                     \
        device d;                                            \
        begin_copy(&d);                                      \
        dmlk_descriptor *descriptor = &d.descriptors[1];     \
        change;                                              \
        expect_fault(&d, expected, 1);                       \
    } while (0)

TEST(bad_descriptors) {
    DESCRIPTOR_FAULT(DMLK_BAD_DESCRIPTOR, descriptor->kind = DMLK_DESCRIPTOR_UNWRITTEN);
    DESCRIPTOR_FAULT(DMLK_BAD_DESCRIPTOR, descriptor->kind = DMLK_DESCRIPTOR_CBV);
    DESCRIPTOR_FAULT(DMLK_BAD_DESCRIPTOR, descriptor->kind = DMLK_DESCRIPTOR_SRV); /* the tensor is written */
    DESCRIPTOR_FAULT(DMLK_BAD_DESCRIPTOR, descriptor->kind = 200);
    DESCRIPTOR_FAULT(DMLK_BAD_DESCRIPTOR, descriptor->address = 0);
    DESCRIPTOR_FAULT(DMLK_OUT_OF_RANGE, descriptor->size = 20);
    DESCRIPTOR_FAULT(DMLK_BAD_ADDRESS, descriptor->address += 4);
    DESCRIPTOR_FAULT(DMLK_BAD_ADDRESS, descriptor->address -= 4);
    DESCRIPTOR_FAULT(DMLK_BAD_ADDRESS, descriptor->address = UINT64_MAX);
    DESCRIPTOR_FAULT(DMLK_BAD_ADDRESS, descriptor->address = 8);
}

/* The sum of address and offset is the tensor's address only because it overflows. */
TEST(addresses_that_overflow) {
    device d;
    begin_copy(&d);
    dmlk_tensor tensor = device_get_tensor(&d, 1);
    tensor.offset = d.descriptors[1].address + 64;
    device_set_tensor(&d, 1, &tensor);
    d.descriptors[1].address = UINT64_MAX - 63;
    d.descriptors[1].size = UINT64_MAX;
    expect_fault(&d, DMLK_BAD_ADDRESS, 1);
}

TEST(a_shader_resource_view_can_be_read) {
    device d;
    begin_copy(&d);
    dmlk_tensor tensor = device_get_tensor(&d, 0);
    tensor.access = DMLK_READ;
    device_set_tensor(&d, 0, &tensor);
    d.descriptors[0].kind = DMLK_DESCRIPTOR_SRV;
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    device_end(&d);
}

TEST(misaligned_elements) {
    device d;
    begin_copy(&d);
    dmlk_tensor tensor = device_get_tensor(&d, 1);
    tensor.offset = 2;
    tensor.sizes[0] = 1;
    tensor.byte_size = 12;
    device_set_tensor(&d, 1, &tensor);
    expect_fault(&d, DMLK_BAD_ADDRESS, 1);
}

TEST(a_tensor_that_must_not_be_absent) {
    device d;
    begin_copy(&d);
    dmlk_tensor tensor = device_get_tensor(&d, 0);
    tensor.slot = DMLK_SLOT_NONE;
    device_set_tensor(&d, 0, &tensor);
    expect_fault(&d, DMLK_BAD_PACKET, DMLK_SLOT_NONE);
}

TEST(no_memory_at_all) {
    device d;
    begin_copy(&d);
    const uint64_t segments = d.segment_count;
    d.segment_count = 0;
    CHECK_EQUAL(device_dispatch(&d), DMLK_BAD_ADDRESS);
    d.segment_count = segments;
    device_end(&d);
}

/* Each segment is found if the same memory is cut into many segments. */
TEST(segments_are_found) {
    device d;
    begin_copy(&d);
    dmlk_segment many[64];
    uint64_t count = 0;
    uint8_t unused[4];
    for (; count < 30; count++) {
        many[count] = (dmlk_segment){16 * (count + 1), 4, unused};
    }
    for (uint64_t i = 0; i < d.segment_count; i++) {
        many[count++] = d.segments[i];
    }
    for (uint64_t i = 0; i < 30; i++) {
        many[count++] = (dmlk_segment){0x7000000000 + 16 * i, 4, unused};
    }
    CHECK_EQUAL(dmlk_dispatch(d.packet, d.packet_size, many, count, &d.fault), DMLK_OK);
    CHECK(memcmp(d.views[0].base, d.views[1].base, 24) == 0);
    device_end(&d);
}

TEST(more_tensors_than_usual) {
    const int64_t sizes[] = {1};
    device d;
    device_begin(&d, "copy");
    device_tensor(&d, DMLK_FLOAT32, 1, sizes, NULL);
    for (int i = 0; i < 17; i++) {
        device_no_tensor(&d);
    }
    device_constants(&d, NULL, 0, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_BAD_PACKET); /* decoded, but not for this kernel */
    device_end(&d);
}

TEST(constant_data_writes_its_constants) {
    const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (uint32_t size = 4; size <= 8; size += 4) { /* 4: fewer bytes than the tensor has */
        device d;
        device_begin(&d, "constant_data");
        device_tensor(&d, DMLK_UINT32, 1, (const int64_t[]){2}, NULL);
        device_constants(&d, bytes, size, 0);
        CHECK_EQUAL(device_dispatch(&d), size == 8 ? DMLK_OK : DMLK_BAD_PACKET);
        if (size == 8) {
            CHECK(memcmp(d.views[0].base, bytes, 8) == 0);
        } else {
            CHECK_EQUAL(d.views[0].base[0], DEVICE_UNTOUCHED);
        }
        device_end(&d);
    }
}

TEST(constant_data_leaves_no_gaps) {
    const uint8_t bytes[12] = {0};
    device d;
    device_begin(&d, "constant_data");
    device_tensor(&d, DMLK_UINT32, 1, (const int64_t[]){2}, (const int64_t[]){2});
    device_constants(&d, bytes, sizeof bytes, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_BAD_PACKET);
    CHECK_EQUAL(d.views[0].base[4], DEVICE_UNTOUCHED);
    device_end(&d);
}

/* --- sizes and constants whose products need more than 64 bits --- */

/* Adds a tensor of these sizes whose elements are all the same in memory (stride 0). */
static void repeated(device *d, uint32_t rank, const int64_t *sizes) {
    const int64_t strides[DMLK_MAX_RANK] = {0};
    device_tensor(d, DMLK_FLOAT32, rank, sizes, strides);
}

static void expect_status(device *d, const void *constants, uint32_t size, int status) {
    device_constants(d, constants, size, 0);
    CHECK_EQUAL(device_dispatch(d), status);
    device_end(d);
}

TEST(space_depth_with_large_blocks) {
    const dmlk_space_depth k = {.block = UINT32_MAX};
    const int64_t sizes[] = {1, UINT32_MAX, 1, 1};
    device d;
    device_begin(&d, "space_depth");
    repeated(&d, 4, sizes);
    repeated(&d, 4, sizes);
    expect_status(&d, &k, sizeof k, DMLK_BAD_PACKET);
}

TEST(upsample_with_large_factors) {
    const dmlk_upsample_2d k = {.height = 1, .width = UINT32_MAX};
    const int64_t sizes[] = {1, UINT32_MAX};
    device d;
    device_begin(&d, "upsample_2d");
    repeated(&d, 2, sizes);
    repeated(&d, 2, sizes);
    expect_status(&d, &k, sizeof k, DMLK_BAD_PACKET);
}

TEST(fold_to_large_planes) {
    const dmlk_fold k = {
        .spatial = 3, .window = {1, 2, 4}, .strides = {1, 1, 1}, .dilations = {1, 1, 1}, .blocks = {1, 1, 1}};
    const int64_t columns[] = {1, 8, 1}, image[] = {1, 1, 1, 1 << 30, INT64_C(1) << 31};
    device d;
    device_begin(&d, "fold");
    repeated(&d, 3, columns);
    repeated(&d, 5, image);
    expect_status(&d, &k, sizeof k, DMLK_OUT_OF_MEMORY);
}

/* The strides of axes with a single element may have any value. */
TEST(unfold_with_large_strides) {
    const dmlk_unfold k = {.spatial = 1, .window = {1}, .strides = {UINT32_MAX}, .dilations = {1}, .blocks = {1}};
    const int64_t ones[] = {1, 1, 1}, strides[] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    device d;
    device_begin(&d, "unfold");
    device_tensor(&d, DMLK_FLOAT32, 3, ones, strides);
    device_tensor(&d, DMLK_FLOAT32, 3, ones, strides);
    expect_status(&d, &k, sizeof k, DMLK_OK);
}

/* --- packets that run together with the packet before them --- */

static const int64_t square[] = {3, 3};

/* A product of matrices of 3 x 3 whose elements are all negative. */
static void begin_product(device *d, uint32_t flags) {
    const dmlk_gemm k = {.alpha = -1};
    device_begin(d, "gemm");
    fill_random(device_tensor(d, DMLK_FLOAT32, 2, square, NULL), 1, 9);
    fill_random(device_tensor(d, DMLK_FLOAT32, 2, square, NULL), 1, 9);
    device_no_tensor(d);
    device_tensor(d, DMLK_FLOAT32, 2, square, NULL);
    device_constants(d, &k, sizeof k, flags);
}

/* Appends a packet of a function of tensor `in`, written to tensor `out`. */
static void append(device *d, const char *kernel, uint32_t in, uint32_t out, uint32_t row_stride, uint32_t flags) {
    const dmlk_element_wise k = {0};
    dmlk_tensor tensors[2] = {device_get_tensor(d, in), device_get_tensor(d, out)};
    tensors[0].access = DMLK_READ;
    tensors[1].access = DMLK_WRITE;
    tensors[0].strides[0] = tensors[1].strides[0] = row_stride;
    const dmlk_dispatch_header header = {.opcode = device_get_header(d).opcode,
                                         .size = sizeof header + sizeof tensors + sizeof k,
                                         .kernel = kernel_number(kernel),
                                         .flags = flags,
                                         .table = DEVICE_TABLE,
                                         .tensor_count = 2,
                                         .constants_size = sizeof k};
    uint8_t *at = d->packet + d->packet_size;
    memcpy(at, &header, sizeof header);
    memcpy(at + sizeof header, tensors, sizeof tensors);
    memcpy(at + sizeof header + sizeof tensors, &k, sizeof k);
    d->packet_size += header.size;
}

/* Dispatches, and expects that `count` packets ran with the first one; the product's output is 0 only if RELU ran. */
static void expect_followers(device *d, uint32_t count) {
    CHECK_EQUAL(device_dispatch(d), DMLK_OK);
    CHECK_EQUAL(d->fault.ran, 1 + count);
    for (int64_t i = 0; i < 9; i++) {
        const float x = ((const float *)(const void *)d->views[d->tensor_count - 1].base)[i];
        CHECK(count > 0 ? x == 0 : x < 0);
    }
    device_end(d);
}

TEST(functions_run_with_a_product) {
    device d;
    begin_product(&d, DMLK_FLAG_FUSED);
    append(&d, "relu", 3, 3, 3, 0);
    expect_followers(&d, 1);
    begin_product(&d, DMLK_FLAG_FUSED);
    for (int i = 0; i <= DMLK_MOST_FOLLOWERS; i++) {
        append(&d, "relu", 3, 3, 3, DMLK_FLAG_FUSED);
    }
    expect_followers(&d, DMLK_MOST_FOLLOWERS); /* the last one is dispatched by itself */
}

TEST(packets_without_tensors_have_no_followers) {
    device d;
    begin_product(&d, DMLK_FLAG_FUSED);
    append(&d, "relu", 3, 3, 3, 0);
    dmlk_dispatch_header header = device_get_header(&d);
    header.tensor_count = 0;
    device_set_header(&d, &header);
    CHECK_EQUAL(device_dispatch(&d), DMLK_BAD_PACKET);
    CHECK_EQUAL(d.fault.ran, 0);
    device_end(&d);
}

TEST(packets_that_cannot_run_with_a_product) {
    device d;
    begin_product(&d, 0);
    append(&d, "relu", 3, 3, 3, 0);
    expect_followers(&d, 0);
    begin_product(&d, DMLK_FLAG_FUSED); /* the list ends */
    expect_followers(&d, 0);
    begin_product(&d, DMLK_FLAG_FUSED);
    append(&d, "relu", 3, 3, 3, 0);
    d.packet_size -= 8; /* truncated */
    expect_followers(&d, 0);
    begin_product(&d, DMLK_FLAG_FUSED);
    append(&d, "copy", 3, 3, 3, 0);
    expect_followers(&d, 0);
    begin_product(&d, DMLK_FLAG_FUSED);
    append(&d, "relu", 3, 0, 3, 0); /* writes what the product reads */
    expect_followers(&d, 0);
    begin_product(&d, DMLK_FLAG_FUSED);
    append(&d, "relu", 0, 3, 3, 0); /* does not read what it writes */
    expect_followers(&d, 0);
    begin_product(&d, DMLK_FLAG_FUSED);
    append(&d, "relu", 3, 3, 1, 0); /* another layout */
    expect_followers(&d, 0);
}

/* --- packets that run in one call --- */

static void append_barrier(device *d) {
    const uint32_t barrier[DMLK_BARRIER_SIZE / 4] = {DMLK_OPCODE_BARRIER, DMLK_BARRIER_SIZE};
    memcpy(d->packet + d->packet_size, barrier, sizeof barrier);
    d->packet_size += (uint32_t)sizeof barrier;
}

/* A product, as a list has it. */
static void begin_dispatch(device *d, uint32_t flags) {
    begin_product(d, flags);
    dmlk_dispatch_header header = device_get_header(d);
    header.opcode = DMLK_OPCODE_DISPATCH;
    device_set_header(d, &header);
}

/* A product, a barrier, RELU and a barrier. */
static void begin_list(device *d, uint32_t row_stride, uint32_t flags) {
    begin_dispatch(d, 0);
    append_barrier(d);
    append(d, "relu", 3, 3, row_stride, flags);
    append_barrier(d);
}

static void append_heaps(device *d, uint32_t count, uint32_t given) {
    const uint32_t head[4] = {DMLK_OPCODE_SET_HEAPS, (uint32_t)sizeof head + 8 * given, count, 0};
    memcpy(d->packet + d->packet_size, head, sizeof head);
    memset(d->packet + d->packet_size + sizeof head, 0, 8 * given);
    d->packet_size += head[1];
}

/* Heaps that are set, a product and a barrier. */
static void begin_list_with_heaps(device *d, uint32_t count, uint32_t given) {
    begin_list(d, 3, 0);
    uint8_t list[sizeof d->packet];
    const uint32_t size = d->packet_size;
    memcpy(list, d->packet, size);
    d->packet_size = 0;
    append_heaps(d, count, given);
    memcpy(d->packet + d->packet_size, list, size);
    d->packet_size += size;
}

static void expect_ran(device *d, double until, int status, uint32_t ran) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ran; i++) {
        uint32_t size;
        memcpy(&size, d->packet + bytes + sizeof size, sizeof size);
        bytes += size;
    }
    uint8_t *packets = malloc(d->packet_size); /* as in device_dispatch */
    memcpy(packets, d->packet, d->packet_size);
    CHECK_EQUAL(dmlk_run_packets(packets, d->packet_size, d->segments, d->segment_count, until, &d->fault), status);
    free(packets);
    CHECK_EQUAL(d->fault.ran, ran);
    CHECK_EQUAL(d->fault.ran_bytes, bytes);
    device_end(d);
}

/* A product with its function, a barrier, and another dispatch. */
TEST(a_list_runs_what_is_fused) {
    device d;
    begin_dispatch(&d, DMLK_FLAG_FUSED);
    append(&d, "relu", 3, 3, 3, 0);
    append_barrier(&d);
    append(&d, "relu", 3, 3, 3, 0);
    expect_ran(&d, INFINITY, DMLK_OK, 4);
    begin_dispatch(&d, DMLK_FLAG_FUSED);
    append(&d, "relu", 3, 3, 3, 0);
    append_barrier(&d);
    expect_ran(&d, 0, DMLK_OK, 2); /* what runs together, even if there is no time */
}

TEST(a_list_runs_as_far_as_possible) {
    device d;
    begin_list(&d, 3, 0);
    expect_ran(&d, INFINITY, DMLK_OK, 4);
    begin_list(&d, 3, 0);
    expect_ran(&d, 0, DMLK_OK, 1); /* one packet, even if there is no time */
    begin_list(&d, 3, DMLK_FLAG_FUSED);
    expect_ran(&d, INFINITY, DMLK_OK, 4); /* nothing follows the function */
    begin_list(&d, 1000, 0); /* out of range */
    expect_ran(&d, INFINITY, DMLK_OUT_OF_RANGE, 2);
    begin_list(&d, 3, 0);
    d.packet_size -= 8; /* truncated */
    expect_ran(&d, INFINITY, DMLK_OK, 3);
}

TEST(a_list_may_set_heaps) {
    device d;
    for (uint32_t count = 0; count < 3; count++) {
        begin_list_with_heaps(&d, count, count);
        expect_ran(&d, INFINITY, DMLK_OK, 5);
        begin_list_with_heaps(&d, count, count);
        expect_ran(&d, 0, DMLK_OK, 1);
        begin_list_with_heaps(&d, count, 3 - count); /* not as many as its count says */
        expect_ran(&d, INFINITY, DMLK_OK, 0);
        begin_list(&d, 3, 0);
        append_heaps(&d, count, count);
        expect_ran(&d, INFINITY, DMLK_OK, count < 2 ? 4 : 5); /* a last packet of less than a dispatch is left */
        begin_list(&d, 3, 0);
        append_heaps(&d, count, 5 - count);
        append_barrier(&d);
        expect_ran(&d, INFINITY, DMLK_OK, 4);
    }
    begin_list_with_heaps(&d, 536870910, 0); /* 16 + 8 * 536870910 is 0 in 32 bits */
    expect_ran(&d, INFINITY, DMLK_OK, 0);
    begin_list_with_heaps(&d, 2, 2);
    d.packet_size = 24; /* truncated */
    expect_ran(&d, INFINITY, DMLK_OK, 0);
}

/* How far a list is known before it runs; `counts` are the footprints of its packets. */
static void expect_stretch(device *d, uint32_t capacity, uint32_t most, uint32_t found, const uint32_t *counts) {
    dmlk_footprint footprints[8];
    uint32_t got[8];
    uint8_t *packets = malloc(d->packet_size);
    memcpy(packets, d->packet, d->packet_size);
    CHECK_EQUAL(dmlk_find_stretch(packets, d->packet_size, d->segments, d->segment_count, 2, footprints, capacity, got,
                                  most),
                found);
    free(packets);
    for (uint32_t i = 0; i < found; i++) {
        CHECK_EQUAL(got[i], counts[i]);
    }
    device_end(d);
}

/* Makes the first barrier one of that kind. */
static void set_barrier(device *d, uint32_t kind, uint64_t address) {
    uint32_t size;
    memcpy(&size, d->packet + sizeof size, sizeof size);
    memcpy(d->packet + size + DMLK_BARRIER_KIND_AT, &kind, sizeof kind);
    memcpy(d->packet + size + DMLK_BARRIER_ADDRESS_AT, &address, sizeof address);
}

TEST(a_stretch_is_known_before_it_runs) {
    const uint32_t counts[] = {3, 0, 2};
    device d;
    begin_list(&d, 3, 0);
    set_barrier(&d, DMLK_BARRIER_UAV, 0);
    expect_stretch(&d, 8, 8, 3, counts); /* the last barrier is a transition */
    begin_list(&d, 3, 0);
    set_barrier(&d, DMLK_BARRIER_UAV, 0);
    expect_stretch(&d, 8, 2, 2, counts);
    begin_list(&d, 3, 0);
    set_barrier(&d, DMLK_BARRIER_UAV, 0);
    expect_stretch(&d, 6, 8, 2, counts); /* no room for the last dispatch and its pieces */
    begin_list(&d, 3, 0);
    set_barrier(&d, DMLK_BARRIER_UAV, 64); /* one resource */
    expect_stretch(&d, 8, 8, 1, counts);
    begin_list(&d, 3, 0);
    d.packet_size = 8; /* truncated */
    expect_stretch(&d, 8, 8, 0, counts);
}

int main(void) {
    RUN(a_good_packet_runs);
    RUN(truncated_packets);
    RUN(bad_headers);
    RUN(bad_tensors);
    RUN(outputs_without_write_access);
    RUN(tensors_out_of_range);
    RUN(the_fault_has_bytes_and_address);
    RUN(bad_descriptors);
    RUN(addresses_that_overflow);
    RUN(a_shader_resource_view_can_be_read);
    RUN(misaligned_elements);
    RUN(a_tensor_that_must_not_be_absent);
    RUN(no_memory_at_all);
    RUN(segments_are_found);
    RUN(more_tensors_than_usual);
    RUN(constant_data_writes_its_constants);
    RUN(constant_data_leaves_no_gaps);
    RUN(space_depth_with_large_blocks);
    RUN(upsample_with_large_factors);
    RUN(fold_to_large_planes);
    RUN(unfold_with_large_strides);
    RUN(functions_run_with_a_product);
    RUN(packets_without_tensors_have_no_followers);
    RUN(packets_that_cannot_run_with_a_product);
    RUN(a_list_runs_what_is_fused);
    RUN(a_list_runs_as_far_as_possible);
    RUN(a_list_may_set_heaps);
    RUN(a_stretch_is_known_before_it_runs);
    return RESULT();
}
