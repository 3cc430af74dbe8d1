// Measures the C ABI: microseconds of CPU time, the least of many rounds, where nothing else is said.  See recording.py.

#include "program.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

namespace
{

double now()
{
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

// Microseconds of one call.
template <typename Call> double least(int rounds, int count, Call call)
{
    double found = 1e30;
    for (int round = 0; round < rounds; round++) {
        const double start = now();
        for (int i = 0; i < count; i++)
            call(i);
        found = std::min(found, (now() - start) / count);
    }
    return found;
}

void print(const char *name, double microseconds)
{
    std::printf("%s %.4f\n", name, microseconds);
}

ComPtr<IDMLOperator> addition(IDMLDevice *dml)
{
    const UINT sizes[] = {1, 1, 1, 4};
    DML_BUFFER_TENSOR_DESC buffer = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, 16, 0};
    DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
    DML_ELEMENT_WISE_ADD_OPERATOR_DESC add = {&tensor, &tensor, &tensor};
    DML_OPERATOR_DESC desc = {DML_OPERATOR_ELEMENT_WISE_ADD, &add};
    ComPtr<IDMLOperator> made;
    CHECK(dml->CreateOperator(&desc, IID_PPV_ARGS(&made)));
    return made;
}

struct Recording {
    Gpu gpu;
    ComPtr<IDMLCompiledOperator> compiled;
    ComPtr<ID3D12DescriptorHeap> heap;
    ComPtr<ID3D12Resource> buffers[3];
    UINT step = gpu.device->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);

    Recording()
    {
        CHECK(gpu.dml->CompileOperator(addition(gpu.dml.Get()).Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
        gpu.initialize(compiled.Get());
        const D3D12_DESCRIPTOR_HEAP_DESC desc = {D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, 65536,
                                                 D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, 0};
        CHECK(gpu.device->CreateDescriptorHeap(&desc, IID_PPV_ARGS(&heap)));
        const char zeros[256] = {};
        for (ComPtr<ID3D12Resource> &each : buffers)
            each = gpu.upload(zeros, sizeof zeros);
        gpu.run();
    }

    void record(UINT at)
    {
        const DML_BINDING_PROPERTIES properties = compiled->GetBindingProperties();
        const UINT count = properties.RequiredDescriptorCount;
        D3D12_CPU_DESCRIPTOR_HANDLE cpu = heap->GetCPUDescriptorHandleForHeapStart();
        D3D12_GPU_DESCRIPTOR_HANDLE gpu_handle = heap->GetGPUDescriptorHandleForHeapStart();
        cpu.ptr += at * count * step;
        gpu_handle.ptr += at * count * step;
        const UINT64 size = buffers[0]->GetDesc().Width;
        const DML_BINDING_TABLE_DESC desc = {compiled.Get(), cpu, gpu_handle, count};
        ComPtr<IDMLBindingTable> table;
        CHECK(gpu.dml->CreateBindingTable(&desc, IID_PPV_ARGS(&table)));
        const DML_BINDING_DESC none = {DML_BINDING_TYPE_NONE, nullptr};
        table->BindTemporaryResource(&none);
        table->BindPersistentResource(&none);
        DML_BUFFER_BINDING bound[3];
        DML_BINDING_DESC bindings[3];
        for (int i = 0; i < 3; i++) {
            bound[i] = {buffers[i].Get(), 0, size};
            bindings[i] = {DML_BINDING_TYPE_BUFFER, &bound[i]};
        }
        table->BindInputs(2, bindings);
        table->BindOutputs(1, bindings + 2);
        gpu.recorder->RecordDispatch(gpu.list.Get(), compiled.Get(), table.Get());
        D3D12_RESOURCE_BARRIER barriers[2] = {};
        barriers[0].Type = D3D12_RESOURCE_BARRIER_TYPE_UAV;
        barriers[1].Type = D3D12_RESOURCE_BARRIER_TYPE_ALIASING;
        gpu.list->ResourceBarrier(2, barriers);
    }

    // Microseconds of one of `count` operators in a list.
    double list(int count)
    {
        ID3D12DescriptorHeap *heaps[] = {heap.Get()};
        gpu.list->SetDescriptorHeaps(1, heaps);
        const double microseconds = least(1, count, [this](int i) { record(static_cast<UINT>(i)); });
        gpu.run();
        return microseconds;
    }
};

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start)
{
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// How long CreateFence waits for a list of long dispatches that another thread executes: wall time.
void measure_turns(Gpu &shared)
{
    const int dispatches = 50;
    const UINT64 size = 16 << 20;
    Gpu gpu(shared);
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 1, 2048, 2048}, {1.0f, 1.0f});
    const ComPtr<ID3D12Resource> input = gpu.upload(std::vector<char>(size).data(), size);
    const ComPtr<ID3D12Resource> output = gpu.buffer(size, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    const ComPtr<IDMLBindingTable> table = gpu.table(compiled.Get(), compiled->GetBindingProperties());
    const DML_BUFFER_BINDING buffers[] = {{input.Get(), 0, size}, {output.Get(), 0, size}};
    const DML_BINDING_DESC bindings[] = {{DML_BINDING_TYPE_BUFFER, &buffers[0]}, {DML_BINDING_TYPE_BUFFER, &buffers[1]}};
    table->BindInputs(1, &bindings[0]);
    table->BindOutputs(1, &bindings[1]);
    for (int i = 0; i < dispatches; i++)
        gpu.record(compiled.Get(), table.Get());
    CHECK(gpu.list->Close());
    auto execute = [&gpu] {
        ID3D12CommandList *lists[] = {gpu.list.Get()};
        gpu.queue->ExecuteCommandLists(1, lists);
        CHECK(gpu.queue->Signal(gpu.fence.Get(), ++gpu.value));
        CHECK(gpu.fence->SetEventOnCompletion(gpu.value, nullptr));
    };
    execute();
    Clock::time_point start = Clock::now();
    execute();
    print("a dispatch of 32 MiB, wall time", since(start) / dispatches);

    std::atomic<bool> going{true};
    std::thread thread([&] {
        while (going)
            execute();
    });
    std::vector<double> waits;
    for (int i = 0; i < 100; i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        start = Clock::now();
        ComPtr<ID3D12Fence> made;
        CHECK(shared.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&made)));
        waits.push_back(since(start));
    }
    going = false;
    thread.join();
    std::sort(waits.begin(), waits.end());
    print("CreateFence meanwhile, wall time, median", waits[50]);
    print("CreateFence meanwhile, wall time, 95 of 100", waits[95]);
}

} // namespace

