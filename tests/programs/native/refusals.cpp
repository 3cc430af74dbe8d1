// HRESULTs of wrong calls, out pointers of failed ones, identity and counts of COM objects.

#include "program.h"

#define EXPECT(condition) \
    do { \
        if (!(condition)) \
            std::printf("line %d: %s\n", __LINE__, #condition); \
    } while (0)

static void *const untouched = reinterpret_cast<void *>(0x1234);

static void out_pointers(Gpu &gpu)
{
    void *out = untouched;
    const GUID unknown = {0x12345678, 1, 2, {3, 4, 5, 6, 7, 8, 9, 10}};
    EXPECT(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, unknown, &out) == E_NOINTERFACE && out == nullptr);
    EXPECT(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, unknown, nullptr) == S_FALSE);
    const D3D12_FENCE_FLAGS no_flag = static_cast<D3D12_FENCE_FLAGS>(0x40);
    EXPECT(gpu.device->CreateFence(0, no_flag, __uuidof(ID3D12Fence), nullptr) == E_INVALIDARG);
    EXPECT(gpu.device->CreateCommandQueue(nullptr, __uuidof(ID3D12CommandQueue), nullptr) == E_INVALIDARG);
    const D3D12_HEAP_PROPERTIES properties = {D3D12_HEAP_TYPE_DEFAULT, D3D12_CPU_PAGE_PROPERTY_UNKNOWN,
                                              D3D12_MEMORY_POOL_UNKNOWN, 0, 0};
    const D3D12_RESOURCE_DESC desc = buffer_desc(64, D3D12_RESOURCE_FLAG_NONE);
    const D3D12_RESOURCE_DESC empty = buffer_desc(0, D3D12_RESOURCE_FLAG_NONE);
    const auto create = [&](const D3D12_RESOURCE_DESC &made) {
        return gpu.device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &made, D3D12_RESOURCE_STATE_COMMON,
                                                   nullptr, unknown, nullptr);
    };
    EXPECT(create(desc) == S_FALSE && create(empty) == E_INVALIDARG);
    out = untouched;
    EXPECT(gpu.device->CreateCommandQueue(nullptr, __uuidof(ID3D12CommandQueue), &out) == E_INVALIDARG);
    EXPECT(gpu.device->CreateFence(0, no_flag, __uuidof(ID3D12Fence), &out) == E_INVALIDARG);
    EXPECT(out == nullptr);
    out = untouched;
    for (UINT level : {0u, 0x9100u, 0x9300u, 0xA000u, 0xA100u, 0xFFFFFFFFu}) {
        out = untouched;
        const D3D_FEATURE_LEVEL wrong = static_cast<D3D_FEATURE_LEVEL>(level);
        EXPECT(D3D12CreateDevice(nullptr, wrong, __uuidof(ID3D12Device), &out) == E_INVALIDARG && out == nullptr);
    }
    out = untouched;
    EXPECT(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_12_2, __uuidof(ID3D12Device), &out) == DXGI_ERROR_UNSUPPORTED);
    EXPECT(out == nullptr);
    EXPECT(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, __uuidof(ID3D12Device), nullptr) == S_FALSE);
    ComPtr<ID3D12Resource> buffer = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    out = untouched;
    EXPECT(buffer->Map(0, nullptr, &out) == E_INVALIDARG && out == untouched);
    EXPECT(buffer->QueryInterface(__uuidof(IUnknown), nullptr) == E_POINTER);
}

