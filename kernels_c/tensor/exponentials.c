#include "exponentials.h"

#include "ahead.h"
#include "cpu.h"
#include "dmlk_float_math.h"
#include "largest.h"

#define VECTOR 16                                    /* floats that are computed at once */
#define PIECE 128                                    /* floats of a line that are prefetched at a time */
#define AHEAD 8                                      /* rows between the computed row and the prefetched one */
#define IN_LINE (DMLK_LINE / (int64_t)sizeof(float)) /* floats per cache line */

#define SUMS_NAME(x) x##_exponentials
#define SUMS_T float
#define SUMS_PRODUCT 0
#define SUMS_TERM(x) (x)
#define SUMS_TERMS(x) (x)
#define SUMS_LINES
#include "sums.inc"

void dmlk_exponentials_simply(dmlk_exponentials *e, int64_t count) {
    e->count = count;
    e->simple = true;
    e->most = 0;
}

bool dmlk_are_simple(const dmlk_exponentials *e) {
    return e->simple && e->most <= (int32_t)dmlk_float_bits(DMLK_SIMPLE_EXPF);
}

void dmlk_exponentials_start(dmlk_exponentials *e, int64_t count) {
    e->count = count;
    e->simple = false;
    for (int64_t i = 0; i < count; i++) {
        e->largest[i] = -INFINITY;
    }
}

DMLK_EACH_ISA(choose_larger, (float *restrict largest, const float *restrict x, int64_t n), (largest, x, n)) {
    for (int64_t i = 0; i < n; i++) {
        largest[i] = x[i] > largest[i] ? x[i] : largest[i];
    }
}

void dmlk_largest_along(dmlk_exponentials *e, int64_t line, const float *x, int64_t n) {
    float found;
    dmlk_best_lines(false, x, 0, 1, n, DMLK_AHEAD, &found);
    choose_larger(&e->largest[line], &found, 1);
}

void dmlk_largest_across(dmlk_exponentials *e, const float *x, int64_t rows, int64_t step, bool cached) {
    const dmlk_best_rows all = {.from = x, .rows = rows, .step = step, .count = e->count, .cached = cached};
    float found[DMLK_MOST_EXPONENTIALS];
    if (rows > 1) {
        dmlk_best_of_rows(&all, found);
    }
    choose_larger(e->largest, rows > 1 ? found : x, e->count);
}

DMLK_EACH_ISA(relate, (dmlk_exponentials *e), (e)) {
    const int64_t count = e->count;
    int32_t shifts = 0;
    for (int64_t i = 0; i < count; i++) {
        const dmlk_relativef to = dmlk_relative_tof(e->largest[i]);
        e->shift[i] = to.shift;
        e->low[i] = to.low;
        e->rounding[i] = to.rounding;
        shifts |= to.shift != 0;
    }
    e->shifts = shifts;
}

void dmlk_exponentials_relate(dmlk_exponentials *e) { relate(e); }

void dmlk_exponentials_of_one(const dmlk_exponentials *e, double *scales, double *shifts) {
    for (int64_t i = 0; i < e->count; i++) {
        scales[i] = e->simple ? 0 : 127 - (double)(e->rounding[i] - DMLK_ROUNDINGF);
        shifts[i] = e->simple ? 0 : (double)e->shift[i];
    }
}

/* The loop is compiled for each kind and for each constant `step`: with a variable step, compilers load numbers one
 * by one. */
enum kind { SIMPLE, RELATIVE, SHIFTED };

DMLK_INLINE void exponentials_loop(dmlk_exponentials *e, int64_t line, int64_t step, enum kind kind,
                                   const float *restrict x, int64_t n, float *restrict to) {
    const float *restrict shift = e->shift + line, *restrict low = e->low + line, *restrict rounding = e->rounding + line;
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        if (kind == SIMPLE) {
            const int32_t magnitude = (int32_t)(dmlk_float_bits(x[i]) & INT32_MAX);
            most = magnitude > most ? magnitude : most;
            to[i] = dmlk_easy_expf(x[i]);
        } else {
            const float by = kind == SHIFTED ? shift[i * step] : 0;
            to[i] = dmlk_exp_relativef(x[i], (dmlk_relativef){by, low[i * step], rounding[i * step]});
        }
    }
    if (kind == SIMPLE) {
        e->most = most > e->most ? most : e->most;
    }
}

/* The remainder after whole vectors is computed as a vector that overlaps the last one: compilers would compute it
 * number by number, which takes as long as all vectors of a short line. */
DMLK_INLINE void exponentials_by(dmlk_exponentials *e, int64_t line, int64_t step, enum kind kind, const float *restrict x,
                                 int64_t n, float *restrict to) {
    const int64_t whole = n < VECTOR ? n : n - n % VECTOR, last = n - VECTOR;
    exponentials_loop(e, line, step, kind, x, whole, to);
    if (whole < n) {
        exponentials_loop(e, line + step * last, step, kind, x + last, VECTOR, to + last);
    }
}

