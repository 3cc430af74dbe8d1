/* bits.c - functions of the bits of elements, whatever their type. */
#include "rows.h"
#include "bit_count.h"

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "bits_set.inc"
#include "each_type.inc"
#define bits_set(x)                                                                                          \
    _Generic((x), uint8_t: bits_set_uint8, uint16_t: bits_set_uint16, uint32_t: bits_set_uint32,             \
             uint64_t: bits_set_uint64)(x)

#define BITS_ROWS(ROW, inputs, name, value)      \
    EACH_UNSIGNED(AS_UNSIGNED, ROW, name, value) \
    KERNEL(name, DMLK_BITS, inputs, (), NULL, NULL, name##_UINT64, EACH_UNSIGNED(ENTRY, name))
#define BITS(name, value) BITS_ROWS(ROW1, 1, name, value)
#define BITS2(name, value) BITS_ROWS(ROW2, 2, name, value)

#define TO_UINT8(TYPE, T, ROW, name, value) ROW(name##_##TYPE##_UINT8, T, T, uint8_t, , , value)
#define TO_UINT32(TYPE, T, ROW, name, value) ROW(name##_##TYPE##_UINT32, T, T, uint32_t, , , value)
#define ENTRY_UINT8(TYPE, T, name) {DMLK_##TYPE, DMLK_UINT8, name##_##TYPE##_UINT8},
#define ENTRY_UINT32(TYPE, T, name) {DMLK_##TYPE, DMLK_UINT32, name##_##TYPE##_UINT32},

#define COUNT(name, value, tuned_row)                                      \
    AS_UNSIGNED(UINT64, uint64_t, ROW1, name, value)                       \
    FAST(EACH_UNSIGNED(TO_UINT8, ROW1, name, value))                       \
    FAST(EACH_UNSIGNED(TO_UINT32, ROW1, name, value))                      \
    KERNEL(name, DMLK_COUNTS, 1, (.tuned = tuned_row), NULL, NULL, name##_UINT64, \
           ENTRY(UINT64, uint64_t, name) FAST(EACH_UNSIGNED(ENTRY_UINT8, name) EACH_UNSIGNED(ENTRY_UINT32, name)))

/* A row whose first input, of type `Condition`, chooses between the other two. */
#define ROW_OF_CHOICES(name, T, Condition, value)                                                         \
    DMLK_ROW_OF_EACH_ISA(name) {                                                                          \
        (void)context;                                                                                    \
        const Condition *in = (const Condition *)at[0];                                                   \
        const T *in_a = (const T *)at[1], *in_b = (const T *)at[2];                                       \
        T *out = (T *)at[3];                                                                              \
        const int64_t in_stride = strides[0], a_stride = strides[1], b_stride = strides[2];               \
        const int64_t out_stride = strides[3];                                                            \
        EACH_ELEMENT {                                                                                    \
            const Condition condition = in[i * in_stride];                                                \
            const T a = in_a[i * a_stride], b = in_b[i * b_stride];                                       \
            out[i * out_stride] = value;                                                                  \
        }                                                                                                 \
    }
#define CHOICES_OF(TYPE, T, name, value) ROW_OF_CHOICES(name##_##TYPE, T, uint8_t, value)
#define CHOICE(name, value)                                          \
    ROW_OF_CHOICES(name##_promoted, uint64_t, uint64_t, value)       \
    FAST(EACH_UNSIGNED(CHOICES_OF, name, value))                     \
    KERNEL(name, DMLK_CHOICES, 3, (), NULL, NULL, name##_promoted,   \
           {DMLK_UNKNOWN, DMLK_UNKNOWN, name##_promoted}, FAST(EACH_UNSIGNED(ENTRY, name)))

#include "functions.inc"
