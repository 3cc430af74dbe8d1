/* COM objects: identity, reference counts, vtables.  What a call means is Python's.
 *
 * An object is found by its address.  Its memory is malloc's, and lives until Python frees it. */

#ifndef DMLEMU_OBJECTS_H
#define DMLEMU_OBJECTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "caller.h"

enum { CAPI_E_OUTOFMEMORY = 0x8007000Eu, CAPI_DEVICE_REMOVED = 0x887A0005u };

enum { CAPI_OF_CLIENT, CAPI_OF_OURS }; /* whose a reference is */

enum { CAPI_VALUES = 8 }; /* words for the values of an object's getters */

/* Bits of `kept` beside those of the getters. */
enum {
    CAPI_PUSHED = 1u << 29,
    CAPI_CHANGED = 1u << 30, /* the values are not constant any more: none counts */
};

struct capi_object {
    const void *slots;         /* the client's pointer to the vtable */
    struct capi_object *owner; /* counted instead: another interface of one object; NULL: this one */
    _Atomic uint64_t count;    /* references; in the upper half those of them that are ours, not the client's */
    uint32_t interface;
    _Atomic uint32_t kept;     /* getters whose values are known, a bit each */
    uint64_t values[CAPI_VALUES];
    const volatile uint32_t *pushed; /* with CAPI_PUSHED: a number that Python changes */
};

struct capi_iid {
    uint32_t words[4];
};

struct capi_interface {
    const void *const *slots;
    const struct capi_iid *iids; /* its own and those of its bases */
    uint32_t iid_count;
};

/* An object at Python's end, and the objects that it holds. */
struct capi_left {
    uintptr_t object;
    const char *text;         /* NULL: not printed */
    const uint32_t *holds;    /* indices of other such rows */
    uint32_t hold_count;
    uint32_t references;      /* found by capi_print_left */
    uint32_t is_alive;
};

/* A method whose last argument says where an object goes. */
struct capi_creator {
    const char *symbol;
    int arguments;
};

/* Where a method was called from.  The frames are found when a report may need them. */
enum { CAPI_FRAMES = 8 };
struct capi_site {
    const void *method;
    uintptr_t frames[CAPI_FRAMES]; /* return addresses, the innermost first; zeros behind the last */
    uint64_t unloads;              /* how often a file was unloaded: then other code may be at the addresses */
    int count;                     /* 0: only the first is known, the others were not looked for */
};

/* Of the method that this thread is in. */
static _Thread_local struct capi_site capi_site;

/* Of this thread. */
static _Thread_local struct dmlemu_stack capi_stack;

/* Methods that asked for their frames.  They find them before Python is called, which is faster: the frames of
 * Python need not be passed.  Two that share a place are only slower. */
enum { CAPI_ASKERS = 1024 };
static const void *_Atomic capi_askers[CAPI_ASKERS];

static const void *_Atomic *capi_asker(const void *method)
{
    return &capi_askers[((uintptr_t)method >> 5) % CAPI_ASKERS];
}

/* Where a function of ours was called from, which now calls such a method itself; 0: none does. */
static _Thread_local uintptr_t capi_client;

/* The value that this thread has got may change: it failed, or is of an object that can be reset. */
static _Thread_local int capi_is_passing;

/* Set by a report under --break: this thread stops before it returns to the client. */
static _Thread_local int capi_must_stop;

/* Whether sites have all their frames; else only the first. */
static _Atomic int capi_has_frames;

/* The exports are methods of an object that nobody sees. */
static struct capi_object capi_exports;

/* The objects that were released last, as a ring: their memory is kept, so that a call on one of them fails instead of
 * crashing.  Changed under Python's lock of the tables. */
enum { CAPI_RELEASED = 65536 };
static struct capi_object *capi_released[CAPI_RELEASED];
static uint32_t capi_next_released;

static _Atomic int capi_is_alive = 1;

/* Set when Python makes the list of the objects that are left: from then on their memory stays. */
static _Atomic int capi_keeps_memory;

static struct capi_left *capi_left;
static uint32_t capi_left_count;

#endif
