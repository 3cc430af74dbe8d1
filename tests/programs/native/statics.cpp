// Objects in static variables, which are destroyed after Python's end: of the program and of a shared library.
//
//     statics [leak]        with -DLIBRARY: the library

#include "program.h"

#ifdef LIBRARY

static ComPtr<ID3D12Device> device_of_library;

extern "C" void keep(ID3D12Device *device)
{
    device_of_library = device;
}

#else

extern "C" void keep(ID3D12Device *device);

static ComPtr<ID3D12Device> device;

static ComPtr<ID3D12Fence> make_fence()
{
    ComPtr<ID3D12Fence> fence;
    CHECK(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence))); // made
    return fence;
}

int main(int count, char **)
{
    static ComPtr<ID3D12Fence> early;
    CHECK(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device))); // device
    early = make_fence();
    static ComPtr<ID3D12Fence> late = make_fence();
    keep(device.Get());
    if (count > 1)
        make_fence().Detach(); // left
}

#endif
