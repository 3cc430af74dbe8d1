// Twice the square roots of 0 to 7: two DirectML operators in a program as it is written for Windows.

#include <windows.h>
#include <dxgi1_4.h>
#include <d3dx12.h>
#include <DirectML.h>
#include <wil/resource.h>
#include <wil/result.h>
#include <wrl/client.h>

#include <cstdio>
#include <cstring>

using Microsoft::WRL::ComPtr;

static const UINT Count = 8;
static const UINT64 Bytes = Count * sizeof(float);

struct Gpu
{
    ComPtr<ID3D12Device> device;
    ComPtr<IDMLDevice> dml;
    ComPtr<ID3D12CommandQueue> queue;
    ComPtr<ID3D12CommandAllocator> allocator;
    ComPtr<ID3D12GraphicsCommandList> list;
    ComPtr<IDMLCommandRecorder> recorder;
    ComPtr<ID3D12DescriptorHeap> heap;
    UINT used = 0; // descriptors

    Gpu()
    {
        ComPtr<IDXGIFactory4> factory;
        THROW_IF_FAILED(CreateDXGIFactory1(IID_PPV_ARGS(&factory)));
        ComPtr<IDXGIAdapter1> adapter;
        THROW_IF_FAILED(factory->EnumAdapters1(0, &adapter));
        THROW_IF_FAILED(D3D12CreateDevice(adapter.Get(), D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)));
        THROW_IF_FAILED(DMLCreateDevice(device.Get(), DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&dml)));
        D3D12_COMMAND_QUEUE_DESC queueDesc = {};
        queueDesc.Type = D3D12_COMMAND_LIST_TYPE_DIRECT;
        THROW_IF_FAILED(device->CreateCommandQueue(&queueDesc, IID_PPV_ARGS(&queue)));
        THROW_IF_FAILED(device->CreateCommandAllocator(queueDesc.Type, IID_PPV_ARGS(&allocator)));
        THROW_IF_FAILED(
            device->CreateCommandList(0, queueDesc.Type, allocator.Get(), nullptr, IID_PPV_ARGS(&list)));
        THROW_IF_FAILED(dml->CreateCommandRecorder(IID_PPV_ARGS(&recorder)));
        D3D12_DESCRIPTOR_HEAP_DESC heapDesc = {};
        heapDesc.Type = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
        heapDesc.NumDescriptors = 64;
        heapDesc.Flags = D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE;
        THROW_IF_FAILED(device->CreateDescriptorHeap(&heapDesc, IID_PPV_ARGS(&heap)));
        ID3D12DescriptorHeap *heaps[] = {heap.Get()};
        list->SetDescriptorHeaps(ARRAYSIZE(heaps), heaps);
    }

    ComPtr<ID3D12Resource> CreateBuffer(D3D12_HEAP_TYPE type, D3D12_RESOURCE_FLAGS flags, D3D12_RESOURCE_STATES state)
    {
        const CD3DX12_HEAP_PROPERTIES properties(type);
        const CD3DX12_RESOURCE_DESC desc = CD3DX12_RESOURCE_DESC::Buffer(Bytes, flags);
        ComPtr<ID3D12Resource> buffer;
        THROW_IF_FAILED(device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, state, nullptr,
                                                        IID_PPV_ARGS(&buffer)));
        return buffer;
    }

    void Barrier(const D3D12_RESOURCE_BARRIER &barrier) { list->ResourceBarrier(1, &barrier); }

    ComPtr<IDMLBindingTable> CreateTable(IDMLDispatchable *dispatchable)
    {
        const DML_BINDING_PROPERTIES needs = dispatchable->GetBindingProperties();
        THROW_HR_IF(E_NOTIMPL, needs.TemporaryResourceSize != 0 || needs.PersistentResourceSize != 0);
        const UINT size = device->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
        DML_BINDING_TABLE_DESC desc = {};
        desc.Dispatchable = dispatchable;
        desc.CPUDescriptorHandle = CD3DX12_CPU_DESCRIPTOR_HANDLE(heap->GetCPUDescriptorHandleForHeapStart(), used, size);
        desc.GPUDescriptorHandle = CD3DX12_GPU_DESCRIPTOR_HANDLE(heap->GetGPUDescriptorHandleForHeapStart(), used, size);
        desc.SizeInDescriptors = needs.RequiredDescriptorCount;
        used += needs.RequiredDescriptorCount;
        ComPtr<IDMLBindingTable> table;
        THROW_IF_FAILED(dml->CreateBindingTable(&desc, IID_PPV_ARGS(&table)));
        return table;
    }

    ComPtr<IDMLCompiledOperator> Compile(DML_OPERATOR_TYPE type, const void *opDesc)
    {
        const DML_OPERATOR_DESC desc = {type, opDesc};
        ComPtr<IDMLOperator> op;
        THROW_IF_FAILED(dml->CreateOperator(&desc, IID_PPV_ARGS(&op)));
        ComPtr<IDMLCompiledOperator> compiled;
        THROW_IF_FAILED(dml->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
        return compiled;
    }

    void Initialize(IDMLOperatorInitializer *initializer)
    {
        recorder->RecordDispatch(list.Get(), initializer, CreateTable(initializer).Get());
        Barrier(CD3DX12_RESOURCE_BARRIER::UAV(nullptr));
    }

    void Dispatch(IDMLCompiledOperator *op, ID3D12Resource *input, ID3D12Resource *output)
    {
        const ComPtr<IDMLBindingTable> table = CreateTable(op);
        const DML_BUFFER_BINDING inputBuffer = {input, 0, Bytes}, outputBuffer = {output, 0, Bytes};
        const DML_BINDING_DESC inputBinding = {DML_BINDING_TYPE_BUFFER, &inputBuffer};
        const DML_BINDING_DESC outputBinding = {DML_BINDING_TYPE_BUFFER, &outputBuffer};
        table->BindInputs(1, &inputBinding);
        table->BindOutputs(1, &outputBinding);
        recorder->RecordDispatch(list.Get(), op, table.Get());
    }

    void ExecuteAndWait()
    {
        THROW_IF_FAILED(list->Close());
        ID3D12CommandList *lists[] = {list.Get()};
        queue->ExecuteCommandLists(ARRAYSIZE(lists), lists);
        ComPtr<ID3D12Fence> fence;
        THROW_IF_FAILED(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
        wil::unique_handle done(CreateEvent(nullptr, TRUE, FALSE, nullptr));
        THROW_LAST_ERROR_IF_NULL(done);
        THROW_IF_FAILED(queue->Signal(fence.Get(), 1));
        THROW_IF_FAILED(fence->SetEventOnCompletion(1, done.get()));
        WaitForSingleObject(done.get(), INFINITE);
    }
};

int main()
{
    Gpu gpu;

    const UINT sizes[] = {1, 1, 1, Count};
    const DML_BUFFER_TENSOR_DESC buffer = {
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, ARRAYSIZE(sizes), sizes, nullptr, Bytes, 0};
    const DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
    const DML_SCALE_BIAS twice = {2.0f, 0.0f};
    const DML_ELEMENT_WISE_SQRT_OPERATOR_DESC rootDesc = {&tensor, &tensor, nullptr};
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC twiceDesc = {&tensor, &tensor, &twice};
    const ComPtr<IDMLCompiledOperator> root = gpu.Compile(DML_OPERATOR_ELEMENT_WISE_SQRT, &rootDesc);
    const ComPtr<IDMLCompiledOperator> doubled = gpu.Compile(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &twiceDesc);
    IDMLCompiledOperator *operators[] = {root.Get(), doubled.Get()};
    ComPtr<IDMLOperatorInitializer> initializer;
    THROW_IF_FAILED(
        gpu.dml->CreateOperatorInitializer(ARRAYSIZE(operators), operators, IID_PPV_ARGS(&initializer)));

    const D3D12_RESOURCE_FLAGS uav = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
    const auto upload = gpu.CreateBuffer(D3D12_HEAP_TYPE_UPLOAD, D3D12_RESOURCE_FLAG_NONE,
                                         D3D12_RESOURCE_STATE_GENERIC_READ);
    const auto input = gpu.CreateBuffer(D3D12_HEAP_TYPE_DEFAULT, uav, D3D12_RESOURCE_STATE_COMMON);
    const auto roots = gpu.CreateBuffer(D3D12_HEAP_TYPE_DEFAULT, uav, D3D12_RESOURCE_STATE_COMMON);
    const auto output = gpu.CreateBuffer(D3D12_HEAP_TYPE_DEFAULT, uav, D3D12_RESOURCE_STATE_COMMON);
    const auto readback = gpu.CreateBuffer(D3D12_HEAP_TYPE_READBACK, D3D12_RESOURCE_FLAG_NONE,
                                           D3D12_RESOURCE_STATE_COPY_DEST);
    roots->SetName(L"roots");

    const float values[Count] = {0, 1, 2, 3, 4, 5, 6, 7};
    void *memory = nullptr;
    THROW_IF_FAILED(upload->Map(0, nullptr, &memory));
    std::memcpy(memory, values, sizeof values);
    upload->Unmap(0, nullptr);

    gpu.list->CopyResource(input.Get(), upload.Get());
    gpu.Barrier(CD3DX12_RESOURCE_BARRIER::Transition(input.Get(), D3D12_RESOURCE_STATE_COPY_DEST,
                                                     D3D12_RESOURCE_STATE_UNORDERED_ACCESS));
    gpu.Initialize(initializer.Get());
    gpu.Dispatch(root.Get(), input.Get(), roots.Get());
    gpu.Barrier(CD3DX12_RESOURCE_BARRIER::UAV(roots.Get())); // the roots are complete
    gpu.Dispatch(doubled.Get(), roots.Get(), output.Get());
    gpu.Barrier(CD3DX12_RESOURCE_BARRIER::Transition(output.Get(), D3D12_RESOURCE_STATE_UNORDERED_ACCESS,
                                                     D3D12_RESOURCE_STATE_COPY_SOURCE));
    gpu.list->CopyResource(readback.Get(), output.Get());
    gpu.ExecuteAndWait();

    const D3D12_RANGE all = {0, Bytes}, nothing = {0, 0};
    THROW_IF_FAILED(readback->Map(0, &all, &memory));
    const float *results = static_cast<const float *>(memory);
    for (UINT i = 0; i < Count; i++)
        std::printf("2 * sqrt(%g) = %.4f\n", values[i], results[i]);
    readback->Unmap(0, &nothing);
}
