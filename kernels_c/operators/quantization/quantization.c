/* quantization.c - conversions between numbers and small integers with a scale and a zero point:
 *
 *   quantize:    q = saturate(round(x / scale) + zero point), rounded half to even
 *   dequantize:  x = (q - zero point) * scale
 *
 * Arithmetic is in FLOAT32, except for quotients of INT32, which are in FLOAT64.  Elements of 8 and 4 bits are processed as
 * raw bytes; inverting the sign bit of signed elements (`flip`) makes them unsigned, with the same order and distances. */
#include <float.h>
#include <math.h>

#include "float16.h"
#include "half_bytes.h"
#include "kernel.h"
#include "promoted.h"
#include "quantization.h"
#include "scaling.h"
#include "staged_rows.h"

#define PIECE 1024 /* elements that are processed at a time */

enum { INPUT, SCALE, ZERO, OUTPUT, OPERANDS };

struct job {
    uint32_t types[OPERANDS];
    dmlk_integers integers; /* of the quantized elements and their zero points */
    dmlk_row *row;
    int64_t block; /* elements of a row of a block */
};

static bool is_small(uint32_t type) { return type != DMLK_UNKNOWN && dmlk_type_bits(type) <= 8; }

static dmlk_integers integers_of(uint32_t type) {
    const int32_t most = (1 << dmlk_type_bits(type)) - 1, middle = (most + 1) / 2;
    const bool is_signed = dmlk_type_kind(type) == DMLK_KIND_SIGNED;
    return (dmlk_integers){.flip = is_signed ? middle : 0,
                             .low = is_signed ? -middle : 0,
                             .high = is_signed ? middle - 1 : most,
                             .is_half = dmlk_is_half_byte(type)};
}

/* --- pieces of a row: contiguous, in place or copied to `piece` --- */

static const uint8_t *load_bytes(bool is_half, const uint8_t *at, int64_t stride, int64_t count, uint8_t *piece) {
    if (is_half) {
        dmlk_load_half_bytes(at, stride, count, piece);
        return piece;
    }
#ifndef DMLK_CHECKED
    if (stride == 1) {
        return at;
    }
    if (stride == 0) {
        memset(piece, *at, (size_t)count);
        return piece;
    }
#endif
    for (int64_t i = 0; i < count; i++) {
        piece[i] = DMLK_LOAD(at, i * stride);
    }
    return piece;
}

static const float *load_floats(uint32_t type, const uint8_t *at, int64_t stride, int64_t count, float *piece) {
    const float *floats = (const float *)at;
    const uint16_t *halves = (const uint16_t *)at;
#ifndef DMLK_CHECKED
    if (stride == 1 && type == DMLK_FLOAT32) {
        return floats;
    }
    if (stride == 1) {
        dmlk_widen_float16(halves, count, piece);
        return piece;
    }
    if (stride == 0) {
        const float one = type == DMLK_FLOAT32 ? *floats : dmlk_float16_to_float(*halves);
        for (int64_t i = 0; i < count; i++) {
            piece[i] = one;
        }
        return piece;
    }
#endif
    if (type == DMLK_FLOAT32) {
        for (int64_t i = 0; i < count; i++) {
            piece[i] = DMLK_LOAD(floats, i * stride);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            piece[i] = dmlk_float16_to_float(DMLK_LOAD(halves, i * stride));
        }
    }
    return piece;
}

/* Where to put results: in place, if store_floats and store_bytes then have nothing to do; otherwise in `piece`. */
static float *place_floats(uint32_t type, uint8_t *at, int64_t stride, float *piece) {
#ifndef DMLK_CHECKED
    if (stride == 1 && type == DMLK_FLOAT32) {
        return (float *)at;
    }
#else
    (void)type, (void)at, (void)stride;
#endif
    return piece;
}

static void store_floats(uint32_t type, const float *from, uint8_t *at, int64_t stride, int64_t count) {
    float *floats = (float *)at;
    uint16_t *halves = (uint16_t *)at;
    if (from == floats) {
        return;
    }
#ifndef DMLK_CHECKED
    if (stride == 1 && type == DMLK_FLOAT16) {
        dmlk_narrow_floats(from, count, halves);
        return;
    }
#endif
    if (type == DMLK_FLOAT32) {
        for (int64_t i = 0; i < count; i++) {
            DMLK_STORE(floats, i * stride, from[i]);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            DMLK_STORE(halves, i * stride, dmlk_float_to_float16(from[i]));
        }
    }
}

static uint8_t *place_bytes(bool is_half, uint8_t *at, int64_t stride, uint8_t *piece) {
#ifndef DMLK_CHECKED
    if (stride == 1 && !is_half) {
        return at;
    }
#else
    (void)is_half, (void)at, (void)stride;
#endif
    return piece;
}

static void store_bytes(bool is_half, const uint8_t *from, uint8_t *at, int64_t stride, int64_t count) {
    if (is_half) {
        dmlk_store_half_bytes(at, stride, count, from);
    } else if (from != at) {
        for (int64_t i = 0; i < count; i++) {
            DMLK_STORE(at, i * stride, from[i]);
        }
    }
}

/* --- arithmetic on pieces --- */

