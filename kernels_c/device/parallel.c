/* parallel.c - the pool of threads (docs/decisions/0030-one-pool-of-threads.md).
 *
 * One call of dmlk_parallel at a time owns the pool.  It deals its parts to the shares of as many threads as there are
 * parts: thread 0 is the caller, the others are the pool's, made when they are first needed and never ended.  The same
 * parts go to the same threads, whose caches may hold what they need.  A part is begun by whoever takes it from its
 * share first: its own thread, or one that has nothing left to do, so that no call waits for a thread to come.
 *
 * A call may have phases, whose parts need some of the parts of earlier phases.  A thread that takes a part runs what
 * that part needs if nobody has begun it, and else waits for those who have: they wait for earlier phases at most.
 *
 * A part that is taken keeps its call from ending until it is counted off `unfinished`; so whoever has taken one may
 * read what the pool says about the call.  A thread that comes late finds its share empty. */
#define _GNU_SOURCE
#include "parallel.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif
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

/* Nanoseconds.  The end of a call is awaited for longer: who slept before it would be late for the next one, whose parts
 * others have begun meanwhile, and find nothing to do again. */
#define SPIN INT64_C(50000) /* longer than what lies between two dispatches of a list, about what it costs to be woken */
#define SPIN_IN_CALL INT64_C(1000000)
#define LOST INT64_C(200000) /* a spinning thread that notices such a gap has lost its CPU to another program */
#define CALM INT64_C(10000000) /* after that, no thread spins for so long */
#define LOOK INT64_C(100000000) /* how often a waiting caller looks whether the host wants to stop */

typedef struct share {
    APART atomic_uint_least64_t parts[DMLK_MOST_PHASES]; /* not begun yet: the first << 32, and one past the last */
    atomic_uint asleep;                                  /* 1: its thread sleeps, or is about to */
} share;

/* Which calls were the last to do part i of each phase. */
typedef struct mark {
    APART _Atomic int64_t call[DMLK_MOST_PHASES];
} mark;

static struct {
    atomic_bool is_owned;
    int made; /* threads besides the caller; changed by the owner */
    int most; /* no more can be made */
    volatile unsigned forks; /* a signal handler may fork at any moment */

    /* The call; `unfinished` parts of it are not done yet, with WAITED: its caller sleeps until they are. */
    _Atomic int64_t call; /* its number */
    const dmlk_pool_phase *phases;
    int count; /* of phases */
    dmlk_watch *watch;
    _Atomic int64_t parts; /* of all calls so far */
    APART atomic_uint unfinished;

    APART atomic_int sleepers; /* shares that are asleep */
    atomic_int team;           /* shares that the call uses */
    atomic_int to_wake;        /* shares from 1 to this one may be asleep and have parts */
    atomic_int cpu;            /* where the caller was when it dealt its parts */
    APART _Atomic int64_t no_spinning_until;
    APART atomic_uint waiters; /* threads that sleep, or are about to, until parts of the phases before are done */
    atomic_uint progress;      /* changes when such a part is done */
    share shares[DMLK_MOST_THREADS];
    mark marks[DMLK_MOST_THREADS];
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

/* The part that has the item. */
static int part_of(int64_t items, int parts, int64_t item) {
    const int64_t size = items / parts, longer = items % parts, of_longer = longer * (size + 1);
    return (int)(item < of_longer ? item / (size + 1) : longer + (item - of_longer) / size);
}

static void run_part(const dmlk_pool_phase *p, int part) {
    p->run(part_begin(p->items, p->parts, part), part_begin(p->items, p->parts, part + 1), part, p->context);
}

/* --- waiting --- */

#ifdef __linux__

static void sleep_while(atomic_uint *word, unsigned value, const struct timespec *timeout) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
}

static void wake(atomic_uint *word, int most) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0); }

#else /* other systems have no futex that programs may use: all wait for one condition, for a moment at most */

static pthread_mutex_t sleeping = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t waking = PTHREAD_COND_INITIALIZER;

static void sleep_while(atomic_uint *word, unsigned value, const struct timespec *timeout) {
    enum { MOST = 50000000, SECOND = 1000000000 };
    struct timespec end;
    (void)timeout; /* callers look again */
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += MOST;
    end.tv_sec += end.tv_nsec / SECOND;
    end.tv_nsec %= SECOND;
    pthread_mutex_lock(&sleeping);
    if (atomic_load(word) == value) {
        pthread_cond_timedwait(&waking, &sleeping, &end);
    }
    pthread_mutex_unlock(&sleeping);
}

static void wake(atomic_uint *word, int most) {
    (void)word, (void)most;
    pthread_mutex_lock(&sleeping);
    pthread_cond_broadcast(&waking);
    pthread_mutex_unlock(&sleeping);
}

