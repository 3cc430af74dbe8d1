/* Isolated mode; see isolate.h and docs/decisions/0038.
 *
 * dmlopen loads libpython a second time, in a namespace with its own copy of every library, also of the C library.  No
 * code of one C library may run on the threads of the other, except for what needs nothing of the thread; so there is
 * a copy of this library, too, whose functions run on the threads there. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caller.h"
#include "isolate.h"
#include "start.h"

/* What both copies of this library know. */
struct isolated {
    struct place place;
    void *python; /* the handle of libpython */
    char **environment;
    struct dmlemu_exports *exports;
    int has_started;
    sem_t started, finish, finished;
};

static struct isolated isolated;

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR) {
    }
}

/* Starts a thread on which no signal handler of the program runs. */
static int start_thread(void *(*function)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    pthread_attr_setstacksize(&attributes, DMLEMU_OWN_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread, &attributes, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

static void stay_for_ever(void)
{
    for (;;)
        pause();
}

/* --- in the copy --- */

/* This C library has the environment that the process began with. */
static void take_environment(char **given)
{
    clearenv();
    for (; given != NULL && *given != NULL; given++)
        putenv(strdup(*given)); /* (that of the program changes) */
    setenv("OPENBLAS_NUM_THREADS", "1", 1); /* NumPy's threads, which we do not use: a forked process would join them */
}

/* The main thread of the second Python. */
static void *live(void *argument)
{
    struct isolated *self = argument;
    dmlemu_enter_mode();
    take_environment(self->environment);
    self->has_started = dmlemu_start_python(self->python, &self->place, self->exports);
    sem_post(&self->started);
    wait_for(&self->finish);
    dmlemu_finish_python(self->exports);
    sem_post(&self->finished);
    stay_for_ever();
    return NULL;
}

DMLEMU_VISIBLE int dmlemu_live_isolated(void *self);
int dmlemu_live_isolated(void *self)
{
    return start_thread(live, self) || dmlemu_failed("there is no memory for a thread", "");
}

/* --- in the program's copy --- */

/* Loads Python and a copy of this library into a namespace of their own, Python first: only its symbols are visible to
 * the extension modules that are loaded there later. */
static int load(struct isolated *self)
{
    Dl_info own;
    Lmid_t namespace;
    char path[PATH_MAX];
    int (*begin)(void *) = NULL;
    self->python = dlmopen(LM_ID_NEWLM, self->place.library, RTLD_NOW);
    if (self->python == NULL || dlinfo(self->python, RTLD_DI_LMID, &namespace) != 0)
        return dmlemu_failed("a second Python cannot be loaded into this process, which has one", dlerror());
    if (dladdr((void *)load, &own) && realpath(own.dli_fname, path) != NULL) {
        void *copy = dlmopen(namespace, path, RTLD_NOW);
        *(void **)&begin = copy != NULL ? dlsym(copy, "dmlemu_live_isolated") : NULL;
    }
    return begin != NULL ? begin(self) : dmlemu_failed("libd3d12.so cannot be loaded a second time", dlerror());
}

/* Constructors that run in dlmopen leave values at the thread that they run on: so that must be none of the program's,
 * and must never end. */
static void *load_and_stay(void *argument)
{
    struct isolated *self = argument;
    if (!load(self))
        sem_post(&self->started);
    stay_for_ever();
    return NULL;
}

static int is_sanitized(void)
{
    return dlsym(RTLD_DEFAULT, "__asan_init") != NULL || dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;
}

int dmlemu_start_isolated(struct dmlemu_exports *exports)
{
    if (is_sanitized())
        return dmlemu_failed("this process has AddressSanitizer or ThreadSanitizer, which bear no second C library; "
                             "if only one of its threads calls Direct3D, set DMLEMU_CAPI_MODE=direct",
                             "");
    if (!dmlemu_find_python(&isolated.place))
        return 0;
    isolated.exports = exports;
    isolated.environment = environ;
    exports->is_isolated = 1;
    sem_init(&isolated.started, 0, 0);
    sem_init(&isolated.finish, 0, 0);
    sem_init(&isolated.finished, 0, 0);
    if (!start_thread(load_and_stay, &isolated))
        return dmlemu_failed("there is no memory for a thread", "");
    wait_for(&isolated.started);
    return isolated.has_started;
}

void dmlemu_finish_isolated(void)
{
    sem_post(&isolated.finish);
    wait_for(&isolated.finished);
}
