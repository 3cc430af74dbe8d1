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

enum { MOST_COMPONENTS = 4 };

/* Components from the lowest bit on, and the channel (R, G, B, A) of each; `bits` 0: none.  None lies across two words. */
typedef struct format {
    uint8_t bits[MOST_COMPONENTS];
    enum component kind;
    uint8_t channels[MOST_COMPONENTS];
} format;

#define RGBA {0, 1, 2, 3}
#define BGRA {2, 1, 0, 3}

/* By DXGI_FORMAT: those of dmlemu_hw.formats that have a type. */
static const format formats[] = {
    [2] = {{32, 32, 32, 32}, FLOATS, RGBA},
    [3] = {{32, 32, 32, 32}, UINTS, RGBA},
    [4] = {{32, 32, 32, 32}, SINTS, RGBA},
    [6] = {{32, 32, 32}, FLOATS, RGBA},
    [7] = {{32, 32, 32}, UINTS, RGBA},
    [8] = {{32, 32, 32}, SINTS, RGBA},
    [10] = {{16, 16, 16, 16}, FLOATS, RGBA},
    [11] = {{16, 16, 16, 16}, UNORM, RGBA},
    [12] = {{16, 16, 16, 16}, UINTS, RGBA},
    [13] = {{16, 16, 16, 16}, SNORM, RGBA},
    [14] = {{16, 16, 16, 16}, SINTS, RGBA},
    [16] = {{32, 32}, FLOATS, RGBA},
    [17] = {{32, 32}, UINTS, RGBA},
    [18] = {{32, 32}, SINTS, RGBA},
    [24] = {{10, 10, 10, 2}, UNORM, RGBA},
    [25] = {{10, 10, 10, 2}, UINTS, RGBA},
    [26] = {{11, 11, 10}, FLOATS, RGBA},
    [28] = {{8, 8, 8, 8}, UNORM, RGBA},
    [30] = {{8, 8, 8, 8}, UINTS, RGBA},
    [31] = {{8, 8, 8, 8}, SNORM, RGBA},
    [32] = {{8, 8, 8, 8}, SINTS, RGBA},
    [34] = {{16, 16}, FLOATS, RGBA},
    [35] = {{16, 16}, UNORM, RGBA},
    [36] = {{16, 16}, UINTS, RGBA},
    [37] = {{16, 16}, SNORM, RGBA},
    [38] = {{16, 16}, SINTS, RGBA},
    [41] = {{32}, FLOATS, RGBA},
    [42] = {{32}, UINTS, RGBA},
    [43] = {{32}, SINTS, RGBA},
    [49] = {{8, 8}, UNORM, RGBA},
    [50] = {{8, 8}, UINTS, RGBA},
    [51] = {{8, 8}, SNORM, RGBA},
    [52] = {{8, 8}, SINTS, RGBA},
    [54] = {{16}, FLOATS, RGBA},
    [56] = {{16}, UNORM, RGBA},
    [57] = {{16}, UINTS, RGBA},
    [58] = {{16}, SNORM, RGBA},
    [59] = {{16}, SINTS, RGBA},
    [61] = {{8}, UNORM, RGBA},
    [62] = {{8}, UINTS, RGBA},
    [63] = {{8}, SNORM, RGBA},
    [64] = {{8}, SINTS, RGBA},
    [65] = {{8}, UNORM, {3}},
    [85] = {{5, 6, 5}, UNORM, BGRA},
    [86] = {{5, 5, 5, 1}, UNORM, BGRA},
    [87] = {{8, 8, 8, 8}, UNORM, BGRA},
    [115] = {{4, 4, 4, 4}, UNORM, BGRA},
    [191] = {{4, 4, 4, 4}, UNORM, {3, 2, 1, 0}},
};

static format format_of(const dmlk_shader_view *view) {
    return view->format < sizeof formats / sizeof *formats ? formats[view->format] : (format){.kind = FLOATS};
}

static uint32_t bytes_of(format of) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < MOST_COMPONENTS; i++) {
        bits += of.bits[i];
    }
    return bits / 8;
}

static bool has_alpha(format of) {
    bool found = false;
    for (uint32_t i = 0; i < MOST_COMPONENTS && of.bits[i] != 0; i++) {
        found = found || of.channels[i] == 3;
    }
    return found;
}

static int32_t sign_extended(uint32_t value, uint32_t bits) { return (int32_t)(value << (32 - bits)) >> (32 - bits); }

