#include "packets.h"

#include "adam_optimizer.h"
#include "attention.h"
#include "concatenate.h"
#include "convolution_float.h"
#include "convolution_integer.h"
#include "cumulative.h"
#include "diagonal_matrix.h"
#include "element_wise.h"
#include "fill_value_constant.h"
#include "fill_value_sequence.h"
#include "fold.h"
#include "gemm.h"
#include "hardmax.h"
#include "local_response.h"
#include "nonzero_coordinates.h"
#include "normalization.h"
#include "padding.h"
#include "pooling.h"
#include "pooling_grad.h"
#include "put_slice.h"
#include "quantization.h"
#include "recurrent.h"
#include "reduce.h"
#include "reverse_subsequences.h"
#include "selection.h"
#include "softmax.h"
#include "resample.h"
#include "roi_align.h"
#include "roi_pooling.h"
#include "space_depth.h"
#include "take_slice.h"
#include "top_k.h"
#include "upsample_2d.h"

#define SIZES(...) (const int64_t[]){__VA_ARGS__}
#define PICK(array) (array)[random_between(0, (int64_t)(sizeof(array) / sizeof(array)[0]) - 1)]

static const enum dmlk_type types[] = {DMLK_FLOAT16, DMLK_FLOAT32, DMLK_FLOAT64, DMLK_INT8,   DMLK_INT16, DMLK_INT32,
                                       DMLK_INT64,   DMLK_UINT8,   DMLK_UINT16,  DMLK_UINT32, DMLK_UINT64};
static const enum dmlk_type floats[] = {DMLK_FLOAT16, DMLK_FLOAT32, DMLK_FLOAT64};

static const enum dmlk_type singles[] = {DMLK_FLOAT16, DMLK_FLOAT32};

static const enum dmlk_type integers_8_4[] = {DMLK_INT8, DMLK_UINT8, DMLK_INT4, DMLK_UINT4};

static void fill_with_bits(const dmlk_view *view) {
    for (uint64_t i = 0; i < view->byte_size; i++) {
        view->base[i] = (uint8_t)random_bits();
    }
}

/* Adds a tensor of random bits; strides NULL: packed or random strides. */
static void add(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes, const int64_t *strides,
                enum dmlk_access access) {
    int64_t any[DMLK_MAX_RANK];
    if (strides == NULL && random_between(0, 2) > 0) {
        random_strides(rank, sizes, access == DMLK_READ, any);
        strides = any;
    }
    fill_with_bits(device_tensor(d, type, rank, sizes, strides));
    dmlk_tensor tensor = device_get_tensor(d, d->tensor_count - 1);
    tensor.access = access;
    device_set_tensor(d, d->tensor_count - 1, &tensor);
}

static void add_in(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes) {
    add(d, type, rank, sizes, NULL, DMLK_READ);
}

static void add_out(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes) {
    add(d, type, rank, sizes, NULL, random_between(0, 1) ? DMLK_WRITE : DMLK_READ_WRITE);
}

static uint32_t random_flag(void) { return (uint32_t)random_between(0, 1); }

/* --- each kernel --- */

/* What begins the packets of a kernel, or of those of a family. */
struct generator {
    const char *name;
    void (*kernel)(device *d);
    void (*family)(device *d, const char *name);
    const struct generator *next;
};

static const struct generator *generators;

#define KNOWN(stem, ...)                                                                                               \
    static struct generator generator_of_##stem = {.name = #stem, __VA_ARGS__};                                        \
    __attribute__((constructor)) static void know_##stem(void) {                                                       \
        generator_of_##stem.next = generators;                                                                         \
        generators = &generator_of_##stem;                                                                             \
    }

/* PACKET(kernel) { .. } completes a packet that was begun, FAMILY(family) { .. } begins one of the kernel `name`.
 * No list names them. */
