/* run.c - the groups of a dispatch over the threads of the pool. */
#include "cancellation.h"
#include "parallel.h"
#include "scratch.h"
#include "shader.h"

struct dispatch {
    const dmlk_shader_call *call;
    atomic_bool is_out_of_memory;
};

static bool has_fault(const dmlk_shader_call *call) {
    return call->fault != NULL && __atomic_load_n(&call->fault->kind, __ATOMIC_RELAXED) != 0;
}

static void run_groups(int64_t begin, int64_t end, int part, void *context) {
    struct dispatch *dispatch = context;
    const dmlk_shader_call *call = dispatch->call;
    (void)part;
    uint8_t *shared = dmlk_take((int64_t)(call->shared_bytes + 64));
    uint8_t *frames = dmlk_take((int64_t)(call->frame_bytes + 64));
    int64_t work = DMLK_WORK_BETWEEN_LOOKS;
    if (shared == NULL || frames == NULL) {
        atomic_store(&dispatch->is_out_of_memory, true);
        end = begin;
    }
    for (int64_t i = begin; i < end && !has_fault(call) && !dmlk_stopped(&work, 1024); i++) {
        const uint64_t row = (uint64_t)i / call->groups[0];
        call->run(call, (uint32_t)((uint64_t)i % call->groups[0]), (uint32_t)(row % call->groups[1]),
                  (uint32_t)(row / call->groups[1]), shared, frames);
    }
    dmlk_give(frames);
    dmlk_give(shared);
}

int dmlk_run_shader(const dmlk_shader_call *call) {
    const int64_t groups = (int64_t)call->groups[0] * call->groups[1] * call->groups[2];
    struct dispatch dispatch = {.call = call};
    dmlk_watch watch;
    dmlk_watch_begin(&watch);
    dmlk_parallel(groups, dmlk_parts(groups, 8), run_groups, &dispatch);
    const bool stopped = dmlk_watch_end(&watch);
    if (has_fault(call)) {
        return DMLK_OUT_OF_RANGE;
    }
    return stopped ? DMLK_STOPPED : atomic_load(&dispatch.is_out_of_memory) ? DMLK_OUT_OF_MEMORY : DMLK_OK;
}
