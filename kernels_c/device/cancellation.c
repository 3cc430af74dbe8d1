#define _POSIX_C_SOURCE 200809L
#include "cancellation.h"

#include <stddef.h>
#include <time.h>

#include "dmlk.h"

#define POLL_INTERVAL INT64_C(100000000) /* nanoseconds */

static int (*_Atomic poll_host)(void);
static _Thread_local dmlk_watch *current; /* the dispatch that this thread works for */
static _Thread_local dmlk_watch *begun;   /* the innermost dispatch that this thread called */

void dmlk_set_poll(int (*poll)(void)) { atomic_store(&poll_host, poll); }

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void begin(dmlk_watch *watch, int64_t end, dmlk_watch *limit) {
    atomic_init(&watch->stopped, false);
    watch->next_poll = 0;
    watch->end = end;
    watch->limit = limit;
    watch->outer = begun;
    current = begun = watch;
}

void dmlk_watch_begin(dmlk_watch *watch) {
    const bool is_limited = begun != NULL && begun->limit == begun;
    begin(watch, is_limited ? begun->end : 0, is_limited ? begun : NULL);
}

void dmlk_watch_limit(dmlk_watch *limit, double seconds) {
    const double most = 1e9; /* more than 30 years, in nanoseconds far below the type's limit */
    begin(limit, now() + (int64_t)((seconds < most ? seconds : most) * 1e9), limit);
}

bool dmlk_watch_end(dmlk_watch *watch) {
    current = begun = watch->outer;
    return atomic_load_explicit(&watch->stopped, memory_order_relaxed);
}

bool dmlk_watch_stopped(void) {
    return current != NULL && atomic_load_explicit(&current->stopped, memory_order_relaxed);
}

dmlk_watch *dmlk_watch_current(void) { return current; }

void dmlk_watch_join(dmlk_watch *watch) { current = watch; }

double dmlk_seconds(void) { return (double)now() / 1e9; }

/* Polls the host if a poll is due. */
static void poll_if_due(dmlk_watch *watch) {
    int (*const poll)(void) = atomic_load_explicit(&poll_host, memory_order_relaxed);
    if (poll == NULL) {
        return;
    }
    const int64_t time = now();
    const bool due = watch->next_poll != 0 && time >= watch->next_poll;
    if (due && poll() != 0) {
        atomic_store_explicit(&watch->stopped, true, memory_order_relaxed);
    }
    if (due || watch->next_poll == 0) {
        watch->next_poll = time + POLL_INTERVAL;
    }
}

/* Stops the dispatch if its end has come; any thread may find that. */
static void stop_if_late(dmlk_watch *watch) {
    if (watch->end != 0 && now() >= watch->end) {
        atomic_store_explicit(&watch->limit->stopped, true, memory_order_relaxed);
        atomic_store_explicit(&watch->stopped, true, memory_order_relaxed);
    }
}

bool dmlk_look(int64_t *work) {
    dmlk_watch *watch = current;
    if (watch != NULL) {
        stop_if_late(watch);
    }
    if (watch != NULL && watch == begun && !dmlk_watch_stopped()) { /* once stopped, the host is not polled again */
        poll_if_due(watch);
    }
    if (dmlk_watch_stopped()) {
        return true; /* the count stays, so that the outer loops check too */
    }
    *work = 0;
    return false;
}
