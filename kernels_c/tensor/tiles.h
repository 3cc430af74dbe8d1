/* tiles.h - element-wise loops in blocks of several dimensions, for operands whose orders of axes differ. */
#ifndef DMLK_TILES_H
#define DMLK_TILES_H

#include "parallel.h"
#include "view.h"

typedef struct dmlk_tiles {
    dmlk_iter rows; /* the loops without tiles */
    dmlk_row *row;
    const void *context;
    dmlk_iter iter;               /* the loops from tile to tile */
    uint32_t loop[DMLK_MAX_RANK]; /* loop d of `iter` steps along loop[d] of `rows` */
    int64_t tile[DMLK_MAX_RANK];  /* elements of a tile along each loop of `rows` */
    uint32_t across, next;        /* loops of `rows` (see tiles.c); may be the same */
    bool gathered[DMLK_MAX_OPERANDS]; /* the operand is copied, with its rows packed */
    uint32_t direct; /* the operand that is gathered into the output; the output itself: none */
    bool large;  /* the output bypasses the caches, and inputs are prefetched */
    bool joined; /* rows of a tile along `next` are joined */
} dmlk_tiles;

/* Plans tiles for t->rows.  False: plain rows are as fast. */
bool dmlk_plan_tiles(dmlk_tiles *t);

/* Runs tiles begin .. end - 1 of t->iter; `context` is a dmlk_tiles. */
void dmlk_run_tiles(int64_t begin, int64_t end, int part, void *context);

/* The loop along which elements of operand k are nearest to each other. */
uint32_t dmlk_nearest_loop(const dmlk_iter *rows, uint32_t k);

/* Whether elements are written more than once; the last write must win, so such loops keep their order. */
bool dmlk_writes_twice(const dmlk_iter *rows);

#endif
