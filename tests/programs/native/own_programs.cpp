// The right programs, one after the other in one process, or those that the arguments name.

#include "operators.cpp"

#include "memory.cpp"
#include "synchronization.cpp"
#include "tensorflow.cpp"
#include "torch.cpp"

#include "objects.cpp" // the last one: it enables the debug layer and removes the device

int main(int count, char **arguments)
{
    const struct {
        const char *name;
        void (*run)();
    } programs[] = {{"operators", operators},
                    {"memory", memory},
                    {"synchronization", synchronization},
                    {"tensorflow", tensorflow},
                    {"torch", torch},
                    {"objects", objects}};
    for (const auto &each : programs) {
        bool is_wanted = count == 1;
        for (int i = 1; i < count; i++)
            is_wanted |= std::strcmp(arguments[i], each.name) == 0;
        if (is_wanted) {
            std::puts(each.name);
            each.run();
        }
    }
}
