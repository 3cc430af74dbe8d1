#include "kernel.h"
#include "staged_rows.h"

#ifdef DMLK_CHECKED

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "copy_row.inc"
#include "each_type.inc"

static dmlk_row *const copy_rows[] = {
#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "row_table.inc"
#include "each_type.inc"
};

int dmlk_copy_elements(const dmlk_view *in, const dmlk_view *out) {
    return dmlk_for_rows((const dmlk_view *[]){in, out}, 2, copy_rows[dmlk_bits_type(in->type)], NULL);
}

#else

int dmlk_copy_elements(const dmlk_view *in, const dmlk_view *out) {
    return dmlk_staged_rows((const dmlk_view *[]){in, out}, 2, NULL, NULL);
}

#endif