static void identity(Gpu &gpu)
{
    ComPtr<IUnknown> first, second;
    ComPtr<ID3D12Device> device;
    CHECK(gpu.device.As(&first));
    CHECK(gpu.queue->GetDevice(IID_PPV_ARGS(&device)));
    CHECK(device.As(&second));
    EXPECT(first.Get() == second.Get() && device.Get() == gpu.device.Get());
    ComPtr<ID3D12Device> parent, again;
    CHECK(gpu.dml->GetParentDevice(IID_PPV_ARGS(&parent)));
    CHECK(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&again)));
    EXPECT(parent.Get() == gpu.device.Get() && again.Get() == gpu.device.Get());
    ComPtr<ID3D12Device9> newest;
    CHECK(gpu.device.As(&newest));
    ComPtr<ID3D12GraphicsCommandList2> list;
    CHECK(gpu.list.As(&list));
    ComPtr<IDMLOperator> none;
    EXPECT(gpu.list.As(&none) == E_NOINTERFACE && none == nullptr);

    ID3D12Fence *fence = nullptr;
    CHECK(gpu.device->CreateFence(7, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
    EXPECT(fence->AddRef() == 2 && fence->Release() == 1 && fence->GetCompletedValue() == 7);
    EXPECT(fence->Release() == 0);
}

static void structs(Gpu &gpu)
{
    const D3D12_COMMAND_QUEUE_DESC queue = gpu.queue->GetDesc();
    EXPECT(queue.Type == D3D12_COMMAND_LIST_TYPE_DIRECT && queue.NodeMask == 1);
    EXPECT(gpu.descriptors->GetDesc().NumDescriptors == 64);
    ComPtr<ID3D12Resource> buffer = gpu.buffer(4096, D3D12_RESOURCE_STATE_COMMON);
    const D3D12_RESOURCE_DESC desc = buffer->GetDesc();
    EXPECT(desc.Width == 4096 && desc.Alignment == 65536 && desc.Flags == D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
    const D3D12_RESOURCE_DESC again = buffer->GetDesc(); // kept by the object
    EXPECT(std::memcmp(&again, &desc, sizeof desc) == 0);
    const UINT64 place = buffer->GetGPUVirtualAddress();
    EXPECT(place != 0 && buffer->GetGPUVirtualAddress() == place);
    const D3D12_CPU_DESCRIPTOR_HANDLE cpu = gpu.descriptors->GetCPUDescriptorHandleForHeapStart();
    EXPECT(gpu.descriptors->GetDesc().NumDescriptors == 64 && gpu.device->GetNodeCount() == 1);
    EXPECT(gpu.descriptors->GetCPUDescriptorHandleForHeapStart().ptr == cpu.ptr && gpu.device->GetNodeCount() == 1);
    const D3D12_RESOURCE_ALLOCATION_INFO info = gpu.device->GetResourceAllocationInfo(0, 1, &desc);
    EXPECT(info.SizeInBytes == 65536 && info.Alignment == 65536);
    const D3D12_HEAP_PROPERTIES custom = gpu.device->GetCustomHeapProperties(0, D3D12_HEAP_TYPE_UPLOAD);
    EXPECT(custom.Type == D3D12_HEAP_TYPE_CUSTOM);
    UINT64 total = 0;
    D3D12_PLACED_SUBRESOURCE_FOOTPRINT footprint = {};
    gpu.device->GetCopyableFootprints(&desc, 0, 1, 512, &footprint, nullptr, nullptr, &total);
    EXPECT(footprint.Offset == 512 && footprint.Footprint.Width == 4096 && total == 4096);
    D3D12_FEATURE_DATA_ARCHITECTURE1 architecture = {};
    CHECK(gpu.device->CheckFeatureSupport(D3D12_FEATURE_ARCHITECTURE1, &architecture, sizeof architecture));
    EXPECT(gpu.device->CheckFeatureSupport(D3D12_FEATURE_ARCHITECTURE1, &architecture, 16) == E_INVALIDARG);
    EXPECT(gpu.device->CheckFeatureSupport(D3D12_FEATURE_ARCHITECTURE, nullptr, 16) == E_INVALIDARG);
    const D3D_FEATURE_LEVEL levels[] = {static_cast<D3D_FEATURE_LEVEL>(0x1000), D3D_FEATURE_LEVEL_11_0};
    D3D12_FEATURE_DATA_FEATURE_LEVELS asked = {2, levels, {}};
    CHECK(gpu.device->CheckFeatureSupport(D3D12_FEATURE_FEATURE_LEVELS, &asked, sizeof asked));
    EXPECT(asked.MaxSupportedFeatureLevel == D3D_FEATURE_LEVEL_11_0);
}

static int released; // of an object of the program's own

struct Own : IUnknown {
    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID, void **) override { return E_NOINTERFACE; }
    ULONG STDMETHODCALLTYPE AddRef() override { return 2; }
    ULONG STDMETHODCALLTYPE Release() override { return static_cast<ULONG>(++released); }
};

static void private_data(Gpu &gpu)
{
    const GUID key = {1, 2, 3, {4, 5, 6, 7, 8, 9, 10, 11}};
    ComPtr<ID3D12Resource> buffer = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    UINT size = 99;
    char bytes[8] = {};
    EXPECT(buffer->GetPrivateData(key, &size, nullptr) == DXGI_ERROR_NOT_FOUND && size == 0);
    CHECK(buffer->SetPrivateData(key, 5, "four"));
    EXPECT(buffer->GetPrivateData(key, &size, nullptr) == S_OK && size == 5);
    size = 3;
    EXPECT(buffer->GetPrivateData(key, &size, bytes) == DXGI_ERROR_MORE_DATA && size == 5);
    size = 8;
    EXPECT(buffer->GetPrivateData(key, &size, bytes) == S_OK && std::strcmp(bytes, "four") == 0);
    static Own own;
    CHECK(buffer->SetPrivateDataInterface(key, &own));
    void *found = nullptr;
    size = sizeof found;
    EXPECT(buffer->GetPrivateData(key, &size, &found) == S_OK && found == &own);
    CHECK(buffer->SetName(L"a name"));
    buffer.Reset();
    EXPECT(released == 1);
}

static void dml(Gpu &gpu)
{
    void *out = untouched;
    DML_OPERATOR_DESC desc = {static_cast<DML_OPERATOR_TYPE>(9999), &gpu};
    EXPECT(gpu.dml->CreateOperator(&desc, __uuidof(IDMLOperator), &out) == E_INVALIDARG && out == nullptr);
    EXPECT(gpu.dml->CreateOperator(nullptr, __uuidof(IDMLOperator), &out) == E_INVALIDARG);
    DML_GEMM_OPERATOR_DESC gemm = {};
    desc = {DML_OPERATOR_GEMM, &gemm};
    gemm.FusedActivation = &desc; // itself
    EXPECT(gpu.dml->CreateOperator(&desc, __uuidof(IDMLOperator), &out) == E_INVALIDARG);
    DML_GRAPH_DESC graph = {};
    graph.NodeCount = 0xFFFFFFFF;
    ComPtr<IDMLDevice1> device;
    CHECK(gpu.dml.As(&device));
    EXPECT(device->CompileGraph(&graph, DML_EXECUTION_FLAG_NONE, __uuidof(IDMLCompiledOperator), &out) == E_INVALIDARG);
    EXPECT(gpu.dml->CompileOperator(nullptr, DML_EXECUTION_FLAG_NONE, __uuidof(IDMLCompiledOperator), &out) ==
           E_INVALIDARG);
    ComPtr<IDMLOperatorInitializer> initializer;
    CHECK(gpu.dml->CreateOperatorInitializer(0, nullptr, IID_PPV_ARGS(&initializer)));
    EXPECT(initializer->GetBindingProperties().TemporaryResourceSize == 0);
    const DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT query = {DML_TENSOR_DATA_TYPE_FLOAT16};
    DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT data = {};
    CHECK(gpu.dml->CheckFeatureSupport(DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, sizeof query, &query, sizeof data, &data));
    EXPECT(data.IsSupported == TRUE);
    EXPECT(gpu.dml->CheckFeatureSupport(DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, 3, &query, 4, &data) == E_INVALIDARG);
}

// Devices of DirectML, and what they are asked.
static void dml_devices(Gpu &gpu)
{
    void *out = untouched;
    const IID device = __uuidof(IDMLDevice);
    const DML_CREATE_DEVICE_FLAGS none = DML_CREATE_DEVICE_FLAG_NONE;
    const DML_FEATURE_LEVEL too_high = static_cast<DML_FEATURE_LEVEL>(0x7000);
    EXPECT(DMLCreateDevice1(gpu.device.Get(), none, too_high, device, &out) == DXGI_ERROR_UNSUPPORTED);
    EXPECT(out == nullptr);
    EXPECT(DMLCreateDevice1(gpu.device.Get(), none, DML_FEATURE_LEVEL_6_2, device, nullptr) == S_FALSE);
    EXPECT(DMLCreateDevice1(gpu.device.Get(), none, too_high, device, nullptr) == DXGI_ERROR_UNSUPPORTED);
    EXPECT(DMLCreateDevice(gpu.device.Get(), static_cast<DML_CREATE_DEVICE_FLAGS>(8), device, &out) == E_INVALIDARG);

    const DML_FEATURE_LEVEL levels[] = {DML_FEATURE_LEVEL_1_0, too_high, DML_FEATURE_LEVEL_5_0};
    const DML_FEATURE_QUERY_FEATURE_LEVELS asked = {3, levels};
    DML_FEATURE_DATA_FEATURE_LEVELS found = {};
    const auto ask = [&](int feature, UINT query_size, const void *query, UINT size, void *data) {
        return gpu.dml->CheckFeatureSupport(static_cast<DML_FEATURE>(feature), query_size, query, size, data);
    };
    EXPECT(ask(DML_FEATURE_FEATURE_LEVELS, sizeof asked, &asked, sizeof found, &found) == S_OK);
    EXPECT(found.MaxSupportedFeatureLevel == DML_FEATURE_LEVEL_5_0);
    EXPECT(ask(99, sizeof asked, &asked, sizeof found, &found) == DXGI_ERROR_UNSUPPORTED);
    EXPECT(ask(DML_FEATURE_FEATURE_LEVELS, sizeof asked, &asked, sizeof found, nullptr) == E_INVALIDARG);
    EXPECT(ask(DML_FEATURE_FEATURE_LEVELS, sizeof asked, nullptr, sizeof found, &found) == E_INVALIDARG);
    EXPECT(ask(DML_FEATURE_FEATURE_LEVELS, sizeof asked, &asked, sizeof found + 4, &found) == E_INVALIDARG);
}

// Wrong arguments of every kind: NULL, counts of nothing, pointers to other objects, unknown numbers.
static void bad_arguments(Gpu &gpu)
{
    static Own own;
    void *out = nullptr;
    IUnknown *foreign = &own, *other = gpu.queue.Get();
    const IID list = __uuidof(ID3D12GraphicsCommandList), buffer = __uuidof(ID3D12Resource);
    ID3D12CommandAllocator *allocators[] = {nullptr, static_cast<ID3D12CommandAllocator *>(foreign),
                                            static_cast<ID3D12CommandAllocator *>(other)};
    for (ID3D12CommandAllocator *each : allocators)
        EXPECT(gpu.device->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_DIRECT, each, nullptr, list, &out) ==
               E_INVALIDARG);
    EXPECT(gpu.device->CreateCommandAllocator(static_cast<D3D12_COMMAND_LIST_TYPE>(77), list, &out) == E_INVALIDARG);
    EXPECT(gpu.device->CreateCommittedResource(nullptr, D3D12_HEAP_FLAG_NONE, nullptr, D3D12_RESOURCE_STATE_COMMON,
                                               nullptr, buffer, &out) == E_INVALIDARG);
    EXPECT(gpu.device->CreatePlacedResource(nullptr, 0, nullptr, D3D12_RESOURCE_STATE_COMMON, nullptr, buffer,
                                            &out) == E_INVALIDARG);
    EXPECT(gpu.queue->Signal(nullptr, 1) == E_INVALIDARG && gpu.queue->Wait(nullptr, 1) == E_INVALIDARG);
    EXPECT(gpu.device->MakeResident(3, nullptr) == E_INVALIDARG);
    EXPECT(gpu.device->Evict(0xFFFFFFFF, nullptr) == E_INVALIDARG);
    EXPECT(gpu.device->CheckFeatureSupport(static_cast<D3D12_FEATURE>(999), &out, 8) == E_INVALIDARG);
    EXPECT(gpu.fence->SetEventOnCompletion(1, reinterpret_cast<HANDLE>(12345)) == E_HANDLE);
    EXPECT(gpu.device->SetName(nullptr) == E_INVALIDARG);
    IDMLCompiledOperator *nothing[] = {nullptr};
    const IID initializer = __uuidof(IDMLOperatorInitializer), device = __uuidof(IDMLDevice);
    EXPECT(gpu.dml->CreateOperatorInitializer(1, nothing, initializer, &out) == E_INVALIDARG);
    EXPECT(gpu.dml->CreateOperatorInitializer(0xFFFFFFFF, nothing, initializer, &out) == E_INVALIDARG);
    const DML_BINDING_TABLE_DESC empty = {};
    EXPECT(gpu.dml->CreateBindingTable(&empty, __uuidof(IDMLBindingTable), &out) == E_INVALIDARG);
    EXPECT(DMLCreateDevice(nullptr, DML_CREATE_DEVICE_FLAG_NONE, device, &out) == E_INVALIDARG);
    out = untouched;
    EXPECT(DMLCreateDevice(static_cast<ID3D12Device *>(foreign), DML_CREATE_DEVICE_FLAG_NONE, device, &out) ==
           E_INVALIDARG);
    EXPECT(out == nullptr);
    out = untouched;
    const DML_BINDING_TABLE_DESC of_another = {reinterpret_cast<IDMLDispatchable *>(other), {0}, {0}, 1};
    EXPECT(gpu.dml->CreateBindingTable(&of_another, __uuidof(IDMLBindingTable), &out) == E_INVALIDARG);
    EXPECT(out == nullptr);
    EXPECT(D3D12CreateDevice(foreign, D3D_FEATURE_LEVEL_11_0, __uuidof(ID3D12Device), &out) == E_INVALIDARG);
}

