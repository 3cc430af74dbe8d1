/* libdxcore.so, libdxgi.so and libdirectml.so: their exports, forwarded to the libd3d12.so beside them. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "start.h"

static const struct dmlemu_exports *(*start)(void);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    Dl_info info;
    char path[PATH_MAX + 16];
    if (!dladdr((void *)load, &info) || realpath(info.dli_fname, path) == NULL)
        return;
    strcpy(strrchr(path, '/') + 1, "libd3d12.so");
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        fprintf(stderr, "dmlemu: DirectML cannot start: %s\n", dlerror());
    else
        *(void **)&start = dlsym(library, "dmlemu_start");
}

static const struct dmlemu_exports *find_start(void)
{
    pthread_once(&once, load);
    return start != NULL ? start() : NULL;
}

#define dmlemu_start find_start
#define DEFINE(name, parameters, arguments) DMLEMU_EXPORT(name, parameters, arguments)
DMLEMU_FORWARDED(DEFINE)
