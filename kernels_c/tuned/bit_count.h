/* bit_count.h - counting bits with dedicated CPU instructions. */
#ifndef DMLK_BIT_COUNT_H
#define DMLK_BIT_COUNT_H

#include "view.h"

/* A row that counts the bits of elements as wide as those of `in`, into UINT8 or UINT32.  NULL: not supported. */
dmlk_row *dmlk_bit_count_row(uint32_t in, uint32_t out);

/* Forms of dmlk_bit_count_row (see dispatch/choose.c). */
extern const struct dmlk_bit_count_form {
    dmlk_row *(*row_of)(uint32_t in, uint32_t out);
} *dmlk_bit_count_form;

#endif
