// The part of windows.h that programs with DirectML use: events, the last error, time, debug strings, libraries.
//
// An event is an eventfd, and its HANDLE is the file descriptor, as ID3D12Fence::SetEventOnCompletion expects on
// Linux.  Whether it is reset by hand is stored in a flag of the open file that has no meaning for an eventfd:
// O_APPEND.  So all parts of a process see the same event, whatever each was compiled with.

#pragma once

#include <wsl/winadapter.h>

#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <unistd.h>

#ifndef ARRAYSIZE
#define ARRAYSIZE(array) (sizeof(array) / sizeof *(array))
#endif
#ifndef CALLBACK
#define CALLBACK
#endif
#define ZeroMemory(to, size) std::memset((to), 0, (size))
#define CopyMemory(to, from, size) std::memcpy((to), (from), (size))
#define INVALID_HANDLE_VALUE (reinterpret_cast<HANDLE>(static_cast<LONG_PTR>(-1)))

#define INFINITE 0xFFFFFFFFu
#define WAIT_OBJECT_0 0u
#define WAIT_ABANDONED_0 0x80u
#define WAIT_IO_COMPLETION 0xC0u
#define WAIT_TIMEOUT 0x102u
#define WAIT_FAILED 0xFFFFFFFFu
#define MAXIMUM_WAIT_OBJECTS 64u
#define CREATE_EVENT_MANUAL_RESET 1u
#define CREATE_EVENT_INITIAL_SET 2u
#define SYNCHRONIZE 0x00100000u
#define EVENT_MODIFY_STATE 0x0002u
#define EVENT_ALL_ACCESS 0x001F0003u
#define ERROR_SUCCESS 0u
#define ERROR_TOO_MANY_OPEN_FILES 4u
#define ERROR_INVALID_HANDLE 6u
#define ERROR_NOT_ENOUGH_MEMORY 8u
#define ERROR_NOT_SUPPORTED 50u
#define ERROR_INVALID_PARAMETER 87u
#define ERROR_MOD_NOT_FOUND 126u
#define ERROR_PROC_NOT_FOUND 127u

typedef unsigned char byte;
typedef SECURITY_ATTRIBUTES *LPSECURITY_ATTRIBUTES;
typedef HANDLE HMODULE, HINSTANCE;
typedef INT_PTR (*FARPROC)();

// --- the last error of a thread ---

namespace dmlemu_compat {

inline DWORD &last_error()
{
    static thread_local DWORD value = ERROR_SUCCESS;
    return value;
}

template <typename Result> Result with_error(DWORD error, Result result)
{
    last_error() = error;
    return result;
}

} // namespace dmlemu_compat

inline DWORD GetLastError()
{
    return dmlemu_compat::last_error();
}

inline void SetLastError(DWORD error)
{
    dmlemu_compat::last_error() = error;
}

#ifndef HRESULT_FROM_WIN32
inline HRESULT HRESULT_FROM_WIN32(DWORD error)
{
    const auto given = static_cast<HRESULT>(error);
    return given <= 0 ? given : static_cast<HRESULT>((error & 0xFFFF) | 0x80070000u);
}
#endif

// --- events ---

