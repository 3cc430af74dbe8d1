/* floats.c - functions of one number, computed in double and rounded once, or in its own type. */
#include "rows.h"

/* A number wins over a NaN. */
DMLK_INLINE double max2(double a, double b) { return a > b || b != b ? a : b; }
DMLK_INLINE double min2(double a, double b) { return a < b || b != b ? a : b; }

/* log(1 + exp(x)) without overflow. */
DMLK_INLINE double softplus(double x) { return dmlk_log1p(dmlk_exp(-fabs(x))) + (x > 0 ? x : x < 0 ? 0 : x); }

#define FLOAT(name, value)                  \
    EACH_FLOAT(AS_DOUBLE, ROW1, name, value) \
    KERNEL(name, DMLK_FLOATS, 1, (), name##_FLOAT64, NULL, NULL, EACH_FLOAT(ENTRY, name))

#define AS_SINGLE(name, value) ROW1(name##_singles, double, float, double, , dmlk_one_nan, value)

#define MATH(name, value)                   \
    EACH_FLOAT(AS_FLOAT, ROW1, name, value) \
    AS_SINGLE(name, value)                  \
    KERNEL(name, DMLK_FLOATS, 1, (.own_type = true, .promoted_singles = name##_singles), name##_FLOAT64, NULL, NULL, \
           EACH_FLOAT(ENTRY, name))

#include "functions.inc"
