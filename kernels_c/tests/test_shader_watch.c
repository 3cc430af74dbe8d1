/* The analysis of a watched dispatch: what each finding is told for, what must be silent, and random dispatches
 * compared with a comparison of all pairs of accesses. */
#include "device.h"
#include "parallel.h"
#include "watch.h"

#define READ DMLK_SHADER_READ
#define WRITE DMLK_SHADER_WRITE
#define ATOMIC DMLK_SHADER_ATOMIC
#define SHARED_BARRIER (DMLK_SHADER_SYNC | DMLK_SHADER_FENCE_SHARED)
#define BUFFER_BARRIER (DMLK_SHADER_SYNC | DMLK_SHADER_FENCE_UAV)
#define LANES 4

/* --- a dispatch --- */

static _Alignas(4096) uint8_t memory[3 * 4096];

static struct {
    dmlk_shader_watch *watch;
    dmlk_shader_call call;
    dmlk_shader_view view;
    dmlk_shader_watch_result result;
} run;

static void begin(uint32_t threads, uint64_t shared_bytes) {
    const dmlk_shader_watch_options options = {.threads = threads,
                                        .lanes = LANES,
                                        .shared_bytes = shared_bytes,
                                        .most_findings = 1000,
                                        .most_bytes = UINT64_C(1) << 30};
    run.watch = dmlk_shader_watch_new(&options);
    run.call = (dmlk_shader_call){.watch = run.watch};
    run.view = (dmlk_shader_view){.base = memory, .bytes = sizeof memory, .id = 7};
}

static void end(void) { dmlk_shader_watch_finish(run.watch, &run.result); }

static dmlk_watched_wave wave_of(uint32_t group, uint32_t thread) {
    return (dmlk_watched_wave){.group = {group, 0, 0}, .first = thread / LANES * LANES, .lanes = LANES};
}

/* One thread accesses the view; value: NULL if it is not known. */
static void touch(uint32_t group, uint32_t thread, uint32_t line, uint32_t kind, uint64_t offset, uint32_t bytes,
                  const void *value) {
    dmlk_watched_wave wave = wave_of(group, thread);
    const dmlk_shader_view *views[LANES] = {0};
    uint64_t offsets[LANES] = {0};
    uint8_t values[LANES * 16] = {0};
    const uint32_t lane = thread % LANES;
    views[lane] = &run.view;
    offsets[lane] = offset;
    if (value != NULL) {
        memcpy(values + lane * bytes, value, bytes);
        dmlk_shader_stored(&run.call, &wave, line, views, offsets, values, bytes, UINT64_C(1) << lane);
    } else {
        dmlk_shader_accessed(&run.call, &wave, line, kind, views, offsets, bytes, UINT64_C(1) << lane);
    }
}

static void touch_shared(uint32_t group, uint32_t thread, uint32_t line, uint32_t kind, uint64_t offset,
                         uint32_t bytes, const void *value) {
    dmlk_watched_wave wave = wave_of(group, thread);
    uint64_t offsets[LANES] = {0};
    uint8_t values[LANES * 16] = {0};
    const uint32_t lane = thread % LANES;
    offsets[lane] = offset;
    if (value != NULL) {
        memcpy(values + lane * bytes, value, bytes);
        dmlk_shader_shared_stored(&run.call, &wave, line, offsets, values, bytes, UINT64_C(1) << lane);
    } else {
        dmlk_shader_shared(&run.call, &wave, line, kind, offsets, bytes, UINT64_C(1) << lane);
    }
}

/* All waves of the group come to a barrier. */
static void barrier(uint32_t group, uint32_t threads, uint32_t line, uint32_t flags) {
    for (uint32_t first = 0; first < threads; first += LANES) {
        const uint32_t lanes = threads - first < LANES ? threads - first : LANES;
        dmlk_watched_wave wave = wave_of(group, first);
        dmlk_shader_barrier(&run.call, &wave, line, flags, (UINT64_C(1) << lanes) - 1);
    }
}

/* Ends the dispatch and expects no finding (kind 0), or findings of one kind; returns the first. */
static dmlk_shader_finding expect(uint32_t kind) {
    end();
    dmlk_shader_finding first = {0};
    CHECK_EQUAL(run.result.dropped, 0);
    CHECK_EQUAL(run.result.unchecked, 0);
    for (uint64_t i = 0; i < run.result.count; i++) {
        CHECK_EQUAL(run.result.findings[i].kind, kind);
        first = run.result.findings[0];
    }
    CHECK(kind == 0 || run.result.count > 0);
    dmlk_shader_watch_free(run.watch);
    return first;
}

static void expect_side(const dmlk_shader_side *side, uint32_t group, uint32_t thread, uint32_t line, uint32_t kind) {
    CHECK_EQUAL(side->group[0], group);
    CHECK_EQUAL(side->thread, thread);
    CHECK_EQUAL(side->line, line);
    CHECK_EQUAL(side->kind, kind);
}

static const uint32_t one = 1, two = 2;

/* --- races in buffers --- */

TEST(threads_that_touch_their_own_bytes) {
    begin(8, 0);
    for (uint32_t group = 0; group < 3; group++) {
        for (uint32_t t = 0; t < 8; t++) {
            touch(group, t, 1, READ, group * 32 + t * 4, 4, NULL);
            touch(group, t, 2, WRITE, group * 32 + t * 4, 4, &t);
        }
    }
    expect(0);
}

TEST(a_race_of_two_groups) {
    begin(8, 0);
    touch(0, 5, 10, WRITE, 40, 4, &one);
    touch(2, 3, 11, READ, 40, 4, NULL);
    touch(3, 3, 11, READ, 40, 4, NULL);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    expect_side(&f.earlier, 0, 5, 10, WRITE);
    expect_side(&f.later, 2, 3, 11, READ);
    CHECK_EQUAL(f.later.view, 7);
    CHECK_EQUAL(f.offset, 40);
    CHECK_EQUAL(f.count, 2);
}

TEST(a_write_after_readers_of_other_groups) {
    begin(8, 0);
    for (uint32_t group = 0; group < 4; group++) {
        touch(group, group, 10, READ, 8, 4, NULL);
    }
    touch(4, 0, 11, WRITE, 8, 4, &one);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    expect_side(&f.earlier, 0, 0, 10, READ);
    expect_side(&f.later, 4, 0, 11, WRITE);
}

TEST(lanes_of_one_instruction_race) {
    begin(4, 0);
    dmlk_watched_wave wave = wave_of(0, 0);
    const dmlk_shader_view *views[LANES] = {&run.view, &run.view, &run.view, &run.view};
    const uint64_t offsets[LANES] = {0, 4, 8, 4};
    const uint32_t values[LANES] = {1, 2, 3, 4};
    dmlk_shader_stored(&run.call, &wave, 3, views, offsets, (const uint8_t *)values, 4, 15);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    expect_side(&f.earlier, 0, 1, 3, WRITE);
    expect_side(&f.later, 0, 3, 3, WRITE);
    CHECK_EQUAL(f.offset, 4);
}

TEST(a_barrier_orders_the_threads_of_a_group) {
    begin(8, 0);
    touch(0, 0, 1, WRITE, 0, 4, &one);
    barrier(0, 8, 2, BUFFER_BARRIER);
    touch(0, 7, 3, READ, 0, 4, NULL);
    touch(0, 6, 3, READ, 0, 4, NULL);
    touch(0, 5, 3, READ, 0, 4, NULL);
    barrier(0, 8, 4, DMLK_SHADER_SYNC | DMLK_SHADER_FENCE_GROUP);
    touch(0, 1, 5, WRITE, 0, 4, &two);
    expect(0);
}

TEST(a_barrier_must_fence_the_memory) {
    begin(8, 0);
    touch(0, 0, 1, WRITE, 0, 4, &one);
    barrier(0, 8, 2, SHARED_BARRIER);
    touch(0, 7, 3, READ, 0, 4, NULL);
    expect_side(&(dmlk_shader_side){.line = 2}, 0, 0, 2, 0);
    expect(DMLK_FOUND_RACE);
}

