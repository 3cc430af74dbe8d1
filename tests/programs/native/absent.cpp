// Calls the functions of dmlemu.h where Direct3D 12 is not there, or another one.

#include <dmlemu.h>

#include <cstdio>

int main()
{
    dmlemu_expect(nullptr, 0, nullptr, "image");
    dmlemu_name(nullptr, "name");
    dmlemu_mark("text");
    std::printf("%u %u\n", dmlemu_report_count(), dmlemu_report_count("HAZARD_RAW"));
}
