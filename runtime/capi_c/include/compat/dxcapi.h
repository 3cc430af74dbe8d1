// dxcapi.h of DXC, the compiler of HLSL, in one file with d3d12.h.  DXC's own header follows behind this folder on the
// include path.  On Linux it brings the types of Windows a second time (WinAdapter.h): here they are those of d3d12.h.

#pragma once

#include "dmlguids.h"

#ifndef ARRAYSIZE
#define ARRAYSIZE(array) (sizeof(array) / sizeof *(array))
#endif
#ifndef _Outptr_result_z_
#define _Outptr_result_z_
#endif

struct IMalloc;
struct IStream;
typedef wchar_t *BSTR;

namespace dmlemu {
// The digits of an IID as it is written in text, from one position on.
template <typename T> constexpr T digits(const char *text, int first, int count)
{
    T value = 0;
    for (int position = first; position < first + count; ++position) {
        const char digit = text[position];
        value = static_cast<T>(value * 16 + (digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10));
    }
    return value;
}
} // namespace dmlemu

#define DMLEMU_PART(text, first) dmlemu::digits<uint8_t>(text, first, 2)
#define CROSS_PLATFORM_UUIDOF(name, text) \
    struct name; \
    WINADAPTER_IID(name, dmlemu::digits<uint32_t>(text, 0, 8), dmlemu::digits<uint16_t>(text, 9, 4), \
                   dmlemu::digits<uint16_t>(text, 14, 4), DMLEMU_PART(text, 19), DMLEMU_PART(text, 21), \
                   DMLEMU_PART(text, 24), DMLEMU_PART(text, 26), DMLEMU_PART(text, 28), DMLEMU_PART(text, 30), \
                   DMLEMU_PART(text, 32), DMLEMU_PART(text, 34))

// What IDxcUtils::CreateReflection gives is declared by d3d12shader.h.
CROSS_PLATFORM_UUIDOF(ID3D12ShaderReflection, "5A58797D-A72C-478D-8BA2-EFC6B0EFE88E")
CROSS_PLATFORM_UUIDOF(ID3D12LibraryReflection, "8E349D19-54DB-4A56-9DC9-119D87BDB804")

#define LLVM_SUPPORT_WIN_ADAPTER_H // the guard of WinAdapter.h

#include_next <dxcapi.h>

typedef IDxcBlobWide IDxcBlobUtf16; // as on Windows
