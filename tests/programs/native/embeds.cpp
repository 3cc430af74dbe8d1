// A program that runs a Python whose symbols no other library sees: embeds LIBPYTHON.  How often libpython is loaded
// after the first call.

#include "program.h"

#include <dlfcn.h>

#include <fstream>

int main(int, char **arguments)
{
    void *python = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (python == nullptr)
        return 1;
    reinterpret_cast<void (*)(int)>(dlsym(python, "Py_InitializeEx"))(0);
    Gpu gpu;
    int found = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        found += line.find("r-xp") != std::string::npos && line.find("/libpython3") != std::string::npos;
    std::printf("%d\n", found);
    reinterpret_cast<int (*)()>(dlsym(python, "Py_FinalizeEx"))();
}