/* Rounds half to even, and clamps to -1024 .. 1024: beyond that, the element saturates whatever the zero point is.
 * NaN: 0. */
static inline int32_t rounded_double(double x) {
    const double least = x > -1024 ? x : -1024, near = least < 1024 ? least : 1024;
    return x == x ? (int32_t)rint(near) : 0;
}

/* The raw byte of a rounded quotient; `zero` is a raw zero point. */
static inline uint8_t quantized(int32_t number, uint8_t zero, const dmlk_integers *type) {
    const int32_t sum = number + (zero ^ type->flip); /* the element minus the lowest element */
    const int32_t least = sum > 0 ? sum : 0, range = type->high - type->low;
    return (uint8_t)((least < range ? least : range) ^ type->flip);
}

DMLK_EACH_ISA(divide, (const float *restrict x, const float *restrict scale, const uint8_t *restrict zero,
                       const dmlk_integers *type, int64_t count, uint8_t *restrict out),
              (x, scale, zero, type, count, out)) {
    const dmlk_integers limits = *type;
    for (int64_t i = 0; i < count; i++) {
        out[i] = dmlk_quantized_float(x[i] / scale[i], zero[i], &limits);
    }
}

/* The same with one scale and one zero point. */
DMLK_EACH_ISA(divide_all, (const float *restrict x, float scale, uint8_t zero, const dmlk_integers *type,
                           int64_t count, uint8_t *restrict out),
              (x, scale, zero, type, count, out)) {
    const dmlk_integers limits = *type;
    for (int64_t i = 0; i < count; i++) {
        out[i] = dmlk_quantized_float(x[i] / scale, zero, &limits);
    }
}

DMLK_EACH_ISA(multiply, (const uint8_t *restrict q, const float *restrict scale, const uint8_t *restrict zero,
                         int32_t flip, int64_t count, float *restrict out),
              (q, scale, zero, flip, count, out)) {
    for (int64_t i = 0; i < count; i++) {
        out[i] = dmlk_one_nan((float)((q[i] ^ flip) - (zero[i] ^ flip)) * scale[i]);
    }
}

DMLK_EACH_ISA(multiply_all, (const uint8_t *restrict q, float scale, uint8_t zero, int32_t flip, int64_t count,
                             float *restrict out),
              (q, scale, zero, flip, count, out)) {
    const int32_t offset = zero ^ flip;
    if (fabsf(scale) <= FLT_MAX) { /* then no product is NaN */
        for (int64_t i = 0; i < count; i++) {
            out[i] = (float)((q[i] ^ flip) - offset) * scale;
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        out[i] = dmlk_one_nan((float)((q[i] ^ flip) - offset) * scale);
    }
}

/* --- rows --- */

/* The address of element i of the row, in operand k. */
static uint8_t *element(const struct job *job, uint8_t *const *at, const int64_t *strides, uint32_t k, int64_t i) {
    const int64_t bytes = dmlk_type_bytes(job->types[k]);
    return at[k] + i * strides[k] * (bytes == 0 ? 1 : bytes); /* at[k] may be a half-byte pointer */
}

static bool same_for_all(const int64_t *strides) { return strides[SCALE] == 0 && strides[ZERO] == 0; }

static void quantize_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct job *job = context;
    const dmlk_integers *type = &job->integers;
    const int64_t params = same_for_all(strides) ? 1 : PIECE;
    float x_piece[PIECE], scale_piece[PIECE];
    uint8_t zero_piece[PIECE], out_piece[PIECE];
    for (int64_t i = 0; i < count; i += PIECE) {
        const int64_t n = dmlk_min(count - i, PIECE), m = dmlk_min(n, params);
        uint8_t *to = element(job, at, strides, OUTPUT, i);
        const float *x = load_floats(job->types[INPUT], element(job, at, strides, INPUT, i), strides[INPUT], n, x_piece);
        const float *scale = load_floats(job->types[SCALE], element(job, at, strides, SCALE, i), strides[SCALE], m, scale_piece);
        const uint8_t *zero = load_bytes(type->is_half, element(job, at, strides, ZERO, i), strides[ZERO], m, zero_piece);
        uint8_t *out = place_bytes(type->is_half, to, strides[OUTPUT], out_piece);
        if (params == 1) {
            divide_all(x, scale[0], zero[0], type, n, out);
        } else {
            divide(x, scale, zero, type, n, out);
        }
        store_bytes(type->is_half, out, to, strides[OUTPUT], n);
    }
}

/* For inputs of INT32, which FLOAT32 cannot represent exactly. */
static void quantize_integers_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct job *job = context;
    const dmlk_integers *type = &job->integers;
    float scale_piece[PIECE];
    uint8_t zero_piece[PIECE], out[PIECE];
    for (int64_t i = 0; i < count; i += PIECE) {
        const int64_t n = dmlk_min(count - i, PIECE);
        const int32_t *x = (const int32_t *)element(job, at, strides, INPUT, i);
        const float *scale = load_floats(job->types[SCALE], element(job, at, strides, SCALE, i), strides[SCALE], n, scale_piece);
        const uint8_t *zero = load_bytes(type->is_half, element(job, at, strides, ZERO, i), strides[ZERO], n, zero_piece);
        for (int64_t k = 0; k < n; k++) {
            const double quotient = (double)DMLK_LOAD(x, k * strides[INPUT]) / (double)scale[k];
            out[k] = quantized(rounded_double(quotient), zero[k], type);
        }
        store_bytes(type->is_half, out, element(job, at, strides, OUTPUT, i), strides[OUTPUT], n);
    }
}

