/* memory.c - what the lanes of a wave do to buffers one after the other: atomic operations, counters, typed views. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "shader.h"
#include "element.h"

enum operation { ADD, AND, OR, XOR, IMIN, IMAX, UMIN, UMAX, EXCHANGE, SUBTRACT, COMPARE };

static uint64_t result_of(enum operation operation, uint64_t old, uint64_t value, uint64_t expected, uint32_t bytes) {
    const int shift = 64 - 8 * (int)bytes; /* signed numbers compare as 64 bits do when they stand at the top */
    const int64_t signed_old = (int64_t)(old << shift), signed_value = (int64_t)(value << shift);
    switch (operation) {
    case ADD: return old + value;
    case AND: return old & value;
    case OR: return old | value;
    case XOR: return old ^ value;
    case IMIN: return signed_value < signed_old ? value : old;
    case IMAX: return signed_value > signed_old ? value : old;
    case UMIN: return value < old ? value : old;
    case UMAX: return value > old ? value : old;
    case EXCHANGE: return value;
    case SUBTRACT: return old - value;
    case COMPARE: return old == expected ? value : old;
    }
    return old;
}

/* Where a number is not aligned, which D3D12 leaves open: one after the other of all that are not. */
static uint64_t change_apart(enum operation operation, uint8_t *place, uint64_t value, uint64_t expected,
                             uint32_t bytes) {
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set_explicit(&taken, memory_order_acquire)) {
    }
    uint64_t old = 0;
    memcpy(&old, place, bytes); /* little endian */
    const uint64_t next = result_of(operation, old, value, expected, bytes);
    memcpy(place, &next, bytes);
    atomic_flag_clear_explicit(&taken, memory_order_release);
    return old;
}

