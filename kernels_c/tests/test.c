#include "test.h"

int test_failures = 0;

static uint64_t state = 88172645463325252u;

void random_seed(uint64_t seed) { state = (seed + 1) * 0x9e3779b97f4a7c15u | 1; }

uint64_t random_bits(void) { /* xorshift */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

int64_t random_between(int64_t low, int64_t high) {
    return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1));
}
