/* Starting and finishing Python; see python.h. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "python.h"

static struct python {
    void (*set_program)(const wchar_t *);
    void (*initialize)(int);
    int (*is_initialized)(void);
    int (*run)(const char *);
    int (*ensure)(void);
    void (*release)(int);
    void *(*save)(void);
} python;

static int find_functions(void *library)
{
    *(void **)&python.set_program = dlsym(library, "Py_SetProgramName");
    *(void **)&python.initialize = dlsym(library, "Py_InitializeEx");
    *(void **)&python.is_initialized = dlsym(library, "Py_IsInitialized");
    *(void **)&python.run = dlsym(library, "PyRun_SimpleString");
    *(void **)&python.ensure = dlsym(library, "PyGILState_Ensure");
    *(void **)&python.release = dlsym(library, "PyGILState_Release");
    *(void **)&python.save = dlsym(library, "PyEval_SaveThread");
    return python.set_program && python.initialize && python.is_initialized && python.run && python.ensure &&
           python.release && python.save;
}

/* Makes Python ignore the environment: its variables are the client's settings, not ours. */
static void ignore_environment(void *library)
{
    static const char *const names[] = {"Py_IgnoreEnvironmentFlag", "Py_NoUserSiteDirectory"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int *flag = dlsym(library, names[i]);
        if (flag != NULL)
            *flag = 1;
    }
}

/* A byte of a path as Python represents it: one that is not ASCII becomes the same byte again in every encoding. */
static wchar_t character(unsigned char byte)
{
    return byte < 0x80 ? byte : 0xDC00 + byte;
}

static void initialize(const struct place *place)
{
    static wchar_t program[PATH_MAX];
    for (size_t i = 0; i == 0 || place->program[i - 1]; i++)
        program[i] = character((unsigned char)place->program[i]);
    char *locale = setlocale(LC_CTYPE, NULL);
    locale = locale != NULL ? strdup(locale) : NULL;
    python.set_program(program);
    python.initialize(0);
    setlocale(LC_CTYPE, locale);
    free(locale);
}

static int load_frontend(struct dmlemu_exports *exports, int is_host)
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
    snprintf(code, sizeof code, start_code, is_host, (size_t)exports);
    if (python.run(code) != 0)
        return dmlemu_failed_without_python("dmlemu cannot be imported", "see the traceback above");
    return exports->end != NULL; /* else it failed, and printed the reason */
}

int dmlemu_start_python(void *library, const struct place *place, struct dmlemu_exports *exports)
{
    struct sigaction interrupt;
    if (!find_functions(library))
        return dmlemu_failed_without_python("the library is not Python 3", place->library);
    sigaction(SIGINT, NULL, &interrupt);
    ignore_environment(library);
    initialize(place);
    const int has_started = load_frontend(exports, 0);
    python.save(); /* otherwise every other thread would wait forever */
    sigaction(SIGINT, &interrupt, NULL); /* Python's module "signal" takes it when it is imported */
    return has_started;
}

int dmlemu_join_python(void *library, struct dmlemu_exports *exports)
{
    if (!find_functions(library) || !python.is_initialized())
        return dmlemu_failed("the Python of this process cannot be used", "");
    const int state = python.ensure();
    const int has_started = load_frontend(exports, 1);
    python.release(state);
    return has_started;
}

void dmlemu_finish_python(struct dmlemu_exports *exports)
{
    const int state = python.ensure();
    python.run("import sys\nsys.modules['dmlemu.frontends.capi.startup'].finish()");
    exports->end();
    python.release(state);
}
