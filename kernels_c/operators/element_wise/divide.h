/* divide.h - integer division that never traps: division by 0 sets every bit of the result; the lowest number divided
 * by -1 wraps. */
#ifndef DMLK_ELEMENT_WISE_DIVIDE_H
#define DMLK_ELEMENT_WISE_DIVIDE_H

#include "element.h"

#define DMLK_BODY "divide.inc"
#include "each_type.inc"

#define OF_INTEGERS(function, a)                                                                     \
    _Generic((a), int8_t: function##_int8, int16_t: function##_int16, int32_t: function##_int32,     \
             int64_t: function##_int64, uint8_t: function##_uint8, uint16_t: function##_uint16,      \
             uint32_t: function##_uint32, uint64_t: function##_uint64)
#define quotient(a, b) OF_INTEGERS(quotient, a)(a, b)                 /* truncated toward zero */
#define remainder_as_dividend(a, b) OF_INTEGERS(remainder, a)(a, b) /* with the sign of a */
#define remainder_as_divisor(a, b) OF_INTEGERS(modulus, a)(a, b)    /* with the sign of b */

#endif
