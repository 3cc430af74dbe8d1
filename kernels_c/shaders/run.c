/* run.c - runs the groups of a dispatch on the threads of the pool. */
#include "shader.h"

#include <string.h>

#include "cancellation.h"
#include "parallel.h"
#include "scratch.h"
#include "watch.h"
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

typedef struct shader_run {
    const dmlk_shader_call *call;
    uint64_t groups;
    uint64_t step, start; /* group i of the order is group (start + step * i) % groups */
    _Atomic bool failed, doubtful; /* doubtful: see watch_parts.c */
} shader_run;

#define FTZ_DAZ 0x8040u

/* Denormal numbers are zero from here on; returns what restores it. */
static uint64_t flush_denormals(bool flush) {
#if defined(__SSE2__)
    const uint32_t before = _mm_getcsr();
    _mm_setcsr(flush ? before | FTZ_DAZ : before & ~FTZ_DAZ);
    return before;
#elif defined(__aarch64__)
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    const uint64_t fz = UINT64_C(1) << 24;
    __asm__ volatile("msr fpcr, %0" : : "r"(flush ? before | fz : before & ~fz));
    return before;
#else
    (void)flush;
    return 0;
#endif
}

static void restore(uint64_t before) {
#if defined(__SSE2__)
    _mm_setcsr((uint32_t)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}

static bool has_fault(const dmlk_shader_call *call) {
    return __atomic_load_n(&call->fault->kind, __ATOMIC_RELAXED) != 0;
}

uint32_t dmlk_shader_stopped(const dmlk_shader_call *call) {
    int64_t work = DMLK_WORK_BETWEEN_LOOKS;
    return dmlk_look(&work) || has_fault(call);
}

static void run_group(const dmlk_shader_call *call, uint64_t number, uint8_t *shared, uint8_t *frames) {
    const uint64_t x = call->groups[0], y = call->groups[1];
    if (call->fill != 0) {
        memset(shared, (int)(call->fill & 0xff), call->shared_bytes);
    }
    call->run(call, (uint32_t)(number % x), (uint32_t)(number / x % y), (uint32_t)(number / (x * y)), shared, frames);
}

static void run_part(int64_t begin, int64_t end, int part, void *context) {
    shader_run *run = context;
    dmlk_shader_call own = *run->call;
    const dmlk_shader_call *call = &own;
    own.watch = dmlk_watch_of_part(own.watch, part);
    const uint64_t shared_bytes = (call->shared_bytes + 63) & ~UINT64_C(63);
    uint8_t *memory = dmlk_take((int64_t)(shared_bytes + call->frame_bytes + 64));
    if (memory == NULL) {
        run->failed = true;
        return;
    }
    memset(memory, 0, shared_bytes);
    const uint64_t before = flush_denormals(call->flush != 0);
    int64_t work = 0;
    for (int64_t i = begin; i < end && !has_fault(call) && !run->failed && !run->doubtful && !dmlk_stopped(&work, 1024);
         i++) {
        const uint64_t place = call->backwards ? run->groups - 1 - (uint64_t)i : (uint64_t)i;
        const uint64_t turn = (uint64_t)((unsigned __int128)run->step * place % run->groups);
        const uint64_t number = (run->start + turn) % run->groups;
        run_group(call, number, memory, memory + shared_bytes);
        if (own.watch != run->call->watch && dmlk_has_doubt(own.watch)) {
            run->doubtful = true;
        }
    }
    restore(before);
    dmlk_give(memory);
}

static uint64_t common_divisor(uint64_t a, uint64_t b) { return b == 0 ? a : common_divisor(b, a % b); }

int dmlk_run_shader(const dmlk_shader_call *call) {
    shader_run run = {call, (uint64_t)call->groups[0] * call->groups[1] * call->groups[2], 1, 0, false, false};
    if (run.groups == 0) {
        return DMLK_OK;
    }
    if (call->order != 0) {
        run.start = call->order % run.groups;
        run.step = (call->order >> 20) % run.groups;
        while (common_divisor(run.groups, run.step) != 1) {
            run.step = run.step % run.groups + 1;
        }
    }
    dmlk_watch watch;
    dmlk_watch_begin(&watch);
    const int64_t groups = (int64_t)run.groups;
    const bool in_parts = dmlk_is_in_parts(call->watch);
    const bool is_serial = (call->watch != NULL && !in_parts) || call->backwards;
    const int parts = is_serial ? 1 : dmlk_parts(groups, 8);
    run.failed = in_parts && parts > 1 && !dmlk_divide_watch(call->watch, parts);
    if (!run.failed) {
        dmlk_parallel(groups, parts, run_part, &run);
    }
    const bool stopped = dmlk_watch_end(&watch);
    if (in_parts && parts > 1) {
        dmlk_join_watch(call->watch, !run.failed && !run.doubtful && !stopped && !has_fault(call));
    }
    return run.failed        ? DMLK_OUT_OF_MEMORY
           : has_fault(call) ? DMLK_OUT_OF_RANGE
           : stopped         ? DMLK_STOPPED
                             : DMLK_OK;
}

void dmlk_shader_outside(const dmlk_shader_call *call, const uint32_t *group, uint32_t first, uint32_t line,
                         uint32_t kind, const dmlk_shader_view *const *views, const uint64_t *offsets, uint32_t bytes,
                         uint64_t mask) {
    for (uint32_t lane = 0; lane < DMLK_MOST_LANES; lane++) {
        if ((mask >> lane & 1) == 0 || (views[lane]->flags & DMLK_SHADER_ROOT) == 0) {
            continue;
        }
        uint32_t nothing = 0; /* the first fault stays; `kind` is right once the rest is written */
        static const uint32_t writing = 2;
        if (__atomic_compare_exchange_n(&call->fault->kind, &nothing, writing, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            *call->fault = (dmlk_shader_fault){.kind = writing, .view = views[lane]->id, .offset = offsets[lane],
                                               .bytes = bytes, .access = kind, .group = {group[0], group[1], group[2]},
                                               .thread = first + lane, .line = line};
            __atomic_store_n(&call->fault->kind, 1, __ATOMIC_RELEASE);
        }
        return;
    }
}
