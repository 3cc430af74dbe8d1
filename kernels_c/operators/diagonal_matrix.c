/* diagonal_matrix: the value on some diagonals of the last two axes (element (y, x) is on diagonal x - y); elsewhere
 * the input's elements or, without an input, 0. */
#include "diagonal_matrix.h"

#include "boxes.h"
#include "packed_output.h"
#include "checked.h"

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "diagonal_matrix.inc"
#include "each_type.inc"

typedef void write_part(uint8_t *to, int64_t to_stride, const uint8_t *from, int64_t from_stride, int64_t count,
                        const void *value);

static write_part *const writers[] = {
#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "diagonal_matrix_table.inc"
#include "each_type.inc"
};

struct job {
    dmlk_view in, out; /* in.base NULL: no input */
    dmlk_diagonal_matrix k;
    write_part *write;
};

static int64_t clamp(int64_t x, int64_t high) { return x < 0 ? 0 : x < high ? x : high; }

/* Finds the columns *first .. *end - 1 of row y that are on diagonals begin .. end - 1. */
static void columns_of_row(const dmlk_diagonal_matrix *k, int64_t y, int64_t width, int64_t *first, int64_t *end) {
    *first = clamp(y + k->begin, width);
    *end = clamp(y + k->end, width);
    *end = *end < *first ? *first : *end;
}

/* Columns of a row before, on or after the diagonals; they are copied from `from` or, if that is NULL, set to
 * `value`. */
struct part {
    int64_t first, count;
    const uint8_t *from;
    const void *value;
};

static void parts_of_row(const struct job *job, int64_t *index, struct part *parts) {
    static const uint64_t zero = 0;
    const uint32_t row = job->out.rank - 1;
    int64_t ends[4] = {0, 0, 0, job->out.sizes[row]};
    columns_of_row(&job->k, index[row - 1], ends[3], &ends[1], &ends[2]);
    for (uint32_t i = 0; i < 3; i++) {
        const bool is_value = (i == 1) != (job->k.outside != 0);
        index[row] = ends[i];
        parts[i] = (struct part){.first = ends[i], .count = ends[i + 1] - ends[i]};
        parts[i].from = is_value || job->in.base == NULL ? NULL : dmlk_element(&job->in, index);
        parts[i].value = is_value ? (const void *)&job->k.value : &zero;
    }
    index[row] = 0;
}

static void write_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const uint32_t row = job->out.rank - 1;
    const int64_t stride = job->out.strides[row], bytes = dmlk_type_bytes(job->out.type);
    int64_t work = 0, index[DMLK_MAX_RANK];
    dmlk_row_start(&job->out, row, begin, index);
    for (int64_t r = begin; r < end && !dmlk_stopped(&work, job->out.sizes[row]); r++) {
        struct part parts[3];
        parts_of_row(job, index, parts);
        uint8_t *to = dmlk_element(&job->out, index);
        for (const struct part *p = parts; p < parts + 3; p++) {
            job->write(to + p->first * stride * bytes, stride, p->from, job->in.strides[row], p->count, p->value);
        }
        dmlk_next_row(&job->out, row, index);
    }
}

static void write_packed_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct job *job = context;
    const uint32_t row = job->out.rank - 1;
    int64_t index[DMLK_MAX_RANK];
    dmlk_packed_output o;
    dmlk_packed_begin(&o, &job->out, begin * job->out.sizes[row]);
    dmlk_row_start(&job->out, row, begin, index);
    for (int64_t r = begin; r < end && !dmlk_stopped(&o.work, 1); r++) {
        struct part parts[3];
        parts_of_row(job, index, parts);
        for (const struct part *p = parts; p < parts + 3; p++) {
            if (p->from != NULL) {
                dmlk_packed_copy(&o, p->from, 1, p->count);
            } else {
                dmlk_packed_fill(&o, p->value, p->count);
            }
        }
        dmlk_next_row(&job->out, row, index);
    }
    dmlk_packed_end(&o);
}

