/* gemm and convolution_integer, on any layout, against their definitions. */
#include <math.h>

#include "convolution_integer.h"
#include "convolve.h"
#include "device.h"
#include "gemm.h"

/* A tensor with random strides and integers low .. high in it. */
static const dmlk_view *random_tensor(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes, int64_t low,
                                      int64_t high) {
    int64_t strides[DMLK_MAX_RANK];
    random_strides(rank, sizes, true, strides);
    const dmlk_view *view = device_tensor(d, type, rank, sizes, strides);
    fill_random(view, low, high);
    return view;
}

static const dmlk_view *output_tensor(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes) {
    int64_t strides[DMLK_MAX_RANK];
    random_strides(rank, sizes, false, strides);
    return device_tensor(d, type, rank, sizes, strides);
}

static double gemm_element(const dmlk_view *const *v, const dmlk_gemm *k, const int64_t *index, int64_t depth) {
    const uint32_t row = v[3]->rank - 2, column = v[3]->rank - 1;
    double sum = 0;
    for (int64_t i = 0; i < depth; i++) {
        int64_t a[DMLK_MAX_RANK], b[DMLK_MAX_RANK];
        memcpy(a, index, sizeof a);
        memcpy(b, index, sizeof b);
        a[k->trans_a ? column : row] = index[row];
        a[k->trans_a ? row : column] = i;
        b[k->trans_b ? row : column] = index[column];
        b[k->trans_b ? column : row] = i;
        sum += get_element(v[0], a) * get_element(v[1], b);
    }
    return k->alpha * sum + (v[2] != NULL ? k->beta * get_element(v[2], index) : 0);
}

static void check_gemm(int64_t m, int64_t n, int64_t depth, enum dmlk_type type, enum dmlk_type out_type) {
    const dmlk_gemm k = {.trans_a = random_bits() & 1, .trans_b = random_bits() & 1, .alpha = 2, .beta = 0.5f};
    const uint32_t rank = (uint32_t)random_between(2, 4);
    int64_t a[4] = {2, 3}, b[4] = {2, 3}, out[4] = {2, 3};
    a[rank - 2] = k.trans_a ? depth : m;
    a[rank - 1] = k.trans_a ? m : depth;
    b[rank - 2] = k.trans_b ? n : depth;
    b[rank - 1] = k.trans_b ? depth : n;
    out[rank - 2] = m;
    out[rank - 1] = n;
    device d;
    device_begin(&d, "gemm");
    const dmlk_view *v[4] = {NULL};
    v[0] = random_tensor(&d, type, rank, a, -3, 3);
    v[1] = random_tensor(&d, type, rank, b, -3, 3);
    if (random_bits() & 1) {
        v[2] = random_tensor(&d, type, rank, out, -3, 3);
    } else {
        device_no_tensor(&d);
    }
    v[3] = output_tensor(&d, out_type, rank, out);
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    int64_t index[DMLK_MAX_RANK] = {0}, wrong = 0;
    do {
        wrong += get_element(v[3], index) != gemm_element(v, &k, index, depth);
    } while (next_index(rank, out, index));
    CHECK_EQUAL(wrong, 0);
    CHECK(gaps_untouched(v[3]));
    device_end(&d);
}

TEST(gemm) {
    for (int round = 0; round < 60; round++) {
        const enum dmlk_type type = random_bits() & 1 ? DMLK_FLOAT32 : DMLK_FLOAT16;
        const enum dmlk_type out = random_bits() & 1 ? DMLK_FLOAT32 : type;
        check_gemm(random_between(1, 20), random_between(1, 40), random_between(1, 20), type, out);
    }
    check_gemm(70, 300, 3, DMLK_FLOAT32, DMLK_FLOAT32); /* several blocks */
    for (int round = 0; round < 12; round++) {
        const enum dmlk_type type = round % 2 == 0 ? DMLK_FLOAT32 : DMLK_FLOAT16;
        check_gemm(random_between(1, 9), random_between(40, 120), random_between(250, 600), type, DMLK_FLOAT32);
        check_gemm(random_between(40, 120), random_between(1, 3), random_between(250, 600), type, DMLK_FLOAT32);
        check_gemm(1, random_between(1, 400), random_between(1, 40), type, type);
    }
}

