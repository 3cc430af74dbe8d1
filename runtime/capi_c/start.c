/* libd3d12.so: starts Python on the first call, and forwards the exports to it.
 *
 * Only libc is linked: Python is loaded by the first export that is called. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "isolate.h"
#include "own_thread.h"
#include "place.h"
#include "python.h"
#include "python_lines.h"
#include "start.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_started, is_forked;
static atomic_int has_finished;

/* dl_iterate_phdr, called from here: it goes through the files of its caller's namespace, so no jump may replace the
 * call. */
static int iterate(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
    const int result = dl_iterate_phdr(callback, data);
    __asm__ volatile("" ::: "memory");
    return result;
}

static struct dmlemu_exports exports = {.iterate = iterate, .measure_stack = dmlemu_measure_stack};

/* Calls a function in the usual floating-point mode: on this thread or, if its stack has no room for an interpreter,
 * on a thread of our own, for which it waits.  0: there is no memory for a thread. */
static int call_with_room(void *(*function)(void *))
{
    struct dmlemu_stack stack = {0};
    pthread_attr_t attributes;
    pthread_t thread;
    int error = 0;
    const uint32_t mode = dmlemu_enter_mode();
    if (dmlemu_has_room(&stack, dmlemu_measure_stack) || pthread_attr_init(&attributes) != 0) {
        function(NULL);
    } else {
        pthread_attr_setstacksize(&attributes, DMLEMU_OWN_STACK);
        error = pthread_create(&thread, &attributes, function, NULL);
        if (error == 0)
            pthread_join(thread, NULL);
        pthread_attr_destroy(&attributes);
    }
    dmlemu_leave_mode(mode);
    return error == 0;
}

/* --- the end of the process --- */

static void *finish_own(void *unused)
{
    (void)unused;
    dmlemu_finish_python(&exports);
    return NULL;
}

/* Runs at exit() and quick_exit(), once.  Not in a forked process, which lacks the threads that hold Python's locks. */
static void finish(void)
{
    if (is_forked || atomic_exchange(&has_finished, 1))
        return;
    if (exports.is_isolated)
        dmlemu_finish_isolated();
    else
        call_with_room(finish_own);
}

/* Runs after the atexit functions and the destructors of the program's static objects, which may be older than
 * Python; also after the functions of quick_exit(), which destroys no static objects. */
__attribute__((destructor)) static void print_left(void)
{
    if (!is_forked && exports.print_left != NULL)
        exports.print_left();
}

#ifdef __GLIBC__
/* Runs after finish().  An exit() in here goes on with the functions that are left, under the new status. */
static void set_status(int status, void *unused)
{
    (void)unused;
    if ((status & 0xFF) == 0 && !is_forked && exports.fails())
        exit(1);
}
#endif

static void finish_quickly(void)
{
    finish();
    print_left();
}

/* --- the end by a signal, after which no function of exit() runs --- */

enum { MOST_FINISHING = 30 }; /* seconds: the thread that crashed may have Python's lock */

static sem_t is_signalled;
static atomic_int asked, has_written; /* asked: the number of a signal that somebody sent */
static atomic_long writer;            /* the thread below, for the system */

/* A thread that waits for the signal: the one that gets it may be inside of Python. */
static void *finish_when_signalled(void *unused)
{
    atomic_store(&writer, syscall(SYS_gettid));
    while (sem_wait(&is_signalled) != 0) {
    }
    finish();
    atomic_store(&has_written, 1);
    if (atomic_load(&asked) != 0)
        kill(getpid(), atomic_load(&asked)); /* whose handler is the default one again */
    return unused;
}

/* The program goes on until the files are written. */
static void end_on_request(int number)
{
    if (is_forked) {
        raise(number);
        return;
    }
    atomic_store(&asked, number);
    sem_post(&is_signalled);
}

/* The thread cannot go on.  Others may crash, too, while the files are written. */
static void end_after_crash(int number)
{
    const struct timespec pause = {0, 10000000};
    if (!is_forked && syscall(SYS_gettid) != atomic_load(&writer)) {
        sem_post(&is_signalled);
        for (int i = 0; i < MOST_FINISHING * 100 && !atomic_load(&has_written); i++)
            nanosleep(&pause, NULL);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void handle(int number, void (*function)(int), unsigned flags)
{
    const struct sigaction handler = {.sa_handler = function, .sa_flags = (int)(flags | SA_NODEFER | SA_RESTART)};
    struct sigaction present;
    if (sigaction(number, NULL, &present) == 0 && present.sa_handler == SIG_DFL)
        sigaction(number, &handler, NULL);
}

/* Handles the signals that would end the process, and that the program does not handle. */
static void finish_at_signals(void)
{
    static const int requests[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    static const int crashes[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    sem_init(&is_signalled, 0, 0);
    if (!dmlemu_start_thread(finish_when_signalled, NULL))
        return;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        handle(requests[i], end_on_request, SA_RESETHAND);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        handle(crashes[i], end_after_crash, 0);
}

static void after_fork(void)
{
    is_forked = 1;
    exports.end();
}

/* --- the beginning --- */

static void *start_own(void *unused)
{
    struct place place;
    (void)unused;
    if (!dmlemu_find_python(&place))
        return NULL;
    void *library = dlopen(place.library, RTLD_NOW | RTLD_GLOBAL);
    if (library != NULL)
        has_started = dmlemu_start_python(library, &place, &exports);
    else
        dmlemu_failed_without_python("Python's shared library cannot be loaded (on Debian: package libpython3.N)",
                                     dlerror());
    return NULL;
}

/* Starts in the mode for this process, or in the one that is asked for. */
static void start_in_mode(void)
{
    const char *mode = getenv("DMLEMU_CAPI_MODE");
    mode = mode != NULL ? mode : "";
    const int is_direct = strcmp(mode, "direct") == 0;
    if (*mode && !is_direct && strcmp(mode, "isolated") != 0) {
        dmlemu_failed("DMLEMU_CAPI_MODE can only be 'direct' or 'isolated', or not set; it is", mode);
        return;
    }
    void *present = dmlemu_python_of_process(is_direct ? RTLD_GLOBAL : RTLD_LOCAL);
    if (present != NULL)
        dmlemu_prepare_lines(present, &exports);
    if (!is_direct && (*mode || present != NULL))
        has_started = dmlemu_start_isolated(&exports);
    else if (present != NULL)
        has_started = dmlemu_join_python(present, &exports);
    else if (!call_with_room(start_own))
        dmlemu_failed("there is no memory for a thread with room for Python", "");
#ifdef __GLIBC__
    if (has_started)
        on_exit(set_status, NULL);
#endif
    if (has_started && (present == NULL || !is_direct)) { /* a Python of the program has functions of its own at exit */
        atexit(finish);
        at_quick_exit(finish_quickly);
    }
}

static void start(void)
{
    start_in_mode();
    if (!has_started)
        return;
    pthread_atfork(NULL, NULL, after_fork);
    if (exports.keeps_files())
        finish_at_signals();
}

const struct dmlemu_exports *dmlemu_start(void)
{
    pthread_once(&once, start);
    return has_started ? &exports : NULL;
}

#define DEFINE(name, parameters, arguments) DMLEMU_EXPORT(name, parameters, arguments)
DMLEMU_D3D12_EXPORTS(DEFINE)
DMLEMU_OWN_EXPORTS(DEFINE)
