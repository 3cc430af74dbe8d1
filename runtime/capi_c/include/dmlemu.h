/* What a program can tell dmlemu, and ask it, beside Direct3D 12 and DirectML.
 *
 * Every function is inline and looks for dmlemu in the process each time: the same source compiles, links and runs
 * without dmlemu, on Windows too.  Where Direct3D 12 is Microsoft's, all of them do nothing, and
 * dmlemu_report_count returns 0.  C++11; on Linux before glibc 2.34, link with -ldl.
 *
 * Texts are UTF-8.  They are copied, and so are descs: nothing has to outlive its call.  Functions may be called from
 * any thread.  A wrong argument is reported like one of any other call, with its line, and the call then does nothing. */

#ifndef DMLEMU_H
#define DMLEMU_H

#include <stdint.h>

#include <d3d12.h>

#include <DirectML.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace dmlemu_detail
{
/* The function of dmlemu with that name; NULL: Direct3D 12 is another one, or none is loaded. */
inline void *find(const char *name)
{
#if defined(_WIN32)
    const HMODULE library = GetModuleHandleA("d3d12.dll");
    return library != nullptr ? reinterpret_cast<void *>(GetProcAddress(library, name)) : nullptr;
#else
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found != nullptr)
        return found;
    void *library = dlopen("libd3d12.so", RTLD_LAZY | RTLD_NOLOAD); /* loaded with RTLD_LOCAL */
    if (library == nullptr)
        return nullptr;
    found = dlsym(library, name);
    dlclose(library); /* it stays: dlopen only counted it once more */
    return found;
#endif
}

template <typename Function> inline Function *function(const char *name)
{
    return reinterpret_cast<Function *>(find(name));
}
} // namespace dmlemu_detail

/* Says that a buffer holds a tensor of this layout from byte `offset` on, which reports call `name` (nullptr: they do
 * not name it).
 *
 * Bytes that the CPU or a copy writes have no layout of their own.  With it, a dispatch that reads them through another
 * layout is reported under --strict (LAYOUT_HANDOVER), and reports about these bytes name their elements.  It holds
 * for what is there and for what is written there later, until another call names the same bytes.  Nothing is compared
 * with the values, and memory is not changed.  E_INVALIDARG is reported for a tensor that reaches beyond the buffer. */
inline void dmlemu_expect(ID3D12Resource *resource, UINT64 offset, const DML_TENSOR_DESC *tensor,
                          const char *name = nullptr)
{
    typedef uint32_t Function(ID3D12Resource *, uint64_t, const DML_TENSOR_DESC *, const char *);
    Function *const call = dmlemu_detail::function<Function>("dmlemu_expect");
    if (call != nullptr)
        call(resource, offset, tensor, name);
}

/* Names an object of Direct3D 12 or DirectML in reports, timelines, records and `dmlemu step`, as SetName does there;
 * but with Microsoft's libraries, this does nothing. */
inline void dmlemu_name(IUnknown *object, const char *name)
{
    typedef uint32_t Function(IUnknown *, const char *);
    Function *const call = dmlemu_detail::function<Function>("dmlemu_name");
    if (call != nullptr)
        call(object, name);
}

/* Marks this moment of the program: `dmlemu step` and --html show the text between the calls before and after it, with
 * its line, and --trace shows it in the track of the thread.  It is about the program, not about the GPU, which
 * executes later what was recorded before it. */
inline void dmlemu_mark(const char *text)
{
    typedef uint32_t Function(const char *);
    Function *const call = dmlemu_detail::function<Function>("dmlemu_mark");
    if (call != nullptr)
        call(text);
}

/* How many different reports there were so far in this process: of the check `id`, such as "HAZARD_RAW", whatever its
 * severity; without it, of all checks, but for severities INFO and MESSAGE.  Suppressed ones do not count.  At strictness
 * runtime nothing is checked, and it is 0.  What the GPU executes is reported once the program has waited for it. */
inline uint32_t dmlemu_report_count(const char *id = nullptr)
{
    typedef uint32_t Function(const char *, uint32_t *);
    Function *const call = dmlemu_detail::function<Function>("dmlemu_report_count");
    uint32_t count = 0;
    if (call != nullptr)
        call(id, &count);
    return count;
}

#endif
