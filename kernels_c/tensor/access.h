/* access.h - loads and stores: the only way in which kernels access elements of tensors.
 *
 *   DMLK_LOAD(p, i)              p[i]
 *   DMLK_LOAD_ONCE(p, i)         the same, read exactly once: for indices, which the host may change at any time
 *   DMLK_STORE(p, i, x)          p[i] = x
 *   DMLK_STORE_BYTES(p, from, n) memcpy(p, from, n)
 *   DMLK_LOAD_HALF(at)           the 4 bits at a half-byte pointer (half_bytes.h)
 *   DMLK_STORE_HALF(at, x)       stores the low 4 bits of x there; the other half of the byte does not change
 *
 * Kernels are compiled twice.  With DMLK_CHECKED each access is checked (see sanitizer.h), and the kernel's tensor
 * addresses are unmapped: an access without these macros is a segmentation fault.  The kernel's own memory may be
 * accessed either way. */
#ifndef DMLK_ACCESS_H
#define DMLK_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef DMLK_CHECKED

/* The address to load from or store to instead; size <= 8. */
const void *dmlk_checked_load(const void *at, size_t size);
void *dmlk_checked_store(void *at, size_t size);
void dmlk_checked_store_bytes(void *at, const void *from, size_t size);
uint8_t dmlk_checked_load_half(const uint8_t *at);
void dmlk_checked_store_half(uint8_t *at, uint8_t value);

#define DMLK_LOAD(p, i) (*(const __typeof__(*(p)) *)dmlk_checked_load(&(p)[i], sizeof *(p)))
#define DMLK_LOAD_ONCE(p, i) \
    __atomic_load_n((const __typeof__(*(p)) *)dmlk_checked_load(&(p)[i], sizeof *(p)), __ATOMIC_RELAXED)
#define DMLK_STORE(p, i, x)                                                          \
    do { /* loads in x come before the store */                                   \
        const __typeof__(*(p)) value_ = (x);                                         \
        *(__typeof__(*(p)) *)dmlk_checked_store(&(p)[i], sizeof *(p)) = value_;      \
    } while (0)
#define DMLK_STORE_BYTES(p, from, n) dmlk_checked_store_bytes(p, from, n)
#define DMLK_LOAD_HALF(at) dmlk_checked_load_half(at)
#define DMLK_STORE_HALF(at, x) dmlk_checked_store_half(at, x)

#else

#define DMLK_LOAD(p, i) ((p)[i])
#define DMLK_LOAD_ONCE(p, i) __atomic_load_n(&(p)[i], __ATOMIC_RELAXED)
#define DMLK_STORE(p, i, x) ((p)[i] = (x))
#define DMLK_STORE_BYTES(p, from, n) memcpy(p, from, n)
#define DMLK_LOAD_HALF(at) dmlk_load_half(at)
#define DMLK_STORE_HALF(at, x) dmlk_store_half(at, x)

static inline uint8_t dmlk_load_half(const uint8_t *at) {
    const uint8_t *byte = (const uint8_t *)((uintptr_t)at >> 1);
    return (uint8_t)(*byte >> 4 * ((uintptr_t)at & 1) & 15);
}

/* Atomic, as another thread may store the other half. */
static inline void dmlk_store_half(uint8_t *at, uint8_t value) {
    uint8_t *byte = (uint8_t *)((uintptr_t)at >> 1);
    const uint32_t shift = 4 * (uint32_t)((uintptr_t)at & 1);
    uint8_t before = __atomic_load_n(byte, __ATOMIC_RELAXED), after;
    do {
        after = (uint8_t)((before & ~(15u << shift)) | (value & 15u) << shift);
    } while (!__atomic_compare_exchange_n(byte, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

#endif
#endif
