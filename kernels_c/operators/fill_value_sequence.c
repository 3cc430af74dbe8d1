/* fill_value_sequence: out[i] = start + i * delta, where i counts elements in logical order.  Integers wrap.  Floats
 * are computed from i with one product and one sum, in FLOAT32, or in FLOAT64 if that is the type. */
#include "fill_value_sequence.h"

#include "kernel.h"

#define WIDE(x) _Generic((x), uint16_t: dmlk_float16_to_float((uint16_t)(x)), default: (x))

#define DMLK_BODY "fill_value_sequence.inc"
#include "each_type.inc"

typedef void fill_row(uint8_t *at, int64_t stride, int64_t count, int64_t first, const dmlk_fill_value_sequence *k);

static fill_row *const rows[DMLK_INT4 + 1] = {
#define DMLK_BODY "fill_value_sequence_table.inc"
#include "each_type.inc"
};

struct job {
    dmlk_iter iter;
    dmlk_fill_value_sequence k;
    fill_row *row;
};

static void fill_part(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const int64_t stride = dmlk_iter_row_strides(&job->iter)[0];
    int64_t work = 0, count = 0;
    dmlk_cursor cursor;
    dmlk_iter_seek(&job->iter, begin, &cursor);
    while (begin < end && !dmlk_stopped(&work, count)) {
        count = dmlk_min(dmlk_iter_row_left(&job->iter, &cursor), end - begin);
        count = dmlk_min(count, DMLK_WORK_BETWEEN_LOOKS);
        job->row(cursor.at[0], stride, count, begin, &job->k);
        dmlk_iter_advance(&job->iter, &cursor, count);
        begin += count;
    }
}

int dmlk_run_fill_value_sequence(const dmlk_call *call) {
    struct job job;
    if (!dmlk_has_views(call, 1, 0) || !dmlk_get_constants(call, &job.k, sizeof job.k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *out = &call->views[0];
    job.row = out->type <= DMLK_INT4 ? rows[out->type] : NULL;
    if (job.row == NULL) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const int status = dmlk_iter_init(&job.iter, DMLK_LOGICAL_ORDER, &out, 1);
    if (status == DMLK_OK) {
        dmlk_parallel(job.iter.count, dmlk_parts(job.iter.count, 1 << 17), fill_part, &job);
    }
    return status;
}
