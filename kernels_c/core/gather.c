#include "gather.h"

#include "parallel.h"

/* Compilers take several elements at a time where they are told that it is every second one. */
#define GATHER(type)                                                       \
    {                                                                      \
        const type *restrict in = (const type *)from;                      \
        type *restrict out = (type *)to;                                   \
        const int64_t stride = step / (int64_t)sizeof(type);               \
        for (int64_t i = 0; stride == 2 && i < count; i++) {               \
            out[i] = in[2 * i];                                            \
        }                                                                  \
        for (int64_t i = 0; stride != 2 && i < count; i++) {               \
            out[i] = in[i * stride];                                       \
        }                                                                  \
        break;                                                             \
    }

DMLK_CLONES void dmlk_gather(const uint8_t *from, int64_t step, int64_t bytes, int64_t count, uint8_t *to) {
    switch (bytes) {
    case 1: GATHER(uint8_t)
    case 2: GATHER(uint16_t)
    case 4: GATHER(uint32_t)
    default: GATHER(uint64_t)
    }
}

#define SCATTER(type)                                                      \
    {                                                                      \
        const type *restrict in = (const type *)from;                      \
        type *restrict out = (type *)to;                                   \
        const int64_t stride = step / (int64_t)sizeof(type);               \
        for (int64_t i = 0; i < count; i++) {                              \
            out[i * stride] = in[i];                                       \
        }                                                                  \
        break;                                                             \
    }

void dmlk_scatter(const uint8_t *from, int64_t bytes, int64_t count, uint8_t *to, int64_t step) {
    switch (bytes) {
    case 1: SCATTER(uint8_t)
    case 2: SCATTER(uint16_t)
    case 4: SCATTER(uint32_t)
    default: SCATTER(uint64_t)
    }
}
