/* IUnknown and the functions with which Python makes objects; included after the generated vtables. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CAPI_E_NOINTERFACE = 0x80004002u, CAPI_E_POINTER = 0x80004003u };

/* ThreadSanitizer does not see the atomics of this file in a program that is built with it; these functions tell it
 * which accesses they order.  Otherwise it would report that one thread frees an object whose vtable another thread
 * read before its Release. */
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

static struct capi_object *identity(uintptr_t object)
{
    struct capi_object *self = (struct capi_object *)object;
    return self->owner != NULL ? self->owner : self;
}

static void tell_acquire(struct capi_object *object)
{
    if (__tsan_acquire != NULL)
        __tsan_acquire(object);
}

static void tell_release(struct capi_object *object)
{
    if (__tsan_release != NULL)
        __tsan_release(object);
}

static uintptr_t capi_new(uint32_t interface, uintptr_t owner)
{
    struct capi_object *object = calloc(1, sizeof *object);
    if (object == NULL)
        return 0;
    object->slots = capi_interfaces[interface].slots;
    object->owner = (struct capi_object *)owner;
    object->interface = interface;
    tell_release(identity((uintptr_t)object));
    return (uintptr_t)object;
}

static void capi_keep_memory(void)
{
    atomic_store(&capi_keeps_memory, 1);
}

static int is_kept(struct capi_object *object, uint32_t bit)
{
    return (atomic_load_explicit(&object->kept, memory_order_acquire) & (bit | CAPI_CHANGED)) == bit;
}

/* Keeps the value that a getter has returned: it is constant while the object lives. */
static void keep_value(struct capi_object *object, uint32_t bit, uint32_t word, const void *value, size_t size)
{
    if (capi_is_passing)
        return;
    memcpy(object->values + word, value, size);
    atomic_fetch_or_explicit(&object->kept, bit, memory_order_release);
}

/* Makes getters call Python from now on: the object was reset, or it is released and calls on it are reported.  Other
 * threads may be inside a getter, and return the old value. */
static void capi_changed(uintptr_t object)
{
    atomic_fetch_or(&((struct capi_object *)object)->kept, CAPI_CHANGED);
}

/* For a released object: puts it into the ring of released objects, and frees the memory of the object that it
 * replaces. */
static void capi_free(uintptr_t object)
{
    struct capi_object **place = &capi_released[capi_next_released++ % CAPI_RELEASED];
    capi_changed(object);
    if (*place != NULL) {
        tell_acquire(identity((uintptr_t)*place)); /* its owner is released later */
        if (!atomic_load(&capi_keeps_memory))
            free(*place);
    }
    *place = (struct capi_object *)object;
}

/* Sets a number that Python changes, and that lives as long as the object. */
static void capi_push(uintptr_t object, uintptr_t number)
{
    struct capi_object *self = (struct capi_object *)object;
    self->pushed = (const volatile uint32_t *)number;
    atomic_fetch_or_explicit(&self->kept, CAPI_PUSHED, memory_order_release);
}

static void capi_do_not_keep(void)
{
    capi_is_passing = 1;
}

static uint32_t capi_count(uintptr_t object)
{
    return (uint32_t)atomic_load(&identity(object)->count);
}

/* What a reference adds to the count: one of the program's, or one of ours, which the program cannot release. */
static const uint64_t references[] = {1, ((uint64_t)1 << 32) + 1};

static void capi_hold(uintptr_t object, uint32_t reference)
{
    atomic_fetch_add(&identity(object)->count, references[reference]);
    tell_acquire(identity(object));
}

/* Gives the program a reference. */
static void capi_give(uintptr_t object, uintptr_t out)
{
    capi_hold(object, CAPI_OF_CLIENT);
    memcpy((void *)out, &object, sizeof object); /* `out` need not be aligned */
}

/* Removes a reference; returns how many are left. */
static uint32_t capi_drop(uintptr_t object, uint32_t reference)
{
    return (uint32_t)(atomic_fetch_sub(&identity(object)->count, references[reference]) - references[reference]);
}

