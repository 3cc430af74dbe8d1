/* The pool of threads: every part runs once, whoever calls, whenever the process forks or ends. */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "cancellation.h"
#include "dmlk.h"
#include "parallel.h"
#include "test.h"
#include "threads.h"

#define MOST_PARTS 100
#define ROUNDS 300
#define CALLERS 6

typedef struct counts {
    atomic_int of_part[MOST_PARTS];
    atomic_int_least64_t items;
} counts;

static void count_part(int64_t begin, int64_t end, int part, void *context) {
    counts *c = context;
    atomic_fetch_add(&c->of_part[part], 1);
    atomic_fetch_add(&c->items, end - begin);
}

/* Whether each of `parts` parts of `items` items has run once. */
static bool run_each_once(int64_t items, int parts) {
    counts c = {0};
    dmlk_parallel(items, parts, count_part, &c);
    bool right = atomic_load(&c.items) == items;
    for (int part = 0; part < MOST_PARTS; part++) {
        right = right && atomic_load(&c.of_part[part]) == (part < parts);
    }
    return right;
}

static void nap(long microseconds) { nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL); }

TEST(each_part_runs_once) {
    for (int threads = 1; threads <= 5; threads++) {
        dmlk_set_threads(threads);
        for (int parts = 1; parts <= MOST_PARTS; parts += 1 + parts / 7) {
            CHECK(run_each_once(parts + random_between(0, 1000), parts));
        }
    }
    for (int round = 0; round < ROUNDS; round++) { /* some threads spin, some sleep, some are about to */
        dmlk_set_threads((int)random_between(1, 8));
        CHECK(run_each_once(1000, (int)random_between(1, 20)));
        if (round % 3 == 0) {
            nap(random_between(0, 120));
        }
    }
}

static void *call(void *wrong) {
    for (int round = 0; round < ROUNDS; round++) {
        if (!run_each_once(round + 10, 2 + round % 9)) {
            atomic_fetch_add((atomic_int *)wrong, 1);
        }
    }
    return NULL;
}

/* Runs `calls`, which counts what is wrong, on many threads at the same time. */
static void call_from_many(void *(*calls)(void *wrong)) {
    atomic_int wrong = 0;
    pthread_t threads[CALLERS];
    dmlk_set_threads(4);
    for (int i = 0; i < CALLERS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, calls, &wrong), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQUAL(wrong, 0);
}

TEST(many_callers) { call_from_many(call); }

static void call_within(int64_t begin, int64_t end, int part, void *wrong) {
    (void)part;
    if (dmlk_parts(1 << 20, 1) != 1 || !run_each_once(end - begin + 7, 5)) {
        atomic_fetch_add((atomic_int *)wrong, 1);
    }
}

/* Makes calls whose parts run `calls`, which counts what is wrong. */
static void call_in_parts(dmlk_part *calls) {
    atomic_int wrong = 0;
    dmlk_set_threads(4);
    for (int round = 0; round < ROUNDS; round++) {
        dmlk_parallel(100, 8, calls, &wrong);
    }
    CHECK_EQUAL(wrong, 0);
}

TEST(calls_within_parts) {
    call_in_parts(call_within);
    CHECK_EQUAL(dmlk_parts(1 << 20, 1), 4);
}

/* --- phases --- */

#define MOST_ITEMS 60

/* Phases of items that count how often they were run, after what they read: item i of a phase reads items i - reach ..
 * i + reach of the phase before. */
typedef struct chain {
    int count; /* of phases */
    int64_t items[DMLK_MOST_PHASES];
    unsigned after[DMLK_MOST_PHASES];
    int reach[DMLK_MOST_PHASES]; /* -1: reads nothing */
    int ran[DMLK_MOST_PHASES][MOST_ITEMS]; /* not atomic: a thread reads what another one has written */
    atomic_int wrong;
    long nap; /* microseconds, at most; of some parts */
} chain;

typedef struct chain_link {
    chain *c;
    int phase;
} chain_link;