static void dequantize_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct job *job = context;
    const dmlk_integers *type = &job->integers;
    const int64_t params = same_for_all(strides) ? 1 : PIECE;
    float scale_piece[PIECE], out_piece[PIECE];
    uint8_t q_piece[PIECE], zero_piece[PIECE];
    for (int64_t i = 0; i < count; i += PIECE) {
        const int64_t n = dmlk_min(count - i, PIECE), m = dmlk_min(n, params);
        uint8_t *to = element(job, at, strides, OUTPUT, i);
        const uint8_t *q = load_bytes(type->is_half, element(job, at, strides, INPUT, i), strides[INPUT], n, q_piece);
        const float *scale = load_floats(job->types[SCALE], element(job, at, strides, SCALE, i), strides[SCALE], m, scale_piece);
        const uint8_t *zero = load_bytes(type->is_half, element(job, at, strides, ZERO, i), strides[ZERO], m, zero_piece);
        float *out = place_floats(job->types[OUTPUT], to, strides[OUTPUT], out_piece);
        if (params == 1) {
            multiply_all(q, scale[0], zero[0], type->flip, n, out);
        } else {
            multiply(q, scale, zero, type->flip, n, out);
        }
        store_floats(job->types[OUTPUT], out, to, strides[OUTPUT], n);
    }
}

/* For integers of 16 and 32 bits: differences are exact in 64 bits, then rounded to FLOAT32. */
static void dequantize_integers_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct job *job = context;
    for (int64_t i = 0; i < count; i += DMLK_CHUNK) {
        const int64_t n = dmlk_min(count - i, DMLK_CHUNK);
        dmlk_promoted q, zero;
        float scale_piece[DMLK_CHUNK], out[DMLK_CHUNK];
        dmlk_load_promoted(job->types[INPUT], element(job, at, strides, INPUT, i), strides[INPUT], n, &q);
        dmlk_load_promoted(job->types[ZERO], element(job, at, strides, ZERO, i), strides[ZERO], n, &zero);
        const float *scale = load_floats(job->types[SCALE], element(job, at, strides, SCALE, i), strides[SCALE], n, scale_piece);
        for (int64_t k = 0; k < n; k++) { /* (int64_t holds a UINT32, too) */
            out[k] = dmlk_one_nan((float)(q.i[k] - zero.i[k]) * scale[k]);
        }
        store_floats(job->types[OUTPUT], out, element(job, at, strides, OUTPUT, i), strides[OUTPUT], n);
    }
}

/* --- blocks --- */

/* A loop over the elements: over a dimension, over the blocks of a dimension, or over the elements of a block. */
struct loop {
    int64_t size;
    int64_t strides[OPERANDS];
};

/* Loops that step evenly through all operands become one; returns the number of those that are left. */
static uint32_t merge_loops(struct loop *loops, uint32_t count) {
    uint32_t last = 0;
    for (uint32_t d = 1; d < count; d++) {
        struct loop *outer = &loops[last];
        const struct loop inner = loops[d];
        bool is_even = true;
        for (uint32_t k = 0; k < OPERANDS; k++) {
            is_even = is_even && outer->strides[k] == inner.size * inner.strides[k];
        }
        if (is_even) {
            const int64_t size = outer->size * inner.size;
            *outer = inner;
            outer->size = size;
        } else {
            loops[++last] = inner;
        }
    }
    return last + 1;
}

/* Splits dimensions in which an element of the scale applies to a block of several elements.  Returns the number of
 * loops; 0: the sizes of the scale do not divide those of the input. */
static uint32_t split_into_blocks(const dmlk_view *views, struct loop *loops) {
    uint32_t count = 0;
    for (uint32_t d = 0; d < views[INPUT].rank; d++) {
        const int64_t blocks = views[SCALE].sizes[d], size = views[INPUT].sizes[d] / blocks;
        const int64_t in = views[INPUT].strides[d], out = views[OUTPUT].strides[d];
        if (size * blocks != views[INPUT].sizes[d]) {
            return 0;
        }
        if (blocks > 1) {
            loops[count++] = (struct loop){blocks, {in * size, views[SCALE].strides[d], views[ZERO].strides[d], out * size}};
        }
        if (size > 1) {
            loops[count++] = (struct loop){size, {in, 0, 0, out}};
        }
    }
    if (count == 0) {
        loops[count++] = (struct loop){.size = 1};
    }
    return merge_loops(loops, count);
}

/* Short rows with one scale each, without the cost of iterating over them: the operands step from row to row. */
static void block_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    static const int64_t inner[OPERANDS] = {[INPUT] = 1, [OUTPUT] = 1};
    const struct job *job = context;
    for (int64_t i = 0; i < count; i++) {
        uint8_t *block[OPERANDS];
        for (uint32_t k = 0; k < OPERANDS; k++) {
            block[k] = element(job, at, strides, k, i);
        }
        job->row(block, inner, job->block, job);
    }
}

