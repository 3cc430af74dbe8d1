/* Threads of our own, the workers, which serve the calls of threads on which Python cannot run: those without room for
 * an interpreter and, in isolated mode, all.  Included by hook.h.
 *
 * There are as many workers as there were such calls at the same time.  They live as long as the process.  If such a
 * call calls a function of the program (a message callback), that runs on the program's thread, as in all other
 * calls.  Calls from inside it are served by the same worker, which may hold locks that they need.
 *
 * In isolated mode a thread with room takes the place of a worker, as stand_in.h says, so that nobody is woken. */

#include <pthread.h>
#include <sys/mman.h>

#include "bell.h"
#include "own_thread.h"
#include "stand_in.h"

struct capi_worker {
    struct capi_worker *next; /* in the list of idle workers */
    struct capi_bell called, done;
    struct _cffi_externpy_s *method; /* NULL: the function of the program has returned */
    char *arguments;
    struct capi_site site;
    int is_passing, must_stop;
    void (*function)(void *); /* of the program; NULL: the call is done */
    void *argument;
    struct capi_place_of_thread place; /* set before `done` is rung the first time */
    int has_stand_in;                  /* the thread that calls is in the place of the worker */
};

/* This thread's worker; NULL: this thread is not a worker. */
static _Thread_local struct capi_worker *capi_self;

/* The worker for which this thread runs a function of the program; NULL: there is none. */
static _Thread_local struct capi_worker *capi_server;

static struct capi_worker *capi_idle;
static pthread_mutex_t capi_idle_lock = PTHREAD_MUTEX_INITIALIZER;

/* Makes the call that the worker was given, with the state of the thread that gave it. */
CAPI_IN_ANOTHER_PLACE static void capi_make_call(struct capi_worker *self)
{
    capi_site = self->site;
    capi_is_passing = self->is_passing;
    capi_call_python(self->method, self->arguments);
    self->is_passing = capi_is_passing;
    self->must_stop = capi_must_stop;
    capi_must_stop = 0;
    self->function = NULL;
}

static void capi_serve_call(struct capi_worker *self)
{
    capi_make_call(self);
    capi_ring(&self->done);
}

/* Makes the call in the place of the worker. */
CAPI_IN_ANOTHER_PLACE static void capi_stand_in(struct capi_worker *worker)
{
    const uint32_t mode = dmlemu_enter_mode();
    capi_enter_place(&worker->place);
    capi_make_call(worker);
    capi_leave_place(&worker->place);
    dmlemu_leave_mode(mode);
}

static void *capi_serve(void *argument)
{
    capi_self = argument;
    capi_is_ours = 1;
    dmlemu_enter_mode();
    capi_self->place.pointer = capi_thread_pointer();
    capi_ring(&capi_self->done);
    for (;;) {
        capi_wait(&capi_self->called);
        capi_serve_call(capi_self);
    }
    return NULL;
}

CAPI_IN_ANOTHER_PLACE static void capi_run_function(struct capi_worker *worker, void (*function)(void *), void *argument)
{
    struct capi_worker *outer = capi_server;
    capi_server = worker;
    function(argument);
    capi_server = outer;
}

/* Calls a function of the program in the thread's own place. */
CAPI_IN_ANOTHER_PLACE static void capi_step_out(struct capi_worker *worker, void (*function)(void *), void *argument)
{
    capi_leave_place(&worker->place);
    capi_run_function(worker, function, argument);
    capi_enter_place(&worker->place);
}

static void capi_call_client_unlocked(void (*function)(void *), void *argument)
{
    struct capi_worker *self = capi_self;
    if (self == NULL) {
        const int was_ours = capi_is_ours;
        capi_is_ours = capi_is_isolated;
        function(argument);
        capi_is_ours = was_ours;
        return;
    }
    const struct capi_site site = capi_site;
    const int is_passing = capi_is_passing;
    if (self->has_stand_in) {
        capi_step_out(self, function, argument);
    } else {
        self->function = function;
        self->argument = argument;
        capi_ring(&self->done);
        for (capi_wait(&self->called); self->method != NULL; capi_wait(&self->called))
            capi_serve_call(self);
    }
    capi_site = site;
    capi_is_passing = is_passing;
}

/* Calls a function of the program, on the thread of the program that made the call; meanwhile other threads may run
 * Python. */
static void capi_call_client(void (*function)(void *), void *argument)
{
    PyThreadState *state = PyEval_SaveThread();
    capi_call_client_unlocked(function, argument);
    PyEval_RestoreThread(state);
}

/* Waits until a call is done, and meanwhile runs the functions of the program that it calls. */
static void capi_attend(struct capi_worker *worker)
{
    for (capi_wait(&worker->done); worker->function != NULL; capi_wait(&worker->done)) {
        capi_run_function(worker, worker->function, worker->argument);
        worker->method = NULL;
        capi_ring(&worker->called);
    }
}

static struct capi_worker *capi_take_worker(void)
{
    pthread_mutex_lock(&capi_idle_lock);
    struct capi_worker *worker = capi_idle;
    if (worker != NULL)
        capi_idle = worker->next;
    pthread_mutex_unlock(&capi_idle_lock);
    if (worker != NULL)
        return worker;
    /* (not by malloc, which would give this thread of the program an arena of our C library) */
    worker = mmap(NULL, sizeof *worker, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (worker == MAP_FAILED)
        return NULL;
    worker->called.spin = worker->done.spin = CAPI_MOST_SPIN;
    if (!dmlemu_start_thread(capi_serve, worker)) {
        munmap(worker, sizeof *worker);
        return NULL;
    }
    capi_wait(&worker->done);
    return worker;
}

/* Has a worker make a call; 0: there is no memory for a thread. */
static int capi_hand_over(struct _cffi_externpy_s *method, char *arguments)
{
    struct capi_worker *worker = capi_server != NULL ? capi_server : capi_take_worker();
    if (worker == NULL)
        return 0;
    worker->method = method;
    worker->arguments = arguments;
    worker->site = capi_site;
    worker->is_passing = capi_is_passing;
    const int had_stand_in = worker->has_stand_in;
    worker->has_stand_in = capi_can_stand_in && dmlemu_has_room(&capi_stack, capi_measure_stack);
    if (worker->has_stand_in) {
        capi_stand_in(worker);
    } else {
        capi_ring(&worker->called);
        capi_attend(worker);
    }
    worker->has_stand_in = had_stand_in;
    capi_is_passing = worker->is_passing;
    capi_must_stop = worker->must_stop;
    if (worker == capi_server)
        return 1;
    pthread_mutex_lock(&capi_idle_lock);
    worker->next = capi_idle;
    capi_idle = worker;
    pthread_mutex_unlock(&capi_idle_lock);
    return 1;
}