static uint32_t IUnknown_AddRef(uintptr_t object)
{
    struct capi_object *self = identity(object);
    uint64_t before = atomic_load(&self->count);
    while ((uint32_t)before != 0 && !atomic_compare_exchange_weak(&self->count, &before, before + 1)) {
    }
    if ((uint32_t)before != 0)
        return (uint32_t)before + 1;
    capi_client = (uintptr_t)__builtin_return_address(0);
    return Object_AddRef((uintptr_t)self);
}

/* Python removes the last reference, under its lock: until then, new references may be handed out.  After Python has
 * ended, only the count changes. */
static uint32_t IUnknown_Release(uintptr_t object)
{
    struct capi_object *self = identity(object);
    const uint32_t least = atomic_load(&capi_is_alive) ? 1 : 0;
    uint64_t before = atomic_load(&self->count);
    uint32_t count, ours;
    tell_release(self);
    do {
        count = (uint32_t)before;
        ours = (uint32_t)(before >> 32);
    } while (count > least && count > ours && !atomic_compare_exchange_weak(&self->count, &before, before - 1));
    if (count > least && count > ours)
        return count - 1;
    capi_client = (uintptr_t)__builtin_return_address(0);
    if (count > ours)
        Object_Released((uintptr_t)self, CAPI_OF_CLIENT);
    else
        Object_ReleasedTooOften((uintptr_t)self);
    return 0;
}

/* Releases an object inside a method: the client is the caller of that method. */
static void capi_let_go(uintptr_t object)
{
    struct capi_object *self = identity(object);
    uint64_t before = atomic_load(&self->count);
    tell_release(self);
    while ((uint32_t)before > 1 &&
           !atomic_compare_exchange_weak(&self->count, &before, before - references[CAPI_OF_OURS])) {
    }
    if ((uint32_t)before > 1)
        return;
    const int was_ours = capi_is_ours;
    capi_is_ours = 1; /* called by Python */
    capi_client = capi_site.frames[0];
    Object_Released((uintptr_t)self, CAPI_OF_OURS);
    capi_is_ours = was_ours;
}

/* Whether the object has the interface, which may be IUnknown. */
static int capi_supports(uintptr_t object, const struct capi_iid *iid)
{
    static const struct capi_iid unknown = {{0, 0, 0xC0, 0x46000000}};
    if (memcmp(iid, &unknown, sizeof unknown) == 0)
        return 1;
    const struct capi_interface *interface = &capi_interfaces[((struct capi_object *)object)->interface];
    for (uint32_t i = 0; i < interface->iid_count; i++)
        if (memcmp(&interface->iids[i], iid, sizeof *iid) == 0)
            return 1;
    return 0;
}

static uint32_t IUnknown_QueryInterface(uintptr_t object, uintptr_t riid, uintptr_t out)
{
    uintptr_t *result = (uintptr_t *)out, self = (uintptr_t)identity(object);
    if (out == 0 || riid == 0)
        return CAPI_E_POINTER;
    *result = 0;
    if (capi_supports(self, (const struct capi_iid *)riid) && capi_count(self) != 0) {
        capi_hold(self, CAPI_OF_CLIENT);
        *result = self;
        return 0;
    }
    capi_client = (uintptr_t)__builtin_return_address(0);
    return Object_QueryInterface(self, riid, out);
}

/* Ends the process if an exception or the end of the thread leaves a function of the client: Python, which called it,
 * cannot be unwound. */
static void end_if_inside(const int *is_inside)
{
    if (!*is_inside)
        return;
    fputs("dmlemu: the process ends: a function of the program that dmlemu called (a callback, a method of private data, "
          "or a handler of a signal) threw an exception or ended its thread. It must return.\n",
          stderr);
    abort();
}

#define CALLING_CLIENT int is_inside __attribute__((cleanup(end_if_inside))) = 1

struct slot {
    uintptr_t pointer;
    int number;
};

