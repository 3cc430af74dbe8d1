/* scratch.c - see scratch.h. */
#include "scratch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__ /* blocks of the exact size, so that every overrun is detected */
#define ALIGNMENT 64 /* bytes */

void *dmlk_take(int64_t bytes) {
    void *block = NULL;
    return bytes < 0 || posix_memalign(&block, ALIGNMENT, (size_t)bytes) != 0 ? NULL : block;
}

void dmlk_give(void *given) { free(given); }
#else

#define KEPT 8                           /* blocks that are kept for reuse */
#define MAX_KEPT_SIZE (INT64_C(1) << 20) /* bytes; larger blocks are freed at once */
#define HEADER 64                        /* bytes before the memory of a block; they hold its size */

static _Atomic(int64_t *) kept[KEPT]; /* each starts with its size in bytes */

/* A kept block of at least `bytes` bytes, and not more than about 8 times as many; NULL: there is none. */
static int64_t *find(int64_t bytes) {
    for (int i = 0; i < KEPT; i++) {
        int64_t *block = atomic_exchange(&kept[i], NULL);
        if (block != NULL && *block >= bytes && *block / 8 <= bytes) {
            return block;
        }
        int64_t *empty = NULL;
        if (block != NULL && !atomic_compare_exchange_strong(&kept[i], &empty, block)) {
            free(block);
        }
    }
    return NULL;
}

void *dmlk_take(int64_t bytes) {
    if (bytes < 0 || bytes > INT64_MAX / 2) {
        return NULL;
    }
    const int64_t size = (bytes + 4095) / 4096 * 4096; /* rounded, so that similar sizes reuse a block */
    int64_t *block = find(size);
    if (block == NULL) {
        block = aligned_alloc(HEADER, (size_t)(size + HEADER));
        if (block == NULL) {
            return NULL;
        }
        *block = size;
    }
    return (char *)block + HEADER;
}

void dmlk_give(void *given) {
    if (given == NULL) {
        return;
    }
    int64_t *block = (int64_t *)(void *)((char *)given - HEADER);
    for (int i = 0; i < KEPT && *block <= MAX_KEPT_SIZE; i++) {
        int64_t *empty = NULL;
        if (atomic_compare_exchange_strong(&kept[i], &empty, block)) {
            return;
        }
    }
    if (*block <= MAX_KEPT_SIZE) { /* replaces an older one */
        block = atomic_exchange(&kept[(uintptr_t)block / 4096 % KEPT], block);
    }
    free(block);
}
#endif
