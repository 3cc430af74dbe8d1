#include "selected.h"

#include "selection.h"

#define MAX_AXES (2 * DMLK_MAX_RANK) /* axes of the table and of the indices */

struct axis {
    int64_t size, table_stride, index_stride;
    bool own, indexed;
};

struct axes {
    uint32_t count;
    struct axis axes[MAX_AXES];
};

/* Appends axes [first, end) of the table.  The indices have axes [first_shared, end_shared) of these too, as their
 * axes from `at` on. */
static bool add_table_axes(struct axes *all, const dmlk_view *table, uint32_t first, uint32_t end,
                           uint32_t first_shared, uint32_t end_shared, const dmlk_view *indices, uint32_t at) {
    bool fits = true;
    for (uint32_t d = first; d < end; d++) {
        struct axis *axis = &all->axes[all->count++];
        *axis = (struct axis){.size = table->sizes[d], .table_stride = table->strides[d]};
        if (d >= first_shared && d < end_shared) {
            const uint32_t i = at + d - first_shared;
            axis->indexed = true;
            axis->index_stride = indices->strides[i];
            fits = fits && indices->sizes[i] == axis->size;
        }
    }
    return fits;
}

static void add_own_axes(struct axes *all, const dmlk_view *indices, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        all->axes[all->count++] = (struct axis){
            .size = indices->sizes[i], .index_stride = indices->strides[i], .own = true, .indexed = true};
    }
}

static bool list_axes(const dmlk_selection *k, const dmlk_view *table, const dmlk_view *indices, struct axes *all) {
    const uint32_t limits[] = {k->axis, k->count, k->batch, k->own, k->trailing, k->is_tuple};
    for (int i = 0; i < 6; i++) {
        if (limits[i] > DMLK_MAX_RANK) {
            return false; /* now sums do not overflow */
        }
    }
    const uint32_t used = k->batch + k->own + k->trailing + (k->is_tuple != 0), after = k->axis + k->count;
    if (k->count < 1 || k->batch > k->axis || after + k->trailing > table->rank || used > indices->rank) {
        return false;
    }
    const uint32_t batch = indices->rank - used, own = batch + k->batch, trailing = own + k->own;
    for (uint32_t i = 0; i < batch; i++) {
        if (indices->sizes[i] != 1) {
            return false;
        }
    }
    if (!add_table_axes(all, table, 0, k->axis, k->axis - k->batch, k->axis, indices, batch)) {
        return false;
    }
    add_own_axes(all, indices, own, trailing);
    return add_table_axes(all, table, after, table->rank, after, after + k->trailing, indices, trailing) &&
           (k->is_tuple != 0 ? indices->sizes[indices->rank - 1] == k->count : k->count == 1);
}

static dmlk_view without_axes(const dmlk_view *view) {
    dmlk_view result = *view;
    result.rank = 0;
    return result;
}

static void append(dmlk_view *view, int64_t size, int64_t stride) {
    view->sizes[view->rank] = size;
    view->strides[view->rank++] = stride;
}

static void add_axis(dmlk_selected *s, const struct axis *axis, int64_t value_stride) {
    s->own |= (uint32_t)axis->own << s->values.rank;
    s->indexed |= (uint32_t)axis->indexed << s->values.rank;
    append(&s->table, axis->size, axis->table_stride);
    append(&s->indices, axis->size, axis->index_stride);
    append(&s->values, axis->size, value_stride);
}

bool dmlk_selected_init(const dmlk_selection *k, const dmlk_view *table, const dmlk_view *indices, const dmlk_view *values,
                 dmlk_selected *out) {
    struct axes all;
    all.count = 0;
    if (!list_axes(k, table, indices, &all)) {
        return false;
    }
    *out = (dmlk_selected){.table = without_axes(table),
                           .indices = without_axes(indices),
                           .values = without_axes(values),
                           .count = k->count,
                           .apart = k->is_tuple != 0 ? indices->strides[indices->rank - 1] : 0};
    for (uint32_t i = 0; i < k->count; i++) {
        out->sizes[i] = table->sizes[k->axis + i];
        out->strides[i] = table->strides[k->axis + i];
    }
    const uint32_t most = all.count > values->rank ? all.count : values->rank;
    for (uint32_t i = 0; i < most; i++) { /* right-aligned */
        const uint32_t a = i + all.count - most, v = i + values->rank - most; /* huge: there is no such axis */
        const int64_t size = a < all.count ? all.axes[a].size : 1;
        if (size != (v < values->rank ? values->sizes[v] : 1)) {
            return false;
        }
        if (size > 1) {
            add_axis(out, &all.axes[a], values->strides[v]);
        }
    }
    if (out->values.rank == 0) {
        add_axis(out, &(struct axis){.size = 1}, 0);
    }
    return true;
}

dmlk_view dmlk_view_numbered(const dmlk_view *view) {
    dmlk_view result = *view;
    int64_t step = 1;
    for (uint32_t d = view->rank; d-- > 0;) {
        result.strides[d] = step;
        step *= view->sizes[d];
    }
    return result;
}
