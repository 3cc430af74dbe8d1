/* How a thread of the program takes the place of a thread of ours.  Included by workers.h.
 *
 * What a C library knows about a thread is found by the thread pointer, a register: its identity, its locks, and all
 * thread-local values.  While a thread of the program has the pointer of a worker, whose own thread sleeps, it is that
 * worker for the second C library and for Python, on the stack of the program.  All signals are blocked meanwhile: a
 * handler of the program would find the values of another thread.
 *
 * A compiler takes the addresses of thread-local values as constant within a function: so what runs before and after
 * the pointer has changed are separate functions, of which it knows nothing. */

#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__GNUC__) && !defined(__clang__)
#define CAPI_IN_ANOTHER_PLACE __attribute__((noipa))
#else
#define CAPI_IN_ANOTHER_PLACE __attribute__((noinline, optnone))
#endif

struct capi_place_of_thread {
    uintptr_t pointer; /* of the worker */
    uintptr_t own;     /* of the thread that is in its place */
    uint64_t signals;  /* that this thread blocks by itself */
};

/* Set in isolated mode where programs may change the thread pointer. */
static int capi_can_stand_in;

#if defined(__x86_64__)

enum { CAPI_FSGSBASE = 2 }; /* of AT_HWCAP2 */

static int capi_may_change_pointer(void)
{
    return (getauxval(AT_HWCAP2) & CAPI_FSGSBASE) != 0;
}

static uintptr_t capi_thread_pointer(void)
{
    uintptr_t pointer;
    __asm__ volatile("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

static void capi_set_thread_pointer(uintptr_t pointer)
{
    __asm__ volatile("wrfsbase %0" : : "r"(pointer) : "memory");
}

#else

static int capi_may_change_pointer(void)
{
    return 0;
}

static uintptr_t capi_thread_pointer(void)
{
    return 0;
}

static void capi_set_thread_pointer(uintptr_t pointer)
{
    (void)pointer;
}

#endif

/* (by the kernel's call: the C library's leaves its own signals unblocked) */
static void capi_block(const uint64_t *signals, uint64_t *before)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, signals, before, sizeof *signals);
}

static inline void capi_enter_place(struct capi_place_of_thread *place)
{
    static const uint64_t all = ~(uint64_t)0;
    capi_block(&all, &place->signals);
    place->own = capi_thread_pointer();
    capi_set_thread_pointer(place->pointer);
}

static inline void capi_leave_place(const struct capi_place_of_thread *place)
{
    capi_set_thread_pointer(place->own);
    capi_block(&place->signals, NULL);
}