/* (an item may read items that the phase before does not have) */
static void find_read(int64_t begin, int64_t end, void *context, int64_t *first, int64_t *last) {
    const chain_link *l = context;
    const int64_t reach = l->c->reach[l->phase], items = l->c->items[l->phase - 1];
    *first = begin - reach < 0 ? 0 : begin - reach;
    *last = end + reach > items ? items : end + reach;
}

static void check_ran(chain *c, int phase, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        if (c->ran[phase][i] != 1) {
            atomic_fetch_add(&c->wrong, 1);
        }
    }
}

static void run_link(int64_t begin, int64_t end, int part, void *context) {
    const chain_link *l = context;
    chain *c = l->c;
    if (c->nap > 0 && (begin * 7 + part + l->phase) % 3 == 0) {
        nap((begin * 13 + l->phase) % c->nap);
    }
    for (int i = 0; i < l->phase; i++) {
        if (c->after[l->phase] >> i & 1) {
            check_ran(c, i, 0, c->items[i]);
        }
    }
    if (c->reach[l->phase] >= 0) {
        int64_t first, last;
        find_read(begin, end, context, &first, &last);
        check_ran(c, l->phase - 1, first, last);
    }
    for (int64_t i = begin; i < end; i++) {
        c->ran[l->phase][i]++;
    }
}

static void run_chain(chain *c, const int *parts) {
    chain_link links[DMLK_MOST_PHASES];
    dmlk_pool_phase phases[DMLK_MOST_PHASES];
    for (int i = 0; i < c->count; i++) {
        links[i] = (chain_link){c, i};
        phases[i] = (dmlk_pool_phase){.items = c->items[i],
                                      .parts = parts[i],
                                      .run = run_link,
                                      .context = &links[i],
                                      .after = c->after[i],
                                      .reads = c->reach[i] >= 0 ? find_read : NULL};
    }
    dmlk_run_phases(phases, c->count);
}

/* Whether each item was run once, after what it reads. */
static bool is_right(chain *c) {
    for (int i = 0; i < c->count; i++) {
        check_ran(c, i, 0, c->items[i]);
    }
    return atomic_load(&c->wrong) == 0;
}

/* Chain number `seed` of those with up to `most` parts in a phase. */
static bool run_some_chain(unsigned seed, int most, long longest_nap) {
    chain c = {.count = 1 + (int)(seed % DMLK_MOST_PHASES), .nap = longest_nap};
    int parts[DMLK_MOST_PHASES];
    for (int i = 0; i < c.count; i++) {
        const unsigned k = seed / 5 + (unsigned)i * 7919 + (seed ^ (unsigned)i) * 31;
        parts[i] = 1 + (int)(k % (unsigned)most);
        c.items[i] = parts[i] + (int64_t)(k / 3 % 40);
        c.after[i] = k / 7 & ((1U << i) - 1);
        c.reach[i] = i > 0 ? (int)(k / 11 % 5) - 1 : -1;
    }
    run_chain(&c, parts);
    return is_right(&c);
}

TEST(phases_run_after_what_they_read) {
    for (unsigned round = 0; round < 2 * ROUNDS; round++) {
        dmlk_set_threads(1 + (int)(round % 7));
        CHECK(run_some_chain(round, 16, round % 3 == 0 ? 300 : 0));
        if (round % 5 == 0) {
            nap(random_between(0, 120));
        }
    }
}

static void *call_chains(void *wrong) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (!run_some_chain(round * 17, 9, 0) || !run_each_once(round + 10, 2 + (int)(round % 9))) {
            atomic_fetch_add((atomic_int *)wrong, 1);
        }
    }
    return NULL;
}

TEST(many_callers_of_phases) { call_from_many(call_chains); }

static void call_chain_within(int64_t begin, int64_t end, int part, void *wrong) {
    (void)end, (void)part;
    if (!run_some_chain((unsigned)begin, 5, 0)) {
        atomic_fetch_add((atomic_int *)wrong, 1);
    }
}

TEST(phases_within_parts) { call_in_parts(call_chain_within); }

/* A thread that waits for another's part does what nobody has begun, and then sleeps. */
TEST(a_thread_waits_for_a_part_that_takes_long) {
    for (int threads = 2; threads < 5; threads++) {
        chain c = {.count = 3, .items = {4, 40, 40}, .after = {0, 1, 0}, .reach = {-1, -1, 1}, .nap = 20000};
        dmlk_set_threads(threads);
        run_chain(&c, (int[]){4, 10, 20});
        CHECK(is_right(&c));
    }
}

