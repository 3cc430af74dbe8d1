/* Footprints: the accesses of a packet, and the bytes that two footprints share. */
#include "convolution_integer.h"
#include "device.h"
#include "footprint.h"
#include "gemm.h"
#include "read_set.h"
#include "selection.h"

/* The same code compiled without the search: it always paints. */
#define MAX_STEPS 1
#define dmlk_pattern_init painted_pattern_init
#define dmlk_pattern_to_bytes painted_pattern_to_bytes
#define dmlk_pattern_paint painted_pattern_paint
#define dmlk_footprints_meet painted_meet
#define dmlk_footprints_find painted_find
#define dmlk_footprint_holds painted_holds
#define dmlk_footprint_index painted_index
#include "../analysis/footprint.c"
#undef dmlk_pattern_init
#undef dmlk_pattern_to_bytes
#undef dmlk_pattern_paint
#undef dmlk_footprints_meet
#undef dmlk_footprints_find
#undef dmlk_footprint_holds
#undef dmlk_footprint_index

/* --- marked elements --- */

struct boxes_found {
    uint32_t rank, count;
    const int64_t *sizes;
    uint8_t *taken; /* how often, for each element */
};

static void take(const dmlk_slice *box, void *context) {
    struct boxes_found *found = context;
    int64_t counts[DMLK_MAX_RANK], index[DMLK_MAX_RANK] = {0};
    for (uint32_t d = 0; d < found->rank; d++) {
        counts[d] = box[d].count;
        CHECK(box[d].first >= 0 && box[d].count > 0 && box[d].step > 0);
        CHECK(box[d].first + (box[d].count - 1) * box[d].step < found->sizes[d]);
    }
    found->count++;
    do {
        int64_t number = 0;
        for (uint32_t d = 0; d < found->rank; d++) {
            number = number * found->sizes[d] + box[d].first + index[d] * box[d].step;
        }
        found->taken[number]++;
    } while (next_index(found->rank, counts, index));
}

TEST(boxes_hold_the_marked_elements) {
    for (int round = 0; round < 500; round++) {
        int64_t sizes[DMLK_MAX_RANK], elements = 1, wrong = 0;
        const uint32_t rank = random_sizes(sizes);
        const int64_t one_of = random_between(1, 6);
        for (uint32_t d = 0; d < rank; d++) {
            elements *= sizes[d];
        }
        uint64_t *marks = calloc((size_t)elements / 64 + 1, sizeof *marks);
        for (int64_t i = 0; i < elements; i++) {
            marks[i / 64] |= (uint64_t)(random_between(1, one_of) == 1) << i % 64;
        }
        struct boxes_found all = {.rank = rank, .sizes = sizes, .taken = calloc((size_t)elements, 1)}, few = all;
        CHECK(dmlk_marks_to_boxes(marks, rank, sizes, (uint32_t)elements, take, &all));
        for (int64_t i = 0; i < elements; i++) {
            wrong += all.taken[i] != (marks[i / 64] >> i % 64 & 1);
        }
        CHECK_EQUAL(wrong, 0);
        CHECK(dmlk_marks_to_boxes(marks, rank, sizes, all.count, take, &few));
        if (all.count > 0) {
            CHECK(!dmlk_marks_to_boxes(marks, rank, sizes, all.count - 1, take, &few));
        }
        free(all.taken);
        free(marks);
    }
}

/* Marks every second column of rows 1, 3 and 5. */
TEST(regular_marks_share_boxes) {
    const int64_t sizes[] = {7, 100};
    uint64_t marks[11] = {0};
    for (int64_t i = 0; i < 700; i++) {
        marks[i / 64] |= (uint64_t)(i / 100 % 2 == 1 && i % 2 == 0) << i % 64;
    }
    struct boxes_found found = {.rank = 2, .sizes = sizes, .taken = calloc(700, 1)};
    CHECK(dmlk_marks_to_boxes(marks, 2, sizes, 1, take, &found));
    CHECK_EQUAL(found.count, 1);
    free(found.taken);
}

/* --- from a packet --- */

