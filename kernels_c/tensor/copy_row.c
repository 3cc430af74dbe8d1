#include "kernel.h"
#include "staged_rows.h"

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "copy_row.inc"
#include "each_type.inc"

static dmlk_row *const copy_rows[] = {
#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "row_table.inc"
#include "each_type.inc"
};

static bool is_backward(const dmlk_view *in) {
    bool backward = false;
    for (uint32_t d = 0; d < in->rank; d++) {
        backward = backward || (in->strides[d] < 0 && in->sizes[d] > 1);
    }
    return backward;
}

int dmlk_copy_elements(const dmlk_view *in, const dmlk_view *out) {
    const dmlk_view *const views[] = {in, out};
    if (is_backward(in)) {
        return dmlk_indexed_rows(views, 2, copy_rows[dmlk_bits_type(in->type)], NULL);
    }
#ifdef DMLK_CHECKED
    return dmlk_for_rows(views, 2, copy_rows[dmlk_bits_type(in->type)], NULL);
#else
    return dmlk_staged_rows(views, 2, NULL, NULL);
#endif
}