/* That it sleeps does not make it look at the watch of a call before, which is gone. */
TEST(a_thread_that_waits_looks_at_the_watch_of_its_call) {
    dmlk_set_threads(4);
    for (int round = 0; round < 6; round++) {
        chain c = {.count = 3, .items = {4, 40, 40}, .after = {0, 1, 0}, .reach = {-1, -1, 1}, .nap = 3000};
        dmlk_watch *watch = malloc(sizeof *watch);
        dmlk_watch_begin(watch);
        run_chain(&c, (int[]){4, 10, 20});
        CHECK(!dmlk_watch_end(watch));
        free(watch);
        CHECK(is_right(&c));
    }
}

/* --- the threads themselves --- */

/* Calls `visit` with each thread of the pool: its number, and its file `of` in /proc. */
static int for_threads(const char *of, void (*visit)(int number, FILE *file, void *context), void *context) {
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char name[600];
        int number = 0;
        snprintf(name, sizeof name, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(name, "r");
        if (file != NULL) {
            if (fscanf(file, "dmlemu %d", &number) == 1) {
                found++;
                snprintf(name, sizeof name, "/proc/self/task/%s/%s", task->d_name, of);
                FILE *asked = fopen(name, "r");
                visit(number, asked, context);
                fclose(asked);
            }
            fclose(file);
        }
    }
    closedir(tasks);
    return found;
}

typedef struct facts {
    long long tid[DMLK_MOST_THREADS], sleeps[DMLK_MOST_THREADS];
    unsigned long long blocked;
} facts;

static void read_status(int number, FILE *file, void *context) {
    facts *f = context;
    char line[300];
    while (fgets(line, sizeof line, file) != NULL) {
        sscanf(line, "Pid: %lld", &f->tid[number]);
        sscanf(line, "SigBlk: %llx", &f->blocked);
        sscanf(line, "voluntary_ctxt_switches: %lld", &f->sleeps[number]);
    }
}

static void count_sleeping(int number, FILE *file, void *context) {
    char line[300];
    (void)number;
    while (fgets(line, sizeof line, file) != NULL) {
        *(int *)context += strncmp(line, "State:\tS", 8) == 0;
    }
}

/* Waits until the pool has `count` threads, all asleep; false: not within 20 seconds. */
static bool settle(int count) {
    for (int i = 0; i < 2000; i++) {
        int sleeping = 0;
        if (for_threads("status", count_sleeping, &sleeping) == count && sleeping == count) {
            return true;
        }
        nap(10000);
    }
    return false;
}

static void together(int parts) { CHECK(run_each_once(parts, parts)); }

TEST(threads_are_kept_and_sleep) {
    static facts before, after;
    dmlk_set_threads(8);
    together(8);
    CHECK(settle(7));
    for_threads("status", read_status, &before);
    for (int round = 0; round < 50; round++) {
        together(4);
        together(2);
    }
    CHECK(settle(7));
    for_threads("status", read_status, &after);
    for (int i = 1; i < 8; i++) {
        CHECK_EQUAL(after.tid[i], before.tid[i]);
        CHECK(i < 4 || after.sleeps[i] == before.sleeps[i]); /* those that have nothing to do are not woken */
    }
    const unsigned long long segv = 1ULL << (SIGSEGV - 1), interrupt = 1ULL << (SIGINT - 1);
    CHECK_EQUAL(after.blocked & (segv | interrupt), interrupt);
}

/* A part may take long: the others do not wait for its thread to come back. */
static void nap_in_first(int64_t begin, int64_t end, int part, void *context) {
    (void)begin, (void)end;
    if (part == 0) {
        nap(20000);
    }
    atomic_fetch_add((atomic_int *)context, part);
}

TEST(others_take_the_parts_of_a_busy_thread) {
    atomic_int sum = 0;
    dmlk_set_threads(2);
    dmlk_parallel(40, 40, nap_in_first, &sum);
    CHECK_EQUAL(sum, 40 * 39 / 2);
}