/* Whether the last loop is over the adjacent elements of a block that is short enough for block_row, which can only
 * be stopped between calls. */
static bool has_short_blocks(const struct loop *loops, uint32_t count) {
    const struct loop *last = &loops[count - 1];
    return count > 1 && last->size <= 256 && last->strides[INPUT] == 1 && last->strides[OUTPUT] == 1 &&
           last->strides[SCALE] == 0 && last->strides[ZERO] == 0;
}

/* Runs the job on all elements of the four views, whose bases may be half-byte pointers. */
static int for_each_block(const dmlk_view *views, bool are_halves, struct job *job) {
    struct loop loops[2 * DMLK_MAX_RANK];
    uint32_t count = split_into_blocks(views, loops);
    dmlk_row *row = job->row;
    if (count > 0 && has_short_blocks(loops, count)) {
        row = block_row;
        job->block = loops[--count].size;
    }
    const uint32_t outer = count > DMLK_MAX_RANK ? count - DMLK_MAX_RANK : 0; /* loops that do not fit the views */
    dmlk_view parts[OPERANDS];
    const dmlk_view *operands[OPERANDS];
    const bool in_place = are_halves || row == block_row; /* rows need pointers into the tensors themselves */
    int64_t repeats = 1;
    for (uint32_t k = 0; k < OPERANDS; k++) {
        operands[k] = &parts[k];
        parts[k] = views[k];
        parts[k].rank = count - outer;
        for (uint32_t d = outer; d < count; d++) {
            parts[k].sizes[d - outer] = loops[d].size;
            parts[k].strides[d - outer] = loops[d].strides[k];
        }
    }
    for (uint32_t d = 0; d < outer; d++) {
        repeats *= loops[d].size;
    }
    int status = count == 0 ? DMLK_BAD_PACKET : DMLK_OK;
    for (int64_t i = 0; i < repeats && status == DMLK_OK && !dmlk_watch_stopped(); i++) {
        int64_t rest = i, offsets[OPERANDS] = {0};
        for (uint32_t d = outer; d-- > 0; rest /= loops[d].size) {
            for (uint32_t k = 0; k < OPERANDS; k++) {
                offsets[k] += rest % loops[d].size * loops[d].strides[k];
            }
        }
        for (uint32_t k = 0; k < OPERANDS; k++) {
            parts[k].base = views[k].base + offsets[k] * dmlk_type_bytes(views[k].type);
        }
        status = in_place ? dmlk_indexed_rows(operands, OPERANDS, row, job) : dmlk_for_rows(operands, OPERANDS, row, job);
    }
    return status;
}

/* A tensor with the sizes of `like`, all of whose elements are `value`. */
static dmlk_view constant_view(const dmlk_view *like, uint32_t type, const void *value) {
    dmlk_view view = *like;
    view.type = type;
    view.base = (uint8_t *)(uintptr_t)value;
    memset(view.strides, 0, sizeof view.strides);
    return view;
}

/* The zero point that an absent one stands for, as raw bits of an element. */
static uint64_t absent_zero(uint32_t type, bool centered) {
    const bool is_unsigned = dmlk_type_kind(type) == DMLK_KIND_UNSIGNED;
    return centered && is_unsigned ? UINT64_C(1) << (dmlk_type_bits(type) - 1) : 0;
}

/* Runs `row` on the four views of the kernel; `quantized_view` is the view with integers. */
static int run_rows(dmlk_view *views, const dmlk_view *quantized_view, bool centered, dmlk_row *row) {
    const uint32_t type = quantized_view->type;
    const uint64_t absent = absent_zero(type, centered); /* little endian: its first bytes are the element */
    if (views[ZERO].base == NULL) {
        views[ZERO] = constant_view(&views[SCALE], type, &absent);
    }
    if (!dmlk_same_sizes(&views[INPUT], &views[OUTPUT]) || !dmlk_same_sizes(&views[SCALE], &views[ZERO]) ||
        views[SCALE].rank != views[INPUT].rank) {
        return DMLK_BAD_PACKET;
    }
    struct job job = {.integers = is_small(type) ? integers_of(type) : (dmlk_integers){0}, .row = row};
    bool are_halves = false;
    for (uint32_t k = 0; k < OPERANDS; k++) {
        job.types[k] = views[k].type;
        if (dmlk_is_half_byte(views[k].type)) {
            are_halves = true;
            views[k] = dmlk_half_byte_view(&views[k]);
        }
    }
    return for_each_block(views, are_halves, &job);
}

static bool is_float(uint32_t type) { return type == DMLK_FLOAT32 || type == DMLK_FLOAT16; }

