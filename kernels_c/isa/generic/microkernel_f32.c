#include "microkernel_f32.h"

#include <string.h>

static void tile(const dmlk_f32_kernel *t) {
    for (int64_t r = 0; r < t->rows; r++) {
        float *sums = t->sums + r * t->sums_stride;
        if (t->is_first) {
            memset(sums, 0, (size_t)t->columns * sizeof *sums);
        }
        for (int64_t k = 0; k < t->depth; k++) {
            const int64_t at = t->row_at != NULL ? t->row_at[r] + t->step_at[k] : r * t->row_stride + k * t->row_step;
            const float row = t->row[at], *column = t->column + (t->column_at != NULL ? t->column_at[k] : k * t->column_step);
            for (int64_t j = 0; j < t->columns; j++) {
                sums[j] = fmaf(row, column[dmlk_f32_column_at(t, j)], sums[j]);
            }
        }
    }
}

static void step(float row, const float *column, int64_t columns, float *sums) {
    dmlk_f32_any_step(row, column, columns, sums);
}

const struct dmlk_microkernel_f32_form dmlk_microkernel_f32_generic = {0, DMLK_F32_COLUMNS, DMLK_F32_COLUMNS, tile, step};