/* An operation on a number of 4 or 8 bytes; returns the old one.  Other threads of the pool may access it, too. */
static uint64_t change(enum operation operation, uint8_t *place, uint64_t value, uint64_t expected, uint32_t bytes) {
    if ((uintptr_t)place % bytes != 0) {
        return change_apart(operation, place, value, expected, bytes);
    }
    if (bytes == 4) {
        uint32_t *const at = (uint32_t *)(void *)place;
        uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(at, &old, (uint32_t)result_of(operation, old, value, expected, 4), true,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
        return old;
    }
    uint64_t *const at = (uint64_t *)(void *)place;
    uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, result_of(operation, old, value, expected, 8), true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
}

void dmlk_shader_atomic(uint32_t operation, uint8_t *const *places, const uint64_t *values, const uint64_t *expected,
                        uint64_t *old, uint64_t mask, uint32_t bytes, uint32_t lanes) {
    for (uint32_t lane = 0; lane < lanes; lane++) {
        const bool active = (mask >> lane & 1) != 0 && places[lane] != NULL;
        old[lane] = active ? change((enum operation)operation, places[lane], values[lane], expected[lane], bytes) : 0;
    }
}

void dmlk_shader_count(const dmlk_shader_view *const *views, int32_t step, uint64_t mask, uint32_t *out, uint32_t lanes) {
    for (uint32_t lane = 0; lane < lanes; lane++) {
        out[lane] = 0;
        if ((mask >> lane & 1) != 0 && views[lane]->counter != NULL) {
            uint32_t *const at = (uint32_t *)(void *)views[lane]->counter;
            const uint32_t before = __atomic_fetch_add(at, (uint32_t)step, __ATOMIC_RELAXED);
            out[lane] = step < 0 ? before + (uint32_t)step : before; /* what a decrement returns is the new one */
        }
    }
}

/* --- typed views: DXGI_FORMATs of buffers --- */

enum component { FLOATS, UNORM, SNORM, UINTS, SINTS };

typedef struct format {
    uint8_t components, bits;
    enum component kind;
} format;

/* By DXGI_FORMAT; formats that are not of equal components are 0: their views cannot be made. */
static const format formats[] = {
    [2] = {4, 32, FLOATS}, [3] = {4, 32, UINTS},   [4] = {4, 32, SINTS},   [6] = {3, 32, FLOATS}, [7] = {3, 32, UINTS},
    [8] = {3, 32, SINTS},  [10] = {4, 16, FLOATS}, [11] = {4, 16, UNORM},  [12] = {4, 16, UINTS}, [13] = {4, 16, SNORM},
    [14] = {4, 16, SINTS}, [16] = {2, 32, FLOATS}, [17] = {2, 32, UINTS},  [18] = {2, 32, SINTS}, [28] = {4, 8, UNORM},
    [30] = {4, 8, UINTS},  [31] = {4, 8, SNORM},   [32] = {4, 8, SINTS},   [34] = {2, 16, FLOATS}, [35] = {2, 16, UNORM},
    [36] = {2, 16, UINTS}, [37] = {2, 16, SNORM},  [38] = {2, 16, SINTS},  [41] = {1, 32, FLOATS}, [42] = {1, 32, UINTS},
    [43] = {1, 32, SINTS}, [49] = {2, 8, UNORM},   [50] = {2, 8, UINTS},   [51] = {2, 8, SNORM},  [52] = {2, 8, SINTS},
    [54] = {1, 16, FLOATS}, [56] = {1, 16, UNORM}, [57] = {1, 16, UINTS},  [58] = {1, 16, SNORM}, [59] = {1, 16, SINTS},
    [61] = {1, 8, UNORM},  [62] = {1, 8, UINTS},   [63] = {1, 8, SNORM},   [64] = {1, 8, SINTS},
};

static format format_of(const dmlk_shader_view *view) {
    return view->format < sizeof formats / sizeof *formats ? formats[view->format] : (format){0, 0, FLOATS};
}

static uint32_t load_bits(const uint8_t *place, uint32_t bits) {
    uint32_t found = 0;
    memcpy(&found, place, bits / 8); /* little endian */
    return found;
}

static int32_t sign_extended(uint32_t value, uint32_t bits) { return (int32_t)(value << (32 - bits)) >> (32 - bits); }

/* What a shader reads: a float's bits, or an integer. */
static uint32_t decoded(uint32_t value, format of) {
    switch (of.kind) {
    case FLOATS: return of.bits == 32 ? value : dmlk_float_bits(dmlk_float16_to_float((uint16_t)value));
    case UNORM: return dmlk_float_bits((float)value / (float)((UINT32_C(1) << of.bits) - 1));
    case SNORM: {
        const float scaled = (float)sign_extended(value, of.bits) / (float)((UINT32_C(1) << (of.bits - 1)) - 1);
        return dmlk_float_bits(scaled < -1 ? -1 : scaled); /* the least number is -1, too */
    }
    case UINTS: return value;
    case SINTS: return (uint32_t)sign_extended(value, of.bits);
    }
    return 0;
}

/* To the nearest whole number, ties to even; NaN is 0. */
static int32_t scaled(float x, float least, uint32_t most) {
    const float limited = x > 1 ? 1 : x >= least ? x : x < least ? least : 0;
    return (int32_t)rintf(limited * (float)most);
}

static uint32_t encoded(uint32_t value, format of) {
    const float x = dmlk_bits_float(value);
    const uint32_t most = of.bits == 32 ? UINT32_MAX : (UINT32_C(1) << of.bits) - 1;
    const int32_t most_signed = (int32_t)(most >> 1), number = (int32_t)value;
    switch (of.kind) {
    case FLOATS: return of.bits == 32 ? value : dmlk_float_to_float16(x);
    case UNORM: return (uint32_t)scaled(x, 0, most);
    case SNORM: return (uint32_t)scaled(x, -1, most >> 1);
    case UINTS: return value < most ? value : most; /* clamped */
    case SINTS: return (uint32_t)(number > most_signed ? most_signed : number < -most_signed - 1 ? -most_signed - 1 : number);
    }
    return 0;
}

static uint8_t *element(const dmlk_shader_view *view, uint32_t index, format of) {
    const uint64_t bytes = of.components * of.bits / 8u;
    return bytes != 0 && index < view->bytes / bytes ? view->base + bytes * index : NULL;
}

void dmlk_shader_load_typed(const dmlk_shader_view *const *views, const uint32_t *indices, uint64_t mask, uint32_t type,
                            uint32_t *out, uint32_t lanes) {
    const uint32_t one = type == DMLK_SHADER_F32 ? dmlk_float_bits(1) : 1;
    memset(out, 0, 16 * (size_t)lanes);
    for (uint32_t lane = 0; lane < lanes; lane++) {
        if ((mask >> lane & 1) == 0) {
            continue;
        }
        const format of = format_of(views[lane]);
        const uint8_t *const place = element(views[lane], indices[lane], of);
        for (uint32_t i = 0; i < of.components && place != NULL; i++) {
            out[i * lanes + lane] = decoded(load_bits(place + i * of.bits / 8, of.bits), of);
        }
        if (of.components < 4) { /* alpha is 1 also where the element is outside of the view */
            out[3 * lanes + lane] = one;
        }
    }
}

void dmlk_shader_store_typed(const dmlk_shader_view *const *views, const uint32_t *indices, uint64_t mask, uint32_t type,
                             const uint32_t *in, uint32_t lanes) {
    for (uint32_t lane = 0; lane < lanes; lane++) {
        const format of = (mask >> lane & 1) != 0 ? format_of(views[lane]) : (format){0, 0, FLOATS};
        uint8_t *const place = of.components != 0 ? element(views[lane], indices[lane], of) : NULL;
        for (uint32_t i = 0; i < of.components && place != NULL; i++) {
            const uint32_t value = in[i * lanes + lane];
            const bool is_narrow = type == DMLK_SHADER_I16 && of.kind == SINTS; /* the format says if there is a sign */
            const uint32_t bits = encoded(is_narrow ? (uint32_t)sign_extended(value, 16) : value, of);
            memcpy(place + i * of.bits / 8, &bits, of.bits / 8);
        }
    }
}