static void call_slot(void *argument)
{
    const struct slot *slot = argument;
    uint32_t (*const *slots)(uintptr_t) = *(uint32_t (*const **)(uintptr_t))slot->pointer;
    CALLING_CLIENT;
    slots[slot->number](slot->pointer);
    is_inside = 0;
}

struct message {
    void (*callback)(uint32_t, uint32_t, uint32_t, const char *, uintptr_t);
    uint32_t category, severity, id;
    const char *text;
    uintptr_t context;
};

static void call_callback(void *argument)
{
    const struct message *message = argument;
    CALLING_CLIENT;
    message->callback(message->category, message->severity, message->id, message->text, message->context);
    is_inside = 0;
}

/* Calls a callback of ID3D12InfoQueue1. */
static void capi_deliver(uintptr_t callback, uint32_t category, uint32_t severity, uint32_t id, const char *text,
                         uintptr_t context)
{
    struct message message = {NULL, category, severity, id, text, context};
    memcpy(&message.callback, &callback, sizeof callback);
    capi_call_client(call_callback, &message);
}

struct notice {
    void (*callback)(void *);
    void *data;
};

static void call_notice(void *argument)
{
    const struct notice *notice = argument;
    CALLING_CLIENT;
    notice->callback(notice->data);
    is_inside = 0;
}

/* Calls a callback of ID3DDestructionNotifier. */
static void capi_notify(uintptr_t callback, uintptr_t data)
{
    struct notice notice = {NULL, (void *)data};
    memcpy(&notice.callback, &callback, sizeof callback);
    capi_call_client(call_notice, &notice);
}

/* Adds a reference to any COM object, even one of the client's own. */
static void capi_add_ref_any(uintptr_t pointer)
{
    struct slot slot = {pointer, 1};
    capi_call_client(call_slot, &slot);
}

static void capi_release_any(uintptr_t pointer)
{
    struct slot slot = {pointer, 2};
    capi_call_client(call_slot, &slot);
}

static void run_nothing(void *unused)
{
    (void)unused;
}

/* Lets in the signals that a thread of the program blocks while it is in the place of a worker. */
static void capi_let_signals_in(void)
{
    if (capi_self == NULL || !capi_self->has_stand_in)
        return;
    CALLING_CLIENT;
    capi_call_client(run_nothing, NULL);
    is_inside = 0;
}

static int read_unloads(struct dl_phdr_info *info, size_t size, void *found)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(uint64_t *)found = info->dlpi_subs;
    return 1; /* stops: all entries have the same count */
}

/* Looks at the files of the program.  The thread that has the lock of the loader may wait for Python's. */
static int iterate(int (*look)(struct dl_phdr_info *, size_t, void *), void *data)
{
    PyThreadState *state = PyEval_SaveThread();
    const int result = capi_iterate(look, data);
    PyEval_RestoreThread(state);
    return result;
}

/* Where this thread's method was called from: the fields of capi_site from its frames to the unloads. */
static uintptr_t capi_frames(void)
{
    if (capi_site.count == 0) {
        struct capi_site site = capi_site;
        atomic_store_explicit(capi_asker(site.method), site.method, memory_order_relaxed);
        capi_call_client(capi_find_frames, &site);
        capi_site = site;
    }
    iterate(read_unloads, &capi_site.unloads);
    return (uintptr_t)capi_site.frames;
}

struct place {
    uintptr_t address;
    uintptr_t base; /* is added to the addresses in the file */
    const char *file;
};

static int find_place(struct dl_phdr_info *info, size_t size, void *data)
{
    struct place *place = data;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && place->address - info->dlpi_addr - part->p_vaddr < part->p_memsz) {
            place->base = info->dlpi_addr;
            place->file = info->dlpi_name;
            return 1;
        }
    }
    return 0;
}

/* Finds the name of the file that is loaded at an address, truncated to `size` bytes; empty for the program itself.
 * Returns the address relative to the file, as its symbols have it; 0: no file is loaded there. */
