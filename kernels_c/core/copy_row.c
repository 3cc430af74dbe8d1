#include "kernel.h"
#include "stream.h"

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "copy_row.inc"
#include "each_type.inc"

static dmlk_row *const copy_rows[] = {
#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "row_table.inc"
#include "each_type.inc"
};

int dmlk_copy_elements(const dmlk_view *in, const dmlk_view *out) {
    const bool streams = dmlk_stream_pays(dmlk_view_elements(out) * dmlk_type_bytes(out->type));
    return dmlk_for_rows((const dmlk_view *[]){in, out}, 2, copy_rows[dmlk_bits_type(in->type)], &streams);
}
