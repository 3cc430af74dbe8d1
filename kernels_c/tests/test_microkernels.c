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

/* Whether a random tile has the same bits in both forms. */
static int is_same(const struct dmlk_microkernel_f32_form *form) {
    static float row[DMLK_F32_ROWS * STEPS], column[STEPS * WIDTH], sums[2][DMLK_F32_ROWS * WIDTH];
    int64_t row_at[DMLK_F32_ROWS], step_at[STEPS], column_at[STEPS];
    dmlk_f32_kernel tile = {.rows = 1 + random_below(DMLK_F32_ROWS), .columns = 1 + random_below(DMLK_F32_COLUMNS)};
    fill(row, DMLK_F32_ROWS * STEPS), fill(column, STEPS * WIDTH), fill(sums[0], DMLK_F32_ROWS * WIDTH);
    memcpy(sums[1], sums[0], sizeof sums[0]);
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
    return 1;
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
