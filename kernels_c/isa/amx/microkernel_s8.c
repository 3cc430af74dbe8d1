/* microkernel_s8.c - tiles of bytes in AMX's tile registers; those of a single filter are VNNI's. */
#define DMLK_OTHER_FILTERS
#include "../avx512_vnni/microkernel_s8.c"

#include "tiles.h"
#include "tiles_s8.inc"

const struct dmlk_microkernel_s8_form dmlk_microkernel_s8_amx = {TILE_KERNELS, block_sums, NULL, leave};
