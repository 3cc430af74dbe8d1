#include "nonzero_words.h"

static uint64_t find(const uint8_t *at, int64_t bytes, uint64_t keep) {
    uint64_t word = 0;
#define EACH(type)                                                      \
    for (int i = 0; i < DMLK_NONZERO_WORD; i++) {                                    \
        type x;                                                         \
        memcpy(&x, at + i * (int64_t)sizeof x, sizeof x);               \
        word |= (uint64_t)((x & (type)keep) != 0) << i;                 \
    }                                                                   \
    break
    switch (bytes) {
    case 1: EACH(uint8_t);
    case 2: EACH(uint16_t);
    case 4: EACH(uint32_t);
    default: EACH(uint64_t);
    }
#undef EACH
    return word;
}

static uint32_t *spread(uint64_t word, uint32_t base, uint32_t *to) {
    for (; word != 0; word &= word - 1) {
        *to++ = base + (uint32_t)__builtin_ctzll(word);
    }
    return to;
}

DMLK_NONZERO_FORM(generic, find, spread, divide, no_fours);
