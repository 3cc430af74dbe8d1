// Pixels to classes: a shader makes a tensor, DirectML convolves it, another shader takes the largest channel.
// As it is written for Windows; the shaders are those of pixels.hlsl, in files beside the program or in a folder
// that it is given.

#include <windows.h>
#include <d3dx12.h>
#include <DirectML.h>
#include <wil/resource.h>
#include <wil/result.h>
#include <wrl/client.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using Microsoft::WRL::ComPtr;

static const UINT Width = 64, Height = 64, Count = Width * Height, Classes = 4;

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
        THROW_IF_FAILED(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)));
        D3D12_FEATURE_DATA_SHADER_MODEL model = {D3D_SHADER_MODEL_6_0};
        THROW_IF_FAILED(device->CheckFeatureSupport(D3D12_FEATURE_SHADER_MODEL, &model, sizeof(model)));
        THROW_HR_IF(E_NOTIMPL, model.HighestShaderModel < D3D_SHADER_MODEL_6_0);
        THROW_IF_FAILED(DMLCreateDevice(device.Get(), DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&dml)));
        const D3D12_COMMAND_QUEUE_DESC queueDesc = {D3D12_COMMAND_LIST_TYPE_COMPUTE, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
        THROW_IF_FAILED(device->CreateCommandQueue(&queueDesc, IID_PPV_ARGS(&queue)));
        THROW_IF_FAILED(device->CreateCommandAllocator(queueDesc.Type, IID_PPV_ARGS(&allocator)));
        THROW_IF_FAILED(device->CreateCommandList(0, queueDesc.Type, allocator.Get(), nullptr, IID_PPV_ARGS(&list)));
        THROW_IF_FAILED(dml->CreateCommandRecorder(IID_PPV_ARGS(&recorder)));
        D3D12_DESCRIPTOR_HEAP_DESC heapDesc = {};
        heapDesc.Type = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
        heapDesc.NumDescriptors = 64;
        heapDesc.Flags = D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE;
        THROW_IF_FAILED(device->CreateDescriptorHeap(&heapDesc, IID_PPV_ARGS(&heap)));
        list->SetDescriptorHeaps(1, heap.GetAddressOf());
    }

    // --- buffers and descriptors ---

    ComPtr<ID3D12Resource> CreateBuffer(const wchar_t *name, UINT64 bytes,
                                        D3D12_HEAP_TYPE type = D3D12_HEAP_TYPE_DEFAULT)
    {
        const bool isDefault = type == D3D12_HEAP_TYPE_DEFAULT;
        const CD3DX12_HEAP_PROPERTIES properties(type);
        const CD3DX12_RESOURCE_DESC desc = CD3DX12_RESOURCE_DESC::Buffer(
            bytes, isDefault ? D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS : D3D12_RESOURCE_FLAG_NONE);
        const D3D12_RESOURCE_STATES state = isDefault                       ? D3D12_RESOURCE_STATE_COMMON
                                            : type == D3D12_HEAP_TYPE_UPLOAD ? D3D12_RESOURCE_STATE_GENERIC_READ
                                                                             : D3D12_RESOURCE_STATE_COPY_DEST;
        ComPtr<ID3D12Resource> buffer;
        THROW_IF_FAILED(device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, state, nullptr,
                                                        IID_PPV_ARGS(&buffer)));
        buffer->SetName(name);
        return buffer;
    }

    template <typename T> ComPtr<ID3D12Resource> CreateUpload(const wchar_t *name, const std::vector<T> &values)
    {
        const auto buffer = CreateBuffer(name, values.size() * sizeof(T), D3D12_HEAP_TYPE_UPLOAD);
        const D3D12_RANGE nothing = {0, 0};
        void *memory = nullptr;
        THROW_IF_FAILED(buffer->Map(0, &nothing, &memory));
        std::memcpy(memory, values.data(), values.size() * sizeof(T));
        buffer->Unmap(0, nullptr);
        return buffer;
    }

    // Returns the index of the first of so many descriptors.
    UINT TakeDescriptors(UINT count)
    {
        used += count;
        return used - count;
    }

    D3D12_CPU_DESCRIPTOR_HANDLE Cpu(UINT index)
    {
        const UINT size = device->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
        return CD3DX12_CPU_DESCRIPTOR_HANDLE(heap->GetCPUDescriptorHandleForHeapStart(), index, size);
    }

    D3D12_GPU_DESCRIPTOR_HANDLE Table(UINT index)
    {
        const UINT size = device->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
        return CD3DX12_GPU_DESCRIPTOR_HANDLE(heap->GetGPUDescriptorHandleForHeapStart(), index, size);
    }

    void Barrier(const D3D12_RESOURCE_BARRIER &barrier) { list->ResourceBarrier(1, &barrier); }

    void ExecuteAndWait()
    {
        THROW_IF_FAILED(list->Close());
        ID3D12CommandList *lists[] = {list.Get()};
        queue->ExecuteCommandLists(1, lists);
        ComPtr<ID3D12Fence> fence;
        THROW_IF_FAILED(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
        THROW_IF_FAILED(queue->Signal(fence.Get(), 1));
        THROW_IF_FAILED(fence->SetEventOnCompletion(1, nullptr));
    }
};

