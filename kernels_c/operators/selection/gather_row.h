/* gather_row.h - rows of adjacent elements that adjacent indices select. */
#ifndef DMLK_GATHER_ROW_H
#define DMLK_GATHER_ROW_H

#include <stdint.h>

/* Element i of `values` is that of the table at i * step plus what index i selects; indices and values are adjacent. */
typedef struct dmlk_gather_row {
    const void *table;
    const uint8_t *indices;
    int64_t step, size, stride, count; /* size, stride: of the table's axis that is indexed */
    uint8_t *values;
} dmlk_gather_row;

/* Forms that gather the first elements of a row, of `bytes` bytes: 4 or 8, and return how many (see dispatch/choose.c). */
extern const struct dmlk_selection_form {
    int64_t (*gather)(const dmlk_gather_row *row, uint32_t index_type, int64_t bytes);
} *dmlk_selection_form;

#endif