/* Swaps rows and columns if elements of a column are nearer to each other. */
static void transpose(struct job *job) {
    const uint32_t x = job->out.rank - 1, y = x - 1;
    if (job->out.sizes[y] == 1 || job->out.strides[y] >= job->out.strides[x]) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        dmlk_view *view = i == 0 ? &job->in : &job->out;
        const int64_t size = view->sizes[x], stride = view->strides[x];
        view->sizes[x] = view->sizes[y];
        view->strides[x] = view->strides[y];
        view->sizes[y] = size;
        view->strides[y] = stride;
    }
    const int64_t begin = job->k.begin;
    job->k.begin = 1 - job->k.end;
    job->k.end = 1 - begin;
}

static bool set_up(const dmlk_call *call, dmlk_diagonal_matrix *k) {
    const int64_t most = INT64_C(1) << 32;
    return call->view_count == 2 && dmlk_get_constants(call, k, sizeof *k) && call->views[1].rank >= 2 &&
           k->begin >= -most && k->begin <= most && k->end >= -most && k->end <= most;
}

static void mark_columns(uint64_t *marks, int64_t from, int64_t end) {
    for (int64_t i = from; i < end; i++) {
        marks[i / 64] |= UINT64_C(1) << i % 64;
    }
}

/* The elements that keep the input's value.  (In a matrix with many rows the marks would form more boxes than anybody
 * can use; the reads are then reported as not known.) */
void dmlk_reads_diagonal_matrix(const dmlk_call *call, uint32_t tensor, dmlk_read_set *reads) {
    dmlk_diagonal_matrix k;
    const dmlk_view *in = &call->views[0];
    if (tensor != 0 || !set_up(call, &k) || in->rank < 2) {
        return;
    }
    const int64_t width = in->sizes[in->rank - 1], height = in->sizes[in->rank - 2];
    const int64_t low = 1 - height, high = width; /* all diagonals */
    const bool none = k.begin >= k.end || k.end <= low || k.begin >= high, all = k.begin <= low && k.end >= high;
    if (none || all) { /* of the matrix's diagonals get the value, or keep it */
        reads->counts[0] = none == (k.outside != 0) ? 0 : reads->counts[0];
        return;
    }
    if (height > 1 << 16) {
        reads->by_data = true;
        reads->marks = NULL;
        return;
    }
    uint64_t *marks = dmlk_begin_marks(call, tensor, reads);
    for (int64_t r = marks == NULL ? 0 : dmlk_view_elements(in) / width; r-- > 0;) {
        int64_t first, end;
        columns_of_row(&k, r % height, width, &first, &end);
        mark_columns(marks, r * width + (k.outside ? first : 0), r * width + (k.outside ? end : first));
        mark_columns(marks, r * width + (k.outside ? 0 : end), (k.outside ? r : r + 1) * width);
    }
}

int dmlk_run_diagonal_matrix(const dmlk_call *call) {
    struct job job;
    if (!dmlk_has_views(call, 2, 1) || !set_up(call, &job.k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *out = &call->views[1];
    const uint32_t width = dmlk_bits_type(out->type);
    if (width == DMLK_UNKNOWN || (in->base != NULL && dmlk_bits_type(in->type) != width)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (in->base != NULL && !dmlk_same_sizes(in, out)) {
        return DMLK_BAD_PACKET;
    }
    job.out = *out;
    job.in = in->base == NULL ? *out : *in;
    job.in.base = in->base;
    job.write = writers[width];
    transpose(&job);
    const int64_t length = job.out.sizes[out->rank - 1], rows = dmlk_view_elements(out) / length;
    const bool packed = !dmlk_in_checked_kernel() && dmlk_is_packed(&job.out) && job.in.strides[out->rank - 1] == 1;
    dmlk_parallel(rows, dmlk_row_parts(rows, length), packed ? write_packed_rows : write_rows, &job);
    return DMLK_OK;
}
