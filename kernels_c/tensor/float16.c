#include "float16.h"

#include <stddef.h>

#include "element.h"

const struct dmlk_float16_form *dmlk_float16_form;

void dmlk_widen_float16(const uint16_t *from, int64_t count, float *to) {
    for (int64_t i = dmlk_float16_form != NULL ? dmlk_float16_form->widen(from, count, to) : 0; i < count; i++) {
        to[i] = dmlk_float16_to_float(from[i]);
    }
}

void dmlk_narrow_floats(const float *from, int64_t count, uint16_t *to) {
    for (int64_t i = dmlk_float16_form != NULL ? dmlk_float16_form->narrow(from, count, to) : 0; i < count; i++) {
        to[i] = dmlk_float_to_float16(from[i]);
    }
}