TEST(a_fence_before_the_barrier_counts) {
    begin(8, 0);
    touch(0, 0, 1, WRITE, 0, 4, &one);
    barrier(0, 8, 2, DMLK_SHADER_FENCE_UAV);
    barrier(0, 8, 3, SHARED_BARRIER);
    touch(0, 7, 4, READ, 0, 4, NULL);
    expect(0);
}

TEST(a_fence_after_the_barrier_does_not) {
    begin(8, 0);
    touch(0, 0, 1, WRITE, 0, 4, &one);
    barrier(0, 8, 2, SHARED_BARRIER);
    barrier(0, 8, 3, DMLK_SHADER_FENCE_UAV);
    touch(0, 7, 4, READ, 0, 4, NULL);
    expect(DMLK_FOUND_RACE);
}

TEST(a_wave_that_runs_ahead_is_not_ordered) {
    begin(8, 0);
    dmlk_watched_wave wave = wave_of(0, 0);
    touch(0, 0, 1, WRITE, 0, 4, &one);
    dmlk_shader_barrier(&run.call, &wave, 2, BUFFER_BARRIER, 15);
    touch(0, 4, 3, READ, 0, 4, NULL); /* its wave is still before the barrier */
    wave = wave_of(0, 4);
    dmlk_shader_barrier(&run.call, &wave, 2, BUFFER_BARRIER, 15);
    expect(DMLK_FOUND_RACE);
}

TEST(writes_of_the_same_value) {
    begin(8, 0);
    for (uint32_t t = 0; t < 8; t++) {
        touch(0, t, 1, WRITE, 0, 4, &one);
    }
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE_SAME);
    expect_side(&f.earlier, 0, 0, 1, WRITE);
    expect_side(&f.later, 0, 1, 1, WRITE);
    CHECK_EQUAL(f.count, 7);
}

TEST(reads_of_what_many_have_written) {
    begin(8, 0);
    for (uint32_t t = 0; t < 8; t++) {
        touch(0, t, 1, WRITE, 0, 4, &one);
    }
    touch(0, 7, 2, READ, 0, 4, NULL);
    end();
    CHECK_EQUAL(run.result.count, 2);
    CHECK_EQUAL(run.result.findings[0].kind, DMLK_FOUND_RACE_SAME);
    CHECK_EQUAL(run.result.findings[1].kind, DMLK_FOUND_RACE);
    dmlk_shader_watch_free(run.watch);
}

TEST(an_unknown_value_is_another) {
    begin(8, 0);
    touch(0, 0, 1, WRITE, 0, 4, NULL);
    touch(0, 1, 1, WRITE, 0, 4, NULL);
    expect(DMLK_FOUND_RACE);
}

TEST(atomic_accesses_do_not_race) {
    begin(8, 0);
    for (uint32_t i = 0; i < 64; i++) {
        touch(i / 8, i % 8, 1, ATOMIC, 16, 4, NULL);
        touch(i / 8, i % 8, 2, ATOMIC, 24, 8, NULL);
    }
    expect(0);
}

TEST(atomic_accesses_of_different_sizes_race) {
    begin(8, 0);
    touch(0, 0, 1, ATOMIC, 16, 8, NULL);
    touch(1, 0, 2, ATOMIC, 20, 4, NULL);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    CHECK_EQUAL(f.offset, 20);
    CHECK_EQUAL(f.earlier.bytes, 8);
}

TEST(an_atomic_access_and_a_write) {
    begin(8, 0);
    touch(0, 0, 1, WRITE, 16, 4, &one);
    touch(0, 0, 2, ATOMIC, 16, 4, NULL);
    touch(0, 1, 2, ATOMIC, 16, 4, NULL);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    expect_side(&f.earlier, 0, 0, 1, WRITE);
    expect_side(&f.later, 0, 1, 2, ATOMIC);
}

TEST(the_last_thread_of_a_counter_may_reset_it) {
    begin(8, 0);
    for (uint32_t i = 0; i < 32; i++) {
        touch(i / 8, i % 8, 1, ATOMIC, 16, 4, NULL);
    }
    touch(3, 7, 2, WRITE, 16, 4, &one);
    expect(0);
}

TEST(a_thread_that_is_not_the_last_may_not) {
    begin(8, 0);
    touch(0, 0, 1, ATOMIC, 16, 4, NULL);
    touch(0, 0, 2, READ, 16, 4, NULL);
    touch(0, 1, 1, ATOMIC, 16, 4, NULL);
    expect(DMLK_FOUND_RACE);
}

/* Each group writes its sum, and counts itself; the last one reads all sums. */
static void count_groups(uint32_t fence, bool waits) {
    begin(8, 0);
    for (uint32_t group = 0; group < 5; group++) {
        touch(group, 3, 1, WRITE, 100 + 4 * group, 4, &one);
        if (waits) {
            barrier(group, 8, 2, BUFFER_BARRIER);
        }
        barrier(group, 8, 3, fence);
        touch(group, waits ? 0 : 3, 4, ATOMIC, 16, 4, NULL);
    }
    barrier(4, 8, 5, BUFFER_BARRIER);
    for (uint32_t t = 0; t < 5; t++) {
        touch(4, t, 6, READ, 100 + 4 * t, 4, NULL);
    }
}

TEST(the_last_group_may_read_what_all_have_written) {
    count_groups(DMLK_SHADER_FENCE_UAV, false);
    expect(0);
    count_groups(0, true);
    expect(0);
}

TEST(without_a_fence_it_may_not) {
    count_groups(DMLK_SHADER_FENCE_SHARED, false);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    expect_side(&f.earlier, 0, 3, 1, WRITE);
    CHECK_EQUAL(f.count, 4);
}

TEST(threads_that_do_not_wait_for_the_count_may_not) {
    begin(8, 0);
    touch(0, 0, 1, WRITE, 100, 4, &one);
    barrier(0, 8, 2, DMLK_SHADER_FENCE_UAV);
    touch(0, 0, 3, ATOMIC, 16, 4, NULL);
    touch(1, 0, 3, ATOMIC, 16, 4, NULL);
    touch(1, 1, 4, READ, 100, 4, NULL);
    expect(DMLK_FOUND_RACE);
}

TEST(parts_of_a_word_are_other_bytes) {
    begin(8, 0);
    for (uint32_t t = 0; t < 8; t++) {
        touch(0, t, 1, WRITE, 2 * t, 2, &t);
        touch(1, t, 1, WRITE, 100 + t, 1, &t);
    }
    touch(2, 0, 2, READ, 14, 4, NULL);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    CHECK_EQUAL(f.offset, 14);
    CHECK_EQUAL(f.count, 2);
    expect_side(&f.earlier, 0, 7, 1, WRITE);
}

TEST(smaller_cells_keep_what_was_known) {
    begin(8, 0);
    touch(0, 0, 1, WRITE, 0, 16, NULL);
    barrier(0, 8, 2, BUFFER_BARRIER);
    touch(0, 0, 3, READ, 0, 16, NULL); /* more than two accesses, so that the cells are wide */
    touch(0, 1, 3, READ, 0, 16, NULL);
    touch(1, 0, 4, READ, 7, 1, NULL);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    CHECK_EQUAL(f.offset, 7);
    expect_side(&f.earlier, 0, 0, 1, WRITE);
}

TEST(an_access_over_the_end_of_a_page) {
    begin(8, 0);
    touch(0, 0, 1, WRITE, 4096 - 8, 16, NULL);
    touch(1, 0, 2, READ, 4096 + 4, 4, NULL);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    CHECK_EQUAL(f.offset, 4096 + 4);
}

TEST(two_views_of_the_same_bytes) {
    begin(8, 0);
    touch(0, 0, 1, WRITE, 64, 4, &one);
    run.view = (dmlk_shader_view){.base = memory + 64, .bytes = 64, .id = 8};
    touch(1, 0, 2, READ, 0, 4, NULL);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    CHECK_EQUAL(f.earlier.view, 7);
    CHECK_EQUAL(f.later.view, 8);
    CHECK_EQUAL(f.offset, 0);
}

