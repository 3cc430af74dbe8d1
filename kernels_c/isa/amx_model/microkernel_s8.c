/* microkernel_s8.c - tiles of bytes as on a CPU with AMX, in plain C, so that other CPUs test what is around the
 * instructions. */
#define DMLK_OTHER_FILTERS
#include "../generic/microkernel_s8.c"

#include "tiles.h"
#include "tiles_s8.inc"

const struct dmlk_microkernel_s8_form dmlk_microkernel_s8_amx_model = {TILE_KERNELS, dmlk_s8_any_sums, NULL, leave};
