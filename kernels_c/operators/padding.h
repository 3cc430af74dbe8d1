/* padding.h - constants of the padding kernel. */
#ifndef DMLK_PADDING_H
#define DMLK_PADDING_H

#include <stdint.h>

/* cffi: begin */

/* The values of DML_PADDING_MODE. */
enum dmlk_padding_mode {
    DMLK_PADDING_CONSTANT = 0,
    DMLK_PADDING_EDGE = 1,
    DMLK_PADDING_REFLECTION = 2,
    DMLK_PADDING_SYMMETRIC = 3,
    DMLK_PADDING_WRAP = 4
};

typedef struct dmlk_padding {
    uint32_t mode;      /* enum dmlk_padding_mode */
    uint32_t start[8];  /* out[o] comes from in[o - start]; the end padding is the rest of out */
    uint64_t value;     /* DMLK_PADDING_CONSTANT: bits of an element, in the lowest bytes */
} dmlk_padding;

/* cffi: end */

#endif