/* What a shader reads: a float's bits, or an integer.  Floats of 10 and 11 bits are halves without a sign. */
static uint32_t decoded(uint32_t value, enum component kind, uint32_t bits) {
    switch (kind) {
    case FLOATS:
        value = bits < 16 ? value << (15 - bits) : value;
        return bits == 32 ? value : dmlk_float_bits(dmlk_float16_to_float((uint16_t)value));
    case UNORM: return dmlk_float_bits((float)value / (float)((UINT32_C(1) << bits) - 1));
    case SNORM: {
        const float scaled = (float)sign_extended(value, bits) / (float)((UINT32_C(1) << (bits - 1)) - 1);
        return dmlk_float_bits(scaled < -1 ? -1 : scaled); /* the least number is -1, too */
    }
    case UINTS: return value;
    case SINTS: return (uint32_t)sign_extended(value, bits);
    }
    return 0;
}

/* To the nearest whole number, ties to even; NaN is 0. */
static int32_t scaled(float x, float least, uint32_t most) {
    const float limited = x > 1 ? 1 : x >= least ? x : x < least ? least : 0;
    return (int32_t)rintf(limited * (float)most);
}

/* To 10 or 11 bits, towards 0: negative numbers are 0, and what is too large is the largest finite number. */
static uint32_t small_float(float x, uint32_t bits) {
    const int mantissa = (int)bits - 5;
    const uint32_t infinite = UINT32_C(31) << mantissa;
    if (isnan(x)) {
        return infinite | UINT32_C(1) << (mantissa - 1);
    }
    if (x <= 0) {
        return 0;
    }
    if (isinf(x)) {
        return infinite;
    }
    if (x >= 65536) {
        return infinite - 1;
    }
    const int exponent = x < 0x1p-14f ? -14 : ilogbf(x);
    const uint32_t steps = (uint32_t)ldexpf(x, mantissa - exponent); /* with the implicit bit */
    return ((uint32_t)(exponent + 14) << mantissa) + steps;
}

static uint32_t encoded(uint32_t value, enum component kind, uint32_t bits) {
    const float x = dmlk_bits_float(value);
    const uint32_t most = UINT32_MAX >> (32 - bits);
    const int32_t most_signed = (int32_t)(most >> 1), number = (int32_t)value;
    switch (kind) {
    case FLOATS: return bits == 32 ? value : bits == 16 ? dmlk_float_to_float16(x) : small_float(x, bits);
    case UNORM: return (uint32_t)scaled(x, 0, most);
    case SNORM: return (uint32_t)scaled(x, -1, most >> 1);
    case UINTS: return value < most ? value : most; /* clamped */
    case SINTS: return (uint32_t)(number > most_signed ? most_signed : number < -most_signed - 1 ? -most_signed - 1 : number);
    }
    return 0;
}

static uint8_t *element(const dmlk_shader_view *view, uint32_t index, uint64_t bytes) {
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
        const uint32_t bytes = bytes_of(of);
        const uint8_t *const place = element(views[lane], indices[lane], bytes);
        uint32_t words[MOST_COMPONENTS] = {0}, at = 0;
        if (place != NULL) {
            memcpy(words, place, bytes); /* little endian */
        }
        for (uint32_t i = 0; i < MOST_COMPONENTS && of.bits[i] != 0 && place != NULL; at += of.bits[i++]) {
            const uint32_t value = words[at / 32] >> at % 32 & UINT32_MAX >> (32 - of.bits[i]);
            out[of.channels[i] * lanes + lane] = decoded(value, of.kind, of.bits[i]);
        }
        if (!has_alpha(of)) { /* alpha is 1 also where the element is outside of the view */
            out[3 * lanes + lane] = one;
        }
    }
}

void dmlk_shader_store_typed(const dmlk_shader_view *const *views, const uint32_t *indices, uint64_t mask, uint32_t type,
                             const uint32_t *in, uint32_t lanes) {
    for (uint32_t lane = 0; lane < lanes; lane++) {
        if ((mask >> lane & 1) == 0) {
            continue;
        }
        const format of = format_of(views[lane]);
        const uint32_t bytes = bytes_of(of);
        uint8_t *const place = element(views[lane], indices[lane], bytes);
        uint32_t words[MOST_COMPONENTS] = {0}, at = 0;
        for (uint32_t i = 0; i < MOST_COMPONENTS && of.bits[i] != 0; at += of.bits[i++]) {
            const uint32_t value = in[of.channels[i] * lanes + lane];
            const bool is_narrow = type == DMLK_SHADER_I16 && of.kind == SINTS; /* the format says if there is a sign */
            const uint32_t number = is_narrow ? (uint32_t)sign_extended(value, 16) : value;
            const uint32_t field = encoded(number, of.kind, of.bits[i]) & UINT32_MAX >> (32 - of.bits[i]);
            words[at / 32] |= field << at % 32;
        }
        if (place != NULL) {
            memcpy(place, words, bytes);
        }
    }
}