#define PACKET(stem)                                                                                                   \
    static void begin_##stem(device *d);                                                                               \
    KNOWN(stem, .kernel = begin_##stem)                                                                                \
    static void begin_##stem(device *d)
#define FAMILY(stem)                                                                                                   \
    static void begin_##stem(device *d, const char *name);                                                             \
    KNOWN(stem, .family = begin_##stem)                                                                                \
    static void begin_##stem(device *d, const char *name)

PACKET(cast) {
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    add_in(d, PICK(types), rank, sizes);
    add_out(d, PICK(types), rank, sizes);
    device_constants(d, NULL, 0, 0);
}

PACKET(constant_data) {
    uint8_t constants[512];
    const int64_t words = random_between(1, sizeof constants / 4);
    for (size_t i = 0; i < sizeof constants; i++) {
        constants[i] = (uint8_t)random_bits();
    }
    add(d, DMLK_UINT32, 1, &words, SIZES(1), DMLK_WRITE);
    device_constants(d, constants, (uint32_t)words * 4, 0);
}

/* Adds filters in blocks of 16 by 4, in the order in which tuned kernels can read them in place. */
static void add_filters_in_blocks(device *d, enum dmlk_type type, const int64_t sizes[4]) {
    const int64_t channels = sizes[1], x_step = 16 * channels, y_step = x_step * sizes[3];
    add(d, type, 6, SIZES(sizes[0] / 16, 16, channels / 4, 4, sizes[2], sizes[3]),
        SIZES(y_step * sizes[2], 4, 64, 1, y_step, x_step), DMLK_READ);
}

/* Adds the sums of the last tensor but one along an axis, as INT32, or no tensor. */
static void maybe_add_sums(device *d, uint32_t axis) {
    if (random_flag()) {
        device_no_tensor(d);
        return;
    }
    const dmlk_view of = d->views[d->tensor_count - 2];
    int64_t sizes[DMLK_MAX_RANK], strides[DMLK_MAX_RANK], at[DMLK_MAX_RANK] = {0};
    for (uint32_t i = 0; i + 1 < of.rank; i++) {
        sizes[i] = of.sizes[i + (i >= axis)];
    }
    random_strides(of.rank - 1, sizes, false, strides);
    add(d, DMLK_INT32, of.rank - 1, sizes, strides, DMLK_READ);
    const dmlk_view *sums = &d->views[d->tensor_count - 1];
    do {
        int64_t from[DMLK_MAX_RANK];
        double sum = 0;
        for (uint32_t i = 0; i + 1 < of.rank; i++) {
            from[i + (i >= axis)] = at[i];
        }
        for (from[axis] = 0; from[axis] < of.sizes[axis]; from[axis]++) {
            sum += get_element(&of, from);
        }
        set_element(sums, at, sum);
    } while (next_index(of.rank - 1, sizes, at));
}

PACKET(convolution_integer) {
    static const enum dmlk_type bytes[] = {DMLK_INT8, DMLK_UINT8};
    static const int64_t few[] = {1, 1, 2, 3, 4, 5, 8, 17};
    dmlk_convolution_integer k = {.spatial = (uint32_t)random_between(1, 2), .groups = (uint32_t)PICK(few)};
    const bool in_blocks = k.spatial == 2 && random_between(0, 5) == 0;
    const int64_t filters = k.groups * (in_blocks ? 16 : k.groups > 4 ? random_between(1, 2) : PICK(few));
    const int64_t channels = in_blocks ? 4 * random_between(1, 2) : k.groups > 4 ? random_between(1, 2) : PICK(few);
    const enum dmlk_type in = PICK(bytes), filter = PICK(bytes);
    int64_t sizes[4] = {random_between(1, 2), channels * k.groups}, window[4] = {filters, channels};
    int64_t out[4] = {sizes[0], filters};
    for (uint32_t i = 0; i < k.spatial; i++) {
        window[2 + i] = random_between(1, 3);
        k.strides[i] = (uint32_t)random_between(1, 3);
        k.dilations[i] = (uint32_t)random_between(1, 2);
        k.start_padding[i] = (uint32_t)random_between(0, 2);
        const int64_t span = (window[2 + i] - 1) * k.dilations[i] + 1, most = i == 0 ? 8 : 20;
        sizes[2 + i] = random_between(1, span + most);
        out[2 + i] = random_between(1, most);
    }
    const uint32_t rank = k.spatial + 2;
    add_in(d, in, rank, sizes);
    random_flag() ? add_in(d, in, 1, SIZES(1)) : device_no_tensor(d);
    if (in_blocks) {
        add_filters_in_blocks(d, filter, window);
    } else {
        add_in(d, filter, rank, window);
    }
    random_flag() ? add_in(d, filter, 1, SIZES(random_flag() ? 1 : filters)) : device_no_tensor(d);
    in_blocks ? device_no_tensor(d) : maybe_add_sums(d, 1);
    add_out(d, DMLK_INT32, rank, out);
    device_constants(d, &k, sizeof k, 0);
}

/* Adds a matrix {.., row, column}, or turned {.., column, row}, with blocks of 16 columns: in the layout that tuned
 * kernels read in place, or in any layout. */
static void add_columns_in_blocks(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes, bool turned) {
    const uint32_t axis = rank - 1 - turned, row = turned ? rank : rank - 2;
    int64_t split[5], strides[5];
    memcpy(split, sizes, rank * sizeof *sizes);
    split[rank] = sizes[rank - 1];
    split[axis] = sizes[axis] / 16;
    split[axis + 1] = 16;
    strides[axis + 1] = 1;
    strides[row] = 16;
    strides[axis] = 16 * split[row];
    int64_t elements = strides[axis] * split[axis];
    for (uint32_t i = rank - 2; i-- > 0; elements *= split[i]) {
        strides[i] = elements;
    }
    add(d, type, rank + 1, split, random_flag() ? strides : NULL, DMLK_READ);
}

/* Adds {group, filter, channel, window} with blocks of 16 filters: in the layout that tuned kernels read in place, or
 * in any layout. */
static void add_float_filters_in_blocks(device *d, enum dmlk_type type, uint32_t spatial, const int64_t *sizes) {
    int64_t split[7] = {sizes[0], sizes[1] / 16, 16}, strides[7], elements = 16;
    memcpy(split + 3, sizes + 2, (spatial + 1) * sizeof *sizes);
    for (uint32_t axis = spatial + 4; axis-- > 0;) {
        strides[axis] = axis == 2 ? 1 : elements;
        elements *= axis == 2 ? 1 : split[axis];
    }
    add(d, type, spatial + 4, split, random_flag() ? strides : NULL, DMLK_READ);
}

PACKET(convolution_float) {
    static const int64_t few[] = {1, 1, 2, 3, 5, 17};
    dmlk_convolution_float k = {
        .spatial = (uint32_t)random_between(1, 3), .backward = random_flag(), .reversed = random_flag()};
    const bool in_blocks = random_between(0, 5) == 0;
    const int64_t groups = PICK(few), filters = in_blocks ? 16 * random_between(1, 2) : groups > 3 ? 1 : PICK(few);
    const int64_t channels = groups > 3 ? 1 : PICK(few);
    const enum dmlk_type type = random_flag() ? DMLK_FLOAT32 : DMLK_FLOAT16;
    int64_t in[5] = {random_between(1, 2), channels * groups}, out[5] = {in[0], filters * groups};
    int64_t window[6] = {groups, filters, channels};
    for (uint32_t i = 0; i < k.spatial; i++) {
        window[3 + i] = random_between(1, 3);
        k.strides[i] = (uint32_t)random_between(1, 3);
        k.dilations[i] = (uint32_t)random_between(1, 2);
        k.start_padding[i] = (uint32_t)random_between(0, 2);
        const int64_t span = (window[3 + i] - 1) * k.dilations[i] + 1, most = i == 0 ? 20 : 5;
        const int64_t wide = random_between(1, span + most), narrow = random_between(1, most);
        in[2 + i] = k.backward ? narrow : wide;
        out[2 + i] = k.backward ? wide : narrow;
    }
    add_in(d, type, k.spatial + 2, in);
    if (in_blocks) {
        add_float_filters_in_blocks(d, type, k.spatial, window);
    } else {
        add_in(d, type, k.spatial + 3, window);
    }
    random_flag() ? add_in(d, type, 1, SIZES(out[1])) : device_no_tensor(d);
    add_out(d, random_flag() ? DMLK_FLOAT32 : type, k.spatial + 2, out);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(copy) {
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    const enum dmlk_type type = random_flag() ? PICK(types) : PICK(integers_8_4);
    add_in(d, type, rank, sizes);
    add_out(d, type, rank, sizes);
    device_constants(d, NULL, 0, 0);
}

static const struct element_wise_function functions[] = {
#define FLOAT(name, value) {#name, 1, true, true, false, false, false},
#define EASY(name, size, most, easy_value, value) {#name, 1, true, true, false, false, false},
#define MATH(name, value) {#name, 1, true, true, false, false, false},
#define DOUBLE(name, floats, integers) {#name, 1, true, true, false, false, false},
#define FLOAT2(name, value) {#name, 2, true, true, false, false, false},
#define PIECES(name, each, size, most, easy_value) {#name, 1, true, true, false, false, false},
#define EXACT(name, value) {#name, 1, true, true, false, false, false},
#define DOUBLE2(name, floats, integers) {#name, 2, true, true, false, false, false},
#define POWER(name, size, most, easy_value, value) {#name, 2, true, true, false, false, false},
#define PIECES2(name, each, integers) {#name, 2, true, false, false, false, false},
#define NUMBER(name, floats, integers) {#name, 1, true, false, false, false, false},
#define NUMBER2(name, floats, integers) {#name, 2, true, false, false, false, false},
#define WRAP2(name, floats, integers) {#name, 2, true, false, false, false, false},
#define SIGNED(name, floats, integers) {#name, 1, true, false, false, false, false},
#define SIGNED2(name, floats, integers) {#name, 2, true, false, false, false, false},
#define PREDICATE(name, value) {#name, 1, false, true, true, false, true},
#define PREDICATE2(name, value) {#name, 2, false, false, true, false, false},
#define SWAPPED2(name, of) {#name, 2, false, false, true, false, false},
#define COUNT(name, value, tuned) {#name, 1, false, false, true, false, false},
#define BITS(name, value) {#name, 1, false, false, false, false, false},
#define BITS2(name, value) {#name, 2, false, false, false, false, false},
#define CHOICE(name, value) {#name, 3, false, false, false, true, false},
#include "../operators/element_wise/functions.inc"
};

const struct element_wise_function *element_wise_function(uint32_t kernel) {
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].name, dmlk_kernel_name(kernel)) == 0) {
            return &functions[i];
        }
    }
    return NULL;
}

