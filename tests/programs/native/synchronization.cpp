// Waits with an event and by polling, two queues, a fence that another thread signals, and timestamps.

#include "operators.h"

#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

static HANDLE as_handle(int event) { return reinterpret_cast<HANDLE>(static_cast<intptr_t>(event)); }

// One dispatch, without a wait: the caller reads `readback` later.
static ComPtr<ID3D12Resource> submit(Gpu &gpu, IDMLCompiledOperator *compiled, float first)
{
    float values[16];
    for (int i = 0; i < 16; i++)
        values[i] = first * static_cast<float>(i);
    ComPtr<ID3D12Resource> input = gpu.upload(values, sizeof values);
    ComPtr<ID3D12Resource> output = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    gpu.dispatch(compiled, {whole(input)}, {whole(output)});
    ComPtr<ID3D12Resource> readback =
        gpu.committed(D3D12_HEAP_TYPE_READBACK, 64, D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_STATE_COPY_DEST);
    gpu.transition(output.Get(), D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATE_COPY_SOURCE);
    gpu.list->CopyBufferRegion(readback.Get(), 0, output.Get(), 0, 64);
    gpu.kept.push_back(input);
    gpu.kept.push_back(output);
    CHECK(gpu.list->Close());
    ID3D12CommandList *lists[] = {gpu.list.Get()};
    gpu.queue->ExecuteCommandLists(1, lists);
    CHECK(gpu.queue->Signal(gpu.fence.Get(), ++gpu.value));
    return readback;
}

static void finish(Gpu &gpu, ID3D12Resource *readback)
{
    gpu.print_words(gpu.read_mapped(readback, 64));
    gpu.reopen();
}

static void event(Gpu &gpu, IDMLCompiledOperator *compiled)
{
    ComPtr<ID3D12Resource> readback = submit(gpu, compiled, 1.0f);
    const int event = eventfd(0, EFD_CLOEXEC);
    CHECK(gpu.fence->SetEventOnCompletion(gpu.value, as_handle(event)));
    uint64_t count = 0;
    if (read(event, &count, sizeof count) != sizeof count || count != 1)
        std::puts("the event is not set once");
    close(event);
    finish(gpu, readback.Get());
}

static void polling(Gpu &gpu, IDMLCompiledOperator *compiled)
{
    ComPtr<ID3D12Resource> readback = submit(gpu, compiled, 2.0f);
    while (gpu.fence->GetCompletedValue() < gpu.value)
        std::this_thread::yield();
    finish(gpu, readback.Get());
}

// A copy queue uploads, the queue of the dispatches waits for it; then the other way round for the result.
static void two_queues(Gpu &gpu, IDMLCompiledOperator *compiled)
{
    const D3D12_COMMAND_QUEUE_DESC desc = {D3D12_COMMAND_LIST_TYPE_COPY, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
    ComPtr<ID3D12CommandQueue> copies;
    CHECK(gpu.device->CreateCommandQueue(&desc, IID_PPV_ARGS(&copies)));
    ComPtr<ID3D12CommandAllocator> allocator;
    CHECK(gpu.device->CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE_COPY, IID_PPV_ARGS(&allocator)));
    ComPtr<ID3D12GraphicsCommandList> up, down;
    CHECK(gpu.device->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_COPY, allocator.Get(), nullptr, IID_PPV_ARGS(&up)));

    ComPtr<ID3D12Resource> staging = gpu.committed(D3D12_HEAP_TYPE_UPLOAD, 64, D3D12_RESOURCE_FLAG_NONE,
                                                   D3D12_RESOURCE_STATE_GENERIC_READ);
    void *memory = nullptr;
    CHECK(staging->Map(0, nullptr, &memory));
    for (int i = 0; i < 16; i++)
        static_cast<float *>(memory)[i] = static_cast<float>(3 * i);
    staging->Unmap(0, nullptr);
    ComPtr<ID3D12Resource> input = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    ComPtr<ID3D12Resource> output = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    ComPtr<ID3D12Resource> readback =
        gpu.committed(D3D12_HEAP_TYPE_READBACK, 64, D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_STATE_COPY_DEST);
    up->CopyBufferRegion(input.Get(), 0, staging.Get(), 0, 64);
    CHECK(up->Close());
    CHECK(gpu.device->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_COPY, allocator.Get(), nullptr, IID_PPV_ARGS(&down)));
    down->CopyBufferRegion(readback.Get(), 0, output.Get(), 0, 64);
    CHECK(down->Close());
    gpu.dispatch(compiled, {whole(input)}, {whole(output)});
    CHECK(gpu.list->Close());

    ComPtr<ID3D12Fence> uploaded, computed;
    CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&uploaded)));
    CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&computed)));
    CHECK(gpu.queue->Wait(uploaded.Get(), 1)); // before anybody signals it
    ID3D12CommandList *lists[] = {gpu.list.Get()};
    gpu.queue->ExecuteCommandLists(1, lists);
    CHECK(gpu.queue->Signal(computed.Get(), 1));
    ID3D12CommandList *ups[] = {up.Get()}, *downs[] = {down.Get()};
    copies->ExecuteCommandLists(1, ups);
    CHECK(copies->Signal(uploaded.Get(), 1));
    CHECK(copies->Wait(computed.Get(), 1));
    copies->ExecuteCommandLists(1, downs);
    CHECK(copies->Signal(gpu.fence.Get(), ++gpu.value));
    CHECK(gpu.fence->SetEventOnCompletion(gpu.value, nullptr));
    finish(gpu, readback.Get());
}