/* --- interrupts --- */

static atomic_int polls;
static atomic_bool other_began;

static int stop_at_once(void) {
    polls++;
    return 1;
}

/* Part 1 runs until the dispatch is stopped, which only the caller can find out, who has nothing more to do. */
static void wait_to_be_stopped(int64_t begin, int64_t end, int part, void *caller) {
    const bool is_caller = pthread_equal(*(pthread_t *)caller, pthread_self());
    (void)begin, (void)end, (void)part;
    if (is_caller) {
        while (!atomic_load(&other_began)) {
            nap(10);
        }
        return;
    }
    atomic_store(&other_began, true);
    while (!dmlk_watch_stopped()) {
        nap(10);
    }
}

TEST(a_caller_that_waits_can_be_stopped) {
    pthread_t self = pthread_self();
    dmlk_watch watch;
    dmlk_set_threads(2);
    polls = 0;
    atomic_store(&other_began, false);
    dmlk_set_poll(stop_at_once);
    dmlk_watch_begin(&watch);
    dmlk_parallel(2, 2, wait_to_be_stopped, &self);
    CHECK(dmlk_watch_end(&watch));
    CHECK_EQUAL(polls, 1);
    dmlk_set_poll(NULL);
}

static void do_nothing(int64_t begin, int64_t end, int part, void *context) {
    (void)begin, (void)end, (void)part, (void)context;
}

/* The same if the caller has taken a part that needs the other thread's. */
TEST(a_caller_that_waits_for_a_phase_can_be_stopped) {
    pthread_t self = pthread_self();
    dmlk_watch watch;
    dmlk_set_threads(2);
    polls = 0;
    atomic_store(&other_began, false);
    dmlk_set_poll(stop_at_once);
    dmlk_watch_begin(&watch);
    dmlk_run_phases((dmlk_pool_phase[]){{.items = 2, .parts = 2, .run = wait_to_be_stopped, .context = &self},
                                        {.items = 2, .parts = 2, .run = do_nothing, .after = 1}},
                    2);
    CHECK(dmlk_watch_end(&watch));
    CHECK_EQUAL(polls, 1);
    dmlk_set_poll(NULL);
}

/* --- other processes --- */