static void begin_element_wise(device *d, const struct element_wise_function *function) {
    static const enum dmlk_type counts[] = {DMLK_UINT8, DMLK_UINT32};
    const dmlk_element_wise k = {.has_scale_bias = function->is_scaled && random_flag(),
                                 .scale = 3,
                                 .bias = -1,
                                 .alpha = 0.5f,
                                 .beta = 2,
                                 .gamma = 1,
                                 .min_bits = random_bits(),
                                 .max_bits = random_bits()};
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    enum dmlk_type type = function->only_floats ? PICK(floats) : PICK(types);
    if (function->no_long && (type == DMLK_INT64 || type == DMLK_UINT64)) {
        type = DMLK_INT32;
    }
    const enum dmlk_type rounded = type == DMLK_FLOAT32 ? DMLK_FLOAT16 : type == DMLK_FLOAT16 ? DMLK_FLOAT32 : type;
    const bool rounds = function->is_scaled && random_flag();
    device_begin(d, function->name);
    for (uint32_t input = 0; input < function->inputs; input++) {
        add_in(d, function->is_choice && input == 0 ? DMLK_UINT8 : type, rank, sizes);
    }
    add_out(d, function->is_count ? PICK(counts) : rounds ? rounded : type, rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

/* Makes a random selection from a table of these sizes; sets the sizes of indices and values, and their ranks. */
static void random_selection(uint32_t rank, const int64_t *sizes, dmlk_selection *k, uint32_t *index_rank,
                             int64_t *index_sizes, uint32_t *value_rank, int64_t *value_sizes) {
    *k = (dmlk_selection){.axis = (uint32_t)random_between(0, rank - 1), .count = 1, .may_miss = random_flag()};
    if (random_flag()) { /* of elements */
        k->batch = k->axis;
        k->own = 1;
        k->trailing = rank - k->axis - 1;
    } else {
        k->count = (uint32_t)random_between(1, rank - k->axis);
        k->is_tuple = k->count > 1 || random_flag();
        k->batch = (uint32_t)random_between(0, k->axis);
        const int64_t in_values = 8 - (int64_t)(rank - k->count), in_indices = 8 - (int64_t)(k->batch + k->is_tuple);
        const int64_t most = in_values < in_indices ? in_values : in_indices;
        k->own = (uint32_t)random_between(0, most < 3 ? most : 3);
    }
    uint32_t i = 0, v = 0;
    for (uint32_t d = 0; d < k->axis; d++) {
        value_sizes[v++] = sizes[d];
        if (d + k->batch >= k->axis) {
            index_sizes[i++] = sizes[d];
        }
    }
    for (uint32_t d = 0; d < k->own; d++) {
        value_sizes[v++] = index_sizes[i++] = random_between(1, k->own > 1 ? 3 : 9);
    }
    for (uint32_t d = k->axis + k->count; d < rank; d++) {
        value_sizes[v++] = sizes[d];
        if (k->trailing > 0) {
            index_sizes[i++] = sizes[d];
        }
    }
    if (k->is_tuple) {
        index_sizes[i++] = k->count;
    }
    index_sizes[i] = value_sizes[v] = 1;
    *index_rank = i > 0 ? i : 1;
    *value_rank = v > 0 ? v : 1;
}

static void add_indices(device *d, uint32_t rank, const int64_t *sizes) {
    static const enum dmlk_type index_types[] = {DMLK_INT32, DMLK_INT64, DMLK_UINT32, DMLK_UINT64};
    add_in(d, PICK(index_types), rank, sizes);
    if (random_flag()) { /* as random bits nearly all of them are too large */
        fill_random(&d->views[d->tensor_count - 1], 0, 5);
    }
}

PACKET(gather) {
    int64_t sizes[DMLK_MAX_RANK], index_sizes[DMLK_MAX_RANK + 1], value_sizes[DMLK_MAX_RANK + 1];
    uint32_t index_rank, value_rank;
    const uint32_t rank = random_sizes(sizes);
    const enum dmlk_type type = PICK(types);
    dmlk_selection k;
    random_selection(rank, sizes, &k, &index_rank, index_sizes, &value_rank, value_sizes);
    add_in(d, type, rank, sizes);
    add_indices(d, index_rank, index_sizes);
    add_out(d, type, value_rank, value_sizes);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(scatter) {
    int64_t sizes[DMLK_MAX_RANK], index_sizes[DMLK_MAX_RANK + 1], value_sizes[DMLK_MAX_RANK + 1];
    uint32_t index_rank, value_rank;
    const uint32_t rank = random_sizes(sizes), drawn = random_flag() ? (uint32_t)random_between(1, 99) : 0;
    const enum dmlk_type type = PICK(types);
    dmlk_selection k;
    random_selection(rank, sizes, &k, &index_rank, index_sizes, &value_rank, value_sizes);
    add_in(d, type, rank, sizes);
    add_indices(d, index_rank, index_sizes);
    add_in(d, type, value_rank, value_sizes);
    add_out(d, type, rank, sizes);
    device_constants(d, &k, sizeof k, drawn << DMLK_FLAG_ORDER_SHIFT);
}

PACKET(random_generator) {
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    add_in(d, DMLK_UINT32, 2, SIZES(1, 6));
    add_out(d, DMLK_UINT32, rank, sizes);
    random_flag() ? add_out(d, DMLK_UINT32, 1, SIZES(6)) : device_no_tensor(d);
    device_constants(d, NULL, 0, 0);
}

PACKET(gemm) {
    const dmlk_gemm k = {
        .trans_a = random_flag(), .trans_b = random_flag(), .alpha = 1.5f, .beta = (float)random_between(0, 2)};
    const uint32_t rank = (uint32_t)random_between(2, 4);
    const enum dmlk_type type = random_flag() ? DMLK_FLOAT32 : DMLK_FLOAT16;
    const bool in_blocks = random_between(0, 5) == 0;
    const int64_t m = random_between(1, 30), depth = random_between(1, 20);
    const int64_t n = in_blocks ? 16 * random_between(1, 4) : random_between(1, 60);
    int64_t sizes[3][4] = {{1, 1, 1, 1}};
    for (uint32_t axis = 0; axis + 2 < rank; axis++) {
        sizes[0][axis] = sizes[1][axis] = sizes[2][axis] = random_between(1, 3);
    }
    sizes[0][rank - 2] = k.trans_a ? depth : m, sizes[0][rank - 1] = k.trans_a ? m : depth;
    sizes[1][rank - 2] = k.trans_b ? n : depth, sizes[1][rank - 1] = k.trans_b ? depth : n;
    sizes[2][rank - 2] = m, sizes[2][rank - 1] = n;
    add_in(d, type, rank, sizes[0]);
    if (in_blocks) {
        add_columns_in_blocks(d, type, rank, sizes[1], k.trans_b);
    } else {
        add_in(d, type, rank, sizes[1]);
    }
    random_flag() ? add_in(d, type, rank, sizes[2]) : device_no_tensor(d);
    add_out(d, random_flag() ? DMLK_FLOAT32 : type, rank, sizes[2]);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(multiply_integers) {
    static const enum dmlk_type kinds[] = {DMLK_INT8, DMLK_UINT8, DMLK_INT16, DMLK_UINT16, DMLK_INT32, DMLK_UINT32};
    const int64_t width = random_between(0, 2);
    const enum dmlk_type a = kinds[2 * width + random_flag()], b = kinds[2 * width + random_flag()];
    const uint32_t rank = (uint32_t)random_between(2, 4);
    const int64_t m = random_between(1, 30), n = random_between(1, 60), depth = random_between(1, 20);
    int64_t sizes[3][4];
    for (uint32_t axis = 0; axis + 2 < rank; axis++) {
        sizes[0][axis] = sizes[1][axis] = sizes[2][axis] = random_between(1, 3);
    }
    sizes[0][rank - 2] = sizes[2][rank - 2] = m;
    sizes[0][rank - 1] = sizes[1][rank - 2] = depth;
    sizes[1][rank - 1] = sizes[2][rank - 1] = n;
    add_in(d, a, rank, sizes[0]);
    random_flag() ? add_in(d, a, 1, SIZES(random_flag() ? 1 : m)) : device_no_tensor(d);
    add_in(d, b, rank, sizes[1]);
    random_flag() ? add_in(d, b, 1, SIZES(random_flag() ? 1 : n)) : device_no_tensor(d);
    width == 0 ? maybe_add_sums(d, rank - 2) : device_no_tensor(d);
    add_out(d, width == 0 ? DMLK_INT32 : width == 1 ? DMLK_INT64 : DMLK_FLOAT64, rank, sizes[2]);
    device_constants(d, NULL, 0, 0);
}

PACKET(nonzero_coordinates) {
    int64_t sizes[DMLK_MAX_RANK], elements = 1;
    const uint32_t rank = random_sizes(sizes);
    const dmlk_nonzero_coordinates k = {.columns = (uint32_t)random_between(1, rank)};
    for (uint32_t i = 0; i < rank; i++) {
        elements *= sizes[i];
    }
    add_in(d, PICK(types), rank, sizes);
    add_out(d, DMLK_UINT32, 1, SIZES(1));
    add_out(d, DMLK_UINT32, 2, SIZES(elements, k.columns));
    device_constants(d, &k, sizeof k, random_flag() ? DMLK_FLAG_POISON : 0);
}

/* Makes a random window and sizes that match it. */
static void random_window(dmlk_pooling *k, int64_t in[5], int64_t out[5]) {
    const int64_t channels_last[] = {1, 2, 7, 300};
    *k = (dmlk_pooling){.spatial = (uint32_t)random_between(1, 3),
                        .include_padding = random_flag(),
                        .power = (uint32_t)random_between(1, 4)};
    in[0] = out[0] = random_between(1, 2);
    in[1] = out[1] = PICK(channels_last);
    for (uint32_t i = 0; i < k->spatial; i++) {
        k->window[i] = (uint32_t)random_between(1, k->spatial == 1 ? 40 : 3);
        k->strides[i] = (uint32_t)random_between(1, 3);
        k->dilations[i] = (uint32_t)random_between(1, 3);
        k->start_padding[i] = (uint32_t)random_between(0, 4);
        k->end_padding[i] = (uint32_t)random_between(0, 4);
        in[2 + i] = random_between(1, k->spatial == 1 ? 50 : 7);
        out[2 + i] = random_between(1, k->spatial == 1 ? 50 : 4);
    }
}

/* Adds scale and zero point: one for all channels, or one for each. */
static void add_linear(device *d, enum dmlk_type type, int64_t channels) {
    const int64_t count = random_flag() ? channels : 1;
    add_in(d, DMLK_FLOAT32, 2, SIZES(1, count));
    random_flag() ? add_in(d, type, 2, SIZES(1, count)) : device_no_tensor(d);
}

/* Any line of the family's table. */
FAMILY(pooling) {
    static const enum dmlk_type bytes[] = {DMLK_INT8, DMLK_UINT8};
    static const enum dmlk_type places[] = {DMLK_UINT32, DMLK_UINT64};
    const bool is_max = strcmp(name, "max_pooling") == 0, is_mean = strncmp(name, "quantized", 9) == 0;
    dmlk_pooling k;
    int64_t in[5], out[5];
    random_window(&k, in, out);
    const uint32_t rank = k.spatial + 2;
    const enum dmlk_type type = is_mean ? PICK(bytes) : is_max ? PICK(types) : PICK(floats);
    const enum dmlk_type result = is_mean ? PICK(bytes) : type;
    device_begin(d, name);
    add_in(d, type, rank, in);
    if (is_mean) {
        add_linear(d, type, in[1]);
        add_linear(d, result, in[1]);
    }
    add_out(d, result, rank, out);
    if (is_max) {
        random_flag() ? add_out(d, PICK(places), rank, out) : device_no_tensor(d);
    }
    device_constants(d, &k, sizeof k, 0);
}

/* Any line of the family's table. */
FAMILY(pooling_grad) {
    dmlk_pooling window;
    int64_t in[5], out[5];
    random_window(&window, in, out);
    dmlk_pooling_grad k = {.spatial = window.spatial, .include_padding = window.include_padding};
    memcpy(k.window, window.window, sizeof k.window);
    memcpy(k.strides, window.strides, sizeof k.strides);
    memcpy(k.dilations, window.dilations, sizeof k.dilations);
    memcpy(k.start_padding, window.start_padding, sizeof k.start_padding);
    memcpy(k.end_padding, window.end_padding, sizeof k.end_padding);
    const enum dmlk_type type = random_flag() ? DMLK_FLOAT32 : DMLK_FLOAT16;
    device_begin(d, name);
    if (strcmp(name, "max_pooling_grad") == 0) {
        add_in(d, type, k.spatial + 2, in);
    }
    add_in(d, type, k.spatial + 2, out);
    add_out(d, type, k.spatial + 2, in);
    device_constants(d, &k, sizeof k, 0);
}

/* Any line of the family's table. */
FAMILY(reduce) {
    static const char *const only_floats[] = {"reduce_average", "reduce_l2", "reduce_log_sum", "reduce_log_sum_exp"};
    static const enum dmlk_type places[] = {DMLK_INT32, DMLK_UINT32, DMLK_INT64, DMLK_UINT64};
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    const dmlk_reduce k = {.axes_mask = (uint32_t)random_between(0, (INT64_C(1) << rank) - 1),
                           .last_index = random_flag()};
    enum dmlk_type type = PICK(types);
    for (size_t i = 0; i < sizeof only_floats / sizeof only_floats[0]; i++) {
        type = strcmp(name, only_floats[i]) == 0 ? PICK(floats) : type;
    }
    const bool is_place = strncmp(name, "reduce_arg", strlen("reduce_arg")) == 0;
    device_begin(d, name);
    add_in(d, type, rank, sizes);
    for (uint32_t i = 0; i < rank; i++) {
        sizes[i] = k.axes_mask >> i & 1 ? 1 : sizes[i];
    }
    add_out(d, is_place ? PICK(places) : type, rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

/* Adds a scale, and perhaps a zero point, for each block. */
static void add_scale_and_zero_point(device *d, enum dmlk_type zero_point, uint32_t rank, const int64_t *sizes) {
    int64_t blocks[DMLK_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t size = random_between(1, sizes[i]);
        blocks[i] = sizes[i] % size == 0 ? sizes[i] / size : random_flag() ? 1 : sizes[i];
    }
    add_in(d, floats[random_between(0, 1)], rank, blocks);
    random_flag() ? add_in(d, zero_point, rank, blocks) : device_no_tensor(d);
}

/* Adds a tensor of 8-bit elements, its scale and perhaps its zero point. */
static void add_quantized(device *d, uint32_t rank, const int64_t *sizes, bool is_output) {
    const enum dmlk_type type = integers_8_4[random_flag()];
    if (!is_output) {
        add_in(d, type, rank, sizes);
    }
    add_in(d, DMLK_FLOAT32, 1, SIZES(1));
    random_flag() ? add_in(d, type, 1, SIZES(1)) : device_no_tensor(d);
    if (is_output) {
        add_out(d, type, rank, sizes);
    }
}

/* Any line of the family's table. */
FAMILY(quantization) {
    static const enum dmlk_type whole[] = {DMLK_INT8,  DMLK_UINT8,  DMLK_INT4,  DMLK_UINT4,
                                           DMLK_INT16, DMLK_UINT16, DMLK_INT32, DMLK_UINT32};
    static const enum dmlk_type numbers[] = {DMLK_FLOAT16, DMLK_FLOAT32, DMLK_INT32};
    const dmlk_quantization k = {.centered = random_flag(), .joint = random_flag()};
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    device_begin(d, name);
    if (strcmp(name, "quantize") == 0) {
        const enum dmlk_type out = PICK(integers_8_4);
        add_in(d, PICK(numbers), rank, sizes);
        add_scale_and_zero_point(d, out, rank, sizes);
        add_out(d, out, rank, sizes);
    } else if (strcmp(name, "dequantize") == 0) {
        const enum dmlk_type in = PICK(whole);
        add_in(d, in, rank, sizes);
        add_scale_and_zero_point(d, in, rank, sizes);
        add_out(d, floats[random_between(0, 1)], rank, sizes);
    } else if (strcmp(name, "quantized_linear_add") == 0) {
        add_quantized(d, rank, sizes, false);
        add_quantized(d, rank, sizes, false);
        add_quantized(d, rank, sizes, true);
    } else if (strcmp(name, "scale_sums") == 0) {
        static const enum dmlk_type sums[] = {DMLK_INT32, DMLK_INT64, DMLK_FLOAT64};
        const bool quantizes = random_flag();
        const enum dmlk_type out = quantizes ? integers_8_4[random_flag()] : floats[random_flag()], of = PICK(sums);
        add_in(d, of, rank, sizes);
        (quantizes ? of == DMLK_INT32 : random_flag())
            ? add_in(d, quantizes ? DMLK_INT32 : floats[random_flag()], rank, sizes)
            : device_no_tensor(d);
        add_in(d, floats[random_flag()], rank, sizes);
        add_in(d, floats[random_flag()], rank, sizes);
        quantizes ? add_in(d, DMLK_FLOAT32, rank, sizes) : device_no_tensor(d);
        quantizes && random_flag() ? add_in(d, out, rank, sizes) : device_no_tensor(d);
        add_out(d, out, rank, sizes);
    } else {
        const enum dmlk_type out = integers_8_4[random_flag()];
        add_in(d, floats[random_between(0, 1)], rank, sizes);
        add_out(d, out, rank, sizes);
        add_out(d, DMLK_FLOAT32, 1, SIZES(1));
        add_out(d, out, 1, SIZES(1));
    }
    device_constants(d, &k, sizeof k, 0);
}

/* Makes random sizes, and a mask of some of the axes. */
static uint32_t random_lines(int64_t *sizes, uint32_t *axes_mask) {
    const uint32_t rank = random_sizes(sizes);
    *axes_mask = (uint32_t)random_between(0, (INT64_C(1) << rank) - 1);
    return rank;
}

/* Any line of the family's table. */
FAMILY(softmax) {
    int64_t sizes[DMLK_MAX_RANK];
    dmlk_softmax k;
    const uint32_t rank = random_lines(sizes, &k.axes_mask);
    device_begin(d, name);
    add_in(d, PICK(singles), rank, sizes);
    add_out(d, PICK(singles), rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

/* Any line of the family's table. */
FAMILY(normalization) {
    int64_t sizes[DMLK_MAX_RANK], one[DMLK_MAX_RANK];
    dmlk_normalization k = {.epsilon = 1e-5f};
    const uint32_t rank = random_lines(sizes, &k.axes_mask);
    const bool given = strstr(name, "given") != NULL, moments = strcmp(name, "normalize_moments") == 0;
    for (uint32_t i = 0; i < rank; i++) {
        one[i] = k.axes_mask >> i & 1 ? 1 : sizes[i];
    }
    device_begin(d, name);
    add_in(d, PICK(singles), rank, sizes);
    if (strstr(name, "grad") != NULL) {
        add_in(d, PICK(singles), rank, sizes);
        for (int i = 0; i < 3; i++) {
            add_in(d, PICK(singles), rank, one);
        }
        add_out(d, PICK(singles), rank, sizes);
        add_out(d, PICK(singles), rank, one);
        add_out(d, PICK(singles), rank, one);
    } else {
        for (int i = 0; i < 3; i++) {
            random_flag() ? add_in(d, PICK(singles), rank, sizes) : device_no_tensor(d);
        }
        for (int i = 0; i < 2; i++) {
            given ? add_in(d, PICK(singles), rank, one) : device_no_tensor(d);
        }
        for (int i = 0; i < 2; i++) {
            moments && random_flag() ? add_out(d, PICK(singles), rank, one) : device_no_tensor(d);
        }
        add_out(d, PICK(singles), rank, sizes);
    }
    device_constants(d, &k, sizeof k, 0);
}

/* Any line of the family's table. */
FAMILY(local_response) {
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    const dmlk_local_response k = {.axis = (uint32_t)random_between(0, rank - 1),
                                   .before = (uint32_t)random_between(0, 4),
                                   .after = (uint32_t)random_between(0, 4),
                                   .alpha = 0.5f,
                                   .beta = 0.75f,
                                   .bias = 1,
                                   .size = (uint32_t)random_between(1, 9)};
    const bool is_window = strcmp(name, "local_squares") == 0 || strcmp(name, "local_sums") == 0;
    const bool is_forward = strcmp(name, "local_response") == 0;
    const int inputs = is_window ? 1 : is_forward ? 2 : strcmp(name, "local_response_share") == 0 ? 3 : 4;
    device_begin(d, name);
    for (int i = 0; i < inputs; i++) {
        add_in(d, PICK(floats), rank, sizes);
    }
    add_out(d, PICK(floats), rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(adam_optimizer) {
    const dmlk_adam_optimizer k = {0.001f, 0.9f, 0.999f, 1e-8f};
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    for (int i = 0; i < 4; i++) {
        add_in(d, PICK(singles), rank, sizes);
    }
    add_in(d, DMLK_UINT32, 1, SIZES(1));
    for (int i = 0; i < 3; i++) {
        add_out(d, PICK(singles), rank, sizes);
    }
    device_constants(d, &k, sizeof k, 0);
}

PACKET(hardmax) {
    static const enum dmlk_type places[] = {DMLK_INT64, DMLK_UINT64};
    int64_t sizes[DMLK_MAX_RANK], one[DMLK_MAX_RANK];
    dmlk_hardmax k;
    const uint32_t rank = random_lines(sizes, &k.axes_mask);
    for (uint32_t i = 0; i < rank; i++) {
        one[i] = k.axes_mask >> i & 1 ? 1 : sizes[i];
    }
    add_in(d, PICK(places), rank, one);
    add_out(d, PICK(floats), rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

/* Any line of the family's table. */
FAMILY(cumulative) {
    int64_t sizes[DMLK_MAX_RANK];
    const enum dmlk_type type = PICK(types);
    const uint32_t rank = random_sizes(sizes);
    const dmlk_cumulative k = {(uint32_t)random_between(0, rank - 1), random_flag(), random_flag()};
    device_begin(d, name);
    add_in(d, type, rank, sizes);
    add_out(d, type, rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(top_k) {
    static const enum dmlk_type indices[] = {DMLK_UINT32, DMLK_UINT64};
    int64_t sizes[DMLK_MAX_RANK];
    const enum dmlk_type type = PICK(types);
    const uint32_t rank = random_sizes(sizes);
    const dmlk_top_k k = {(uint32_t)random_between(0, rank - 1), random_flag()};
    if (rank == 1 && random_flag()) {
        sizes[0] = random_between(1, 2000);
    }
    add_in(d, type, rank, sizes);
    sizes[k.axis] = random_between(1, sizes[k.axis]);
    add_out(d, type, rank, sizes);
    add_out(d, PICK(indices), rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

/* --- data movement --- */

PACKET(concatenate) {
    int64_t sizes[DMLK_MAX_RANK], total = 0;
    const uint32_t rank = random_sizes(sizes);
    const dmlk_concatenate k = {.axis = (uint32_t)random_between(0, rank - 1)};
    const enum dmlk_type type = PICK(types);
    for (int64_t inputs = random_between(1, DEVICE_MAX_TENSORS - 1); inputs > 0; inputs--) {
        sizes[k.axis] = random_between(1, 4);
        total += sizes[k.axis];
        add_in(d, type, rank, sizes);
    }
    sizes[k.axis] = total;
    add_out(d, type, rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(diagonal_matrix) {
    int64_t sizes[DMLK_MAX_RANK + 1];
    const uint32_t drawn = random_sizes(sizes), rank = drawn == 1 ? 2 : drawn;
    const enum dmlk_type type = PICK(types);
    dmlk_diagonal_matrix k = {.begin = random_between(-6, 6), .outside = random_flag(), .value = random_bits()};
    k.end = k.begin + random_between(-1, 6);
    sizes[1] = drawn == 1 ? random_between(1, 5) : sizes[1];
    random_flag() ? add_in(d, type, rank, sizes) : device_no_tensor(d);
    add_out(d, type, rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(fill_value_constant) {
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    const dmlk_fill_value_constant k = {random_bits()};
    add_out(d, PICK(types), rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(fill_value_sequence) {
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    const dmlk_fill_value_sequence k = {random_bits(), random_bits()};
    add_out(d, PICK(types), rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

/* Makes a random window, which may reach outside the image; sets the sizes of the image and of the columns. */
static dmlk_fold random_fold(int64_t *image, int64_t *columns) {
    dmlk_fold k = {.spatial = (uint32_t)random_between(1, 4)};
    const int64_t most = k.spatial == 1 ? 20 : k.spatial == 2 ? 5 : 2;
    columns[0] = image[0] = random_between(1, 2);
    columns[1] = image[1] = random_between(1, 3);
    columns[2] = 1;
    for (uint32_t i = 0; i < k.spatial; i++) {
        k.window[i] = (uint32_t)random_between(1, most < 3 ? most : 3);
        k.strides[i] = (uint32_t)random_between(1, 3);
        k.dilations[i] = (uint32_t)random_between(1, 3);
        k.start_padding[i] = (uint32_t)random_between(0, 4);
        k.blocks[i] = (uint32_t)random_between(1, most);
        image[2 + i] = random_between(1, 2 * most);
        columns[1] *= k.window[i];
        columns[2] *= k.blocks[i];
    }
    return k;
}

PACKET(fold) {
    int64_t image[6], columns[3];
    const dmlk_fold k = random_fold(image, columns);
    const enum dmlk_type type = PICK(floats);
    add_in(d, type, 3, columns);
    add_out(d, type, k.spatial + 2, image);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(unfold) {
    int64_t image[6], columns[3];
    const dmlk_fold k = random_fold(image, columns);
    const enum dmlk_type type = PICK(types);
    add_in(d, type, k.spatial + 2, image);
    add_out(d, type, 3, columns);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(padding) {
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    const enum dmlk_type type = PICK(types);
    dmlk_padding k = {.mode = (uint32_t)random_between(DMLK_PADDING_CONSTANT, DMLK_PADDING_WRAP), .value = random_bits()};
    add_in(d, type, rank, sizes);
    for (int axes = 0; axes < 2; axes++) {
        const uint32_t axis = (uint32_t)random_between(0, rank - 1), padding = (uint32_t)random_between(0, 9);
        k.start[axis] += padding;
        sizes[axis] += padding + random_between(0, 9);
    }
    add_out(d, type, rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

/* Makes random sizes, and a part of them: indices first, first + step, ... along each axis. */
static uint32_t random_slice(int64_t *whole, int64_t *part, uint32_t *first, int64_t *step) {
    const uint32_t rank = random_sizes(whole);
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t distance = random_between(1, 3), low = random_between(0, whole[i] - 1);
        part[i] = random_between(1, (whole[i] - 1 - low) / distance + 1);
        step[i] = random_flag() ? distance : -distance;
        first[i] = (uint32_t)(step[i] > 0 ? low : low + (part[i] - 1) * distance);
    }
    return rank;
}

PACKET(put_slice) {
    int64_t whole[DMLK_MAX_RANK], part[DMLK_MAX_RANK];
    int64_t step[DMLK_MAX_RANK];
    dmlk_put_slice k = {{0}, {0}};
    const uint32_t rank = random_slice(whole, part, k.first, step);
    for (uint32_t i = 0; i < rank; i++) {
        k.step[i] = (int32_t)step[i];
    }
    const enum dmlk_type type = PICK(types);
    add_in(d, type, rank, part);
    add_out(d, type, rank, whole);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(take_slice) {
    int64_t whole[DMLK_MAX_RANK], part[DMLK_MAX_RANK];
    dmlk_take_slice k = {{0}, {0}};
    const uint32_t rank = random_slice(whole, part, k.first, k.step);
    const enum dmlk_type type = PICK(types);
    add_in(d, type, rank, whole);
    add_out(d, type, rank, part);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(reverse_subsequences) {
    static const enum dmlk_type length_types[] = {DMLK_UINT32, DMLK_UINT64};
    int64_t sizes[DMLK_MAX_RANK];
    const uint32_t rank = random_sizes(sizes);
    const enum dmlk_type type = PICK(types);
    const dmlk_reverse_subsequences k = {.axis = (uint32_t)random_between(0, rank - 1)};
    const int64_t size = sizes[k.axis];
    add_in(d, type, rank, sizes);
    sizes[k.axis] = 1;
    add_in(d, PICK(length_types), rank, sizes);
    if (random_flag()) { /* as random bits nearly all of them are too large */
        fill_random(&d->views[1], 0, size);
    }
    sizes[k.axis] = size;
    add_out(d, type, rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

static void add_optional(device *d, enum dmlk_type type, uint32_t rank, const int64_t *sizes, bool is_output) {
    if (random_flag()) {
        device_no_tensor(d);
    } else if (is_output) {
        add_out(d, type, rank, sizes);
    } else {
        add_in(d, type, rank, sizes);
    }
}

PACKET(recurrent) {
    static const char *const names[] = {"sigmoid", "tanh", "relu", "linear", "softsign", "hard_sigmoid"};
    static const int64_t few[] = {1, 2, 3, 5, 48, 50}, gates[] = {1, 4, 3};
    dmlk_recurrent k = {.cell = (uint32_t)random_between(0, 2), .direction = (uint32_t)random_between(0, 2),
                        .couples = random_flag(), .linear = random_flag(), .clips = random_flag(), .clip = 2};
    for (int i = 0; i < 6; i++) {
        const dmlk_element_wise parameters = {.alpha = 0.5f, .beta = 0.5f};
        k.functions[i] = kernel_number(PICK(names));
        memcpy(k.parameters[i], &parameters, sizeof parameters);
    }
    const bool lstm = k.cell == DMLK_CELL_LSTM;
    const enum dmlk_type type = random_flag() ? DMLK_FLOAT32 : DMLK_FLOAT16;
    const int64_t ds = k.direction == 2 ? 2 : 1, steps = random_between(1, 4), items = random_between(1, 10);
    const int64_t g = gates[k.cell], h = PICK(few);
    const int64_t *state = SIZES(ds, items, h);
    add_in(d, DMLK_FLOAT32, 5, SIZES(ds, steps, items, g, h));
    add_in(d, type, 4, SIZES(ds, g, h, h));
    add_optional(d, type, 3, SIZES(ds, g, h), false);
    add_optional(d, type, 3, state, false);
    lstm ? add_optional(d, type, 3, state, false) : device_no_tensor(d);
    add_optional(d, DMLK_UINT32, 1, &items, false);
    if (d->views[5].base != NULL && random_flag()) { /* as random bits nearly all of them are too large */
        fill_random(&d->views[5], 0, steps);
    }
    lstm ? add_optional(d, type, 3, SIZES(ds, 3, h), false) : device_no_tensor(d);
    add_optional(d, type, 4, SIZES(steps, ds, items, h), true);
    add_out(d, type, 3, state);
    lstm ? add_optional(d, type, 3, state, true) : device_no_tensor(d);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(attention) {
    static const uint32_t masks[] = {DMLK_MASK_NONE, DMLK_MASK_LENGTH, DMLK_MASK_END_START, DMLK_MASK_BOOLEAN};
    const dmlk_attention k = {.mask = PICK(masks), .scale = 0.5f, .filter = -100};
    const enum dmlk_type type = random_flag() ? DMLK_FLOAT32 : DMLK_FLOAT16;
    const int64_t b = random_between(1, 2), g = random_between(1, 3), h = g * random_between(1, 2), e = random_between(1, 9);
    const int64_t v = random_between(1, 3) == 1 ? 50 : random_between(1, 5), queries = random_between(1, 30);
    const bool has_lengths = random_flag(), has_past = has_lengths || random_flag(), has_new = has_lengths || !has_past || random_flag();
    const int64_t fresh = has_new ? random_between(1, 60) : 0, past = has_past ? random_between(1, 5) + (has_lengths ? fresh : 0) : 0;
    const int64_t keys = has_lengths ? past : past + fresh;
    add_in(d, type, 4, SIZES(b, h, queries, e));
    has_new ? add_in(d, type, 4, SIZES(b, g, fresh, e)) : device_no_tensor(d);
    has_new ? add_in(d, type, 4, SIZES(b, g, fresh, v)) : device_no_tensor(d);
    add_optional(d, type, 2, SIZES(h, e), false);
    add_optional(d, type, 2, SIZES(g, e), false);
    add_optional(d, type, 2, SIZES(g, v), false);
    switch (k.mask) {
    case DMLK_MASK_LENGTH: add_in(d, DMLK_INT32, 1, &b); break;
    case DMLK_MASK_END_START: add_in(d, DMLK_INT32, 2, SIZES(2, b)); break;
    case DMLK_MASK_BOOLEAN: add_in(d, DMLK_INT32, 4, SIZES(b, h, queries, keys)); break;
    default: device_no_tensor(d);
    }
    add_optional(d, type, 4, SIZES(b, h, queries, keys), false);
    has_past ? add_in(d, type, 4, SIZES(b, g, past, e)) : device_no_tensor(d);
    has_past ? add_in(d, type, 4, SIZES(b, g, past, v)) : device_no_tensor(d);
    has_lengths ? add_in(d, random_flag() ? DMLK_INT32 : DMLK_UINT32, 1, &b) : device_no_tensor(d);
    if (has_lengths && random_flag()) {
        fill_random(&d->views[10], 0, past);
    }
    add_out(d, type, 4, SIZES(b, h, queries, v));
    add_optional(d, type, 4, SIZES(b, g, keys, e), true);
    add_optional(d, type, 4, SIZES(b, g, keys, v), true);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(take_sequences) {
    const int64_t steps = random_between(1, 5), items = random_between(1, 4), elements = random_between(1, 20);
    const enum dmlk_type type = random_flag() ? DMLK_FLOAT32 : DMLK_FLOAT16;
    add_in(d, type, 4, SIZES(1, steps, items, elements));
    add_in(d, DMLK_UINT32, 4, SIZES(1, 1, 1, items));
    if (random_flag()) {
        fill_random(&d->views[1], 0, steps);
    }
    add_out(d, type, 4, SIZES(1, steps, items, elements));
    device_constants(d, NULL, 0, 0);
}

PACKET(space_depth) {
    const dmlk_space_depth k = {(uint32_t)random_between(1, 3), random_flag(), random_flag()};
    const int64_t block = k.block, batch = random_between(1, 2), channels = random_between(1, 4);
    const int64_t height = random_between(1, 5), width = random_between(1, 20);
    const int64_t space[] = {batch, channels, height * block, width * block};
    const int64_t deep[] = {batch, channels * block * block, height, width};
    const enum dmlk_type type = PICK(types);
    add_in(d, type, 4, k.to_space ? deep : space);
    add_out(d, type, 4, k.to_space ? space : deep);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(resample) {
    dmlk_resample k = {.rank = (uint32_t)random_between(1, 4), .mode = (uint32_t)random_between(0, 4), .gradient = random_flag()};
    int64_t in[DMLK_MAX_RANK], out[DMLK_MAX_RANK];
    const bool sums = k.mode >= DMLK_LINEAR || k.gradient;
    const enum dmlk_type type = sums ? PICK(((enum dmlk_type[]){DMLK_FLOAT32, DMLK_FLOAT16, DMLK_INT8, DMLK_UINT8})) : PICK(types);
    for (uint32_t i = 0; i < k.rank; i++) {
        in[i] = random_between(1, k.rank == 1 ? 3000 : k.rank == 2 ? 40 : 5);
        out[i] = random_flag() ? in[i] : random_between(1, k.rank == 1 ? 3000 : k.rank == 2 ? 40 : 5);
        k.scales[i] = (float)random_between(1, 12) / 4;
        k.outer[i] = (float)random_between(-4, 4) / 4;
        k.inner[i] = (float)random_between(-4, 4) / 4;
    }
    if (random_between(0, 9) == 0) { /* any bits */
        const uint32_t any = (uint32_t)random_bits();
        memcpy(&k.scales[0], &any, sizeof any);
        k.scales[0] = k.scales[0] > 0 ? k.scales[0] : 1;
        k.mode %= DMLK_LINEAR_ANTIALIASED; /* it would have many taps */
    }
    add_in(d, type, k.rank, in);
    add_out(d, type, k.rank, out);
    device_constants(d, &k, sizeof k, 0);
}

/* Fills in regions near the image; random bits would put nearly all of them far away. */
static void fill_regions(device *d, uint32_t tensor) {
    if (random_between(0, 3) > 0) {
        fill_random(&d->views[tensor], -3, 12);
    }
}

PACKET(roi_pooling) {
    const dmlk_roi_pooling k = {(float)random_between(1, 8) / 4};
    const enum dmlk_type type = PICK(singles);
    const int64_t regions = random_between(1, 4), channels = random_between(1, 3);
    add_in(d, type, 4, SIZES(random_between(1, 3), channels, random_between(1, 9), random_between(1, 9)));
    add_in(d, type, 2, SIZES(regions, 5));
    fill_regions(d, 1);
    add_out(d, type, 4, SIZES(regions, channels, random_between(1, 4), random_between(1, 4)));
    device_constants(d, &k, sizeof k, 0);
}

static dmlk_roi_align random_roi_align(void) {
    return (dmlk_roi_align){.takes_maximum = random_flag(),
                            .linear = random_flag(),
                            .minimum = (uint32_t)random_between(0, 2),
                            .maximum = (uint32_t)random_between(2, 4),
                            .aligned = random_flag(),
                            .scale_x = (float)random_between(1, 8) / 4,
                            .scale_y = (float)random_between(1, 8) / 4,
                            .in_offset = (float)random_between(-2, 2) / 4,
                            .out_offset = (float)random_between(-2, 2) / 4,
                            .outside = 3};
}

static void add_batch_indices(device *d, int64_t regions, int64_t batches) {
    add_in(d, random_flag() ? DMLK_UINT32 : DMLK_UINT64, 1, &regions);
    if (random_flag()) {
        fill_random(&d->views[d->tensor_count - 1], 0, batches);
    }
}

PACKET(roi_align) {
    const dmlk_roi_align k = random_roi_align();
    const enum dmlk_type type = PICK(singles);
    const int64_t regions = random_between(1, 4), channels = random_between(1, 3), batches = random_between(1, 3);
    add_in(d, type, 4, SIZES(batches, channels, random_between(1, 9), random_between(1, 9)));
    add_in(d, type, 2, SIZES(regions, 4));
    fill_regions(d, 1);
    add_batch_indices(d, regions, batches);
    add_out(d, type, 4, SIZES(regions, channels, random_between(1, 4), random_between(1, 4)));
    device_constants(d, &k, sizeof k, 0);
}

PACKET(roi_align_grad) {
    const dmlk_roi_align k = random_roi_align();
    const enum dmlk_type type = PICK(singles);
    const int64_t regions = random_between(1, 4), channels = random_between(1, 3), batches = random_between(1, 3);
    const int64_t *image = SIZES(batches, channels, random_between(1, 9), random_between(1, 9));
    const bool has_image = random_between(0, 3) > 0, has_corners = !has_image || random_flag();
    const bool has_input = has_corners || k.takes_maximum || random_flag();
    has_input ? add_in(d, type, 4, image) : device_no_tensor(d);
    add_in(d, type, 4, SIZES(regions, channels, random_between(1, 4), random_between(1, 4)));
    add_in(d, type, 2, SIZES(regions, 4));
    fill_regions(d, 2);
    add_batch_indices(d, regions, batches);
    has_image ? add_out(d, type, 4, image) : device_no_tensor(d);
    has_corners ? add_out(d, type, 2, SIZES(regions, 4)) : device_no_tensor(d);
    device_constants(d, &k, sizeof k, 0);
}

PACKET(upsample_2d) {
    int64_t sizes[DMLK_MAX_RANK];
    const dmlk_upsample_2d k = {(uint32_t)random_between(1, 4), (uint32_t)random_between(1, 4)};
    const uint32_t rank = (uint32_t)random_between(2, DMLK_MAX_RANK - 2);
    const enum dmlk_type type = PICK(types);
    for (uint32_t i = 0; i < rank; i++) {
        sizes[i] = random_between(1, rank == 2 ? 20 : 3);
    }
    add_in(d, type, rank, sizes);
    sizes[rank - 2] *= k.height;
    sizes[rank - 1] *= k.width;
    add_out(d, type, rank, sizes);
    device_constants(d, &k, sizeof k, 0);
}

void packet_random(device *d, uint32_t kernel) {
    if (element_wise_function(kernel) != NULL) {
        begin_element_wise(d, element_wise_function(kernel));
        return;
    }
    for (const struct generator *each = generators; each != NULL; each = each->next) {
        if (each->family != NULL && strcmp(each->name, dmlk_kernel_family(kernel)) == 0) {
            each->family(d, dmlk_kernel_name(kernel));
            return;
        }
    }
    for (const struct generator *each = generators; each != NULL; each = each->next) {
        if (each->kernel != NULL && strcmp(each->name, dmlk_kernel_name(kernel)) == 0) {
            device_begin(d, each->name);
            each->kernel(d);
            return;
        }
    }
    fprintf(stderr, "packets.c does not know what the kernel %s takes\n", dmlk_kernel_name(kernel));
    exit(EXIT_FAILURE);
}

void packet_any(device *d) {
    int64_t sizes[DMLK_MAX_RANK];
    device_begin(d, dmlk_kernel_name((uint32_t)random_between(0, dmlk_kernel_count() - 1)));
    const int64_t tensors = random_between(2, 5);
    const uint32_t rank = (uint32_t)random_between(1, 5);
    const enum dmlk_type type = PICK(types);
    for (uint32_t i = 0; i < rank; i++) {
        sizes[i] = random_between(1, 4);
    }
    for (int64_t k = 0; k < tensors; k++) {
        add(d, random_between(0, 4) ? type : PICK(types), rank, sizes, NULL, DMLK_READ_WRITE);
    }
    static const uint32_t constant_sizes[] = {
        0, 4, 8, 12, 16, sizeof(dmlk_selection), sizeof(dmlk_diagonal_matrix), sizeof(dmlk_convolution_integer), sizeof(dmlk_convolution_float),
        sizeof(dmlk_element_wise), sizeof(dmlk_padding), sizeof(dmlk_pooling), sizeof(dmlk_take_slice), sizeof(dmlk_fold)};
    uint32_t constants[32];
    for (int i = 0; i < 32; i++) {
        constants[i] = random_between(0, 3) ? (uint32_t)random_between(0, 4) : (uint32_t)random_bits();
    }
    device_constants(d, constants, PICK(constant_sizes), random_flag());
}

/* --- breaking packets --- */

/* A number that is likely to hit an edge case. */
static uint32_t nasty(void) {
    static const uint32_t numbers[] = {0, 1,  2,   3,     4,          5,          7,          8,
                                       9, 16, 255, 65535, 0x7fffffff, 0x80000000, UINT32_MAX, UINT32_MAX - 1};
    return random_between(0, 9) ? PICK(numbers) : (uint32_t)random_bits();
}

void packet_break(device *d) {
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
