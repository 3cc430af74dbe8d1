// Wrong copies from a program, from a shared object, from a plugin, and through helpers; built in several ways.

#include "program.h"

#include <dlfcn.h>

extern "C" void copy_in_library(ID3D12GraphicsCommandList *list, ID3D12Resource *buffer);

#ifdef LIBRARY

extern "C" __attribute__((visibility("default"), noinline)) void copy_in_library(ID3D12GraphicsCommandList *list,
                                                                                  ID3D12Resource *buffer)
{
    list->CopyBufferRegion(buffer, 0, buffer, 0, LIBRARY); // copied in a library
    asm volatile(""); // no tail call
}

#else

namespace own {

template <typename T> struct Copier {
    // Inlined into its caller.
    static inline __attribute__((always_inline)) void copy(ID3D12GraphicsCommandList *list, T *buffer)
    {
        list->CopyBufferRegion(buffer, 0, buffer, 0, 200); // copied inline
    }
};

__attribute__((noinline)) void caller(ID3D12GraphicsCommandList *list, ID3D12Resource *buffer)
{
    Copier<ID3D12Resource>::copy(list, buffer); // called inline
    asm volatile("");
}

} // namespace own

int main(int count, char **arguments)
{
    Gpu gpu;
    ComPtr<ID3D12Resource> buffer = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    gpu.list->CopyBufferRegion(buffer.Get(), 0, buffer.Get(), 0, 100); // copied in main
    own::caller(gpu.list.Get(), buffer.Get());
    copy_in_library(gpu.list.Get(), buffer.Get()); // called in main
    for (int i = 1; i < count; i++) { // one after the other, most probably at the same address
        void *plugin = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
        auto copy = reinterpret_cast<decltype(&copy_in_library)>(dlsym(plugin, "copy_in_library"));
        copy(gpu.list.Get(), buffer.Get()); // called in a plugin
        dlclose(plugin);
    }
    ComPtr<ID3D12Fence> fence;
    CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
    ID3D12Fence *released = fence.Get();
    fence.Reset(); // released by a helper
    released->Signal(1);
}

#endif
