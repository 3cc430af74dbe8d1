/* parallel.c - the pool of threads (docs/decisions/0030-one-pool-of-threads.md).
 *
 * One call of dmlk_parallel at a time owns the pool.  It deals its parts to the shares of as many threads as there are
 * parts: thread 0 is the caller, the others are the pool's, made when they are first needed and never ended.  The same
 * parts go to the same threads, whose caches may hold what they need.  A part is begun by whoever takes it from its
 * share first: its own thread, or one that has nothing left to do, so that no call waits for a thread to come.
 *
 * A part that is taken keeps its call from ending until it is counted off `unfinished`; so whoever has taken one may
 * read what the pool says about the call.  A thread that comes late finds its share empty. */
#define _GNU_SOURCE
#include "parallel.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cancellation.h"
#include "checked.h"
#include "dmlk.h"
#include "threads.h"

#define APART _Alignas(128) /* two lines of the cache, which CPUs fetch together */
#define AT_ONCE 3 /* threads that one thread wakes: each wakes as many more */
#define WAITED (1U << 31)
#define STACK_SIZE (8 << 20) /* bytes; of these, kernels touch less than 768 KiB */

/* Nanoseconds. */
#define SPIN INT64_C(50000) /* longer than what lies between two dispatches of a list, about what it costs to be woken */
#define LOST INT64_C(200000) /* a spinning thread that notices such a gap has lost its CPU to another program */
#define CALM INT64_C(10000000) /* after that, no thread spins for so long */
#define LOOK INT64_C(100000000) /* how often a waiting caller looks whether the host wants to stop */

typedef struct share {
    APART atomic_uint_least64_t parts; /* not begun yet: the first << 32, and one past the last */
    atomic_uint asleep;                /* 1: its thread sleeps, or is about to */
} share;

static struct {
    atomic_bool is_owned;
    int made; /* threads besides the caller; changed by the owner */
    int most; /* no more can be made */
    volatile unsigned forks; /* a signal handler may fork at any moment */

    /* The call; `unfinished` parts of it are not done yet, with WAITED: its caller sleeps until they are. */
    int64_t items;
    int parts;
    dmlk_part *run;
    void *context;
    dmlk_watch *watch;
    APART atomic_uint unfinished;

    APART atomic_int sleepers; /* shares that are asleep */
    atomic_int team;           /* shares that the call uses */
    atomic_int to_wake;        /* shares from 1 to this one may be asleep and have parts */
    atomic_int cpu;            /* where the caller was when it dealt its parts */
    APART _Atomic int64_t no_spinning_until;
    share shares[DMLK_MOST_THREADS];
} pool = {.most = DMLK_MOST_THREADS - 1};

static _Thread_local bool inside; /* the thread runs a part: kernels that it runs use one thread */
static bool splits_everything;

void dmlk_split_everything(void) { splits_everything = true; }

int dmlk_parts(int64_t items, int64_t grain) {
    const bool alone = inside || dmlk_in_checked_kernel(); /* (a kernel may run others in its parts) */
    const int64_t threads = alone ? 1 : dmlk_threads();
    const int64_t worth = items / (grain > 1 && !splits_everything ? grain : 1);
    const int64_t parts = worth < threads ? worth : threads;
    return parts > 1 ? (int)parts : 1;
}

/* First item of part `part`; the first items % parts parts are one item longer. */
static int64_t part_begin(int64_t items, int parts, int part) {
    const int64_t longer = items % parts;
    return items / parts * part + (part < longer ? part : longer);
}

/* --- waiting --- */

static void sleep_while(atomic_uint *word, unsigned value, const struct timespec *timeout) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
}

