/* hardmax: out is 1 at one place of each group, and 0 elsewhere.  A group is the elements along some axes; its place
 * is the index of one of them.  Views: places (integers; sizes as out, but 1 along the axes), out (a float type). */
#include "hardmax.h"

#include "kernel.h"
#include "walkers.h"

#define GRAIN (1 << 16) /* outputs worth a thread */

struct job {
    dmlk_lines lines; /* operands: out, places */
    const dmlk_line_visitor *put;
    uint32_t places; /* their type */
    uint64_t one;    /* the bits of 1 in the type of out */
};

struct block {
    dmlk_promoted place;
    uint64_t one;
};

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "hardmax.inc"
#include "each_type.inc"

static void run_block(const dmlk_line_block *lines, void *context) {
    const struct job *job = context;
    struct block block;
    block.one = job->one;
    dmlk_load_promoted(job->places, lines->at[1], lines->strides[1], lines->count, &block.place);
    dmlk_visit_lines(&job->lines, lines, 0, job->lines.along.count, job->put, &block);
}

int dmlk_run_hardmax(const dmlk_call *call) {
    static const dmlk_line_visitor put[] = {[DMLK_UINT8] = {put_along_uint8, put_across_uint8},
                                            [DMLK_UINT16] = {put_along_uint16, put_across_uint16},
                                            [DMLK_UINT32] = {put_along_uint32, put_across_uint32},
                                            [DMLK_UINT64] = {put_along_uint64, put_across_uint64}};
    dmlk_hardmax k;
    if (!dmlk_has_views(call, 2, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *places = &call->views[0], *out = &call->views[1];
    if (dmlk_type_kind(out->type) != DMLK_KIND_FLOAT || dmlk_type_kind(places->type) == DMLK_KIND_FLOAT) {
        return DMLK_NOT_IMPLEMENTED;
    }
    const uint64_t one = out->type == DMLK_FLOAT16   ? dmlk_float_to_float16(1)
                         : out->type == DMLK_FLOAT32 ? dmlk_float_bits(1)
                                                     : dmlk_double_bits(1);
    struct job job = {.put = &put[dmlk_bits_type(out->type)], .places = places->type, .one = one};
    const int status =
        dmlk_lines_init(&job.lines, DMLK_LOGICAL_ORDER, k.axes_mask, (const dmlk_view *[]){out, places}, 2, 1);
    if (status == DMLK_OK) {
        dmlk_for_lines(&job.lines, DMLK_MOST_LINES, GRAIN / job.lines.along.count, run_block, &job);
    }
    return status;
}
