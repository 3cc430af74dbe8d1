#include "taps.h"

#include <string.h>

static void add_tap(const dmlk_windows *w, const uint64_t *packed_steps, dmlk_taps *taps) {
    const dmlk_place *place = &taps->last;
    const int64_t k = taps->count++;
    taps->number[k] = (int64_t)place->number;
    taps->begin[k] = place->begin;
    taps->end[k] = place->end;
    taps->position[k] = 0;
    for (uint32_t a = DMLK_FIRST_SPATIAL; a < DMLK_WINDOW_AXES; a++) {
        taps->position[k] += (uint64_t)place->at[a] * (uint64_t)w->axes[a].dilation * packed_steps[a];
    }
    taps->whole.begin = place->begin > taps->whole.begin ? place->begin : taps->whole.begin;
    taps->whole.end = dmlk_min(taps->whole.end, place->end);
    taps->is_run = taps->is_run && taps->number[k] == taps->number[0] + k;
}

/* Makes a group of the place `last` and the places after it. */
static bool take(const dmlk_windows *w, const dmlk_window_row *row, const uint64_t *packed_steps, dmlk_taps *taps) {
    taps->count = 0;
    taps->whole = (dmlk_outputs){0, row->count};
    taps->is_run = true;
    do {
        add_tap(w, packed_steps, taps);
        taps->has_more = dmlk_next_place_of(w, row, &taps->last);
    } while (taps->has_more && taps->count < DMLK_MOST_TAPS);
    if (taps->whole.begin >= taps->whole.end) {
        taps->whole = (dmlk_outputs){row->count, row->count};
    }
    return true;
}

bool dmlk_first_taps(const dmlk_windows *w, const dmlk_window_row *row, const uint64_t *packed_steps, dmlk_taps *taps) {
    const dmlk_window_row *known = &taps->row;
    if (known->count == row->count && known->index[w->along] == row->index[w->along] &&
        memcmp(known->begin, row->begin, sizeof row->begin) == 0 && memcmp(known->end, row->end, sizeof row->end) == 0) {
        return true;
    }
    taps->row.count = 0;
    if (!dmlk_first_place_of(w, row, &taps->last)) {
        return false;
    }
    take(w, row, packed_steps, taps);
    if (!taps->has_more) {
        taps->row = *row;
    }
    return true;
}

bool dmlk_next_taps(const dmlk_windows *w, const dmlk_window_row *row, const uint64_t *packed_steps, dmlk_taps *taps) {
    return taps->has_more && take(w, row, packed_steps, taps);
}
