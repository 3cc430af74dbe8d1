/* COM objects: identity, reference counts, vtables.  What a call means is Python's.
 *
 * An object is found by its address.  Its memory is malloc's, and lives until Python frees it. */

#ifndef DMLEMU_OBJECTS_H
#define DMLEMU_OBJECTS_H

#include <stdatomic.h>
#include <stdint.h>

struct capi_object {
    const void *slots;         /* the client's pointer to the vtable */
    struct capi_object *owner; /* counted instead: another interface of one object; NULL: this one */
    _Atomic uint32_t count;
    uint32_t interface;
};

struct capi_iid {
    uint32_t words[4];
};

struct capi_interface {
    const void *const *slots;
    const struct capi_iid *iids; /* its own and those of its bases */
    uint32_t iid_count;
};

/* Where the method that this thread is in was called from. */
static _Thread_local uintptr_t capi_site;

/* Where a function of ours was called from, which now calls such a method itself; 0: none does. */
static _Thread_local uintptr_t capi_client;

/* The exports are methods of an object that nobody sees. */
static struct capi_object capi_exports;

static _Atomic int capi_is_alive = 1;

#endif
