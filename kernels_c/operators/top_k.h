/* top_k.h - constants of the top_k kernel. */
#ifndef DMLK_TOP_K_H
#define DMLK_TOP_K_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_top_k {
    uint32_t axis;
    uint32_t largest; /* 1: the largest elements, largest first; 0: the smallest */
} dmlk_top_k;

/* cffi: end */

#endif
