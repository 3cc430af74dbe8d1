// MultiByteToWideChar and WideCharToMultiByte: conversions between UTF-8 and WCHAR, which has 4 bytes here.
//
// CP_ACP, the code page of the system, is also UTF-8; other code pages give ERROR_INVALID_PARAMETER.

#pragma once

#include "windows.h"

#define CP_ACP 0u
#define CP_UTF8 65001u
#define MB_PRECOMPOSED 0x1u
#define MB_ERR_INVALID_CHARS 0x8u
#define WC_ERR_INVALID_CHARS 0x80u
#define ERROR_INSUFFICIENT_BUFFER 122u
#define ERROR_INVALID_FLAGS 1004u
#define ERROR_NO_UNICODE_TRANSLATION 1113u

namespace dmlemu_compat {

// The next code point of UTF-8.  For a byte that is not part of a code point, U+FFFD, and `is_right` becomes false.
inline wchar_t next_code(const unsigned char *&at, const unsigned char *end, bool &is_right)
{
    const unsigned first = *at++;
    if (first < 0x80)
        return static_cast<wchar_t>(first);
    const int more = first >= 0xF0 && first < 0xF5 ? 3 : first >= 0xE0 && first < 0xF0 ? 2 : first >= 0xC2 && first < 0xE0;
    uint32_t code = first & (0x3Fu >> more);
    const unsigned char *here = at;
    for (int i = 0; i < more && here < end && (*here & 0xC0) == 0x80; i++)
        code = code << 6 | (*here++ & 0x3Fu);
    const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (more == 0 || here - at != more || code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        is_right = false;
        return 0xFFFD;
    }
    at = here;
    return static_cast<wchar_t>(code);
}

// Copies the converted text and returns its length; if the caller's size is 0, only returns the length.
template <typename Text> int give_text(const Text &found, typename Text::value_type *to, int room)
{
    const int size = static_cast<int>(found.size());
    if (room == 0)
        return size;
    if (size > room)
        return with_error<int>(ERROR_INSUFFICIENT_BUFFER, 0);
    found.copy(to, found.size());
    return size;
}

template <typename Letter>
bool is_wrong_call(UINT page, const Letter *from, int size, const void *to, int room)
{
    return (page != CP_ACP && page != CP_UTF8) || from == nullptr || size == 0 || size < -1 || room < 0 ||
           (room > 0 && to == nullptr) || static_cast<const void *>(from) == to;
}

} // namespace dmlemu_compat

inline int MultiByteToWideChar(UINT page, DWORD flags, const char *from, int size, wchar_t *to, int room)
{
    if (dmlemu_compat::is_wrong_call(page, from, size, to, room))
        return dmlemu_compat::with_error<int>(ERROR_INVALID_PARAMETER, 0);
    if (flags & ~(MB_PRECOMPOSED | MB_ERR_INVALID_CHARS))
        return dmlemu_compat::with_error<int>(ERROR_INVALID_FLAGS, 0);
    const size_t length = size == -1 ? std::strlen(from) + 1 : static_cast<size_t>(size);
    const unsigned char *at = reinterpret_cast<const unsigned char *>(from), *end = at + length;
    std::wstring found;
    bool is_right = true;
    while (at < end)
        found += dmlemu_compat::next_code(at, end, is_right);
    if (!is_right && (flags & MB_ERR_INVALID_CHARS))
        return dmlemu_compat::with_error<int>(ERROR_NO_UNICODE_TRANSLATION, 0);
    return dmlemu_compat::give_text(found, to, room);
}

inline int WideCharToMultiByte(UINT page, DWORD flags, const wchar_t *from, int size, char *to, int room,
                               const char *unknown, BOOL *used_unknown)
{
    const bool is_utf8_only = page == CP_UTF8 && (unknown != nullptr || used_unknown != nullptr);
    if (is_utf8_only || dmlemu_compat::is_wrong_call(page, from, size, to, room))
        return dmlemu_compat::with_error<int>(ERROR_INVALID_PARAMETER, 0);
    if (flags & ~WC_ERR_INVALID_CHARS)
        return dmlemu_compat::with_error<int>(ERROR_INVALID_FLAGS, 0);
    if (used_unknown != nullptr)
        *used_unknown = FALSE;
    const size_t length = size == -1 ? std::wcslen(from) + 1 : static_cast<size_t>(size);
    std::string found;
    for (size_t i = 0; i < length; i++) {
        const auto code = static_cast<uint32_t>(from[i]);
        const bool is_right = code < 0xD800 || (code >= 0xE000 && code <= 0x10FFFF);
        if (!is_right && (flags & WC_ERR_INVALID_CHARS))
            return dmlemu_compat::with_error<int>(ERROR_NO_UNICODE_TRANSLATION, 0);
        const wchar_t letter[] = {is_right ? from[i] : L'\xFFFD', 0};
        found += code == 0 ? std::string(1, '\0') : dmlemu_compat::utf8(letter);
    }
    return dmlemu_compat::give_text(found, to, room);
}