int main(int, char **arguments)
{
    Recording recording;
    const int count = std::atoi(arguments[1]);
    double found = 1e30;
    for (int round = 0; round < 60; round++)
        found = std::min(found, recording.list(count));
    print("operator through the C ABI", found);

    ID3D12Resource *buffer = recording.buffers[0].Get();
    volatile UINT64 sink = 0;
    print("GetGPUVirtualAddress", least(20, 100000, [&](int) { sink = buffer->GetGPUVirtualAddress(); }));
    print("GetDesc", least(20, 100000, [&](int) { sink = buffer->GetDesc().Width; }));
    print("GetDeviceRemovedReason", least(20, 1000, [&](int) { recording.gpu.device->GetDeviceRemovedReason(); }));
    print("GetDeviceRemovedReason of DirectML",
          least(20, 1000, [&](int) { recording.gpu.dml->GetDeviceRemovedReason(); }));
    print("GetDescriptorHandleIncrementSize", least(20, 1000, [&](int) {
              recording.gpu.device->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
          }));
    print("AddRef and Release", least(20, 100000, [&](int) { buffer->AddRef(), buffer->Release(); }));
    print("QueryInterface and Release", least(20, 10000, [&](int) {
              ComPtr<ID3D12Pageable> other;
              CHECK(buffer->QueryInterface(IID_PPV_ARGS(&other)));
          }));
    print("method with two arguments: SetStablePowerState",
          least(20, 1000, [&](int) { recording.gpu.device->SetStablePowerState(FALSE); }));
    print("GetCompletedValue", least(20, 1000, [&](int) { recording.gpu.fence->GetCompletedValue(); }));
    print("CreateOperator", least(20, 100, [&](int) { addition(recording.gpu.dml.Get()); }));
    ComPtr<IDMLOperator> add = addition(recording.gpu.dml.Get());
    print("CompileOperator", least(20, 100, [&](int) {
              ComPtr<IDMLCompiledOperator> made;
              CHECK(recording.gpu.dml->CompileOperator(add.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&made)));
          }));
    print("CreateCommittedResource", least(20, 20, [&](int) {
              recording.gpu.buffer(1 << 20, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
          }));
    print("CreateFence", least(20, 100, [&](int) {
              ComPtr<ID3D12Fence> made;
              CHECK(recording.gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&made)));
          }));
    measure_turns(recording.gpu);
}
