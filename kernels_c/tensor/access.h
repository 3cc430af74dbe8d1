/* access.h - the only access of kernels to the elements of tensors.
 *
 *   DMLK_LOAD(p, i)              p[i]
 *   DMLK_LOAD_ONCE(p, i)         the same, read exactly once: for indices, which the host may change meanwhile
 *   DMLK_STORE(p, i, x)          p[i] = x
 *   DMLK_STORE_BYTES(p, from, n) memcpy(p, from, n)
 *
 * Kernels are compiled twice.  With DMLK_CHECKED each access is checked (see sanitizer.h), and the kernel's tensor
 * addresses are unmapped: an access without these macros is a segmentation fault.  The kernel's own memory may be
 * accessed either way. */
#ifndef DMLK_ACCESS_H
#define DMLK_ACCESS_H

#include <stddef.h>
#include <string.h>

#ifdef DMLK_CHECKED

/* The address to load from or store to instead; size <= 8. */
const void *dmlk_checked_load(const void *at, size_t size);
void *dmlk_checked_store(void *at, size_t size);
void dmlk_checked_store_bytes(void *at, const void *from, size_t size);

#define DMLK_LOAD(p, i) (*(const __typeof__(*(p)) *)dmlk_checked_load(&(p)[i], sizeof *(p)))
#define DMLK_LOAD_ONCE(p, i) \
    __atomic_load_n((const __typeof__(*(p)) *)dmlk_checked_load(&(p)[i], sizeof *(p)), __ATOMIC_RELAXED)
#define DMLK_STORE(p, i, x)                                                          \
    do { /* loads in x come before the store */                                   \
        const __typeof__(*(p)) value_ = (x);                                         \
        *(__typeof__(*(p)) *)dmlk_checked_store(&(p)[i], sizeof *(p)) = value_;      \
    } while (0)
#define DMLK_STORE_BYTES(p, from, n) dmlk_checked_store_bytes(p, from, n)

#else

#define DMLK_LOAD(p, i) ((p)[i])
#define DMLK_LOAD_ONCE(p, i) __atomic_load_n(&(p)[i], __ATOMIC_RELAXED)
#define DMLK_STORE(p, i, x) ((p)[i] = (x))
#define DMLK_STORE_BYTES(p, from, n) memcpy(p, from, n)

#endif
#endif
