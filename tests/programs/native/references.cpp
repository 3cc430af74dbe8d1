// Threads that take and give back the only reference of an object at the same time; calls on a released object.
//
//     references ROUNDS [released]

#include "program.h"

#include <directx/dxcore_interface.h>
#include <thread>

extern "C" HRESULT DXCoreCreateAdapterFactory(REFIID riid, void **factory);

static void take_and_give_back(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        ComPtr<IDXCoreAdapterFactory> factory; // the same one for all
        ComPtr<ID3D12Device> device;
        CHECK(DXCoreCreateAdapterFactory(IID_PPV_ARGS(&factory)));
        if (i % 16 == 0)
            CHECK(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)));
    }
}

static void call_released()
{
    Gpu gpu;
    ID3D12Fence *fence = gpu.fence.Detach();
    fence->Release();
    void *out = &out;
    const HRESULT found = fence->QueryInterface(__uuidof(ID3D12Fence), &out);
    std::printf("QueryInterface 0x%08X, %s\n", static_cast<unsigned>(found), out == nullptr ? "NULL" : "a pointer");
    const ULONG added = fence->AddRef(), left = fence->Release();
    std::printf("AddRef %d, Release %d\n", static_cast<int>(added), static_cast<int>(left));
}

int main(int count, char **arguments)
{
    const int rounds = std::atoi(arguments[1]);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back(take_and_give_back, rounds);
    for (std::thread &each : threads)
        each.join();
    if (count > 2)
        call_released();
    std::puts("done");
}
