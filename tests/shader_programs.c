/* Programs of shaders by hand, with the ABI of dmlk_shader_group: what a compiler would make of a few lines of HLSL. */
#include <string.h>

#include "shader.h"

/* Set by the tests: dmlk_shader_stopped. */
uint32_t (*shader_stopped)(const dmlk_shader_call *call);

static uint32_t load(const dmlk_shader_view *view, uint64_t offset) {
    uint32_t value = 0;
    if (view->base != NULL && offset + 4 <= view->bytes) {
        memcpy(&value, view->base + offset, 4);
    }
    return value;
}

static void store(const dmlk_shader_call *call, const dmlk_shader_view *view, uint64_t offset, uint32_t value,
                  uint32_t x, uint32_t thread) {
    if (view->base != NULL && offset + 4 <= view->bytes) {
        memcpy(view->base + offset, &value, 4);
    } else if ((view->flags & DMLK_SHADER_ROOT) && call->fault->kind == 0) {
        *call->fault = (dmlk_shader_fault){
            .kind = 1, .view = view->id, .offset = offset, .bytes = 4, .access = DMLK_WRITE, .group = {x, 0, 0},
            .thread = thread, .line = 7};
    }
}

/* u0[i] = t0[i] * b0.scale + b0.offset for the 4 threads of each group. */
void scale(const dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared, uint8_t *frames) {
    (void)y, (void)z, (void)shared, (void)frames;
    const dmlk_shader_view *constants = call->ranges[0].views, *in = call->ranges[1].views,
                           *out = call->ranges[2].views;
    for (uint32_t thread = 0; thread < 4; thread++) {
        const uint64_t at = 4 * (4 * (uint64_t)x + thread);
        store(call, out, at, load(in, at) * load(constants, 0) + load(constants, 4), x, thread);
    }
}

/* u0[x] = the number of views of t0, and what the last of them holds. */
void count(const dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared, uint8_t *frames) {
    (void)y, (void)z, (void)shared, (void)frames;
    const dmlk_shader_range *in = &call->ranges[0];
    store(call, call->ranges[1].views, 8 * (uint64_t)x, (uint32_t)in->count, x, 0);
    store(call, call->ranges[1].views, 8 * (uint64_t)x + 4, load(&in->views[in->count - 1], 0), x, 0);
}

/* u0.IncrementCounter(), and u0[old] = x. */
void append(const dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared, uint8_t *frames) {
    (void)y, (void)z, (void)shared, (void)frames;
    const dmlk_shader_view *out = call->ranges[0].views;
    const uint32_t old = __atomic_fetch_add((uint32_t *)(void *)out->counter, 1, __ATOMIC_RELAXED);
    store(call, out, (uint64_t)out->stride * old, x, x, 0);
}

/* ResourceDescriptorHeap[1][x] = ResourceDescriptorHeap[0][x]. */
void indexed(const dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared, uint8_t *frames) {
    (void)y, (void)z, (void)shared, (void)frames;
    store(call, &call->heap->views[1], 4 * (uint64_t)x, load(&call->heap->views[0], 4 * (uint64_t)x), x, 0);
}

/* while (true); */
void endless(const dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared, uint8_t *frames) {
    (void)x, (void)y, (void)z, (void)shared, (void)frames;
    while (!shader_stopped(call)) {
    }
}