static int run_quantize(const dmlk_call *call) {
    dmlk_quantization k;
    if (!dmlk_has_views(call, OPERANDS, 1 << ZERO) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    dmlk_view views[OPERANDS];
    memcpy(views, call->views, sizeof views);
    const uint32_t in = views[INPUT].type, out = views[OUTPUT].type;
    if (!(is_float(in) || in == DMLK_INT32) || !is_float(views[SCALE].type) || !is_small(out) ||
        (views[ZERO].base != NULL && views[ZERO].type != out)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    return run_rows(views, &call->views[OUTPUT], k.centered, in == DMLK_INT32 ? quantize_integers_row : quantize_row);
}

#ifndef DMLK_CHECKED
bool dmlk_prepare_quantize(const dmlk_call *call, dmlk_follower *follower) {
    const dmlk_view *v = call->views;
    dmlk_quantization k;
    if (!dmlk_has_views(call, OPERANDS, 0) || !dmlk_get_constants(call, &k, sizeof k) || v[INPUT].type != DMLK_FLOAT32 ||
        v[SCALE].type != DMLK_FLOAT32 || dmlk_type_bits(v[OUTPUT].type) != 8 || v[ZERO].type != v[OUTPUT].type) {
        return false;
    }
    struct job job = {.integers = integers_of(v[OUTPUT].type), .row = quantize_row};
    _Static_assert(sizeof job <= sizeof follower->context, "a job fits");
    for (uint32_t i = 0; i < OPERANDS; i++) {
        job.types[i] = v[i].type;
        follower->order[i] = i;
    }
    follower->row = quantize_row;
    follower->operands = OPERANDS;
    follower->reads_one = true;
    follower->known = DMLK_QUANTIZE;
    follower->integers = job.integers;
    memcpy(follower->context, &job, sizeof job);
    return true;
}
#endif

static int run_dequantize(const dmlk_call *call) {
    dmlk_quantization k;
    if (!dmlk_has_views(call, OPERANDS, 1 << ZERO) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    dmlk_view views[OPERANDS];
    memcpy(views, call->views, sizeof views);
    const uint32_t in = views[INPUT].type;
    if (dmlk_type_kind(in) == DMLK_KIND_FLOAT || dmlk_type_bits(in) > 32 || !is_float(views[SCALE].type) ||
        !is_float(views[OUTPUT].type) || (views[ZERO].base != NULL && views[ZERO].type != in)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    return run_rows(views, &call->views[INPUT], k.centered, is_small(in) ? dequantize_row : dequantize_integers_row);
}

/* --- sums of quantized tensors --- */

/* The only element of a scale, or of a zero point (absent: 0). */
static float scale_of(const dmlk_view *view) { return DMLK_LOAD((const float *)view->base, 0); }

static int32_t zero_of(const dmlk_view *view, const dmlk_integers *type) {
    const uint8_t raw = view->base == NULL ? 0 : DMLK_LOAD(view->base, 0);
    return raw ^ type->flip;
}

struct sum {
    dmlk_integers a, b, out;
    int32_t a_zero, b_zero; /* (raw ^ flip) */
    uint8_t out_zero;       /* raw */
    float a_scale, b_scale, out_scale;
};

DMLK_ROW_OF_EACH_ISA(add_row) {
    const struct sum k = *(const struct sum *)context;
    const uint8_t *restrict a = at[0], *restrict b = at[1];
    uint8_t *restrict out = at[2];
    const int64_t a_stride = strides[0], b_stride = strides[1], out_stride = strides[2];
    for (int64_t i = 0; i < count; i++) {
        const float x = (float)((DMLK_LOAD(a, i * a_stride) ^ k.a.flip) - k.a_zero) * k.a_scale;
        const float y = (float)((DMLK_LOAD(b, i * b_stride) ^ k.b.flip) - k.b_zero) * k.b_scale;
        DMLK_STORE(out, i * out_stride, dmlk_quantized_float((x + y) / k.out_scale, k.out_zero, &k.out));
    }
}

static int run_add(const dmlk_call *call) {
    enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, OUT_SCALE, OUT_ZERO, OUT, VIEWS };
    dmlk_quantization unused;
    if (!dmlk_has_views(call, VIEWS, 1 << A_ZERO | 1 << B_ZERO | 1 << OUT_ZERO) ||
        !dmlk_get_constants(call, &unused, sizeof unused)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *v = call->views;
    const uint32_t owner[VIEWS] = {A, A_SCALE, A, B, A_SCALE, B, A_SCALE, OUT, OUT}; /* the view with the same type */
    for (uint32_t k = 0; k < VIEWS; k++) {
        const bool is_one = k == A || k == B || k == OUT || v[k].base == NULL || dmlk_view_elements(&v[k]) == 1;
        const bool fits = owner[k] == A_SCALE ? v[k].type == DMLK_FLOAT32 : dmlk_type_bits(v[owner[k]].type) == 8;
        if (!fits || (v[k].base != NULL && v[k].type != v[owner[k]].type)) {
            return DMLK_NOT_IMPLEMENTED;
        }
        if (!is_one) {
            return DMLK_BAD_PACKET;
        }
    }
    struct sum sum = {.a = integers_of(v[A].type), .b = integers_of(v[B].type), .out = integers_of(v[OUT].type)};
    sum.a_scale = scale_of(&v[A_SCALE]);
    sum.b_scale = scale_of(&v[B_SCALE]);
    sum.out_scale = scale_of(&v[OUT_SCALE]);
    sum.a_zero = zero_of(&v[A_ZERO], &sum.a);
    sum.b_zero = zero_of(&v[B_ZERO], &sum.b);
    sum.out_zero = (uint8_t)(zero_of(&v[OUT_ZERO], &sum.out) ^ sum.out.flip);
    return dmlk_staged_rows((const dmlk_view *[]){&v[A], &v[B], &v[OUT]}, 3, add_row, &sum);
}

/* --- sums of products of quantized tensors --- */

enum { SUMS, SUM_BIAS, FIRST_SCALE, SECOND_SCALE, OUT_SCALE, OUT_ZERO, SCALED, SCALED_OPERANDS };

struct scaling {
    uint32_t types[SCALED_OPERANDS];
    dmlk_integers out; /* if the output is quantized */
    bool quantizes, joint;
};

#ifndef DMLK_CHECKED
/* Contiguous sums, plus one bias for all (with `step` 0) or one for each, rounded to floats. */
DMLK_EACH_ISA(add_bias, (const uint32_t *restrict sums, const uint32_t *restrict bias, int64_t step, int64_t count,
                         float *restrict to),
              (sums, bias, step, count, to)) {
    if (step == 0) {
        const uint32_t all = *bias;
        for (int64_t i = 0; i < count; i++) {
            to[i] = (float)(int32_t)(sums[i] + all);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = (float)(int32_t)(sums[i] + bias[i]);
    }
}
#endif

/* Loads the sums, plus a bias of integers, and rounds them to floats.  Sums of INT32 wrap. */
static void load_sums(const struct scaling *s, uint8_t *const *at, const int64_t *strides, int64_t count, float *to) {
    if (s->types[SUMS] != DMLK_INT32) {
        dmlk_promoted sums;
        dmlk_load_promoted(s->types[SUMS], at[SUMS], strides[SUMS], count, &sums);
        for (int64_t i = 0; i < count; i++) {
            to[i] = s->types[SUMS] == DMLK_FLOAT64 ? (float)sums.f[i] : (float)sums.i[i];
        }
        return;
    }
    const uint32_t *sums = (const uint32_t *)at[SUMS], *bias = (const uint32_t *)at[SUM_BIAS];
    const bool has_bias = s->types[SUM_BIAS] == DMLK_INT32;
#ifndef DMLK_CHECKED
    const int64_t step = has_bias ? strides[SUM_BIAS] : 0;
    if (strides[SUMS] == 1 && (step == 0 || step == 1)) {
        static const uint32_t none = 0;
        add_bias(sums, has_bias ? bias : &none, step, count, to);
        return;
    }
#endif
    for (int64_t i = 0; i < count; i++) {
        const uint32_t more = has_bias ? DMLK_LOAD(bias, i * strides[SUM_BIAS]) : 0;
        to[i] = (float)(int32_t)(DMLK_LOAD(sums, i * strides[SUMS]) + more);
    }
}

static const float *load_scale(const struct scaling *s, uint32_t k, uint8_t *const *at, const int64_t *strides,
                               int64_t count, float *piece) {
    return load_floats(s->types[k], at[k], strides[k], count, piece);
}

DMLK_EACH_ISA(quantize_sums, (float *restrict x, const float *restrict a, const float *restrict b,
                              const float *restrict scale, const uint8_t *restrict zero, bool joint,
                              const dmlk_integers *type, int64_t count, uint8_t *restrict out),
              (x, a, b, scale, zero, joint, type, count, out)) {
    const dmlk_integers limits = *type;
    for (int64_t i = 0; i < count; i++) {
        x[i] = joint ? x[i] * (a[i] * b[i] / scale[i]) : x[i] * (a[i] * b[i]) / scale[i];
    }
    for (int64_t i = 0; i < count; i++) {
        out[i] = dmlk_quantized_float(x[i], zero[i], &limits);
    }
}

#ifndef DMLK_CHECKED
/* Contiguous sums with one bias, one factor and one zero point: a row of a channel. */
DMLK_EACH_ISA(quantize_channel, (const uint32_t *restrict sums, uint32_t bias, float factor, uint8_t zero,
                                 const dmlk_integers *type, int64_t count, uint8_t *restrict out),
              (sums, bias, factor, zero, type, count, out)) {
    const dmlk_integers limits = *type;
    for (int64_t i = 0; i < count; i++) {
        out[i] = dmlk_quantized_float((float)(int32_t)(sums[i] + bias) * factor, zero, &limits);
    }
}

static bool is_of_channel(const struct scaling *s, const int64_t *strides) {
    return s->quantizes && s->joint && s->types[SUMS] == DMLK_INT32 && s->types[FIRST_SCALE] == DMLK_FLOAT32 &&
           s->types[SECOND_SCALE] == DMLK_FLOAT32 && s->types[OUT_SCALE] == DMLK_FLOAT32 && strides[SUMS] == 1 &&
           strides[SCALED] == 1 && strides[SUM_BIAS] == 0 && strides[FIRST_SCALE] == 0 && strides[SECOND_SCALE] == 0 &&
           strides[OUT_SCALE] == 0 && strides[OUT_ZERO] == 0;
}
#endif

static void scale_sums_row(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    const struct scaling *s = context;
    float x[DMLK_CHUNK], first[DMLK_CHUNK], second[DMLK_CHUNK], third[DMLK_CHUNK];
    uint8_t zero_piece[DMLK_CHUNK], bytes[DMLK_CHUNK], *from[SCALED_OPERANDS];
#ifndef DMLK_CHECKED
    if (is_of_channel(s, strides)) {
        const float *a = (const float *)at[FIRST_SCALE], *b = (const float *)at[SECOND_SCALE];
        const uint32_t bias = s->types[SUM_BIAS] == DMLK_INT32 ? *(const uint32_t *)at[SUM_BIAS] : 0;
        quantize_channel((const uint32_t *)at[SUMS], bias, *a * *b / *(const float *)at[OUT_SCALE], *at[OUT_ZERO],
                         &s->out, count, at[SCALED]);
        return;
    }
#endif
    memcpy(from, at, sizeof from);
    for (int64_t done = 0; done < count; done += DMLK_CHUNK) {
        const int64_t n = dmlk_min(count - done, DMLK_CHUNK);
        load_sums(s, from, strides, n, x);
        const float *a = load_scale(s, FIRST_SCALE, from, strides, n, first);
        const float *b = load_scale(s, SECOND_SCALE, from, strides, n, second);
        const float *c = load_scale(s, s->quantizes ? OUT_SCALE : SUM_BIAS, from, strides, n, third);
        if (s->quantizes) {
            const uint8_t *zero = load_bytes(false, from[OUT_ZERO], strides[OUT_ZERO], n, zero_piece);
            uint8_t *out = place_bytes(false, from[SCALED], strides[SCALED], bytes);
            quantize_sums(x, a, b, c, zero, s->joint, &s->out, n, out);
            store_bytes(false, out, from[SCALED], strides[SCALED], n);
        } else {
            for (int64_t i = 0; i < n; i++) {
                x[i] = dmlk_one_nan(x[i] * (a[i] * b[i]) + c[i]);
            }
            store_floats(s->types[SCALED], x, from[SCALED], strides[SCALED], n);
        }
        for (uint32_t k = 0; k < SCALED_OPERANDS; k++) {
            from[k] += DMLK_CHUNK * strides[k] * dmlk_type_bytes(s->types[k]);
        }
    }
}

static bool sums_fit(const dmlk_view *v, bool quantizes) {
    const uint32_t sums = v[SUMS].type, bias = v[SUM_BIAS].type, out = v[SCALED].type;
    if ((sums != DMLK_INT32 && sums != DMLK_INT64 && sums != DMLK_FLOAT64) || !is_float(v[FIRST_SCALE].type) ||
        !is_float(v[SECOND_SCALE].type)) {
        return false;
    }
    if (quantizes) { /* the bias is added to the sums */
        return dmlk_type_bits(out) == 8 && v[OUT_SCALE].base != NULL && is_float(v[OUT_SCALE].type) &&
               (v[OUT_ZERO].base == NULL || v[OUT_ZERO].type == out) &&
               (v[SUM_BIAS].base == NULL || (bias == DMLK_INT32 && sums == DMLK_INT32));
    }
    return v[OUT_SCALE].base == NULL && v[OUT_ZERO].base == NULL && (v[SUM_BIAS].base == NULL || is_float(bias));
}

static int run_scale_sums(const dmlk_call *call) {
    static const uint64_t zeros = 0;
    dmlk_quantization k;
    if (!dmlk_has_views(call, SCALED_OPERANDS, 1 << SUM_BIAS | 1 << OUT_SCALE | 1 << OUT_ZERO) ||
        !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    dmlk_view views[SCALED_OPERANDS];
    const dmlk_view *operands[SCALED_OPERANDS];
    memcpy(views, call->views, sizeof views);
    struct scaling s = {.quantizes = !is_float(views[SCALED].type), .joint = k.joint != 0};
    if (!sums_fit(views, s.quantizes)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    for (uint32_t i = 0; i < SCALED_OPERANDS; i++) {
        if (views[i].base == NULL) {
            views[i] = constant_view(&views[SCALED], i == OUT_ZERO ? DMLK_UINT8 : DMLK_FLOAT32, &zeros);
        }
        operands[i] = &views[i];
        s.types[i] = views[i].type;
    }
    if (s.quantizes) {
        s.out = integers_of(views[SCALED].type);
    }
    return dmlk_for_rows(operands, SCALED_OPERANDS, scale_sums_row, &s);
}

#ifndef DMLK_CHECKED
/* Whether the view is one number, or (`of_channels`) a number for each channel. */
static bool is_number(const dmlk_view *view, bool of_channels) {
    bool found = true;
    for (uint32_t axis = 0; axis < view->rank; axis++) {
        found = found && (view->sizes[axis] == 1 || view->strides[axis] == 0 || (of_channels && axis == 1));
    }
    return found;
}

static bool same_sizes(const dmlk_view *a, const dmlk_view *b) {
    return a->rank == b->rank && memcmp(a->sizes, b->sizes, a->rank * sizeof a->sizes[0]) == 0;
}

bool dmlk_scaling_scale_sums(const dmlk_call *call, dmlk_scaling *scaling) {
    dmlk_quantization k;
    const dmlk_view *v = call->views;
    if (!dmlk_has_views(call, SCALED_OPERANDS, 1 << SUM_BIAS | 1 << OUT_ZERO) ||
        !dmlk_get_constants(call, &k, sizeof k) || is_float(v[SCALED].type) || !sums_fit(v, true) || k.joint == 0 ||
        v[SUMS].type != DMLK_INT32 || v[SCALED].rank < 2) {
        return false;
    }
    for (uint32_t i = 0; i < SCALED; i++) {
        const bool is_scale = i == FIRST_SCALE || i == SECOND_SCALE || i == OUT_SCALE;
        if (v[i].base != NULL && (!same_sizes(&v[i], &v[SCALED]) || (i != SUMS && !is_number(&v[i], i != OUT_ZERO)) ||
                                  (is_scale && v[i].type != DMLK_FLOAT32))) {
            return false;
        }
    }
    *scaling = (dmlk_scaling){.out = &v[SCALED],
                              .bias = &v[SUM_BIAS],
                              .scales = {&v[FIRST_SCALE], &v[SECOND_SCALE], &v[OUT_SCALE]},
                              .zero = v[OUT_ZERO].base != NULL ? *v[OUT_ZERO].base : 0,
                              .type = integers_of(v[SCALED].type)};
    return true;
}
#endif

/* --- dynamic quantization --- */

#define MAX_PARTS 64

/* An integer that orders as the float does: its bits, inverted except for the sign if the float is negative. */
static inline int32_t ordered(float x) {
    const int32_t bits = (int32_t)dmlk_float_bits(x);
    return bits < 0 ? bits ^ INT32_MAX : bits;
}

/* Widens the range to include the numbers; a NaN counts as 0, which is always in the range. */
DMLK_EACH_ISA(widen, (const float *restrict x, int64_t count, int32_t *low, int32_t *high), (x, count, low, high)) {
    int32_t least = *low, most = *high;
    for (int64_t i = 0; i < count; i++) {
        const int32_t number = x[i] == x[i] ? ordered(x[i]) : 0;
        least = number < least ? number : least;
        most = number > most ? number : most;
    }
    *low = least;
    *high = most;
}

struct range {
    dmlk_iter iter;
    uint32_t type;
    int32_t low[MAX_PARTS], high[MAX_PARTS]; /* of each part */
};

static void find_range(int64_t begin, int64_t end, int part, void *context) {
    struct range *range = context;
    int64_t work = 0, count = 0;
    float piece[PIECE];
    dmlk_cursor cursor;
    dmlk_iter_seek(&range->iter, begin, &cursor);
    for (; begin < end && !dmlk_stopped(&work, count); begin += count) {
        count = dmlk_min(dmlk_min(dmlk_iter_row_left(&range->iter, &cursor), end - begin), PIECE);
        const float *x = load_floats(range->type, cursor.at[0], dmlk_iter_row_strides(&range->iter)[0], count, piece);
        widen(x, count, &range->low[part], &range->high[part]);
        dmlk_iter_advance(&range->iter, &cursor, count);
    }
}

/* The lowest and the highest element, and 0. */
static int range_of(const dmlk_view *in, float *low, float *high) {
    struct range range = {.type = in->type};
    const int status = dmlk_iter_init(&range.iter, DMLK_ANY_ORDER, &in, 1);
    if (status != DMLK_OK) {
        return status;
    }
    const int64_t parts = dmlk_parts(range.iter.count, 1 << 17);
    dmlk_parallel(range.iter.count, (int)dmlk_min(parts, MAX_PARTS), find_range, &range);
    int32_t least = 0, most = 0;
    for (uint32_t k = 0; k < MAX_PARTS; k++) {
        least = range.low[k] < least ? range.low[k] : least;
        most = range.high[k] > most ? range.high[k] : most;
    }
    *low = dmlk_bits_float((uint32_t)(least < 0 ? least ^ INT32_MAX : least));
    *high = dmlk_bits_float((uint32_t)most);
    return DMLK_OK;
}

const uint32_t dmlk_outputs_dynamic_quantize_linear = 3;

static int run_dynamic(const dmlk_call *call) {
    dmlk_quantization unused;
    if (!dmlk_has_views(call, 4, 0) || !dmlk_get_constants(call, &unused, sizeof unused)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1], *out_scale = &call->views[2];
    const dmlk_view *out_zero = &call->views[3];
    if (!is_float(in->type) || dmlk_type_bits(out->type) != 8 || out_scale->type != DMLK_FLOAT32 ||
        out_zero->type != out->type) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (dmlk_view_elements(out_scale) != 1 || dmlk_view_elements(out_zero) != 1) {
        return DMLK_BAD_PACKET;
    }
    float low, high;
    int status = range_of(in, &low, &high);
    if (status != DMLK_OK) {
        return status;
    }
    const dmlk_integers type = integers_of(out->type);
    const float least = (float)type.low, most = (float)type.high;
    const float scale = low == high ? 1 / (most - least) : (high - low) / (most - least);
    const float exact = least - low / scale;
    const float from_least = exact > least ? exact : least; /* NaN: the range is infinite */
    const uint8_t zero = (uint8_t)(int32_t)rintf(from_least < most ? from_least : most);
    DMLK_STORE((float *)out_scale->base, 0, scale);
    DMLK_STORE(out_zero->base, 0, zero);
    dmlk_view views[OPERANDS] = {*in, constant_view(in, DMLK_FLOAT32, &scale), constant_view(in, out->type, &zero), *out};
    return run_rows(views, out, false, quantize_row);
}

#define KERNEL(name, run) \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call); }
#include "functions.inc"
