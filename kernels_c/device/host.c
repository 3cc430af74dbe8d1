/* host.c - address ranges, files and budgets.
 *
 * The caller may be interrupted between any two of its statements: a resource acquired here is stored in the
 * owner's struct before the call returns. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "dmlk.h"

static int32_t process;

static void note_process(void) { process = getpid(); }

__attribute__((constructor)) static void watch_forks(void) {
    note_process();
    pthread_atfork(NULL, NULL, note_process);
}

const int32_t *dmlk_process(void) { return &process; }

#define LARGE_PAGE ((uint64_t)1 << 21) /* bytes */

static _Atomic int64_t mapping_count;
static _Atomic int64_t mapping_limit = INT64_MAX;

void dmlk_limit_mappings(int64_t limit) { atomic_store(&mapping_limit, limit); }

int64_t dmlk_count_mappings(void) { return atomic_load(&mapping_count); }

/* Adds to the number of mappings, unless it would exceed the limit. */
static bool count(int64_t added) {
    const int64_t now = atomic_fetch_add(&mapping_count, added) + added;
    if (added > 0 && now > atomic_load(&mapping_limit)) {
        atomic_fetch_sub(&mapping_count, added);
        return false;
    }
    return true;
}

/* Maps at a new address if host is NULL.  MAP_FAILED: see errno. */
static void *map(uint8_t *host, uint64_t size, int fd, uint64_t offset) {
    const int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    const int flags = MAP_NORESERVE | kind | (host == NULL ? 0 : MAP_FIXED);
    return mmap(host, size, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
}

/* Private zeros aligned to the large page size. */
static void *map_large(uint64_t size) {
    uint8_t *start = map(NULL, size + LARGE_PAGE, -1, 0);
    if (start == MAP_FAILED) {
        return start;
    }
    const uint64_t before = (LARGE_PAGE - (uint64_t)(uintptr_t)start % LARGE_PAGE) % LARGE_PAGE;
    if (before > 0) {
        munmap(start, before);
    }
    munmap(start + before + size, LARGE_PAGE - before);
#ifdef MADV_HUGEPAGE
    madvise(start + before, size, MADV_HUGEPAGE); /* fails harmlessly on a host without large pages */
#endif
    return start + before;
}

int dmlk_range_map(dmlk_range *range, uint64_t size, int fd, uint64_t offset, int64_t mappings, int large) {
    if (!count(mappings)) {
        return DMLK_TOO_MANY_MAPPINGS;
    }
    uint8_t *host = large && size >= LARGE_PAGE ? map_large(size) : map(NULL, size, fd, offset);
    if (host == MAP_FAILED) {
        const int error = errno;
        count(-mappings);
        return error;
    }
    range->host = host;
    range->size = size;
    range->mappings = mappings;
    return 0;
}

int dmlk_range_put(dmlk_range *range, uint64_t start, uint64_t size, int fd, uint64_t offset, int64_t mappings) {
    const int64_t added = mappings - range->mappings;
    if (!count(added)) {
        return DMLK_TOO_MANY_MAPPINGS;
    }
    if (map(range->host + start, size, fd, offset) == MAP_FAILED) {
        const int error = errno;
        count(-added);
        return error;
    }
    range->mappings = mappings;
    return 0;
}

int dmlk_range_promise(dmlk_range *range, int64_t mappings) {
    if (!count(mappings)) {
        return DMLK_TOO_MANY_MAPPINGS;
    }
    range->mappings = mappings;
    return 0;
}

void dmlk_range_clear(const dmlk_range *range, uint64_t start, uint64_t size) {
    madvise(range->host + start, size, MADV_DONTNEED);
}

void dmlk_range_end(dmlk_range *range) {
    if (range->host != NULL) {
#ifdef MADV_REMOVE /* elsewhere the bytes are freed with the file */
        if (range->file_owner == getpid()) { /* a forked process shares the file, and its parent needs the bytes */
            madvise(range->host, range->size, MADV_REMOVE);
        }
#endif
        munmap(range->host, range->size);
    }
    count(-range->mappings);
    *range = (dmlk_range){0};
}

/* Atomic: any thread may begin and end charges of a budget. */
void dmlk_charge(int64_t *used, int64_t *charge, int64_t size) {
    *charge = size;
    __atomic_fetch_add(used, size, __ATOMIC_RELAXED);
}

void dmlk_charge_end(int64_t *used, int64_t *charge) {
    __atomic_fetch_sub(used, *charge, __ATOMIC_RELAXED);
    *charge = 0;
}

/* Moves the descriptor above 2, even where 0 to 2 are closed: a program that prints would write into the file. */
static int keep(dmlk_file *file, int fd) {
    if (fd >= 0 && fd <= STDERR_FILENO) {
        const int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(fd);
        fd = above;
    }
    if (fd < 0) {
        return errno;
    }
    *file = (dmlk_file){.fd = fd, .is_open = 1};
    return 0;
}

/* Called by its number: the C library has memfd_create from glibc 2.27 on.  Kernels before 3.17, and macOS, lack it: there
 * the file is one whose name is removed at once. */
static int open_without_name(const char *name) {
#ifdef SYS_memfd_create
    enum { CLOSED_BY_EXEC = 1 }; /* MFD_CLOEXEC */
    const int fd = (int)syscall(SYS_memfd_create, name, CLOSED_BY_EXEC);
    if (fd >= 0 || errno != ENOSYS) {
        return fd;
    }
    char path[] = "/dev/shm/dmlemu-XXXXXX"; /* as memfd: in memory */
#else
    char path[] = "/tmp/dmlemu-XXXXXX";
    (void)name;
#endif
    const int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0) {
        unlink(path);
    }
    return file;
}

int dmlk_file_create(dmlk_file *file, const char *name) { return keep(file, open_without_name(name)); }

int dmlk_file_duplicate(dmlk_file *file, int fd) { return keep(file, fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

void dmlk_file_end(dmlk_file *file) {
    if (file->is_open) {
        file->is_open = 0;
        close(file->fd);
    }
}