TEST(counters_are_atomic) {
    begin(4, 0);
    uint32_t counter = 0;
    run.view.counter = (uint8_t *)&counter;
    dmlk_watched_wave wave = wave_of(0, 0);
    const dmlk_shader_view *views[LANES] = {&run.view, &run.view, &run.view, &run.view};
    dmlk_shader_accessed(&run.call, &wave, 1, DMLK_SHADER_COUNTER, views, NULL, 4, 15);
    dmlk_shader_bytes found[4];
    CHECK_EQUAL(dmlk_shader_footprint(run.watch, (uint64_t)(uintptr_t)&counter, 4, 1, found, 4), 1);
    expect(0);
}

TEST(elements_of_a_typed_view) {
    begin(4, 0);
    run.view.stride = 2;
    run.view.bytes = 14;
    dmlk_watched_wave wave = wave_of(0, 0);
    const dmlk_shader_view *views[LANES] = {&run.view, &run.view, &run.view, &run.view};
    const uint32_t indices[LANES] = {0, 3, 4, 7};
    dmlk_shader_accessed_typed(&run.call, &wave, 1, WRITE, views, indices, 15);
    dmlk_shader_bytes found[3];
    CHECK_EQUAL(dmlk_shader_footprint(run.watch, (uint64_t)(uintptr_t)memory, 64, 1, found, 3), 2);
    CHECK_EQUAL(found[1].begin, 6);
    CHECK_EQUAL(found[1].width, 4);
    CHECK_EQUAL(expect(DMLK_FOUND_OUTSIDE).offset, 14);
}

TEST(footprints_are_patterns) {
    begin(8, 0);
    for (uint32_t i = 0; i < 600; i++) {
        touch(0, i % 8, 1, WRITE, 16 * i, 4, NULL);
    }
    touch(0, 0, 1, WRITE, 9600, 64, NULL);
    dmlk_shader_bytes found[3];
    CHECK_EQUAL(dmlk_shader_footprint(run.watch, (uint64_t)(uintptr_t)memory, sizeof memory, 1, found, 3), 2);
    CHECK(found[0].begin == 0 && found[0].width == 4 && found[0].stride == 16 && found[0].count == 600);
    CHECK(found[1].begin == 9600 && found[1].width == 64 && found[1].count == 1);
    expect(0);
}

/* --- bounds --- */

TEST(accesses_outside_of_a_view) {
    begin(8, 0);
    run.view.bytes = 40;
    touch(1, 6, 5, READ, 32, 16, NULL);
    const dmlk_shader_finding f = expect(DMLK_FOUND_OUTSIDE);
    expect_side(&f.later, 1, 6, 5, READ);
    CHECK_EQUAL(f.offset, 40);
    CHECK_EQUAL(f.later.bytes, 16);
}

TEST(the_part_inside_is_accessed) {
    begin(8, 0);
    run.view.bytes = 40;
    touch(0, 6, 5, WRITE, 32, 16, NULL);
    dmlk_shader_bytes found[2] = {{0, 0, 0, 0}};
    CHECK_EQUAL(dmlk_shader_footprint(run.watch, (uint64_t)(uintptr_t)memory, 4096, 1, found, 2), 1);
    CHECK_EQUAL(found[0].begin, 32);
    CHECK_EQUAL(found[0].width, 8);
    CHECK_EQUAL(found[0].count, 1);
    expect(DMLK_FOUND_OUTSIDE);
}

TEST(an_offset_that_wraps) {
    begin(8, 0);
    touch(0, 0, 5, WRITE, UINT64_MAX - 1, 4, &one);
    CHECK_EQUAL(expect(DMLK_FOUND_OUTSIDE).offset, -2);
}

TEST(a_root_descriptor_has_no_bounds) {
    begin(8, 0);
    run.view.flags = DMLK_SHADER_ROOT;
    touch(0, 0, 5, WRITE, sizeof memory, 4, &one);
    expect(DMLK_FOUND_ROOT_OUTSIDE);
}

TEST(null_descriptors_are_silent) {
    begin(8, 0);
    run.view = (dmlk_shader_view){.id = 9};
    touch(0, 0, 5, WRITE, 0, 4, &one);
    touch(1, 0, 5, READ, 0, 4, NULL);
    expect(0);
}

/* --- groupshared memory --- */

TEST(a_tile_of_groupshared_memory) {
    begin(8, 64);
    for (uint32_t group = 0; group < 3; group++) {
        for (uint32_t round = 0; round < 3; round++) {
            for (uint32_t t = 0; t < 8; t++) {
                touch_shared(group, t, 1, WRITE, t * 4, 4, &t);
            }
            barrier(group, 8, 2, SHARED_BARRIER);
            for (uint32_t t = 0; t < 64; t++) {
                touch_shared(group, t % 8, 3, READ, t / 8 * 4, 4, NULL);
            }
            barrier(group, 8, 4, SHARED_BARRIER);
        }
    }
    expect(0);
}

TEST(a_tile_without_its_second_barrier) {
    begin(8, 64);
    for (uint32_t t = 0; t < 8; t++) {
        touch_shared(0, t, 1, WRITE, t * 4, 4, &t);
    }
    barrier(0, 8, 2, SHARED_BARRIER);
    for (uint32_t t = 0; t < 8; t++) {
        touch_shared(0, t, 3, READ, 4, 4, NULL);
    }
    touch_shared(0, 1, 4, WRITE, 4, 4, &one);
    const dmlk_shader_finding f = expect(DMLK_FOUND_SHARED_RACE);
    CHECK(f.earlier.thread != 1);
    CHECK_EQUAL(f.earlier.kind, READ);
    CHECK_EQUAL(f.offset, 4);
}

TEST(groups_have_groupshared_memory_of_their_own) {
    begin(8, 64);
    touch_shared(0, 0, 1, WRITE, 0, 4, &one);
    touch_shared(1, 1, 1, WRITE, 0, 4, &two);
    touch_shared(1, 1, 2, READ, 0, 4, NULL);
    expect(0);
}

TEST(groupshared_bytes_that_were_never_written) {
    begin(8, 64);
    touch_shared(0, 0, 1, WRITE, 8, 4, &one);
    touch_shared(1, 2, 2, READ, 8, 4, NULL);
    const dmlk_shader_finding f = expect(DMLK_FOUND_SHARED_UNWRITTEN);
    expect_side(&f.later, 1, 2, 2, READ);
    CHECK_EQUAL(f.offset, 8);
}

TEST(atomic_accesses_need_a_start) {
    begin(8, 64);
    touch_shared(0, 0, 1, ATOMIC, 8, 4, NULL);
    touch_shared(0, 1, 1, ATOMIC, 8, 4, NULL);
    CHECK_EQUAL(expect(DMLK_FOUND_SHARED_UNWRITTEN).count, 1);
}

TEST(same_values_in_groupshared_memory) {
    begin(8, 64);
    touch_shared(0, 0, 1, WRITE, 8, 4, &one);
    touch_shared(0, 5, 1, WRITE, 8, 4, &one);
    expect(DMLK_FOUND_SHARED_RACE_SAME);
}

TEST(outside_of_groupshared_memory) {
    begin(8, 62);
    touch_shared(0, 0, 1, WRITE, 60, 2, &one);
    touch_shared(0, 1, 2, WRITE, 60, 4, &one);
    CHECK_EQUAL(expect(DMLK_FOUND_SHARED_OUTSIDE).offset, 60);
}

/* --- barriers and lanes --- */

TEST(a_barrier_for_a_part_of_a_wave) {
    begin(8, 0);
    dmlk_watched_wave wave = wave_of(3, 4);
    dmlk_shader_barrier(&run.call, &wave, 5, SHARED_BARRIER, 6);
    const dmlk_shader_finding f = expect(DMLK_FOUND_WAIT_OF_SOME_LANES);
    CHECK_EQUAL(f.offset, 6);
    expect_side(&f.later, 3, 5, 5, 0);
    expect_side(&f.earlier, 3, 4, 0, 0);
}

