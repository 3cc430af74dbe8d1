/* roi_pooling.h - constants of the roi_pooling kernel. */
#ifndef DMLK_ROI_POOLING_H
#define DMLK_ROI_POOLING_H

/* cffi: begin */

typedef struct dmlk_roi_pooling {
    float scale; /* of the corners of regions */
} dmlk_roi_pooling;

/* cffi: end */

#endif
