// The sum of each row of an image whose rows lie further apart than they are long, as those of textures do.

#include <windows.h>
#include <d3dx12.h>
#include <DirectML.h>
#include <wil/resource.h>
#include <wil/result.h>
#include <wrl/client.h>

#include <cstdio>
#include <cstring>

using Microsoft::WRL::ComPtr;

static const UINT Height = 3, Width = 5, Pitch = 8; // in floats

static ComPtr<ID3D12Resource> CreateBuffer(ID3D12Device *device, D3D12_HEAP_TYPE type, UINT64 bytes,
                                           D3D12_RESOURCE_STATES state, const wchar_t *name)
{
    const bool isDefault = type == D3D12_HEAP_TYPE_DEFAULT;
    const CD3DX12_HEAP_PROPERTIES properties(type);
    const CD3DX12_RESOURCE_DESC desc = CD3DX12_RESOURCE_DESC::Buffer(
        bytes, isDefault ? D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS : D3D12_RESOURCE_FLAG_NONE);
    ComPtr<ID3D12Resource> buffer;
    THROW_IF_FAILED(device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_CREATE_NOT_ZEROED, &desc, state,
                                                    nullptr, IID_PPV_ARGS(&buffer)));
    buffer->SetName(name);
    return buffer;
}

int main()
{
    ComPtr<ID3D12Device> device;
    ComPtr<IDMLDevice> dml;
    ComPtr<ID3D12CommandQueue> queue;
    ComPtr<ID3D12CommandAllocator> allocator;
    ComPtr<ID3D12GraphicsCommandList> list;
    ComPtr<IDMLCommandRecorder> recorder;
    THROW_IF_FAILED(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)));
    THROW_IF_FAILED(DMLCreateDevice(device.Get(), DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&dml)));
    const D3D12_COMMAND_QUEUE_DESC queueDesc = {D3D12_COMMAND_LIST_TYPE_DIRECT, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
    THROW_IF_FAILED(device->CreateCommandQueue(&queueDesc, IID_PPV_ARGS(&queue)));
    THROW_IF_FAILED(device->CreateCommandAllocator(queueDesc.Type, IID_PPV_ARGS(&allocator)));
    THROW_IF_FAILED(
        device->CreateCommandList(0, queueDesc.Type, allocator.Get(), nullptr, IID_PPV_ARGS(&list)));
    THROW_IF_FAILED(dml->CreateCommandRecorder(IID_PPV_ARGS(&recorder)));
    queue->SetName(L"compute");
    list->SetName(L"frame");

    const UINT64 imageBytes = (Height - 1) * Pitch * sizeof(float) + Width * sizeof(float);
    const UINT64 sumsBytes = Height * sizeof(float);
    const UINT imageSizes[] = {1, 1, Height, Width}, sumsSizes[] = {1, 1, Height, 1};
    const UINT imageStrides[] = {Height * Pitch, Height * Pitch, Pitch, 1};
    const DML_BUFFER_TENSOR_DESC imageBuffer = {
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, imageSizes, imageStrides, imageBytes, 0};
    const DML_BUFFER_TENSOR_DESC sumsBuffer = {
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sumsSizes, nullptr, sumsBytes, 0};
    const DML_TENSOR_DESC imageTensor = {DML_TENSOR_TYPE_BUFFER, &imageBuffer};
    const DML_TENSOR_DESC sumsTensor = {DML_TENSOR_TYPE_BUFFER, &sumsBuffer};
    const UINT axis = 3;
    const DML_REDUCE_OPERATOR_DESC sum = {DML_REDUCE_FUNCTION_SUM, &imageTensor, &sumsTensor, 1, &axis};
    const DML_OPERATOR_DESC operatorDesc = {DML_OPERATOR_REDUCE, &sum};
    ComPtr<IDMLOperator> op;
    ComPtr<IDMLCompiledOperator> compiled;
    ComPtr<IDMLOperatorInitializer> initializer;
    THROW_IF_FAILED(dml->CreateOperator(&operatorDesc, IID_PPV_ARGS(&op)));
    THROW_IF_FAILED(dml->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
    compiled->SetName(L"sum of rows");
    THROW_IF_FAILED(dml->CreateOperatorInitializer(1, compiled.GetAddressOf(), IID_PPV_ARGS(&initializer)));

    D3D12_DESCRIPTOR_HEAP_DESC heapDesc = {};
    heapDesc.Type = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
    heapDesc.NumDescriptors = 64;
    heapDesc.Flags = D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE;
    ComPtr<ID3D12DescriptorHeap> heap;
    THROW_IF_FAILED(device->CreateDescriptorHeap(&heapDesc, IID_PPV_ARGS(&heap)));
    list->SetDescriptorHeaps(1, heap.GetAddressOf());
    const UINT step = device->GetDescriptorHandleIncrementSize(heapDesc.Type);
    UINT used = 0; // descriptors
    const auto createTable = [&](IDMLDispatchable *dispatchable) {
        const UINT count = dispatchable->GetBindingProperties().RequiredDescriptorCount;
        const DML_BINDING_TABLE_DESC desc = {
            dispatchable, CD3DX12_CPU_DESCRIPTOR_HANDLE(heap->GetCPUDescriptorHandleForHeapStart(), used, step),
            CD3DX12_GPU_DESCRIPTOR_HANDLE(heap->GetGPUDescriptorHandleForHeapStart(), used, step), count};
        used += count;
        ComPtr<IDMLBindingTable> table;
        THROW_IF_FAILED(dml->CreateBindingTable(&desc, IID_PPV_ARGS(&table)));
        return table;
    };

    const UINT64 rowBytes = Width * sizeof(float);
    const auto upload = CreateBuffer(device.Get(), D3D12_HEAP_TYPE_UPLOAD, Height * rowBytes,
                                     D3D12_RESOURCE_STATE_GENERIC_READ, L"upload");
    const auto image = CreateBuffer(device.Get(), D3D12_HEAP_TYPE_DEFAULT, imageBytes, D3D12_RESOURCE_STATE_COMMON,
                                    L"image");
    const auto sums = CreateBuffer(device.Get(), D3D12_HEAP_TYPE_DEFAULT, sumsBytes, D3D12_RESOURCE_STATE_COMMON,
                                   L"sums");
    const auto readback = CreateBuffer(device.Get(), D3D12_HEAP_TYPE_READBACK, sumsBytes,
                                       D3D12_RESOURCE_STATE_COPY_DEST, L"readback");
    float *memory = nullptr;
    THROW_IF_FAILED(upload->Map(0, nullptr, reinterpret_cast<void **>(&memory)));
    for (UINT y = 0; y < Height; y++)
        for (UINT x = 0; x < Width; x++)
            memory[y * Width + x] = float(y + 1);
    upload->Unmap(0, nullptr);

    for (UINT y = 0; y < Height; y++)
        list->CopyBufferRegion(image.Get(), y * Pitch * sizeof(float), upload.Get(), y * rowBytes, rowBytes);
    const auto uploaded = CD3DX12_RESOURCE_BARRIER::Transition(image.Get(), D3D12_RESOURCE_STATE_COPY_DEST,
                                                               D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    list->ResourceBarrier(1, &uploaded);
    recorder->RecordDispatch(list.Get(), initializer.Get(), createTable(initializer.Get()).Get());
    const auto initialized = CD3DX12_RESOURCE_BARRIER::UAV(nullptr);
    list->ResourceBarrier(1, &initialized);
    const auto table = createTable(compiled.Get());
    const DML_BUFFER_BINDING input = {image.Get(), 0, imageBytes}, output = {sums.Get(), 0, sumsBytes};
    const DML_BINDING_DESC inputBinding = {DML_BINDING_TYPE_BUFFER, &input};
    const DML_BINDING_DESC outputBinding = {DML_BINDING_TYPE_BUFFER, &output};
    table->BindInputs(1, &inputBinding);
    table->BindOutputs(1, &outputBinding);
    recorder->RecordDispatch(list.Get(), compiled.Get(), table.Get());
    const auto summed = CD3DX12_RESOURCE_BARRIER::Transition(sums.Get(), D3D12_RESOURCE_STATE_UNORDERED_ACCESS,
                                                             D3D12_RESOURCE_STATE_COPY_SOURCE);
    list->ResourceBarrier(1, &summed);
    list->CopyResource(readback.Get(), sums.Get());
    THROW_IF_FAILED(list->Close());
    ID3D12CommandList *lists[] = {list.Get()};
    queue->ExecuteCommandLists(1, lists);
    ComPtr<ID3D12Fence> fence;
    THROW_IF_FAILED(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
    THROW_IF_FAILED(queue->Signal(fence.Get(), 1));
    THROW_IF_FAILED(fence->SetEventOnCompletion(1, nullptr)); // returns when it is reached

    const D3D12_RANGE all = {0, sumsBytes}, nothing = {0, 0};
    THROW_IF_FAILED(readback->Map(0, &all, reinterpret_cast<void **>(&memory)));
    for (UINT y = 0; y < Height; y++)
        std::printf("row %u: %g\n", y, memory[y]);
    readback->Unmap(0, &nothing);
}
