#include "indices.h"

#include "cancellation.h"
#include "promoted.h"
#include "view.h"

int dmlk_find_outside(const dmlk_view *indices, int64_t size, dmlk_bad_index *out) {
    const bool is_signed = dmlk_type_kind(indices->type) == DMLK_KIND_SIGNED;
    dmlk_iter iter;
    dmlk_cursor cursor;
    int64_t work = 0;
    out->count = 0;
    int status = dmlk_iter_init(&iter, DMLK_LOGICAL_ORDER, &indices, 1);
    if (status != DMLK_OK) {
        return status;
    }
    dmlk_iter_seek(&iter, 0, &cursor);
    for (int64_t done = 0; done < iter.count;) {
        const int64_t count = dmlk_min(dmlk_iter_row_left(&iter, &cursor), DMLK_CHUNK);
        if (dmlk_stopped(&work, count)) {
            return DMLK_STOPPED;
        }
        dmlk_promoted values;
        dmlk_load_promoted(indices->type, cursor.at[0], dmlk_iter_row_strides(&iter)[0], count, &values);
        for (int64_t i = 0; i < count; i++) {
            const bool inside = is_signed ? values.i[i] >= -size && values.i[i] < size : values.u[i] < (uint64_t)size;
            if (!inside && out->count++ == 0) {
                out->element = (uint64_t)(done + i);
                out->value.u = values.u[i];
            }
        }
        dmlk_iter_advance(&iter, &cursor, count);
        done += count;
    }
    out->is_signed = is_signed;
    return DMLK_OK;
}