// The GPU waits for a value that the CPU signals, on a thread of its own.
static void signal_of_another_thread(Gpu &gpu, IDMLCompiledOperator *compiled)
{
    ComPtr<ID3D12Fence> ready;
    CHECK(gpu.device->CreateFence(5, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&ready)));
    CHECK(gpu.queue->Wait(ready.Get(), 6));
    ComPtr<ID3D12Resource> readback = submit(gpu, compiled, 4.0f);
    std::thread other([&ready] { CHECK(ready->Signal(6)); });
    CHECK(gpu.fence->SetEventOnCompletion(gpu.value, nullptr));
    other.join();
    finish(gpu, readback.Get());
}

// The GPU's clock before and after a dispatch.
static void timestamps(Gpu &gpu, IDMLCompiledOperator *compiled)
{
    const D3D12_QUERY_HEAP_DESC desc = {D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 2, 0};
    ComPtr<ID3D12QueryHeap> queries;
    CHECK(gpu.device->CreateQueryHeap(&desc, IID_PPV_ARGS(&queries)));
    ComPtr<ID3D12Resource> ticks =
        gpu.committed(D3D12_HEAP_TYPE_READBACK, 16, D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_STATE_COPY_DEST);
    gpu.list->EndQuery(queries.Get(), D3D12_QUERY_TYPE_TIMESTAMP, 0);
    const float values[16] = {};
    ComPtr<ID3D12Resource> input = gpu.upload(values, 64), output = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    gpu.dispatch(compiled, {whole(input)}, {whole(output)});
    gpu.list->EndQuery(queries.Get(), D3D12_QUERY_TYPE_TIMESTAMP, 1);
    gpu.list->ResolveQueryData(queries.Get(), D3D12_QUERY_TYPE_TIMESTAMP, 0, 2, ticks.Get(), 0);
    gpu.run();
    UINT64 frequency = 0, now = 0, on_cpu = 0, *found = nullptr;
    CHECK(gpu.queue->GetTimestampFrequency(&frequency));
    CHECK(gpu.queue->GetClockCalibration(&now, &on_cpu));
    CHECK(ticks->Map(0, nullptr, reinterpret_cast<void **>(&found)));
    const bool in_order = found[0] != 0 && found[0] < found[1] && found[1] <= now;
    std::printf("timestamps %d, frequency %d, less than a minute %d\n", in_order, frequency != 0,
                (found[1] - found[0]) / frequency < 60);
    const D3D12_RANGE nothing = {0, 0};
    ticks->Unmap(0, &nothing);
}

void synchronization()
{
    Gpu gpu;
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 1, 1, 16}, {0.5f, 1.0f});
    event(gpu, compiled.Get());
    polling(gpu, compiled.Get());
    two_queues(gpu, compiled.Get());
    signal_of_another_thread(gpu, compiled.Get());
    timestamps(gpu, compiled.Get());
}