// The same for methods without a result: whatever they do, they return.
static void bad_arguments_of_void_methods(Gpu &gpu)
{
    static Own own;
    IUnknown *foreign = &own;
    const UINT values[4] = {};
    ID3D12DescriptorHeap *no_heap[] = {nullptr};
    D3D12_RESOURCE_BARRIER barrier = {};
    gpu.list->ResourceBarrier(1, &barrier); // of nothing
    barrier.Type = static_cast<D3D12_RESOURCE_BARRIER_TYPE>(9);
    gpu.list->ResourceBarrier(1, &barrier);
    gpu.list->ResourceBarrier(0xFFFFFFFF, nullptr);
    gpu.list->SetDescriptorHeaps(2, nullptr);
    gpu.list->SetDescriptorHeaps(1, no_heap);
    gpu.list->CopyBufferRegion(nullptr, 0, nullptr, 0, 8);
    gpu.list->DrawInstanced(1, 1, 0, 0);
    gpu.list->ClearUnorderedAccessViewUint({1}, {2}, nullptr, values, 0, nullptr);
    gpu.list->ResolveQueryData(nullptr, D3D12_QUERY_TYPE_TIMESTAMP, 0, 1, nullptr, 0);
    gpu.recorder->RecordDispatch(nullptr, nullptr, nullptr);
    gpu.recorder->RecordDispatch(static_cast<ID3D12CommandList *>(foreign), nullptr, nullptr);
    gpu.device->CreateUnorderedAccessView(nullptr, nullptr, nullptr, {0});
    gpu.device->CopyDescriptors(4, nullptr, nullptr, 4, nullptr, nullptr, D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
    gpu.device->CopyDescriptorsSimple(0xFFFFFFFF, {7}, {9}, static_cast<D3D12_DESCRIPTOR_HEAP_TYPE>(99));
    gpu.device->GetCustomHeapProperties(0, static_cast<D3D12_HEAP_TYPE>(99));
    gpu.device->GetCopyableFootprints(nullptr, 0, 1, 0, nullptr, nullptr, nullptr, nullptr);
    gpu.queue->ExecuteCommandLists(5, nullptr);
}

int main()
{
    {
        Gpu gpu;
        out_pointers(gpu);
        identity(gpu);
        structs(gpu);
        private_data(gpu);
        dml(gpu);
        dml_devices(gpu);
        bad_arguments(gpu);
        bad_arguments_of_void_methods(gpu);
    }
    std::printf("done\n");
}