namespace dmlemu_compat {

inline int event_number(HANDLE handle)
{
    const auto value = reinterpret_cast<intptr_t>(handle);
    return value > 0 && value <= INT_MAX ? static_cast<int>(value) : -1;
}

inline HANDLE create_event(bool is_named, DWORD flags)
{
    if (is_named) // events are not shared between processes
        return with_error<HANDLE>(ERROR_NOT_SUPPORTED, nullptr);
    int number = eventfd(flags & CREATE_EVENT_INITIAL_SET ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (number == 0) { // if standard input is closed; a HANDLE of 0 means none
        number = fcntl(0, F_DUPFD_CLOEXEC, 3);
        close(0);
    }
    if (number < 0)
        return with_error<HANDLE>(errno == EMFILE || errno == ENFILE ? ERROR_TOO_MANY_OPEN_FILES : ERROR_NOT_ENOUGH_MEMORY,
                            nullptr);
    if (flags & CREATE_EVENT_MANUAL_RESET)
        fcntl(number, F_SETFL, O_NONBLOCK | O_APPEND);
    return with_error<HANDLE>(ERROR_SUCCESS, reinterpret_cast<HANDLE>(static_cast<intptr_t>(number)));
}

enum class Event { set, reset, none };

// Whether an event is set; this resets an event that resets itself.
inline Event take(int number)
{
    const int flags = fcntl(number, F_GETFL);
    if (flags < 0)
        return Event::none;
    struct pollfd entry = {number, POLLIN, 0};
    if (poll(&entry, 1, 0) != 1 || (flags & O_APPEND))
        return entry.revents & POLLIN ? Event::set : Event::reset;
    uint64_t count;
    if (read(number, &count, sizeof count) == sizeof count)
        return Event::set;
    return errno == EAGAIN || errno == EINTR ? Event::reset : Event::none;
}

inline bool give(int number)
{
    const uint64_t one = 1;
    return write(number, &one, sizeof one) == sizeof one;
}

inline int64_t now()
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

// The time at which a wait ends.
class Deadline {
public:
    explicit Deadline(DWORD milliseconds)
        : is_infinite_(milliseconds == INFINITE), end_(now() + static_cast<int64_t>(milliseconds) * 1000000)
    {
    }

    // The milliseconds left, for poll; 0: the time has passed.
    int left() const
    {
        if (is_infinite_)
            return -1;
        const int64_t left = (end_ - now() + 999999) / 1000000;
        return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : static_cast<int>(left);
    }

private:
    bool is_infinite_;
    int64_t end_;
};

inline DWORD wait_any(DWORD count, struct pollfd *entries, const Deadline &deadline)
{
    for (;;) {
        const int left = deadline.left();
        for (DWORD i = 0; i < count; i++) {
            const Event found = take(entries[i].fd);
            if (found == Event::none)
                return with_error<DWORD>(ERROR_INVALID_HANDLE, WAIT_FAILED);
            if (found == Event::set)
                return WAIT_OBJECT_0 + i;
        }
        if (left == 0)
            return WAIT_TIMEOUT;
        poll(entries, count, left);
    }
}

// Takes all events or none: if another thread was faster at one, the events taken so far are set again.
inline bool take_all(DWORD count, const struct pollfd *entries)
{
    for (DWORD i = 0; i < count; i++) {
        if (take(entries[i].fd) == Event::set)
            continue;
        while (i-- > 0)
            if (!(fcntl(entries[i].fd, F_GETFL) & O_APPEND))
                give(entries[i].fd);
        return false;
    }
    return true;
}

inline DWORD wait_all(DWORD count, struct pollfd *entries, const Deadline &deadline)
{
    for (;;) {
        const int left = deadline.left();
        poll(entries, count, 0);
        struct pollfd *missing = nullptr;
        for (DWORD i = 0; i < count; i++) {
            if (entries[i].fd < 0 || (entries[i].revents & POLLNVAL))
                return with_error<DWORD>(ERROR_INVALID_HANDLE, WAIT_FAILED);
            if (!(entries[i].revents & POLLIN))
                missing = &entries[i];
        }
        if (missing == nullptr && take_all(count, entries))
            return WAIT_OBJECT_0;
        if (left == 0)
            return WAIT_TIMEOUT;
        if (missing != nullptr)
            poll(missing, 1, left);
    }
}

} // namespace dmlemu_compat

inline HANDLE CreateEventA(SECURITY_ATTRIBUTES *, BOOL is_manual, BOOL is_set, const char *name)
{
    return dmlemu_compat::create_event(name != nullptr, (is_manual ? CREATE_EVENT_MANUAL_RESET : 0u) |
                                                            (is_set ? CREATE_EVENT_INITIAL_SET : 0u));
}

inline HANDLE CreateEventW(SECURITY_ATTRIBUTES *, BOOL is_manual, BOOL is_set, const wchar_t *name)
{
    return CreateEventA(nullptr, is_manual, is_set, name != nullptr ? "" : nullptr);
}

inline HANDLE CreateEventExA(SECURITY_ATTRIBUTES *, const char *name, DWORD flags, DWORD)
{
    return dmlemu_compat::create_event(name != nullptr, flags);
}

inline HANDLE CreateEventExW(SECURITY_ATTRIBUTES *, const wchar_t *name, DWORD flags, DWORD)
{
    return dmlemu_compat::create_event(name != nullptr, flags);
}

inline BOOL SetEvent(HANDLE event)
{
    const int number = dmlemu_compat::event_number(event);
    return dmlemu_compat::give(number) ? TRUE : dmlemu_compat::with_error<BOOL>(ERROR_INVALID_HANDLE, FALSE);
}

inline BOOL ResetEvent(HANDLE event)
{
    const int number = dmlemu_compat::event_number(event);
    uint64_t count;
    if (read(number, &count, sizeof count) == sizeof count || errno == EAGAIN)
        return TRUE;
    return dmlemu_compat::with_error<BOOL>(ERROR_INVALID_HANDLE, FALSE);
}

inline BOOL CloseHandle(HANDLE handle)
{
    const int number = dmlemu_compat::event_number(handle);
    return close(number) == 0 ? TRUE : dmlemu_compat::with_error<BOOL>(ERROR_INVALID_HANDLE, FALSE);
}

inline DWORD WaitForMultipleObjects(DWORD count, const HANDLE *events, BOOL for_all, DWORD milliseconds)
{
    struct pollfd entries[MAXIMUM_WAIT_OBJECTS];
    bool is_wrong = count == 0 || count > MAXIMUM_WAIT_OBJECTS || events == nullptr;
    for (DWORD i = 0; !is_wrong && i < count; i++) {
        entries[i] = {dmlemu_compat::event_number(events[i]), POLLIN, 0};
        for (DWORD j = 0; for_all && j < i; j++)
            is_wrong = is_wrong || events[i] == events[j];
    }
    if (is_wrong)
        return dmlemu_compat::with_error<DWORD>(ERROR_INVALID_PARAMETER, WAIT_FAILED);
    const dmlemu_compat::Deadline deadline(milliseconds);
    return for_all ? dmlemu_compat::wait_all(count, entries, deadline)
                   : dmlemu_compat::wait_any(count, entries, deadline);
}

inline DWORD WaitForMultipleObjectsEx(DWORD count, const HANDLE *events, BOOL for_all, DWORD milliseconds, BOOL)
{
    return WaitForMultipleObjects(count, events, for_all, milliseconds);
}

inline DWORD WaitForSingleObject(HANDLE event, DWORD milliseconds)
{
    return WaitForMultipleObjects(1, &event, FALSE, milliseconds);
}

inline DWORD WaitForSingleObjectEx(HANDLE event, DWORD milliseconds, BOOL)
{
    return WaitForSingleObject(event, milliseconds);
}

// --- time ---

inline void Sleep(DWORD milliseconds)
{
    const dmlemu_compat::Deadline deadline(milliseconds);
    int left = deadline.left();
    do
        poll(nullptr, 0, left);
    while ((left = deadline.left()) != 0);
}

inline DWORD SleepEx(DWORD milliseconds, BOOL)
{
    Sleep(milliseconds);
    return 0;
}

inline ULONGLONG GetTickCount64()
{
    return static_cast<ULONGLONG>(dmlemu_compat::now() / 1000000);
}

inline BOOL QueryPerformanceCounter(LARGE_INTEGER *count)
{
    count->QuadPart = dmlemu_compat::now();
    return TRUE;
}

inline BOOL QueryPerformanceFrequency(LARGE_INTEGER *frequency)
{
    frequency->QuadPart = 1000000000;
    return TRUE;
}

// --- debug strings: printed on stderr if a debugger is attached ---

namespace dmlemu_compat {

inline std::string utf8(const wchar_t *text)
{
    std::string found;
    for (; *text; text++) {
        const auto code = static_cast<uint32_t>(*text);
        const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        const unsigned first[] = {0, 0xC0, 0xE0, 0xF0};
        found += static_cast<char>(first[more] | code >> 6 * more);
        for (int i = more - 1; i >= 0; i--)
            found += static_cast<char>(0x80 | (code >> 6 * i & 0x3F));
    }
    return found;
}

} // namespace dmlemu_compat

inline BOOL IsDebuggerPresent()
{
    char line[128];
    unsigned tracer = 0;
    FILE *status = std::fopen("/proc/self/status", "re");
    while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr)
        if (std::sscanf(line, "TracerPid: %u", &tracer) == 1)
            break;
    if (status != nullptr)
        std::fclose(status);
    return tracer != 0;
}