/* Both blocks of 16 columns of b are the same memory. */
TEST(gemm_of_a_block_with_stride_0) {
    const dmlk_gemm k = {.alpha = 1};
    device d;
    device_begin(&d, "gemm");
    const dmlk_view *a = random_tensor(&d, DMLK_FLOAT32, 2, (const int64_t[]){27, 6}, -3, 3);
    const dmlk_view *b = device_tensor(&d, DMLK_FLOAT32, 3, (const int64_t[]){6, 2, 16}, (const int64_t[]){16, 0, 1});
    fill_random(b, -3, 3);
    device_no_tensor(&d);
    const dmlk_view *out = output_tensor(&d, DMLK_FLOAT32, 2, (const int64_t[]){27, 32});
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    int64_t at[2] = {0}, wrong = 0;
    do {
        double sum = 0;
        for (int64_t i = 0; i < 6; i++) {
            sum += get_element(a, (const int64_t[]){at[0], i}) * get_element(b, (const int64_t[]){i, 0, at[1] % 16});
        }
        wrong += get_element(out, at) != sum;
    } while (next_index(2, out->sizes, at));
    CHECK_EQUAL(wrong, 0);
    device_end(&d);
}

TEST(gemm_refuses_sizes_that_do_not_fit) {
    static const int64_t sizes[][3][2] = {
        {{2, 3}, {4, 5}, {2, 5}}, {{2, 3}, {3, 4}, {2, 5}}, {{3, 3}, {3, 5}, {2, 5}}}; /* a, b, out */
    for (int i = 0; i < 3; i++) {
        device d;
        device_begin(&d, "gemm");
        random_tensor(&d, DMLK_FLOAT32, 2, sizes[i][0], 0, 1);
        random_tensor(&d, DMLK_FLOAT32, 2, sizes[i][1], 0, 1);
        device_no_tensor(&d);
        output_tensor(&d, DMLK_FLOAT32, 2, sizes[i][2]);
        const dmlk_gemm k = {.alpha = 1};
        device_constants(&d, &k, sizeof k, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_BAD_PACKET);
        device_end(&d);
    }
}

struct convolution {
    dmlk_convolution_integer k;
    const dmlk_view *input, *input_zero, *filter, *filter_zero, *output;
    int64_t filter_sizes[4];
    int64_t blocks[2]; /* 0: it has none; filters and channels in one */
};

static double filter_element(const struct convolution *c, const int64_t *tap) {
    int64_t at[DMLK_MAX_RANK] = {tap[0], tap[1], tap[2], tap[3]};
    if (c->blocks[0] != 0) {
        memcpy(at + 4, tap + 2, 2 * sizeof *at);
        for (int k = 0; k < 2; k++) {
            at[2 * k] = tap[k] / c->blocks[k];
            at[2 * k + 1] = tap[k] % c->blocks[k];
        }
    }
    return get_element(c->filter, at);
}