TEST(a_wave_that_ends_before_the_barrier) {
    begin(16, 0);
    barrier(1, 12, 5, SHARED_BARRIER);
    const dmlk_shader_finding f = expect(DMLK_FOUND_WAIT_IN_VAIN);
    expect_side(&f.later, 1, 0, 5, 0);
    expect_side(&f.earlier, 1, 12, 0, 0);
}

TEST(waves_at_different_barriers) {
    begin(8, 0);
    dmlk_watched_wave wave = wave_of(0, 0);
    dmlk_shader_barrier(&run.call, &wave, 5, SHARED_BARRIER, 15);
    wave = wave_of(0, 4);
    dmlk_shader_barrier(&run.call, &wave, 6, SHARED_BARRIER, 15);
    const dmlk_shader_finding f = expect(DMLK_FOUND_WAIT_ELSEWHERE);
    expect_side(&f.later, 0, 4, 6, 0);
    expect_side(&f.earlier, 0, 0, 5, 0);
}

TEST(a_last_wave_with_fewer_lanes) {
    begin(6, 0);
    barrier(0, 6, 5, SHARED_BARRIER);
    barrier(1, 6, 5, SHARED_BARRIER);
    expect(0);
}

TEST(fences_need_no_other_threads) {
    begin(8, 0);
    dmlk_watched_wave wave = wave_of(0, 0);
    dmlk_shader_barrier(&run.call, &wave, 5, DMLK_SHADER_FENCE_UAV, 1);
    expect(0);
}

TEST(lanes_that_are_read) {
    const uint32_t lanes[LANES] = {1, 0, 3, 2};
    begin(4, 0);
    dmlk_watched_wave wave = wave_of(0, 0);
    dmlk_shader_lanes(&run.call, &wave, 8, 117, lanes, 15);
    dmlk_shader_lanes(&run.call, &wave, 8, 115, NULL, 5);
    expect(0);
    begin(4, 0);
    dmlk_shader_lanes(&run.call, &wave, 8, 117, lanes, 7);
    dmlk_shader_finding f = expect(DMLK_FOUND_LANE_INACTIVE);
    expect_side(&f.later, 0, 2, 8, 0);
    CHECK_EQUAL(f.offset, 3);
    CHECK_EQUAL(f.opcode, 117);
    begin(4, 0);
    dmlk_shader_lanes(&run.call, &wave, 8, 117, (const uint32_t[]){0, 0, 0, LANES}, 15);
    f = expect(DMLK_FOUND_LANE_OUTSIDE);
    expect_side(&f.later, 0, 3, 8, 0);
    CHECK_EQUAL(f.offset, LANES);
}

/* --- limits --- */

TEST(options_that_are_refused) {
    const dmlk_shader_watch_options good = {.threads = 1, .lanes = 1};
    dmlk_shader_watch_options bad = good;
    dmlk_shader_watch *watch = dmlk_shader_watch_new(&good);
    CHECK(watch != NULL);
    dmlk_shader_watch_free(watch);
    dmlk_shader_watch_free(NULL);
    bad.threads = 1025;
    CHECK(dmlk_shader_watch_new(&bad) == NULL);
    bad = good;
    bad.lanes = 65;
    CHECK(dmlk_shader_watch_new(&bad) == NULL);
    bad.lanes = 0;
    CHECK(dmlk_shader_watch_new(&bad) == NULL);
}

TEST(more_findings_than_are_kept) {
    const dmlk_shader_watch_options options = {
        .threads = 4, .lanes = LANES, .most_findings = 2, .most_bytes = UINT64_C(1) << 30};
    begin(4, 0);
    dmlk_shader_watch_free(run.watch);
    run.call.watch = run.watch = dmlk_shader_watch_new(&options);
    run.view.bytes = 4;
    for (uint32_t line = 1; line < 6; line++) {
        touch(0, 0, line, READ, 8, 4, NULL);
        touch(0, 1, line, READ, 8, 4, NULL);
    }
    end();
    CHECK_EQUAL(run.result.count, 2);
    CHECK_EQUAL(run.result.findings[0].count, 2);
    CHECK_EQUAL(run.result.dropped, 6);
    dmlk_shader_watch_free(run.watch);
}

TEST(no_memory_for_the_analysis) {
    const dmlk_shader_watch_options options = {.threads = 4, .lanes = LANES, .most_findings = 2};
    begin(4, 0);
    dmlk_shader_watch_free(run.watch);
    run.call.watch = run.watch = dmlk_shader_watch_new(&options);
    touch(0, 0, 1, WRITE, 8, 4, &one);
    touch(1, 0, 1, WRITE, 8, 4, &one);
    end();
    CHECK_EQUAL(run.result.count, 0);
    CHECK_EQUAL(run.result.unchecked, 2);
    dmlk_shader_watch_free(run.watch);
}

TEST(more_instructions_than_are_told_apart) {
    begin(4, 0);
    for (uint32_t line = 1; line < 6000; line++) {
        touch(0, 0, line, READ, 0, 4, NULL);
    }
    touch(1, 1, 1, WRITE, 0, 4, &one);
    const dmlk_shader_finding f = expect(DMLK_FOUND_RACE);
    expect_side(&f.earlier, 0, 0, 0, READ); /* the line is not known */
}

/* --- random dispatches, compared with all pairs --- */

#define BYTES 24 /* of the buffer, at the end of a page; and of groupshared memory */
#define START (4096 - 12)
#define MOST 600 /* accesses */
#define THREADS 6

struct access {
    uint32_t group, thread, kind, passed, fences; /* barriers, and fences of this memory, before it */
    uint32_t offset, bytes;
    bool known, is_shared;
    uint8_t value[8];
};

static struct {
    struct access accesses[MOST];
    uint32_t count;
    uint32_t released[4][8][2]; /* fences of buffers and groupshared memory at a group's n-th barrier */
    uint32_t fences[2], passed;
    /* atomic accesses of different sizes meet, or order groups: some races after the first ones may be missed */
    bool is_mixed;
    /* by byte: whether a race was found already, of different values or of the same */
    bool is_racy[2][BYTES], is_same[2][BYTES];
} all;

/* Whether a barrier or, for atomic access b, a fence of the same thread orders `a` before `b`. */
static bool is_released(const struct access *a, const struct access *b) {
    return (a->thread == b->thread && a->fences < b->fences) ||
           (a->passed < b->passed && a->fences < all.released[a->group][b->passed - 1][a->is_shared]);
}

/* Whether `a`, of an earlier group, is released by an atomic access of its group, and `b` comes after one to the same
 * place, which acquires it. */
static bool is_acquired(const struct access *a, const struct access *b) {
    for (uint32_t i = 0; i < all.count; i++) {
        const struct access *from = &all.accesses[i];
        if (from->kind != ATOMIC || from->is_shared || from < a || from->group != a->group || !is_released(a, from)) {
            continue;
        }
        for (const struct access *to = from; to <= b; to++) {
            if (to->kind == ATOMIC && !to->is_shared && to->group == b->group && to->offset == from->offset &&
                (to->thread == b->thread || to->passed < b->passed)) {
                all.is_mixed = true;
                return true;
            }
        }
    }
    return false;
}

/* Whether `a` happens before `b`, by program order, a barrier, or atomic accesses. */
static bool is_before(const struct access *a, const struct access *b) {
    if (a->group != b->group) {
        return is_acquired(a, b);
    }
    return a->thread == b->thread ||
           (a->passed < b->passed && a->fences < all.released[a->group][b->passed - 1][a->is_shared]);
}

static bool covers(const struct access *a, uint32_t byte, bool is_shared) {
    return a->is_shared == is_shared && a->offset <= byte && byte < a->offset + a->bytes;
}

