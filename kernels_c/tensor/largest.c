#include "largest.h"

#include <math.h>
#include <string.h>

#include "ahead.h"
#include "cpu.h"
#include "element.h"

#define LANES 64   /* floats of a line that are compared independently, as a comparison takes several cycles */
#define VECTOR 16  /* the same in a short line */
#define PIECE 256  /* floats that are searched for a result at a time */
#define STRIP 32   /* columns whose results are kept in registers */
#define TOGETHER 8 /* rows that are processed side by side */
#define NARROW 128 /* columns; rows of no more than these are processed one after the other */
#define IN_LINE (DMLK_LINE / (int64_t)sizeof(float))           /* floats per cache line */
#define ROW_AHEAD (DMLK_AHEAD_IN_ROW / (int64_t)sizeof(float)) /* floats */

/* Before a loop over a vector: compilers must not unroll it completely before they have vectorized it. */
#define AS_VECTOR _Pragma("GCC unroll 4")

/* An integer that orders as the float does, if that is not a NaN.  Unlike floats, compilers compare integers in any
 * order. */
static inline int32_t key_of(float x) {
    const int32_t bits = (int32_t)dmlk_float_bits(x);
    return bits ^ (bits >> 31 & INT32_MAX);
}

static inline float of_key(int32_t key) { return dmlk_bits_float((uint32_t)(key ^ (key >> 31 & INT32_MAX))); }

/* Replaces best[k] by from[k] where from[k] wins; with `has_places`, also place[k] by `row`, which is not lower. */
#define TAKE(best, place, from, n, row, wins, has_places)                                                            \
    for (int64_t k = 0; k < (n); k++) {                                                                              \
        if (has_places) { /* compilers would make a branch of a selection between `row` and place[k] */              \
            int32_t *const place_ = (place);                                                                         \
            const int32_t won = (from)[k] wins (best)[k] ? (row) : 0;                                                \
            place_[k] = won > place_[k] ? won : place_[k];                                                           \
        }                                                                                                            \
        (best)[k] = (from)[k] wins (best)[k] ? (from)[k] : (best)[k];                                                \
    }

/* 1 + the place of the first number that equals `number`, counted from the end of x; or with `last`, of the last such
 * number, counted from the start.  0: there is none. */
static inline __attribute__((always_inline)) int32_t place_of(bool last, const float *x, int64_t n, float number,
                                                              int width) {
    int32_t found[VECTOR] = {0};
    for (int64_t i = 0; i < n; i += width) {
        const int64_t begin = i < n - width ? i : n - width;
        const int32_t first = (int32_t)(last ? begin : n - 1 - begin) + 1;
        AS_VECTOR for (int k = 0; k < width; k++) {
            const int32_t here = x[begin + k] == number ? first + (last ? k : -k) : 0;
            found[k] = here > found[k] ? here : found[k];
        }
    }
    int32_t best = 0;
    AS_VECTOR for (int k = 0; k < width; k++) {
        best = found[k] > best ? found[k] : best;
    }
    return best;
}

/* The place of the first or last `number` in a line, which is searched in pieces; if there is none, any place. */
static inline __attribute__((always_inline)) int32_t place_in(bool last, const float *x, int64_t n, float number) {
    const int64_t piece = n < PIECE ? n : PIECE;
    int64_t begin = 0;
    int32_t found = 0;
    for (int64_t done = 0; done < n && found == 0; done += piece) {
        begin = done < n - piece ? done : n - piece; /* the last one overlaps the one before */
        begin = last ? n - piece - begin : begin;
        found = n < VECTOR ? place_of(last, x, n, number, 1)
                : last     ? place_of(true, x + begin, piece, number, VECTOR)
                           : place_of(false, x + begin, piece, number, VECTOR);
    }
    return (int32_t)(begin + (found == 0 ? 0 : last ? found - 1 : piece - found));
}

/* The functions for the largest and for the smallest number: `wins` is > or <; `none` loses against all numbers. */
#define BEST(name, wins, none)                                                                                       \
    /* Of n >= lanes numbers; `lanes` is a constant. */                                                              \
    static inline __attribute__((always_inline)) float name##_of(const float *x, int64_t n, int lanes, int64_t ahead) { \
        float best[LANES];                                                                                           \
        for (int k = 0; k < lanes; k++) {                                                                            \
            best[k] = none;                                                                                          \
        }                                                                                                            \
        for (int64_t i = 0; i < n; i += lanes) { /* the last lanes overlap the previous ones */                      \
            const float *from = x + (i < n - lanes ? i : n - lanes);                                                 \
            for (int k = 0; k < lanes; k += IN_LINE) {                                                               \
                dmlk_fetch_line((const char *)(from + k) + ahead);                                                   \
            }                                                                                                        \
            if (lanes > VECTOR) {                                                                                    \
                TAKE(best, NULL, from, lanes, 0, wins, false)                                                        \
            } else {                                                                                                 \
                AS_VECTOR TAKE(best, NULL, from, lanes, 0, wins, false)                                              \
            }                                                                                                        \
        }                                                                                                            \
        for (int half = lanes / 2; half >= VECTOR; half /= 2) {                                                      \
            AS_VECTOR for (int k = 0; k < half; k++) {                                                               \
                best[k] = best[k] wins best[k + half] ? best[k] : best[k + half];                                    \
            }                                                                                                        \
        }                                                                                                            \
        int32_t key = key_of(none);                                                                                  \
        AS_VECTOR for (int k = 0; k < (lanes < VECTOR ? lanes : VECTOR); k++) {                                      \
            key = key_of(best[k]) wins key ? key_of(best[k]) : key;                                                  \
        }                                                                                                            \
        return of_key(key);                                                                                          \
    }                                                                                                                \
    DMLK_EACH_ISA(name##_lines, (const float *from, int64_t stride, int64_t lines, int64_t n, int64_t ahead, float *results, bool last, \
                                 int32_t *places),                                                                   \
                  (from, stride, lines, n, ahead, results, last, places)) {                                          \
        for (int64_t line = 0; line < lines; line++, from += stride) {                                               \
            results[line] = n >= LANES    ? name##_of(from, n, LANES, ahead)                                         \
                            : n >= VECTOR ? name##_of(from, n, VECTOR, ahead)                                        \
                                          : name##_of(from, n, 1, ahead);                                            \
            if (places != NULL) {                                                                                    \
                places[line] = place_in(last, from, n, results[line]);                                               \
            }                                                                                                        \
        }                                                                                                            \
    }
