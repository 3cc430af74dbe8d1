/* The hook in front of every method: cffi's generated functions call Python through this macro.
 *
 * It relies on a name inside cffi; tests/programs/native fails if that name changes. */

#include <signal.h>
#include <string.h>
#include <unwind.h>

#include "caller.h"

static void capi_fail(struct _cffi_externpy_s *method, char *arguments, uint32_t hresult);

static inline void capi_call_python(struct _cffi_externpy_s *method, char *arguments)
{
    _cffi_call_python(method, arguments);
}

#include "workers.h"

static _Unwind_Reason_Code capi_add_frame(struct _Unwind_Context *context, void *data)
{
    struct capi_site *site = data;
    const uintptr_t address = _Unwind_GetIP(context);
    if (site->count == 0 && address != site->frames[0])
        return _URC_NO_REASON; /* a frame of ours or of Python: continue outwards */
    site->frames[site->count++] = address;
    return site->count < CAPI_FRAMES ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* Finds the callers of a method, on the thread that called it. */
static void capi_find_frames(void *argument)
{
    struct capi_site *site = argument;
    memset(site->frames + 1, 0, sizeof site->frames - sizeof *site->frames);
    memset(site->lines, 0, sizeof site->lines);
    site->line_count = -1;
    if (atomic_load_explicit(&capi_has_frames, memory_order_relaxed)) {
        _Unwind_Backtrace(capi_add_frame, site);
        if (capi_find_lines != NULL)
            site->line_count = capi_find_lines(site->lines);
    }
    if (site->count == 0)
        site->count = 1;
}

/* Runs the method: on this thread, if Python may run here and the stack has room for it. */
static void capi_run(struct _cffi_externpy_s *method, char *arguments)
{
    if (capi_is_isolated ? capi_is_ours : dmlemu_has_room(&capi_stack, capi_measure_stack)) {
        const uint32_t mode = dmlemu_enter_mode();
        capi_call_python(method, arguments);
        dmlemu_leave_mode(mode);
        return;
    }
    if (!capi_hand_over(method, arguments))
        capi_fail(method, arguments, CAPI_E_OUTOFMEMORY);
}

static void capi_call_alive(struct _cffi_externpy_s *method, char *arguments, uintptr_t address)
{
    const struct capi_site outer = capi_site;
    capi_site.method = method;
    capi_site.frames[0] = address;
    capi_site.count = 0;
    if (capi_is_in_host || atomic_load_explicit(capi_asker(method), memory_order_relaxed) == method)
        capi_find_frames(&capi_site);
    int cancelling; /* a thread that is cancelled inside Python would keep Python's locks */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    capi_run(method, arguments);
    pthread_setcancelstate(cancelling, NULL);
    capi_site = outer;
}

static void capi_call(struct _cffi_externpy_s *method, char *arguments, uintptr_t address)
{
    if (capi_client != 0)
        address = capi_client;
    capi_client = 0;
    atomic_fetch_add(&capi_inside, 1); /* before the look at capi_is_alive: see capi_wait_for_calls */
    if (atomic_load(&capi_is_alive))
        capi_call_alive(method, arguments, address);
    else
        capi_fail(method, arguments, CAPI_DEVICE_REMOVED);
    atomic_fetch_sub(&capi_inside, 1);
}

/* Inlined, so that a debugger stops in the slot itself, with the client's line above it. */
static inline __attribute__((always_inline)) void capi_stop_here(void)
{
    if (capi_must_stop) {
        capi_must_stop = 0;
#if defined(__x86_64__)
        __asm__ volatile("int3");
#else
        raise(SIGTRAP);
#endif
    }
}

#undef _cffi_call_python
#define _cffi_call_python(method, arguments) \
    do { \
        capi_call(method, arguments, (uintptr_t)__builtin_return_address(0)); \
        capi_stop_here(); \
    } while (0)
