#include "microkernel_f32.h"

/* Columns per tile: 12 of 16 registers hold sums of 4 rows.  Blocked columns: as many as fit the registers beside 6
 * rows. */
#define ROWS 4  /* rows of a piece of three vectors */
#define LANES 8 /* floats of a vector */
#include "microkernel_f32.inc"

static void step(float row, const float *column, int64_t columns, float *sums) {
    dmlk_f32_any_step(row, column, columns, sums);
}

const struct dmlk_microkernel_f32_form dmlk_microkernel_f32_avx2 = {LANES, 24, DMLK_F32_BLOCK, tile, step};