/* Whether accesses i < k touch the byte, one writes, and nothing orders them. */
static bool do_race(uint32_t i, uint32_t k, uint32_t byte, bool is_shared) {
    const struct access *a = &all.accesses[i], *b = &all.accesses[k];
    if (!covers(a, byte, is_shared) || !covers(b, byte, is_shared) || (is_shared && a->group != b->group) ||
        is_before(a, b) || (a->kind == READ && b->kind == READ)) {
        return false;
    }
    if (a->kind == ATOMIC && b->kind == ATOMIC) {
        return a->offset != b->offset || a->bytes != b->bytes;
    }
    if (a->kind == ATOMIC) { /* the last atomic access comes after all others */
        uint32_t last = i;
        for (uint32_t j = i; j < k; j++) {
            const struct access *c = &all.accesses[j];
            last = c->kind == ATOMIC && covers(c, byte, is_shared) && (!is_shared || c->group == b->group) ? j : last;
        }
        return !is_before(&all.accesses[last], b);
    }
    return true;
}

/* Whether access k writes the byte's value again that access i < k wrote. */
static bool is_same_value(uint32_t i, uint32_t k, uint32_t byte, bool is_shared) {
    const struct access *a = &all.accesses[i], *b = &all.accesses[k];
    if (!a->known || !b->known) {
        return false;
    }
    uint32_t last = i;
    for (uint32_t j = i; j < k; j++) {
        last = all.accesses[j].known && covers(&all.accesses[j], byte, is_shared) ? j : last;
    }
    const struct access *c = &all.accesses[last];
    return c->value[byte - c->offset] == b->value[byte - b->offset];
}

/* Whether a later write, before access k, is ordered after write i: its value does not matter any more. */
static bool is_overwritten(uint32_t i, uint32_t k, uint32_t byte, bool is_shared) {
    for (uint32_t j = i + 1; j < k; j++) {
        if (all.accesses[j].kind == WRITE && covers(&all.accesses[j], byte, is_shared) &&
            is_before(&all.accesses[i], &all.accesses[j])) {
            return true;
        }
    }
    return false;
}

/* Finds the findings of access k (its line is k + 1): every one is a race, and every first race of a byte is there. */
static void compare_access(uint32_t k) {
    const struct access *b = &all.accesses[k];
    bool expects[2] = {false, false}, found[2] = {false, false}; /* of different values, of the same */
    for (uint32_t byte = b->offset; byte < b->offset + b->bytes; byte++) {
        bool races = false, same = false;
        for (uint32_t i = 0; i < k; i++) {
            if (do_race(i, k, byte, b->is_shared)) {
                const bool both_write = all.accesses[i].kind == WRITE && b->kind == WRITE;
                const bool is_same = is_same_value(i, k, byte, b->is_shared) ||
                                     (both_write && is_overwritten(i, k, byte, b->is_shared));
                races = races || !is_same;
                same = same || is_same;
            }
        }
        expects[0] = expects[0] || (races && !all.is_racy[b->is_shared][byte]);
        expects[1] = expects[1] || (same && !races && !all.is_same[b->is_shared][byte]);
        all.is_racy[b->is_shared][byte] |= races;
        all.is_same[b->is_shared][byte] |= races || same;
    }
    for (uint64_t n = 0; n < run.result.count; n++) {
        const dmlk_shader_finding *f = &run.result.findings[n];
        if (f->later.line != k + 1 || f->kind > DMLK_FOUND_SHARED_RACE_SAME) {
            continue;
        }
        const bool same = f->kind == DMLK_FOUND_RACE_SAME || f->kind == DMLK_FOUND_SHARED_RACE_SAME;
        bool is_true = false;
        const uint32_t first = (uint32_t)f->offset - (b->is_shared ? 0 : START);
        for (uint32_t byte = first; byte < first + 4; byte++) { /* of the cell */
            is_true = is_true || (do_race(f->earlier.line - 1, k, byte, b->is_shared) &&
                                  is_same_value(f->earlier.line - 1, k, byte, b->is_shared) == same);
        }
        CHECK(is_true);
        CHECK_EQUAL(f->kind >= DMLK_FOUND_SHARED_RACE, b->is_shared);
        expect_side(&f->later, b->group, b->thread, k + 1, b->kind);
        found[same] = true;
    }
    CHECK(!expects[0] || found[0] || all.is_mixed);
    CHECK(!expects[1] || found[0] || found[1] || all.is_mixed);
}

static void compare_footprint(bool written) {
    bool expected[BYTES] = {0}, given[BYTES] = {0}, is_written[BYTES] = {0};
    for (uint32_t i = 0; i < all.count; i++) {
        const struct access *a = &all.accesses[i];
        for (uint32_t byte = a->offset; !a->is_shared && byte < a->offset + a->bytes; byte++) {
            expected[byte] |= written ? a->kind != READ : a->kind != WRITE && !is_written[byte];
            is_written[byte] |= a->kind != READ;
        }
    }
    dmlk_shader_bytes found[BYTES];
    const uint64_t address = (uint64_t)(uintptr_t)memory + START;
    const uint64_t count = dmlk_shader_footprint(run.watch, address, BYTES, written, found, BYTES);
    for (uint64_t i = 0; i < count; i++) {
        CHECK(found[i].width > 0 && found[i].count > 0);
        for (uint64_t k = 0; k < found[i].width * found[i].count; k++) {
            const uint64_t byte = found[i].begin + k / found[i].width * found[i].stride + k % found[i].width;
            CHECK(byte < BYTES && !given[byte]);
            given[byte] = true;
        }
    }
    CHECK(memcmp(expected, given, sizeof given) == 0);
    CHECK_EQUAL(dmlk_shader_footprint(run.watch, address, BYTES, written, NULL, 0), count);
}

/* The last access of a kind to a byte of the buffer; NULL: none. */
static const struct access *last_of(uint32_t kind, uint32_t byte) {
    const struct access *last = NULL;
    for (uint32_t i = 0; i < all.count; i++) {
        last = all.accesses[i].kind == kind && covers(&all.accesses[i], byte, false) ? &all.accesses[i] : last;
    }
    return last;
}

/* Who has changed each byte last.  Of a write and an atomic access that nothing orders, or between the same two fences
 * of a thread, either may be told. */
static void compare_writers(void) {
    for (uint32_t byte = 0; byte < BYTES; byte++) {
        const struct access *write = last_of(WRITE, byte), *atomic = last_of(ATOMIC, byte);
        const struct access *last = atomic == NULL || (write != NULL && write > atomic) ? write : atomic;
        dmlk_shader_side side;
        const bool found = dmlk_shader_last_writer(run.watch, (uint64_t)(uintptr_t)memory + START + byte, &side);
        CHECK_EQUAL(found, last != NULL);
        if (found && last != NULL) {
            CHECK_EQUAL(side.group[0], last->group);
            CHECK_EQUAL(side.view, 7);
            const struct access *told = &all.accesses[side.line - 1];
            CHECK(told == last || told->group == last->group);
            CHECK(told == last || told->fences == last->fences || !is_before(told, last));
            CHECK(told == write || told == atomic);
            CHECK_EQUAL(side.thread, told->thread);
        }
    }
}

/* Which reads of groupshared memory are of bytes that the group has not written. */
static void compare_unwritten(void) {
    for (uint32_t k = 0; k < all.count; k++) {
        const struct access *b = &all.accesses[k];
        bool expected = false, given = false;
        for (uint32_t byte = b->offset; b->is_shared && b->kind != WRITE && byte < b->offset + b->bytes; byte++) {
            bool is_written = false;
            for (uint32_t i = 0; i < k; i++) {
                const struct access *a = &all.accesses[i];
                is_written |= a->group == b->group && a->kind != READ && covers(a, byte, true);
            }
            expected = expected || !is_written;
        }
        for (uint64_t n = 0; n < run.result.count; n++) {
            const dmlk_shader_finding *f = &run.result.findings[n];
            given = given || (f->kind == DMLK_FOUND_SHARED_UNWRITTEN && f->later.line == k + 1);
        }
        CHECK_EQUAL(given, expected);
    }
}

