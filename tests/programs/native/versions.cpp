// Newer versions of interfaces, their numbered methods, private data of every kind of object, and which interfaces
// there are not.

#include "program.h"

#include <directx/d3d12sdklayers.h>

#include <sys/eventfd.h>
#include <unistd.h>

#define EXPECT(condition) \
    do { \
        if (!(condition)) \
            std::printf("line %d: %s\n", __LINE__, #condition); \
    } while (0)

struct Own : IUnknown {
    ULONG count = 1;
    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID, void **) override { return E_NOINTERFACE; }
    ULONG STDMETHODCALLTYPE AddRef() override { return ++count; }
    ULONG STDMETHODCALLTYPE Release() override { return --count; }
};

// ID3D12Device12 to 14 and ID3D12GraphicsCommandList9 and 10 are not in older headers: by IID and slot.
static const GUID device14 = {0x5f6e592d, 0xd895, 0x44c2, {0x8e, 0x4a, 0x88, 0xad, 0x49, 0x26, 0xd3, 0x23}};
static const GUID list10 = {0x7013c015, 0xd161, 0x4b63, {0xa0, 0x8c, 0x23, 0x85, 0x52, 0xdd, 0x8a, 0xcc}};

template <typename Result, typename... Arguments> static Result call(IUnknown *object, int slot, Arguments... arguments)
{
    using Method = Result (*)(IUnknown *, Arguments...);
    return reinterpret_cast<Method>((*reinterpret_cast<void ***>(object))[slot])(object, arguments...);
}

static void private_data(IUnknown *object, Own &own)
{
    const GUID key = {1, 2, 3, {4, 5, 6, 7, 8, 9, 10, 11}};
    const int get = 3, set = 4, set_interface = 5; // of ID3D12Object and of IDMLObject
    UINT size = 77;
    char bytes[16] = {};
    void *found = nullptr;
    auto probe = [&](void *data) { return call<HRESULT>(object, get, &key, &size, data); };
    EXPECT(probe(nullptr) == DXGI_ERROR_NOT_FOUND && size == 0);
    EXPECT(call<HRESULT>(object, set, &key, 0u, nullptr) == S_FALSE); // nothing to remove
    EXPECT(call<HRESULT>(object, set, &key, 6u, nullptr) == S_FALSE);
    EXPECT(call<HRESULT>(object, set, &key, 6u, "bytes") == S_OK);
    EXPECT(probe(nullptr) == S_OK && size == 6);
    size = 5;
    EXPECT(probe(bytes) == DXGI_ERROR_MORE_DATA && size == 6 && bytes[0] == 0);
    size = sizeof bytes;
    EXPECT(probe(bytes) == S_OK && size == 6 && std::strcmp(bytes, "bytes") == 0);

    EXPECT(call<HRESULT>(object, set_interface, &key, &own) == S_OK && own.count == 2);
    EXPECT(call<HRESULT>(object, set_interface, &key, &own) == S_OK && own.count == 2);
    EXPECT(probe(nullptr) == S_OK && size == sizeof found && own.count == 2);
    EXPECT(probe(&found) == S_OK && found == &own && own.count == 3);
    own.Release();
    size = 4;
    EXPECT(probe(&found) == DXGI_ERROR_MORE_DATA && size == 8 && own.count == 2);
    EXPECT(call<HRESULT>(object, set, &key, 0u, nullptr) == S_OK && own.count == 1);
    EXPECT(probe(nullptr) == DXGI_ERROR_NOT_FOUND);
    EXPECT(call<HRESULT>(object, set_interface, &key, &own) == S_OK && own.count == 2); // until the last Release
}

// Of every kind of object.
static void every_kind(Gpu &gpu, Own &own)
{
    ComPtr<ID3D12Heap> heap;
    const D3D12_HEAP_DESC heap_desc = {65536, {D3D12_HEAP_TYPE_DEFAULT, {}, {}, 0, 0}, 0, D3D12_HEAP_FLAG_NONE};
    CHECK(gpu.device->CreateHeap(&heap_desc, IID_PPV_ARGS(&heap)));
    ComPtr<ID3D12QueryHeap> queries;
    const D3D12_QUERY_HEAP_DESC query_desc = {D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 1, 0};
    CHECK(gpu.device->CreateQueryHeap(&query_desc, IID_PPV_ARGS(&queries)));
    ComPtr<ID3D12Resource> buffer = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);

    const UINT sizes[] = {1, 1, 1, 4};
    const DML_BUFFER_TENSOR_DESC tensor = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, 16, 0};
    const DML_TENSOR_DESC typed = {DML_TENSOR_TYPE_BUFFER, &tensor};
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC identity = {&typed, &typed, nullptr};
    const DML_OPERATOR_DESC desc = {DML_OPERATOR_ELEMENT_WISE_IDENTITY, &identity};
    ComPtr<IDMLOperator> op;
    ComPtr<IDMLCompiledOperator> compiled;
    ComPtr<IDMLOperatorInitializer> initializer;
    ComPtr<IDMLBindingTable> table;
    CHECK(gpu.dml->CreateOperator(&desc, IID_PPV_ARGS(&op)));
    CHECK(gpu.dml->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
    CHECK(gpu.dml->CreateOperatorInitializer(0, nullptr, IID_PPV_ARGS(&initializer)));
    CHECK(gpu.dml->CreateBindingTable(nullptr, IID_PPV_ARGS(&table)));
    IDMLCompiledOperator *one[] = {compiled.Get()};
    CHECK(initializer->Reset(1, one));

    IUnknown *const objects[] = {gpu.device.Get(), gpu.queue.Get(),  gpu.allocator.Get(), gpu.list.Get(),
                                 gpu.fence.Get(),  heap.Get(),       buffer.Get(),        gpu.descriptors.Get(),
                                 queries.Get(),    gpu.dml.Get(),    op.Get(),            compiled.Get(),
                                 table.Get(),      initializer.Get(), gpu.recorder.Get()};
    for (IUnknown *each : objects) {
        private_data(each, own);
        own.count = 1;
    }
    own.count = 100;
    buffer.Reset();
    EXPECT(own.count == 99);
}

