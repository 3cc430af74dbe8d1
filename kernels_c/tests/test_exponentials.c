/* Simple exponentials, and those that are relative to the largest number of a line, give results with the same bits;
 * and softmax may work in place. */
#include "exponentials.h"

#include <math.h>

#include "device.h"
#include "dmlk_float_math.h"
#include "softmax.h"

int dmlk_run_softmax(const dmlk_call *call);

enum { LINES = 9, LONGEST = 200 };

static float between(float low, float high) { return low + (high - low) * (float)(random_bits() % 4096) / 4095; }

TEST(simple_exponentials_are_the_others_times_a_power_of_2) {
    for (int round = 0; round < 400; round++) {
        const int64_t n = random_between(1, LONGEST), stride = n + random_between(0, 3);
        float x[LINES * (LONGEST + 3)], simple[LINES * LONGEST], relative[LINES * LONGEST];
        for (int64_t i = 0; i < LINES * stride; i++) {
            x[i] = between(-DMLK_SIMPLE_EXPF, DMLK_SIMPLE_EXPF) * (i / stride == 1 ? 1e-3f : 1);
        }
        dmlk_exponentials a, b;
        double sums[LINES], others[LINES], scales[LINES], shifts[LINES];
        dmlk_exponentials_of_lines(&a, true, x, stride, LINES, n, simple, n, sums);
        dmlk_exponentials_of_lines(&b, false, x, stride, LINES, n, relative, n, others);
        CHECK(a.simple && !b.simple);
        dmlk_exponentials_of_one(&b, scales, shifts);
        int64_t wrong = 0;
        for (int64_t line = 0; line < LINES; line++) {
            wrong += shifts[line] != 0 || ldexp(others[line], (int)scales[line]) != sums[line];
            for (int64_t i = line * n; i < (line + 1) * n; i++) {
                wrong += ldexpf(relative[i], (int)scales[line]) != simple[i];
            }
        }
        CHECK_EQUAL(wrong, 0);
    }
}

TEST(large_numbers_are_not_simple) {
    static const float large[] = {DMLK_SIMPLE_EXPF * 1.00001f, -DMLK_SIMPLE_EXPF * 1.00001f, 1e30f, -INFINITY, INFINITY, NAN};
    for (int i = 0; i < 6; i++) {
        float x[LONGEST] = {0}, to[LONGEST];
        dmlk_exponentials e;
        double sum;
        x[random_between(0, LONGEST - 1)] = large[i];
        dmlk_exponentials_of_lines(&e, true, x, LONGEST, 1, LONGEST, to, LONGEST, &sum);
        CHECK(!e.simple);
    }
}

TEST(across_lines_the_sums_are_the_same) {
    for (int round = 0; round < 200; round++) {
        const int64_t n = random_between(1, LONGEST), count = random_between(1, LINES);
        static dmlk_sums added;
        float x[LINES * LONGEST], turned[LINES * LONGEST], to[LINES * LONGEST];
        const float most = round % 2 ? 30 : 300;
        for (int64_t i = 0; i < n * count; i++) {
            x[i] = between(-most, most);
            turned[i % n * count + i / n] = x[i];
        }
        dmlk_exponentials e;
        double along[LINES], across[LINES];
        dmlk_exponentials_of_lines(&e, true, x, n, count, n, to, n, along);
        if (e.simple) {
            dmlk_exponentials_simply(&e, count);
        } else {
            dmlk_exponentials_start(&e, count);
            dmlk_largest_across(&e, turned, n, count, true);
            dmlk_exponentials_relate(&e);
        }
        dmlk_sums_start(&added, false, count, n);
        dmlk_exponentials_across(&e, &added, turned, n, count, 0, 0, to, 0);
        dmlk_sums_finish(&added, across);
        CHECK(memcmp(along, across, (size_t)count * sizeof *along) == 0);
    }
}

static void run_softmax(float *in, float *out, const int64_t *sizes, uint32_t axis) {
    dmlk_view views[2] = {{.base = (uint8_t *)in}, {.base = (uint8_t *)out}};
    for (int i = 0; i < 2; i++) {
        views[i].type = DMLK_FLOAT32;
        views[i].rank = 2;
        views[i].byte_size = (uint64_t)(sizes[0] * sizes[1]) * sizeof(float);
        memcpy(views[i].sizes, sizes, 2 * sizeof *sizes);
        views[i].strides[0] = sizes[1];
        views[i].strides[1] = 1;
    }
    const dmlk_softmax k = {.axes_mask = 1u << axis};
    const dmlk_call call = {.views = views, .view_count = 2, .constants = &k, .constants_size = sizeof k};
    CHECK_EQUAL(dmlk_run_softmax(&call), DMLK_OK);
}

TEST(in_place) {
    static const int64_t shapes[][2] = {{70, 100}, {100, 70}, {3, 5000}, {300, 300}};
    for (uint32_t i = 0; i < 16; i++) {
        const int64_t *sizes = shapes[i % 4], count = sizes[0] * sizes[1];
        float *x = malloc((size_t)count * sizeof *x), *y = malloc((size_t)count * sizeof *y);
        for (int64_t k = 0; k < count; k++) {
            x[k] = between(-5, 5);
        }
        x[count / 2] = i < 8 ? 1 : 50; /* then nothing is simple */
        run_softmax(x, y, sizes, i / 4 % 2);
        run_softmax(x, x, sizes, i / 4 % 2);
        CHECK(memcmp(x, y, (size_t)count * sizeof *x) == 0);
        free(x);
        free(y);
    }
}

int main(void) {
    RUN(simple_exponentials_are_the_others_times_a_power_of_2);
    RUN(large_numbers_are_not_simple);
    RUN(across_lines_the_sums_are_the_same);
    RUN(in_place);
    return RESULT();
}
