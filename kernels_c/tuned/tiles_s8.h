/* tiles_s8.h - what tiles_s8.inc shares with the operations on tile registers. */
#ifndef DMLK_TILES_S8_H
#define DMLK_TILES_S8_H

#include <stdint.h>

/* The shapes of the tile registers: the argument of ldtilecfg. */
struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Quads of a row of a tile that are contiguous in memory: those in the mask `quads`; quad q is at + 4 * q bytes from a
 * position. */
struct piece {
    uint16_t quads;
    int64_t at;
};

#endif
