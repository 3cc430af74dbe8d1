/* gather_row.h - gathers of rows whose indices and values are adjacent in memory. */
#ifndef DMLK_GATHER_ROW_H
#define DMLK_GATHER_ROW_H

#include <stdint.h>

/* Element i of `values` is element i * step + indices[i] * stride of the table. */
typedef struct dmlk_gather_row {
    const void *table;
    const uint8_t *indices;
    int64_t step, size, stride, count; /* size, stride: of the indexed axis of the table */
    uint8_t *values;
} dmlk_gather_row;

/* Forms that gather as many of the first elements of a row as they can, and return their number; an element has 4 or
 * 8 bytes (see dispatch/choose.c). */
extern const struct dmlk_selection_form {
    int64_t (*gather)(const dmlk_gather_row *row, uint32_t index_type, int64_t bytes);
} *dmlk_selection_form;

#endif
