/* The forms of the microkernel for floats that this CPU supports, compared with the generic one; also compiled for
 * ARM (see tests/programs/test_instruction_sets.py). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "microkernel_f32.h"

#define STEPS 40
#define WIDTH (DMLK_F32_COLUMNS + 16)

extern const struct dmlk_microkernel_f32_form dmlk_microkernel_f32_generic;
#ifdef __aarch64__
extern const struct dmlk_microkernel_f32_form dmlk_microkernel_f32_neon;
#define FORMS {DMLK_SET_neon, &dmlk_microkernel_f32_neon}
#elif defined(DMLK_WITHOUT_AVX512)
extern const struct dmlk_microkernel_f32_form dmlk_microkernel_f32_avx2;
#define FORMS {DMLK_SET_avx2, &dmlk_microkernel_f32_avx2}
#else
extern const struct dmlk_microkernel_f32_form dmlk_microkernel_f32_avx2, dmlk_microkernel_f32_avx512;
#define FORMS {DMLK_SET_avx2, &dmlk_microkernel_f32_avx2}, {DMLK_SET_avx512, &dmlk_microkernel_f32_avx512}
#endif

static uint32_t state = 1;

static int64_t random_below(uint32_t limit) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % limit;
}

static void fill(float *x, int count) {
    for (int i = 0; i < count; i++) {
        x[i] = (float)random_below(2000) / 7 - 140;
    }
}

/* Numbers, among them some that bounds and additions treat in their own way. */
static void fill_with_all(float *x, int count) {
    static const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 3e38f, -3e38f};
    fill(x, count);
    for (int i = 0; i < count; i += 1 + (int)random_below(9)) {
        x[i] = special[random_below(sizeof special / sizeof special[0])];
    }
}

/* What a tile's results are, one by one. */
static float finished(const dmlk_f32_results *to, int64_t r, int64_t j, float sum) {
    float y = sum + to->offsets[to->are_of_rows ? r : j];
    if (to->added != NULL) {
        y += to->added[r * to->stride + j];
    }
    if (to->finish->has_low) {
        y = y > to->finish->low ? y : to->finish->low;
    }
    if (to->finish->has_high) {
        y = y < to->finish->high ? y : to->finish->high;
    }
    return dmlk_one_nan(y);
}

/* Whether the form stores the results of a tile, and nothing else.  `sums` are those that it starts with, and those of
 * the generic form. */
static int finishes(const struct dmlk_microkernel_f32_form *form, const dmlk_f32_kernel *given, const float *sums) {
    static float offsets[WIDTH], added[DMLK_F32_ROWS * WIDTH], out[2][DMLK_F32_ROWS * WIDTH], before[DMLK_F32_ROWS * WIDTH];
    const dmlk_finish finish = {.has_low = random_below(2) == 0, .low = -9, .has_high = random_below(2) == 0, .high = 60};
    dmlk_f32_results results = {.out = out[1],
                                .added = random_below(2) == 0 ? added : NULL,
                                .stride = WIDTH,
                                .offsets = offsets,
                                .are_of_rows = random_below(2) == 0,
                                .finish = &finish};
    dmlk_f32_kernel tile = *given;
    tile.columns = (tile.columns + form->lanes - 1) / form->lanes * form->lanes;
    fill_with_all(offsets, WIDTH), fill_with_all(added, DMLK_F32_ROWS * WIDTH), fill(out[0], DMLK_F32_ROWS * WIDTH);
    memcpy(out[1], out[0], sizeof out[0]), memcpy(before, sums, sizeof before);
    tile.sums = before;
    dmlk_microkernel_f32_generic.tile(&tile);
    for (int64_t r = 0; r < tile.rows; r++) {
        for (int64_t j = 0; j < tile.columns; j++) {
            out[0][r * WIDTH + j] = finished(&results, r, j, before[r * WIDTH + j]);
        }
    }
    memcpy(before, sums, sizeof before);
    tile.results = &results;
    form->tile(&tile);
    return memcmp(out[0], out[1], sizeof out[0]) == 0 && memcmp(before, sums, sizeof before) == 0;
}

/* Whether a random tile has the same bits in both forms. */
static int is_same(const struct dmlk_microkernel_f32_form *form) {
    static float row[DMLK_F32_ROWS * STEPS], column[STEPS * WIDTH], sums[2][DMLK_F32_ROWS * WIDTH], start[DMLK_F32_ROWS * WIDTH];
    int64_t row_at[DMLK_F32_ROWS], step_at[STEPS], column_at[STEPS];
    dmlk_f32_kernel tile = {.rows = 1 + random_below(DMLK_F32_ROWS), .columns = 1 + random_below(DMLK_F32_COLUMNS)};
    fill(row, DMLK_F32_ROWS * STEPS), fill(column, STEPS * WIDTH), fill(sums[0], DMLK_F32_ROWS * WIDTH);
    memcpy(sums[1], sums[0], sizeof sums[0]), memcpy(start, sums[0], sizeof start);
    for (int i = 0; i < DMLK_F32_ROWS; i++) {
        row_at[i] = random_below(STEPS);
    }
    for (int i = 0; i < STEPS; i++) {
        step_at[i] = random_below((DMLK_F32_ROWS - 1) * STEPS);
        column_at[i] = random_below((STEPS - 1) * WIDTH);
    }
    tile.depth = random_below(STEPS), tile.is_first = random_below(2) == 0;
    tile.row = row, tile.row_stride = STEPS, tile.row_step = 1;
    tile.row_at = random_below(2) == 0 ? row_at : NULL, tile.step_at = step_at;
    tile.column_at = tile.row_at == NULL && random_below(2) == 0 ? column_at : NULL;
    tile.column = column, tile.column_step = WIDTH, tile.sums_stride = WIDTH;
    for (int i = 0; i < 2; i++) {
        tile.sums = sums[i];
        (i == 0 ? &dmlk_microkernel_f32_generic : form)->tile(&tile);
    }
    for (int64_t r = 0; r < tile.rows; r++) {
        if (memcmp(sums[0] + r * WIDTH, sums[1] + r * WIDTH, (size_t)tile.columns * sizeof(float)) != 0) {
            return 0;
        }
    }
    fill_with_all(start, DMLK_F32_ROWS * WIDTH);
    return form->lanes == 0 || finishes(form, &tile, start);
}

int main(void) {
    static const struct {
        uint32_t needs;
        const struct dmlk_microkernel_f32_form *form;
    } forms[] = {FORMS};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        for (int n = 0; n < 1000 && dmlk_has(forms[i].needs); n++) {
            if (!is_same(forms[i].form)) {
                printf("form %d, tile %d: other bits than the generic form\n", (int)i, n);
                return EXIT_FAILURE;
            }
        }
    }
    return EXIT_SUCCESS;
}
