/* functions.c - functions of floats that no instruction computes, by the opcodes of dx.op (DXIL.rst of
 * microsoft/DirectXShaderCompiler), computed in double and rounded once: the same bits on every CPU. */
#include <math.h>
#include <stddef.h>

#include "dmlk_math.h"
#include "element.h"
#include "shader.h"

#define LN2 0.6931471805599453
#define LOG2_E 1.4426950408889634

static double exp2_of(double x) { return dmlk_exp(x * LN2); }
static double log2_of(double x) { return dmlk_log(x) * LOG2_E; } /* of a power of two: exact once it is a float */

typedef double function(double x);

static function *const functions[] = {
    [15] = dmlk_acos, [16] = dmlk_asin, [17] = dmlk_atan, [18] = dmlk_cosh,
    [19] = dmlk_sinh, [20] = dmlk_tanh, [21] = exp2_of,   [23] = log2_of,
};

static void apply(uint32_t opcode, double *values, uint32_t lanes) {
    function *const f = opcode < sizeof functions / sizeof *functions ? functions[opcode] : NULL;
    for (uint32_t i = 0; i < lanes; i++) {
        values[i] = f == NULL ? (double)NAN : f(values[i]);
    }
}

void dmlk_shader_floats(uint32_t opcode, const float *in, float *out, uint32_t lanes) {
    double values[DMLK_MOST_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        values[i] = (double)in[i];
    }
    switch (opcode) { /* circular functions: also of numbers with more turns than digits */
    case 12: dmlk_cos_each(values, lanes); break;
    case 13: dmlk_sin_each(values, lanes); break;
    case 14: dmlk_tan_each(values, lanes); break;
    default: apply(opcode, values, lanes);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        out[i] = (float)values[i];
    }
}

void dmlk_shader_remainders(const float *a, const float *b, float *out, uint32_t lanes) {
    for (uint32_t i = 0; i < lanes; i++) {
        out[i] = fmodf(a[i], b[i]); /* exact, so it is the same everywhere */
    }
}

void dmlk_shader_double_remainders(const double *a, const double *b, double *out, uint32_t lanes) {
    for (uint32_t i = 0; i < lanes; i++) {
        out[i] = fmod(a[i], b[i]);
    }
}

float dmlk_shader_from_half(float half) { return dmlk_float16_to_float((uint16_t)dmlk_float_bits(half)); }
float dmlk_shader_to_half(float x) { return dmlk_bits_float(dmlk_float_to_float16(x)); }
float dmlk_shader_round_even(float x) { return rintf(x); }
double dmlk_shader_round_even_double(double x) { return rint(x); }
