/* watch_parts.c - a watched dispatch on several threads: each runs a part of the groups, and a watch of its own.
 *
 * Groups that neither race nor access a buffer atomically do the same in any order.  So if no part finds anything, and
 * no byte that one part writes is touched by another one, the groups would have done just this one after the other:
 * nothing is found, and the footprint is that of all parts together.  Otherwise the dispatch is doubtful: it is run once
 * more, one group after the other, which says what is found (decision 0050). */
#include <stdlib.h>

#include "watch_state.h"

bool dmlk_divide_watch(dmlk_shader_watch *watch, int parts) {
    dmlk_shader_watch_options options = watch->options;
    options.most_bytes /= (uint64_t)parts;
    options.in_parts = 0;
    watch->parts = calloc((size_t)parts, sizeof *watch->parts);
    while (watch->parts != NULL && watch->part_count < parts) {
        dmlk_shader_watch *part = dmlk_shader_watch_new(&options);
        if (part == NULL) {
            break;
        }
        watch->parts[watch->part_count++] = part;
    }
    return watch->part_count == parts;
}

bool dmlk_is_in_parts(const dmlk_shader_watch *watch) { return watch != NULL && watch->options.in_parts != 0; }

dmlk_shader_watch *dmlk_watch_of_part(dmlk_shader_watch *watch, int part) {
    return watch == NULL || watch->part_count == 0 ? watch : watch->parts[part];
}

bool dmlk_has_doubt(const dmlk_shader_watch *watch) {
    return watch->result.count > 0 || watch->result.dropped > 0 || watch->result.unchecked > 0 || watch->has_atomics;
}

void dmlk_join_watch(dmlk_shader_watch *watch, bool has_ended) {
    bool is_sure = has_ended;
    for (int i = 0; i < watch->part_count; i++) {
        dmlk_shader_watch *part = watch->parts[i];
        dmlk_shader_watch_result result;
        dmlk_shader_watch_finish(part, &result);
        watch->bytes += result.bytes;
        is_sure = is_sure && !dmlk_has_doubt(part) && dmlk_join_pages(&watch->pages, &part->pages);
    }
    watch->result.is_doubtful = !is_sure;
}

void dmlk_free_parts(dmlk_shader_watch *watch) {
    for (int i = 0; i < watch->part_count; i++) {
        dmlk_shader_watch_free(watch->parts[i]);
    }
    free(watch->parts);
}
