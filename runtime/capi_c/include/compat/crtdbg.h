// The debug heap of Microsoft's C library.  There is none here: its functions do nothing.  _ASSERT is assert.

#pragma once

#include <cassert>
#include <cstdio>

#define _CRT_WARN 0
#define _CRT_ERROR 1
#define _CRT_ASSERT 2
#define _CRTDBG_ALLOC_MEM_DF 0x01
#define _CRTDBG_DELAY_FREE_MEM_DF 0x02
#define _CRTDBG_CHECK_ALWAYS_DF 0x04
#define _CRTDBG_LEAK_CHECK_DF 0x20
#define _CRTDBG_REPORT_FLAG (-1)
#define _CRTDBG_MODE_FILE 0x1
#define _CRTDBG_MODE_DEBUG 0x2
#define _CRTDBG_MODE_WNDW 0x4
#define _CRTDBG_FILE_STDOUT (reinterpret_cast<void *>(-4))
#define _CRTDBG_FILE_STDERR (reinterpret_cast<void *>(-5))

#define _ASSERT(condition) assert(condition)
#define _ASSERTE(condition) assert(condition)
#define _RPT0(kind, text) static_cast<void>(0)
#define _RPTF0(kind, text) static_cast<void>(0)

inline int _CrtSetDbgFlag(int)
{
    return 0;
}

inline int _CrtSetReportMode(int, int)
{
    return 0;
}

inline void *_CrtSetReportFile(int, void *)
{
    return nullptr;
}

inline int _CrtDumpMemoryLeaks()
{
    return 0;
}

inline int _CrtCheckMemory()
{
    return 1;
}

inline long _CrtSetBreakAlloc(long)
{
    return -1;
}
