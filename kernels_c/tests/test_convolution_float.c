/* convolution_float backward and of single channels, on any layout: the bits of the plain kernel, which is its definition. */
#include "convolution_float.h"

#include <math.h>

#include "device.h"
#include "element.h"

#define ROUNDS 300
#define PRODUCTS 100000 /* of an output, at least its elements: the plain kernel takes them one by one */

struct convolution {
    dmlk_convolution_float k;
    enum dmlk_type type;
    int64_t groups, filters, channels;
    bool in_blocks, neighbours; /* filters */
    int64_t in[5], out[5], window[6];
};

static double products_of(const struct convolution *c) {
    double products = (double)c->out[0] * (double)c->out[1] * (double)c->channels;
    for (uint32_t i = 0; i < c->k.spatial; i++) {
        products *= (double)c->out[2 + i] * (double)c->window[3 + i];
    }
    return products;
}

/* Outputs are about as many as the windows cover. */
static void random_axis(struct convolution *c, uint32_t i, bool has_one_place) {
    static const int64_t windows[] = {0, 12, 5, 3}, inputs[] = {0, 40, 9, 5};
    const uint32_t spatial = c->k.spatial;
    c->window[3 + i] = random_between(1, windows[spatial]);
    c->k.strides[i] = (uint32_t)random_between(1, random_between(0, 3) == 0 ? 9 : 3);
    c->k.dilations[i] = (uint32_t)random_between(1, random_between(0, 2) == 0 ? 4 : 1);
    c->k.start_padding[i] = (uint32_t)random_between(0, has_one_place ? 1 : 4); /* so that it meets taps */
    c->in[2 + i] = has_one_place ? 1 : random_between(1, inputs[spatial]);
    const int64_t covered = (c->in[2 + i] - 1) * c->k.strides[i] + (c->window[3 + i] - 1) * c->k.dilations[i] + 1;
    const int64_t output = covered - c->k.start_padding[i] + random_between(-3, 3);
    c->out[2 + i] = output < 1 ? 1 : output;
}

static void random_convolution(struct convolution *c) {
    do {
        c->k = (dmlk_convolution_float){
            .spatial = (uint32_t)random_between(1, 3), .backward = 1, .reversed = (uint32_t)random_between(0, 1)};
        c->type = random_between(0, 1) == 0 ? DMLK_FLOAT32 : DMLK_FLOAT16;
        c->groups = random_between(0, 2) == 0 ? random_between(2, 3) : 1;
        c->in_blocks = random_between(0, 3) == 0, c->neighbours = false;
        c->filters = c->in_blocks ? 16 * random_between(1, 4) : random_between(1, random_between(0, 1) == 0 ? 8 : 60);
        c->channels = random_between(1, random_between(0, 3) == 0 ? 300 : 12);
        c->in[0] = c->out[0] = random_between(1, 2);
        c->in[1] = c->groups * c->channels;
        c->out[1] = c->groups * c->filters;
        c->window[0] = c->groups, c->window[1] = c->filters, c->window[2] = c->channels;
        const bool has_one_place = random_between(0, 5) == 0;
        for (uint32_t i = 0; i < c->k.spatial; i++) {
            random_axis(c, i, has_one_place);
        }
    } while (products_of(c) > PRODUCTS);
}

/* Numbers, and in some tensors infinities and NaNs. */
static void fill(const dmlk_view *view) {
    const bool special = random_between(0, 5) == 0;
    int64_t index[DMLK_MAX_RANK] = {0};
    do {
        const bool is_number = !special || random_between(0, 60) > 0;
        set_element(view, index, is_number ? (double)random_between(-900, 900) / 256 : random_between(0, 1) == 0 ? INFINITY : NAN);
    } while (next_index(view->rank, view->sizes, index));
}

static void add_random(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes) {
    int64_t strides[DMLK_MAX_RANK];
    random_strides(rank, sizes, false, strides);
    fill(device_tensor(d, type, rank, sizes, random_between(0, 1) == 0 ? NULL : strides));
}

/* In the order of DirectML's backward convolutions: channels before filters. */
static void add_by_channel(device *d, const struct convolution *c) {
    const uint32_t rank = c->k.spatial + 3;
    int64_t strides[6], elements = 1;
    for (uint32_t axis = rank; axis-- > 3;) {
        strides[axis] = elements;
        elements *= c->window[axis];
    }
    strides[1] = elements;
    strides[2] = c->filters * elements;
    strides[0] = c->channels * strides[2];
    fill(device_tensor(d, c->type, rank, c->window, strides));
}

/* In the order in which tuned kernels read them. */
static void add_blocks(device *d, const struct convolution *c) {
    const uint32_t rank = c->k.spatial + 4;
    int64_t sizes[7] = {c->groups, c->filters / 16, 16}, strides[7], elements = 16;
    memcpy(sizes + 3, c->window + 2, (c->k.spatial + 1) * sizeof *sizes);
    for (uint32_t axis = rank; axis-- > 0;) {
        strides[axis] = axis == 2 ? 1 : elements;
        elements *= axis == 2 ? 1 : sizes[axis];
    }
    fill(device_tensor(d, c->type, rank, sizes, strides));
}

/* Filters are neighbours, with the other axes in any order, as TensorFlow has them. */
static void add_neighbours(device *d, const struct convolution *c) {
    const uint32_t rank = c->k.spatial + 3;
    int64_t strides[6], elements = c->filters + (random_between(0, 1) == 0 ? 0 : random_between(1, 20));
    uint32_t order[] = {0, 2, 3, 4, 5}; /* axes */
    for (uint32_t i = rank - 1; i-- > 0;) {
        const uint32_t other = (uint32_t)random_between(0, i), axis = order[other];
        order[other] = order[i];
        strides[axis] = elements;
        elements *= c->window[axis];
    }
    strides[1] = 1;
    fill(device_tensor(d, c->type, rank, c->window, strides));
}

