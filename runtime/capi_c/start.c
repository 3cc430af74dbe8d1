/* libd3d12.so: starts Python on the first call, and forwards the exports to it.
 *
 * Only libc is linked: Python is loaded by the first export that is called. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "caller.h"
#include "exports.h"
#include "place.h"
#include "start.h"

/* The functions of Python that are needed; they are found by name, so that no header and no version of Python is
 * needed. */
struct python {
    void (*set_program)(const wchar_t *);
    void (*initialize)(int);
    int (*is_initialized)(void);
    int (*run)(const char *);
    int (*ensure)(void);
    void (*release)(int);
    void *(*save)(void);
};

static struct dmlemu_exports exports;
static struct python python;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_started, is_forked;
static atomic_int has_finished;

static int find_functions(void *handle)
{
    *(void **)&python.set_program = dlsym(handle, "Py_SetProgramName");
    *(void **)&python.initialize = dlsym(handle, "Py_InitializeEx");
    *(void **)&python.is_initialized = dlsym(handle, "Py_IsInitialized");
    *(void **)&python.run = dlsym(handle, "PyRun_SimpleString");
    *(void **)&python.ensure = dlsym(handle, "PyGILState_Ensure");
    *(void **)&python.release = dlsym(handle, "PyGILState_Release");
    *(void **)&python.save = dlsym(handle, "PyEval_SaveThread");
    return python.set_program && python.initialize && python.run && python.ensure && python.release && python.save;
}

/* Makes Python ignore the environment: its variables are the client's settings, not ours. */
static void ignore_environment(void *handle)
{
    static const char *const names[] = {"Py_IgnoreEnvironmentFlag", "Py_NoUserSiteDirectory"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int *flag = dlsym(handle, names[i]);
        if (flag != NULL)
            *flag = 1;
    }
}

/* A byte of a path as Python represents it: one that is not ASCII becomes the same byte again in every encoding. */
static wchar_t character(unsigned char byte)
{
    return byte < 0x80 ? byte : 0xDC00 + byte;
}

static int start_python(void)
{
    static wchar_t program[PATH_MAX];
    struct place place;
    if (!dmlemu_find_python(&place))
        return 0;
    void *handle = dlopen(place.library, RTLD_NOW | RTLD_GLOBAL);
    if (handle == NULL)
        return dmlemu_failed_without_python(
            "Python's shared library cannot be loaded (on Debian: package libpython3.N)", dlerror());
    if (!find_functions(handle))
        return dmlemu_failed_without_python("the library is not Python 3", place.library);
    ignore_environment(handle);
    for (size_t i = 0; i == 0 || place.program[i - 1]; i++)
        program[i] = character((unsigned char)place.program[i]);
    char *locale = setlocale(LC_CTYPE, NULL);
    locale = locale != NULL ? strdup(locale) : NULL;
    python.set_program(program);
    python.initialize(0);
    setlocale(LC_CTYPE, locale);
    free(locale);
    return 1;
}

/* Calls a function in the usual floating-point mode: on this thread or, if its stack has no room for an interpreter,
 * on a thread of our own, for which it waits.  0: there is no memory for a thread. */
static int call_with_room(void *(*function)(void *))
{
    struct dmlemu_stack stack = {0};
    pthread_attr_t attributes;
    pthread_t thread;
    int error = 0;
    const uint32_t mode = dmlemu_enter_mode();
    if (dmlemu_has_room(&stack) || pthread_attr_init(&attributes) != 0) {
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

static void *finish_python(void *unused)
{
    (void)unused;
    int state = python.ensure();
    python.run("import sys\nsys.modules['dmlemu.frontends.capi.startup'].finish()");
    exports.end();
    python.release(state);
    return NULL;
}

/* Runs at exit() and quick_exit(), once.  Not in a forked process, which lacks the threads that hold Python's locks,
 * and not for the Python of a host, which has its own functions at exit and is gone by now. */
static void finish(void)
{
    if (!is_forked && !atomic_exchange(&has_finished, 1))
        call_with_room(finish_python);
}

/* Runs after the atexit functions and the destructors of the program's static objects, which may be older than
 * Python; also after the functions of quick_exit(), which destroys no static objects. */
__attribute__((destructor)) static void print_left(void)
{
    if (!is_forked && exports.print_left != NULL)
        exports.print_left();
}

static void finish_quickly(void)
{
    finish();
    print_left();
}

static void after_fork(void)
{
    is_forked = 1;
    exports.end();
}

static int load_frontend(int is_host)
{
    /* An environment variable with a wrong value raises a ValueError whose message starts with the variable's name. */
    static const char start_code[] =
        "def _dmlemu(table):\n"
        "    import sys\n"
        "    try:\n"
        "        import dmlemu.frontends.capi.startup as startup\n"
        "        startup.start(table, is_host=%d)\n"
        "    except ValueError as error:\n"
        "        if not str(error).startswith('DMLEMU_'):\n"
        "            raise\n"
        "        if sys.stderr is not None:\n"
        "            print('dmlemu: Direct3D cannot start:', error, file=sys.stderr)\n"
        "_dmlemu(%zu)\n"
        "del _dmlemu\n";
    char code[sizeof start_code + 32];
    snprintf(code, sizeof code, start_code, is_host, (size_t)&exports);
    if (python.run(code) != 0)
        return dmlemu_failed_without_python("dmlemu cannot be imported", "see the traceback above");
    if (exports.end == NULL) /* it failed, and printed the reason */
        return 0;
    if (!is_host) {
        atexit(finish);
        at_quick_exit(finish_quickly);
    }
    pthread_atfork(NULL, NULL, after_fork);
    return 1;
}

/* Starts a Python of our own, in a process without one. */
static void *start_own(void *unused)
{
    struct sigaction interrupt;
    (void)unused;
    sigaction(SIGINT, NULL, &interrupt);
    if (start_python()) {
        has_started = load_frontend(0);
        python.save(); /* otherwise every other thread would wait forever */
    }
    sigaction(SIGINT, &interrupt, NULL); /* Python's module "signal" takes it when it is imported */
    return NULL;
}

static void start(void)
{
    const char *mode = getenv("DMLEMU_CAPI_MODE");
    if (mode != NULL && *mode && strcmp(mode, "direct") != 0) {
        dmlemu_failed("DMLEMU_CAPI_MODE can only be 'direct', or not set; it is", mode);
        return;
    }
    void *present = dmlemu_python_of_process();
    if (present == NULL) {
        if (!call_with_room(start_own))
            dmlemu_failed("there is no memory for a thread with room for Python", "");
        return;
    }
    if (mode == NULL || !*mode) {
        dmlemu_failed("this process has a Python of its own, which is not supported yet", "DMLEMU_CAPI_MODE=direct tries it");
        return;
    }
    if (!find_functions(present) || !python.is_initialized()) {
        dmlemu_failed("the Python of this process cannot be used", "");
        return;
    }
    int state = python.ensure();
    has_started = load_frontend(1);
    python.release(state);
}

const struct dmlemu_exports *dmlemu_start(void)
{
    pthread_once(&once, start);
    return has_started ? &exports : NULL;
}

#define DEFINE(name, parameters, arguments) DMLEMU_EXPORT(name, parameters, arguments)
DMLEMU_D3D12_EXPORTS(DEFINE)
