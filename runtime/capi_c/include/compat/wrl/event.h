// Microsoft::WRL::Wrappers::Event: an event that is closed with its owner.

#pragma once

#include "../windows.h"

namespace Microsoft {
namespace WRL {
namespace Wrappers {

class Event {
public:
    explicit Event(HANDLE handle = nullptr) noexcept : handle_(handle) {}
    Event(Event &&other) noexcept : handle_(other.Detach()) {}
    Event &operator=(Event &&other) noexcept
    {
        Attach(other.Detach());
        return *this;
    }
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;
    ~Event() { Close(); }

    HANDLE Get() const noexcept { return handle_; }
    bool IsValid() const noexcept { return handle_ != nullptr; }

    void Attach(HANDLE handle) noexcept
    {
        if (handle != handle_) {
            Close();
            handle_ = handle;
        }
    }

    HANDLE Detach() noexcept
    {
        const HANDLE handle = handle_;
        handle_ = nullptr;
        return handle;
    }

    void Close() noexcept
    {
        if (handle_ != nullptr)
            CloseHandle(handle_);
        handle_ = nullptr;
    }

private:
    HANDLE handle_;
};

} // namespace Wrappers
} // namespace WRL
} // namespace Microsoft
