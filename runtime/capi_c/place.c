/* Finds the Python that implements the libraries, and one that the process has already. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "place.h"

int dmlemu_failed(const char *reason, const char *detail)
{
    fprintf(stderr, "dmlemu: Direct3D cannot start: %s%s%s.\n", reason, *detail ? ": " : "", detail);
    return 0;
}

int dmlemu_failed_without_python(const char *reason, const char *detail)
{
    dmlemu_failed(reason, detail);
    fputs("dmlemu: set DMLEMU_PYTHON to a Python 3.10 or newer that has dmlemu installed, or run the program under "
          "'dmlemu exec'.\n",
          stderr);
    return 0;
}

/* --- where Python is --- */

static int version_in(const char *path, const char **minor)
{
    const char *found = strstr(path, "/lib/python3.");
    if (found != NULL)
        *minor = found + strlen("/lib/python3.");
    return found != NULL;
}

/* The value of "home" in a virtual environment's pyvenv.cfg: the folder of the interpreter that it was made by. */
static int home_of(const char *prefix, char home[PATH_MAX])
{
    char name[PATH_MAX + 16], line[PATH_MAX + 16];
    int found = 0;
    snprintf(name, sizeof name, "%s/pyvenv.cfg", prefix);
    FILE *file = fopen(name, "re");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = sscanf(line, "home = %4095[^\n]", home) == 1;
    if (file != NULL)
        fclose(file);
    return found;
}

static int library_in(struct place *place, const char *folder, int minor)
{
    int length = snprintf(place->library, sizeof place->library, "%s/libpython3.%d.so.1.0", folder, minor);
    return length < PATH_MAX && access(place->library, R_OK) == 0;
}

/* Finds the interpreter under a prefix, and its shared library. */
static int find_under(struct place *place, const char *prefix, int minor)
{
    char home[PATH_MAX], folder[PATH_MAX + 8];
    if (snprintf(place->program, sizeof place->program, "%s/bin/python3", prefix) >= PATH_MAX)
        return 0;
    if (home_of(prefix, home)) {
        snprintf(folder, sizeof folder, "%s/../lib", home);
        if (library_in(place, folder, minor))
            return 1;
    }
    snprintf(folder, sizeof folder, "%s/lib", prefix);
    if (!library_in(place, folder, minor)) /* where the loader finds it, as in Debian */
        snprintf(place->library, sizeof place->library, "libpython3.%d.so.1.0", minor);
    return 1;
}

/* Finds Python from the place of this library: PREFIX/lib/python3.N/site-packages/dmlemu. */
static int find_by_layout(struct place *place)
{
    Dl_info info;
    char path[PATH_MAX];
    const char *minor;
    if (!dladdr((void *)find_by_layout, &info) || realpath(info.dli_fname, path) == NULL || !version_in(path, &minor))
        return 0;
    int number = atoi(minor);
    *strstr(path, "/lib/python3.") = '\0';
    return find_under(place, path, number);
}

/* Runs an interpreter and reads its paths.  Tried last, as popen fails in a process that ignores SIGCHLD. */
static int ask(struct place *place, const char *program)
{
    static const char question[] =
        " -I -c 'import sys, sysconfig as s; print(sys.executable); "
        "print(s.get_config_var(\"LIBDIR\") + \"/\" + s.get_config_var(\"INSTSONAME\"))' 2>/dev/null";
    char command[PATH_MAX + sizeof question + 8];
    snprintf(command, sizeof command, "LD_PRELOAD= '%s'%s", program, question);
    FILE *answer = strchr(program, '\'') == NULL ? popen(command, "re") : NULL;
    if (answer == NULL)
        return 0;
    int found = fscanf(answer, "%4095[^\n]\n%4095[^\n]", place->program, place->library) == 2;
    pclose(answer);
    return found && strstr(place->library, ".so") != NULL;
}

/* The version of the only Python under a prefix; 0: there is none, or several. */
static int only_version(const char *prefix)
{
    char pattern[PATH_MAX + 32];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/lib/python3.*", prefix);
    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    int minor = found.gl_pathc == 1 ? atoi(strrchr(found.gl_pathv[0], '.') + 1) : 0;
    globfree(&found);
    return minor;
}

/* Finds Python by the value of DMLEMU_PYTHON: an interpreter, or the prefix of one. */
static int find_by_variable(struct place *place, const char *given)
{
    char prefix[PATH_MAX], program[PATH_MAX + 16];
    struct stat status;
    snprintf(prefix, sizeof prefix, "%s", given);
    if (stat(given, &status) == 0 && S_ISREG(status.st_mode))
        for (int i = 0; i < 2 && strrchr(prefix, '/') != NULL; i++) /* PREFIX/bin/python */
            *strrchr(prefix, '/') = '\0';
    int minor = only_version(prefix);
    if (minor != 0 && find_under(place, prefix, minor) && strchr(place->library, '/') != NULL)
        return 1;
    snprintf(program, sizeof program, "%s/bin/python3", given);
    return ask(place, access(program, X_OK) == 0 ? program : given);
}

int dmlemu_find_python(struct place *place)
{
    const char *given = getenv("DMLEMU_PYTHON");
    if (given != NULL && *given)
        return find_by_variable(place, given) ||
               dmlemu_failed_without_python(
                   "DMLEMU_PYTHON names no Python with a shared library (on Debian: package libpython3.N)", given);
    return find_by_layout(place) || ask(place, "python3") ||
           dmlemu_failed_without_python("no Python with a shared library was found",
                                        "neither around this library nor as python3");
}

/* --- a Python that is already in the process --- */

static int is_libpython(struct dl_phdr_info *info, size_t size, void *found)
{
    const char *name = strrchr(info->dlpi_name, '/');
    (void)size;
    if (strncmp(name != NULL ? name + 1 : info->dlpi_name, "libpython3.", 11) == 0)
        snprintf(found, PATH_MAX, "%s", info->dlpi_name);
    return 0;
}

void *dmlemu_python_of_process(int scope)
{
    char name[PATH_MAX] = "";
    if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") != NULL)
        return dlopen(NULL, RTLD_NOW);
    dl_iterate_phdr(is_libpython, name);
    return *name ? dlopen(name, RTLD_NOW | RTLD_NOLOAD | scope) : NULL;
}
