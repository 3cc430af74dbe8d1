/* three_threads.c - replaces device/parallel.c: all work that can be split is split, into up to three parts.
 *
 * So threads share the work on tensors of a few elements, and ThreadSanitizer sees how they wait for each other; it
 * does not see that inside OpenMP's runtime, which is not compiled for it.  One thread at a time may call
 * dmlk_parallel. */
#include <pthread.h>
#include <stdbool.h>

#include "checked.h"
#include "parallel.h"
#include "cancellation.h"
#include "test.h"

#define THREADS 3

struct work {
    int64_t items;
    int parts;
    dmlk_part *run;
    void *context;
    dmlk_watch *watch;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct work work;
static uint64_t calls; /* calls of dmlk_parallel in which the helpers take part */
static int busy;       /* helpers that are still working */
static _Thread_local bool inside; /* this thread runs a part: kernels that it runs use one thread */

int dmlk_parts(int64_t items, int64_t grain) {
    (void)grain;
    return inside || dmlk_in_checked_kernel() || items < 1 ? 1 : items < THREADS ? (int)items : THREADS;
}

static void run_part(const struct work *w, int part) {
    if (part < w->parts) {
        inside = true;
        w->run(w->items * part / w->parts, w->items * (part + 1) / w->parts, part, w->context);
        inside = false;
    }
}

static void *help(void *part) {
    for (uint64_t call = 1;; call++) {
        pthread_mutex_lock(&lock);
        while (calls < call) {
            pthread_cond_wait(&begun, &lock);
        }
        const struct work mine = work;
        pthread_mutex_unlock(&lock);
        dmlk_watch_join(mine.watch);
        run_part(&mine, *(const int *)part);
        pthread_mutex_lock(&lock);
        if (--busy == 0) {
            pthread_cond_signal(&done);
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void start_helpers(void) {
    static int parts[THREADS];
    for (int i = 1; i < THREADS; i++) {
        pthread_t thread;
        parts[i] = i;
        if (pthread_create(&thread, NULL, help, &parts[i]) != 0 || pthread_detach(thread) != 0) {
            perror("pthread_create");
            exit(EXIT_FAILURE);
        }
    }
}

void dmlk_parallel(int64_t items, int parts, dmlk_part *run, void *context) {
    static pthread_once_t started = PTHREAD_ONCE_INIT;
    const struct work mine = {items, parts, run, context, dmlk_watch_current()};
    if (parts <= 1) {
        run(0, items, 0, context);
        return;
    }
    pthread_once(&started, start_helpers);
    pthread_mutex_lock(&lock);
    work = mine;
    busy = THREADS - 1;
    calls++;
    pthread_cond_broadcast(&begun);
    pthread_mutex_unlock(&lock);
    run_part(&mine, 0);
    pthread_mutex_lock(&lock);
    while (busy > 0) {
        pthread_cond_wait(&done, &lock);
    }
    pthread_mutex_unlock(&lock);
}
