/* narrow.h - a double, rounded once to the type of an element in memory. */
#ifndef DMLK_NARROW_H
#define DMLK_NARROW_H

#include "element.h"

static inline float dmlk_double_to_float(double x) { return (float)x; }
static inline double dmlk_double_to_double(double x) { return x; }

/* T: uint16_t (a FLOAT16), float or double. */
#define NARROW(T, x) \
    _Generic((T){0}, uint16_t: dmlk_double_to_float16, float: dmlk_double_to_float, double: dmlk_double_to_double)(x)

#endif