static void resources(Gpu &gpu)
{
    ComPtr<ID3D12Device10> device;
    CHECK(gpu.device.As(&device));
    const D3D12_HEAP_PROPERTIES normal = {D3D12_HEAP_TYPE_DEFAULT, {}, {}, 0, 0};
    const D3D12_RESOURCE_DESC plain = buffer_desc(256, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
    D3D12_RESOURCE_DESC1 desc = {};
    std::memcpy(&desc, &plain, offsetof(D3D12_RESOURCE_DESC1, SamplerFeedbackMipRegion));
    const D3D12_HEAP_DESC heap_desc = {131072, normal, 0, D3D12_HEAP_FLAG_NONE};
    ComPtr<ID3D12Heap> heap;
    CHECK(device->CreateHeap1(&heap_desc, nullptr, IID_PPV_ARGS(&heap)));
    const D3D12_BARRIER_LAYOUT none = D3D12_BARRIER_LAYOUT_UNDEFINED;
    const D3D12_RESOURCE_STATES common = D3D12_RESOURCE_STATE_COMMON;
    const D3D12_HEAP_FLAGS flags = D3D12_HEAP_FLAG_NONE;

    ComPtr<ID3D12Resource2> made[8];
    CHECK(device->CreateCommittedResource1(&normal, flags, &plain, common, nullptr, nullptr, IID_PPV_ARGS(&made[0])));
    CHECK(device->CreateCommittedResource2(&normal, flags, &desc, common, nullptr, nullptr, IID_PPV_ARGS(&made[1])));
    CHECK(device->CreateCommittedResource3(&normal, flags, &desc, none, nullptr, nullptr, 0, nullptr,
                                           IID_PPV_ARGS(&made[2])));
    CHECK(device->CreatePlacedResource1(heap.Get(), 0, &desc, common, nullptr, IID_PPV_ARGS(&made[3])));
    CHECK(device->CreatePlacedResource2(heap.Get(), 65536, &desc, none, nullptr, 0, nullptr, IID_PPV_ARGS(&made[4])));
    CHECK(device->CreateReservedResource1(&plain, common, nullptr, nullptr, IID_PPV_ARGS(&made[5])));
    CHECK(device->CreateReservedResource2(&plain, none, nullptr, nullptr, 0, nullptr, IID_PPV_ARGS(&made[6])));
    made[7] = made[0];
    for (const ComPtr<ID3D12Resource2> &each : made) {
        const D3D12_RESOURCE_DESC1 found = each->GetDesc1();
        EXPECT(found.Width == 256 && found.Flags == plain.Flags && found.SamplerFeedbackMipRegion.Width == 0);
    }

    void *out = &gpu;
    desc.SamplerFeedbackMipRegion.Width = 4;
    EXPECT(device->CreateCommittedResource2(&normal, flags, &desc, common, nullptr, nullptr, __uuidof(ID3D12Resource),
                                            &out) == E_INVALIDARG);
    EXPECT(out == nullptr);
    out = &gpu;
    EXPECT(device->CreatePlacedResource(nullptr, 0, &plain, common, nullptr, __uuidof(ID3D12Resource), &out) ==
           E_INVALIDARG);
    EXPECT(out == nullptr);
    out = &gpu;
    EXPECT(device->OpenExistingHeapFromAddress(&desc, __uuidof(ID3D12Heap), &out) == E_NOTIMPL && out == nullptr);

    const D3D12_RESOURCE_DESC several[] = {plain, buffer_desc(65537, D3D12_RESOURCE_FLAG_NONE)};
    D3D12_RESOURCE_ALLOCATION_INFO1 places[2] = {};
    const D3D12_RESOURCE_ALLOCATION_INFO info = device->GetResourceAllocationInfo1(0, 2, several, places);
    EXPECT(info.SizeInBytes == 196608 && places[1].Offset == 65536 && places[1].SizeInBytes == 131072);
}

static void settings(Gpu &gpu)
{
    ComPtr<ID3D12Device9> device;
    CHECK(gpu.device.As(&device));
    CHECK(device->SetStablePowerState(TRUE));
    const int event = eventfd(0, EFD_NONBLOCK);
    BOOL further = TRUE;
    CHECK(device->SetBackgroundProcessingMode(D3D12_BACKGROUND_PROCESSING_MODE_ALLOWED,
                                              D3D12_MEASUREMENTS_ACTION_COMMIT_RESULTS,
                                              reinterpret_cast<HANDLE>(static_cast<intptr_t>(event)), &further));
    eventfd_t value = 0;
    EXPECT(eventfd_read(event, &value) == 0 && value == 1 && further == FALSE);
    close(event);
    CHECK(device->ShaderCacheControl(D3D12_SHADER_CACHE_KIND_FLAG_IMPLICIT_DRIVER_MANAGED,
                                     D3D12_SHADER_CACHE_CONTROL_FLAG_DISABLE));
    ID3D12Pageable *objects[] = {gpu.descriptors.Get()};
    const D3D12_RESIDENCY_PRIORITY priority = D3D12_RESIDENCY_PRIORITY_HIGH;
    CHECK(device->SetResidencyPriority(1, objects, &priority));
    CHECK(device->EnqueueMakeResident(D3D12_RESIDENCY_FLAG_NONE, 1, objects, gpu.fence.Get(), ++gpu.value));
    EXPECT(gpu.fence->GetCompletedValue() == gpu.value);
    const D3D12_COMMAND_QUEUE_DESC desc = {D3D12_COMMAND_LIST_TYPE_COMPUTE, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
    ComPtr<ID3D12CommandQueue> queue;
    CHECK(device->CreateCommandQueue1(&desc, device14, IID_PPV_ARGS(&queue)));

    const D3D_FEATURE_LEVEL levels[] = {static_cast<D3D_FEATURE_LEVEL>(0x100), static_cast<D3D_FEATURE_LEVEL>(0x1000),
                                        D3D_FEATURE_LEVEL_11_0};
    D3D12_FEATURE_DATA_FEATURE_LEVELS asked = {2, levels, {}};
    CHECK(device->CheckFeatureSupport(D3D12_FEATURE_FEATURE_LEVELS, &asked, sizeof asked));
    EXPECT(asked.MaxSupportedFeatureLevel == 0x1000);
    ComPtr<ID3D12Device9> core;
    CHECK(D3D12CreateDevice(nullptr, static_cast<D3D_FEATURE_LEVEL>(0x1000), IID_PPV_ARGS(&core)));
    EXPECT(core.Get() == device.Get());
    EXPECT(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_12_2, IID_PPV_ARGS(&core)) == DXGI_ERROR_UNSUPPORTED);
}

static void versions(Gpu &gpu)
{
    ComPtr<IUnknown> newest, list;
    CHECK(gpu.device->QueryInterface(device14, &newest));
    CHECK(gpu.list->QueryInterface(list10, &list));
    EXPECT(newest.Get() == gpu.device.Get() && list.Get() == gpu.list.Get());
    void *out = &gpu;
    const int subobject = 82; // CreateRootSignatureFromSubobjectInLibrary, the last slot
    EXPECT(call<HRESULT>(newest.Get(), subobject, 0u, nullptr, SIZE_T(0), nullptr, &device14, &out) == E_NOTIMPL);
    EXPECT(out == nullptr);
    const int dispatch_graph = 85; // the last slot, without a result
    call<void>(list.Get(), dispatch_graph, nullptr);

    const IID nowhere[] = {__uuidof(ID3D12SharingContract), __uuidof(ID3D12DeviceRemovedExtendedData),
                           __uuidof(ID3D12RootSignature),   __uuidof(ID3D12PipelineState),
                           __uuidof(ID3D12LifetimeTracker), __uuidof(ID3D12Tools)};
    IUnknown *const objects[] = {gpu.device.Get(), gpu.queue.Get(), gpu.list.Get(), gpu.dml.Get()};
    for (const IID &iid : nowhere) {
        for (IUnknown *each : objects) {
            out = &gpu;
            EXPECT(each->QueryInterface(iid, &out) == E_NOINTERFACE && out == nullptr);
        }
        out = &gpu;
        EXPECT(D3D12GetDebugInterface(iid, &out) == E_NOINTERFACE && out == nullptr);
    }
    ComPtr<ID3D12Pageable> pageable;
    CHECK(gpu.queue.As(&pageable));
}

int main()
{
    Own own;
    {
        Gpu gpu;
        every_kind(gpu, own);
        resources(gpu);
        settings(gpu);
        versions(gpu);
    }
    std::printf("done, %d left\n", static_cast<int>(own.count));
}