#endif

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
    int thread;               /* 0: the caller */
    int64_t begin, end, last; /* 0: it has not begun */
    unsigned looks;
} patience;

/* (not by sched_getcpu, which believes the thread pointer: in the C interface, another thread may be in its place) */
static int this_cpu(void) {
    unsigned cpu = 0;
#ifdef SYS_getcpu /* elsewhere all seem to run on one, and none spins */
    syscall(SYS_getcpu, &cpu, NULL, NULL);
#endif
    return (int)cpu;
}

/* Passes a moment; false: the thread should sleep instead. */
static bool spins(patience *p) {
    if (p->end == 0) {
        p->begin = p->last = now();
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
    if (p->thread > 0 && this_cpu() == atomic_load_explicit(&pool.cpu, memory_order_relaxed)) {
        return false; /* this thread was woken on the CPU of its caller, who waits for it */
    }
    const int64_t time = now();
    if (time - p->last > LOST) {
        atomic_store_explicit(&pool.no_spinning_until, time + CALM, memory_order_relaxed);
        return false;
    }
    p->last = time;
    if (time >= p->end && time < p->begin + SPIN_IN_CALL &&
        (atomic_load_explicit(&pool.unfinished, memory_order_relaxed) & ~WAITED) != 0) {
        p->end = time + SPIN;
    }
    return time < p->end;
}

/* --- parts --- */

static bool is_empty(const share *s) {
    bool empty = true;
    for (int phase = 0; phase < DMLK_MOST_PHASES; phase++) {
        const uint64_t parts = atomic_load_explicit(&s->parts[phase], memory_order_relaxed);
        empty = empty && parts >> 32 >= (uint32_t)parts;
    }
    return empty;
}

/* Takes the first of `parts`, which a share has of a phase; false: there is none, or it has fewer meanwhile. */
static bool take_first(atomic_uint_least64_t *of_share, uint64_t *parts) {
    return *parts >> 32 < (uint32_t)*parts &&
           atomic_compare_exchange_weak_explicit(of_share, parts, *parts + (UINT64_C(1) << 32), memory_order_acquire,
                                                 memory_order_relaxed);
}

/* The next part of a share and its phase, the first one that has parts; -1: there is none. */
static int take(share *s, int *phase) {
    for (*phase = 0; *phase < DMLK_MOST_PHASES; ++*phase) {
        uint64_t parts = atomic_load_explicit(&s->parts[*phase], memory_order_relaxed);
        while (parts >> 32 < (uint32_t)parts) {
            const uint64_t first = parts >> 32;
            if (take_first(&s->parts[*phase], &parts)) {
                return (int)first;
            }
        }
    }
    return -1;
}

/* Parts of earlier phases, first .. end - 1 of each, that have to be done. */
typedef struct needs {
    int first[DMLK_MOST_PHASES], end[DMLK_MOST_PHASES];
} needs;

/* Finds what a part needs. */
static void find_needs(int phase, int part, needs *n) {
    const dmlk_pool_phase *p = &pool.phases[phase];
    for (int i = 0; i < phase; i++) {
        n->first[i] = 0;
        n->end[i] = p->after >> i & 1 ? pool.phases[i].parts : 0;
    }
    if (p->reads != NULL && !(p->after >> (phase - 1) & 1)) {
        const dmlk_pool_phase *before = p - 1;
        int64_t first = 0, end = before->items;
        p->reads(part_begin(p->items, p->parts, part), part_begin(p->items, p->parts, part + 1), p->context, &first, &end);
        n->first[phase - 1] = first < end ? part_of(before->items, before->parts, first) : 0;
        n->end[phase - 1] = first < end ? part_of(before->items, before->parts, end - 1) + 1 : 0;
    }
}

/* Whether all of it is done.  What is found to be done is not looked at again. */
static bool are_met(int phase, needs *n) {
    const int64_t call = atomic_load_explicit(&pool.call, memory_order_relaxed);
    for (int i = 0; i < phase; i++) {
        for (; n->first[i] < n->end[i]; n->first[i]++) {
            if (atomic_load(&pool.marks[n->first[i]].call[i]) != call) {
                return false;
            }
        }
    }
    return true;
}

/* Runs a part that the calling thread has taken. */
static void run_taken(int phase, int part) {
    run_part(&pool.phases[phase], part);
    if (phase < pool.count - 1) {
        atomic_store(&pool.marks[part].call[phase], atomic_load_explicit(&pool.call, memory_order_relaxed));
        if (atomic_load(&pool.waiters) != 0) {
            atomic_fetch_add(&pool.progress, 1);
            wake(&pool.progress, INT_MAX);
        }
    }
}

/* Runs a part of phase `last` or an earlier one that can be run at once; returns how many. */
static unsigned run_another(int last) {
    const int team = atomic_load_explicit(&pool.team, memory_order_relaxed);
    for (int phase = 0; phase <= last; phase++) {
        for (int i = 0; i < team; i++) {
            atomic_uint_least64_t *of_share = &pool.shares[i].parts[phase];
            uint64_t parts = atomic_load_explicit(of_share, memory_order_relaxed);
            if (parts >> 32 < (uint32_t)parts) {
                const int part = (int)(parts >> 32);
                needs n;
                find_needs(phase, part, &n);
                if (are_met(phase, &n) && take_first(of_share, &parts)) {
                    run_taken(phase, part);
                    return 1;
                }
            }
        }
    }
    return 0;
}

/* Sleeps until a part is done that others may need.
 *
 * Either the thread that does it, which marks it and then reads `waiters`, finds this thread among them, or this thread,
 * which joins them and then reads the mark, finds that it is done. */
static void wait_for_progress(int phase, needs *n) {
    int64_t work = 0;
    const unsigned seen = atomic_load(&pool.progress);
    atomic_fetch_add(&pool.waiters, 1);
    if (!are_met(phase, n)) {
        sleep_while(&pool.progress, seen, &(struct timespec){.tv_nsec = LOOK});
    }
    atomic_fetch_sub(&pool.waiters, 1);
    dmlk_look(&work);
}

/* Returns when a part that thread `thread` has taken can be run, or in a process that was forked since there were
 * `forks`.  What it needs that nobody has begun is run first; so others run the rest, and none of them waits for this
 * part. */
static unsigned wait_for_needs(int thread, int phase, int part, unsigned forks) {
    unsigned done = 0;
    needs n;
    find_needs(phase, part, &n);
    patience p = {.thread = thread};
    while (!are_met(phase, &n) && pool.forks == forks) {
        if (p.looks % 16 == 0) {
            const unsigned others = run_another(phase);
            if (others > 0) {
                done += others;
                continue;
            }
        }
        if (!spins(&p)) {
            wait_for_progress(phase, &n);
        }
    }
    return done;
}

/* Runs parts of a share, `most` at most; returns how many were run, these and others that they needed. */
static unsigned run_parts(int thread, share *s, unsigned most, unsigned forks) {
    unsigned done = 0;
    for (int phase, part; done < most && (part = take(s, &phase)) >= 0; done++) {
        dmlk_watch_join(pool.watch); /* before the thread waits: what it has joined before may be gone */
        if (phase > 0) {
            done += wait_for_needs(thread, phase, part, forks);
        }
        if (pool.forks != forks) {
            return done;
        }
        run_taken(phase, part);
    }
    return done;
}

/* Runs what is left of thread `thread`'s share, then of the others', one part at a time, and only of the same call: the
 * parts of the next one may be in the caches of the threads to which they are dealt, as this thread's soon are.  Parts
 * are counted off before others are looked for, which takes time that the caller should not wait. */
static void run_shares(int thread, unsigned forks) {
    share *own = &pool.shares[thread];
    int64_t call = 0;
    for (int next = 0, team = 1; next < team; team = atomic_load_explicit(&pool.team, memory_order_relaxed)) {
        const bool is_own = next == 0 || !is_empty(own);
        const int64_t newest = atomic_load_explicit(&pool.call, memory_order_relaxed);
        if (!is_own && newest != call) {
            return;
        }
        call = newest;
        share *s = is_own ? own : &pool.shares[(thread + next) % team];
        const unsigned done = run_parts(thread, s, is_own ? UINT_MAX : 1, forks);
        if (pool.forks != forks) {
            return; /* a signal handler has forked: see run_together */
        }
        if (done > 0 && atomic_fetch_sub_explicit(&pool.unfinished, done, memory_order_acq_rel) == (done | WAITED)) {
            wake(&pool.unfinished, 1);
        }
        next = is_own ? 1 : next + (done == 0);
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
            wake(&s->asleep, 1);
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
#ifdef __APPLE__
    pthread_setname_np(name);
#else
    pthread_setname_np(pthread_self(), name);
#endif
    inside = true;
    for (;;) {
        wait_for_parts(s);
        run_shares(number, pool.forks);
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

/* Forgets all parts, in a process that has no other threads. */
static void forget_parts(void) {
    for (int i = 0; i < DMLK_MOST_THREADS; i++) {
        for (int phase = 0; phase < DMLK_MOST_PHASES; phase++) {
            atomic_store_explicit(&pool.shares[i].parts[phase], 0, memory_order_relaxed);
        }
    }
    atomic_store(&pool.unfinished, 0);
    atomic_store(&pool.to_wake, 0);
}

/* Of the process that fork() makes, which has none of the threads: it makes its own. */
static void begin_anew(void) {
    forget_parts();
    for (int i = 0; i < DMLK_MOST_THREADS; i++) {
        atomic_store(&pool.shares[i].asleep, 0);
    }
    pool.made = 0;
    pool.forks++;
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.is_owned, false);
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, begin_anew); }

/* --- a call --- */

static bool own_pool(void) {
    return !atomic_load_explicit(&pool.is_owned, memory_order_relaxed) &&
           !atomic_exchange_explicit(&pool.is_owned, true, memory_order_acquire);
}

/* Gives the parts that are not done yet to the threads, as many to each: part `first` of phase `begun` and those that
 * follow. */
static void deal(int begun, int first) {
    int most = 0, all = 0;
    for (int phase = begun; phase < pool.count; phase++) {
        const int parts = pool.phases[phase].parts - (phase == begun ? first : 0);
        most = parts > most ? parts : most;
        all += parts;
    }
    const int threads = dmlk_threads(), wanted = most < threads ? most : threads;
    while (pool.made + 1 < wanted && pool.made < pool.most) {
        if (!make_thread()) {
            pool.most = pool.made;
        }
    }
    const int team = wanted <= pool.made ? wanted : pool.made + 1;
    const int64_t call = atomic_load_explicit(&pool.call, memory_order_relaxed) + 1;
    atomic_store_explicit(&pool.call, call, memory_order_relaxed);
    for (int phase = 0; phase <= begun && pool.count > 1; phase++) {
        for (int part = 0; part < (phase < begun ? pool.phases[phase].parts : first); part++) {
            atomic_store_explicit(&pool.marks[part].call[phase], call, memory_order_relaxed);
        }
    }
    atomic_store_explicit(&pool.parts, atomic_load_explicit(&pool.parts, memory_order_relaxed) + all, memory_order_relaxed);
    atomic_store_explicit(&pool.unfinished, (unsigned)all, memory_order_relaxed);
    atomic_store_explicit(&pool.waiters, 0, memory_order_relaxed); /* (after a fork, there may seem to be one) */
    atomic_store_explicit(&pool.team, team, memory_order_relaxed);
    atomic_store_explicit(&pool.cpu, this_cpu(), memory_order_relaxed);
    for (int i = team; i-- > 0;) {
        for (int phase = pool.count; phase-- > begun;) { /* a thread that sees parts sees those of later phases */
            const int from = phase == begun ? first : 0, parts = pool.phases[phase].parts - from;
            const uint64_t begin = (uint64_t)(from + part_begin(parts, team, i));
            const uint64_t end = (uint64_t)(from + part_begin(parts, team, i + 1));
            atomic_store_explicit(&pool.shares[i].parts[phase], begin << 32 | end, memory_order_release);
        }
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

/* Runs the phases from part `first` of phase `begun` on, with the pool's threads. */
static void run_together(const dmlk_pool_phase *phases, int count, int begun, int first) {
    const unsigned forks = pool.forks;
    pool.phases = phases;
    pool.count = count;
    pool.watch = dmlk_watch_current();
    deal(begun, first);
    run_shares(0, forks);
    wait_for_others(forks);
    if (pool.forks == forks) {
        atomic_store(&pool.to_wake, 0);
        atomic_store_explicit(&pool.is_owned, false, memory_order_release);
        return;
    }
    forget_parts(); /* other threads, and what they have begun, are in the parent */
    if (dmlk_watch_current() != NULL) {
        atomic_store(&dmlk_watch_current()->stopped, true);
    }
}

void dmlk_run_phases(const dmlk_pool_phase *phases, int count) {
    int left = 0;
    for (int i = 0; i < count; i++) {
        left += phases[i].parts > 1;
    }
    if (left == 0) {
        for (int i = 0; i < count; i++) {
            phases[i].run(0, phases[i].items, 0, phases[i].context);
        }
        return;
    }
    const bool outer = inside;
    inside = true;
    for (int phase = 0; phase < count; phase++) {
        for (int part = 0; part < phases[phase].parts; part++) {
            if ((phase < count - 1 || part < phases[phase].parts - 1) && own_pool()) {
                run_together(phases, count, phase, part);
                inside = outer;
                return;
            }
            run_part(&phases[phase], part);
        }
    }
    inside = outer;
}

void dmlk_parallel(int64_t items, int parts, dmlk_part *run, void *context) {
    if (parts <= 1) {
        run(0, items, 0, context);
        return;
    }
    dmlk_run_phases(&(dmlk_pool_phase){.items = items, .parts = parts, .run = run, .context = context}, 1);
}

void dmlk_pool_counts(int64_t *calls, int64_t *parts) {
    *calls = atomic_load_explicit(&pool.call, memory_order_relaxed);
    *parts = atomic_load_explicit(&pool.parts, memory_order_relaxed);
}
