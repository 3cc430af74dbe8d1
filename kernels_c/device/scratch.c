/* scratch.c - see scratch.h. */
#include "scratch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__ /* blocks of the exact size, so that every overrun is detected */
#define ALIGNMENT 64

void *dmlk_take(int64_t bytes) {
    void *block = NULL;
    return bytes < 0 || posix_memalign(&block, ALIGNMENT, (size_t)bytes) != 0 ? NULL : block;
}

void dmlk_give(void *given) { free(given); }
#else

#define KEPT 8
#define MOST_KEPT (INT64_C(1) << 20) /* bytes of a block that is kept */
#define HEADER 64

static _Atomic(int64_t *) kept[KEPT]; /* each starts with its size */

/* A kept block that is large enough, and not much too large. */
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
    for (int i = 0; i < KEPT && *block <= MOST_KEPT; i++) {
        int64_t *empty = NULL;
        if (atomic_compare_exchange_strong(&kept[i], &empty, block)) {
            return;
        }
    }
    if (*block <= MOST_KEPT) { /* replaces an older one */
        block = atomic_exchange(&kept[(uintptr_t)block / 4096 % KEPT], block);
    }
    free(block);
}
#endif
