#include "slices.h"

static int64_t last_index(const dmlk_slice *slice) { return slice->first + (slice->count - 1) * slice->step; }

dmlk_slice dmlk_enclose(const dmlk_slice *slices, uint32_t count) {
    int64_t first = slices[0].first, last = last_index(&slices[0]);
    uint64_t step = 0;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t begin = slices[i].first, end = last_index(&slices[i]), apart = begin - slices[0].first;
        step = dmlk_gcd(step, (uint64_t)(apart < 0 ? -apart : apart));
        step = dmlk_gcd(step, slices[i].count > 1 ? (uint64_t)slices[i].step : 0);
        first = begin < first ? begin : first;
        last = end > last ? end : last;
    }
    const int64_t apart = step == 0 ? 1 : (int64_t)step;
    return (dmlk_slice){.first = first, .step = apart, .count = (last - first) / apart + 1};
}

uint32_t dmlk_join(dmlk_slice *slices, uint32_t count) {
    if (count < 2) {
        return count;
    }
    const dmlk_slice all = dmlk_enclose(slices, count);
    int64_t together = 0;
    for (uint32_t i = 0; i < count; i++) {
        together += slices[i].count;
    }
    if (together < all.count) {
        return count;
    }
    slices[0] = all;
    return 1;
}
