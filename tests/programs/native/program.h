// What the programs share: a device, a queue, buffers, and the few calls around a dispatch.

#pragma once

#ifdef MICROSOFTS_DIRECTML // in current DirectX-Headers
#include <d3d12.h>

#include <directx/DirectML.h>
#else
#include <DirectML.h>
#endif

#include <wrl/client.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using Microsoft::WRL::ComPtr;

#define CHECK(call) check((call), #call, __LINE__)

inline void check(HRESULT result, const char *what, int line)
{
    if (result < 0) {
        std::fprintf(stderr, "line %d: %s: 0x%08X\n", line, what, static_cast<unsigned>(result));
        std::exit(2);
    }
}

inline D3D12_RESOURCE_DESC buffer_desc(UINT64 size, D3D12_RESOURCE_FLAGS flags)
{
    return {D3D12_RESOURCE_DIMENSION_BUFFER, 0,      size, 1, 1, 1, DXGI_FORMAT_UNKNOWN, {1, 0},
            D3D12_TEXTURE_LAYOUT_ROW_MAJOR,  flags};
}

struct Gpu {
    ComPtr<ID3D12Device> device;
    ComPtr<IDMLDevice> dml;
    ComPtr<ID3D12CommandQueue> queue;
    ComPtr<ID3D12CommandAllocator> allocator;
    ComPtr<ID3D12GraphicsCommandList> list;
    ComPtr<ID3D12Fence> fence;
    ComPtr<IDMLCommandRecorder> recorder;
    ComPtr<ID3D12DescriptorHeap> descriptors;
    std::vector<ComPtr<IUnknown>> kept; // until the GPU is done
    UINT64 value = 0;
    UINT used = 0;

