/* wave.c - operations between the lanes of a wave, by the opcodes of dx.op (DXIL.rst). */
#include <math.h>
#include <string.h>

#include "element.h"
#include "shader.h"

enum opcode {
    ACTIVE_ALL_EQUAL = 115,
    READ_LANE_AT = 117,
    ACTIVE_OP = 119,
    ACTIVE_BIT = 120,
    PREFIX_OP = 121,
    QUAD_READ_LANE_AT = 122,
    QUAD_OP = 123,
    MATCH = 165,
    MULTI_PREFIX_OP = 166,
};

enum kind { SUM, PRODUCT, MIN, MAX, AND, OR, XOR };

static double number(uint64_t bits, uint32_t type) {
    double wide;
    memcpy(&wide, &bits, 8);
    return type == DMLK_SHADER_F64   ? wide
           : type == DMLK_SHADER_F32 ? (double)dmlk_bits_float((uint32_t)bits)
                                     : (double)dmlk_float16_to_float((uint16_t)bits);
}

static uint64_t bits_of(double x, uint32_t type) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return type == DMLK_SHADER_F64   ? bits
           : type == DMLK_SHADER_F32 ? dmlk_float_bits((float)x)
                                     : dmlk_float_to_float16((float)x);
}

/* Each step is rounded to the type: what is computed in double of two numbers of it is rounded rightly. */
static uint64_t join_floats(enum kind kind, uint64_t left, uint64_t right, uint32_t type) {
    const double a = number(left, type), b = number(right, type);
    switch (kind) {
    case SUM: return bits_of(a + b, type);
    case PRODUCT: return bits_of(a * b, type);
    case MIN: return a < b || b != b ? left : right; /* the number, of a number and NaN */
    case MAX: return a > b || b != b ? left : right;
    default: return 0;
    }
}

static int bits_in(uint32_t type) {
    return type == DMLK_SHADER_I16 || type == DMLK_SHADER_U16 || type == DMLK_SHADER_F16   ? 16
           : type == DMLK_SHADER_I64 || type == DMLK_SHADER_U64 || type == DMLK_SHADER_F64 ? 64
                                                                                           : 32;
}

static uint64_t narrow(uint64_t value, uint32_t type) {
    return bits_in(type) == 64 ? value : value & ((UINT64_C(1) << bits_in(type)) - 1);
}

static bool is_less(uint64_t left, uint64_t right, uint32_t type) {
    const int shift = 64 - bits_in(type);
    return type >= DMLK_SHADER_U16 ? left < right : (int64_t)(left << shift) < (int64_t)(right << shift);
}

static uint64_t join(enum kind kind, uint64_t left, uint64_t right, uint32_t type) {
    if (type <= DMLK_SHADER_F64 && kind <= MAX) {
        return join_floats(kind, left, right, type);
    }
    switch (kind) {
    case SUM: return narrow(left + right, type);
    case PRODUCT: return narrow(left * right, type);
    case MIN: return is_less(left, right, type) ? left : right;
    case MAX: return is_less(left, right, type) ? right : left;
    case AND: return left & right;
    case OR: return left | right;
    case XOR: return left ^ right;
    }
    return 0;
}

/* What a sum or product of nothing is; for `and`, all ones. */
static uint64_t neutral(enum kind kind, uint32_t type) {
    if (kind == PRODUCT) {
        return type <= DMLK_SHADER_F64 ? bits_of(1, type) : 1;
    }
    return kind == AND ? narrow(UINT64_MAX, type) : 0;
}

static bool is_active(uint64_t mask, uint32_t lane) { return (mask >> lane & 1) != 0; }

/* Of all active lanes whose bit is set in `group`. */
static uint64_t of_all(enum kind kind, uint32_t type, const uint64_t *in, uint64_t group, uint32_t lanes) {
    uint64_t found = neutral(kind, type);
    bool first = true;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        if (is_active(group, lane)) {
            found = first && kind != SUM ? in[lane] : join(kind, found, in[lane], type); /* a sum begins with +0 */
            first = false;
        }
    }
    return found;
}

static bool equal(uint64_t left, uint64_t right, uint32_t type) {
    return type <= DMLK_SHADER_F64 ? number(left, type) == number(right, type) : left == right;
}

static uint64_t match(const uint64_t *in, uint64_t value, uint64_t mask, uint32_t type, uint32_t lanes) {
    uint64_t found = 0;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        found |= (uint64_t)(is_active(mask, lane) && equal(in[lane], value, type)) << lane;
    }
    return found;
}

static uint64_t quad(uint32_t kind, const uint64_t *in, uint32_t lane) {
    return in[lane ^ (kind == 0 ? 1 : kind == 1 ? 2 : 3)]; /* across x, y, the diagonal */
}

static uint64_t of_lane(uint32_t opcode, uint32_t kind, uint32_t type, const uint64_t *in, const uint64_t *more,
                        uint64_t mask, uint32_t lane, uint32_t lanes) {
    const uint64_t before = mask & ((UINT64_C(1) << lane) - 1);
    switch ((enum opcode)opcode) {
    case READ_LANE_AT: return more[lane] < lanes ? in[more[lane]] : 0;
    case PREFIX_OP: return of_all((enum kind)kind, type, in, before, lanes);
    case QUAD_READ_LANE_AT: return in[(lane & ~3u) | (more[lane] & 3)];
    case QUAD_OP: return quad(kind, in, lane);
    case MATCH: return match(in, in[lane], mask, type, lanes);
    case MULTI_PREFIX_OP: return of_all((enum kind)kind, type, in, before & more[lane], lanes);
    default: return 0;
    }
}

void dmlk_shader_wave(uint32_t opcode, uint32_t kind, uint32_t type, const uint64_t *in, const uint64_t *more,
                      uint64_t mask, uint64_t *out, uint32_t lanes) {
    const bool together = opcode == ACTIVE_OP || opcode == ACTIVE_BIT || opcode == ACTIVE_ALL_EQUAL;
    uint64_t all = 0;
    if (opcode == ACTIVE_ALL_EQUAL) {
        all = mask == 0 || match(in, in[__builtin_ctzll(mask)], mask, type, lanes) == mask;
    } else if (together) {
        all = of_all((enum kind)kind, type, in, mask, lanes);
    }
    for (uint32_t lane = 0; lane < lanes; lane++) {
        out[lane] = together ? all : of_lane(opcode, kind, type, in, more, mask, lane, lanes);
    }
}
