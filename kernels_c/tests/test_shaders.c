/* Dispatches of shaders: groups, limits, what a thread reports. */
#include <stdatomic.h>

#include "cancellation.h"
#include "parallel.h"
#include "shader.h"
#include "test.h"
#include "watch.h"

static atomic_int ran[6][5][4];
static atomic_int endless_groups;

static void once(const dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared, uint8_t *frames) {
    memset(shared, 1, call->shared_bytes);
    memset(frames, 2, call->frame_bytes);
    ran[x][y][z]++;
}

static void endless(const dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared,
                    uint8_t *frames) {
    (void)x, (void)y, (void)z, (void)shared, (void)frames;
    endless_groups++;
    while (!dmlk_shader_stopped(call)) {
    }
}

static void outside(const dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared,
                    uint8_t *frames) {
    (void)y, (void)z, (void)shared, (void)frames;
    if (x == 3) {
        __atomic_store_n(&call->fault->kind, 1, __ATOMIC_RELEASE);
    }
}

static dmlk_shader_call call_of(dmlk_shader_group *run, dmlk_shader_fault *fault, uint32_t x, uint32_t y, uint32_t z) {
    *fault = (dmlk_shader_fault){0};
    return (dmlk_shader_call){
        .run = run, .groups = {x, y, z}, .shared_bytes = 1000, .frame_bytes = 3000, .fault = fault};
}

TEST(every_group_runs_once) {
    dmlk_shader_fault fault;
    const dmlk_shader_call call = call_of(once, &fault, 6, 5, 4);
    CHECK_EQUAL(dmlk_run_shader(&call), DMLK_OK);
    for (int x = 0; x < 6; x++) {
        for (int y = 0; y < 5; y++) {
            for (int z = 0; z < 4; z++) {
                CHECK_EQUAL(ran[x][y][z], 1);
            }
        }
    }
}

static uint32_t places[60]; /* when each group ran */
static uint32_t so_far;

static void note_place(const dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared,
                       uint8_t *frames) {
    (void)call, (void)shared, (void)frames;
    places[x + 5 * y + 20 * z] = so_far++;
}

TEST(groups_run_in_the_reverse_order) {
    dmlk_shader_fault fault;
    dmlk_shader_call call = call_of(note_place, &fault, 5, 4, 3);
    for (uint64_t order = 0; order < 4; order++) {
        uint32_t before[60];
        call.order = order << 21 | order;
        for (call.backwards = 0; call.backwards < 2; call.backwards++) {
            const int threads = dmlk_threads();
            dmlk_set_threads(call.backwards ? 4 : 1);
            so_far = 0;
            CHECK_EQUAL(dmlk_run_shader(&call), DMLK_OK);
            dmlk_set_threads(threads);
            CHECK_EQUAL(so_far, 60);
            for (int i = 0; i < 60 && call.backwards; i++) {
                CHECK_EQUAL(places[i], 59 - before[i]);
            }
            memcpy(before, places, sizeof before);
        }
    }
}

TEST(a_limit_stops_every_thread) {
    dmlk_shader_fault fault;
    dmlk_shader_call call = call_of(endless, &fault, 64, 1, 1);
    int is_late = -1;
    CHECK_EQUAL(dmlk_run_shader_within(&call, 0.01, &is_late), DMLK_STOPPED);
    CHECK_EQUAL(is_late, 1);
    CHECK(endless_groups >= 1);
    CHECK(dmlk_watch_current() == NULL);
    call = call_of(once, &fault, 1, 1, 1);
    CHECK_EQUAL(dmlk_run_shader_within(&call, 100, &is_late), DMLK_OK);
    CHECK_EQUAL(is_late, 0);
    CHECK_EQUAL(dmlk_run_shader_within(&call, 0, &is_late), DMLK_OK);
    CHECK_EQUAL(dmlk_run_shader_within(&call, 1e300, &is_late), DMLK_OK);
}

static int stop(void) { return 1; }

TEST(the_host_stops_what_has_time_left) {
    dmlk_shader_fault fault;
    const dmlk_shader_call call = call_of(endless, &fault, 1, 1, 1);
    int is_late = -1;
    dmlk_set_poll(stop);
    CHECK_EQUAL(dmlk_run_shader_within(&call, 1000, &is_late), DMLK_STOPPED);
    CHECK_EQUAL(is_late, 0);
    dmlk_set_poll(NULL);
}

static dmlk_shader_call inner;
static int inner_is_late;

static int run_inside(void) {
    inner_is_late = -1;
    CHECK_EQUAL(dmlk_run_shader_within(&inner, 100, &inner_is_late), DMLK_OK);
    return 1;
}

/* The limit of a dispatch is not one of those that the host starts while it is polled. */
TEST(a_limit_is_of_one_dispatch) {
    dmlk_shader_fault fault, inner_fault;
    const dmlk_shader_call call = call_of(endless, &fault, 1, 1, 1);
    inner = call_of(once, &inner_fault, 1, 1, 1);
    int is_late = -1;
    dmlk_set_poll(run_inside);
    CHECK_EQUAL(dmlk_run_shader_within(&call, 1000, &is_late), DMLK_STOPPED);
    CHECK_EQUAL(inner_is_late, 0);
    dmlk_set_poll(NULL);
}

TEST(a_fault_ends_the_dispatch) {
    dmlk_shader_fault fault;
    const dmlk_shader_call call = call_of(outside, &fault, 8, 1, 1);
    CHECK_EQUAL(dmlk_run_shader(&call), DMLK_OUT_OF_RANGE);
}

/* Nothing is known of groups that did not end, whether a limit or a fault ended the dispatch. */
TEST(an_unfinished_watch_in_parts_is_doubtful) {
    static dmlk_shader_group *const groups[] = {endless, outside, once};
    const dmlk_shader_watch_options options = {.threads = 1, .lanes = 1, .most_bytes = 1 << 20, .in_parts = 1};
    const int threads = dmlk_threads();
    dmlk_set_threads(2);
    for (int i = 0; i < 3; i++) {
        dmlk_shader_fault fault;
        dmlk_shader_call call = call_of(groups[i], &fault, 5, 1, 1);
        dmlk_shader_watch_result result;
        int is_late;
        call.watch = dmlk_shader_watch_new(&options);
        CHECK_EQUAL(dmlk_run_shader_within(&call, i == 0 ? 0.01 : 100, &is_late) == DMLK_OK, i == 2);
        dmlk_shader_watch_finish(call.watch, &result);
        CHECK_EQUAL(result.is_doubtful, i < 2);
        dmlk_shader_watch_free(call.watch);
    }
    dmlk_set_threads(threads);
}

int main(void) {
    dmlk_split_everything();
    RUN(every_group_runs_once);
    RUN(groups_run_in_the_reverse_order);
    RUN(a_limit_stops_every_thread);
    RUN(the_host_stops_what_has_time_left);
    RUN(a_limit_is_of_one_dispatch);
    RUN(a_fault_ends_the_dispatch);
    RUN(an_unfinished_watch_in_parts_is_doubtful);
    return RESULT();
}