/* One random access of a thread; few places and values, so that many meet. */
static void random_access(uint32_t group, uint32_t thread) {
    static const uint32_t sizes[] = {4, 4, 4, 4, 8, 2, 1};
    struct access *a = &all.accesses[all.count];
    *a = (struct access){.group = group, .thread = thread, .passed = all.passed};
    a->is_shared = random_bits() % 3 == 0;
    a->fences = all.fences[a->is_shared];
    a->kind = (uint32_t)random_between(READ, ATOMIC);
    a->bytes = a->kind == ATOMIC ? random_bits() % 4 == 0 ? 8 : 4 : sizes[random_bits() % 7];
    a->offset = (uint32_t)random_between(0, (BYTES - 8) / 4) * 4;
    if (a->kind == ATOMIC && !all.is_mixed) {
        a->bytes = a->offset < 16 ? 4 : 8;
    }
    a->offset += a->bytes < 4 ? (uint32_t)random_between(0, 4 / a->bytes - 1) * a->bytes : 0;
    a->known = a->kind == WRITE && random_bits() % 4 != 0;
    memset(a->value, (int)random_between(1, 2), sizeof a->value);
    const uint32_t line = ++all.count;
    if (a->is_shared) {
        touch_shared(group, thread, line, a->kind, a->offset, a->bytes, a->known ? a->value : NULL);
    } else {
        touch(group, thread, line, a->kind, START + a->offset, a->bytes, a->known ? a->value : NULL);
    }
}

/* Each wave of a group runs until the barrier; between its accesses may be fences, the same ones in each wave. */
static void random_phase(uint32_t group, uint32_t accesses, uint32_t flags) {
    const uint32_t fences = random_bits() % 3 == 0 ? (uint32_t)(random_bits() % 8) * 2 : 0;
    const uint32_t before[2] = {all.fences[0], all.fences[1]};
    for (uint32_t first = 0; first < THREADS; first += LANES) {
        const uint32_t lanes = THREADS - first < LANES ? THREADS - first : LANES;
        dmlk_watched_wave wave = wave_of(group, first);
        memcpy(all.fences, before, sizeof before);
        for (uint32_t i = 0; i < accesses; i++) {
            random_access(group, first + (uint32_t)random_bits() % lanes);
            if (i == accesses / 2 && fences != 0) {
                dmlk_shader_barrier(&run.call, &wave, 0, fences, (UINT64_C(1) << lanes) - 1);
                all.fences[0] += (fences & 6) != 0;
                all.fences[1] += (fences & 8) != 0;
            }
        }
        dmlk_shader_barrier(&run.call, &wave, 0, flags | DMLK_SHADER_SYNC, (UINT64_C(1) << lanes) - 1);
        all.fences[0] += (flags & 6) != 0;
        all.fences[1] += (flags & 8) != 0;
    }
    memcpy(all.released[group][all.passed], all.fences, sizeof all.fences);
    all.passed++;
}

TEST(random_dispatches) {
    uint64_t races = 0, exact = 0;
    for (uint64_t seed = 0; seed < 3000 && test_failures == 0; seed++) {
        random_seed(seed);
        memset(&all, 0, sizeof all);
        all.is_mixed = seed % 4 == 0;
        begin(THREADS, BYTES);
        const uint32_t groups = (uint32_t)random_between(1, 4), accesses = (uint32_t)random_between(1, 6);
        for (uint32_t group = 0; group < groups; group++) {
            const uint32_t phases = (uint32_t)random_between(1, 4);
            all.passed = all.fences[0] = all.fences[1] = 0;
            for (uint32_t phase = 0; phase < phases; phase++) {
                random_phase(group, accesses, (uint32_t)(random_bits() % 8) * 2);
            }
        }
        end();
        CHECK_EQUAL(run.result.dropped, 0);
        for (uint32_t k = 0; k < all.count; k++) {
            compare_access(k);
        }
        compare_footprint(false);
        compare_footprint(true);
        compare_unwritten();
        compare_writers();
        races += run.result.count;
        exact += !all.is_mixed;
        dmlk_shader_watch_free(run.watch);
    }
    CHECK(races > 10000 && exact > 1000);
}

/* --- rows: the same is found as when the offset of each lane is given --- */

#define ROW_LANES both.lanes
#define ROW_THREADS (2 * both.lanes + 4) /* the last wave has 4 lanes */
#define ROW_SHARED 328

static struct {
    dmlk_shader_watch *watch[2]; /* by rows, by lanes */
    dmlk_shader_call call[2];
    dmlk_shader_view views[5];
    uint32_t lanes;
    bool reads; /* most accesses of this phase are reads of whole words */
    dmlk_watched_wave wave; /* what code knows that rows are told by */
    uint64_t known, simple; /* accesses that were not told */
} both;

static uint64_t row_mask(uint32_t first) {
    return (UINT64_C(1) << (first + ROW_LANES > ROW_THREADS ? 4 : ROW_LANES)) - 1;
}

static void begin_both(uint32_t lanes) {
    both.lanes = lanes;
    both.wave = (dmlk_watched_wave){0};
    const dmlk_shader_watch_options options = {.threads = ROW_THREADS,
                                              .lanes = ROW_LANES,
                                              .shared_bytes = ROW_SHARED,
                                              .most_findings = 5000,
                                              .most_bytes = UINT64_C(1) << 30};
    for (int i = 0; i < 2; i++) {
        both.watch[i] = dmlk_shader_watch_new(&options);
        both.call[i] = (dmlk_shader_call){.watch = both.watch[i]};
    }
    /* over the end of a page; a part of it; only read; a root descriptor; a null descriptor */
    both.views[0] = (dmlk_shader_view){.base = memory + 4096 - 64, .bytes = 320, .id = 1};
    both.views[1] = (dmlk_shader_view){.base = memory + 4096 - 64, .bytes = 178, .id = 2};
    both.views[2] = (dmlk_shader_view){
        .base = memory + 8192 - 32, .bytes = 224, .id = 3, .flags = DMLK_SHADER_SRV | DMLK_SHADER_READ_ONLY};
    both.views[3] = (dmlk_shader_view){.base = memory + 4096, .bytes = 128, .id = 4, .flags = DMLK_SHADER_ROOT};
    both.views[4] = (dmlk_shader_view){.id = 5};
}

static uint64_t random_mask(void) {
    const uint64_t all_lanes = row_mask(0);
    return random_bits() % 4 != 0 ? all_lanes : random_bits() & random_bits() & all_lanes;
}

/* One instruction of a wave. */
struct told {
    uint32_t line, kind, step, bytes;
    uint64_t offset, inside, mask;
    uint8_t values[DMLK_MOST_LANES * 8];
    bool known;
};

static struct told random_told(void) {
    static const uint32_t sizes[] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 8, 2, 1};
    struct told told = {.line = (uint32_t)random_between(1, 6), .bytes = 4, .mask = random_mask()};
    told.kind = random_bits() % 8 == 0 ? ATOMIC : (uint32_t)random_between(READ, WRITE);
    if (random_bits() % 64 == 0) {
        told.bytes = told.kind == ATOMIC ? 8 : sizes[random_bits() % 12];
    }
    const uint32_t steps[] = {told.bytes, told.bytes, told.bytes, 0, 0, 8};
    told.step = steps[random_bits() % 6];
    told.offset = (uint64_t)random_between(0, 4) * 32;
    told.offset += random_bits() % 8 == 0 ? (uint64_t)random_between(0, 24) * 4 : 0;
    told.offset -= random_bits() % 32 == 0 ? 4 : 0;
    told.offset -= told.kind != ATOMIC && random_bits() % 256 == 0 ? 2 : 0;
    told.known = told.kind == WRITE && random_bits() % 4 != 0;
    memset(told.values, (int)random_between(1, 2), sizeof told.values);
    told.inside = random_bits() % 16 == 0 ? random_bits() : UINT64_MAX;
    if (both.reads && random_bits() % 16 != 0) {
        told = (struct told){.line = 7, .kind = READ, .bytes = 4, .inside = UINT64_MAX, .mask = row_mask(0)};
        told.step = random_bits() % 2 == 0 ? 0 : 4;
        told.offset = told.step == 0 ? (uint64_t)random_between(0, 15) * 4 : (uint64_t)random_between(0, 1) * 32;
    }
    return told;
}

