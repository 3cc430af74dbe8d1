/* Footprints: what a packet would touch, and which bytes two of them share. */
#include "device.h"

/* --- from a packet --- */

static int footprints(const device *d, dmlk_footprint *out, uint32_t capacity) {
    uint8_t *packet = malloc(d->packet_size); /* of exactly its size, so that reading past its end is seen */
    memcpy(packet, d->packet, d->packet_size);
    int count = dmlk_footprints(packet, d->packet_size, d->segments, d->segment_count, out, capacity);
    free(packet);
    return count;
}

static void begin_copy(device *d) {
    const int64_t sizes[] = {2, 3}, padded[] = {8, 2};
    device_begin(d, "copy");
    device_tensor(d, DMLK_FLOAT32, 2, sizes, padded);
    device_tensor(d, DMLK_FLOAT16, 2, sizes, NULL);
    device_constants(d, NULL, 0, 0);
}

TEST(a_packet_has_a_footprint_per_tensor) {
    device d;
    begin_copy(&d);
    dmlk_tensor tensor = device_get_tensor(&d, 1);
    tensor.access = DMLK_WRITE;
    tensor.offset = 6;
    device_set_tensor(&d, 1, &tensor);
    dmlk_footprint f[4];
    CHECK_EQUAL(footprints(&d, f, 4), 2);
    CHECK_EQUAL(f[0].address, DEVICE_TENSORS);
    CHECK_EQUAL(f[0].end, DEVICE_TENSORS + (8 + 4 + 1) * 4);
    CHECK_EQUAL(f[0].operand, 0);
    CHECK_EQUAL(f[0].access, DMLK_READ_WRITE);
    CHECK_EQUAL(f[0].bits, 32);
    CHECK_EQUAL(f[0].rank, 2);
    CHECK(f[0].sizes[0] == 2 && f[0].sizes[1] == 3 && f[0].strides[0] == 8 && f[0].strides[1] == 2);
    CHECK_EQUAL(f[1].address, DEVICE_TENSORS + DEVICE_DISTANCE + 6);
    CHECK_EQUAL(f[1].end, f[1].address + 12);
    CHECK_EQUAL(f[1].operand, 1);
    CHECK_EQUAL(f[1].access, DMLK_WRITE);
    CHECK_EQUAL(f[1].bits, 16);
    device_end(&d);
}

TEST(half_bytes_count_as_whole_ones) {
    device d;
    device_begin(&d, "copy");
    device_tensor(&d, DMLK_UINT4, 1, (const int64_t[]){3}, NULL);
    device_constants(&d, NULL, 0, 0);
    dmlk_footprint f;
    CHECK_EQUAL(footprints(&d, &f, 1), 1);
    CHECK_EQUAL(f.bits, 4);
    CHECK_EQUAL(f.end - f.address, 2);
    device_end(&d);
}

TEST(a_small_array_gets_the_first_ones) {
    device d;
    begin_copy(&d);
    dmlk_footprint f[2] = {{.operand = 77}, {.operand = 77}};
    CHECK_EQUAL(footprints(&d, f, 1), 2);
    CHECK_EQUAL(f[0].operand, 0);
    CHECK_EQUAL(f[1].operand, 77);
    CHECK_EQUAL(footprints(&d, NULL, 0), 2);
    device_end(&d);
}

/* Without tensor 1, whose descriptor or place the change spoils. */
#define LEFT_OUT(change)                               \
    do {                                               \
        device d;                                      \
        begin_copy(&d);                                \
        dmlk_tensor tensor = device_get_tensor(&d, 1); \
        dmlk_descriptor *descriptor = &d.descriptors[1]; \
        change;                                        \
        (void)descriptor;                              \
        device_set_tensor(&d, 1, &tensor);             \
        dmlk_footprint f[2];                           \
        CHECK_EQUAL(footprints(&d, f, 2), 1);          \
        CHECK_EQUAL(f[0].operand, 0);                  \
        device_end(&d);                                \
    } while (0)

TEST(what_has_no_usable_descriptor_is_left_out) {
    LEFT_OUT(tensor.slot = DMLK_SLOT_NONE);
    LEFT_OUT(tensor.slot = 4); /* never written */
    LEFT_OUT(tensor.slot = 1000);
    LEFT_OUT(descriptor->address = 0);
    LEFT_OUT(descriptor->kind = DMLK_DESCRIPTOR_SRV); /* the tensor is written */
    LEFT_OUT(descriptor->kind = 200);
    LEFT_OUT(descriptor->address = UINT64_MAX - 3);
    LEFT_OUT(tensor.offset = UINT64_MAX - 3);
    LEFT_OUT(tensor.sizes[0] = UINT32_MAX; tensor.strides[0] = UINT32_MAX);
}

TEST(packets_that_do_not_decode) {
    device d;
    begin_copy(&d);
    dmlk_footprint f[2];
    const uint32_t whole = d.packet_size;
    for (d.packet_size = 0; d.packet_size < whole; d.packet_size++) {
        CHECK_EQUAL(footprints(&d, f, 2), -1);
    }
    dmlk_tensor tensor = device_get_tensor(&d, 1);
    tensor.rank = 9;
    device_set_tensor(&d, 1, &tensor);
    CHECK_EQUAL(footprints(&d, f, 2), -1);
    device_end(&d);
}

int main(void) {
    RUN(a_packet_has_a_footprint_per_tensor);
    RUN(half_bytes_count_as_whole_ones);
    RUN(a_small_array_gets_the_first_ones);
    RUN(what_has_no_usable_descriptor_is_left_out);
    RUN(packets_that_do_not_decode);
    return RESULT();
}
