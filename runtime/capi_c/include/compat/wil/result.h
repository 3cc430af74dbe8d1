// THROW_, RETURN_, LOG_ and FAIL_FAST_ macros of the Windows Implementation Library.

#pragma once

#include "common.h"

#include <cstdlib>
#include <exception>
#include <new>

namespace wil {

// The exception that THROW_IF_FAILED throws.
class ResultException : public std::exception {
public:
    explicit ResultException(HRESULT code, const char *file = nullptr, int line = 0, const char *text = nullptr)
        : code_(code)
    {
        char number[32];
        std::snprintf(number, sizeof number, "HRESULT 0x%08X", static_cast<unsigned>(code));
        what_ = (file != nullptr ? std::string(file) + ":" + std::to_string(line) + ": " : std::string()) + number +
                (text != nullptr ? std::string(" from ") + text : std::string());
    }

    HRESULT GetErrorCode() const noexcept { return code_; }
    const char *what() const noexcept override { return what_.c_str(); }

private:
    HRESULT code_;
    std::string what_;
};

namespace details {

// The place in the source where a macro is used.
struct place {
    const char *file;
    int line;
    const char *text;
};

[[noreturn]] inline void throw_hr(HRESULT code, const place &at)
{
    throw ResultException(code, at.file, at.line, at.text);
}

[[noreturn]] inline void fail_fast(HRESULT code, const place &at)
{
    std::fprintf(stderr, "%s\n", ResultException(code, at.file, at.line, at.text).what());
    std::abort();
}

inline void log(HRESULT code, const place &at)
{
    OutputDebugStringA((std::string(ResultException(code, at.file, at.line, at.text).what()) + "\n").c_str());
}

inline HRESULT last_error()
{
    const DWORD error = GetLastError();
    return error == ERROR_SUCCESS ? E_FAIL : HRESULT_FROM_WIN32(error);
}

template <void on_failure(HRESULT, const place &)> HRESULT if_failed(HRESULT code, const place &at)
{
    if (FAILED(code))
        on_failure(code, at);
    return code;
}

// A call of the system that returned FALSE or NULL.
template <void on_failure(HRESULT, const place &), typename Result> Result &&if_not(Result &&result, const place &at)
{
    if (!result)
        on_failure(last_error(), at);
    return std::forward<Result>(result);
}

template <void on_failure(HRESULT, const place &), typename Result>
Result &&if_null(Result &&result, HRESULT code, const place &at)
{
    if (!result)
        on_failure(code, at);
    return std::forward<Result>(result);
}

template <void on_failure(HRESULT, const place &)> bool if_true(bool condition, HRESULT code, const place &at)
{
    if (condition)
        on_failure(code, at);
    return condition;
}

} // namespace details

// The HRESULT of the exception that is being handled.
inline HRESULT ResultFromCaughtException() noexcept
{
    try {
        throw;
    } catch (const ResultException &error) {
        return error.GetErrorCode();
    } catch (const std::bad_alloc &) {
        return E_OUTOFMEMORY;
    } catch (...) {
        return E_FAIL;
    }
}

template <typename Result> HRESULT verify_hresult(Result result)
{
    return static_cast<HRESULT>(result);
}

} // namespace wil

#define DMLEMU_PLACE(text) ::wil::details::place{__FILE__, __LINE__, text}

#define THROW_HR(code) ::wil::details::throw_hr((code), DMLEMU_PLACE(#code))
#define THROW_LAST_ERROR() ::wil::details::throw_hr(::wil::details::last_error(), DMLEMU_PLACE(nullptr))
#define THROW_WIN32(error) ::wil::details::throw_hr(HRESULT_FROM_WIN32(error), DMLEMU_PLACE(#error))
#define THROW_IF_FAILED(code) ::wil::details::if_failed<::wil::details::throw_hr>((code), DMLEMU_PLACE(#code))
#define THROW_IF_FAILED_MSG(code, ...) THROW_IF_FAILED(code)
#define THROW_HR_IF(code, condition) \
    ::wil::details::if_true<::wil::details::throw_hr>((condition), (code), DMLEMU_PLACE(#condition))
#define THROW_HR_IF_NULL(code, pointer) \
    ::wil::details::if_null<::wil::details::throw_hr>((pointer), (code), DMLEMU_PLACE(#pointer))
#define THROW_IF_NULL_ALLOC(pointer) THROW_HR_IF_NULL(E_OUTOFMEMORY, pointer)
#define THROW_LAST_ERROR_IF(condition) \
    ::wil::details::if_true<::wil::details::throw_hr>((condition), ::wil::details::last_error(), \
                                                      DMLEMU_PLACE(#condition))
#define THROW_LAST_ERROR_IF_NULL(pointer) \
    ::wil::details::if_not<::wil::details::throw_hr>((pointer), DMLEMU_PLACE(#pointer))
#define THROW_IF_WIN32_BOOL_FALSE(result) \
    ::wil::details::if_not<::wil::details::throw_hr>((result), DMLEMU_PLACE(#result))

#define FAIL_FAST() ::wil::details::fail_fast(E_UNEXPECTED, DMLEMU_PLACE(nullptr))
#define FAIL_FAST_HR(code) ::wil::details::fail_fast((code), DMLEMU_PLACE(#code))
#define FAIL_FAST_IF_FAILED(code) ::wil::details::if_failed<::wil::details::fail_fast>((code), DMLEMU_PLACE(#code))
#define FAIL_FAST_IF(condition) \
    ::wil::details::if_true<::wil::details::fail_fast>((condition), E_UNEXPECTED, DMLEMU_PLACE(#condition))
#define FAIL_FAST_IF_NULL(pointer) \
    ::wil::details::if_null<::wil::details::fail_fast>((pointer), E_UNEXPECTED, DMLEMU_PLACE(#pointer))

#define LOG_HR(code) ::wil::details::log((code), DMLEMU_PLACE(#code))
#define LOG_IF_FAILED(code) ::wil::details::if_failed<::wil::details::log>((code), DMLEMU_PLACE(#code))

#define DMLEMU_RETURN_IF(condition, code) \
    do { \
        if (condition) \
            return (code); \
    } while (0)
#define RETURN_HR(code) return (code)
#define RETURN_LAST_ERROR() return ::wil::details::last_error()
#define RETURN_IF_FAILED(code) \
    do { \
        const HRESULT dmlemu_result = (code); \
        if (FAILED(dmlemu_result)) \
            return dmlemu_result; \
    } while (0)
#define RETURN_IF_FAILED_EXPECTED(code) RETURN_IF_FAILED(code)
#define RETURN_HR_IF(code, condition) DMLEMU_RETURN_IF(condition, code)
#define RETURN_HR_IF_NULL(code, pointer) DMLEMU_RETURN_IF((pointer) == nullptr, code)
#define RETURN_IF_NULL_ALLOC(pointer) RETURN_HR_IF_NULL(E_OUTOFMEMORY, pointer)
#define RETURN_LAST_ERROR_IF(condition) DMLEMU_RETURN_IF(condition, ::wil::details::last_error())
#define RETURN_LAST_ERROR_IF_NULL(pointer) DMLEMU_RETURN_IF((pointer) == nullptr, ::wil::details::last_error())
#define RETURN_IF_WIN32_BOOL_FALSE(result) DMLEMU_RETURN_IF(!(result), ::wil::details::last_error())
#define CATCH_RETURN() \
    catch (...) \
    { \
        return ::wil::ResultFromCaughtException(); \
    }
#define CATCH_LOG() \
    catch (...) \
    { \
        LOG_HR(::wil::ResultFromCaughtException()); \
    }
