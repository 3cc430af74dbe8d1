/* half.h - FLOAT16 to FLOAT32 and back, many at a time. */
#ifndef DMLK_HALF_H
#define DMLK_HALF_H

#include <stdint.h>

/* As dmlk_half_to_float and dmlk_float_to_half. */
void dmlk_widen_halves(const uint16_t *from, int64_t count, float *to);
void dmlk_narrow_floats(const float *from, int64_t count, uint16_t *to);

#endif
