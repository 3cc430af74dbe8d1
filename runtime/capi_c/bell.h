/* How one thread waits for another one: it looks for a moment, then it sleeps.  Included by workers.h. */

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* For how many nanoseconds a thread watches a bell before it sleeps: for long, if the last wait was short. */
enum { CAPI_LEAST_SPIN = 2000, CAPI_MOST_SPIN = 50000, CAPI_SHORT_WAIT = 100000 };

/* Tells one thread that another one has done something. */
struct capi_bell {
    _Atomic uint32_t state;
    uint32_t spin; /* nanoseconds */
};

enum { CAPI_SILENT, CAPI_WATCHED, CAPI_AWAITED, CAPI_RUNG };

/* How many threads may watch bells at the same time: the thread that each waits for needs a CPU, too.  Whoever rings a
 * bell that is watched gives the place back, as it will watch another one itself soon. */
static _Atomic int capi_places;

static void capi_ring(struct capi_bell *bell)
{
    const uint32_t before = atomic_exchange(&bell->state, CAPI_RUNG);
    if (before == CAPI_AWAITED)
        syscall(SYS_futex, &bell->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    else if (before == CAPI_WATCHED)
        atomic_fetch_add(&capi_places, 1);
}

static int64_t capi_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void capi_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Watches the bell until the time is over, if there is a place. */
static void capi_watch(struct capi_bell *bell, int64_t end)
{
    uint32_t state = CAPI_SILENT, looks = 0;
    if (atomic_fetch_sub(&capi_places, 1) > 0 &&
        atomic_compare_exchange_strong(&bell->state, &state, CAPI_WATCHED)) {
        while (atomic_load(&bell->state) != CAPI_RUNG && (++looks % 16 != 0 || capi_now() < end))
            capi_pause();
        state = CAPI_WATCHED;
        if (!atomic_compare_exchange_strong(&bell->state, &state, CAPI_SILENT))
            return; /* it was rung, and the place is given back */
    }
    atomic_fetch_add(&capi_places, 1);
}

static void capi_sleep(struct capi_bell *bell)
{
    while (atomic_load(&bell->state) != CAPI_RUNG) {
        uint32_t state = CAPI_SILENT;
        atomic_compare_exchange_strong(&bell->state, &state, CAPI_AWAITED);
        syscall(SYS_futex, &bell->state, FUTEX_WAIT_PRIVATE, CAPI_AWAITED, NULL, NULL, 0);
    }
}

static void capi_wait(struct capi_bell *bell)
{
    const int64_t begin = capi_now();
    capi_watch(bell, begin + bell->spin);
    capi_sleep(bell);
    if (capi_now() - begin < CAPI_SHORT_WAIT)
        bell->spin = CAPI_MOST_SPIN;
    else if (bell->spin > CAPI_LEAST_SPIN)
        bell->spin /= 2;
    atomic_store(&bell->state, CAPI_SILENT);
}

static void capi_count_cpus(void)
{
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) == 0)
        atomic_store(&capi_places, CPU_COUNT(&usable) / 2);
}