/* The checked dispatch runs both kernels.  On any layout, or the input and the output packed. */
static void compare_with_plain(const struct convolution *c, bool packed) {
    const uint32_t rank = c->k.spatial + 2;
    device d;
    dmlk_checker checker = {0};
    device_begin(&d, "convolution_float");
    packed ? fill(device_tensor(&d, c->type, rank, c->in, NULL)) : add_random(&d, c->type, rank, c->in);
    if (c->in_blocks) {
        add_blocks(&d, c);
    } else {
        c->neighbours              ? add_neighbours(&d, c)
        : random_between(0, 1) == 0 ? add_by_channel(&d, c)
                                    : add_random(&d, c->type, rank + 1, c->window);
    }
    random_between(0, 1) == 0 ? add_random(&d, c->type, 1, &c->out[1]) : device_no_tensor(&d);
    packed ? fill(device_tensor(&d, c->type, rank, c->out, NULL))
           : add_random(&d, random_between(0, 2) == 0 ? DMLK_FLOAT32 : c->type, rank, c->out);
    device_constants(&d, &c->k, sizeof c->k, 0);
    dmlk_set_checker(&checker);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    dmlk_set_checker(NULL);
    CHECK_EQUAL(checker.dispatches, 1);
    CHECK_EQUAL(checker.findings[DMLK_MEM_DIFFERS].count, 0);
    device_end(&d);
}

TEST(backward_convolutions_have_the_bits_of_the_plain_kernel) {
    for (int round = 0; round < ROUNDS; round++) {
        struct convolution c;
        random_convolution(&c);
        compare_with_plain(&c, false);
    }
}

/* Their number is often one of whole vectors. */
static void random_neighbours(struct convolution *c) {
    do {
        random_convolution(c);
        c->k.backward = 0, c->in_blocks = false, c->neighbours = true;
        c->filters = random_between(0, 1) == 0 ? 16 * random_between(1, 8) : random_between(2, 70);
        c->out[1] = c->groups * c->filters;
        c->window[1] = c->filters;
        for (uint32_t i = 0; i < c->k.spatial; i++) {
            const int64_t reach = (c->window[3 + i] - 1) * c->k.dilations[i] + 1, padding = c->k.start_padding[i];
            c->out[2 + i] = random_between(1, c->k.spatial == 1 ? 300 : 9);
            c->in[2 + i] = (c->out[2 + i] - 1) * c->k.strides[i] + reach - 2 * padding;
            c->in[2 + i] = c->in[2 + i] < 1 ? 1 : c->in[2 + i];
        }
    } while (products_of(c) > PRODUCTS);
}

TEST(convolutions_of_neighbouring_filters_have_the_bits_of_the_plain_kernel) {
    for (int round = 0; round < ROUNDS; round++) {
        struct convolution c;
        random_neighbours(&c);
        compare_with_plain(&c, random_between(0, 1) == 0);
    }
}

/* Square windows over each channel; the sizes of planes are around those of vectors and tiles. */
static void random_depthwise(struct convolution *c) {
    c->k = (dmlk_convolution_float){.spatial = 2, .reversed = (uint32_t)(random_between(0, 7) == 0)};
    c->type = random_between(0, 1) == 0 ? DMLK_FLOAT32 : DMLK_FLOAT16;
    c->groups = random_between(1, 4), c->filters = random_between(1, 2), c->channels = 1;
    c->in_blocks = c->neighbours = false;
    c->in[0] = c->out[0] = random_between(1, 2);
    c->in[1] = c->groups, c->out[1] = c->groups * c->filters;
    c->window[0] = c->groups, c->window[1] = c->filters, c->window[2] = 1;
    const int64_t window = random_between(0, 5) == 0 ? random_between(1, 7) : random_between(1, 2) * 2 + 1;
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t padding = random_between(0, 1) == 0 ? window - 1 : random_between(0, 7);
        c->window[3 + i] = window;
        c->k.strides[i] = i == 1 && random_between(0, 3) > 0 ? c->k.strides[0] : (uint32_t)random_between(1, 2);
        c->k.dilations[i] = (uint32_t)random_between(1, random_between(0, 3) == 0 ? 9 : 1);
        const int64_t reach = (window - 1) * c->k.dilations[i] + 1;
        c->k.start_padding[i] = (uint32_t)random_between(0, padding);
        c->out[2 + i] = random_between(1, random_between(0, 2) == 0 ? 40 : 18);
        c->in[2 + i] = (c->out[2 + i] - 1) * c->k.strides[i] + reach - padding;
        c->in[2 + i] = c->in[2 + i] < 1 ? 1 : c->in[2 + i];
    }
}

TEST(depthwise_convolutions_have_the_bits_of_the_plain_kernel) {
    for (int round = 0; round < ROUNDS; round++) {
        struct convolution c;
        random_depthwise(&c);
        compare_with_plain(&c, random_between(0, 1) == 0);
    }
}

int main(void) {
    RUN(backward_convolutions_have_the_bits_of_the_plain_kernel);
    RUN(convolutions_of_neighbouring_filters_have_the_bits_of_the_plain_kernel);
    RUN(depthwise_convolutions_have_the_bits_of_the_plain_kernel);
    return RESULT();
}
