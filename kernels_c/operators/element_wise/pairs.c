/* pairs.c - functions of two floats, computed in double and rounded once; some also have versions for two integers. */
#include "rows.h"

#define FLOAT2(name, value)                  \
    EACH_FLOAT(AS_DOUBLE, ROW2, name, value) \
    KERNEL(name, DMLK_FLOATS, 2, (), name##_FLOAT64, NULL, NULL, EACH_FLOAT(ENTRY, name))

#define DOUBLE2(name, floats, integers)                            \
    EACH_FLOAT(AS_DOUBLE, ROW2, name, floats)                      \
    AS_SIGNED(INT64, int64_t, ROW2, name, integers)                \
    AS_UNSIGNED(UINT64, uint64_t, ROW2, name, integers)            \
    FAST(AS_SIGNED(INT32, int32_t, ROW2, name, integers)           \
         AS_UNSIGNED(UINT32, uint32_t, ROW2, name, integers))      \
    KERNEL(name, DMLK_NUMBERS, 2, (.no_long = true), name##_FLOAT64, name##_INT64, name##_UINT64, \
           EACH_FLOAT(ENTRY, name)                                 \
           FAST(ENTRY(INT32, int32_t, name) ENTRY(UINT32, uint32_t, name)))

/* base^exponent modulo 2^64.  For a negative exponent: 1 or -1 if the base is one of these; if the base is 0, all
 * bits are 1; otherwise 0. */
static inline int64_t whole_power(int64_t base, int64_t exponent) {
    uint64_t result = 1, square = (uint64_t)base;
    if (exponent < 0) {
        const int64_t odd = exponent & 1 ? base : 1;
        return base == 0 ? -1 : base == 1 || base == -1 ? odd : 0;
    }
    for (uint64_t rest = (uint64_t)exponent; rest != 0; rest >>= 1) {
        result *= rest & 1 ? square : 1;
        square *= square;
    }
    return (int64_t)result;
}

static void whole_powers(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    (void)strides, (void)context;
    for (int64_t i = 0; i < count; i++) {
        ((int64_t *)at[2])[i] = whole_power(((const int64_t *)at[0])[i], ((const int64_t *)at[1])[i]);
    }
}

static void exact_powers(uint8_t *const *at, const int64_t *strides, int64_t count, const void *context) {
    (void)strides, (void)context;
    for (int64_t i = 0; i < count; i++) {
        ((double *)at[2])[i] = dmlk_exact_pow(((const double *)at[0])[i], ((const double *)at[1])[i]);
    }
}

#define POWER(name, size, most, easy_value, value)                           \
    AS_DOUBLE(FLOAT64, double, ROW2, name, value)                            \
    FAST(EASY_ROW2(name##_FLOAT32, size, most, easy_value, value))           \
    ROW2(name##_singles, double, float, double, , dmlk_one_nan, value)       \
    KERNEL(name, DMLK_POWERS, 2, (.own_type = true, .no_long = true, .promoted_singles = name##_singles), \
           name##_FLOAT64, whole_powers, exact_powers, EACH_FLOAT(ENTRY, name))

#include "functions.inc"
