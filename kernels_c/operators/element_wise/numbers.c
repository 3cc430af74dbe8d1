/* numbers.c - functions of numbers of any type, computed in that type. */
#include "rows.h"
#include "divide.h"

/* A number wins over a NaN, and +0 is larger than -0. */
static inline double larger_double(double a, double b) {
    const double y = a == b ? dmlk_bits_double(dmlk_double_bits(a) & dmlk_double_bits(b)) : a > b ? a : b;
    return b != b ? a : y;
}
static inline double smaller_double(double a, double b) {
    const double y = a == b ? dmlk_bits_double(dmlk_double_bits(a) | dmlk_double_bits(b)) : a < b ? a : b;
    return b != b ? a : y;
}
/* The same for FLOAT32, with the instructions for maximum and minimum, which return the second operand if one is NaN
 * or both are zeros. */
static inline float larger_float(float a, float b) {
    const float first = a > b ? a : b, second = b > a ? b : a;
    const float y = dmlk_choosef(b == b, dmlk_bits_float(dmlk_float_bits(first) & dmlk_float_bits(second)), second);
    return dmlk_choosef(a == a, y, first);
}
static inline float smaller_float(float a, float b) {
    const float first = a < b ? a : b, second = b < a ? b : a;
    const float y = dmlk_choosef(b == b, dmlk_bits_float(dmlk_float_bits(first) | dmlk_float_bits(second)), second);
    return dmlk_choosef(a == a, y, first);
}
#define larger(a, b) _Generic((a), float: larger_float, double: larger_double)(a, b)
#define smaller(a, b) _Generic((a), float: smaller_float, double: smaller_double)(a, b)

#define EACH_NUMBER(ROW, name, floats, integers) \
    EACH_FLOAT(AS_FLOAT, ROW, name, floats)      \
    EACH_SIGNED(AS_SIGNED, ROW, name, integers)  \
    EACH_UNSIGNED(AS_UNSIGNED, ROW, name, integers)
#define NUMBERS(name, inputs)                                                                                    \
    KERNEL(name, DMLK_NUMBERS, inputs, (.own_type = true), name##_FLOAT64, name##_INT64, name##_UINT64,          \
           EACH_FLOAT(ENTRY, name) EACH_SIGNED(ENTRY, name) EACH_UNSIGNED(ENTRY, name))

#define EXACT(name, value)           \
    EACH_FLOAT(AS_MATH, name, value) \
    KERNEL(name, DMLK_FLOATS, 1, (.own_type = true), name##_FLOAT64, NULL, NULL, EACH_FLOAT(ENTRY, name))

#define NUMBER(name, floats, integers) EACH_NUMBER(ROW1, name, floats, integers) NUMBERS(name, 1)
#define NUMBER2(name, floats, integers) EACH_NUMBER(ROW2, name, floats, integers) NUMBERS(name, 2)

#define WRAP2(name, floats, integers)                                                                    \
    EACH_FLOAT(AS_FLOAT, ROW2, name, floats)                                                             \
    EACH_UNSIGNED(AS_UNSIGNED, ROW2, name, integers)                                                     \
    KERNEL(name, DMLK_NUMBERS, 2, (.own_type = true), name##_FLOAT64, name##_UINT64, name##_UINT64,      \
           EACH_FLOAT(ENTRY, name) ENTRIES_OF_BITS(name))

#define SIGNED_ROWS(ROW, inputs, name, floats, integers)                                                 \
    EACH_FLOAT(AS_FLOAT, ROW, name, floats)                                                              \
    EACH_SIGNED(AS_SIGNED, ROW, name, integers)                                                          \
    KERNEL(name, DMLK_NUMBERS, inputs, (.own_type = true), name##_FLOAT64, name##_INT64, name##_INT64,   \
           EACH_FLOAT(ENTRY, name) EACH_SIGNED(ENTRY, name))
#define SIGNED(name, floats, integers) SIGNED_ROWS(ROW1, 1, name, floats, integers)
#define SIGNED2(name, floats, integers) SIGNED_ROWS(ROW2, 2, name, floats, integers)

#include "functions.inc"
