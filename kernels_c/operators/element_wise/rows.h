/* rows.h - the rows of element-wise functions.  A file that defines keywords of functions.inc by these macros, and
 * then includes it, generates the kernels of their lines.  Each file has only a few keywords, as compilers are slow
 * with them.
 *
 * A line expands into rows for frequent types, and into rows for double and 64-bit integers, which are the
 * definition: other types, calls with scale and bias, and the checked build promote pieces to these. */
#ifndef DMLK_ELEMENT_WISE_ROWS_H
#define DMLK_ELEMENT_WISE_ROWS_H

#include <math.h>

#include "dmlk_float_math.h"
#include "element_wise.h"
#include "kernel.h"

/* The types of inputs and output, and the type that pieces are promoted to. */
enum dmlk_rule {
    DMLK_FLOATS,     /* one type; promoted to double */
    DMLK_NUMBERS,    /* one type; promoted to the widest type of its kind */
    DMLK_PREDICATES, /* inputs of one type, output UINT8 or UINT32; promoted to the widest types of their kinds */
    DMLK_COUNTS,     /* the same types, as bits: promoted to uint64_t */
    DMLK_BITS,       /* one type, as bits: promoted to uint64_t */
    DMLK_CHOICES,    /* the same, after a first input of UINT8 */
    DMLK_POWERS      /* two inputs of any types; the output has the type of the first */
};

struct dmlk_function_row {
    uint32_t in, out; /* types: of the last input, of the output */
    dmlk_row *row;
};

struct dmlk_function {
    const char *kernel;
    enum dmlk_rule rule;
    uint32_t inputs;
    bool own_type;   /* floats are computed in their own type, FLOAT16 by the rows for FLOAT32 */
    bool no_long;    /* 64-bit integers are not allowed */
    bool is_swapped; /* the first input is the second operand of the rows */
    enum dmlk_known_function known;
    uint32_t row_count;
    const struct dmlk_function_row *rows;
    dmlk_row *promoted[3];                             /* by enum dmlk_kind */
    dmlk_row *promoted_singles; /* for FLOAT32 and FLOAT16, which are computed in float; NULL: the row for double */
    dmlk_row *(*tuned)(uint32_t in, uint32_t out); /* may be NULL, and returns NULL if there is no better row */
};

/* Runs a function on the inputs and the output of a call. */
int dmlk_run_function(const dmlk_call *call, const struct dmlk_function *function);

/* Prepares a function to follow another kernel (see followers.h). */
bool dmlk_prepare_function(const dmlk_call *call, const struct dmlk_function *function, dmlk_follower *follower);

typedef union dmlk_scalar {
    double f;
    int64_t i;
    uint64_t u;
} dmlk_scalar;

/* The context of a row. */
struct dmlk_job {
    dmlk_element_wise k;
    const struct dmlk_function *function;
    uint32_t in[3], out;           /* types */
    enum dmlk_kind kinds[3], kind; /* the kinds that pieces of the inputs are promoted to, and the kind of the result */
    dmlk_row *promoted;            /* the row for these kinds */
    dmlk_row *row;                 /* the row for a first input of FLOAT32 after it was scaled */
    dmlk_scalar low, high;           /* bounds; a NaN is ignored ... */
    dmlk_scalar low_test, high_test; /* ... because every number passes these */
};

/* A NaN also becomes the bound; but if the bound is NaN, every number passes. */
#define LIMIT_LOW(y) ((y) >= low_test ? (y) : low)
#define LIMIT_HIGH(y) ((y) <= high_test ? (y) : high)

/* A function of math.h, or of ours, in the type of x. */
#define own(function, x) _Generic((x), float: function##f, double: function)(x)

