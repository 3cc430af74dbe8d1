/* floats.c - functions of one float, computed in double and rounded once, or in the float's own type; some also have
 * integer versions. */
#include "rows.h"

/* max(0, min(x, 1)); 1 for a NaN. */
DMLK_INLINE double from_0_to_1(double x) {
    x = x < 1 ? x : 1;
    return x > 0 ? x : 0;
}
DMLK_INLINE float from_0_to_1f(float x) {
    x = x < 1 ? x : 1;
    return x > 0 ? x : 0;
}

/* min(0, x); 0 for a NaN. */
DMLK_INLINE double negative_or_0(double x) { return x <= 0 ? x : 0; }
DMLK_INLINE float negative_or_0f(float x) { return x <= 0 ? x : 0; }

#define FLOAT(name, value)                  \
    EACH_FLOAT(AS_DOUBLE, ROW1, name, value) \
    KERNEL(name, DMLK_FLOATS, 1, (), name##_FLOAT64, NULL, NULL, EACH_FLOAT(ENTRY, name))

#define DOUBLE(name, floats, integers)                            \
    EACH_FLOAT(AS_DOUBLE, ROW1, name, floats)                     \
    AS_SIGNED(INT64, int64_t, ROW1, name, integers)               \
    AS_UNSIGNED(UINT64, uint64_t, ROW1, name, integers)           \
    FAST(AS_SIGNED(INT32, int32_t, ROW1, name, integers)          \
         AS_UNSIGNED(UINT32, uint32_t, ROW1, name, integers))     \
    KERNEL(name, DMLK_NUMBERS, 1, (.no_long = true), name##_FLOAT64, name##_INT64, name##_UINT64, \
           EACH_FLOAT(ENTRY, name)                                \
           FAST(ENTRY(INT32, int32_t, name) ENTRY(UINT32, uint32_t, name)))

#define AS_SINGLE(name, value) \
    MATH_ROW(name##_singles, double, float, double, OWN_CONSTANTS(float), (float)(value))

#define MATH(name, value)            \
    EACH_FLOAT(AS_MATH, name, value) \
    AS_SINGLE(name, value)           \
    KERNEL(name, DMLK_FLOATS, 1, (.own_type = true, .promoted_singles = name##_singles), name##_FLOAT64, NULL, NULL, \
           EACH_FLOAT(ENTRY, name))

/* A kernel whose FLOAT32 rows have an easy form. */
#define EASY_FORM(name, size, most, easy_loops, value)            \
    AS_MATH(FLOAT64, double, name, value)                         \
    FAST(EASY_ROW(name##_FLOAT32, size, most, easy_loops, value)) \
    AS_SINGLE(name, value)                                        \
    KERNEL(name, DMLK_FLOATS, 1, (.own_type = true, .promoted_singles = name##_singles), name##_FLOAT64, NULL, NULL, \
           EACH_FLOAT(ENTRY, name))

#define EASY(name, size, most, easy_value, value) EASY_FORM(name, size, most, EASY_LOOP(easy_value), value)
#define PARTS(name, size, most, of_x, easy_value, value) \
    EASY_FORM(name, size, most, EASY_LOOPS_OF_PARTS(of_x, easy_value), value)

#include "functions.inc"
