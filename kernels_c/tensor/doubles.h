/* doubles.h - vectors of doubles, for FLOAT32s that are computed in double precision.  Written with these macros,
 * compilers convert floats without moving halves of vectors.  Vectors are never arguments or results of functions:
 * how these are passed depends on the instruction set. */
#ifndef DMLK_DOUBLES_H
#define DMLK_DOUBLES_H

#include "element.h"

typedef double dmlk_doubles4 __attribute__((vector_size(32)));
typedef double dmlk_unaligned4 __attribute__((vector_size(32), aligned(sizeof(double))));
typedef float dmlk_floats8 __attribute__((vector_size(32)));
typedef int32_t dmlk_bits8 __attribute__((vector_size(32)));

/* Four doubles in memory. */
#define DMLK_FOUR(at) (*(dmlk_unaligned4 *)(at))
#define DMLK_FOUR_OF(at) (*(const dmlk_unaligned4 *)(at))

/* Four floats in memory, widened. */
#define DMLK_WIDE(at) ((dmlk_doubles4){(double)(at)[0], (double)(at)[1], (double)(at)[2], (double)(at)[3]})

/* Stores v and w as eight floats; every NaN becomes DMLK_NAN_BITS (see element.h). */
#define DMLK_STORE_EIGHT(to, v, w)                                                                         \
    do {                                                                                                   \
        const dmlk_floats8 all_ = {(float)(v)[0], (float)(v)[1], (float)(v)[2], (float)(v)[3],             \
                                   (float)(w)[0], (float)(w)[1], (float)(w)[2], (float)(w)[3]};            \
        const dmlk_bits8 number_ = all_ == all_, nan_ = (dmlk_bits8){0} + (int32_t)DMLK_NAN_BITS;          \
        const dmlk_bits8 out_ = ((dmlk_bits8)all_ & number_) | (nan_ & ~number_);                          \
        memcpy(to, &out_, sizeof out_);                                                                    \
    } while (0)

#endif
