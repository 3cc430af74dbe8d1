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

void dmlk_watch_begin(dmlk_watch *watch) {
    atomic_init(&watch->stopped, false);
    watch->next_poll = 0;
    watch->outer = begun;
    current = begun = watch;
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

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

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

bool dmlk_look(int64_t *work) {
    dmlk_watch *watch = current;
    if (watch != NULL && watch == begun && !dmlk_watch_stopped()) { /* once stopped, the host is not polled again */
        poll_if_due(watch);
    }
    if (dmlk_watch_stopped()) {
        return true; /* the count stays, so that the outer loops check too */
    }
    *work = 0;
    return false;
}
