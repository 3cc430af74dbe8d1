/* selection: gather and scatter, which copy the elements that indices select, bit by bit.
 *   gather   views: table, indices, values.  values[n] = table[indices[n]]; an index out of range selects the nearest
 *            element.
 *   scatter  views: input, indices, values, table.  table = input; then table[indices[n]] = values[n]; an index out of
 *            range selects nothing.  If an element is selected more than once, the last value in logical order remains,
 *            whatever the number of threads; or the last value in a random order, if the packet has a seed for one. */
#include "selection.h"

#include "ahead.h"
#include "gather_row.h"
#include "nontemporal.h"
#include "resolve.h"

struct job {
    dmlk_selected selected;
    dmlk_resolve *resolve;
    bool streams; /* scattered values bypass the caches */
    bool is_far;  /* the elements that an index may select exceed the first-level cache */
};

#ifndef DMLK_CHECKED
const struct dmlk_selection_form *dmlk_selection_form;

/* Gathers as many of `count` elements of a row as the form for this CPU can; returns their number. */
static int64_t gather_vectors(const dmlk_selected *s, const void *table, int64_t step, const uint8_t *indices,
                              int64_t count, int64_t bytes, void *values) {
    const dmlk_gather_row row = {table, indices, step, s->sizes[0], s->strides[0], count, values};
    const bool fits = s->count == 1 && row.size <= UINT32_MAX && row.stride >= 0 && row.stride <= UINT32_MAX;
    return fits && bytes >= 4 && dmlk_selection_form != NULL
               ? dmlk_selection_form->gather(&row, s->indices.type, bytes)
               : 0;
}
#endif

#define DMLK_ONLY_UNSIGNED
#define DMLK_BODY "selection.inc"
#include "each_type.inc"

static dmlk_row *const gather_rows[] = {[DMLK_UINT8] = gather_uint8,
                                        [DMLK_UINT16] = gather_uint16,
                                        [DMLK_UINT32] = gather_uint32,
                                        [DMLK_UINT64] = gather_uint64};
static dmlk_row *const scatter_rows[] = {[DMLK_UINT8] = scatter_uint8,
                                         [DMLK_UINT16] = scatter_uint16,
                                         [DMLK_UINT32] = scatter_uint32,
                                         [DMLK_UINT64] = scatter_uint64};

