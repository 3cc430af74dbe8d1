/* cancellation.h - how the host ends a kernel that takes long.
 *
 * Kernels count their work and now and then look whether to go on; one that is not to returns early,
 * and dmlk_dispatch answers DMLK_STOPPED.  Only the thread that called dmlk_dispatch asks the host; the
 * other threads of dmlk_parallel read what it was told. */
#ifndef DMLK_CANCELLATION_H
#define DMLK_CANCELLATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One dispatch that is under way. */
typedef struct dmlk_watch {
    atomic_bool stopped;
    int64_t next_poll; /* nanoseconds; 0: the clock has not been read */
    struct dmlk_watch *outer; /* the host may dispatch again while it is asked */
} dmlk_watch;

/* What the calling thread does from now on belongs to a dispatch that it began. */
void dmlk_watch_begin(dmlk_watch *watch);

/* Was it stopped? */
bool dmlk_watch_end(dmlk_watch *watch);

/* Is the dispatch stopped that the calling thread works for? */
bool dmlk_watch_stopped(void);

/* The dispatch that the calling thread works for; a thread that helps takes it over.  NULL: none. */
dmlk_watch *dmlk_watch_current(void);
void dmlk_watch_join(dmlk_watch *watch);

#define DMLK_WORK_BETWEEN_LOOKS (INT64_C(1) << 18)

/* For dmlk_stopped. */
bool dmlk_look(int64_t *work);

/* Adds `amount` (roughly: elements) to the thread's count; true: return, the results no longer matter.
 * Loops inside which more than DMLK_WORK_BETWEEN_LOOKS elements are handled cannot be stopped in time. */
static inline bool dmlk_stopped(int64_t *work, int64_t amount) {
    *work += amount;
    return *work >= DMLK_WORK_BETWEEN_LOOKS && dmlk_look(work);
}

#endif
