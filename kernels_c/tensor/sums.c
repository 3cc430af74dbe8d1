#include "sums.h"

#include "cpu.h"

#define LANES DMLK_SUM_LANES
#define JOIN(a, b) a##_##b

#define SUMS_NAME(x) JOIN(x, sum)
#define SUMS_T double
#define SUMS_PRODUCT 0
#define SUMS_TERM(x) (x)
#define SUMS_ALONG_ONLY
#include "sums.inc"

#define SUMS_NAME(x) JOIN(x, product)
#define SUMS_T double
#define SUMS_PRODUCT 1
#define SUMS_TERM(x) (x)
#define SUMS_ALONG_ONLY
#include "sums.inc"

static inline double combine(bool is_product, double a, double b) { return is_product ? a * b : a + b; }

void dmlk_sums_start(dmlk_sums *sums, bool is_product, int64_t count, int64_t terms) {
    sums->is_product = is_product;
    sums->along = false;
    sums->count = count;
    sums->lanes = terms < 4 * LANES ? 1 : LANES;
    for (int64_t i = 0; i < count * sums->lanes; i++) {
        sums->whole[i] = sums->begun[i] = is_product ? 1 : 0;
    }
}

DMLK_EACH_ISA(combine_each, (bool is_product, double *restrict v, const double *restrict x, int64_t n),
              (is_product, v, x, n)) {
    for (int64_t i = 0; i < n; i++) {
        v[i] = combine(is_product, v[i], x[i]);
    }
}

void dmlk_sums_along(dmlk_sums *sums, int64_t sum, const double *x, int64_t n, int64_t index) {
    sums->along = true;
    if (sums->lanes > 1) {
        sums->is_product ? along_product(sums, sum, x, n, index) : along_sum(sums, sum, x, n, index);
        return;
    }
    double y = sums->whole[sum];
    for (int64_t i = 0; i < n; i++) {
        y = combine(sums->is_product, y, x[i]);
    }
    sums->whole[sum] = y;
}

void dmlk_sums_across(dmlk_sums *sums, const double *x, int64_t index) {
    const int64_t all = LANES * sums->count;
    if (sums->lanes == 1) {
        combine_each(sums->is_product, sums->whole, x, sums->count);
        return;
    }
    combine_each(sums->is_product, &sums->begun[index % LANES * sums->count], x, sums->count);
    if ((index + 1) % DMLK_SUM_BLOCK == 0) {
        combine_each(sums->is_product, sums->whole, sums->begun, all);
        for (int64_t i = 0; i < all; i++) {
            sums->begun[i] = sums->is_product ? 1 : 0;
        }
    }
}

void dmlk_sums_combine(bool is_product, double *results, const double *more, int64_t count) {
    combine_each(is_product, results, more, count);
}

void dmlk_sums_finish(const dmlk_sums *sums, double *results) {
    if (sums->lanes == 1) {
        memcpy(results, sums->whole, (size_t)sums->count * sizeof *results);
        return;
    }
    const int64_t next_sum = sums->along ? LANES : 1, next_lane = sums->along ? 1 : sums->count;
    for (int64_t i = 0; i < sums->count; i++) {
        double y = combine(sums->is_product, sums->whole[i * next_sum], sums->begun[i * next_sum]);
        for (int64_t lane = 1; lane < LANES; lane++) {
            const int64_t k = i * next_sum + lane * next_lane;
            y = combine(sums->is_product, y, combine(sums->is_product, sums->whole[k], sums->begun[k]));
        }
        results[i] = y;
    }
}