static void tell_buffer(dmlk_watched_wave *wave, const struct told *told) {
    const bool reads = told->kind == READ;
    const dmlk_shader_view *view = &both.views[reads ? random_between(0, 4) : random_between(0, 1)];
    const uint8_t *values = told->known ? told->values : NULL;
    dmlk_shader_accessed_row(&both.call[0], wave, told->line, told->kind, view, told->offset, told->step, told->bytes,
                             values, told->mask);
    const dmlk_shader_view *views[DMLK_MOST_LANES];
    uint64_t offsets[DMLK_MOST_LANES];
    for (uint64_t i = 0; i < DMLK_MOST_LANES; i++) {
        views[i] = view;
        offsets[i] = told->offset + i * told->step;
    }
    if (told->known) {
        dmlk_shader_stored(&both.call[1], wave, told->line, views, offsets, values, told->bytes, told->mask);
    } else {
        dmlk_shader_accessed(&both.call[1], wave, told->line, told->kind, views, offsets, told->bytes, told->mask);
    }
}

/* What code does by itself (dmlemu.shaders.calls); false: it has to tell the access. */
static bool skips(const struct told *told) {
    const dmlk_watched_wave *wave = &both.wave;
    const uint64_t word = told->offset / 4, count = told->step == 0 ? 1 : ROW_LANES;
    if (told->kind != READ || told->bytes != 4 || told->step > 4 || told->inside != UINT64_MAX || wave->known == NULL ||
        told->offset % 4 != 0 || told->offset >= ROW_SHARED || 4 * (word + count) > ROW_SHARED) {
        return false;
    }
    uint64_t known = 0;
    for (uint64_t i = word; i < word + count; i++) {
        known += wave->known[i / 64] >> i % 64 & 1;
    }
    if (known == count) {
        both.known++;
        return true;
    }
    const uint64_t bit = word - wave->simple_first;
    if (told->step != 0 || told->mask != row_mask(0) || wave->first + ROW_LANES > ROW_THREADS || bit >= 64 ||
        (wave->simple >> bit & 1) == 0 || told->line != wave->simple_line) {
        return false;
    }
    both.simple++;
    memcpy(&wave->cells[2 * word], wave->pair, sizeof wave->pair);
    return true;
}

static void tell_shared(dmlk_watched_wave *wave, const struct told *told) {
    const uint8_t *values = told->known ? told->values : NULL;
    if (both.wave.first != wave->first || both.wave.group[0] != wave->group[0]) {
        both.wave = *wave;
    }
    if (!skips(told)) {
        dmlk_shader_shared_row(&both.call[0], &both.wave, told->line, told->kind, (uint32_t)told->offset, told->step,
                               told->bytes, values, told->inside, told->mask);
    }
    uint64_t offsets[DMLK_MOST_LANES];
    for (uint32_t i = 0; i < DMLK_MOST_LANES; i++) {
        offsets[i] = (told->inside >> i & 1) != 0 ? (uint32_t)told->offset + i * told->step : UINT64_MAX;
    }
    if (told->known) {
        dmlk_shader_shared_stored(&both.call[1], wave, told->line, offsets, values, told->bytes, told->mask);
    } else {
        dmlk_shader_shared(&both.call[1], wave, told->line, told->kind, offsets, told->bytes, told->mask);
    }
}

static void tell_barrier(uint32_t group, uint32_t first, uint32_t line, uint32_t flags, uint64_t mask) {
    dmlk_watched_wave wave = {.group = {group, 0, 0}, .first = first, .lanes = ROW_LANES};
    both.wave = wave;
    dmlk_shader_barrier(&both.call[0], &both.wave, line, flags, mask);
    dmlk_shader_barrier(&both.call[1], &wave, line, flags, mask);
}

static uint64_t barrier_mask(void) { return random_bits() % 256 == 0 ? random_mask() : UINT64_MAX; }

static void tell_group(uint32_t group) {
    const uint32_t phases = (uint32_t)random_between(1, 4), accesses = (uint32_t)random_between(1, 20);
    struct told tile = {.line = 8, .kind = WRITE, .step = 4, .bytes = 4, .inside = UINT64_MAX, .known = true};
    for (uint32_t first = 0; first < ROW_THREADS; first += ROW_LANES) { /* a tile that the group reads */
        dmlk_watched_wave wave = {.group = {group, 0, 0}, .first = first, .lanes = ROW_LANES};
        tile.mask = row_mask(first);
        tile.offset = first * 4;
        tell_shared(&wave, &tile);
    }
    for (uint32_t phase = 0; phase < phases; phase++) {
        both.reads = phase > 0 && random_bits() % 2 == 0;
        uint32_t first = 0;
        for (uint32_t i = 0; i < (both.reads ? 3 : 1) * accesses; i++) {
            first = random_bits() % 4 != 0 ? first : (uint32_t)random_between(0, 2) * ROW_LANES;
            dmlk_watched_wave wave = {.group = {group, 0, 0}, .first = first, .lanes = ROW_LANES};
            const struct told told = random_told();
            (random_bits() % (both.reads ? 8 : 2) == 0 ? tell_buffer : tell_shared)(&wave, &told);
            if (random_bits() % (both.reads ? 32 : 4) == 0) { /* only a fence */
                tell_barrier(group, first, 99, (uint32_t)(random_bits() % 8) * 2, barrier_mask());
            }
        }
        const uint32_t flags = (uint32_t)(random_bits() % 8) * 2 | (random_bits() % 8 != 0) | 8;
        for (first = 0; first < ROW_THREADS; first += ROW_LANES) {
            tell_barrier(group, first, 100 + phase, flags, barrier_mask());
        }
    }
}

static void compare_footprints(int written) {
    dmlk_shader_bytes found[2][64];
    uint64_t count[2];
    for (int i = 0; i < 2; i++) {
        count[i] = dmlk_shader_footprint(both.watch[i], (uintptr_t)memory, sizeof memory, written, found[i], 64);
    }
    CHECK_EQUAL(count[0], count[1]);
    CHECK(count[0] <= 64 && memcmp(found[0], found[1], count[0] * sizeof found[0][0]) == 0);
}

/* Ends both and expects the same of them; returns how many findings there are. */
static uint64_t end_both(void) {
    dmlk_shader_watch_result result[2];
    for (int i = 0; i < 2; i++) {
        dmlk_shader_watch_finish(both.watch[i], &result[i]);
    }
    CHECK_EQUAL(result[0].count, result[1].count);
    CHECK_EQUAL(result[0].dropped, 0);
    CHECK_EQUAL(result[0].unchecked, result[1].unchecked);
    CHECK(result[0].bytes == result[1].bytes || both.lanes > 8); /* lines take less */
    CHECK(memcmp(result[0].findings, result[1].findings, result[0].count * sizeof *result[0].findings) == 0);
    compare_footprints(0);
    compare_footprints(1);
    const uint64_t count = result[0].count;
    dmlk_shader_watch_free(both.watch[0]);
    dmlk_shader_watch_free(both.watch[1]);
    return count;
}

static void tell_row(uint32_t first, uint32_t line, uint32_t kind) {
    dmlk_watched_wave wave = {.first = first, .lanes = ROW_LANES};
    struct told told = {.line = line, .kind = kind, .step = 4, .bytes = 4, .inside = UINT64_MAX};
    told.known = kind == WRITE;
    told.mask = row_mask(first);
    tell_shared(&wave, &told);
}

TEST(a_row_that_is_read_with_two_clocks) {
    begin_both(8);
    tell_row(0, 1, WRITE);
    for (uint32_t first = 0; first < ROW_THREADS; first += ROW_LANES) {
        tell_barrier(0, first, 2, SHARED_BARRIER, UINT64_MAX);
    }
    tell_row(0, 3, READ);
    tell_row(8, 3, READ);
    tell_row(0, 3, READ); /* the row is known to have two readers */
    tell_barrier(0, 8, 4, DMLK_SHADER_FENCE_SHARED, UINT64_MAX);
    tell_row(8, 5, READ);
    tell_row(0, 6, READ);  /* and not any more */
    tell_row(16, 7, WRITE);
    CHECK(end_both() > 0);
}