static int64_t convolution_element(const struct convolution *c, const int64_t *at) {
    const uint32_t spatial = c->k.spatial;
    const int64_t zero[] = {0}, per_group = c->filter_sizes[0] / c->k.groups;
    const int64_t channels = c->filter_sizes[1], group = at[1] / per_group;
    int64_t tap[4] = {at[1]}, sum = 0;
    do {
        int64_t from[4] = {at[0], group * channels + tap[1]};
        bool inside = true;
        for (uint32_t i = 0; i < spatial; i++) {
            from[2 + i] = at[2 + i] * c->k.strides[i] + tap[2 + i] * c->k.dilations[i] - c->k.start_padding[i];
            inside &= from[2 + i] >= 0 && from[2 + i] < c->input->sizes[2 + i];
        }
        if (inside) {
            const bool per_channel = c->filter_zero != NULL && c->filter_zero->sizes[0] > 1;
            const double input_zero = c->input_zero != NULL ? get_element(c->input_zero, zero) : 0;
            const double filter_zero =
                c->filter_zero != NULL ? get_element(c->filter_zero, per_channel ? &at[1] : zero) : 0;
            const double product =
                (get_element(c->input, from) - input_zero) * (filter_element(c, tap) - filter_zero);
            sum += (int64_t)product;
        }
    } while (next_index(spatial + 1, c->filter_sizes + 1, tap + 1));
    return sum;
}

static uint32_t random_small(int64_t low, int64_t high) { return (uint32_t)random_between(low, high); }

/* Kind 0: any layout; 1 and 2: the most common layouts, packed and channels last; 3: channels last with gaps after
 * them. */
static const dmlk_view *common_tensor(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes, bool input,
                                      int64_t kind) {
    int64_t strides[DMLK_MAX_RANK], stride = 1;
    if (kind == 0 || rank < 3) {
        random_strides(rank, sizes, input, strides);
    } else {
        for (uint32_t i = 0; i < rank; i++) {
            uint32_t axis = rank - 1 - i; /* from the innermost on */
            axis = kind == 1 ? axis : i == 0 ? 1 : i < rank - 1 ? rank - i : 0;
            strides[axis] = stride;
            stride *= sizes[axis];
            stride = kind == 3 && i == 0 ? (stride + 3) / 4 * 4 : stride + (kind == 3 && i == 1);
        }
    }
    if (input && random_between(0, 5) == 0) { /* elements in the same place */
        const int64_t axis = random_between(0, rank - 1);
        strides[axis] = random_between(0, strides[axis]);
    }
    return device_tensor(d, type, rank, sizes, strides);
}

/* A tensor with random elements of the whole range of its 8-bit type. */
static const dmlk_view *random_bytes(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes,
                                     int64_t kind) {
    const int64_t low = type == DMLK_INT8 ? -128 : 0;
    const dmlk_view *view = common_tensor(d, type, rank, sizes, true, kind);
    fill_random(view, low, low + 255);
    return view;
}

static const dmlk_view *maybe_zero_point(device *d, enum dmlk_type type, const int64_t *sizes) {
    if (random_bits() & 1) {
        return random_bytes(d, type, 1, sizes, 0);
    }
    device_no_tensor(d);
    return NULL;
}

/* Filters in blocks: in any layout, or with their elements in the order in which the kernel reads them. */
static const dmlk_view *filter_in_blocks(device *d, struct convolution *c, enum dmlk_type type) {
    const uint32_t spatial = c->k.spatial, rank = spatial + 4;
    const bool quads = random_bits() & 1 && c->filter_sizes[0] % 16 == 0 && c->filter_sizes[1] % 4 == 0;
    int64_t sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK];
    for (int k = 0; k < 2; k++) {
        c->blocks[k] = quads ? (k == 0 ? 16 : 4) : random_between(1, 16);
        while (c->filter_sizes[k] % c->blocks[k] != 0) {
            c->blocks[k]--;
        }
        sizes[2 * k] = c->filter_sizes[k] / c->blocks[k];
        sizes[2 * k + 1] = c->blocks[k];
    }
    memcpy(sizes + 4, c->filter_sizes + 2, spatial * sizeof *sizes);
    random_strides(rank, sizes, true, strides);
    if (quads) {
        const uint32_t inside[] = {3, 1, 2, rank - 1, 4, 0}; /* the innermost first */
        int64_t stride = 1;
        for (uint32_t i = 0; i < 6; i++) {
            if (i != 4 || spatial == 2) {
                strides[inside[i]] = stride;
                stride *= sizes[inside[i]];
            }
        }
    }
    const dmlk_view *view = device_tensor(d, type, rank, sizes, strides);
    fill_random(view, type == DMLK_INT8 ? -128 : 0, type == DMLK_INT8 ? 127 : 255);
    return view;
}

