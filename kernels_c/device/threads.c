#define _GNU_SOURCE
#include "threads.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "dmlk.h"

static atomic_int threads; /* 0: not known yet */
static atomic_int cpus;    /* 0: not known yet */

static int read_quota(const char *root, const char *path, int length) {
    char name[PATH_MAX], line[64] = "";
    snprintf(name, sizeof name, "%s%.*s/cpu.max", root, length, path);
    FILE *file = fopen(name, "re");
    if (file == NULL) {
        return INT_MAX;
    }
    long long quota = 0, period = 0;
    const bool found = fgets(line, sizeof line, file) != NULL && sscanf(line, "%lld %lld", &quota, &period) == 2;
    fclose(file);
    if (!found || quota < 1 || period < 1) { /* "max 100000": no quota */
        return INT_MAX;
    }
    const long long whole = (quota - 1) / period + 1;
    return whole < INT_MAX ? (int)whole : INT_MAX;
}

int dmlk_cpus_of_quota(const char *root, const char *path) {
    int least = INT_MAX;
    for (int length = (int)strlen(path);;) {
        const int of_this = read_quota(root, path, length);
        least = of_this < least ? of_this : least;
        if (length == 0) {
            return least;
        }
        do {
            length--;
        } while (length > 0 && path[length] != '/');
    }
}

static int cpus_of_own_quota(void) {
    char line[PATH_MAX];
    int least = INT_MAX;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            least = dmlk_cpus_of_quota("/sys/fs/cgroup", line + 3);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return least;
}

int dmlk_cpus(void) {
    int found = atomic_load_explicit(&cpus, memory_order_relaxed);
    if (found == 0) {
        int allowed = (int)sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
        cpu_set_t set;
        if (sched_getaffinity(0, sizeof set, &set) == 0) { /* a machine may have more than fit */
            allowed = CPU_COUNT(&set);
        }
#endif
        const int paid = cpus_of_own_quota();
        found = allowed < paid ? allowed : paid;
        found = found < 1 ? 1 : found;
        atomic_store_explicit(&cpus, found, memory_order_relaxed);
    }
    return found;
}

/* The first number of OMP_NUM_THREADS, which may be a list of one number for each level; 0: there is none. */
static int asked_threads(void) {
    const char *text = getenv("OMP_NUM_THREADS");
    if (text == NULL || *text == '\0') {
        return 0;
    }
    char *end;
    errno = 0;
    const long number = strtol(text, &end, 10);
    end += strspn(end, " \t");
    if (number < 1 || errno != 0 || (*end != '\0' && *end != ',')) {
        fprintf(stderr,
                "dmlemu: OMP_NUM_THREADS is '%s'; expected a number above 0. The kernels use a thread for each CPU.\n",
                text);
        return 0;
    }
    return number < DMLK_MOST_THREADS ? (int)number : DMLK_MOST_THREADS;
}

int dmlk_threads(void) {
    int found = atomic_load_explicit(&threads, memory_order_relaxed);
    if (found == 0) {
        const int asked = asked_threads();
        found = asked > 0 ? asked : dmlk_cpus();
        dmlk_set_threads(found);
    }
    return found;
}

void dmlk_set_threads(int count) {
    const int most = count < DMLK_MOST_THREADS ? count : DMLK_MOST_THREADS;
    atomic_store_explicit(&threads, most < 1 ? 1 : most, memory_order_relaxed);
}

bool dmlk_may_spin(int count) {
    static atomic_int is_passive = -1; /* -1: not known yet */
    int passive = atomic_load_explicit(&is_passive, memory_order_relaxed);
    if (passive < 0) {
        const char *policy = getenv("OMP_WAIT_POLICY");
        passive = policy != NULL && strcasecmp(policy, "passive") == 0;
        atomic_store_explicit(&is_passive, passive, memory_order_relaxed);
    }
    return !passive && count <= dmlk_cpus();
}
