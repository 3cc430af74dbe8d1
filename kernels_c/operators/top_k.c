/* top_k: the K largest or smallest elements of each line along an axis, in order, and their indices.  Of equal
 * elements the lower index comes first; NaNs come last.  Values are copied bit by bit.
 * Views: in, values, indices (UINT32 or UINT64); the sizes are those of in, except for K along the axis.
 *
 * Elements are mapped to unsigned keys, so that the best element has the lowest key.  Candidates are collected in a
 * buffer for more than K of them (for a small K: exactly K, which stay sorted).  When it is full, the best K are
 * kept, and the worst of these is the bound for later elements: then few elements pass. */
#include "top_k.h"

#include <stdatomic.h>

#include "kernel.h"
#include "scratch.h"
#include "walkers.h"

#ifndef DMLK_CHECKED
#include "sorted_words.h"

const struct dmlk_top_k_form *dmlk_top_k_form;
#endif

#define SHORT 32          /* K; up to this K, the candidates are kept sorted */
#define SPARE 256         /* for a larger K, the buffer has room for at least this many more candidates */
#define GROUP 16          /* elements that are skipped together if none of them is better than the bound */
#define NEAR (1 << 18)    /* bytes of candidates that stay in the second-level cache */
#define GRAIN (1 << 16)   /* elements worth a thread */

struct job {
    const struct methods *methods;
    int64_t k, room;         /* room: the most candidates of a line */
    bool by_words;           /* candidates are words of 64 bits (sorted_words.h); room is a multiple of DMLK_WORDS */
    int64_t strides[3];      /* of the operands, along the axis */
    uint32_t index_type;
    uint64_t flip, infinity; /* bits to flip in keys; the bits of infinity, 0 for integers */
    dmlk_lines lines;        /* operands: in, values, indices */
    atomic_bool no_memory;
};

/* The lines being processed. */
struct block {
    const struct job *job;
    void *entries; /* `room` entries for sorting, then `room` entries for each line */
    uint64_t bounds[DMLK_CHUNK]; /* an array of the keys' type: keys above the bound are not candidates */
    bool is_closed[DMLK_CHUNK];  /* the bound is the best key: no later element is a candidate */
    int64_t counts[DMLK_CHUNK];  /* of candidates */
};

struct methods {
    int64_t entry_bytes;
    dmlk_line_visitor take;
    void (*start)(struct block *block, int64_t lines);
    void (*finish)(struct block *block, int64_t line, const uint8_t *in, uint8_t *values, uint8_t *indices);
};

/* Sizes are UINTs, so an index fits 32 bits. */
typedef uint32_t index_uint8, index_uint16, index_uint32;
typedef uint64_t index_uint64;
typedef struct { uint32_t index, key; } entry_uint8, entry_uint16, entry_uint32;
typedef struct { uint64_t key, index; } entry_uint64;

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "top_k.inc"
#include "each_type.inc"

#define METHODS(type) {sizeof(entry_##type), {take_along_##type, take_across_##type}, start_##type, finish_##type}
static const struct methods methods_of[] = {[DMLK_UINT8] = METHODS(uint8),
                                            [DMLK_UINT16] = METHODS(uint16),
                                            [DMLK_UINT32] = METHODS(uint32),
                                            [DMLK_UINT64] = METHODS(uint64)};

const uint32_t dmlk_outputs_top_k = 2;

static void choose_keys(struct job *job, uint32_t type, bool largest) {
    const uint32_t bits = dmlk_type_bits(type);
    const enum dmlk_kind kind = dmlk_type_kind(type);
    job->flip = (kind == DMLK_KIND_SIGNED ? UINT64_C(1) << (bits - 1) : 0) ^ (largest ? UINT64_MAX : 0);
    job->infinity = kind != DMLK_KIND_FLOAT ? 0 : bits == 16 ? 0x7c00 : bits == 32 ? 0x7f800000 : 0x7ff0000000000000;
    job->methods = &methods_of[dmlk_bits_type(type)];
}

static void run_block(const dmlk_line_block *lines, void *context) {
    struct job *job = context;
    struct block block;
    block.job = job;
    block.entries = dmlk_take((lines->count + 1) * job->room * job->methods->entry_bytes);
    if (block.entries == NULL) {
        atomic_store(&job->no_memory, true);
        return;
    }
    job->methods->start(&block, lines->count);
    dmlk_visit_lines(&job->lines, lines, 0, job->lines.along.count, &job->methods->take, &block);
    for (int64_t line = 0; line < lines->count && !dmlk_stopped(lines->work, 0); line++) {
        uint8_t *at[3];
        for (uint32_t k = 0; k < 3; k++) {
            at[k] = lines->at[k] + line * lines->strides[k] * job->lines.each.bytes[k];
        }
        job->methods->finish(&block, line, at[0], at[1], at[2]);
    }
    dmlk_give(block.entries);
}

int dmlk_run_top_k(const dmlk_call *call) {
    dmlk_top_k k;
    if (!dmlk_has_views(call, 3, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *values = &call->views[1], *indices = &call->views[2];
    if (dmlk_type_bytes(in->type) == 0 || in->type != values->type ||
        (indices->type != DMLK_UINT32 && indices->type != DMLK_UINT64)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (k.axis >= in->rank || !dmlk_same_sizes(values, indices) || values->rank != in->rank ||
        values->sizes[k.axis] > in->sizes[k.axis] || in->sizes[k.axis] > (INT64_C(1) << 32)) {
        return DMLK_BAD_PACKET;
    }
    struct job job = {.k = values->sizes[k.axis], .index_type = indices->type};
    for (uint32_t i = 0; i < 3; i++) {
        job.strides[i] = call->views[i].strides[k.axis];
    }
    choose_keys(&job, in->type, k.largest != 0);
    const int status = dmlk_lines_init(&job.lines, DMLK_LOGICAL_ORDER, UINT32_C(1) << k.axis,
                                       (const dmlk_view *[]){in, values, indices}, 3, 1);
    if (status != DMLK_OK) {
        return status;
    }
    const int64_t n = job.lines.along.count, spare = job.k > SPARE ? job.k : SPARE;
    job.room = job.k <= SHORT ? job.k : dmlk_min(n, job.k + spare);
#ifndef DMLK_CHECKED
    job.by_words = job.k <= SHORT && dmlk_top_k_form != NULL && job.methods->entry_bytes == sizeof(uint64_t);
    job.room = job.by_words ? (job.k + DMLK_WORDS - 1) / DMLK_WORDS * DMLK_WORDS : job.room;
#endif
    const int64_t together = dmlk_lines_together(&job.lines, job.room * job.methods->entry_bytes, NEAR);
    dmlk_for_lines(&job.lines, together, GRAIN / n, run_block, &job);
    return atomic_load(&job.no_memory) ? DMLK_OUT_OF_MEMORY : DMLK_OK;
}
