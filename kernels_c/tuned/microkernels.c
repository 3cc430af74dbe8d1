/* microkernels.c - the chosen forms (see dispatch/choose.c). */
#include "microkernel_f32.h"
#include "microkernel_s8.h"

const struct dmlk_microkernel_f32_form *dmlk_microkernel_f32_form;
const struct dmlk_microkernel_s8_form *dmlk_microkernel_s8_form;