static int set_up(const dmlk_call *call, const dmlk_view *table, const dmlk_view *indices, const dmlk_view *values,
                  struct job *job) {
    dmlk_selection k;
    if (!dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    job->resolve = dmlk_resolve_of(indices->type);
    const uint32_t width = dmlk_bits_type(table->type);
    if (job->resolve == NULL || width == DMLK_UNKNOWN || width != dmlk_bits_type(values->type)) {
        return DMLK_NOT_IMPLEMENTED;
    }
    return dmlk_selected_init(&k, table, indices, values, &job->selected) ? DMLK_OK : DMLK_BAD_PACKET;
}

/* --- gather --- */

#ifndef DMLK_CHECKED

#define SHORT_ROW 64       /* bytes; elements of shorter rows are gathered one by one */
#define LONG_ROW (1 << 16) /* bytes; a longer row is worth several threads by itself */
#define AHEAD 2       /* rows between the copied row and the prefetched one */
#define FETCHED 1024  /* bytes of a row that are prefetched */
#define STREAMED 1024 /* bytes; shorter rows do not bypass the caches, as they fill too many cache lines in part */

/* Rows that are contiguous in the table and in the values, with the same indices for all their elements. */
struct row_gather {
    const struct job *job;
    dmlk_iter rows; /* from the first element of a row to that of the next */
    int64_t bytes;  /* of a row */
    bool streams;
};

static void gather_some_rows(int64_t begin, int64_t end, int part, void *context) {
    (void)part;
    const struct row_gather *g = context;
    const int64_t width = g->rows.bytes[0];
    int64_t offsets[DMLK_CHUNK], work = 0, count = 0;
    dmlk_cursor cursor;
    dmlk_iter_seek(&g->rows, begin, &cursor);
    for (; begin < end && !dmlk_stopped(&work, count * g->bytes / width); begin += count) {
        const int64_t *strides = dmlk_iter_row_strides(&g->rows);
        count = dmlk_min(dmlk_min(dmlk_iter_row_left(&g->rows, &cursor), end - begin), DMLK_CHUNK);
        g->job->resolve(&g->job->selected, cursor.at[1], strides[1], count, false, offsets);
        for (int64_t i = 0; i < count; i++) {
            const uint8_t *from = cursor.at[0] + (i * strides[0] + offsets[i]) * width;
            const int64_t next = dmlk_min(i + AHEAD, count - 1);
            const uint8_t *fetched = cursor.at[0] + (next * strides[0] + offsets[next]) * width;
            uint8_t *to = cursor.at[2] + i * strides[2] * width;
            for (int64_t b = 0; b < dmlk_min(g->bytes, FETCHED); b += DMLK_LINE) {
                dmlk_fetch_line(fetched + b);
            }
            if (g->streams) {
                dmlk_stream_copy(to, from, (size_t)g->bytes);
            } else {
                dmlk_fetch_output(to + DMLK_FETCHED_OUTPUT, dmlk_min(g->bytes, FETCHED));
                memmove(to, from, (size_t)g->bytes);
            }
        }
        dmlk_iter_advance(&g->rows, &cursor, count);
    }
    dmlk_streamed();
}

/* Gathers row by row, if the last axes form such rows and there is no order in which elements are closer; otherwise
 * returns false. */
static bool gather_rows_of_bytes(const struct job *job, int *status) {
    const dmlk_selected *s = &job->selected;
    dmlk_view views[] = {s->table, s->indices, s->values};
    int64_t elements = 1;
    uint32_t rank = s->table.rank;
    while (rank > 1 && s->table.strides[rank - 1] == elements && s->values.strides[rank - 1] == elements &&
           s->indices.strides[rank - 1] == 0) {
        elements *= s->table.sizes[--rank];
    }
    const int64_t bytes = elements * dmlk_type_bytes(s->table.type);
    if (bytes < SHORT_ROW || bytes > LONG_ROW) {
        return false;
    }
    struct row_gather g = {.job = job, .bytes = bytes};
    g.streams = bytes >= STREAMED && dmlk_stream_pays(dmlk_view_elements(&s->values), dmlk_type_bytes(s->values.type));
    for (int k = 0; k < 3; k++) {
        views[k].rank = rank;
    }
    *status = dmlk_iter_init(&g.rows, DMLK_ANY_ORDER, (const dmlk_view *[]){&views[0], &views[1], &views[2]}, 3);
    if (*status == DMLK_OK) {
        const int parts = dmlk_parts(g.rows.count, DMLK_COPY_WORTH_A_THREAD / bytes);
        dmlk_parallel(g.rows.count, parts, gather_some_rows, &g);
    }
    return true;
}

#endif

static int gather(const dmlk_call *call) {
    struct job job;
    if (!dmlk_has_views(call, 3, 0)) {
        return DMLK_BAD_PACKET;
    }
    int status = set_up(call, &call->views[0], &call->views[1], &call->views[2], &job);
    if (status != DMLK_OK) {
        return status;
    }
#ifndef DMLK_CHECKED
    if (gather_rows_of_bytes(&job, &status)) {
        return status;
    }
#endif
    const dmlk_selected *s = &job.selected;
    dmlk_row *row = gather_rows[dmlk_bits_type(s->table.type)];
    return dmlk_indexed_rows((const dmlk_view *[]){&s->table, &s->indices, &s->values}, 3, row, &job);
}

/* --- scatter --- */

/* An element of the table can only be selected twice along the indices' own axes: the places.  All other axes are
 * lanes, which have no element in common and are split between threads. */
struct scatter {
    struct job job;
    dmlk_iter places, lanes;
    dmlk_row *row;
    bool lane_by_lane;
    int64_t first, step; /* the order of the places: first, first + step, ..., modulo their number */
};

/* Calls the row for elements [begin, end) of `iter`, starting at the given position of each operand. */
static void run_rows(const struct scatter *s, dmlk_iter *iter, uint8_t *const *at, int64_t begin, int64_t end,
                     int64_t *work) {
    dmlk_cursor cursor;
    int64_t count = 1;
    memcpy(iter->base, at, iter->operands * sizeof iter->base[0]);
    dmlk_iter_seek(iter, begin, &cursor);
    while (begin < end && !dmlk_stopped(work, count)) {
        count = dmlk_min(dmlk_iter_row_left(iter, &cursor), end - begin);
        count = dmlk_min(count, DMLK_WORK_BETWEEN_LOOKS);
        s->row(cursor.at, dmlk_iter_row_strides(iter), count, &s->job);
        dmlk_iter_advance(iter, &cursor, count);
        begin += count;
    }
}

static void write_lane_by_lane(const struct scatter *s, int64_t begin, int64_t end) {
    dmlk_iter places = s->places;
    dmlk_cursor lane;
    int64_t work = 0;
    dmlk_iter_seek(&s->lanes, begin, &lane);
    for (; begin < end && !dmlk_stopped(&work, 1); begin++) {
        run_rows(s, &places, lane.at, 0, places.count, &work);
        dmlk_iter_advance(&s->lanes, &lane, 1);
    }
}

static void write_place_by_place(const struct scatter *s, int64_t begin, int64_t end) {
    dmlk_iter lanes = s->lanes;
    dmlk_cursor place;
    int64_t work = 0, number = s->first;
    dmlk_iter_seek(&s->places, number, &place);
    for (int64_t left = s->places.count; left > 0 && !dmlk_stopped(&work, 1); left--) {
        run_rows(s, &lanes, place.at, begin, end, &work);
        if (s->step == 1 && number + 1 < s->places.count) {
            dmlk_iter_advance(&s->places, &place, 1);
            number++;
        } else {
            number = number < s->places.count - s->step ? number + s->step : number - (s->places.count - s->step);
            dmlk_iter_seek(&s->places, number, &place);
        }
    }
}

static void write_lanes(int64_t begin, int64_t end, int part, void *context) {
    const struct scatter *s = context;
    (void)part;
    s->lane_by_lane ? write_lane_by_lane(s, begin, end) : write_place_by_place(s, begin, end);
    dmlk_streamed();
}

/* Sets the order of the places: logical, or a random one of about as many orders as there are places. */
static void draw_order(struct scatter *s, uint32_t drawn) {
    const uint64_t count = (uint64_t)s->places.count;
    s->first = 0;
    s->step = 1;
    if (drawn > 0 && count > 1) {
        const uint64_t random = drawn * UINT64_C(0x9E3779B97F4A7C15);
        uint64_t step = 1 + (random >> 20) % (count - 1);
        while (dmlk_gcd(step, count) != 1) { /* count - 1 is coprime */
            step = step + 1 < count ? step + 1 : 1;
        }
        s->first = (int64_t)((random >> 40) % count);
        s->step = (int64_t)step;
    }
}

#define SHORT_RUN 8 /* elements */

/* Whether the places are the inner loop: it should not be short, and its values should be close to each other. */
static bool is_lane_by_lane(const dmlk_iter *places, const dmlk_iter *lanes) {
    const int64_t place_run = places->sizes[places->rank - 1], lane_run = lanes->sizes[lanes->rank - 1];
    return place_run < SHORT_RUN || lane_run < SHORT_RUN
               ? place_run > lane_run
               : dmlk_iter_row_strides(places)[2] < dmlk_iter_row_strides(lanes)[2];
}

#define NEAR_BYTES (1 << 15) /* bytes that fit a first-level cache */

/* The bytes from the first to the last element that indices may select. */
static int64_t extent(const dmlk_selected *s) {
    int64_t elements = 1;
    for (uint32_t q = 0; q < s->count; q++) {
        elements += (s->sizes[q] - 1) * s->strides[q];
    }
    return elements * dmlk_type_bytes(s->table.type);
}

#define WORTH_A_THREAD (INT64_C(1) << 15) /* writes */

static int scatter(const dmlk_call *call) {
    struct scatter s;
    if (!dmlk_has_views(call, 4, 0)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *input = &call->views[0], *out = &call->views[3];
    int status = set_up(call, out, &call->views[1], &call->views[2], &s.job);
    if (status != DMLK_OK) {
        return status;
    }
    if (!dmlk_same_sizes(input, out)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_selected *selected = &s.job.selected;
    const dmlk_view *views[] = {&selected->table, &selected->indices, &selected->values};
    dmlk_view places[3], lanes[3];
    for (int k = 0; k < 3; k++) {
        places[k] = dmlk_view_select(views[k], selected->own);
        lanes[k] = dmlk_view_select(views[k], ~selected->own);
    }
    status = dmlk_bits_type(input->type) != dmlk_bits_type(out->type) ? DMLK_NOT_IMPLEMENTED : DMLK_OK;
    if (status == DMLK_OK) {
        status = dmlk_iter_init(&s.places, DMLK_LOGICAL_ORDER, (const dmlk_view *[]){&places[0], &places[1], &places[2]}, 3);
    }
    if (status == DMLK_OK) {
        status = dmlk_iter_init(&s.lanes, DMLK_ANY_ORDER, (const dmlk_view *[]){&lanes[0], &lanes[1], &lanes[2]}, 3);
    }
    if (status == DMLK_OK) {
        status = dmlk_copy_elements(input, out);
    }
    if (status == DMLK_OK) {
        draw_order(&s, call->flags >> DMLK_FLAG_ORDER_SHIFT);
        s.job.streams = dmlk_stream_pays(dmlk_view_elements(out), dmlk_type_bytes(out->type));
        s.job.is_far = extent(selected) > NEAR_BYTES;
        s.row = scatter_rows[dmlk_bits_type(out->type)];
        s.lane_by_lane = s.step == 1 && s.first == 0 && is_lane_by_lane(&s.places, &s.lanes);
        dmlk_parallel(s.lanes.count, dmlk_parts(s.lanes.count, WORTH_A_THREAD / s.places.count), write_lanes, &s);
    }
    return status;
}

#define SELECT(name, run) \
    int DMLK_RUN(name)(const dmlk_call *call) { return run(call); }
#include "functions.inc"
