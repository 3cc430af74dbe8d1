/* float16.h - vectorized conversion between FLOAT16 and FLOAT32. */
#ifndef DMLK_FLOAT16_H
#define DMLK_FLOAT16_H

#include <stdint.h>

/* As dmlk_float16_to_float and dmlk_float_to_float16. */
void dmlk_widen_float16(const uint16_t *from, int64_t count, float *to);
void dmlk_narrow_floats(const float *from, int64_t count, uint16_t *to);

/* Forms of these that convert as many of the first elements as they can, and return their number (see
 * dispatch/choose.c). */
extern const struct dmlk_float16_form {
    int64_t (*widen)(const uint16_t *from, int64_t count, float *to);
    int64_t (*narrow)(const float *from, int64_t count, uint16_t *to);
} *dmlk_float16_form;

#endif
