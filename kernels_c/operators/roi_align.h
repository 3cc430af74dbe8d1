/* roi_align.h - constants of the kernels roi_align and roi_align_grad. */
#ifndef DMLK_ROI_ALIGN_H
#define DMLK_ROI_ALIGN_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_roi_align {
    uint32_t takes_maximum; /* of the samples; 0: their average */
    uint32_t linear;        /* 0: the nearest element */
    uint32_t minimum;       /* samples of an output element along an axis */
    uint32_t maximum;
    uint32_t aligned; /* 1: the first and last samples lie on the corners of the region */
    float scale_x, scale_y;
    float in_offset, out_offset;
    float outside; /* value of samples outside the input */
} dmlk_roi_align;

/* cffi: end */

#endif
