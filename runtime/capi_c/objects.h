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

enum { CAPI_FRAMES = 8 };

/* Where the method that this thread is in was called from: return addresses, the innermost first. */
struct capi_site {
    uintptr_t frames[CAPI_FRAMES];
    int count;
};

static _Thread_local struct capi_site capi_site;

/* Where a function of ours was called from, which now calls such a method itself; 0: none does. */
static _Thread_local uintptr_t capi_client;

/* Set by a report under --break: this thread stops before it returns to the client. */
static _Thread_local int capi_must_stop;

/* Whether sites have all their frames; else only the first. */
static _Atomic int capi_has_frames;

/* The exports are methods of an object that nobody sees. */
static struct capi_object capi_exports;

static _Atomic int capi_is_alive = 1;

#endif
