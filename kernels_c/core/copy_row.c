#include "kernel.h"

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "copy_row.inc"
#include "each_type.inc"

static dmlk_row *const copy_rows[] = {
#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "row_table.inc"
#include "each_type.inc"
};

dmlk_row *dmlk_copy_row(uint32_t type) { return copy_rows[dmlk_bits_type(type)]; }