/* Adds the sums of the filters over their channels, or no tensor. */
static void maybe_sums(device *d, const struct convolution *c) {
    const uint32_t spatial = c->k.spatial;
    if (random_bits() & 1) {
        device_no_tensor(d);
        return;
    }
    int64_t sizes[3] = {c->filter_sizes[0], c->filter_sizes[2], c->filter_sizes[3]}, strides[3], at[3] = {0};
    random_strides(spatial + 1, sizes, false, strides);
    const dmlk_view *sums = device_tensor(d, DMLK_INT32, spatial + 1, sizes, strides);
    do {
        double sum = 0;
        for (int64_t channel = 0; channel < c->filter_sizes[1]; channel++) {
            sum += filter_element(c, (const int64_t[]){at[0], channel, at[1], at[2]});
        }
        set_element(sums, at, sum);
    } while (next_index(spatial + 1, sizes, at));
}

/* Tensors of these sizes, of random types and with or without zero points. */
static void add_tensors(device *d, struct convolution *c, const int64_t *in, const int64_t *filter, const int64_t *out,
                        int64_t in_kind, int64_t out_kind) {
    const uint32_t rank = c->k.spatial + 2;
    const enum dmlk_type in_type = random_bits() & 1 ? DMLK_INT8 : DMLK_UINT8;
    const enum dmlk_type filter_type = random_bits() & 1 ? DMLK_INT8 : DMLK_UINT8;
    const int64_t one[] = {1};
    device_begin(d, "convolution_integer");
    c->input = random_bytes(d, in_type, rank, in, in_kind);
    c->input_zero = maybe_zero_point(d, in_type, one);
    memcpy(c->filter_sizes, filter, rank * sizeof *filter);
    memset(c->blocks, 0, sizeof c->blocks);
    c->filter = random_between(0, 2) == 0 ? filter_in_blocks(d, c, filter_type)
                                          : random_bytes(d, filter_type, rank, filter, random_between(0, 2));
    c->filter_zero = maybe_zero_point(d, filter_type, random_bits() & 1 ? one : filter);
    maybe_sums(d, c);
    c->output = common_tensor(d, DMLK_INT32, rank, out, false, out_kind);
}

/* The number of positions of a window of `span` elements in `padded` elements, or a random number. */
static int64_t random_positions(int64_t padded, int64_t span, int64_t stride) {
    return span > padded || random_between(0, 2) == 0 ? random_between(1, (padded + 3) / stride + 2) : (padded - span) / stride + 1;
}

