/* Isolated mode; see isolate.h and docs/decisions/0034.
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
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "isolate.h"
#include "own_thread.h"
#include "start.h"

/* What both copies of this library know. */
struct isolated {
    struct place place;
    void *python; /* the handle of libpython */
    char **environment;
    struct dmlemu_exports *exports;
    int has_started;
    atomic_int is_given_up;
    sem_t loader_free, started, finish, finished;
};

static struct isolated isolated;

enum { MOST_LOADING = 10 }; /* seconds that another thread may be loading a library */

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR) {
    }
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
    return dmlemu_start_thread(live, self) || dmlemu_failed("there is no memory for a thread", "");
}

/* --- in the program's copy --- */

static int failed(const char *reason, const char *detail)
{
    dmlemu_failed(reason, detail);
    fputs("dmlemu: a Python of its own beside that of the program is what several threads need that call Direct3D. If "
          "only one thread does, install dmlemu for the program's Python and set DMLEMU_CAPI_MODE=direct.\n",
          stderr);
    return 0;
}

#ifdef LM_ID_NEWLM

/* Loads Python and a copy of this library into a namespace of their own, Python first: only its symbols are visible to
 * the extension modules that are loaded there later. */
static int load(struct isolated *self, const char *own)
{
    Lmid_t namespace;
    int (*begin)(void *) = NULL;
    self->python = dlmopen(LM_ID_NEWLM, self->place.library, RTLD_NOW);
    if (self->python == NULL || dlinfo(self->python, RTLD_DI_LMID, &namespace) != 0)
        return failed("Python's shared library cannot be loaded a second time", dlerror());
    void *copy = dlmopen(namespace, own, RTLD_NOW);
    if (copy != NULL)
        *(void **)&begin = dlsym(copy, "dmlemu_live_isolated");
    return begin != NULL ? begin(self) : failed("libd3d12.so cannot be loaded a second time", dlerror());
}

#else

static int load(struct isolated *self, const char *own)
{
    (void)self, (void)own;
    return failed("this C library has no dlmopen", "");
}

#endif

/* Constructors that run in dlmopen leave values at the thread that they run on: so that must be none of the program's,
 * and must never end. */
static void *load_and_stay(void *argument)
{
    struct isolated *self = argument;
    Dl_info own;
    char path[PATH_MAX] = "";
    if (!dladdr((void *)load, &own) || realpath(own.dli_fname, path) == NULL)
        *path = '\0'; /* then it is not found */
    dlopen(path, RTLD_NOW | RTLD_NOLOAD); /* waits for the loader */
    sem_post(&self->loader_free);
    if (!atomic_load(&self->is_given_up) && !load(self, path))
        sem_post(&self->started);
    stay_for_ever();
    return NULL;
}

static int is_sanitized(void)
{
    return dlsym(RTLD_DEFAULT, "__asan_init") != NULL || dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;
}

/* Whether the loader can be used: it cannot in a constructor of a library, whose thread has its lock. */
static int is_loader_free(struct isolated *self)
{
    struct timespec end;
    int error;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += MOST_LOADING;
    while ((error = sem_timedwait(&self->loader_free, &end)) != 0 && errno == EINTR) {
    }
    atomic_store(&self->is_given_up, error != 0);
    return error == 0;
}

int dmlemu_start_isolated(struct dmlemu_exports *exports)
{
    struct isolated *self = &isolated;
    if (is_sanitized())
        return failed("AddressSanitizer and ThreadSanitizer bear no second C library in the process", "");
    if (!dmlemu_find_python(&self->place))
        return 0;
    self->exports = exports;
    self->environment = environ;
    exports->is_isolated = 1;
    sem_init(&self->loader_free, 0, 0);
    sem_init(&self->started, 0, 0);
    sem_init(&self->finish, 0, 0);
    sem_init(&self->finished, 0, 0);
    if (!dmlemu_start_thread(load_and_stay, self))
        return failed("there is no memory for a thread", "");
    if (!is_loader_free(self))
        return failed("it is called while a library is loaded, by one of its constructors", "");
    wait_for(&self->started);
    return self->has_started;
}

void dmlemu_finish_isolated(void)
{
    sem_post(&isolated.finish);
    wait_for(&isolated.finished);
}
