/* tiles.h - the operations of tiles_s8.inc on AMX's tile registers, by their numbers; isa/amx_model/tiles.h has the same
 * operations in plain C. */
#ifndef DMLK_TILES_H
#define DMLK_TILES_H

#include <immintrin.h>

#include "tiles_s8.h"

/* Assembly, because GCC's intrinsics do not say that they read and write memory. */
#define CONFIGURE_TILES(shapes) __asm__ volatile("ldtilecfg %0" : : "m"(*(shapes)))
#define RELEASE_TILES() __asm__ volatile("tilerelease" : :)
#define CLEAR_TILE(tile) __asm__ volatile("tilezero %%tmm" #tile : :)
#define LOAD_TILE(tile, from, step) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"((int64_t)(step)) : "memory")
#define STORE_TILE(tile, to, step) \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(to), "r"((int64_t)(step)) : "memory")

/* sums += rows * lanes; the bytes of each operand are signed or not. */
#define MULTIPLY_TILES(signed_rows, signed_lanes, sums, rows, lanes) \
    if ((signed_rows) && (signed_lanes)) {                           \
        MULTIPLY_AS("tdpbssd", sums, rows, lanes);                   \
    } else if (signed_rows) {                                        \
        MULTIPLY_AS("tdpbsud", sums, rows, lanes);                   \
    } else if (signed_lanes) {                                       \
        MULTIPLY_AS("tdpbusd", sums, rows, lanes);                   \
    } else {                                                         \
        MULTIPLY_AS("tdpbuud", sums, rows, lanes);                   \
    }
#define MULTIPLY_AS(instruction, sums, rows, lanes) \
    __asm__ volatile(instruction " %%tmm" #lanes ", %%tmm" #rows ", %%tmm" #sums : :)

/* Writes a row of 16 quads, collected from pieces; the others are 0. */
static inline void collect_row(const uint8_t *position, const struct piece *pieces, int count, uint8_t *to) {
    __m512i row = _mm512_setzero_si512();
    for (int i = 0; i < count; i++) {
        row = _mm512_mask_loadu_epi32(row, pieces[i].quads, position + pieces[i].at);
    }
    _mm512_store_si512(to, row);
}

#endif
