/* COM objects: identity, reference counts, vtables.  What their methods do is implemented in Python.
 *
 * An object is identified by its address.  Its memory comes from malloc, and lives until Python frees it. */

#ifndef DMLEMU_OBJECTS_H
#define DMLEMU_OBJECTS_H

#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

#include "caller.h"
#include "exports.h"

enum { CAPI_E_OUTOFMEMORY = 0x8007000Eu, CAPI_DEVICE_REMOVED = 0x887A0005u };

enum { CAPI_OF_CLIENT, CAPI_OF_OURS }; /* the owner of a reference */

enum { CAPI_VALUES = 8 }; /* words for the values of an object's getters */

/* Bits of `kept` after those of the getters. */
enum {
    CAPI_PUSHED = 1u << 29,
    CAPI_CHANGED = 1u << 30, /* the values are no longer constant: none is used */
};

struct capi_object {
    const void *slots;         /* the client's pointer to the vtable */
    struct capi_object *owner; /* the interface that has the count, if an object has several; NULL: this one */
    _Atomic uint64_t count;    /* all references; in the upper half, how many of them are ours, not the client's */
    uint32_t interface;
    _Atomic uint32_t kept;     /* a bit for each getter whose value is known */
    uint64_t values[CAPI_VALUES];
    const volatile uint32_t *pushed; /* with CAPI_PUSHED: a number that Python changes */
};

struct capi_iid {
    uint32_t words[4];
};

struct capi_interface {
    const void *const *slots;
    const struct capi_iid *iids; /* its own IID and those of its bases */
    uint32_t iid_count;
};

/* A kind of objects; how many are left. */
struct capi_kind {
    const char *name;
    uint32_t count; /* set by capi_print_left */
};

/* An object that exists when Python ends, and the objects that it holds. */
struct capi_left {
    uintptr_t object;
    struct capi_kind *kind;
    const char *text;         /* NULL: not printed */
    const uint32_t *holds;    /* indices of other such rows */
    uint32_t hold_count;
    uint32_t references;      /* set by capi_print_left */
    uint32_t is_alive;
};

/* A method whose last argument points to where it stores an object. */
struct capi_creator {
    const char *symbol;
    int arguments;
};

/* Where a method was called from.  The frames are found when a report may need them. */
enum { CAPI_FRAMES = 8, CAPI_LINES = DMLEMU_LINES };
struct capi_site {
    const void *method;
    uintptr_t frames[CAPI_FRAMES]; /* return addresses, the innermost first; zeros after the last */
    struct dmlemu_line lines[CAPI_LINES]; /* of the program's Python, the innermost first; zeros after the last */
    int64_t line_count;            /* -1: no Python of the program is known */
    uint64_t unloads;              /* how often files were unloaded so far: later, other code may be at the addresses */
    int count;                     /* 0: only the first is known, the others were not searched for */
};

/* The call site of the method that this thread is in. */
static _Thread_local struct capi_site capi_site;

/* The stack of this thread. */
static _Thread_local struct dmlemu_stack capi_stack;

/* Methods that needed their frames before.  They find them before Python is called, which is faster, as there are no
 * frames of Python on the stack yet.  A hash table: two methods that share an entry are only slower. */
enum { CAPI_ASKERS = 1024 };
static const void *_Atomic capi_askers[CAPI_ASKERS];

static const void *_Atomic *capi_asker(const void *method)
{
    return &capi_askers[((uintptr_t)method >> 5) % CAPI_ASKERS];
}

/* If a function of ours calls a method itself: where the client called that function; otherwise 0. */
static _Thread_local uintptr_t capi_client;

/* The value that this thread's getter returned may change: the getter failed, or its object can be reset. */
static _Thread_local int capi_is_passing;

/* Set by a report under --break: this thread stops before it returns to the client. */
static _Thread_local int capi_must_stop;

/* Whether sites have all their frames; otherwise only the first. */
static _Atomic int capi_has_frames;

/* The exports are methods of an object that no program can see. */
static struct capi_object capi_exports;

/* A ring of the objects that were released last: their memory is kept, so that a call on one of them fails instead of
 * crashing.  Changed only while Python holds the lock of its tables. */
enum { CAPI_RELEASED = 65536 };
static struct capi_object *capi_released[CAPI_RELEASED];
static uint32_t capi_next_released;

static _Atomic int capi_is_alive = 1;

/* Copied from the table of exports. */
static int capi_is_isolated;
static int capi_is_in_host; /* the lines of the program's Python must be found before ours are in front of them */
static int (*capi_find_lines)(struct dmlemu_line *);
static const char *capi_unknown_python;
static int (*capi_iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *) = dl_iterate_phdr;
static void (*capi_measure_stack)(struct dmlemu_stack *) = dmlemu_measure_stack;

/* In isolated mode: this thread is one of Python's. */
static _Thread_local int capi_is_ours;

/* How many calls are on their way to Python or back. */
static _Atomic int capi_inside;

/* Set when Python lists the objects that are left: from then on, no memory of objects is freed. */
static _Atomic int capi_keeps_memory;

static struct capi_left *capi_left;
static uint32_t capi_left_count;
static struct capi_kind *capi_left_kinds; /* their kinds; NULL: the objects are listed, however many there are */
static uint32_t capi_left_kind_count;

#endif
