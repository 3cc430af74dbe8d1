#ifndef DMLK_NONZERO_COORDINATES_H
#define DMLK_NONZERO_COORDINATES_H

#include "dmlk.h"

/* cffi: begin */

/* Views: in, count (one UINT32), coordinates (UINT32, [..., rows, columns]). */
typedef struct dmlk_nonzero_coordinates {
    uint32_t columns; /* coordinates per row: the last `columns` axes of in */
} dmlk_nonzero_coordinates;

/* cffi: end */

#endif
