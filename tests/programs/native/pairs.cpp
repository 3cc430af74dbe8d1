// Creates and releases each kind of object many times; names the kinds that keep memory, or whose count does not end at 0.
//
//     memory TIMES

#include "program.h"

#include <directx/dxcore_interface.h>

#include <functional>
#include <unistd.h>

extern "C" HRESULT DXCoreCreateAdapterFactory(REFIID riid, void **factory);

static const GUID core_compute = {0x248e2800, 0xa793, 0x4724, {0xab, 0xaa, 0x23, 0xa6, 0xde, 0x1b, 0xe0, 0x90}};

static long resident()
{
    long pages = 0;
    std::FILE *file = std::fopen("/proc/self/statm", "r");
    if (std::fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    std::fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

// The last reference of something just made.
template <typename T> static void last(T *made)
{
    if (made == nullptr || made->Release() != 0) {
        std::puts("an object has another reference, or is none");
        std::exit(2);
    }
}

static void repeat(const char *name, int times, const std::function<void()> &make)
{
    for (int i = 0; i < times / 4; i++)
        make();
    const long before = resident();
    for (int i = 0; i < times; i++)
        make();
    const long grown = resident() - before;
    if (grown > 4 << 20)
        std::printf("%s: %ld KiB more after %d\n", name, grown >> 10, times);
}

int main(int, char **arguments)
{
    const int times = std::atoi(arguments[1]);
    const D3D12_COMMAND_LIST_TYPE direct = D3D12_COMMAND_LIST_TYPE_DIRECT;
    Gpu gpu;
    ComPtr<IDMLCompiledOperator> identity = gpu.identity({1, 1, 1, 16}, {2.0f, 1.0f});
    ComPtr<ID3D12Heap> heap;
    const D3D12_HEAP_DESC heap_desc = {1 << 20, {D3D12_HEAP_TYPE_DEFAULT, D3D12_CPU_PAGE_PROPERTY_UNKNOWN,
                                                 D3D12_MEMORY_POOL_UNKNOWN, 0, 0}, 0, D3D12_HEAP_FLAG_ALLOW_ONLY_BUFFERS};
    CHECK(gpu.device->CreateHeap(&heap_desc, IID_PPV_ARGS(&heap)));
    ComPtr<IDXCoreAdapterFactory> factory;
    CHECK(DXCoreCreateAdapterFactory(IID_PPV_ARGS(&factory)));

    repeat("queue", times, [&] {
        ID3D12CommandQueue *made = nullptr;
        const D3D12_COMMAND_QUEUE_DESC desc = {direct, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
        CHECK(gpu.device->CreateCommandQueue(&desc, IID_PPV_ARGS(&made)));
        last(made);
    });
    repeat("allocator and list", times, [&] {
        ID3D12CommandAllocator *allocator = nullptr;
        ID3D12GraphicsCommandList *list = nullptr;
        CHECK(gpu.device->CreateCommandAllocator(direct, IID_PPV_ARGS(&allocator)));
        CHECK(gpu.device->CreateCommandList(0, direct, allocator, nullptr, IID_PPV_ARGS(&list)));
        list->CopyBufferRegion(nullptr, 0, nullptr, 0, 0);
        last(list);
        last(allocator);
    });
    repeat("fence, with private data, a name and other interfaces", times, [&] {
        ID3D12Fence *made = nullptr;
        CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&made)));
        CHECK(made->SetPrivateData(__uuidof(ID3D12Fence), 8, &made));
        CHECK(made->SetPrivateDataInterface(__uuidof(ID3D12Heap), heap.Get()));
        CHECK(made->SetName(L"fence"));
        ComPtr<ID3D12Device> device;
        CHECK(made->GetDevice(IID_PPV_ARGS(&device)));
        ComPtr<IDMLOperator> none;
        made->QueryInterface(IID_PPV_ARGS(&none));
        last(made);
    });
    repeat("heap", times, [&] {
        ID3D12Heap *made = nullptr;
        CHECK(gpu.device->CreateHeap(&heap_desc, IID_PPV_ARGS(&made)));
        last(made);
    });
    const D3D12_RESOURCE_DESC desc = buffer_desc(65536, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
    repeat("placed buffer", times, [&] {
        ID3D12Resource *made = nullptr;
        CHECK(gpu.device->CreatePlacedResource(heap.Get(), 65536, &desc, D3D12_RESOURCE_STATE_COMMON, nullptr,
                                               IID_PPV_ARGS(&made)));
        last(made);
    });
    repeat("reserved buffer", times, [&] {
        ID3D12Resource *made = nullptr;
        CHECK(gpu.device->CreateReservedResource(&desc, D3D12_RESOURCE_STATE_COMMON, nullptr, IID_PPV_ARGS(&made)));
        last(made);
    });
    repeat("committed buffer, mapped", times, [&] {
        ID3D12Resource *made = gpu.committed(D3D12_HEAP_TYPE_UPLOAD, 65536, D3D12_RESOURCE_FLAG_NONE,
                                             D3D12_RESOURCE_STATE_GENERIC_READ).Detach();
        void *memory = nullptr;
        CHECK(made->Map(0, nullptr, &memory));
        std::memset(memory, 1, 65536);
        made->Unmap(0, nullptr);
        last(made);
    });
    repeat("descriptor heap and view", times, [&] {
        ID3D12DescriptorHeap *made = nullptr;
        const D3D12_DESCRIPTOR_HEAP_DESC heap = {D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, 64,
                                                 D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, 0};
        CHECK(gpu.device->CreateDescriptorHeap(&heap, IID_PPV_ARGS(&made)));
        last(made);
    });
    repeat("query heap", times, [&] {
        ID3D12QueryHeap *made = nullptr;
        const D3D12_QUERY_HEAP_DESC heap = {D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 8, 0};
        CHECK(gpu.device->CreateQueryHeap(&heap, IID_PPV_ARGS(&made)));
        last(made);
    });
    repeat("recorder", times, [&] {
        IDMLCommandRecorder *made = nullptr;
        CHECK(gpu.dml->CreateCommandRecorder(IID_PPV_ARGS(&made)));
        last(made);
    });
    repeat("operator, compiled operator, initializer", times, [&] {
        const UINT sizes[] = {1, 1, 1, 16};
        DML_BUFFER_TENSOR_DESC buffer = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, 64, 0};
        DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
        DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC fields = {&tensor, &tensor, nullptr};
        DML_OPERATOR_DESC described = {DML_OPERATOR_ELEMENT_WISE_IDENTITY, &fields};
        IDMLOperator *op = nullptr;
        IDMLCompiledOperator *compiled = nullptr;
        IDMLOperatorInitializer *initializer = nullptr;
        CHECK(gpu.dml->CreateOperator(&described, IID_PPV_ARGS(&op)));
        CHECK(gpu.dml->CompileOperator(op, DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
        CHECK(gpu.dml->CreateOperatorInitializer(1, &compiled, IID_PPV_ARGS(&initializer)));
        last(initializer);
        last(compiled);
        last(op);
    });
    repeat("binding table", times, [&] {
        gpu.used = 0;
        IDMLBindingTable *made = gpu.table(identity.Get(), identity->GetBindingProperties()).Detach();
        last(made);
    });
    repeat("adapter list", times, [&] {
        IDXCoreAdapterList *made = nullptr;
        CHECK(factory->CreateAdapterList(1, &core_compute, IID_PPV_ARGS(&made)));
        last(made);
    });
    std::puts("done");
}
