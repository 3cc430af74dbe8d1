#include "microkernel_f32.h"

/* 24 of 32 registers hold sums. */
#define ROWS 8   /* rows of a piece of three vectors */
#define LANES 16 /* floats of a vector */
#include "microkernel_f32.inc"

static void step(float row, const float *column, int64_t columns, float *sums) {
    dmlk_f32_any_step(row, column, columns, sums);
}

const struct dmlk_microkernel_f32_form dmlk_microkernel_f32_avx512 = {LANES, DMLK_F32_COLUMNS, DMLK_F32_COLUMNS, tile, step};
