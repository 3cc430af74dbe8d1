/* views.c - descriptors as the views that a shader's code reads. */
#include <string.h>

#include "segments.h"
#include "shader.h"

static uint32_t flags_of(const dmlk_descriptor *descriptor) {
    const uint32_t raw = descriptor->flags & DMLK_DESCRIPTOR_RAW ? DMLK_SHADER_RAW : 0;
    switch (descriptor->kind) {
    case DMLK_DESCRIPTOR_CBV: return DMLK_SHADER_CBV;
    case DMLK_DESCRIPTOR_SRV: return DMLK_SHADER_SRV | raw;
    case DMLK_DESCRIPTOR_UAV: return DMLK_SHADER_UAV | raw;
    default: return DMLK_SHADER_UNUSABLE;
    }
}

/* Whether a view of that format, stride and flags is what the shader declares; a null view has none of them. */
static bool fits(const dmlk_descriptor *descriptor, const dmlk_shader_want *want) {
    const bool is_raw = (descriptor->flags & DMLK_DESCRIPTOR_RAW) != 0;
    if (want->kind == DMLK_SHADER_ANY) {
        return true;
    }
    if (descriptor->kind != want->descriptor) {
        return false;
    }
    if (descriptor->address == 0) {
        return true;
    }
    switch (want->kind) {
    case DMLK_SHADER_KIND_RAW: return is_raw;
    case DMLK_SHADER_KIND_STRUCTURED:
        return !is_raw && descriptor->stride == want->stride && (!want->has_counter || descriptor->counter_address != 0);
    case DMLK_SHADER_KIND_TYPED:
        return !is_raw && descriptor->stride == 0 && descriptor->format < 256 && want->sizes[descriptor->format] != 0;
    default: return true;
    }
}

static uint32_t stride_of(const dmlk_descriptor *descriptor, const dmlk_shader_want *want) {
    if (descriptor->stride != 0 || want->sizes == NULL || (descriptor->flags & DMLK_DESCRIPTOR_RAW)) {
        return descriptor->stride;
    }
    return descriptor->format < 256 ? want->sizes[descriptor->format] : 0;
}

static dmlk_shader_view view_of(const dmlk_descriptor *descriptor, const dmlk_segment *segments, uint64_t segment_count,
                                const dmlk_shader_want *want, uint32_t id) {
    dmlk_shader_view view = {.flags = flags_of(descriptor), .id = id};
    if (view.flags == DMLK_SHADER_UNUSABLE || !fits(descriptor, want)) {
        view.flags = DMLK_SHADER_UNUSABLE;
        return view;
    }
    if (descriptor->address == 0) {
        return view;
    }
    view.base = dmlk_translate(segments, segment_count, descriptor->address, descriptor->size);
    if (descriptor->counter_address != 0) {
        view.counter = dmlk_translate(segments, segment_count, descriptor->counter_address, sizeof(uint32_t));
    }
    if (view.base == NULL || (descriptor->counter_address != 0 && view.counter == NULL)) {
        return (dmlk_shader_view){.flags = DMLK_SHADER_UNUSABLE, .id = id};
    }
    view.bytes = descriptor->size;
    view.stride = stride_of(descriptor, want);
    view.format = view.flags & DMLK_SHADER_RAW ? 0 : descriptor->format;
    return view;
}

uint64_t dmlk_shader_views(const uint8_t *descriptors, uint64_t count, const dmlk_segment *segments,
                           uint64_t segment_count, const dmlk_shader_want *want, uint32_t first_id,
                           dmlk_shader_view *views) {
    uint64_t usable = 0;
    for (uint64_t i = 0; i < count; i++) {
        dmlk_descriptor descriptor;
        memcpy(&descriptor, descriptors + i * sizeof descriptor, sizeof descriptor);
        views[i] = view_of(&descriptor, segments, segment_count, want, first_id + (uint32_t)i);
        usable += views[i].flags != DMLK_SHADER_UNUSABLE;
    }
    return usable;
}