/* The exit status of a child, which has 20 seconds. */
static int status_of(pid_t child) {
    int status = 0;
    for (int i = 0; i < 2000; i++) {
        if (waitpid(child, &status, WNOHANG) == child) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        }
        nap(10000);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

#ifndef __SANITIZE_THREAD__ /* see main */
TEST(forked_processes_make_their_own_threads) {
    dmlk_set_threads(4);
    for (int asleep = 0; asleep < 2; asleep++) {
        together(4);
        nap(asleep * 5000);
        const pid_t child = fork();
        if (child == 0) {
            bool right = settle(0);
            for (int round = 0; round < ROUNDS; round++) {
                right = run_each_once(20, 2 + round % 5) && right;
            }
            _exit(settle(3) && right ? 7 : 1);
        }
        CHECK_EQUAL(status_of(child), 7);
        together(4);
    }
}

static atomic_bool has_forked;

static void *call_until_forked(void *unused) {
    while (!atomic_load(&has_forked)) {
        run_each_once(100, 8);
        run_some_chain(29, 6, 0);
    }
    return unused;
}

TEST(a_fork_while_another_thread_calls) {
    for (int round = 0; round < 10; round++) {
        pthread_t thread;
        atomic_store(&has_forked, false);
        CHECK_EQUAL(pthread_create(&thread, NULL, call_until_forked, NULL), 0);
        nap(random_between(0, 300));
        const pid_t child = fork();
        if (child == 0) {
            _exit(run_each_once(100, 8) && run_each_once(30, 3) && run_some_chain(29, 6, 0) ? 7 : 1);
        }
        atomic_store(&has_forked, true);
        pthread_join(thread, NULL);
        CHECK_EQUAL(status_of(child), 7);
    }
}

static atomic_int forked;

/* The caller forks once the other thread has begun, as a signal handler may; the other thread waits for that. */
static void fork_in_a_part(int64_t begin, int64_t end, int part, void *caller) {
    const bool is_caller = pthread_equal(*(pthread_t *)caller, pthread_self());
    (void)begin, (void)end, (void)part;
    if (!is_caller) {
        atomic_store(&other_began, true);
    }
    while (atomic_load(&forked) < 0 && !(is_caller && atomic_load(&other_began))) {
        nap(10);
    }
    if (is_caller) {
        forked = fork();
    }
}

/* The other parts are in the parent: in the child the dispatch counts as stopped, and does not wait for them. */
TEST(a_fork_within_a_part) {
    pthread_t self = pthread_self();
    dmlk_watch watch;
    dmlk_set_threads(2);
    atomic_store(&other_began, false);
    forked = -1;
    dmlk_watch_begin(&watch);
    dmlk_parallel(2, 2, fork_in_a_part, &self);
    const bool stopped = dmlk_watch_end(&watch);
    if (forked == 0) {
        _exit(stopped && run_each_once(10, 5) ? 7 : 1);
    }
    CHECK(!stopped);
    CHECK_EQUAL(status_of(forked), 7);
}

#ifdef __x86_64__
#define TRAP_FLAG 0x100ULL /* the CPU raises SIGTRAP after each instruction */
#define FORKS 24 /* of a call; a quarter of its instructions deal parts */

static long steps, fork_at; /* instructions; 0: never */

static void step(int signal, siginfo_t *info, void *interrupted) {
    (void)signal, (void)info;
    if (++steps == fork_at) {
        ((ucontext_t *)interrupted)->uc_mcontext.gregs[REG_EFL] &= (long long)~TRAP_FLAG;
        forked = fork();
    }
}

static void call_plain(void *c) { dmlk_parallel(6, 6, count_part, c); }

static void call_phases(void *c) { run_chain(c, (int[]){6, 6, 6}); }

/* A call, during which the process forks, and whether it was stopped. */
static bool fork_in_call(long at, void (*make)(void *context), void *context) {
    dmlk_watch watch;
    forked = -1;
    steps = 0;
    fork_at = at;
    dmlk_watch_begin(&watch);
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
    make(context);
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~TRAP_FLAG);
    return dmlk_watch_end(&watch);
}

static bool is_whole(counts *c) { return atomic_load(&c->items) == 6; }

/* As when a signal handler forks. */
TEST(a_fork_after_any_instruction_of_the_caller) {
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO}, before;
    counts c = {0};
    const chain three = {.count = 3, .items = {6, 12, 6}, .after = {0, 0, 1}, .reach = {-1, 1, 1}};
    sigaction(SIGTRAP, &action, &before);
    dmlk_set_threads(3);
    together(6);
    for (int with_phases = 0; with_phases < 2; with_phases++) {
        chain chained = three;
        void (*const make)(void *) = with_phases ? call_phases : call_plain;
        void *const context = with_phases ? (void *)&chained : (void *)&c;
        CHECK(!fork_in_call(0, make, context));
        const long most = steps, between = most / FORKS + 1;
        for (long at = random_between(1, between); at < most; at += between) {
            together(6);
            memset(&c, 0, sizeof c);
            chained = three;
            const bool stopped = fork_in_call(at, make, context), whole = with_phases ? is_right(&chained) : is_whole(&c);
            if (forked == 0) {
                _exit((stopped || whole) && run_each_once(20, 6) && run_some_chain(29, 6, 0) && run_each_once(20, 6) ? 7 : 1);
            }
            CHECK(whole && !stopped);
            if (forked > 0) { /* (a call may take fewer instructions than another) */
                CHECK_EQUAL(status_of(forked), 7);
            }
        }
    }
    sigaction(SIGTRAP, &before, NULL);
}
#endif

#endif

TEST(processes_end_while_threads_spin_or_sleep) {
    for (int way = 0; way < 6; way++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            dmlk_set_threads(4);
            run_each_once(100, 8);
            nap(way % 2 * 5000);
            if (way < 4) {
                (way < 2 ? _exit : exit)(7);
            }
            raise(SIGTERM);
        }
        CHECK_EQUAL(status_of(child), way < 4 ? 7 : 1000 + SIGTERM);
    }
}

/* --- how many --- */