// --- a shader ---

struct Shader
{
    ComPtr<ID3D12RootSignature> root;
    ComPtr<ID3D12PipelineState> pipeline;

    // The source gives the root signature, which the compiled shader contains.
    Shader(Gpu &gpu, const std::string &folder, const std::string &name)
    {
        std::ifstream file(folder + "/" + name + ".dxil", std::ios::binary);
        const std::vector<char> code{std::istreambuf_iterator<char>(file), {}};
        THROW_IF_FAILED(gpu.device->CreateRootSignature(0, code.data(), code.size(), IID_PPV_ARGS(&root)));
        D3D12_COMPUTE_PIPELINE_STATE_DESC desc = {};
        desc.pRootSignature = root.Get();
        desc.CS = {code.data(), code.size()};
        THROW_IF_FAILED(gpu.device->CreateComputePipelineState(&desc, IID_PPV_ARGS(&pipeline)));
        pipeline->SetName(std::wstring(name.begin(), name.end()).c_str());
    }

    // Also after a dispatch of DirectML, which sets a pipeline and a root signature of its own.
    void Set(Gpu &gpu)
    {
        const UINT size[] = {Width, Height};
        gpu.list->SetPipelineState(pipeline.Get());
        gpu.list->SetComputeRootSignature(root.Get());
        gpu.list->SetComputeRoot32BitConstants(0, 2, size, 0);
    }
};

static D3D12_GPU_DESCRIPTOR_HANDLE CreateViews(Gpu &gpu, ID3D12Resource *pixels, ID3D12Resource *tensor)
{
    const UINT first = gpu.TakeDescriptors(2);
    D3D12_SHADER_RESOURCE_VIEW_DESC srv = {};
    srv.Format = DXGI_FORMAT_R8G8B8A8_UNORM;
    srv.ViewDimension = D3D12_SRV_DIMENSION_BUFFER;
    srv.Shader4ComponentMapping = D3D12_DEFAULT_SHADER_4_COMPONENT_MAPPING;
    srv.Buffer.NumElements = Count;
    gpu.device->CreateShaderResourceView(pixels, &srv, gpu.Cpu(first));
    D3D12_UNORDERED_ACCESS_VIEW_DESC uav = {};
    uav.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
    uav.Buffer.NumElements = 3 * Count;
    uav.Buffer.StructureByteStride = sizeof(float);
    gpu.device->CreateUnorderedAccessView(tensor, nullptr, &uav, gpu.Cpu(first + 1));
    return gpu.Table(first);
}

// --- the convolution ---

struct Convolution
{
    ComPtr<IDMLCompiledOperator> compiled;
    ComPtr<IDMLBindingTable> table;
    ComPtr<ID3D12Resource> temporary, persistent;

