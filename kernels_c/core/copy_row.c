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

/* Half of a large cache: what is smaller may be found there by who reads it next. */
#define STREAMED_BYTES (UINT64_C(1) << 24)

int dmlk_copy_elements(const dmlk_view *in, const dmlk_view *out) {
    const bool streams = out->byte_size >= STREAMED_BYTES;
    return dmlk_for_rows((const dmlk_view *[]){in, out}, 2, copy_rows[dmlk_bits_type(in->type)], &streams);
}