inline void OutputDebugStringA(const char *text)
{
    if (text != nullptr && IsDebuggerPresent())
        std::fputs(text, stderr);
}

inline void OutputDebugStringW(const wchar_t *text)
{
    if (text != nullptr)
        OutputDebugStringA(dmlemu_compat::utf8(text).c_str());
}

// --- libraries: d3d12.dll is libd3d12.so ---

namespace dmlemu_compat {

inline HMODULE library(const char *name, int flags)
{
    std::string file = name != nullptr ? name : "";
    file.erase(0, file.find_last_of("/\\") + 1);
    for (char &letter : file)
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (file.size() > 4 && file.compare(file.size() - 4, 4, ".dll") == 0)
        file.erase(file.size() - 4);
    HMODULE found = dlopen(("lib" + file + ".so").c_str(), RTLD_NOW | flags);
    return found != nullptr ? found : with_error<HMODULE>(ERROR_MOD_NOT_FOUND, nullptr);
}

} // namespace dmlemu_compat

inline HMODULE LoadLibraryA(const char *name)
{
    return dmlemu_compat::library(name, 0);
}

inline HMODULE LoadLibraryW(const wchar_t *name)
{
    return LoadLibraryA(name != nullptr ? dmlemu_compat::utf8(name).c_str() : nullptr);
}