static void random_convolution(device *d, struct convolution *c) {
    static const int64_t filters[] = {1, 2, 3, 6, 8, 16, 17, 32, 64}, channels[] = {1, 1, 2, 3, 4, 8, 13};
    const bool depthwise = random_between(0, 4) == 0, large = depthwise && random_between(0, 7) == 0;
    const uint32_t spatial = random_small(1, 2);
    const uint32_t groups = large       ? random_small(1, 7)
                            : depthwise ? random_small(1, 150)
                                        : (random_small(0, 3) == 0 ? 9 : random_small(1, 3));
    const int64_t longest = large ? 300 : random_between(0, 4) == 0 ? 60 : 9, tallest = large ? 60 : 9;
    const int64_t widest = random_between(0, 3) == 0 ? 7 : 3;
    const bool pointwise = random_between(0, 4) == 0; /* windows of one element, and no padding */
    const int64_t in_kind = random_between(0, 3), out_kind = random_bits() & 1 ? in_kind : random_between(0, 3);
    c->k = (dmlk_convolution_integer){.spatial = spatial, .groups = groups};
    int64_t in[4], filter[4], out[4];
    filter[0] = groups * (depthwise ? random_between(1, 2) : filters[random_bits() % 9]);
    filter[1] = depthwise ? 1 : channels[random_bits() % 7];
    in[0] = random_between(1, 2);
    in[1] = filter[1] * groups;
    out[0] = in[0];
    out[1] = filter[0];
    for (uint32_t i = 0; i < spatial; i++) {
        const bool wide = random_between(0, 7) == 0; /* taps far from each other, padding that holds whole windows */
        in[2 + i] = random_between(1, i + 1 == spatial ? longest : tallest);
        filter[2 + i] = pointwise ? 1 : random_bits() & 1 ? 3 : random_between(1, widest);
        c->k.strides[i] = random_small(1, 3);
        c->k.dilations[i] = random_small(1, wide ? 70 : 3);
        c->k.start_padding[i] = pointwise ? 0 : random_small(0, wide ? 150 : 3);
        const int64_t end_padding = pointwise ? 0 : random_between(0, wide ? 150 : 3);
        const int64_t span = (filter[2 + i] - 1) * c->k.dilations[i] + 1;
        out[2 + i] = random_positions(in[2 + i] + c->k.start_padding[i] + end_padding, span, c->k.strides[i]);
    }
    add_tensors(d, c, in, filter, out, in_kind, out_kind);
}

/* (the model of tile registers takes long) */
static int fewer(int rounds) {
    const char *isa = getenv("DMLEMU_ISA");
    return isa != NULL && strcmp(isa, "amx_model") == 0 ? rounds / 2 : rounds;
}

