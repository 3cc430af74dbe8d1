#include "sums.h"

#include "cpu.h"

#define LANES DMLK_SUM_LANES
#define IN_LINE 8 /* doubles per cache line */
#define JOIN(a, b) a##_##b

#define SUMS_NAME(x) JOIN(x, sum)
#define SUMS_T double
#define SUMS_PRODUCT 0
#define SUMS_TERM(x) (x)
#define SUMS_TERMS(x) (x)
#define SUMS_ROWS
#include "sums.inc"

#define SUMS_NAME(x) JOIN(x, product)
#define SUMS_T double
#define SUMS_PRODUCT 1
#define SUMS_TERM(x) (x)
#define SUMS_TERMS(x) (x)
#define SUMS_ROWS
#include "sums.inc"

const struct dmlk_sum_lines_form *dmlk_sum_lines_form;

void dmlk_sums_start(dmlk_sums *sums, bool is_product, int64_t count, int64_t terms) {
    sums->is_product = is_product;
    sums->along = false;
    sums->count = count;
    sums->lanes = terms < DMLK_SUMS_LONG ? 1 : LANES;
    sums->stride = (count + IN_LINE - 1) / IN_LINE * IN_LINE;
    memset(sums->lane, 0, (size_t)(sums->stride * sums->lanes) * sizeof *sums->lane);
    for (int64_t i = 0; is_product && i < sums->stride * sums->lanes; i++) {
        sums->lane[i] = 1;
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

#define COMBINE(name, operation)                                                                                 \
    DMLK_EACH_ISA(combine_##name, (double *restrict to, const double *restrict from, int64_t count), (to, from, count)) { \
        for (int64_t i = 0; i < count; i++) {                                                                    \
            to[i] = to[i] operation from[i];                                                                     \
        }                                                                                                        \
    }                                                                                                            \
    /* Adds up the lanes of each of `count` sums; `results` may be `lanes`. */                                   \
    DMLK_EACH_ISA(fold_##name, (const double *lanes, int64_t count, double *results), (lanes, count, results)) { \
        for (int64_t i = 0; i < count; i++, lanes += LANES) {                                                    \
            dmlk_sums_vector a, b, c, d;                                                                         \
            memcpy(&a, lanes, sizeof a);                                                                         \
            memcpy(&b, lanes + LANES / 4, sizeof b);                                                             \
            memcpy(&c, lanes + LANES / 2, sizeof c);                                                             \
            memcpy(&d, lanes + 3 * LANES / 4, sizeof d);                                                         \
            DMLK_FOLD_LANES(results[i], a, b, c, d, operation);                                                  \
        }                                                                                                        \
    }                                                                                                            \
    /* The same for lanes that are `stride` apart; neighbouring sums are contiguous. */                          \
    DMLK_EACH_ISA(fold_across_##name, (const double *restrict lanes, int64_t stride, int64_t count, double *restrict results), \
                  (lanes, stride, count, results)) {                                                             \
        for (int64_t i = 0; i < count; i++) {                                                                    \
            const double *x = lanes + i;                                                                         \
            results[i] = HALF(0, operation) operation HALF(1, operation);                                  \
        }                                                                                                        \
    }
#define PAIR(k, operation) (x[(k) * stride] operation x[((k) + LANES / 2) * stride])
#define FOUR(k, operation) (PAIR(k, operation) operation PAIR((k) + LANES / 4, operation))
#define HALF(k, operation) (FOUR(k, operation) operation FOUR((k) + LANES / 8, operation))
COMBINE(sum, +)
COMBINE(product, *)

void dmlk_sums_combine(bool is_product, double *results, const double *more, int64_t count) {
    is_product ? combine_product(results, more, count) : combine_sum(results, more, count);
}

void dmlk_sums_fold(bool is_product, const double *lanes, int64_t count, double *results) {
    is_product ? fold_product(lanes, count, results) : fold_sum(lanes, count, results);
}

void dmlk_sums_across(dmlk_sums *sums, const double *x, int64_t index) {
    sums->is_product ? rows_product(sums, x, 1, 0, index, true) : rows_sum(sums, x, 1, 0, index, true);
}

void dmlk_sums_finish(dmlk_sums *sums, double *results) {
    const int64_t count = sums->count, stride = sums->stride, lanes = sums->lanes;
    if (lanes > 1 && sums->along) {
        dmlk_sums_fold(sums->is_product, sums->lane, count, results);
        return;
    }
    if (lanes == 1) {
        memcpy(results, sums->lane, (size_t)count * sizeof *results);
        return;
    }
    sums->is_product ? fold_across_product(sums->lane, stride, count, results)
                     : fold_across_sum(sums->lane, stride, count, results);
}