static uintptr_t capi_place(uintptr_t address, char *file, size_t size)
{
    struct place place = {address, 0, NULL};
    if (iterate(find_place, &place) == 0)
        return 0;
    snprintf(file, size, "%s", place.file);
    return address - place.base;
}

/* Whether the program runs a Python of its own. */
static int capi_has_python(void)
{
    return capi_find_lines != NULL || capi_unknown_python != NULL;
}

/* The version of the program's Python, if sites should have its lines and cannot; otherwise NULL. */
static const char *capi_version_without_lines(void)
{
    return atomic_load(&capi_has_frames) ? capi_unknown_python : NULL;
}

static void capi_want_frames(void)
{
    atomic_store(&capi_has_frames, 1);
}

/* Whether threads of the program block signals while they are inside of a call. */
static int capi_blocks_signals(void)
{
    return capi_can_stand_in;
}

static void capi_stop(void)
{
    capi_must_stop = 1;
}

static void capi_end(void)
{
    atomic_store(&capi_is_alive, 0);
}

static int capi_lives(void)
{
    return atomic_load(&capi_is_alive);
}

/* After capi_end: waits until no call is inside Python any more, or until the time is over. */
static void capi_wait_for_calls(int milliseconds)
{
    const struct timespec pause = {0, 1000000};
    PyThreadState *state = PyEval_SaveThread();
    for (int i = 0; i < milliseconds && atomic_load(&capi_inside) != 0; i++)
        nanosleep(&pause, NULL);
    PyEval_RestoreThread(state);
}

/* Sets the objects to be printed at the very end of the process, if the program does not release them before.
 * `kinds`: all kinds of them, if many objects are to be counted only; otherwise NULL. */
static void capi_leave(struct capi_left *rows, uint32_t count, struct capi_kind *kinds, uint32_t kind_count)
{
    capi_left = rows;
    capi_left_count = count;
    capi_left_kinds = kinds;
    capi_left_kind_count = kind_count;
}

/* Counts the references to the objects that the program still holds, or that such objects hold.  Returns how many of
 * these objects have a text. */
static uint32_t count_left(void)
{
    uint32_t found = 0;
    int has_changed = 1;
    for (uint32_t i = 0; i < capi_left_count; i++) {
        const uint64_t count = atomic_load(&((struct capi_object *)capi_left[i].object)->count);
        capi_left[i].references = (uint32_t)count - (uint32_t)(count >> 32); /* the program's own */
    }
    while (has_changed) {
        has_changed = 0;
        for (struct capi_left *row = capi_left; row < capi_left + capi_left_count; row++) {
            if (row->is_alive || row->references == 0)
                continue;
            row->is_alive = 1;
            has_changed = 1;
            found += row->text != NULL;
            for (uint32_t i = 0; i < row->hold_count; i++)
                capi_left[row->holds[i]].references++;
        }
    }
    return found;
}

/* Prints how many objects of each kind are left. */
static void print_kinds(uint32_t found)
{
    const char *separator = "";
    for (struct capi_left *row = capi_left; row < capi_left + capi_left_count; row++)
        row->kind->count += row->is_alive && row->text != NULL;
    fprintf(stderr, "%u objects are still alive (dmlemu exec --list-objects lists them): ", found);
    for (struct capi_kind *kind = capi_left_kinds; kind < capi_left_kinds + capi_left_kind_count; kind++)
        if (kind->count != 0) {
            fprintf(stderr, "%s%u %s%s", separator, kind->count, kind->name, kind->count == 1 ? "" : "s");
            separator = ", ";
        }
    fprintf(stderr, "\n");
}

