#define _POSIX_C_SOURCE 200809L
#include "parallel.h"

#include <omp.h>
#include <pthread.h>
#include <stdbool.h>

#include "checked.h"
#include "cancellation.h"

/* The threads of an OpenMP pool do not survive fork(), and the child would wait for them indefinitely: a forked
 * process (such as one of Python's multiprocessing) uses one thread. */
static bool forked = false;

static void note_fork(void) { forked = true; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, note_fork); }

int dmlk_parts(int64_t items, int64_t grain) {
    bool alone = forked || omp_in_parallel() || dmlk_in_checked_kernel(); /* (a kernel may run others in its parts) */
    int64_t threads = alone ? 1 : omp_get_max_threads();
    int64_t worth = items / (grain > 1 ? grain : 1);
    int64_t parts = worth < threads ? worth : threads;
    return parts > 1 ? (int)parts : 1;
}

/* First item of part `part`; the first items % parts parts are one item longer. */
static int64_t part_begin(int64_t items, int parts, int part) {
    int64_t longer = items % parts;
    return items / parts * part + (part < longer ? part : longer);
}

void dmlk_parallel(int64_t items, int parts, dmlk_part *run, void *context) {
    if (parts <= 1) {
        run(0, items, 0, context);
        return;
    }
    dmlk_watch *watch = dmlk_watch_current();
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int part = 0; part < parts; part++) {
        dmlk_watch_join(watch);
        run(part_begin(items, parts, part), part_begin(items, parts, part + 1), part, context);
    }
}