    Gpu()
    {
        CHECK(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)));
        CHECK(DMLCreateDevice(device.Get(), DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&dml)));
        const D3D12_COMMAND_QUEUE_DESC desc = {D3D12_COMMAND_LIST_TYPE_DIRECT, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
        CHECK(device->CreateCommandQueue(&desc, IID_PPV_ARGS(&queue)));
        create_own();
    }

    // For another thread: the same devices and queue, everything else its own.
    explicit Gpu(const Gpu &shared) : device(shared.device), dml(shared.dml), queue(shared.queue) { create_own(); }

    void create_own()
    {
        CHECK(device->CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE_DIRECT, IID_PPV_ARGS(&allocator)));
        CHECK(device->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_DIRECT, allocator.Get(), nullptr,
                                        IID_PPV_ARGS(&list)));
        CHECK(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
        CHECK(dml->CreateCommandRecorder(IID_PPV_ARGS(&recorder)));
        const D3D12_DESCRIPTOR_HEAP_DESC heap = {D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, 64,
                                                 D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, 0};
        CHECK(device->CreateDescriptorHeap(&heap, IID_PPV_ARGS(&descriptors)));
    }

    ComPtr<ID3D12Resource> committed(D3D12_HEAP_TYPE type, UINT64 size, D3D12_RESOURCE_FLAGS flags,
                                     D3D12_RESOURCE_STATES state)
    {
        const D3D12_HEAP_PROPERTIES properties = {type, D3D12_CPU_PAGE_PROPERTY_UNKNOWN, D3D12_MEMORY_POOL_UNKNOWN, 0,
                                                  0};
        const D3D12_RESOURCE_DESC desc = buffer_desc(size, flags);
        ComPtr<ID3D12Resource> made;
        CHECK(device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, state, nullptr,
                                              IID_PPV_ARGS(&made)));
        return made;
    }

    ComPtr<ID3D12Resource> buffer(UINT64 size, D3D12_RESOURCE_STATES state)
    {
        return committed(D3D12_HEAP_TYPE_DEFAULT, size, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS, state);
    }

    void transition(ID3D12Resource *resource, D3D12_RESOURCE_STATES before, D3D12_RESOURCE_STATES after)
    {
        D3D12_RESOURCE_BARRIER barrier = {};
        barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_TRANSITION;
        barrier.Transition = {resource, D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES, before, after};
        list->ResourceBarrier(1, &barrier);
    }

    // A buffer in state UNORDERED_ACCESS with these bytes.
    ComPtr<ID3D12Resource> upload(const void *bytes, UINT64 size)
    {
        ComPtr<ID3D12Resource> staging = committed(D3D12_HEAP_TYPE_UPLOAD, size, D3D12_RESOURCE_FLAG_NONE,
                                                   D3D12_RESOURCE_STATE_GENERIC_READ);
        void *memory = nullptr;
        const D3D12_RANGE nothing = {0, 0};
        CHECK(staging->Map(0, &nothing, &memory));
        std::memcpy(memory, bytes, size);
        staging->Unmap(0, nullptr);
        ComPtr<ID3D12Resource> made = buffer(size, D3D12_RESOURCE_STATE_COMMON);
        list->CopyBufferRegion(made.Get(), 0, staging.Get(), 0, size);
        transition(made.Get(), D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
        kept.push_back(staging);
        return made;
    }

    // Executes the list, waits, and opens it again.
    void run()
    {
        CHECK(list->Close());
        ID3D12CommandList *lists[] = {list.Get()};
        queue->ExecuteCommandLists(1, lists);
        CHECK(queue->Signal(fence.Get(), ++value));
        CHECK(fence->SetEventOnCompletion(value, nullptr));
        reopen();
    }

    // After a wait for all that was executed.
    void reopen()
    {
        kept.clear();
        CHECK(device->GetDeviceRemovedReason());
        CHECK(dml->GetDeviceRemovedReason());
        CHECK(allocator->Reset());
        CHECK(list->Reset(allocator.Get(), nullptr));
    }

    // A table over descriptors of its own.
    ComPtr<IDMLBindingTable> table(IDMLDispatchable *dispatchable, DML_BINDING_PROPERTIES properties)
    {
        const UINT step = device->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
        D3D12_CPU_DESCRIPTOR_HANDLE cpu = descriptors->GetCPUDescriptorHandleForHeapStart();
        D3D12_GPU_DESCRIPTOR_HANDLE gpu = descriptors->GetGPUDescriptorHandleForHeapStart();
        cpu.ptr += used * step;
        gpu.ptr += used * step;
        used += properties.RequiredDescriptorCount;
        const DML_BINDING_TABLE_DESC desc = {dispatchable, cpu, gpu, properties.RequiredDescriptorCount};
        ComPtr<IDMLBindingTable> made;
        CHECK(dml->CreateBindingTable(&desc, IID_PPV_ARGS(&made)));
        if (properties.TemporaryResourceSize != 0) {
            ComPtr<ID3D12Resource> temporary =
                buffer(properties.TemporaryResourceSize, D3D12_RESOURCE_STATE_COMMON);
            const DML_BUFFER_BINDING bound = {temporary.Get(), 0, properties.TemporaryResourceSize};
            const DML_BINDING_DESC binding = {DML_BINDING_TYPE_BUFFER, &bound};
            made->BindTemporaryResource(&binding);
            kept.push_back(temporary);
        }
        return made;
    }

    void record(IDMLDispatchable *dispatchable, IDMLBindingTable *table)
    {
        ID3D12DescriptorHeap *heaps[] = {descriptors.Get()};
        list->SetDescriptorHeaps(1, heaps);
        recorder->RecordDispatch(list.Get(), dispatchable, table);
        D3D12_RESOURCE_BARRIER barrier = {};
        barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_UAV;
        list->ResourceBarrier(1, &barrier);
    }

    // Returns the persistent resource, if there is one.  `owned`: where the operator's tensors that DirectML owns
    // are, with none for its other inputs.
    ComPtr<ID3D12Resource> initialize(IDMLCompiledOperator *compiled, const std::vector<DML_BUFFER_BINDING> &owned = {})
    {
        ComPtr<IDMLOperatorInitializer> initializer;
        IDMLCompiledOperator *operators[] = {compiled};
        CHECK(dml->CreateOperatorInitializer(1, operators, IID_PPV_ARGS(&initializer)));
        ComPtr<IDMLBindingTable> bindings = table(initializer.Get(), initializer->GetBindingProperties());
        const DML_BUFFER_ARRAY_BINDING inputs = {static_cast<UINT>(owned.size()), owned.data()};
        const DML_BINDING_DESC input = {DML_BINDING_TYPE_BUFFER_ARRAY, &inputs};
        if (!owned.empty())
            bindings->BindInputs(1, &input);
        const UINT64 size = compiled->GetBindingProperties().PersistentResourceSize;
        ComPtr<ID3D12Resource> persistent;
        if (size != 0) {
            persistent = buffer(size, D3D12_RESOURCE_STATE_COMMON);
            const DML_BUFFER_BINDING whole = {persistent.Get(), 0, size};
            const DML_BINDING_DESC output = {DML_BINDING_TYPE_BUFFER, &whole};
            bindings->BindOutputs(1, &output);
        }
        record(initializer.Get(), bindings.Get());
        run();
        return persistent;
    }

    // ELEMENT_WISE_IDENTITY of floats, initialized.
    ComPtr<IDMLCompiledOperator> identity(const UINT (&sizes)[4], DML_SCALE_BIAS scaled)
    {
        const UINT64 size = 4ull * sizes[0] * sizes[1] * sizes[2] * sizes[3];
        DML_BUFFER_TENSOR_DESC buffer = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, size, 0};
        DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
        DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC identity = {&tensor, &tensor, &scaled};
        DML_OPERATOR_DESC desc = {DML_OPERATOR_ELEMENT_WISE_IDENTITY, &identity};
        ComPtr<IDMLOperator> op;
        CHECK(dml->CreateOperator(&desc, IID_PPV_ARGS(&op)));
        ComPtr<IDMLCompiledOperator> compiled;
        CHECK(dml->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
        initialize(compiled.Get());
        return compiled;
    }

    void dispatch(IDMLCompiledOperator *compiled, std::vector<DML_BUFFER_BINDING> inputs,
                  std::vector<DML_BUFFER_BINDING> outputs, ID3D12Resource *persistent = nullptr)
    {
        ComPtr<IDMLBindingTable> bindings = table(compiled, compiled->GetBindingProperties());
        if (persistent != nullptr) {
            const DML_BUFFER_BINDING whole = {persistent, 0, persistent->GetDesc().Width};
            const DML_BINDING_DESC binding = {DML_BINDING_TYPE_BUFFER, &whole};
            bindings->BindPersistentResource(&binding);
        }
        auto described = [](const std::vector<DML_BUFFER_BINDING> &buffers) {
            std::vector<DML_BINDING_DESC> descs;
            for (const DML_BUFFER_BINDING &each : buffers)
                descs.push_back({each.Buffer != nullptr ? DML_BINDING_TYPE_BUFFER : DML_BINDING_TYPE_NONE, &each});
            return descs;
        };
        std::vector<DML_BINDING_DESC> in = described(inputs), out = described(outputs);
        bindings->BindInputs(static_cast<UINT>(in.size()), in.data());
        bindings->BindOutputs(static_cast<UINT>(out.size()), out.data());
        record(compiled, bindings.Get());
    }

    // The bytes of a buffer in state UNORDERED_ACCESS, as 32-bit words.
    std::vector<uint32_t> read(ID3D12Resource *resource, UINT64 size)
    {
        ComPtr<ID3D12Resource> readback =
            committed(D3D12_HEAP_TYPE_READBACK, size, D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_STATE_COPY_DEST);
        transition(resource, D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATE_COPY_SOURCE);
        list->CopyBufferRegion(readback.Get(), 0, resource, 0, size);
        transition(resource, D3D12_RESOURCE_STATE_COPY_SOURCE, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
        run();
        return read_mapped(readback.Get(), size);
    }

    // The same of a readback buffer.
    static std::vector<uint32_t> read_mapped(ID3D12Resource *readback, UINT64 size)
    {
        void *memory = nullptr;
        CHECK(readback->Map(0, nullptr, &memory));
        std::vector<uint32_t> words(size / 4);
        std::memcpy(words.data(), memory, size);
        const D3D12_RANGE nothing = {0, 0};
        readback->Unmap(0, &nothing);
        return words;
    }

    void print(ID3D12Resource *resource, UINT64 size) { print_words(read(resource, size)); }

    static void print_words(const std::vector<uint32_t> &words)
    {
        for (size_t i = 0; i < words.size(); i++)
            std::printf("%08x%c", words[i], i % 8 == 7 || i + 1 == words.size() ? '\n' : ' ');
    }
};
