// Owners of handles, from the Windows Implementation Library.

#pragma once

#include "result.h"

namespace wil {

// A handle that is closed with its owner; NULL: none.
template <typename Handle, typename Close> class unique_any {
public:
    using pointer = Handle;

    unique_any() noexcept = default;
    explicit unique_any(Handle handle) noexcept : handle_(handle) {}
    unique_any(unique_any &&other) noexcept : handle_(other.release()) {}
    unique_any &operator=(unique_any &&other) noexcept
    {
        if (this != &other)
            reset(other.release());
        return *this;
    }
    unique_any &operator=(decltype(nullptr)) noexcept
    {
        reset();
        return *this;
    }
    unique_any(const unique_any &) = delete;
    unique_any &operator=(const unique_any &) = delete;
    ~unique_any() { reset(); }

    Handle get() const noexcept { return handle_; }
    Handle release() noexcept { return std::exchange(handle_, nullptr); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    bool is_valid() const noexcept { return handle_ != nullptr; }

    void reset(Handle handle = nullptr) noexcept
    {
        const Handle before = std::exchange(handle_, handle);
        if (before != nullptr)
            Close()(before);
    }

    // The address of the handle, for a function that sets it.
    Handle *put() noexcept
    {
        reset();
        return &handle_;
    }

    Handle *addressof() noexcept { return &handle_; }

    Handle *operator&() noexcept { return put(); }

private:
    Handle handle_ = nullptr;
};

namespace details {

struct close_handle {
    void operator()(HANDLE handle) const { CloseHandle(handle); }
};

struct free_library {
    void operator()(HMODULE library) const { FreeLibrary(library); }
};

} // namespace details

using unique_handle = unique_any<HANDLE, details::close_handle>;
using unique_hmodule = unique_any<HMODULE, details::free_library>;

enum class EventOptions { None = 0, ManualReset = 1, Signaled = 2 };
inline EventOptions operator|(EventOptions a, EventOptions b)
{
    return static_cast<EventOptions>(static_cast<int>(a) | static_cast<int>(b));
}

class unique_event : public unique_handle {
public:
    using unique_handle::unique_handle;
    unique_event() noexcept = default;
    explicit unique_event(EventOptions options) { create(options); }

    bool try_create(EventOptions options, const wchar_t *name) noexcept
    {
        reset(CreateEventExW(nullptr, name, static_cast<DWORD>(options), EVENT_ALL_ACCESS));
        return is_valid();
    }

    void create(EventOptions options = EventOptions::None, const wchar_t *name = nullptr)
    {
        if (!try_create(options, name))
            THROW_LAST_ERROR();
    }

    void SetEvent() const noexcept { ::SetEvent(get()); }
    void ResetEvent() const noexcept { ::ResetEvent(get()); }
    bool wait(DWORD milliseconds = INFINITE) const noexcept
    {
        return WaitForSingleObject(get(), milliseconds) == WAIT_OBJECT_0;
    }
    // An event that is reset by hand.
    bool is_signaled() const noexcept { return wait(0); }
};

using unique_event_nothrow = unique_event;
using unique_event_failfast = unique_event;

} // namespace wil