BEST(largest, >, -INFINITY)
BEST(smallest, <, INFINITY)

void dmlk_best_lines(bool smallest, const float *from, int64_t stride, int64_t lines, int64_t n, int64_t ahead,
                     float *results) {
    smallest ? smallest_lines(from, stride, lines, n, ahead, results, false, NULL)
             : largest_lines(from, stride, lines, n, ahead, results, false, NULL);
}

void dmlk_best_places(bool smallest, bool last, const float *from, int64_t stride, int64_t lines, int64_t n, int64_t ahead,
                      float *results, int32_t *places) {
    smallest ? smallest_lines(from, stride, lines, n, ahead, results, last, places)
             : largest_lines(from, stride, lines, n, ahead, results, last, places);
}

/* --- rows --- */

/* Rows are processed one after the other or, if they are wide and not contiguous, several side by side, strip by
 * strip. */
#define ROWS(name, wins, none, has_places)                                                                           \
    DMLK_EACH_ISA(name, (const dmlk_best_rows *r, float *restrict best, int32_t *restrict place), (r, best, place)) { \
        const float *restrict x = r->from;                                                                           \
        const int64_t count = r->count, step = r->step, whole = count - count % STRIP;                               \
        const int64_t far = step == count || r->rows == 1 || count <= NARROW ? 0 : whole;                            \
        for (int64_t i = 0; i < count; i++) {                                                                        \
            best[i] = none;                                                                                          \
            if (has_places) {                                                                                        \
                place[i] = 0;                                                                                        \
            }                                                                                                        \
        }                                                                                                            \
        for (int64_t first = 0; far > 0 && first < r->rows; first += TOGETHER) {                                     \
            const int64_t end = first + TOGETHER < r->rows ? first + TOGETHER : r->rows;                             \
            for (int64_t i = 0; i < far; i += STRIP) {                                                               \
                const int64_t ahead = i + STRIP + ROW_AHEAD <= far ? ROW_AHEAD : 0;                                  \
                float strip[STRIP];                                                                                  \
                int32_t places[STRIP];                                                                               \
                memcpy(strip, best + i, sizeof strip);                                                               \
                if (has_places) {                                                                                    \
                    memcpy(places, place + i, sizeof places);                                                        \
                }                                                                                                    \
                for (int64_t row = first; row < end; row++) {                                                        \
                    const float *from = x + row * step + i;                                                          \
                    dmlk_fetch_line(from + ahead);                                                                   \
                    dmlk_fetch_line(from + ahead + IN_LINE);                                                         \
                    TAKE(strip, places, from, STRIP, (int32_t)row, wins, has_places)                                 \
                }                                                                                                    \
                memcpy(best + i, strip, sizeof strip);                                                               \
                if (has_places) {                                                                                    \
                    memcpy(place + i, places, sizeof places);                                                        \
                }                                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
        const int64_t size = sizeof *x;                                                                              \
        const int64_t ahead = r->cached ? 0 : dmlk_ahead_of_row(count * size, step * size) / size;                   \
        for (int64_t row = 0; row < r->rows; row++) {                                                                \
            const float *from = x + row * step;                                                                      \
            for (int64_t i = far; i < whole; i += STRIP) {                                                           \
                dmlk_fetch_line(from + i + ahead);                                                                   \
                dmlk_fetch_line(from + i + ahead + IN_LINE);                                                         \
                TAKE(best + i, place + i, from + i, STRIP, (int32_t)row, wins, has_places)                           \
            }                                                                                                        \
            TAKE(best + whole, place + whole, from + whole, count - whole, (int32_t)row, wins, has_places)           \
        }                                                                                                            \
    }
ROWS(largest, >, -INFINITY, false)
ROWS(smallest, <, INFINITY, false)
ROWS(first_largest, >, -INFINITY, true)
ROWS(first_smallest, <, INFINITY, true)
ROWS(last_largest, >=, -INFINITY, true)
ROWS(last_smallest, <=, INFINITY, true)

void dmlk_best_of_rows(const dmlk_best_rows *rows, float *results) {
    rows->smallest ? smallest(rows, results, NULL) : largest(rows, results, NULL);
}

void dmlk_best_places_of_rows(const dmlk_best_rows *rows, float *results, int32_t *places) {
    if (rows->last) {
        rows->smallest ? last_smallest(rows, results, places) : last_largest(rows, results, places);
    } else {
        rows->smallest ? first_smallest(rows, results, places) : first_largest(rows, results, places);
    }
}