/* Rounds to a whole number, with an instruction where the CPU has one. */
#define own_whole(function, x) \
    (dmlk_this_isa == DMLK_ISA_GENERIC ? own(dmlk_##function, x) : own(function, x))

/* The easy form, which has more fused multiply-adds, where these are instructions; elsewhere the other form. */
#define own_easy(function, x) (dmlk_this_isa == DMLK_ISA_GENERIC ? dmlk_##function##f(x) : dmlk_easy_##function##f(x))

#define own_away(x, toward_zero) _Generic((x), float: dmlk_awayf, double: dmlk_away)(x, toward_zero)
#define own_pow(x, y) _Generic((x), float: dmlk_powf, double: dmlk_pow)(x, y)

/* a b + c, without rounding the product for floats; in double, the product of two floats is exact anyway. */
#define own_fused(a, b, c) _Generic((a), float: fmaf, double: dmlk_multiply_add)(a, b, c)
DMLK_INLINE double dmlk_multiply_add(double a, double b, double c) { return a * b + c; }

/* --- types --- */

#ifdef DMLK_CHECKED
#define FAST(...) /* the checked build has only the definition */
#else
#define FAST(...) __VA_ARGS__
#endif

#define EACH_FLOAT(DO, ...) DO(FLOAT64, double, __VA_ARGS__) FAST(DO(FLOAT32, float, __VA_ARGS__))
#define EACH_SIGNED(DO, ...)      \
    DO(INT64, int64_t, __VA_ARGS__) \
    FAST(DO(INT32, int32_t, __VA_ARGS__) DO(INT16, int16_t, __VA_ARGS__) DO(INT8, int8_t, __VA_ARGS__))
#define EACH_UNSIGNED(DO, ...)       \
    DO(UINT64, uint64_t, __VA_ARGS__) \
    FAST(DO(UINT32, uint32_t, __VA_ARGS__) DO(UINT16, uint16_t, __VA_ARGS__) DO(UINT8, uint8_t, __VA_ARGS__))

/* --- rows --- */

#define PARAMETERS                                                                                      \
    const struct dmlk_job *job = context;                                                               \
    const double alpha = (double)job->k.alpha, beta = (double)job->k.beta, gamma = (double)job->k.gamma; \
    (void)alpha, (void)beta, (void)gamma;

#define LIMITS(T, member)                                                            \
    const T low = (T)job->low.member, low_test = (T)job->low_test.member;            \
    const T high = (T)job->high.member, high_test = (T)job->high_test.member;        \
    (void)low, (void)low_test, (void)high, (void)high_test;

/* alpha and beta in the type of x. */
#define OWN_CONSTANTS(T)                                     \
    const T own_alpha = (T)alpha, own_beta = (T)beta; \
    (void)own_alpha, (void)own_beta;

/* A loop whose elements do not depend on each other, whether it works in place or not. */
#define EACH_OF(n) _Pragma("GCC ivdep") for (int64_t i = 0; i < (n); i++)
#define EACH_ELEMENT EACH_OF(count)

/* A row for one input: I is its type, X the type to compute in, O the output's; `stored` is applied before a store. */
#define ROW1(name, I, X, O, constants, stored, value)                        \
    DMLK_ROW_OF_EACH_ISA(name) {                                             \
        PARAMETERS constants                                                 \
        const I *in = (const I *)at[0];                                      \
        O *out = (O *)at[1];                                                 \
        const int64_t in_stride = strides[0], out_stride = strides[1];       \
        EACH_ELEMENT {                                                       \
            const X x = (X)in[i * in_stride];                                \
            out[i * out_stride] = stored((O)(value));                        \
        }                                                                    \
    }

/* The same as dmlk_one_nan, with a mask: in short functions compilers would make a branch of the condition. */
DMLK_INLINE float dmlk_masked_nanf(float y) { return dmlk_choosef(y == y, y, dmlk_bits_float(DMLK_NAN_BITS)); }
#define MASKED_NAN(y) _Generic((y), float: dmlk_masked_nanf, double: dmlk_one_nan_double)(y)

/* ROW1 for functions that contain fmaf or sqrt: compilers consider these calls, and do not generate a loop for
 * contiguous elements by themselves. */
#define MATH_ROW(name, I, X, O, constants, value)                                \
    DMLK_ROW_OF_EACH_ISA(name) {                                                 \
        PARAMETERS constants                                                     \
        const I *in = (const I *)at[0];                                          \
        O *out = (O *)at[1];                                                     \
        const int64_t in_stride = strides[0], out_stride = strides[1];           \
        if (in_stride == 1 && out_stride == 1) {                                 \
            EACH_ELEMENT {                                                       \
                const X x = (X)in[i];                                            \
                out[i] = (O)MASKED_NAN(value);                                   \
            }                                                                    \
            return;                                                              \
        }                                                                        \
        EACH_ELEMENT {                                                           \
            const X x = (X)in[i * in_stride];                                    \
            out[i * out_stride] = (O)MASKED_NAN(value);                          \
        }                                                                        \
    }

/* MATH_ROW for floats.  Pieces in which no `size` exceeds `most` are computed by `easy_loops`, with the same results. */
#define EASY_ROW(name, size, most, easy_loops, value)                                              \
    DMLK_ROW_OF_EACH_ISA(name) {                                                                   \
        PARAMETERS OWN_CONSTANTS(float)                                                            \
        const float *in = (const float *)at[0];                                                    \
        float *out = (float *)at[1];                                                               \
        const int64_t in_stride = strides[0], out_stride = strides[1];                             \
        const bool is_packed = in_stride == 1 && out_stride == 1;                                  \
        for (int64_t rest = count, n; is_packed && rest > 0; rest -= n, in += n, out += n) {       \
            n = dmlk_min(rest, DMLK_MATH_CHUNK);                                                   \
            uint32_t largest = 0;                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const float x = in[i];                                                             \
                const uint32_t each = size;                                                        \
                largest = each > largest ? each : largest;                                         \
            }                                                                                      \
            if (largest <= most) {                                                                 \
                easy_loops                                                                         \
            } else EACH_OF(n) {                                                                    \
                const float x = in[i];                                                             \
                out[i] = MASKED_NAN(value);                                                        \
            }                                                                                      \
        }                                                                                          \
        if (!is_packed) EACH_OF(count) {                                                           \
            const float x = in[i * in_stride];                                                     \
            out[i * out_stride] = MASKED_NAN(value);                                               \
        }                                                                                          \
    }

#define EASY_LOOP(easy_value)  \
    EACH_OF(n) {               \
        const float x = in[i]; \
        out[i] = easy_value;   \
    }

/* Two loops, the first of which computes the parts of x: CPUs overlap more iterations if their chains of operations
 * are short.  (No commas outside parentheses, as they would separate arguments.) */
#define EASY_LOOPS_OF_PARTS(of_x, easy_value)                                                \
    float high[DMLK_MATH_CHUNK];                                                             \
    float low[DMLK_MATH_CHUNK];                                                              \
    EACH_OF(n) {                                                                             \
        const float x = in[i];                                                               \
        const dmlk_partsf parts = of_x;                                                      \
        high[i] = parts.high;                                                                \
        low[i] = parts.low;                                                                  \
    }                                                                                        \
    EACH_OF(n) {                                                                             \
        dmlk_partsf parts;                                                                   \
        parts.high = high[i];                                                                \
        parts.low = low[i];                                                                  \
        out[i] = easy_value;                                                                 \
    }

/* EASY_ROW for two inputs. */
#define EASY_ROW2(name, size, most, easy_value, value)                                             \
    DMLK_ROW_OF_EACH_ISA(name) {                                                                   \
        (void)context;                                                                             \
        const float *in_a = (const float *)at[0], *in_b = (const float *)at[1];                    \
        float *out = (float *)at[2];                                                               \
        const int64_t a_stride = strides[0], b_stride = strides[1], out_stride = strides[2];       \
        const bool is_packed = a_stride == 1 && b_stride == 1 && out_stride == 1;                  \
        for (int64_t rest = count, n; is_packed && rest > 0; rest -= n, in_a += n, in_b += n, out += n) { \
            n = dmlk_min(rest, DMLK_MATH_CHUNK);                                                   \
            uint32_t largest = 0;                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const float a = in_a[i], b = in_b[i];                                              \
                const uint32_t each = size;                                                        \
                largest = each > largest ? each : largest;                                         \
            }                                                                                      \
            if (largest <= most) EACH_OF(n) {                                                      \
                const float a = in_a[i], b = in_b[i];                                              \
                out[i] = easy_value;                                                               \
            }                                                                                      \
            else EACH_OF(n) {                                                                      \
                const float a = in_a[i], b = in_b[i];                                              \
                out[i] = MASKED_NAN(value);                                                        \
            }                                                                                      \
        }                                                                                          \
        if (!is_packed) EACH_OF(count) {                                                           \
            const float a = in_a[i * a_stride], b = in_b[i * b_stride];                            \
            out[i * out_stride] = MASKED_NAN(value);                                               \
        }                                                                                          \
    }