    explicit Convolution(Gpu &gpu)
    {
        const UINT input[] = {1, 3, Height, Width}, filter[] = {Classes, 3, 3, 3}, output[] = {1, Classes, Height, Width};
        const auto describe = [](const UINT *sizes) {
            const UINT64 bytes = sizeof(float) * sizes[0] * sizes[1] * sizes[2] * sizes[3];
            return DML_BUFFER_TENSOR_DESC{DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, bytes, 0};
        };
        const DML_BUFFER_TENSOR_DESC buffers[] = {describe(input), describe(filter), describe(output)};
        const DML_TENSOR_DESC tensors[] = {{DML_TENSOR_TYPE_BUFFER, &buffers[0]},
                                           {DML_TENSOR_TYPE_BUFFER, &buffers[1]},
                                           {DML_TENSOR_TYPE_BUFFER, &buffers[2]}};
        const UINT ones[] = {1, 1}, zeros[] = {0, 0};
        const DML_CONVOLUTION_OPERATOR_DESC convolution = {
            &tensors[0], &tensors[1], nullptr, &tensors[2], DML_CONVOLUTION_MODE_CROSS_CORRELATION,
            DML_CONVOLUTION_DIRECTION_FORWARD, 2, ones, ones, ones, ones, zeros, 1, nullptr};
        const DML_OPERATOR_DESC desc = {DML_OPERATOR_CONVOLUTION, &convolution};
        ComPtr<IDMLOperator> op;
        THROW_IF_FAILED(gpu.dml->CreateOperator(&desc, IID_PPV_ARGS(&op)));
        THROW_IF_FAILED(gpu.dml->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
        compiled->SetName(L"convolution");
        const DML_BINDING_PROPERTIES needs = compiled->GetBindingProperties();
        if (needs.TemporaryResourceSize != 0)
            temporary = gpu.CreateBuffer(L"temporary", needs.TemporaryResourceSize);
        if (needs.PersistentResourceSize != 0)
            persistent = gpu.CreateBuffer(L"persistent", needs.PersistentResourceSize);
    }

    static ComPtr<IDMLBindingTable> CreateTable(Gpu &gpu, IDMLDispatchable *dispatchable)
    {
        const UINT count = dispatchable->GetBindingProperties().RequiredDescriptorCount, first = gpu.TakeDescriptors(count);
        const DML_BINDING_TABLE_DESC desc = {dispatchable, gpu.Cpu(first), gpu.Table(first), count};
        ComPtr<IDMLBindingTable> table;
        THROW_IF_FAILED(gpu.dml->CreateBindingTable(&desc, IID_PPV_ARGS(&table)));
        return table;
    }

    static DML_BUFFER_BINDING Whole(ID3D12Resource *buffer) { return {buffer, 0, buffer->GetDesc().Width}; }

    void Initialize(Gpu &gpu)
    {
        ComPtr<IDMLOperatorInitializer> initializer;
        THROW_IF_FAILED(gpu.dml->CreateOperatorInitializer(1, compiled.GetAddressOf(), IID_PPV_ARGS(&initializer)));
        const auto bindings = CreateTable(gpu, initializer.Get());
        if (persistent)
        {
            const DML_BUFFER_BINDING whole = Whole(persistent.Get());
            const DML_BINDING_DESC output = {DML_BINDING_TYPE_BUFFER, &whole};
            bindings->BindOutputs(1, &output);
        }
        gpu.recorder->RecordDispatch(gpu.list.Get(), initializer.Get(), bindings.Get());
        gpu.Barrier(CD3DX12_RESOURCE_BARRIER::UAV(nullptr));
    }

    void Dispatch(Gpu &gpu, ID3D12Resource *input, ID3D12Resource *filter, ID3D12Resource *output)
    {
        table = CreateTable(gpu, compiled.Get());
        const DML_BUFFER_BINDING buffers[] = {Whole(input), Whole(filter), Whole(output)};
        const DML_BINDING_DESC inputs[] = {
            {DML_BINDING_TYPE_BUFFER, &buffers[0]}, {DML_BINDING_TYPE_BUFFER, &buffers[1]}, {DML_BINDING_TYPE_NONE, nullptr}};
        const DML_BINDING_DESC result = {DML_BINDING_TYPE_BUFFER, &buffers[2]};
        table->BindInputs(3, inputs);
        table->BindOutputs(1, &result);
        if (temporary)
        {
            const DML_BUFFER_BINDING whole = Whole(temporary.Get());
            const DML_BINDING_DESC binding = {DML_BINDING_TYPE_BUFFER, &whole};
            table->BindTemporaryResource(&binding);
        }
        if (persistent)
        {
            const DML_BUFFER_BINDING whole = Whole(persistent.Get());
            const DML_BINDING_DESC binding = {DML_BINDING_TYPE_BUFFER, &whole};
            table->BindPersistentResource(&binding);
        }
        gpu.recorder->RecordDispatch(gpu.list.Get(), compiled.Get(), table.Get());
    }
};

// --- the program ---

static std::vector<BYTE> DrawImage() // a circle of colors, each pixel R, G, B and A
{
    std::vector<BYTE> image;
    for (UINT y = 0; y < Height; y++)
        for (UINT x = 0; x < Width; x++)
            for (const UINT value : {4 * x, 4 * y, (x * x + y * y) / 16, 255u})
                image.push_back(static_cast<BYTE>(value));
    return image;
}

static std::vector<float> DrawFilters() // numbers between -0.5 and 0.5
{
    std::vector<float> filters;
    for (UINT i = 0; i < Classes * 3 * 9; i++)
        filters.push_back(static_cast<float>(i * 7919 % 1009) / 1009 - 0.5f);
    return filters;
}

int main(int argc, char **argv)
{
    const std::string folder = argc > 1 ? argv[1] : ".";
    Gpu gpu;
    Shader toTensor(gpu, folder, "to_tensor"), argMax(gpu, folder, "arg_max");
    Convolution convolution(gpu);
    const auto image = gpu.CreateUpload(L"image", DrawImage()), weights = gpu.CreateUpload(L"weights", DrawFilters());
    const auto pixels = gpu.CreateBuffer(L"pixels", 4 * Count), filters = gpu.CreateBuffer(L"filters", 4 * Classes * 27);
    const auto tensor = gpu.CreateBuffer(L"tensor", 4 * 3 * Count), scores = gpu.CreateBuffer(L"scores", 4 * Classes * Count);
    const auto classes = gpu.CreateBuffer(L"classes", 4 * Count);
    const auto readback = gpu.CreateBuffer(L"readback", 4 * Count, D3D12_HEAP_TYPE_READBACK);
    const D3D12_RESOURCE_STATES read = D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE;
    const D3D12_RESOURCE_STATES written = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;

    convolution.Initialize(gpu);
    gpu.list->CopyResource(filters.Get(), weights.Get());
    gpu.list->CopyResource(pixels.Get(), image.Get());
    gpu.Barrier(CD3DX12_RESOURCE_BARRIER::Transition(filters.Get(), D3D12_RESOURCE_STATE_COPY_DEST, written)); // filters
    gpu.Barrier(CD3DX12_RESOURCE_BARRIER::Transition(pixels.Get(), D3D12_RESOURCE_STATE_COPY_DEST, read)); // pixels

    toTensor.Set(gpu);
    gpu.list->SetComputeRootDescriptorTable(1, CreateViews(gpu, pixels.Get(), tensor.Get()));
    gpu.list->Dispatch(Width / 8, Height / 8, 1);
    gpu.Barrier(CD3DX12_RESOURCE_BARRIER::UAV(tensor.Get())); // tensor

    convolution.Dispatch(gpu, tensor.Get(), filters.Get(), scores.Get());
    gpu.Barrier(CD3DX12_RESOURCE_BARRIER::Transition(scores.Get(), written, read)); // scores

    argMax.Set(gpu);
    gpu.list->SetComputeRootShaderResourceView(1, scores->GetGPUVirtualAddress());
    gpu.list->SetComputeRootUnorderedAccessView(2, classes->GetGPUVirtualAddress());
    gpu.list->Dispatch(Count / 64, 1, 1);
    gpu.Barrier(CD3DX12_RESOURCE_BARRIER::Transition(classes.Get(), written, D3D12_RESOURCE_STATE_COPY_SOURCE)); // classes
    gpu.list->CopyResource(readback.Get(), classes.Get());
    gpu.ExecuteAndWait();

    const D3D12_RANGE nothing = {0, 0};
    void *memory = nullptr;
    THROW_IF_FAILED(readback->Map(0, nullptr, &memory));
    for (UINT y = 0; y < Height; y++)
    {
        for (UINT x = 0; x < Width; x++)
            std::printf("%u", static_cast<const UINT *>(memory)[y * Width + x]);
        std::printf("\n");
    }
    readback->Unmap(0, &nothing);
}
