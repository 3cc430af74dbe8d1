// Mistakes, each on a line of its own, which the test finds by its comment.

#include "program.h"

int main()
{
    Gpu gpu;
    ComPtr<ID3D12Fence> fence;
    CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
    ID3D12Fence *stale = fence.Get();
    fence.Reset(); // a Release inside of a helper
    stale->Signal(1); // use of the fence
    ComPtr<ID3D12Resource> made = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    ID3D12Resource *buffer = made.Detach();
    ID3D12PipelineState *state = nullptr;
    for (int i = 0; i < 2; i++)
        gpu.list->CopyBufferRegion(buffer, 0, buffer, 0, 1000); // a copy beyond the end
    buffer->GetGPUVirtualAddress();
    buffer->Release(); // the last Release
    buffer->GetGPUVirtualAddress(); // use after Release
    for (int i = 0; i < 2; i++)
        gpu.device->CreateGraphicsPipelineState(nullptr, IID_PPV_ARGS(&state));
}
