// Calls a function of dmlemu.h before, while and after the process has a libd3d12.so with that function; with
// AS_ON_WINDOWS by the code for Windows, whose calls are those of our windows.h.

#include <DirectML.h>
#include <d3d12.h>
#include <windows.h>

#include <cstdio>
#include <dlfcn.h>

#if defined(AS_ON_WINDOWS)
#define _WIN32
#endif
#include <dmlemu.h>

int main()
{
    std::printf("%u ", dmlemu_report_count());
    void *library = dlopen("libd3d12.so", RTLD_NOW | RTLD_LOCAL);
    std::printf("%u ", dmlemu_report_count());
    std::printf("%u ", dmlemu_report_count("HAZARD_RAW"));
    dlclose(library);
    std::printf("%u\n", dmlemu_report_count());
}
