#include "bit_count.h"

#include <stddef.h>

const struct dmlk_bit_count_form *dmlk_bit_count_form;

dmlk_row *dmlk_bit_count_row(uint32_t in, uint32_t out) {
    return dmlk_bit_count_form != NULL ? dmlk_bit_count_form->row_of(in, out) : NULL;
}
