/* segments.h - looks up GPU virtual addresses in the live allocations. */
#ifndef DMLK_SEGMENTS_H
#define DMLK_SEGMENTS_H

#include "dmlk.h"

/* Host address of [address, address + size), or NULL if it is not inside one segment.  Segments are sorted by
 * address. */
static inline uint8_t *dmlk_translate(const dmlk_segment *segments, uint64_t count, uint64_t address, uint64_t size) {
    uint64_t first = 0, end = count;
    while (first < end) { /* the first segment that starts past the address */
        uint64_t middle = first + (end - first) / 2;
        if (segments[middle].address <= address) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    if (first == 0) {
        return NULL;
    }
    const dmlk_segment *segment = &segments[first - 1];
    uint64_t offset = address - segment->address;
    bool inside = offset <= segment->size && size <= segment->size - offset;
    return inside ? segment->host + offset : NULL;
}

#endif
