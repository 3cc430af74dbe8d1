// What a thread can do while another one executes a long list, and threads that wait for each other.

#include "program.h"

#include <atomic>
#include <chrono>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

using std::this_thread::sleep_for;
using Milliseconds = std::chrono::milliseconds;

// Records so many long dispatches.
static void record_long(Gpu &gpu, int dispatches)
{
    const UINT64 size = 4 << 20;
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 1, 1024, 1024}, {1.0f, 1.0f});
    ComPtr<ID3D12Resource> both[2];
    for (ComPtr<ID3D12Resource> &each : both)
        each = gpu.upload(std::vector<char>(size).data(), size);
    ComPtr<IDMLBindingTable> table = gpu.table(compiled.Get(), compiled->GetBindingProperties());
    const DML_BUFFER_BINDING buffers[] = {{both[0].Get(), 0, size}, {both[1].Get(), 0, size}};
    const DML_BINDING_DESC input = {DML_BINDING_TYPE_BUFFER, &buffers[0]};
    const DML_BINDING_DESC output = {DML_BINDING_TYPE_BUFFER, &buffers[1]};
    table->BindInputs(1, &input);
    table->BindOutputs(1, &output);
    for (int i = 0; i < dispatches; i++)
        gpu.record(compiled.Get(), table.Get());
    gpu.kept.push_back(compiled);
    gpu.kept.push_back(table);
    gpu.kept.insert(gpu.kept.end(), both, both + 2);
}

// A call returns long before the list is done.
static bool polls_are_short(Gpu &shared)
{
    Gpu gpu(shared);
    record_long(gpu, 100);
    CHECK(gpu.list->Close());
    ID3D12CommandList *lists[] = {gpu.list.Get()};
    gpu.queue->ExecuteCommandLists(1, lists);
    CHECK(gpu.queue->Signal(gpu.fence.Get(), ++gpu.value));
    int polls = 0;
    for (; gpu.fence->GetCompletedValue() < gpu.value; polls++) {
    }
    return polls > 5;
}

// Whether calls of the main thread return while another thread waits for a list of so many long dispatches.
static bool calls_during_a_list(Gpu &shared, int dispatches)
{
    std::atomic<bool> executing{false}, ended{false};
    std::thread thread([&] {
        Gpu gpu(shared);
        record_long(gpu, dispatches);
        executing = true;
        gpu.run();
        ended = true;
    });
    while (!executing)
        sleep_for(Milliseconds(1));
    for (int i = 0; i < 5 && !ended; i++) {
        sleep_for(Milliseconds(2));
        ComPtr<ID3D12Fence> fence;
        CHECK(shared.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
        CHECK(fence->Signal(1));
        fence->GetCompletedValue();
        shared.buffer(65536, D3D12_RESOURCE_STATE_COMMON);
    }
    const bool was_in_time = !ended;
    thread.join();
    return was_in_time;
}

// On a machine that is too busy to come to the calls in time, once more with a longer list.
static bool calls_return_during_a_list(Gpu &gpu)
{
    for (int dispatches = 500; dispatches <= 8000; dispatches *= 2)
        if (calls_during_a_list(gpu, dispatches))
            return true;
    return false;
}

// Each thread signals what the other waits for, after its own wait.
static void two_in_turn(Gpu &gpu, int rounds)
{
    ComPtr<ID3D12Fence> fences[2];
    for (ComPtr<ID3D12Fence> &each : fences)
        CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&each)));
    auto answer = [&](int number) {
        for (UINT64 round = 1; round <= static_cast<UINT64>(rounds); round++) {
            if (number == 0)
                CHECK(fences[0]->Signal(round));
            CHECK(fences[1 - number]->SetEventOnCompletion(round, nullptr));
            if (number == 1)
                CHECK(fences[1]->Signal(round));
        }
    };
    std::thread first(answer, 0), second(answer, 1);
    first.join();
    second.join();
    std::printf("%llu rounds\n", static_cast<unsigned long long>(fences[1]->GetCompletedValue()));
}

// A wait for several fences: one is signaled by the queue, one later by another thread.
static void several(Gpu &gpu, D3D12_MULTIPLE_FENCE_WAIT_FLAGS flags, bool by_event)
{
    ComPtr<ID3D12Device1> device;
    CHECK(gpu.device.As(&device));
    ComPtr<ID3D12Fence> fences[2];
    for (ComPtr<ID3D12Fence> &each : fences)
        CHECK(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&each)));
    ID3D12Fence *both[] = {fences[0].Get(), fences[1].Get()};
    const UINT64 values[] = {3, 4};
    const int event = by_event ? eventfd(0, 0) : 0;
    CHECK(gpu.queue->Signal(both[0], 3));
    std::atomic<bool> late{false};
    std::thread other([&] {
        sleep_for(Milliseconds(20));
        late = true;
        CHECK(both[1]->Signal(4));
    });
    CHECK(device->SetEventOnMultipleFenceCompletion(both, values, 2, flags,
                                                    reinterpret_cast<HANDLE>(static_cast<intptr_t>(event))));
    uint64_t set = 1;
    if (by_event && (read(event, &set, sizeof set) != sizeof set || set != 1))
        std::puts("the event is not set once");
    if (flags == D3D12_MULTIPLE_FENCE_WAIT_FLAG_ALL && !late)
        std::puts("ALL ends with the first");
    if (both[0]->GetCompletedValue() != 3)
        std::puts("the wait ends too early");
    other.join();
    if (by_event)
        close(event);
}

int main()
{
    Gpu gpu;
    std::puts(calls_return_during_a_list(gpu) ? "calls return during the list" : "calls wait for the list");
    std::puts(polls_are_short(gpu) ? "polls are short" : "a poll executes a list");
    two_in_turn(gpu, 300);
    for (D3D12_MULTIPLE_FENCE_WAIT_FLAGS flags :
         {D3D12_MULTIPLE_FENCE_WAIT_FLAG_ALL, D3D12_MULTIPLE_FENCE_WAIT_FLAG_ANY})
        for (bool by_event : {false, true})
            several(gpu, flags, by_event);
    std::puts("done");
}
