/* space_depth.h - constants of the space_depth kernel. */
#ifndef DMLK_SPACE_DEPTH_H
#define DMLK_SPACE_DEPTH_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_space_depth {
    uint32_t block;
    uint32_t depth_first; /* deep channel: 1: c * block^2 + y * block + x, 0: (y * block + x) * channels + c */
    uint32_t to_space;    /* 1: the input is the deep tensor, 0: the output is */
} dmlk_space_depth;

/* cffi: end */

#endif
