#include "indices.h"

#include "cancellation.h"
#include "promoted.h"
#include "view.h"

int dmlk_find_outside(const dmlk_view *indices, const dmlk_index_use *use, dmlk_bad_index *out) {
    const enum dmlk_kind kind = dmlk_type_kind(indices->type);
    dmlk_iter iter;
    dmlk_cursor cursor;
    uint32_t number = 0; /* of the axis that the current index belongs to */
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
            const int64_t size = use->sizes[number];
            const bool inside = size == 0                  ? true
                                : use->are_lengths         ? values.u[i] <= (uint64_t)size /* (a negative one is larger) */
                                : kind == DMLK_KIND_FLOAT  ? dmlk_float_inside(values.f[i], size)
                                : kind == DMLK_KIND_SIGNED ? dmlk_signed_inside(values.i[i], size)
                                                           : dmlk_unsigned_inside(values.u[i], size);
            if (!inside && out->count++ == 0) {
                out->axis = use->axis + number;
                out->size = (uint64_t)size;
                out->element = (uint64_t)(done + i);
                out->value.u = values.u[i]; /* the bits, whatever the kind */
            }
            number = number + 1 < use->count ? number + 1 : 0;
        }
        dmlk_iter_advance(&iter, &cursor, count);
        done += count;
    }
    out->is_signed = kind == DMLK_KIND_SIGNED;
    out->is_float = kind == DMLK_KIND_FLOAT;
    return DMLK_OK;
}
