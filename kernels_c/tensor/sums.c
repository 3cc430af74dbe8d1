#include "sums.h"

#include "cpu.h"

#define LANES DMLK_SUM_LANES
#define JOIN(a, b) a##_##b

#define SUMS_NAME(x) JOIN(x, sum)
#define SUMS_T double
#define SUMS_PRODUCT 0
#define SUMS_TERM(x) (x)
#define SUMS_TERMS(x) (x)
#include "sums.inc"

#define SUMS_NAME(x) JOIN(x, product)
#define SUMS_T double
#define SUMS_PRODUCT 1
#define SUMS_TERM(x) (x)
#define SUMS_TERMS(x) (x)
#include "sums.inc"

void dmlk_sums_start(dmlk_sums *sums, bool is_product, int64_t count, int64_t terms) {
    sums->is_product = is_product;
    sums->along = false;
    sums->count = count;
    sums->lanes = terms < 4 * LANES ? 1 : LANES;
    for (int64_t i = 0; i < count * sums->lanes; i++) {
        sums->lane[i] = is_product ? 1 : 0;
    }
}

void dmlk_sums_along(dmlk_sums *sums, int64_t sum, const double *x, int64_t n, int64_t index) {
    sums->along = true;
    if (sums->lanes > 1) {
        sums->is_product ? along_product(sums, sum, x, n, index) : along_sum(sums, sum, x, n, index);
        return;
    }
    double y = sums->lane[sum];
    for (int64_t i = 0; i < n; i++) {
        y = sums->is_product ? y * x[i] : y + x[i];
    }
    sums->lane[sum] = y;
}

void dmlk_sums_combine(bool is_product, double *results, const double *more, int64_t count) {
    is_product ? across_product(results, more, count) : across_sum(results, more, count);
}

void dmlk_sums_across(dmlk_sums *sums, const double *x, int64_t index) {
    dmlk_sums_combine(sums->is_product, dmlk_sums_row(sums, index), x, sums->count);
}

static void add_lanes(bool is_product, double *lane) {
    for (int64_t half = LANES / 2; half > 0; half /= 2) {
        for (int64_t k = 0; k < half; k++) {
            lane[k] = is_product ? lane[k] * lane[k + half] : lane[k] + lane[k + half];
        }
    }
}

void dmlk_sums_finish(dmlk_sums *sums, double *results) {
    const int64_t count = sums->count, lanes = sums->lanes;
    for (int64_t i = 0; lanes > 1 && sums->along && i < count; i++) {
        add_lanes(sums->is_product, &sums->lane[i * lanes]);
        sums->lane[i] = sums->lane[i * lanes];
    }
    for (int64_t half = lanes / 2; half > 0 && !sums->along; half /= 2) {
        dmlk_sums_combine(sums->is_product, sums->lane, sums->lane + half * count, half * count);
    }
    memcpy(results, sums->lane, (size_t)count * sizeof *results);
}
