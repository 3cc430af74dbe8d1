/* parallel.h - splits work between threads; the only code that uses threads.
 *
 * Work is split into parts of consecutive items.  Results of a kernel must not depend on the split, and therefore
 * not on the number of threads. */
#ifndef DMLK_PARALLEL_H
#define DMLK_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

/* Processes items begin .. end - 1 as part `part`. */
typedef void dmlk_part(int64_t begin, int64_t end, int part, void *context);

/* Bytes read and written that justify a thread: 5 microseconds of work in a second-level cache (Intel Emerald Rapids,
 * 2026).  With this much work each, two threads take 0.7 of the time of one thread; with three times as much, 0.55.
 * It takes 10 to 50 microseconds until a sleeping thread runs; meanwhile the caller does what was meant for it. */
#define DMLK_WORTH_A_THREAD (3 << 17)
#define DMLK_COPY_WORTH_A_THREAD (DMLK_WORTH_A_THREAD / 2) /* bytes written, if as many are read */

/* The number of parts for `items`, if `grain` items justify a thread.  At least 1. */
int dmlk_parts(int64_t items, int64_t grain);

/* Splits `items` items into `parts` parts and runs each once, on the calling thread or another one of the pool; returns
 * when all are done.  Any thread may run any part, and one may run several in turn: a part must not wait for another.
 * While other calls use the pool, the calling thread begins alone. */
void dmlk_parallel(int64_t items, int parts, dmlk_part *run, void *context);

#define DMLK_MOST_PHASES 6

/* The items of the phase before that items begin .. end - 1 read: from *first to *last - 1. */
typedef void dmlk_reads(int64_t begin, int64_t end, void *context, int64_t *first, int64_t *last);

/* Items as of dmlk_parallel, in parts; with more phases than one, at most DMLK_MOST_THREADS parts. */
typedef struct dmlk_pool_phase {
    int64_t items;
    int parts;
    dmlk_part *run;
    void *context;
    unsigned after;    /* bit i: a part is run after all of phase i, an earlier one */
    dmlk_reads *reads; /* if not NULL: a part is run after those parts of the phase before that have what it reads */
} dmlk_pool_phase;

/* Runs up to DMLK_MOST_PHASES phases as one call: a thread goes on to the next phase while others are in this one. */
void dmlk_run_phases(const dmlk_pool_phase *phases, int count);

/* For tests: from now on every item justifies a thread. */
void dmlk_split_everything(void);

#endif