/* Prints the objects that the program has not released, after its static objects are destroyed. */
static void capi_print_left(void)
{
    enum { MOST_LISTED = 10 };
    const uint32_t found = count_left();
    if (found > MOST_LISTED && capi_left_kinds != NULL) {
        print_kinds(found);
        return;
    }
    if (found != 0)
        fprintf(stderr, found == 1 ? "%u object is still alive:\n" : "%u objects are still alive:\n", found);
    for (uint32_t i = 0; i < capi_left_count; i++)
        if (capi_left[i].is_alive && capi_left[i].text != NULL)
            fprintf(stderr, "  %s, references: %u\n", capi_left[i].text, capi_left[i].references);
}

/* Stores NULL where a method would have stored the object that it makes. */
static void make_nothing(const char *symbol, char *arguments)
{
    for (size_t i = 0; i < sizeof capi_creators / sizeof *capi_creators; i++)
        if (strcmp(capi_creators[i].symbol, symbol) == 0) {
            uintptr_t *out = *(uintptr_t **)(arguments + 8 * (capi_creators[i].arguments - 1));
            if (out != NULL)
                *out = 0;
        }
}

/* Sets the result of a method that does not reach Python: a failing HRESULT; zeros for counts, handles and structs.
 * The result replaces the arguments. */
static void capi_fail(struct _cffi_externpy_s *method, char *arguments, uint32_t hresult)
{
    const char *symbol = strrchr(method->name, '.') + 1;
    int is_hresult = method->size_of_result == sizeof hresult;
    for (size_t i = 0; i < sizeof capi_counts / sizeof *capi_counts; i++)
        is_hresult &= strcmp(capi_counts[i], symbol) != 0;
    make_nothing(symbol, arguments);
    memset(arguments, 0, method->size_of_result);
    if (is_hresult)
        memcpy(arguments, &hresult, sizeof hresult);
}

/* DMLEMU_EXIT_CODE: what was reported makes the program fail. */
static _Atomic int capi_must_fail;

/* Files are written at the end. */
static _Atomic int capi_must_write;

static void capi_keep_files(void)
{
    atomic_store(&capi_must_write, 1);
}

static int capi_has_files(void)
{
    return atomic_load(&capi_must_write);
}

static void capi_fail_at_exit(void)
{
    atomic_store(&capi_must_fail, 1);
}

/* Whether the C library tells functions at exit the status of the program. */
static int capi_knows_status(void)
{
#ifdef __GLIBC__
    return 1;
#else
    return 0;
#endif
}

static int capi_fails(void)
{
    return atomic_load(&capi_must_fail);
}

static void capi_enter(uintptr_t site)
{
    capi_client = site;
}

#define WITHOUT_PARENTHESES(...) __VA_ARGS__
#define FORWARD(name, parameters, arguments) \
    static uint32_t forward_##name parameters \
    { \
        return Exports_##name((uintptr_t)&capi_exports, WITHOUT_PARENTHESES arguments); \
    }
DMLEMU_EXPORTS(FORWARD)

static _Unwind_Reason_Code stop_at_once(struct _Unwind_Context *context, void *unused)
{
    (void)context, (void)unused;
    return _URC_END_OF_STACK;
}

static uintptr_t capi_fill(uintptr_t address)
{
    struct dmlemu_exports *table = (struct dmlemu_exports *)address;
    /* In isolated mode the unwinder of the program runs functions of ours, and of our libgcc, which must be ready. */
    _Unwind_Backtrace(stop_at_once, NULL);
#define FILL(name, parameters, arguments) table->name = forward_##name;
    DMLEMU_EXPORTS(FILL)
    capi_count_cpus();
    capi_is_isolated = table->is_isolated;
    capi_can_stand_in = capi_is_isolated && capi_may_change_pointer();
    capi_iterate = table->iterate;
    capi_measure_stack = table->measure_stack;
    capi_find_lines = table->find_lines;
    capi_unknown_python = table->unknown_python;
    capi_is_in_host = capi_find_lines != NULL && !capi_is_isolated;
    table->enter = capi_enter;
    table->end = capi_end;
    table->print_left = capi_print_left;
    table->keeps_files = capi_has_files;
    table->fails = capi_fails;
    return (uintptr_t)&capi_exports;
}