static void wake_one(atomic_uint *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* (`yield` takes no time on most CPUs) */
#endif
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* How long a thread has spun. */
typedef struct patience {
    int thread;        /* 0: the caller */
    int64_t end, last; /* 0: it has not begun */
    unsigned looks;
} patience;

/* Passes a moment; false: the thread should sleep instead. */
static bool spins(patience *p) {
    if (p->end == 0) {
        p->last = now();
        p->end = p->last + SPIN;
        if (!dmlk_may_spin(atomic_load_explicit(&pool.team, memory_order_relaxed)) ||
            p->last < atomic_load_explicit(&pool.no_spinning_until, memory_order_relaxed)) {
            return false;
        }
    }
    pause_briefly();
    if (++p->looks % 16 != 0) {
        return true;
    }
    if (p->thread > 0 && sched_getcpu() == atomic_load_explicit(&pool.cpu, memory_order_relaxed)) {
        return false; /* this thread was woken on the CPU of its caller, who waits for it */
    }
    const int64_t time = now();
    if (time - p->last > LOST) {
        atomic_store_explicit(&pool.no_spinning_until, time + CALM, memory_order_relaxed);
        return false;
    }
    p->last = time;
    return time < p->end;
}

/* --- parts --- */

static bool is_empty(const share *s) {
    const uint64_t parts = atomic_load_explicit(&s->parts, memory_order_relaxed);
    return parts >> 32 >= (uint32_t)parts;
}

/* The next part of a share, or -1. */
static int take(share *s) {
    uint64_t parts = atomic_load_explicit(&s->parts, memory_order_relaxed);
    while (parts >> 32 < (uint32_t)parts) {
        if (atomic_compare_exchange_weak_explicit(&s->parts, &parts, parts + (UINT64_C(1) << 32), memory_order_acquire,
                                                  memory_order_relaxed)) {
            return (int)(parts >> 32);
        }
    }
    return -1;
}

/* Runs what is left of a share; returns how many parts. */
static unsigned run_parts(share *s) {
    unsigned done = 0;
    for (int part; (part = take(s)) >= 0; done++) {
        dmlk_watch_join(pool.watch);
        pool.run(part_begin(pool.items, pool.parts, part), part_begin(pool.items, pool.parts, part + 1), part,
                 pool.context);
    }
    return done;
}

/* Runs what is left of thread `thread`'s share, then of the others'.  Parts are counted off before others are looked
 * for, which takes time that the caller should not wait. */
static void run_shares(int thread) {
    const unsigned forks = pool.forks;
    const int team = atomic_load_explicit(&pool.team, memory_order_relaxed);
    for (int i = 0; i == 0 || i < team; i++) {
        const unsigned done = run_parts(&pool.shares[i == 0 ? thread : (thread + i) % team]);
        if (pool.forks != forks) {
            return; /* a signal handler has forked during a part: see run_together */
        }
        if (done > 0 && atomic_fetch_sub_explicit(&pool.unfinished, done, memory_order_acq_rel) == (done | WAITED)) {
            wake_one(&pool.unfinished);
        }
    }
}

/* --- the threads --- */

/* Wakes a few of those that the call needs; they wake the others. */
static void wake_some(void) {
    for (int woken = 0; woken < AT_ONCE;) {
        const int number = atomic_fetch_sub_explicit(&pool.to_wake, 1, memory_order_acquire);
        if (number < 1) {
            return;
        }
        share *s = &pool.shares[number];
        if (atomic_load_explicit(&s->asleep, memory_order_relaxed) && atomic_exchange(&s->asleep, 0)) {
            atomic_fetch_sub(&pool.sleepers, 1);
            wake_one(&s->asleep);
            woken++;
        }
    }
}

/* Returns when the share may have parts.
 *
 * Either the owner, which deals parts and then reads `sleepers`, finds this thread among them, or this thread, which
 * joins them and then reads its share, finds the parts: both change `sleepers`, one after the other. */
static void wait_for_parts(share *s) {
    for (patience p = {.thread = (int)(s - pool.shares)}; spins(&p);) {
        if (!is_empty(s)) {
            return;
        }
    }
    atomic_store(&s->asleep, 1);
    atomic_fetch_add(&pool.sleepers, 1);
    if (!is_empty(s)) {
        if (atomic_exchange(&s->asleep, 0)) {
            atomic_fetch_sub(&pool.sleepers, 1);
        }
        return;
    }
    while (atomic_load(&s->asleep)) {
        sleep_while(&s->asleep, 1, NULL);
    }
    wake_some();
}

static void *serve(void *own) {
    share *s = own;
    const int number = (int)(s - pool.shares);
    char name[16];
    snprintf(name, sizeof name, "dmlemu %d", number);
    pthread_setname_np(pthread_self(), name);
    inside = true;
    for (;;) {
        wait_for_parts(s);
        run_shares(number);
    }
    return NULL;
}

/* Makes the next thread, which handles no signals but those of its own faults; false: the system refuses.  (It is counted
 * before a signal handler can fork.) */
static bool make_thread(void) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        sigdelset(&blocked, faults[i]);
    }
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const bool made = pthread_create(&thread, &attributes, serve, &pool.shares[pool.made + 1]) == 0;
    pool.made += made;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return made;
}