static int footprints(const device *d, dmlk_footprint *out, uint32_t capacity) {
    uint8_t *packet = malloc(d->packet_size); /* of exactly its size, so that reads past its end are detected */
    memcpy(packet, d->packet, d->packet_size);
    int count = dmlk_footprints(packet, d->packet_size, d->segments, d->segment_count, 0, out, capacity);
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

TEST(half_bytes_count_as_whole_bytes) {
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

TEST(a_small_array_gets_the_first_footprints) {
    device d;
    begin_copy(&d);
    dmlk_footprint f[2] = {{.operand = 77}, {.operand = 77}};
    CHECK_EQUAL(footprints(&d, f, 1), 2);
    CHECK_EQUAL(f[0].operand, 0);
    CHECK_EQUAL(f[1].operand, 77);
    CHECK_EQUAL(footprints(&d, NULL, 0), 2);
    device_end(&d);
}

/* Expects no footprint of tensor 1, whose descriptor or place the change breaks. */
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

TEST(tensors_without_usable_descriptors_have_no_footprint) {
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

/* --- kernels that do not read all of their inputs --- */

static void set_access(device *d, uint32_t tensor, uint32_t access) {
    dmlk_tensor changed = device_get_tensor(d, tensor);
    changed.access = access;
    device_set_tensor(d, tensor, &changed);
}

static void begin_product(device *d, float beta) {
    device_begin(d, "gemm");
    for (uint32_t k = 0; k < 4; k++) {
        device_tensor(d, DMLK_FLOAT32, 2, (const int64_t[]){2, 2}, NULL);
        set_access(d, k, k < 3 ? DMLK_READ : DMLK_WRITE);
    }
    const dmlk_gemm constants = {.alpha = 1, .beta = beta};
    device_constants(d, &constants, sizeof constants, 0);
}

static void begin_gather(device *d, const double *indices, int64_t count) {
    const dmlk_selection k = {.axis = 0, .count = 1, .own = 1};
    const int64_t size = 10;
    device_begin(d, "gather");
    device_tensor(d, DMLK_UINT16, 1, &size, NULL);
    const dmlk_view *from = device_tensor(d, DMLK_INT32, 1, &count, NULL);
    device_tensor(d, DMLK_UINT16, 1, &count, NULL);
    for (int64_t i = 0; i < count; i++) {
        set_element(from, &i, indices[i]);
    }
    device_constants(d, &k, sizeof k, 0);
    for (uint32_t i = 0; i < 3; i++) {
        dmlk_tensor tensor = device_get_tensor(d, i);
        tensor.access = i == 2 ? DMLK_WRITE : DMLK_READ;
        device_set_tensor(d, i, &tensor);
    }
}

TEST(reads_that_depend_on_data) {
    device d;
    dmlk_footprint f[8];
    begin_gather(&d, (const double[]){1, 3, -5, 1, 8}, 5);
    CHECK_EQUAL(footprints(&d, f, 8), 4);
    CHECK_EQUAL(f[0].access, DMLK_READ);
    CHECK(f[0].address == DEVICE_TENSORS + 2 && f[0].sizes[0] == 3 && f[0].strides[0] == 2 && f[0].first[0] == 1);
    CHECK(f[1].address == DEVICE_TENSORS + 16 && f[1].sizes[0] == 1 && f[1].first[0] == 8 && f[1].operand == 0);
    CHECK_EQUAL(f[2].operand, 1);
    /* There is no room for both, or the indices may change before the kernel runs. */
    for (int planned = 0; planned < 2; planned++) {
        CHECK_EQUAL(dmlk_footprints(d.packet, d.packet_size, d.segments, d.segment_count, planned, f,
                                    planned ? 8 : 3), 3);
        CHECK_EQUAL(f[0].access, DMLK_MAYBE_READ);
        CHECK(f[0].address == DEVICE_TENSORS && f[0].sizes[0] == 10);
        CHECK_EQUAL(f[1].access, DMLK_READ);
    }
    device_end(&d);
}

/* Inspecting all indices would take hours. */
TEST(too_many_indices) {
    const int64_t size[] = {1, 1 << 20}, sizes[] = {INT64_C(0xffffffff), 1 << 20}, strides[] = {0, 0};
    const dmlk_selection k = {.axis = 0, .count = 1, .own = 1, .trailing = 1};
    device d;
    dmlk_footprint f[8];
    device_begin(&d, "gather");
    device_tensor(&d, DMLK_UINT16, 2, size, strides);
    device_tensor(&d, DMLK_INT32, 2, sizes, strides);
    device_tensor(&d, DMLK_UINT16, 2, sizes, strides);
    device_constants(&d, &k, sizeof k, 0);
    set_access(&d, 0, DMLK_READ);
    set_access(&d, 1, DMLK_READ);
    CHECK_EQUAL(footprints(&d, f, 8), 3);
    CHECK_EQUAL(f[0].access, DMLK_MAYBE_READ);
    device_end(&d);
}

TEST(bad_indices) {
    device d;
    dmlk_bad_index bad;
    begin_gather(&d, (const double[]){0, 9, -10, 5}, 4);
    CHECK_EQUAL(dmlk_find_bad_index(d.packet, d.packet_size, d.segments, d.segment_count, &bad), 0);
    device_end(&d);
    begin_gather(&d, (const double[]){0, 9, -11, 10}, 4);
    CHECK_EQUAL(dmlk_find_bad_index(d.packet, d.packet_size, d.segments, d.segment_count, &bad), 1);
    CHECK(bad.indices == 1 && bad.target == 0 && bad.axis == 0 && bad.size == 10 && bad.is_signed);
    CHECK(bad.count == 2 && bad.element == 2 && bad.value.i == -11);
    device_end(&d);
}

TEST(a_product_without_c) {
    device d;
    dmlk_footprint f[4];
    begin_product(&d, 1);
    CHECK_EQUAL(footprints(&d, f, 4), 4);
    CHECK_EQUAL(f[2].operand, 2);
    device_end(&d);
    begin_product(&d, 0);
    CHECK_EQUAL(footprints(&d, f, 4), 3);
    CHECK_EQUAL(f[2].operand, 3);
    device_end(&d);
}

/* Makes a convolution along one axis of `size`, with `count` windows of `taps` places. */
static void begin_convolution(device *d, const dmlk_convolution_integer *k, int64_t size, int64_t taps, int64_t count) {
    device_begin(d, "convolution_integer");
    device_tensor(d, DMLK_UINT8, 3, (const int64_t[]){1, 1, size}, NULL);
    device_no_tensor(d);
    device_tensor(d, DMLK_INT8, 3, (const int64_t[]){1, 1, taps}, NULL);
    device_no_tensor(d);
    device_no_tensor(d);
    device_tensor(d, DMLK_INT32, 3, (const int64_t[]){1, 1, count}, NULL);
    set_access(d, 0, DMLK_READ);
    device_constants(d, k, sizeof *k, 0);
}

#define MAX_PIECES 40
#define MAX_PLACES 64

/* Counts how often the input's footprints hold each element of the input, which is a byte. */
static void count_places(const dmlk_footprint *f, int count, int64_t stride_of_axis, int *places) {
    memset(places, 0, MAX_PLACES * sizeof *places);
    for (int i = 0; i < count; i++) {
        for (uint64_t at = f[i].address; f[i].operand == 0 && at < f[i].end; at++) {
            uint64_t index[DMLK_MAX_RANK];
            if (dmlk_footprint_index(&f[i], at, index) == 1) {
                CHECK_EQUAL(index[2] * (uint64_t)stride_of_axis, at - DEVICE_TENSORS);
                places[at - DEVICE_TENSORS]++;
            }
        }
    }
}

TEST(convolutions_read_what_their_windows_cover) {
    for (int i = 0; i < 3000 && test_failures == 0; i++) {
        dmlk_convolution_integer k = {.spatial = 1, .groups = 1};
        k.strides[0] = (uint32_t)random_between(1, 9);
        k.dilations[0] = (uint32_t)random_between(1, 9);
        k.start_padding[0] = (uint32_t)random_between(0, 12);
        const int64_t size = random_between(1, MAX_PLACES), taps = random_between(1, 9), outputs = random_between(1, 80);
        device d;
        begin_convolution(&d, &k, size, taps, outputs);
        int expected[MAX_PLACES] = {0}, places[MAX_PLACES];
        for (int64_t at = 0; at < outputs * taps; at++) {
            const int64_t place = at / taps * k.strides[0] + at % taps * k.dilations[0] - k.start_padding[0];
            if (place >= 0 && place < size) {
                expected[place] = 1;
            }
        }
        dmlk_footprint f[MAX_PIECES];
        count_places(f, footprints(&d, f, MAX_PIECES), 1, places);
        CHECK(memcmp(places, expected, sizeof places) == 0);
        CHECK(footprints(&d, f, 5) <= 5);
        device_end(&d);
    }
}

/* The largest values that packets can hold: footprints of dispatches that would never end are computed quickly. */
TEST(huge_windows) {
    const uint32_t most = UINT32_MAX;
    dmlk_convolution_integer k = {.spatial = 1, .groups = 1, .strides = {2}, .dilations = {3}};
    device d;
    begin_convolution(&d, &k, 8, 2, 3);
    dmlk_tensor input = device_get_tensor(&d, 0), filter = device_get_tensor(&d, 2), output = device_get_tensor(&d, 5);
    input.sizes[2] = most;
    filter.sizes[2] = most / 6;
    output.sizes[2] = (most - (filter.sizes[2] - 1) * 3 - 1) / 2 + 1;
    device_set_tensor(&d, 0, &input);
    device_set_tensor(&d, 2, &filter);
    device_set_tensor(&d, 5, &output);
    dmlk_footprint f[MAX_PIECES];
    CHECK_EQUAL(footprints(&d, f, MAX_PIECES), 4); /* two remainders of the input */
    CHECK_EQUAL(f[0].sizes[2] + f[1].sizes[2] + 3, most); /* all but the second and the last one and three */
    CHECK_EQUAL(f[1].strides[2], 2);
    device_end(&d);
}

/* --- footprints as sets of bytes --- */

#define PLACES 8192 /* addresses 0 .. PLACES - 1 are compared */

static dmlk_footprint random_footprint(void) {
    static const uint32_t bits[] = {4, 4, 8, 16, 32, 64};
    dmlk_footprint f = {.address = (uint64_t)random_between(0, 60), .access = DMLK_WRITE};
    f.bits = bits[random_between(0, 5)];
    f.rank = (uint32_t)random_between(0, DMLK_MAX_RANK);
    const int64_t most = f.rank <= 3 ? 8 : f.rank <= 5 ? 4 : 2, unit = random_between(1, 3);
    uint64_t last = 0;
    for (uint32_t d = 0; d < f.rank; d++) {
        f.sizes[d] = (uint64_t)random_between(1, most);
        f.strides[d] = (uint64_t)(unit * random_between(0, 12) + (random_between(0, 9) == 0));
        last += (f.sizes[d] - 1) * f.strides[d];
    }
    f.end = f.address + ((last + 1) * f.bits + 7) / 8;
    return f;
}

/* Marks the bytes that the footprint touches, by its definition. */
static void touch(const dmlk_footprint *f, bool *touched) {
    int64_t sizes[DMLK_MAX_RANK], index[DMLK_MAX_RANK] = {0};
    for (uint32_t d = 0; d < f->rank; d++) {
        sizes[d] = (int64_t)f->sizes[d];
    }
    memset(touched, 0, PLACES * sizeof *touched);
    do {
        uint64_t at = 0;
        for (uint32_t d = 0; d < f->rank; d++) {
            at += (uint64_t)index[d] * f->strides[d];
        }
        for (uint64_t bit = at * f->bits; bit < (at + 1) * f->bits; bit++) {
            touched[f->address + bit / 8] = true;
        }
    } while (next_index(f->rank, sizes, index));
}

static void expect_meeting(const dmlk_footprint *a, const dmlk_footprint *b, uint64_t low, uint64_t high) {
    static bool in_a[PLACES], in_b[PLACES];
    touch(a, in_a);
    touch(b, in_b);
    uint64_t expected = low;
    while (expected < PLACES && !(in_a[expected] && in_b[expected])) {
        expected++;
    }
    const int met = expected < high && expected < PLACES;
    uint64_t byte = 0, painted = 0;
    CHECK_EQUAL(dmlk_footprints_meet(a, b, 0, low, high, &byte), met);
    CHECK_EQUAL(painted_meet(a, b, 0, low, high, &painted), met);
    if (met) {
        CHECK_EQUAL(byte, expected);
        CHECK_EQUAL(painted, expected);
    }
}

TEST(random_layouts_overlap_as_sets_do) {
    for (int i = 0; i < 5000 && test_failures == 0; i++) {
        const dmlk_footprint a = random_footprint(), b = random_footprint();
        expect_meeting(&a, &b, 0, UINT64_MAX);
        const uint64_t low = (uint64_t)random_between(0, 200);
        expect_meeting(&a, &b, low, low + (uint64_t)random_between(0, 100));
    }
}

TEST(random_layouts_hold_the_bytes_of_their_elements) {
    static bool touched[PLACES];
    for (int i = 0; i < 300 && test_failures == 0; i++) {
        const dmlk_footprint f = random_footprint();
        touch(&f, touched);
        for (uint64_t at = 0; at < f.end + 3; at++) {
            uint64_t index[DMLK_MAX_RANK], painted[DMLK_MAX_RANK];
            CHECK_EQUAL(dmlk_footprint_holds(&f, at), touched[at]);
            CHECK_EQUAL(dmlk_footprint_index(&f, at, index), touched[at]);
            CHECK_EQUAL(painted_index(&f, at, painted), touched[at]);
            CHECK(!touched[at] || memcmp(index, painted, f.rank * sizeof index[0]) == 0);
        }
    }
}

TEST(painted_bytes_are_those_touched) {
    static bool touched[PLACES];
    for (int i = 0; i < 2000 && test_failures == 0; i++) {
        const dmlk_footprint f = random_footprint();
        dmlk_pattern pattern;
        CHECK(dmlk_pattern_init(&pattern, &f));
        uint64_t *bits = dmlk_pattern_paint(&pattern);
        touch(&f, touched);
        for (uint64_t at = f.address; at < f.end; at++) {
            CHECK_EQUAL(bits[(at - f.address) / 64] >> (at - f.address) % 64 & 1, touched[at]);
        }
        free(bits);
    }
}

/* Layouts that overlap themselves over 2^57 bytes. */
TEST(patterns_that_cannot_be_painted_are_reported) {
    dmlk_footprint a = {.address = 4096, .end = UINT64_MAX, .bits = 4, .rank = 8};
    for (uint32_t d = 0; d < 8; d++) {
        a.sizes[d] = 1 << 20;
        a.strides[d] = ((uint64_t)1 << 34) + (uint64_t)(d * d * d * d);
    }
    dmlk_footprint b = a;
    b.address += (uint64_t)1 << 40;
    for (uint32_t d = 0; d < 8; d++) {
        b.strides[d] += 3 * d + 1;
    }
    uint64_t byte;
    CHECK_EQUAL(painted_meet(&a, &b, 0, 0, UINT64_MAX, &byte), -1);
}

int main(void) {
    RUN(random_layouts_overlap_as_sets_do);
    RUN(random_layouts_hold_the_bytes_of_their_elements);
    RUN(painted_bytes_are_those_touched);
    RUN(patterns_that_cannot_be_painted_are_reported);
    RUN(a_packet_has_a_footprint_per_tensor);
    RUN(half_bytes_count_as_whole_bytes);
    RUN(a_small_array_gets_the_first_footprints);
    RUN(tensors_without_usable_descriptors_have_no_footprint);
    RUN(packets_that_do_not_decode);
    RUN(a_product_without_c);
    RUN(convolutions_read_what_their_windows_cover);
    RUN(huge_windows);
    RUN(boxes_hold_the_marked_elements);
    RUN(regular_marks_share_boxes);
    RUN(reads_that_depend_on_data);
    RUN(too_many_indices);
    RUN(bad_indices);
    return RESULT();
}