DMLK_INLINE void exponentials_of(dmlk_exponentials *e, int64_t line, int64_t step, const float *restrict x, int64_t n,
                                 float *restrict to) {
    if (e->simple) {
        exponentials_by(e, line, 0, SIMPLE, x, n, to);
    } else {
        e->shifts ? exponentials_by(e, line, step, SHIFTED, x, n, to) : exponentials_by(e, line, step, RELATIVE, x, n, to);
    }
}

/* The exponentials of `lines` lines, of which `line` is the first.  Before each piece is computed, the piece `ahead`
 * bytes after it is prefetched.  All vectors but the first and the last one of a line are aligned to the cache lines
 * of the result. */
DMLK_EACH_ISA(exponentials, (dmlk_exponentials *e, int64_t line, int64_t lines, const float *x, int64_t stride, int64_t n,
                             float *to, int64_t to_stride, int64_t ahead),
              (e, line, lines, x, stride, n, to, to_stride, ahead)) {
    for (const int64_t end = line + lines; line < end; line++, x += stride, to += to_stride) {
        const int64_t before = dmlk_before_lines(to, n);
        if (before > 0) {
            exponentials_of(e, line, 0, x, VECTOR, to);
        }
        for (int64_t i = before; i < n; i += PIECE) {
            const int64_t count = n - i < PIECE ? n - i : PIECE;
            for (int64_t k = 0; k < count; k += IN_LINE) {
                dmlk_fetch_line((const char *)(x + i + k) + ahead);
            }
            exponentials_of(e, line, 0, x + i, count, to + i);
        }
    }
}

DMLK_EACH_ISA(exponentials_of_each, (dmlk_exponentials *e, const float *x, float *to), (e, x, to)) {
    exponentials_of(e, 0, 1, x, e->count, to);
}

void dmlk_exponentials_again(dmlk_exponentials *e, int64_t line, int64_t step, const float *x, int64_t n, float *to) {
    step == 0 ? exponentials(e, line, 1, x, 0, n, to, 0, 0) : exponentials_of_each(e, x, to);
}

void dmlk_exponentials_along(dmlk_exponentials *e, dmlk_sums *sums, int64_t line, const float *x, int64_t n, int64_t index,
                             float *to) {
    exponentials(e, line, 1, x, 0, n, to, 0, DMLK_AHEAD);
    sums->along = true;
    if (sums->lanes > 1) {
        along_exponentials(sums, line, to, n, index);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        sums->lane[line] += (double)to[i];
    }
}

DMLK_EACH_ISA(exponentials_across, (dmlk_exponentials *e, dmlk_sums *sums, const float *x, int64_t rows, int64_t step,
                                    int64_t next, int64_t index, float *to, int64_t to_step),
              (e, sums, x, rows, step, next, index, to, to_step)) {
    const int64_t count = e->count, between = rows < AHEAD ? rows : AHEAD;
    for (int64_t row = 0; row < rows; row++, x += step, to += to_step) {
        const int64_t ahead = dmlk_row_ahead(row, rows, between, step, next);
        double *restrict lane = dmlk_sums_row(sums, index + row);
        const float *restrict added = to;
        for (int64_t i = 0; i < count && next != 0; i += IN_LINE) {
            dmlk_fetch_line(x + i + ahead);
        }
        exponentials_of(e, 0, 1, x, count, to);
        for (int64_t i = 0; i < count; i++) {
            lane[i] += (double)added[i];
        }
    }
}

void dmlk_exponentials_across(dmlk_exponentials *e, dmlk_sums *sums, const float *x, int64_t rows, int64_t step, int64_t next,
                              int64_t index, float *to, int64_t to_step) {
    exponentials_across(e, sums, x, rows, step, next, index, to, to_step);
}

void dmlk_exponentials_of_lines(dmlk_exponentials *e, bool simply, const float *x, int64_t stride, int64_t count, int64_t n,
                                float *to, int64_t to_stride, double *sums) {
    const int64_t ahead = count * stride * (int64_t)sizeof *x;
    e->count = count;
    e->simple = simply;
    e->most = 0;
    if (simply) {
        exponentials(e, 0, count, x, stride, n, to, to_stride, ahead);
    }
    if (!dmlk_are_simple(e)) {
        e->simple = false;
        dmlk_best_lines(false, x, stride, count, n, 0, e->largest);
        relate(e);
        exponentials(e, 0, count, x, stride, n, to, to_stride, ahead);
    }
    if (n >= DMLK_SUMS_LONG) {
        (dmlk_sum_lines_form != NULL ? dmlk_sum_lines_form->sum : lines_exponentials)(to, to_stride, count, n, 0, sums);
        return;
    }
    for (int64_t line = 0; line < count; line++) {
        sums[line] = 0;
        for (int64_t i = 0; i < n; i++) {
            sums[line] += (double)to[line * to_stride + i];
        }
    }
}
