/* reverse_subsequences.h - constants of the reverse_subsequences kernel. */
#ifndef DMLK_REVERSE_SUBSEQUENCES_H
#define DMLK_REVERSE_SUBSEQUENCES_H

#include <stdint.h>

/* cffi: begin */

typedef struct dmlk_reverse_subsequences {
    uint32_t axis;
} dmlk_reverse_subsequences;

/* cffi: end */

#endif
