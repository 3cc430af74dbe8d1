/* diagonal_matrix.h - constants of the diagonal_matrix kernel. */
#ifndef DMLK_DIAGONAL_MATRIX_H
#define DMLK_DIAGONAL_MATRIX_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_diagonal_matrix {
    int64_t begin, end; /* the value is put on diagonals x - y = begin .. end - 1 */
    uint32_t outside;   /* 1: on all other diagonals instead */
    uint32_t reserved;
    uint64_t value;     /* bits of an element, in the lowest bytes */
} dmlk_diagonal_matrix;

/* cffi: end */

#endif
