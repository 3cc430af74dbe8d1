/* The one hook in front of every method: cffi's generated functions call Python through this macro.
 *
 * It relies on a name inside cffi, which tests/programs/native pins. */

#include <string.h>

static void capi_fail(struct _cffi_externpy_s *method, char *result);

static inline void capi_call_python(struct _cffi_externpy_s *method, char *arguments)
{
    _cffi_call_python(method, arguments);
}

static void capi_call(struct _cffi_externpy_s *method, char *arguments, uintptr_t site)
{
    if (!atomic_load_explicit(&capi_is_alive, memory_order_relaxed)) {
        capi_client = 0;
        capi_fail(method, arguments);
        return;
    }
    uintptr_t outer = capi_site;
    capi_site = capi_client != 0 ? capi_client : site;
    capi_client = 0;
    capi_call_python(method, arguments);
    capi_site = outer;
}

#undef _cffi_call_python
#define _cffi_call_python(method, arguments) capi_call(method, arguments, (uintptr_t)__builtin_return_address(0))
