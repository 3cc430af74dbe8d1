/* What the pool of threads costs: a shared library that pool.py compiles with kernels_c/device. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "parallel.h"
#include "threads.h"

static atomic_int met;
static int expected; /* 0: parts do nothing */

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Parts that wait until all have begun show when the last thread has come.  A program must not do so: a thread may take
 * the part of another, whose own part then waits.  So they wait for 10 ms at most. */
static void part(int64_t begin, int64_t end, int number, void *context) {
    (void)begin, (void)end, (void)number, (void)context;
    if (expected > 0) {
        atomic_fetch_add(&met, 1);
        const double end = seconds() + 0.01;
        while (atomic_load(&met) < expected && seconds() < end) {
        }
    }
}

/* Seconds of each of `rounds` calls of `parts` and `others` parts in turn, with so many nanoseconds of sleep between
 * two of them.  `meet`: each thread has a part. */
void pool_measure(int parts, int others, int meet, int64_t sleep, int rounds, double *out) {
    for (int i = 0; i < rounds; i++) {
        const int now = i % 2 == 0 ? parts : others;
        if (sleep > 0) {
            nanosleep(&(struct timespec){.tv_sec = sleep / 1000000000, .tv_nsec = sleep % 1000000000}, NULL);
        }
        atomic_store(&met, 0);
        expected = meet ? now : 0;
        const double begin = seconds();
        dmlk_parallel(now, now, part, NULL);
        out[i] = seconds() - begin;
    }
}

typedef struct work {
    double seconds; /* of an item */
    int64_t items;
} work;

static void busy_part(int64_t begin, int64_t end, int number, void *context) {
    (void)number;
    const double until = seconds() + (double)(end - begin) * ((const work *)context)->seconds;
    while (seconds() < until) {
    }
}

/* An item and its neighbours. */
static void neighbours(int64_t begin, int64_t end, void *context, int64_t *first, int64_t *last) {
    const int64_t items = ((const work *)context)->items;
    *first = begin > 0 ? begin - 1 : 0;
    *last = end < items ? end + 1 : items;
}

/* Seconds of each of `rounds` times two phases with `parts` parts of `first` and `second` seconds each, as one call or as
 * two. */
void pool_measure_phases(int parts, double first, double second, int together, int rounds, double *out) {
    work works[2] = {{first, parts}, {second, parts}};
    const dmlk_pool_phase phases[2] = {
        {.items = parts, .parts = parts, .run = busy_part, .context = &works[0]},
        {.items = parts, .parts = parts, .run = busy_part, .context = &works[1], .reads = neighbours}};
    for (int i = 0; i < rounds; i++) {
        const double begin = seconds();
        if (together) {
            dmlk_run_phases(phases, 2);
        } else {
            dmlk_parallel(parts, parts, busy_part, &works[0]);
            dmlk_parallel(parts, parts, busy_part, &works[1]);
        }
        out[i] = seconds() - begin;
    }
}

static _Thread_local int self; /* the number of the thread; 0: it has none yet */
static atomic_int threads;
static atomic_long moved;
static int last[DMLK_MOST_THREADS]; /* the thread that ran each part last */

static void note_thread(int64_t begin, int64_t end, int number, void *context) {
    self = self == 0 ? atomic_fetch_add(&threads, 1) + 1 : self;
    atomic_fetch_add(&moved, last[number] != self);
    last[number] = self;
    busy_part(begin, end, number, context);
}

/* Which of all parts of `rounds` calls were run by another thread than in the call before, whose caches may have what
 * they need; with so many seconds between two calls. */
double pool_measure_moved(int parts, double of_part, double between, int rounds) {
    work w = {of_part, parts};
    dmlk_parallel(parts, parts, note_thread, &w);
    atomic_store(&moved, 0);
    for (int i = 0; i < rounds; i++) {
        const double until = seconds() + between;
        while (seconds() < until) {
        }
        dmlk_parallel(parts, parts, note_thread, &w);
    }
    return (double)atomic_load(&moved) / (double)(parts * rounds);
}
