/* pieces.c - functions of numbers that are computed piece by piece, because a few numbers need much more work than
 * the others. */
#include "rows.h"
#include "divide.h"

/* `each` replaces the numbers in v, of type X, by its results; for two inputs, the numbers in v and w. */
#define ROW_OF_PIECES(name, I, X, O, each)                                             \
    DMLK_ROW_OF_EACH_ISA(name) {                                                       \
        (void)context;                                                                 \
        const I *in = (const I *)at[0];                                                \
        O *out = (O *)at[1];                                                           \
        const int64_t in_stride = strides[0], out_stride = strides[1];                 \
        X v[DMLK_MATH_CHUNK];                                                          \
        for (int64_t begin = 0; begin < count; begin += DMLK_MATH_CHUNK) {             \
            const int64_t n = dmlk_min(count - begin, DMLK_MATH_CHUNK);                \
            for (int64_t i = 0; i < n; i++) {                                          \
                v[i] = (X)in[(begin + i) * in_stride];                                 \
            }                                                                          \
            _Generic(v[0], float: each##f, double: each)(v, n);                        \
            for (int64_t i = 0; i < n; i++) {                                          \
                out[(begin + i) * out_stride] = dmlk_one_nan((O)v[i]);                 \
            }                                                                          \
        }                                                                              \
    }

#define ROW2_OF_PIECES(TYPE, T, name, each)                                            \
    DMLK_ROW_OF_EACH_ISA(name##_##TYPE) {                                              \
        (void)context;                                                                 \
        const T *in_a = (const T *)at[0], *in_b = (const T *)at[1];                    \
        T *out = (T *)at[2];                                                           \
        const int64_t a_stride = strides[0], b_stride = strides[1], out_stride = strides[2]; \
        double v[DMLK_MATH_CHUNK], w[DMLK_MATH_CHUNK];                                 \
        for (int64_t begin = 0; begin < count; begin += DMLK_MATH_CHUNK) {             \
            const int64_t n = dmlk_min(count - begin, DMLK_MATH_CHUNK);                \
            for (int64_t i = 0; i < n; i++) {                                          \
                v[i] = (double)in_a[(begin + i) * a_stride];                           \
                w[i] = (double)in_b[(begin + i) * b_stride];                           \
            }                                                                          \
            each(v, w, n);                                                             \
            for (int64_t i = 0; i < n; i++) {                                          \
                out[(begin + i) * out_stride] = dmlk_one_nan((T)v[i]);                 \
            }                                                                          \
        }                                                                              \
    }

/* Packed floats; a piece whose numbers are all easy is computed directly.  (The pointers are not passed on in an
 * array: compilers would load both as one vector, and a vector load has to wait for the two stores that wrote its
 * halves.) */
#define EASY_PIECES(name, size, most, easy_value)                                          \
    static void name##_piece(const float *in, float *out, int64_t count) {                 \
        float v[DMLK_MATH_CHUNK];                                                          \
        memcpy(v, in, (size_t)count * sizeof v[0]);                                        \
        dmlk_##name##_eachf(v, count);                                                     \
        for (int64_t i = 0; i < count; i++) {                                              \
            out[i] = dmlk_one_nan(v[i]);                                                   \
        }                                                                                  \
    }                                                                                      \
    DMLK_ROW_OF_EACH_ISA(name##_FLOAT32) {                                                 \
        const float *in = (const float *)at[0];                                            \
        float *out = (float *)at[1];                                                       \
        if (strides[0] != 1 || strides[1] != 1) {                                          \
            name##_any_FLOAT32(at, strides, count, context);                               \
            return;                                                                        \
        }                                                                                  \
        for (int64_t begin = 0, n; begin < count; begin += n) {                            \
            n = dmlk_min(count - begin, DMLK_MATH_CHUNK);                                  \
            uint32_t largest = 0;                                                          \
            for (int64_t i = 0; i < n; i++) {                                              \
                const float x = in[begin + i];                                             \
                const uint32_t each = size;                                                \
                largest = each > largest ? each : largest;                                 \
            }                                                                              \
            if (largest <= most) EACH_OF(n) {                                              \
                const float x = in[begin + i];                                             \
                out[begin + i] = easy_value;                                               \
            }                                                                              \
            else {                                                                         \
                name##_piece(in + begin, out + begin, n);                                  \
            }                                                                              \
        }                                                                                  \
    }

#define PIECES(name, each, size, most, easy_value)           \
    ROW_OF_PIECES(name##_FLOAT64, double, double, double, each) \
    FAST(ROW_OF_PIECES(name##_any_FLOAT32, float, float, float, each) EASY_PIECES(name, size, most, easy_value)) \
    ROW_OF_PIECES(name##_singles, double, float, double, each) \
    KERNEL(name, DMLK_FLOATS, 1, (.own_type = true, .promoted_singles = name##_singles), name##_FLOAT64, NULL, NULL, \
           EACH_FLOAT(ENTRY, name))

#define PIECES2(name, each, integers)            \
    EACH_FLOAT(ROW2_OF_PIECES, name, each)       \
    EACH_SIGNED(AS_SIGNED, ROW2, name, integers) \
    EACH_UNSIGNED(AS_UNSIGNED, ROW2, name, integers) \
    KERNEL(name, DMLK_NUMBERS, 2, (), name##_FLOAT64, name##_INT64, name##_UINT64, \
           EACH_FLOAT(ENTRY, name) EACH_SIGNED(ENTRY, name) EACH_UNSIGNED(ENTRY, name))

#include "functions.inc"
