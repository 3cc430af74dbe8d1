/* depthwise.c - see convolve.h: the forms are in isa/. */
#include "convolve.h"

#include <stddef.h>

const struct dmlk_depthwise_form *dmlk_depthwise_form;

bool dmlk_convolve_depthwise(const dmlk_convolution *c) {
    return dmlk_depthwise_form != NULL && dmlk_depthwise_form->convolve(c);
}