TEST(rows_are_told_like_lanes) {
    uint64_t findings = 0, silent = 0;
    for (uint64_t seed = 0; seed < 10000 && test_failures == 0; seed++) {
        random_seed(seed);
        begin_both(seed % 3 == 0 ? 8 : seed % 3 == 1 ? 16 : 32);
        const uint32_t groups = (uint32_t)random_between(1, 3);
        for (uint32_t group = 0; group < groups; group++) {
            tell_group(group);
        }
        const uint64_t count = end_both();
        findings += count;
        silent += count == 0;
    }
    CHECK(findings > 10000 && silent > 1 && both.known > 1000 && both.simple > 100);
}

/* --- a dispatch on several threads --- */

#define SLICE 64 /* bytes of each group */
#define PART_GROUPS 12
#define SHARED_OFTEN 16 /* of so many accesses, one may be of another group's slice, in some dispatches */

static uint64_t parts_seed;

static uint32_t drawn(uint64_t *state, uint32_t below) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % below;
}

/* One random access; most are of the group's own slice, or reads of a table that nobody writes. */
static void access_of_group(const dmlk_shader_call *call, uint32_t group, uint64_t *state) {
    const bool strays = parts_seed % 4 == 0 && drawn(state, SHARED_OFTEN) == 0;
    const bool is_atomic = parts_seed % 8 == 1 && drawn(state, SHARED_OFTEN) == 0;
    const uint32_t slice = strays ? drawn(state, PART_GROUPS) : group, bytes = drawn(state, 4) == 0 ? 2 : 4;
    const uint32_t kind = is_atomic ? ATOMIC : READ + drawn(state, 2), line = 1 + drawn(state, 5);
    const bool is_table = kind == READ && drawn(state, 2) == 0;
    const uint8_t values[DMLK_MOST_LANES * 4] = {0};
    dmlk_watched_wave wave = {.group = {group, 0, 0}, .first = LANES * drawn(state, 2), .lanes = LANES};
    const uint64_t row = wave.first * (uint64_t)bytes; /* of its own for each wave */
    const uint64_t offset = is_table ? 2 * 4096 + 4 * drawn(state, 64) : slice * SLICE + row + (bytes == 2 ? 32 : 0);
    dmlk_shader_accessed_row(call, &wave, line, kind, call->ranges->views, offset, bytes, bytes,
                             kind == WRITE && drawn(state, 2) == 0 ? values : NULL, LANES == 4 ? 15 : 0);
}

static void group_of_parts(const dmlk_shader_call *call, uint32_t x, uint32_t y, uint32_t z, uint8_t *shared,
                           uint8_t *frames) {
    (void)y, (void)z, (void)shared, (void)frames;
    uint64_t state = parts_seed << 8 | x;
    for (uint32_t i = 0; i < 12; i++) {
        access_of_group(call, x, &state);
    }
}

/* The dispatch of the seed, by a watch that the caller frees. */
static dmlk_shader_watch *watch_parts(uint32_t in_parts, dmlk_shader_watch_result *result) {
    const dmlk_shader_watch_options options = {.threads = 8,
                                        .lanes = LANES,
                                        .most_findings = 1000,
                                        .most_bytes = UINT64_C(1) << 30,
                                        .in_parts = in_parts};
    const dmlk_shader_view view = {.base = memory, .bytes = sizeof memory, .id = 1};
    const dmlk_shader_range range = {.views = &view, .count = 1};
    dmlk_shader_fault fault = {0};
    const dmlk_shader_call call = {.run = group_of_parts,
                                   .ranges = &range,
                                   .groups = {PART_GROUPS, 1, 1},
                                   .fault = &fault,
                                   .order = parts_seed % 3 == 0 ? parts_seed << 20 | 1 : 0,
                                   .watch = dmlk_shader_watch_new(&options)};
    CHECK_EQUAL(dmlk_run_shader(&call), DMLK_OK);
    dmlk_shader_watch_finish(call.watch, result);
    return call.watch;
}

/* What is not doubtful in parts has no findings, and the same footprint. */
TEST(parts_of_a_dispatch) {
    const int threads = dmlk_threads();
    uint64_t doubtful = 0, sure = 0, races = 0;
    dmlk_split_everything();
    dmlk_set_threads(4);
    for (parts_seed = 0; parts_seed < 2000 && test_failures == 0; parts_seed++) {
        dmlk_shader_watch_result result[2];
        both.watch[0] = watch_parts(0, &result[0]);
        both.watch[1] = watch_parts(1, &result[1]);
        CHECK_EQUAL(result[0].is_doubtful, 0);
        if (result[1].is_doubtful) {
            CHECK(result[0].count > 0 || parts_seed % 8 == 1); /* nothing but findings and atomic accesses */
        } else {
            CHECK_EQUAL(result[0].count, 0);
            compare_footprints(0);
            compare_footprints(1);
        }
        races += result[0].count > 0;
        doubtful += result[1].is_doubtful;
        sure += !result[1].is_doubtful;
        dmlk_shader_watch_free(both.watch[0]);
        dmlk_shader_watch_free(both.watch[1]);
    }
    CHECK(races > 100 && doubtful > races && sure > 1000);
    dmlk_set_threads(threads);
}

/* With an argument: what runs on several threads alone, for ThreadSanitizer. */
int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        RUN(parts_of_a_dispatch);
        return RESULT();
    }
    RUN(threads_that_touch_their_own_bytes);
    RUN(a_race_of_two_groups);
    RUN(a_write_after_readers_of_other_groups);
    RUN(lanes_of_one_instruction_race);
    RUN(a_barrier_orders_the_threads_of_a_group);
    RUN(a_barrier_must_fence_the_memory);
    RUN(a_fence_before_the_barrier_counts);
    RUN(a_fence_after_the_barrier_does_not);
    RUN(a_wave_that_runs_ahead_is_not_ordered);
    RUN(writes_of_the_same_value);
    RUN(reads_of_what_many_have_written);
    RUN(an_unknown_value_is_another);
    RUN(atomic_accesses_do_not_race);
    RUN(atomic_accesses_of_different_sizes_race);
    RUN(an_atomic_access_and_a_write);
    RUN(the_last_thread_of_a_counter_may_reset_it);
    RUN(a_thread_that_is_not_the_last_may_not);
    RUN(the_last_group_may_read_what_all_have_written);
    RUN(without_a_fence_it_may_not);
    RUN(threads_that_do_not_wait_for_the_count_may_not);
    RUN(parts_of_a_word_are_other_bytes);
    RUN(smaller_cells_keep_what_was_known);
    RUN(an_access_over_the_end_of_a_page);
    RUN(two_views_of_the_same_bytes);
    RUN(counters_are_atomic);
    RUN(elements_of_a_typed_view);
    RUN(footprints_are_patterns);
    RUN(accesses_outside_of_a_view);
    RUN(the_part_inside_is_accessed);
    RUN(an_offset_that_wraps);
    RUN(a_root_descriptor_has_no_bounds);
    RUN(null_descriptors_are_silent);
    RUN(a_tile_of_groupshared_memory);
    RUN(a_tile_without_its_second_barrier);
    RUN(groups_have_groupshared_memory_of_their_own);
    RUN(groupshared_bytes_that_were_never_written);
    RUN(atomic_accesses_need_a_start);
    RUN(same_values_in_groupshared_memory);
    RUN(outside_of_groupshared_memory);
    RUN(a_barrier_for_a_part_of_a_wave);
    RUN(a_wave_that_ends_before_the_barrier);
    RUN(waves_at_different_barriers);
    RUN(a_last_wave_with_fewer_lanes);
    RUN(fences_need_no_other_threads);
    RUN(lanes_that_are_read);
    RUN(options_that_are_refused);
    RUN(more_findings_than_are_kept);
    RUN(no_memory_for_the_analysis);
    RUN(more_instructions_than_are_told_apart);
    RUN(random_dispatches);
    RUN(a_row_that_is_read_with_two_clocks);
    RUN(rows_are_told_like_lanes);
    RUN(parts_of_a_dispatch);
    return RESULT();
}
