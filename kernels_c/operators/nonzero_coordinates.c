/* nonzero_coordinates: the coordinates of the elements that are not zero, in logical order. */
#include "nonzero_coordinates.h"

#include "kernel.h"
#include "nonzero.h"

#define DMLK_BODY "nonzero_coordinates.inc"
#include "each_type.inc"

/* Writes the positions of the nonzero elements among `count` <= DMLK_CHUNK; returns their number. */
typedef int64_t find_nonzero(const uint8_t *at, int64_t stride, int64_t count, uint16_t *found);

static find_nonzero *const finders[] = {
#define DMLK_BODY "nonzero_coordinates_table.inc"
#include "each_type.inc"
};

/* Advances a coordinate by `steps` elements in logical order. */
static void advance(const dmlk_view *in, int64_t *index, int64_t steps) {
    for (uint32_t d = in->rank; d-- > 0 && steps > 0;) {
        const int64_t size = in->sizes[d];
        index[d] += steps;
        if (index[d] < size) {
            return;
        }
        steps = index[d] < 2 * size ? 1 : index[d] / size; /* avoids the slow, rarely needed division */
        index[d] -= steps * size;
    }
}

static void write_row(const dmlk_nonzero_table *table, int64_t row, const int64_t *coordinates) {
    uint32_t *to = table->base + row * table->row_stride;
    for (int64_t c = 0; c < table->columns; c++) {
        DMLK_STORE(to, c * table->column_stride, (uint32_t)coordinates[c]);
    }
}

/* Returns the number of rows written. */
static int64_t list_nonzero(const dmlk_view *in, const dmlk_iter *iter, const dmlk_nonzero_table *table) {
    find_nonzero *find = finders[in->type];
    const int64_t stride = dmlk_iter_row_strides(iter)[0];
    const int64_t *last_columns;
    int64_t index[DMLK_MAX_RANK] = {0}; /* coordinates of element `reached` */
    int64_t reached = 0, rows = 0, work = 0;
    dmlk_cursor cursor;
    last_columns = index + in->rank - table->columns;
    dmlk_iter_seek(iter, 0, &cursor);
    for (int64_t position = 0; position < iter->count;) {
        uint16_t found[DMLK_CHUNK];
        int64_t count = dmlk_min(dmlk_iter_row_left(iter, &cursor), DMLK_CHUNK);
        if (dmlk_stopped(&work, count)) {
            break;
        }
        int64_t n = find(cursor.at[0], stride, count, found);
        for (int64_t k = 0; k < n; k++) {
            advance(in, index, position + found[k] - reached);
            reached = position + found[k];
            write_row(table, rows++, last_columns);
        }
        position += count;
        dmlk_iter_advance(iter, &cursor, count);
    }
    return rows;
}

/* Whether `coordinates` has a row per element with the given columns, and `count` a single element. */
static bool outputs_fit(const dmlk_view *in, const dmlk_view *count, const dmlk_view *coordinates, uint32_t columns) {
    const uint32_t rank = coordinates->rank;
    if (rank < 2 || columns < 1 || columns > in->rank || coordinates->sizes[rank - 1] != columns) {
        return false;
    }
    const int64_t rows = coordinates->sizes[rank - 2];
    return rows >= dmlk_view_elements(in) && dmlk_view_elements(coordinates) == rows * columns &&
           dmlk_view_elements(count) == 1;
}

const uint32_t dmlk_outputs_nonzero_coordinates = 2;

int dmlk_run_nonzero_coordinates(const dmlk_call *call) {
    dmlk_nonzero_coordinates k;
    if (!dmlk_has_views(call, 3, 0) || !dmlk_get_constants(call, &k, sizeof k)) {
        return DMLK_BAD_PACKET;
    }
    const dmlk_view *in = &call->views[0], *count = &call->views[1], *coordinates = &call->views[2];
    if (count->type != DMLK_UINT32 || coordinates->type != DMLK_UINT32) {
        return DMLK_NOT_IMPLEMENTED;
    }
    if (!outputs_fit(in, count, coordinates, k.columns)) {
        return DMLK_BAD_PACKET;
    }
    dmlk_iter iter;
    int status = dmlk_iter_init(&iter, DMLK_LOGICAL_ORDER, &in, 1);
    if (status != DMLK_OK) {
        return status;
    }
    const uint32_t rank = coordinates->rank;
    const dmlk_nonzero_table table = {.base = (uint32_t *)coordinates->base,
                         .columns = k.columns,
                         .row_stride = coordinates->strides[rank - 2],
                         .column_stride = coordinates->strides[rank - 1]};
#ifdef DMLK_CHECKED
    int64_t rows = list_nonzero(in, &iter, &table);
#else
    int64_t rows = dmlk_list_nonzero(in, &iter, &table);
    rows = rows < 0 ? list_nonzero(in, &iter, &table) : rows;
#endif
    DMLK_STORE((uint32_t *)count->base, 0, (uint32_t)rows);
    dmlk_define_part(call, 2, rank - 2, rows);
    if (call->flags & DMLK_FLAG_POISON) {
        int64_t poison[DMLK_MAX_RANK];
        const uint32_t pattern = DMLK_POISON_BYTE * UINT32_C(0x01010101);
        for (uint32_t d = 0; d < DMLK_MAX_RANK; d++) {
            poison[d] = pattern;
        }
        int64_t work = 0;
        for (; rows < coordinates->sizes[rank - 2] && !dmlk_stopped(&work, k.columns); rows++) {
            write_row(&table, rows, poison);
        }
    }
    return DMLK_OK;
}
