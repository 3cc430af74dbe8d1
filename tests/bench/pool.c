/* What the pool of threads costs: a shared library that pool.py compiles with kernels_c/device. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "parallel.h"

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
