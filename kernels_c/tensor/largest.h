/* largest.h - the largest of contiguous FLOAT32s, or the smallest, by one instruction for each vector. */
#ifndef DMLK_LARGEST_H
#define DMLK_LARGEST_H

#include "element.h"

#define DMLK_LARGEST_LANES 64 /* as one comparison takes several cycles */

/* Of `first` and n floats, NaNs ignored; of two zeros any.  `wins` is > for the largest, < for the smallest. */
#define DMLK_BEST_FLOAT(name, wins)                                                                       \
    static inline __attribute__((always_inline)) float name(float first, const float *x, int64_t n) {     \
        float lanes[DMLK_LARGEST_LANES];                                                                  \
        for (int lane = 0; lane < DMLK_LARGEST_LANES; lane++) {                                           \
            lanes[lane] = first;                                                                          \
        }                                                                                                 \
        /* The last ones overlap with those before. */                                                    \
        for (int64_t i = 0; n >= DMLK_LARGEST_LANES && i < n; i += DMLK_LARGEST_LANES) {                  \
            const float *from = x + (i < n - DMLK_LARGEST_LANES ? i : n - DMLK_LARGEST_LANES);            \
            for (int lane = 0; lane < DMLK_LARGEST_LANES; lane++) {                                       \
                lanes[lane] = from[lane] wins lanes[lane] ? from[lane] : lanes[lane];                     \
            }                                                                                             \
        }                                                                                                 \
        for (int64_t i = 0; n < DMLK_LARGEST_LANES && i < n; i++) {                                       \
            lanes[0] = x[i] wins lanes[0] ? x[i] : lanes[0];                                              \
        }                                                                                                 \
        DMLK_HALVE(32, wins)                                                                              \
        DMLK_HALVE(16, wins)                                                                              \
        DMLK_HALVE(8, wins)                                                                               \
        DMLK_HALVE(4, wins)                                                                               \
        DMLK_HALVE(2, wins)                                                                               \
        DMLK_HALVE(1, wins)                                                                               \
        return lanes[0];                                                                                  \
    }
#define DMLK_HALVE(half, wins)                                                                            \
    for (int lane = 0; lane < (half); lane++) {                                                           \
        lanes[lane] = lanes[lane] wins lanes[lane + (half)] ? lanes[lane] : lanes[lane + (half)];         \
    }

#define DMLK_LARGEST_STRIP 32   /* columns whose largest is kept in registers */
#define DMLK_LARGEST_TOGETHER 8 /* rows; more at a time would leave the order of memory */

/* Replaces best[i] by the largest, or smallest, of it and number i of each row; rows are `step` numbers apart.  CPUs fetch
 * rows that follow each other by themselves; others are taken in strips, and the next ones are fetched. */
#define DMLK_BEST_FLOATS(name, wins)                                                                      \
    static inline __attribute__((always_inline)) void name(float *restrict best, const float *restrict x, int64_t rows, \
                                                           int64_t step, int64_t count) {                 \
        const int64_t whole = step == count ? 0 : count - count % DMLK_LARGEST_STRIP;                     \
        for (int64_t first = 0; whole > 0 && first < rows; first += DMLK_LARGEST_TOGETHER) {              \
            const int64_t end = first + DMLK_LARGEST_TOGETHER < rows ? first + DMLK_LARGEST_TOGETHER : rows; \
            for (int64_t i = 0; i < whole; i += DMLK_LARGEST_STRIP) {                                     \
                float strip[DMLK_LARGEST_STRIP];                                                          \
                memcpy(strip, best + i, sizeof strip);                                                    \
                for (int64_t row = first; row < end; row++) {                                             \
                    const float *from = x + row * step + i, *next = from + DMLK_LARGEST_TOGETHER * step;  \
                    __builtin_prefetch(next);                                                             \
                    __builtin_prefetch(next + DMLK_LARGEST_STRIP / 2);                                    \
                    for (int lane = 0; lane < DMLK_LARGEST_STRIP; lane++) {                               \
                        strip[lane] = from[lane] wins strip[lane] ? from[lane] : strip[lane];             \
                    }                                                                                     \
                }                                                                                         \
                memcpy(best + i, strip, sizeof strip);                                                    \
            }                                                                                             \
        }                                                                                                 \
        for (int64_t row = 0; row < rows && whole < count; row++) {                                       \
            for (int64_t i = whole; i < count; i++) {                                                     \
                best[i] = x[row * step + i] wins best[i] ? x[row * step + i] : best[i];                   \
            }                                                                                             \
        }                                                                                                 \
    }

/* Inlined, so that they use the instructions of their callers. */
DMLK_BEST_FLOAT(dmlk_largest_float, >)
DMLK_BEST_FLOAT(dmlk_smallest_float, <)
DMLK_BEST_FLOATS(dmlk_largest_floats, >)
DMLK_BEST_FLOATS(dmlk_smallest_floats, <)
#undef DMLK_BEST_FLOAT
#undef DMLK_BEST_FLOATS
#undef DMLK_HALVE

#endif
