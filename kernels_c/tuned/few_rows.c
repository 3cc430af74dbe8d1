/* few_rows.c - see few_rows.h. */
#include "few_rows.h"

#include <math.h>

#include "cpu.h"

const struct dmlk_few_rows_form *dmlk_few_rows_form;

DMLK_EACH_ISA(add_lines, (const float *factors, const float *lines, int64_t stride, int64_t count, float *restrict sums),
              (factors, lines, stride, count, sums)) {
    const float *a = lines, *b = a + stride, *c = b + stride, *d = c + stride;
    const float *e = d + stride, *f = e + stride, *g = f + stride, *h = g + stride;
    for (int64_t j = 0; j < count; j++) {
        float sum = sums[j];
        sum = fmaf(factors[0], a[j], sum);
        sum = fmaf(factors[1], b[j], sum);
        sum = fmaf(factors[2], c[j], sum);
        sum = fmaf(factors[3], d[j], sum);
        sum = fmaf(factors[4], e[j], sum);
        sum = fmaf(factors[5], f[j], sum);
        sum = fmaf(factors[6], g[j], sum);
        sums[j] = fmaf(factors[7], h[j], sum);
    }
}

void dmlk_add_lines(const float *factors, const float *lines, int64_t stride, int64_t count, float *sums) {
    add_lines(factors, lines, stride, count, sums);
}