/* Of the process that fork() makes, which has none of the threads: it makes its own. */
static void begin_anew(void) {
    for (int i = 0; i <= pool.made + 1 && i < DMLK_MOST_THREADS; i++) { /* (another thread may have been making one) */
        atomic_store(&pool.shares[i].parts, 0);
        atomic_store(&pool.shares[i].asleep, 0);
    }
    pool.made = 0;
    pool.forks++;
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.to_wake, 0);
    atomic_store(&pool.unfinished, 0);
    atomic_store(&pool.is_owned, false);
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, begin_anew); }

/* --- a call --- */

static bool own_pool(void) {
    return !atomic_load_explicit(&pool.is_owned, memory_order_relaxed) &&
           !atomic_exchange_explicit(&pool.is_owned, true, memory_order_acquire);
}

/* Gives parts `first` and later to the threads, as many to each. */
static void deal(int first) {
    const int threads = dmlk_threads(), parts = pool.parts - first, wanted = parts < threads ? parts : threads;
    while (pool.made + 1 < wanted && pool.made < pool.most) {
        if (!make_thread()) {
            pool.most = pool.made;
        }
    }
    const int team = wanted <= pool.made ? wanted : pool.made + 1;
    atomic_store_explicit(&pool.unfinished, (unsigned)parts, memory_order_relaxed);
    atomic_store_explicit(&pool.team, team, memory_order_relaxed);
    atomic_store_explicit(&pool.cpu, sched_getcpu(), memory_order_relaxed);
    for (int i = team; i-- > 0;) {
        const uint64_t begin = (uint64_t)(first + part_begin(parts, team, i));
        const uint64_t end = (uint64_t)(first + part_begin(parts, team, i + 1));
        atomic_store_explicit(&pool.shares[i].parts, begin << 32 | end, memory_order_release);
    }
    if (atomic_fetch_add(&pool.sleepers, 0) > 0) {
        atomic_store(&pool.to_wake, team - 1);
        wake_some();
    }
}

/* Returns when all parts of the call are done, or in a process that was forked since there were `forks`.  Meanwhile the
 * host may stop the call. */
static void wait_for_others(unsigned forks) {
    for (patience p = {0}; atomic_load_explicit(&pool.unfinished, memory_order_acquire) != 0 && pool.forks == forks;) {
        if (!spins(&p)) {
            break;
        }
    }
    unsigned left = atomic_load_explicit(&pool.unfinished, memory_order_acquire);
    while ((left & ~WAITED) != 0 && pool.forks == forks) {
        if ((left & WAITED) || atomic_compare_exchange_weak(&pool.unfinished, &left, left | WAITED)) {
            int64_t work = 0;
            sleep_while(&pool.unfinished, left | WAITED, &(struct timespec){.tv_nsec = LOOK});
            dmlk_look(&work);
            left = atomic_load_explicit(&pool.unfinished, memory_order_acquire);
        }
    }
}

/* Runs the call that the pool describes, from part `first`, with the pool's threads. */
static void run_together(int first) {
    const unsigned forks = pool.forks;
    deal(first);
    run_shares(0);
    wait_for_others(forks);
    if (pool.forks == forks) {
        atomic_store(&pool.to_wake, 0);
        atomic_store_explicit(&pool.is_owned, false, memory_order_release);
    } else if (dmlk_watch_current() != NULL) { /* other threads and their parts are in the parent */
        atomic_store(&dmlk_watch_current()->stopped, true);
    }
}

void dmlk_parallel(int64_t items, int parts, dmlk_part *run, void *context) {
    if (parts <= 1) {
        run(0, items, 0, context);
        return;
    }
    const bool outer = inside;
    inside = true;
    int part = 0;
    while (part < parts - 1 && !own_pool()) {
        run(part_begin(items, parts, part), part_begin(items, parts, part + 1), part, context);
        part++;
    }
    if (part < parts - 1) {
        pool.items = items;
        pool.parts = parts;
        pool.run = run;
        pool.context = context;
        pool.watch = dmlk_watch_current();
        run_together(part);
    } else {
        run(part_begin(items, parts, part), items, part, context);
    }
    inside = outer;
}
