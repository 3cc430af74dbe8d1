// _com_error: an HRESULT as an exception.

#pragma once

#include "windows.h"

class _com_error {
public:
    _com_error(HRESULT code) noexcept : code_(code) // NOLINT: implicit, as on Windows
    {
        std::snprintf(narrow_, sizeof narrow_, "HRESULT 0x%08X", static_cast<unsigned>(code));
        for (size_t i = 0; i < sizeof narrow_; i++)
            wide_[i] = static_cast<wchar_t>(narrow_[i]);
    }
    virtual ~_com_error() = default;

    HRESULT Error() const noexcept { return code_; }
    WORD WCode() const noexcept { return static_cast<WORD>((code_ & 0xFFFF0000) == 0x80040000 ? code_ & 0xFFFF : 0); }
#ifdef UNICODE
    const wchar_t *ErrorMessage() const noexcept { return wide_; }
#else
    const char *ErrorMessage() const noexcept { return narrow_; }
#endif

private:
    HRESULT code_;
    char narrow_[32] = {};
    wchar_t wide_[32] = {};
};

[[noreturn]] inline void _com_raise_error(HRESULT code, void * = nullptr)
{
    throw _com_error(code);
}

[[noreturn]] inline void _com_issue_error(HRESULT code)
{
    throw _com_error(code);
}

namespace _com_util {

inline void CheckError(HRESULT code)
{
    if (FAILED(code))
        _com_issue_error(code);
}

} // namespace _com_util
