// What a C++ compiler makes of the installed headers, beside the table of interfaces; COM's rules of identity.
//
//     abi SEED

#include "program.h"

#include <directx/d3d12sdklayers.h>
#include <directx/dxcore_interface.h>
#include <dxgi1_6.h>

#include "abi_table.h" // slots and IIDs, made from the table

#include <map>
#include <new>
#include <random>

extern "C" HRESULT DXCoreCreateAdapterFactory(REFIID riid, void **factory);

static const GUID core_compute = {0x248e2800, 0xa793, 0x4724, {0xab, 0xaa, 0x23, 0xa6, 0xde, 0x1b, 0xe0, 0x90}};

#define EXPECT(condition) \
    do { \
        if (!(condition)) \
            std::printf("line %d: %s\n", __LINE__, #condition); \
    } while (0)

// --- structs by value: nothing beside them is written ---

template <typename T> struct Guarded {
    uint64_t before[4];
    alignas(8) unsigned char value[sizeof(T)];
    unsigned char after[32];

    Guarded() { std::memset(static_cast<void *>(this), 0xA5, sizeof *this); }
    bool is_whole() const
    {
        unsigned char guard[32];
        std::memset(guard, 0xA5, sizeof guard);
        return std::memcmp(before, guard, 32) == 0 && std::memcmp(after, guard, 32) == 0;
    }
};

#define RETURNS(type, call, condition) \
    do { \
        Guarded<type> guarded; \
        const type &found = *new (guarded.value) type(call); \
        EXPECT(guarded.is_whole() && (condition)); \
    } while (0)

static void return_structs(Gpu &gpu, ID3D12Heap *heap, ID3D12Resource2 *buffer, IDMLCompiledOperator *compiled)
{
    const D3D12_RESOURCE_DESC desc = buffer_desc(4096, D3D12_RESOURCE_FLAG_NONE);
    for (int i = 0; i < 2; i++) { // asked, and kept
        RETURNS(LUID, gpu.device->GetAdapterLuid(), found.LowPart != 0 || found.HighPart != 0);
        RETURNS(D3D12_COMMAND_QUEUE_DESC, gpu.queue->GetDesc(), found.NodeMask == 1);
        RETURNS(D3D12_DESCRIPTOR_HEAP_DESC, gpu.descriptors->GetDesc(), found.NumDescriptors == 64);
        RETURNS(D3D12_CPU_DESCRIPTOR_HANDLE, gpu.descriptors->GetCPUDescriptorHandleForHeapStart(), found.ptr != 0);
        RETURNS(D3D12_GPU_DESCRIPTOR_HANDLE, gpu.descriptors->GetGPUDescriptorHandleForHeapStart(), found.ptr != 0);
        RETURNS(D3D12_RESOURCE_ALLOCATION_INFO, gpu.device->GetResourceAllocationInfo(0, 1, &desc),
                found.SizeInBytes == 65536 && found.Alignment == 65536);
        RETURNS(D3D12_HEAP_PROPERTIES, gpu.device->GetCustomHeapProperties(0, D3D12_HEAP_TYPE_READBACK),
                found.Type == D3D12_HEAP_TYPE_CUSTOM && found.VisibleNodeMask == 1);
        RETURNS(D3D12_HEAP_DESC, heap->GetDesc(), found.SizeInBytes == 65536 && found.Flags == 0xC0);
        RETURNS(D3D12_RESOURCE_DESC, buffer->GetDesc(), found.Width == 4096 && found.Flags == 4);
        RETURNS(D3D12_RESOURCE_DESC1, buffer->GetDesc1(),
                found.Width == 4096 && found.SamplerFeedbackMipRegion.Depth == 0);
        RETURNS(DML_BINDING_PROPERTIES, compiled->GetBindingProperties(),
                found.RequiredDescriptorCount == 2 && found.PersistentResourceSize == 0);
    }
}

// --- identity ---

struct Known {
    ComPtr<IUnknown> object; // as the IUnknown that QueryInterface gives
    std::map<size_t, void *> found; // by interface; NULL: it has none
};

static ULONG counted(IUnknown *object)
{
    object->AddRef();
    return object->Release();
}

// From any interface of an object to any other: always the same pointer, or never one.
static void walk(Known &known, std::mt19937 &generator, int steps)
{
    ComPtr<IUnknown> at = known.object;
    std::vector<int> rest;
    for (int i = 0; i < steps; i++) {
        const size_t wanted = generator() % (sizeof iids / sizeof *iids);
        ComPtr<IUnknown> next, same;
        const HRESULT result = at->QueryInterface(*iids[wanted].iid, reinterpret_cast<void **>(next.GetAddressOf()));
        EXPECT(result == S_OK ? next != nullptr : result == E_NOINTERFACE && next == nullptr);
        const auto [entry, is_new] = known.found.insert({wanted, next.Get()});
        if (!is_new && entry->second != next.Get())
            std::printf("%s has two addresses\n", iids[wanted].name);
        if (next == nullptr)
            continue;
        EXPECT(next->QueryInterface(__uuidof(IUnknown), reinterpret_cast<void **>(same.GetAddressOf())) == S_OK);
        EXPECT(same == known.object);
        at = next;
    }
}

// A version that is there has all its bases.
static void check_bases(const Known &known)
{
    for (size_t i = 0; i < sizeof iids / sizeof *iids; i++) {
        const auto found = known.found.find(i), base = known.found.find(iids[i].base);
        if (found != known.found.end() && found->second != nullptr && base != known.found.end())
            EXPECT(base->second == (iids[i].base == UNKNOWN ? known.object.Get() : found->second));
    }
}

int main(int, char **arguments)
{
    check_slots();
    ComPtr<ID3D12Debug> debug;
    CHECK(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)));
    debug->EnableDebugLayer();
    Gpu gpu;
    ComPtr<IDMLDevice> device;
    CHECK(DMLCreateDevice(gpu.device.Get(), DML_CREATE_DEVICE_FLAG_DEBUG, IID_PPV_ARGS(&device)));
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 1, 1, 16}, {2.0f, 1.0f});
    ComPtr<IDMLOperatorInitializer> initializer;
    IDMLCompiledOperator *operators[] = {compiled.Get()};
    CHECK(gpu.dml->CreateOperatorInitializer(1, operators, IID_PPV_ARGS(&initializer)));
    ComPtr<IDMLBindingTable> table = gpu.table(compiled.Get(), compiled->GetBindingProperties());
    ComPtr<ID3D12Resource2> buffer;
    CHECK(gpu.buffer(4096, D3D12_RESOURCE_STATE_COMMON).As(&buffer));
    ComPtr<ID3D12Heap> heap;
    const D3D12_HEAP_DESC heap_desc = {65536, {D3D12_HEAP_TYPE_DEFAULT, D3D12_CPU_PAGE_PROPERTY_UNKNOWN,
                                               D3D12_MEMORY_POOL_UNKNOWN, 0, 0}, 0, static_cast<D3D12_HEAP_FLAGS>(0xC0)};
    CHECK(gpu.device->CreateHeap(&heap_desc, IID_PPV_ARGS(&heap)));
    ComPtr<ID3D12QueryHeap> queries;
    const D3D12_QUERY_HEAP_DESC query_desc = {D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 8, 0};
    CHECK(gpu.device->CreateQueryHeap(&query_desc, IID_PPV_ARGS(&queries)));
    ComPtr<IDXCoreAdapterFactory> factory;
    CHECK(DXCoreCreateAdapterFactory(IID_PPV_ARGS(&factory)));
    ComPtr<IDXCoreAdapterList> adapters;
    CHECK(factory->CreateAdapterList(1, &core_compute, IID_PPV_ARGS(&adapters)));
    ComPtr<IDXCoreAdapter> adapter;
    CHECK(adapters->GetAdapter(0, IID_PPV_ARGS(&adapter)));
    ComPtr<IDXGIFactory1> dxgi;
    CHECK(CreateDXGIFactory1(IID_PPV_ARGS(&dxgi)));
    ComPtr<IDXGIAdapter> dxgi_adapter;
    CHECK(dxgi->EnumAdapters(0, &dxgi_adapter));
    const UINT sizes[] = {1, 1, 1, 16};
    const DML_BUFFER_TENSOR_DESC tensor = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, 64, 0};
    const DML_TENSOR_DESC operand = {DML_TENSOR_TYPE_BUFFER, &tensor};
    const DML_ACTIVATION_RELU_OPERATOR_DESC fields = {&operand, &operand};
    const DML_OPERATOR_DESC relu = {DML_OPERATOR_ACTIVATION_RELU, &fields};
    ComPtr<IDMLOperator> op;
    CHECK(gpu.dml->CreateOperator(&relu, IID_PPV_ARGS(&op)));
    return_structs(gpu, heap.Get(), buffer.Get(), compiled.Get());

    std::mt19937 generator(static_cast<unsigned>(std::atoi(arguments[1])));
    const std::vector<IUnknown *> objects = {gpu.device.Get(),     device.Get(),          gpu.queue.Get(), gpu.list.Get(),
                                             gpu.allocator.Get(),  gpu.fence.Get(),       heap.Get(),      buffer.Get(),
                                             gpu.recorder.Get(),   gpu.descriptors.Get(), queries.Get(),   compiled.Get(),
                                             initializer.Get(),    table.Get(),           factory.Get(),   debug.Get(),
                                             adapters.Get(),       adapter.Get(),         dxgi.Get(),      dxgi_adapter.Get(),
                                             op.Get()};
    size_t found = 0;
    for (IUnknown *each : objects) {
        Known known;
        CHECK(each->QueryInterface(IID_PPV_ARGS(&known.object)));
        const ULONG before = counted(each);
        walk(known, generator, 1000);
        EXPECT(counted(each) == before);
        check_bases(known);
        for (const auto &[wanted, pointer] : known.found)
            found += pointer != nullptr;
    }
    std::printf("%s\n", found > 60 ? "done" : "few interfaces are found");
}
