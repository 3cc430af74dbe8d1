/* cancellation.h - how the host stops a long-running kernel.
 *
 * Kernels count their work and periodically check whether to continue; a stopped kernel returns early, and
 * dmlk_dispatch returns DMLK_STOPPED.  Only the thread that called dmlk_dispatch polls the host; the other threads
 * of dmlk_parallel read its result. */
#ifndef DMLK_CANCELLATION_H
#define DMLK_CANCELLATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One running dispatch. */
typedef struct dmlk_watch {
    atomic_bool stopped;
    int64_t next_poll; /* nanoseconds; 0: the clock has not been read */
    int64_t end;       /* when it is stopped, by the same clock; 0: never */
    struct dmlk_watch *limit; /* that set the end, and is told when it has come; or NULL */
    struct dmlk_watch *outer; /* the host may dispatch again while it is polled */
} dmlk_watch;

/* Starts a dispatch on the calling thread, which works for it until dmlk_watch_end. */
void dmlk_watch_begin(dmlk_watch *watch);

/* Starts a limit: the next dispatch that the calling thread starts is stopped after so many seconds.  Ended by
 * dmlk_watch_end, which returns whether it came to that. */
void dmlk_watch_limit(dmlk_watch *limit, double seconds);

/* Ends the dispatch; returns whether it was stopped. */
bool dmlk_watch_end(dmlk_watch *watch);

/* CLOCK_MONOTONIC, in seconds. */
double dmlk_seconds(void);

/* Whether the dispatch that the calling thread works for was stopped. */
bool dmlk_watch_stopped(void);

/* The dispatch that the calling thread works for; helper threads inherit it.  NULL: none. */
dmlk_watch *dmlk_watch_current(void);
void dmlk_watch_join(dmlk_watch *watch);

#define DMLK_WORK_BETWEEN_LOOKS (INT64_C(1) << 18) /* elements that a thread processes between two checks */

/* Called by dmlk_stopped: polls the host if a poll is due, and returns whether the dispatch was stopped.  Its end is seen
 * by every thread. */
bool dmlk_look(int64_t *work);

/* Adds `amount` (roughly: elements) to the thread's count; true: return, the results are discarded.  A loop body
 * that processes more than DMLK_WORK_BETWEEN_LOOKS elements cannot be stopped in time. */
static inline bool dmlk_stopped(int64_t *work, int64_t amount) {
    *work += amount;
    return *work >= DMLK_WORK_BETWEEN_LOOKS && dmlk_look(work);
}

#endif
