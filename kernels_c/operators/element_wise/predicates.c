/* predicates.c - functions of numbers that give 0 or 1. */
#include "rows.h"

#define TO_UINT8(TYPE, T, ROW, name, member, value) \
    ROW(name##_##TYPE##_UINT8, T, T, uint8_t, LIMITS(T, member), , value)
#define TO_UINT32(TYPE, T, ROW, name, member, value) \
    ROW(name##_##TYPE##_UINT32, T, T, uint32_t, LIMITS(T, member), , value)
#define ENTRY_UINT8(TYPE, T, name) {DMLK_##TYPE, DMLK_UINT8, name##_##TYPE##_UINT8},
#define ENTRY_UINT32(TYPE, T, name) {DMLK_##TYPE, DMLK_UINT32, name##_##TYPE##_UINT32},

#define PROMOTED(ROW, name, kind, T, member, value) ROW(name##_##kind, T, T, uint64_t, LIMITS(T, member), , value)

#define PREDICATE(name, value)                                      \
    PROMOTED(ROW1, name, floats, double, f, value)                  \
    FAST(TO_UINT8(FLOAT32, float, ROW1, name, f, value)             \
         TO_UINT32(FLOAT32, float, ROW1, name, f, value))           \
    KERNEL(name, DMLK_PREDICATES, 1, (.own_type = true, .no_long = true), name##_floats, NULL, NULL, \
           {DMLK_UNKNOWN, DMLK_UNKNOWN, name##_floats},             \
           FAST(ENTRY_UINT8(FLOAT32, float, name) ENTRY_UINT32(FLOAT32, float, name)))

#define ENTRIES2(name)                                                     \
    {DMLK_UNKNOWN, DMLK_UNKNOWN, name##_floats},                           \
    FAST(ENTRY_UINT8(FLOAT32, float, name) ENTRY_UINT32(FLOAT32, float, name) \
         EACH_SIGNED(ENTRY_UINT8, name) EACH_SIGNED(ENTRY_UINT32, name)       \
         EACH_UNSIGNED(ENTRY_UINT8, name) EACH_UNSIGNED(ENTRY_UINT32, name))

#define PREDICATE2(name, value)                                                        \
    PROMOTED(ROW2, name, floats, double, f, value)                                     \
    PROMOTED(ROW2, name, signed, int64_t, i, value)                                    \
    PROMOTED(ROW2, name, unsigned, uint64_t, u, value)                                 \
    FAST(TO_UINT8(FLOAT32, float, ROW2, name, f, value)                                \
         TO_UINT32(FLOAT32, float, ROW2, name, f, value)                               \
         EACH_SIGNED(TO_UINT8, ROW2, name, i, value)                                   \
         EACH_SIGNED(TO_UINT32, ROW2, name, i, value)                                  \
         EACH_UNSIGNED(TO_UINT8, ROW2, name, u, value)                                 \
         EACH_UNSIGNED(TO_UINT32, ROW2, name, u, value))                               \
    KERNEL(name, DMLK_PREDICATES, 2, (.own_type = true), name##_floats, name##_signed, name##_unsigned, ENTRIES2(name))

#define SWAPPED2(name, other)                                                          \
    KERNEL(name, DMLK_PREDICATES, 2, (.own_type = true, .is_swapped = true), other##_floats, other##_signed, other##_unsigned, \
           ENTRIES2(other))

#include "functions.inc"