inline HMODULE LoadLibraryExA(const char *name, HANDLE, DWORD)
{
    return LoadLibraryA(name);
}

inline HMODULE LoadLibraryExW(const wchar_t *name, HANDLE, DWORD)
{
    return LoadLibraryW(name);
}

/* A library that is loaded already; the program itself: nullptr.  It stays loaded no longer because of this call. */
inline HMODULE GetModuleHandleA(const char *name)
{
    HMODULE found = name != nullptr ? dmlemu_compat::library(name, RTLD_NOLOAD) : dlopen(nullptr, RTLD_NOW);
    if (found != nullptr)
        dlclose(found);
    return found;
}

inline HMODULE GetModuleHandleW(const wchar_t *name)
{
    return GetModuleHandleA(name != nullptr ? dmlemu_compat::utf8(name).c_str() : nullptr);
}

inline FARPROC GetProcAddress(HMODULE library, const char *name)
{
    void *found = dlsym(library, name);
    return found != nullptr ? reinterpret_cast<FARPROC>(found)
                            : dmlemu_compat::with_error<FARPROC>(ERROR_PROC_NOT_FOUND, nullptr);
}

inline BOOL FreeLibrary(HMODULE library)
{
    return dlclose(library) == 0 ? TRUE : dmlemu_compat::with_error<BOOL>(ERROR_INVALID_HANDLE, FALSE);
}

// --- copies with the size of their destination ---

#ifndef __STDC_LIB_EXT1__
typedef int errno_t;

inline errno_t memmove_s(void *to, size_t room, const void *from, size_t size)
{
    if (size == 0)
        return 0;
    if (to == nullptr || from == nullptr)
        return EINVAL;
    if (size > room)
        return ERANGE;
    std::memmove(to, from, size);
    return 0;
}

// If there is no source, or the source does not fit, clears all of `to`.
inline errno_t memcpy_s(void *to, size_t room, const void *from, size_t size)
{
    const errno_t error = memmove_s(to, room, from, size);
    if (error != 0 && to != nullptr)
        std::memset(to, 0, room);
    return error;
}
#endif

// --- COM itself: nothing has to be done ---

#define COINIT_MULTITHREADED 0x0u
#define COINIT_APARTMENTTHREADED 0x2u

inline HRESULT CoInitialize(void *)
{
    return S_OK;
}

inline HRESULT CoInitializeEx(void *, DWORD)
{
    return S_OK;
}

inline void CoUninitialize() {}

#include "stringapiset.h"

#ifdef UNICODE
#define CreateEvent CreateEventW
#define CreateEventEx CreateEventExW
#define GetModuleHandle GetModuleHandleW
#define LoadLibrary LoadLibraryW
#define LoadLibraryEx LoadLibraryExW
#define OutputDebugString OutputDebugStringW
#else
#define CreateEvent CreateEventA
#define CreateEventEx CreateEventExA
#define GetModuleHandle GetModuleHandleA
#define LoadLibrary LoadLibraryA
#define LoadLibraryEx LoadLibraryExA
#define OutputDebugString OutputDebugStringA
#endif