static void write_quota(const char *folder, const char *text) {
    char name[300];
    snprintf(name, sizeof name, "%s/cpu.max", folder);
    FILE *file = fopen(name, "w");
    fputs(text, file);
    fclose(file);
}

TEST(quotas) {
    char root[] = "/tmp/dmlk_quotas_XXXXXX", group[300], file[320];
    CHECK(mkdtemp(root) != NULL);
    snprintf(group, sizeof group, "%s/group", root);
    CHECK_EQUAL(mkdir(group, 0700), 0);
    CHECK_EQUAL(dmlk_cpus_of_quota(root, "/group"), INT_MAX);
    write_quota(group, "max 100000\n");
    CHECK_EQUAL(dmlk_cpus_of_quota(root, "/group"), INT_MAX);
    write_quota(group, "250000 100000\n");
    CHECK_EQUAL(dmlk_cpus_of_quota(root, "/group"), 3);
    CHECK_EQUAL(dmlk_cpus_of_quota(root, "/group/below"), 3);
    write_quota(root, "200000 100000\n");
    CHECK_EQUAL(dmlk_cpus_of_quota(root, "/group"), 2);
    CHECK_EQUAL(dmlk_cpus_of_quota(root, "/"), 2);
    write_quota(root, "1000 100000\n");
    CHECK_EQUAL(dmlk_cpus_of_quota(root, "/group"), 1);
    snprintf(file, sizeof file, "%s/cpu.max", group);
    unlink(file);
    snprintf(file, sizeof file, "%s/cpu.max", root);
    unlink(file);
    rmdir(group);
    rmdir(root);
}

/* In another process, since the variable is read once. */
TEST(passive_threads_do_not_spin) {
    const pid_t child = fork();
    if (child == 0) {
        setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
        _exit(dmlk_may_spin(1) ? 1 : 7);
    }
    CHECK_EQUAL(status_of(child), 7);
    CHECK(dmlk_may_spin(1));
    CHECK(!dmlk_may_spin(dmlk_cpus() + 1));
}

TEST(numbers_of_threads) {
    CHECK(dmlk_cpus() >= 1);
    dmlk_set_threads(0);
    CHECK_EQUAL(dmlk_threads(), 1);
    dmlk_set_threads(INT_MAX);
    CHECK_EQUAL(dmlk_threads(), DMLK_MOST_THREADS);
    dmlk_set_threads(3);
    CHECK_EQUAL(dmlk_parts(100, 60), 1);
    CHECK_EQUAL(dmlk_parts(100, 50), 2);
    CHECK_EQUAL(dmlk_parts(100, 1), 3);
    dmlk_split_everything();
    CHECK_EQUAL(dmlk_parts(100, 60), 3);
    CHECK_EQUAL(dmlk_parts(2, 60), 2);
    CHECK_EQUAL(dmlk_parts(0, 60), 1);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0); /* so that children do not print it again */
    unsetenv("OMP_WAIT_POLICY");
    RUN(passive_threads_do_not_spin); /* these two before this process has made threads */
    RUN(processes_end_while_threads_spin_or_sleep);
    RUN(each_part_runs_once);
    RUN(many_callers);
    RUN(calls_within_parts);
    RUN(phases_run_after_what_they_read);
    RUN(many_callers_of_phases);
    RUN(phases_within_parts);
    RUN(a_thread_waits_for_a_part_that_takes_long);
    RUN(a_thread_that_waits_looks_at_the_watch_of_its_call);
    RUN(threads_are_kept_and_sleep);
    RUN(others_take_the_parts_of_a_busy_thread);
    RUN(a_caller_that_waits_can_be_stopped);
    RUN(a_caller_that_waits_for_a_phase_can_be_stopped);
#ifndef __SANITIZE_THREAD__ /* whose runtime ends a forked process that starts threads */
    RUN(forked_processes_make_their_own_threads);
    RUN(a_fork_while_another_thread_calls);
    RUN(a_fork_within_a_part);
#ifdef __x86_64__
    RUN(a_fork_after_any_instruction_of_the_caller);
#endif
#endif
    RUN(quotas);
    RUN(numbers_of_threads);
    return RESULT();
}
