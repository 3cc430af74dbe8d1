/* tiles.h - a model of AMX's tile registers in plain C: the operations of isa/amx/tiles.h. */
#ifndef DMLK_TILES_H
#define DMLK_TILES_H

#include <stdlib.h>
#include <string.h>

#include "microkernel_s8.h"
#include "tiles_s8.h"

#define TILES 8

static _Thread_local struct tile_shapes loaded_shapes;
static _Thread_local _Alignas(64) uint8_t registers[TILES][16][64];

/* Where the CPU would stop the program. */
static void demand(bool is_legal) {
    if (!is_legal) {
        abort();
    }
}

static void configure_tiles(const struct tile_shapes *new) {
    demand(new->palette == 1 && new->start_row == 0);
    for (int tile = 0; tile < 16; tile++) {
        const int rows = new->rows[tile], row_bytes = new->row_bytes[tile];
        demand(tile < TILES ? rows <= 16 && row_bytes <= 64 && row_bytes % 4 == 0 && (rows == 0) == (row_bytes == 0)
                            : rows == 0 && row_bytes == 0);
    }
    loaded_shapes = *new;
    memset(registers, 0, sizeof registers);
}

static void release_tiles(void) { memset(&loaded_shapes, 0, sizeof loaded_shapes); }

static void clear_tile(int tile) {
    demand(loaded_shapes.rows[tile] != 0);
    memset(registers[tile], 0, sizeof registers[tile]);
}

static void load_tile(int tile, const uint8_t *from, int64_t step) {
    clear_tile(tile);
    for (int r = 0; r < loaded_shapes.rows[tile]; r++) {
        memcpy(registers[tile][r], from + r * step, loaded_shapes.row_bytes[tile]);
    }
}

static void store_tile(int tile, uint8_t *to, int64_t step) {
    demand(loaded_shapes.rows[tile] != 0);
    for (int r = 0; r < loaded_shapes.rows[tile]; r++) {
        memcpy(to + r * step, registers[tile][r], loaded_shapes.row_bytes[tile]);
    }
}

/* The products of quad q of row r with the quads of all lanes. */
static void multiply_quad(bool signed_rows, bool signed_lanes, const uint8_t *quad, const uint8_t *lanes, int count,
                          uint32_t *sums) {
    int32_t row[4];
    for (int j = 0; j < 4; j++) {
        row[j] = dmlk_s8_number(quad[j], signed_rows);
    }
    for (int l = 0; l < count; l++) {
        int32_t sum = 0;
        for (int j = 0; j < 4; j++) {
            sum += row[j] * dmlk_s8_number(lanes[4 * l + j], signed_lanes);
        }
        sums[l] += (uint32_t)sum;
    }
}

static void multiply_tiles(bool signed_rows, bool signed_lanes, int sums, int rows, int lanes) {
    const int count = loaded_shapes.row_bytes[sums] / 4, quads = loaded_shapes.rows[lanes];
    demand(count != 0 && loaded_shapes.rows[sums] == loaded_shapes.rows[rows] &&
           loaded_shapes.row_bytes[sums] == loaded_shapes.row_bytes[lanes] &&
           loaded_shapes.row_bytes[rows] == 4 * quads);
    for (int r = 0; r < loaded_shapes.rows[sums]; r++) {
        for (int q = 0; q < quads; q++) {
            multiply_quad(signed_rows, signed_lanes, registers[rows][r] + 4 * q, registers[lanes][q], count,
                          (uint32_t *)(void *)registers[sums][r]);
        }
    }
}

#define CONFIGURE_TILES(shapes) configure_tiles(shapes)
#define RELEASE_TILES() release_tiles()
#define CLEAR_TILE(tile) clear_tile(tile)
#define LOAD_TILE(tile, from, step) load_tile(tile, (const uint8_t *)(from), step)
#define STORE_TILE(tile, to, step) store_tile(tile, (uint8_t *)(to), step)
#define MULTIPLY_TILES(signed_rows, signed_lanes, sums, rows, lanes) \
    multiply_tiles(signed_rows, signed_lanes, sums, rows, lanes);

/* Writes a row of 16 quads, collected from pieces; the others are 0. */
static inline void collect_row(const uint8_t *position, const struct piece *pieces, int count, uint8_t *to) {
    memset(to, 0, 64);
    for (int i = 0; i < count; i++) {
        for (int q = 0; q < 16; q++) {
            if (pieces[i].quads >> q & 1) {
                memcpy(to + 4 * q, position + pieces[i].at + 4 * q, 4);
            }
        }
    }
}

#endif
