// Ends as its arguments say: what was done, and the status.

#include "program.h"

int main(int count, char **arguments)
{
    const std::string what = arguments[1];
    if (what == "nothing") {
        ComPtr<ID3D12Debug> debug;
        CHECK(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)));
        ComPtr<ID3D12Device> device;
        if (count > 2)
            D3D12CreateDevice(nullptr, static_cast<D3D_FEATURE_LEVEL>(0x1234), IID_PPV_ARGS(&device));
        return 0;
    }
    Gpu gpu;
    if (count > 3)
        std::atexit([] { std::puts("at exit"); });
    if (what == "warning")
        gpu.committed(D3D12_HEAP_TYPE_DEFAULT, 64, D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_STATE_COPY_DEST);
    ComPtr<ID3D12Resource> buffer = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    if (what == "wrong" || what == "leak" || what == "closed")
        for (int i = 0; i < 2; i++)
            gpu.list->CopyBufferRegion(buffer.Get(), 0, buffer.Get(), 0, 100); // copies
    if (what == "leak") {
        buffer->SetName(L"left behind");
        buffer.Detach();
    }
    if (what == "early") {
        const float values[16] = {};
        ComPtr<ID3D12Resource> readback =
            gpu.committed(D3D12_HEAP_TYPE_READBACK, 64, D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_STATE_COPY_DEST);
        ComPtr<ID3D12Resource> source = gpu.upload(values, 64);
        gpu.run();
        gpu.list->CopyBufferRegion(readback.Get(), 0, source.Get(), 0, 64);
        CHECK(gpu.list->Close());
        ID3D12CommandList *lists[] = {gpu.list.Get()};
        gpu.queue->ExecuteCommandLists(1, lists);
        CHECK(gpu.queue->Signal(gpu.fence.Get(), ++gpu.value));
        void *memory = nullptr;
        CHECK(readback->Map(0, nullptr, &memory)); // too early
        CHECK(gpu.fence->SetEventOnCompletion(gpu.value, nullptr));
        const D3D12_RANGE nothing = {0, 0};
        readback->Unmap(0, &nothing);
    }
    if (what == "closed")
        gpu.list->Close(); // fails if something was recorded wrongly, which nobody looks at
    if (what == "removed") {
        ID3D12CommandList *lists[] = {gpu.list.Get()};
        gpu.queue->ExecuteCommandLists(1, lists); // which is open
        gpu.queue->Signal(gpu.fence.Get(), 1);
    }
    if (what == "beyond") {
        std::vector<char> memory(static_cast<size_t>(8 * count));
        const volatile char *first = memory.data();
        std::printf("%d\n", first[memory.size()] == 'x');
    }
    if (what == "wait") {
        std::puts("waiting");
        std::fflush(stdout);
        gpu.fence->SetEventOnCompletion(1, nullptr);
    }
    if (what == "abort")
        std::abort();
    return count > 2 ? std::atoi(arguments[2]) : 0;
}
