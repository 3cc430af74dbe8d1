#include "sums.h"

#include "cpu.h"

#define LANES DMLK_SUM_LANES

/* Compilers do not reliably vectorize single lanes.  Chains of additions are latency-bound: wider ones would not be
 * faster. */
typedef double pair __attribute__((vector_size(2 * sizeof(double)), aligned(sizeof(double))));

static inline double combine(bool is_product, double a, double b) { return is_product ? a * b : a + b; }

void dmlk_sums_start(dmlk_sums *sums, bool is_product, int64_t count, int64_t terms) {
    sums->is_product = is_product;
    sums->count = count;
    sums->lanes = terms < 4 * LANES ? 1 : LANES;
    for (int64_t lane = 0; lane < sums->lanes; lane++) {
        for (int64_t i = 0; i < count; i++) {
            sums->lane[lane][i] = is_product ? 1 : 0;
        }
    }
}

static inline __attribute__((always_inline)) void along(bool is_product, int64_t lanes, dmlk_sums *sums, int64_t sum,
                                                        const double *x, int64_t n, int64_t index) {
    int64_t i = 0;
    if (lanes == LANES && n >= 2 * LANES) {
        for (; (index + i) % LANES != 0; i++) {
            double *v = &sums->lane[(index + i) % LANES][sum];
            *v = combine(is_product, *v, x[i]);
        }
        pair v[LANES / 2];
        for (int lane = 0; lane < LANES; lane++) {
            v[lane / 2][lane % 2] = sums->lane[lane][sum];
        }
        for (; i + LANES <= n; i += LANES) {
#pragma GCC unroll 4
            for (int k = 0; k < LANES / 2; k++) {
                const pair next = *(const pair *)(x + i + 2 * k);
                v[k] = is_product ? v[k] * next : v[k] + next;
            }
        }
        for (int lane = 0; lane < LANES; lane++) {
            sums->lane[lane][sum] = v[lane / 2][lane % 2];
        }
    }
    for (; i < n; i++) {
        double *v = &sums->lane[(index + i) % lanes][sum];
        *v = combine(is_product, *v, x[i]);
    }
}

DMLK_EACH_ISA(along_each, (dmlk_sums *sums, int64_t sum, const double *x, int64_t n, int64_t index),
              (sums, sum, x, n, index)) {
    if (sums->is_product) {
        along(true, sums->lanes, sums, sum, x, n, index);
    } else {
        along(false, sums->lanes, sums, sum, x, n, index);
    }
}

DMLK_EACH_ISA(combine_each, (bool is_product, double *restrict v, const double *restrict x, int64_t n),
              (is_product, v, x, n)) {
    for (int64_t i = 0; i < n; i++) {
        v[i] = combine(is_product, v[i], x[i]);
    }
}

void dmlk_sums_along(dmlk_sums *sums, int64_t sum, const double *x, int64_t n, int64_t index) {
    along_each(sums, sum, x, n, index);
}

void dmlk_sums_across(dmlk_sums *sums, const double *x, int64_t index) {
    combine_each(sums->is_product, sums->lane[index % sums->lanes], x, sums->count);
}

void dmlk_sums_combine(bool is_product, double *results, const double *more, int64_t count) {
    combine_each(is_product, results, more, count);
}

void dmlk_sums_finish(const dmlk_sums *sums, double *results) {
    memcpy(results, sums->lane[0], (size_t)sums->count * sizeof *results);
    for (int64_t lane = 1; lane < sums->lanes; lane++) {
        combine_each(sums->is_product, results, sums->lane[lane], sums->count);
    }
}