#define ROW2(name, I, X, O, constants, stored, value)                                             \
    DMLK_ROW_OF_EACH_ISA(name) {                                                                  \
        PARAMETERS constants                                                                      \
        const I *in_a = (const I *)at[0], *in_b = (const I *)at[1];                               \
        O *out = (O *)at[2];                                                                      \
        const int64_t a_stride = strides[0], b_stride = strides[1], out_stride = strides[2];      \
        EACH_ELEMENT {                                                                            \
            const X a = (X)in_a[i * a_stride], b = (X)in_b[i * b_stride];                         \
            out[i * out_stride] = stored((O)(value));                                             \
        }                                                                                         \
    }

#define AS_DOUBLE(TYPE, T, ROW, name, value) ROW(name##_##TYPE, T, double, T, , dmlk_one_nan, value)
#define AS_FLOAT(TYPE, T, ROW, name, value) \
    ROW(name##_##TYPE, T, T, T, LIMITS(T, f) OWN_CONSTANTS(T), dmlk_one_nan, value)
#define AS_MATH(TYPE, T, name, value) MATH_ROW(name##_##TYPE, T, T, T, LIMITS(T, f) OWN_CONSTANTS(T), (T)(value))
#define AS_SIGNED(TYPE, T, ROW, name, value) ROW(name##_##TYPE, T, T, T, LIMITS(T, i), , value)
#define AS_UNSIGNED(TYPE, T, ROW, name, value) ROW(name##_##TYPE, T, T, T, LIMITS(T, u), , value)

/* --- kernels --- */

#define ENTRY(TYPE, T, name) {DMLK_##TYPE, DMLK_##TYPE, name##_##TYPE},

/* The rows for bits, also for signed integers. */
#define ENTRIES_OF_BITS(name)                                           \
    EACH_UNSIGNED(ENTRY, name)                                          \
    {DMLK_INT64, DMLK_INT64, name##_UINT64},                            \
    FAST({DMLK_INT32, DMLK_INT32, name##_UINT32},                       \
         {DMLK_INT16, DMLK_INT16, name##_UINT16},                       \
         {DMLK_INT8, DMLK_INT8, name##_UINT8},)

/* What DMLK_KNOWN_<name> says of a function, behind a comma; without that macro, it is not known. */
#define DMLK_KNOWN_add , DMLK_ADD
#define DMLK_KNOWN_multiply , DMLK_MULTIPLY
#define DMLK_KNOWN_identity , DMLK_SCALE
#define DMLK_KNOWN_relu , DMLK_RELU
#define DMLK_KNOWN_threshold , DMLK_LOW
#define DMLK_KNOWN_max , DMLK_LOW
#define DMLK_KNOWN_min , DMLK_HIGH
#define DMLK_KNOWN_clip , DMLK_LOW_AND_HIGH
#define KNOWN(name) KNOWN_(DMLK_KNOWN_##name, DMLK_NOT_KNOWN, )
#define KNOWN_(...) KNOWN__(__VA_ARGS__)
#define KNOWN__(before, known, ...) known

/* `traits`: further members of the function, in parentheses. */
#define UNPACK(...) __VA_ARGS__
#define KERNEL(name, kernel_rule, input_count, traits, as_float, as_signed, as_unsigned, ...)          \
    static const struct dmlk_function_row name##_rows[] = {__VA_ARGS__};                               \
    static const struct dmlk_function name##_function = {                                              \
        .kernel = #name, .rule = kernel_rule, .inputs = input_count, .rows = name##_rows, .known = KNOWN(name), \
        .row_count = sizeof name##_rows / sizeof name##_rows[0],                                       \
        .promoted = {[DMLK_KIND_FLOAT] = as_float, [DMLK_KIND_SIGNED] = as_signed,                     \
                     [DMLK_KIND_UNSIGNED] = as_unsigned}, UNPACK traits};                              \
    int DMLK_RUN(name)(const dmlk_call *call) { return dmlk_run_function(call, &name##_function); }  \
    FAST(bool dmlk_prepare_##name(const dmlk_call *call, dmlk_follower *follower) {                    \
        return dmlk_prepare_function(call, &name##_function, follower);                                \
    })

#endif
