#include "gather.h"

#include <stdbool.h>
#include <stddef.h>

#include "ahead.h"
#include "cpu.h"

/* Compilers vectorize the loops with a constant stride. */
#define GATHER(type)                                                       \
    {                                                                      \
        const type *restrict in = (const type *)from;                      \
        type *restrict out = (type *)to;                                   \
        const int64_t stride = step / (int64_t)sizeof(type);               \
        for (int64_t i = 0; stride == 0 && i < count; i++) {               \
            out[i] = in[0];                                                \
        }                                                                  \
        for (int64_t i = 0; stride == 2 && i < count; i++) {               \
            out[i] = in[2 * i];                                            \
        }                                                                  \
        for (int64_t i = 0; stride != 0 && stride != 2 && i < count; i++) { \
            out[i] = in[i * stride];                                       \
        }                                                                  \
        break;                                                             \
    }

#define AHEAD 2048 /* bytes from a store to the line prefetched for later ones, which fill it only in part */
#define ROUND 8    /* elements that are stored between two prefetches */

#define STORE_APART(type, from_stride, count, to_stride)                   \
    {                                                                      \
        const type *restrict in = (const type *)from;                      \
        type *restrict out = (type *)to;                                   \
        int64_t i = 0;                                                     \
        for (; i + ROUND <= (count); i += ROUND) {                         \
            for (int64_t b = 0; b < near; b += DMLK_LINE) {                \
                __builtin_prefetch(to + i * step + AHEAD + b, 1);          \
            }                                                              \
            for (int64_t k = 0; k < ROUND; k++) {                          \
                out[(i + k) * (to_stride)] = in[(i + k) * (from_stride)];  \
            }                                                              \
        }                                                                  \
        for (; i < (count); i++) {                                         \
            out[i * (to_stride)] = in[i * (from_stride)];                  \
        }                                                                  \
        break;                                                             \
    }
#define SCATTER(type) STORE_APART(type, 1, count, step / (int64_t)sizeof(type))
#define COPY(type) STORE_APART(type, step / (int64_t)sizeof(type), elements, step / (int64_t)sizeof(type))

DMLK_EACH_ISA(gather_any_step, (const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to),
              (from, step, bytes, count, to)) {
    switch (bytes) {
    case 1: GATHER(uint8_t)
    case 2: GATHER(uint16_t)
    case 4: GATHER(uint32_t)
    default: GATHER(uint64_t)
    }
}

static void scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step) {
    const int64_t near = step <= DMLK_LINE / 2 ? ROUND * step : 0;
    switch (bytes) {
    case 1: SCATTER(uint8_t)
    case 2: SCATTER(uint16_t)
    case 4: SCATTER(uint32_t)
    default: SCATTER(uint64_t)
    }
}

static void copy(const uint8_t *from, uint8_t *to, int64_t step, int64_t bytes, int64_t count) {
    const int64_t near = step <= DMLK_LINE / 2 ? ROUND * step : 0, elements = (count * bytes + step - 1) / step;
    switch (bytes) {
    case 1: COPY(uint8_t)
    case 2: COPY(uint16_t)
    case 4: COPY(uint32_t)
    default: COPY(uint64_t)
    }
}

const struct dmlk_gather_form *dmlk_gather_form;

/* The stride in elements, if there are forms for it; otherwise 0.  (Comparisons are faster than a division.) */
static inline int64_t short_stride(int64_t step, int64_t bytes) {
    return dmlk_gather_form == NULL ? 0 : step == 2 * bytes ? 2 : step == 3 * bytes ? 3 : step == 4 * bytes ? 4 : 0;
}

void dmlk_gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to) {
    const int64_t stride = short_stride(step, bytes);
    const int64_t done = stride > 0 ? dmlk_gather_form->gather(from, stride, bytes, count, to) : 0;
    if (done < count) {
        gather_any_step(from + done * step, step, bytes, count - done, to + done * bytes);
    }
}

void dmlk_scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step) {
    const int64_t stride = short_stride(step, bytes);
    const int64_t done = stride > 0 ? dmlk_gather_form->scatter(from, stride, bytes, count, to) : 0;
    scatter(from + done * bytes, bytes, count - done, to + done * step, step);
}

void dmlk_copy_apart(const uint8_t *from, uint8_t *to, int64_t step, int64_t bytes, int64_t count) {
    const int64_t stride = short_stride(step, bytes);
    const int64_t done = stride > 0 ? dmlk_gather_form->copy(from, stride, bytes, count, to) : 0;
    copy(from + done * bytes, to + done * bytes, step, bytes, count - done);
}