TEST(convolution) {
    for (int round = 0; round < fewer(600); round++) {
        device d;
        struct convolution c;
        random_convolution(&d, &c);
        device_constants(&d, &c.k, sizeof c.k, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        int64_t index[DMLK_MAX_RANK] = {0}, wrong = 0;
        do {
            wrong += (int64_t)get_element(c.output, index) != convolution_element(&c, index);
        } while (next_index(c.output->rank, c.output->sizes, index));
        CHECK_EQUAL(wrong, 0);
        CHECK(gaps_untouched(c.output));
        device_end(&d);
    }
}

/* Tensors so large that several threads share the work, or that one thread processes some rows after the others.
 * Only some elements are compared. */
TEST(convolution_of_large_tensors) {
    static const struct {
        int64_t in[4], filter[4];
        uint32_t padding;
    } cases[] = {
        {{1, 512, 40, 32}, {48, 512, 3, 1}, 0},   /* rows of 16 KiB: two pieces */
        {{1, 512, 40, 32}, {48, 512, 3, 1}, 1},   /* and with rows of padding */
        {{1, 1200, 7, 7}, {208, 1200, 1, 1}, 0},  /* few positions */
        {{2, 64, 56, 56}, {64, 64, 3, 3}, 1},     /* many */
        {{1, 3, 96, 200}, {64, 3, 7, 7}, 3},      /* quads of rows of a window */
        {{1, 30, 2, 3000}, {16, 30, 2, 3}, 2},    /* long rows */
    };
    for (uint32_t i = 0; i < 4 * sizeof cases / sizeof cases[0]; i++) {
        const int64_t *in = cases[i / 4].in, *filter = cases[i / 4].filter, padding = cases[i / 4].padding;
        struct convolution c = {.k = {.spatial = 2, .groups = 1, .strides = {1, 1}, .dilations = {1, 1}}};
        int64_t out[4] = {in[0], filter[0]};
        for (int axis = 0; axis < 2; axis++) {
            c.k.strides[axis] = 1 + (uint32_t)(random_bits() % 2);
            c.k.start_padding[axis] = (uint32_t)padding;
            out[2 + axis] = (in[2 + axis] + 2 * padding - filter[2 + axis]) / c.k.strides[axis] + 1;
        }
        device d;
        add_tensors(&d, &c, in, filter, out, 2 - i % 2, random_between(1, 2));
        device_constants(&d, &c.k, sizeof c.k, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        int64_t wrong = 0;
        for (int look = 0; look < 600; look++) {
            int64_t index[DMLK_MAX_RANK] = {0};
            for (int axis = 0; axis < 4; axis++) {
                index[axis] = random_between(0, out[axis] - 1);
            }
            wrong += (int64_t)get_element(c.output, index) != convolution_element(&c, index);
        }
        CHECK_EQUAL(wrong, 0);
        CHECK(gaps_untouched(c.output));
        device_end(&d);
    }
}

/* A tensor of one element, or of one for each channel, as dmlk_scaling has it. */
static dmlk_view of_channels(device *d, enum dmlk_type type, int64_t channels) {
    dmlk_view view = *device_tensor(d, type, 4, (const int64_t[]){1, random_bits() & 1 ? channels : 1, 1, 1}, NULL);
    view.strides[1] = view.sizes[1] > 1;
    return view;
}

/* The same convolution for the tuned kernel itself, with filters that are not in blocks; its sums are finished. */
static dmlk_convolution as_finished(const struct convolution *c, const dmlk_view *output, const dmlk_sums_finish *finish) {
    static const dmlk_view no_zero;
    const int64_t zero_at[] = {0}, *sizes = c->filter_sizes, *strides = c->filter->strides;
    dmlk_convolution k = {.input = *c->input,
                          .output = *output,
                          .filter = *c->filter,
                          .strides = {1, 1, 1, 1},
                          .dilations = {1, 1, 1, 1},
                          .groups = 1,
                          .input_zero = c->input_zero != NULL ? (int)get_element(c->input_zero, zero_at) : 0,
                          .filter_zero = c->filter_zero != NULL ? c->filter_zero : &no_zero,
                          .finish = finish};
    memcpy(k.filter_sizes, sizes, sizeof k.filter_sizes);
    memcpy(k.filter.sizes, (const int64_t[]){sizes[0], 1, sizes[1], 1, sizes[2], sizes[3]}, 6 * sizeof *sizes);
    memcpy(k.filter.strides, (const int64_t[]){strides[0], 0, strides[1], 0, strides[2], strides[3]}, 6 * sizeof *sizes);
    k.filter.rank = 6;
    return k;
}

/* Scales the sums of a convolution that was run; false: the tuned kernel does not scale these. */
static bool check_scaled(const struct convolution *c) {
    const int64_t filters = c->filter_sizes[0];
    const bool is_signed = random_bits() & 1;
    device d;
    device_begin(&d, "convolution_integer");
    const dmlk_view *bytes =
        common_tensor(&d, is_signed ? DMLK_INT8 : DMLK_UINT8, 4, c->output->sizes, false, random_between(0, 3));
    const dmlk_view bias = of_channels(&d, DMLK_INT32, filters), first = of_channels(&d, DMLK_FLOAT32, filters),
                    second = of_channels(&d, DMLK_FLOAT32, filters), third = of_channels(&d, DMLK_FLOAT32, filters);
    fill_random(&bias, -5000, 5000);
    fill_random(&first, 1, 9);
    fill_random(&second, 1, 9);
    fill_random(&third, 100, 9000);
    const int32_t low = is_signed ? -128 : 0;
    const dmlk_scaling scaling = {.out = bytes,
                                  .bias = &bias,
                                  .scales = {&first, &second, &third},
                                  .zero = (uint8_t)random_bits(),
                                  .type = {.flip = is_signed ? 0x80 : 0, .low = low, .high = low + 255}};
    const dmlk_sums_finish finish = {.base = bytes->base,
                                     .scaling = &scaling,
                                     .summand = -0.0f,
                                     .bytes = bytes->base,
                                     .step = 1,
                                     .zero = scaling.zero,
                                     .integers = scaling.type};
    const dmlk_convolution k = as_finished(c, bytes, &finish);
    const bool is_done = dmlk_convolve_bytes(&k);
    int64_t index[4] = {0}, wrong = 0;
    do {
        const uint32_t sum = (uint32_t)(int32_t)get_element(c->output, index) + dmlk_scaling_bias(&scaling, index[1]);
        const float number = (float)(int32_t)sum * dmlk_scaling_factor(&scaling, index[1]);
        wrong += *element_at(bytes, index) != dmlk_quantized_float(number, scaling.zero, &scaling.type);
    } while (is_done && next_index(4, bytes->sizes, index));
    CHECK(!is_done || wrong == 0);
    CHECK(gaps_untouched(bytes));
    device_end(&d);
    return is_done;
}

/* A tensor of the layout of another. */
static const dmlk_view *tensor_like(device *d, enum dmlk_type type, const dmlk_view *like) {
    return device_tensor(d, type, 4, like->sizes, like->strides);
}

/* What `finish` makes of a sum and an element of `added`. */
static float finished_number(const dmlk_sums_finish *finish, int64_t sum, float added) {
    float x = (float)sum * finish->factor + finish->summand;
    x = finish->added != NULL ? x + added : x;
    if (finish->is_bounded) {
        x = x > finish->low ? x : finish->low;
        x = x < finish->high ? x : finish->high;
    }
    return dmlk_one_nan_float(x);
}

/* The same as check_scaled for sums that become floats, bytes or both. */
static bool check_finished(const struct convolution *c) {
    static const float special[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f};
    device d;
    device_begin(&d, "convolution_integer");
    const dmlk_view *out = common_tensor(&d, DMLK_FLOAT32, 4, c->output->sizes, false, random_between(0, 3));
    const dmlk_view *added = tensor_like(&d, DMLK_FLOAT32, out), *bytes = tensor_like(&d, DMLK_UINT8, out);
    const int kept = (int)random_between(1, 3); /* floats, bytes, both */
    const dmlk_sums_finish finish = {.base = out->base,
                                     .factor = (float)random_between(1, 99) / 128,
                                     .summand = random_bits() & 1 ? -0.0f : 2.5f,
                                     .added = random_bits() & 1 ? (const float *)(const void *)added->base : NULL,
                                     .is_bounded = random_bits() & 1,
                                     .low = 0,
                                     .high = random_bits() & 1 ? INFINITY : 1000,
                                     .floats = kept & 1 ? (float *)(void *)out->base : NULL,
                                     .bytes = kept & 2 ? bytes->base : NULL,
                                     .step = (float)random_between(1, 900) / 64,
                                     .zero = (uint8_t)random_bits(),
                                     .integers = {.high = 255}};
    int64_t index[4] = {0}, wrong = 0;
    do {
        const float x = random_between(0, 9) == 0 ? special[random_between(0, 5)] : (float)random_between(-9999, 9999) / 7;
        memcpy(element_at(added, index), &x, sizeof x);
    } while (next_index(4, out->sizes, index));
    const dmlk_convolution k = as_finished(c, out, &finish);
    const bool is_done = dmlk_convolve_bytes(&k);
    do {
        float other, stored;
        memcpy(&other, element_at(added, index), sizeof other);
        memcpy(&stored, element_at(out, index), sizeof stored);
        const float x = finished_number(&finish, (int64_t)get_element(c->output, index), other);
        wrong += finish.floats != NULL && dmlk_float_bits(stored) != dmlk_float_bits(x);
        wrong += finish.bytes != NULL &&
                 *element_at(bytes, index) != dmlk_quantized_float(x / finish.step, finish.zero, &finish.integers);
    } while (is_done && next_index(4, out->sizes, index));
    CHECK(!is_done || wrong == 0);
    CHECK(gaps_untouched(out) && gaps_untouched(bytes));
    device_end(&d);
    return is_done;
}

/* Sums that are scaled to bytes, or finished in another way, before they are stored. */
TEST(convolution_finishes_sums) {
    int scaled = 0, finished = 0;
    for (int round = 0; round < 150; round++) {
        const int64_t channels = random_between(2, 19), filters = random_between(1, 40);
        const int64_t in[] = {2, channels, random_between(3, 9), random_between(3, 20)};
        const int64_t filter[] = {filters, channels, random_between(1, 3), random_between(1, 3)};
        const int64_t out[] = {2, filters, in[2] - filter[2] + 1, in[3] - filter[3] + 1};
        struct convolution c = {.k = {.spatial = 2, .groups = 1, .strides = {1, 1}, .dilations = {1, 1}}};
        device d;
        add_tensors(&d, &c, in, filter, out, random_between(0, 3), 0);
        device_constants(&d, &c.k, sizeof c.k, 0);
        CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
        scaled += c.blocks[0] == 0 && check_scaled(&c);
        finished += c.blocks[0] == 0 && check_finished(&c);
        device_end(&d);
    }
    CHECK(scaled > 50);
    CHECK(finished > 50);
}

/* 255 * 255 * 33030 is just above 2^31. */
TEST(convolution_wraps) {
    const int64_t sizes[] = {1, 33030, 1, 1}, strides[] = {0, 0, 0, 0}, out_sizes[] = {1, 1, 1, 1};
    device d;
    device_begin(&d, "convolution_integer");
    *device_tensor(&d, DMLK_UINT8, 4, sizes, strides)->base = 255;
    device_no_tensor(&d);
    *device_tensor(&d, DMLK_UINT8, 4, sizes, strides)->base = 255;
    device_no_tensor(&d);
    device_no_tensor(&d);
    const dmlk_view *out = device_tensor(&d, DMLK_INT32, 4, out_sizes, NULL);
    const dmlk_convolution_integer k = {.spatial = 2, .groups = 1, .strides = {1, 1}, .dilations = {1, 1}};
    device_constants(&d, &k, sizeof k, 0);
    CHECK_EQUAL(device_dispatch(&d), DMLK_OK);
    CHECK_EQUAL(*(const int32_t *)out->base, INT64_C(255) * 255 * 33030 - (INT64_C(1) << 32));
    device_end(&d);
}

/* Each field in turn is far too large, or 0. */
TEST(convolution_refuses_what_does_not_fit) {
    const uint32_t count = sizeof(dmlk_convolution_integer) / 4;
    for (uint32_t i = 0; i < 2 * count; i++) {
        const uint32_t field = i % count;
        device d;
        struct convolution c;
        random_convolution(&d, &c);
        uint32_t fields[sizeof c.k / 4];
        memcpy(fields, &c.k, sizeof fields);
        fields[field] = i < count ? UINT32_MAX : 0;
        device_constants(&d, fields, sizeof fields, 0);
        const int status = device_dispatch(&d);
        CHECK(status == DMLK_OK || status == DMLK_BAD_PACKET);
        /* The Y element of strides and dilations (fields 2 and 4) is used in any case. */
        CHECK(status == DMLK_BAD_PACKET || !(i >= count && (field <= 2 || field == 4)));
        if (status != DMLK_OK) {
            for (uint64_t at = 0; at < c.output->byte_size; at++) {
                CHECK_EQUAL(c.output->base[at], DEVICE_UNTOUCHED);
            }
        }
        device_end(&d);
    }
}

int main(void) {
    RUN(gemm);
    RUN(gemm_of_a_block_with_stride_0);
    RUN(gemm_refuses_sizes_that_do_not_fit);
    RUN(convolution);
    RUN(convolution_of_large_tensors);
    RUN(convolution_finishes_sums);
    RUN(convolution_wraps);
    RUN(convolution_refuses_what_does_not_fit);
    return RESULT();
}
