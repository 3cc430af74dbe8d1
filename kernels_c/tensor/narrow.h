/* narrow.h - a double, rounded once to the type of an element in memory. */
#ifndef DMLK_NARROW_H
#define DMLK_NARROW_H

#include "element.h"

static inline float dmlk_double_to_float(double x) { return (float)x; }
static inline double dmlk_double_to_double(double x) { return x; }

/* T: uint16_t (a FLOAT16), float or double. */
#define NARROW(T, x) \
    _Generic((T){0}, uint16_t: dmlk_double_to_float16, float: dmlk_double_to_float, double: dmlk_double_to_double)(x)

/* The same, but every NaN becomes DMLK_NAN_BITS (see element.h); in floats after rounding, when they take half as
 * many vectors. */
static inline uint16_t dmlk_sum_to_float16(double x) { return dmlk_double_to_float16(dmlk_one_nan_double(x)); }
static inline float dmlk_sum_to_float(double x) { return dmlk_one_nan_float((float)x); }
#define NARROW_SUM(T, x) \
    _Generic((T){0}, uint16_t: dmlk_sum_to_float16, float: dmlk_sum_to_float, double: dmlk_one_nan_double)(x)

#endif
