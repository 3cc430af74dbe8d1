// What torch_directml does: a compute queue, buffers of tiles, one initializer for all operators, and a thread that
// waits for each submission, often before it is there.

#include "operators.h"

#include <chrono>
#include <thread>

static const UINT64 TILES = 65536;

// A device whose queue and list are of type COMPUTE; the list is closed and reset before its first command.
static void use_compute(Gpu &gpu)
{
    const D3D12_COMMAND_LIST_TYPE compute = D3D12_COMMAND_LIST_TYPE_COMPUTE;
    const D3D12_COMMAND_QUEUE_DESC desc = {compute, 0, D3D12_COMMAND_QUEUE_FLAG_DISABLE_GPU_TIMEOUT, 0};
    CHECK(gpu.device->CreateCommandQueue(&desc, IID_PPV_ARGS(&gpu.queue)));
    CHECK(gpu.device->CreateCommandAllocator(compute, IID_PPV_ARGS(&gpu.allocator)));
    CHECK(gpu.device->CreateCommandList(0, compute, gpu.allocator.Get(), nullptr, IID_PPV_ARGS(&gpu.list)));
    CHECK(gpu.list->Close());
    CHECK(gpu.list->Reset(gpu.allocator.Get(), nullptr));
    D3D12_FEATURE_DATA_D3D12_OPTIONS options = {};
    CHECK(gpu.device->CheckFeatureSupport(D3D12_FEATURE_D3D12_OPTIONS, &options, sizeof options));
    std::printf("tier %d\n", options.TiledResourcesTier);
}

// A buffer of one tile of a heap of its own, with eight floats, in state UNORDERED_ACCESS.
static ComPtr<ID3D12Resource> tiled(Gpu &gpu, ComPtr<ID3D12Heap> &heap, float first)
{
    D3D12_HEAP_DESC heap_desc = {};
    heap_desc.SizeInBytes = TILES;
    heap_desc.Properties.Type = D3D12_HEAP_TYPE_DEFAULT;
    heap_desc.Flags = D3D12_HEAP_FLAG_ALLOW_ONLY_BUFFERS;
    CHECK(gpu.device->CreateHeap(&heap_desc, IID_PPV_ARGS(&heap)));
    const D3D12_RESOURCE_DESC desc = buffer_desc(TILES, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
    ComPtr<ID3D12Resource> made;
    CHECK(gpu.device->CreateReservedResource(&desc, D3D12_RESOURCE_STATE_COMMON, nullptr, IID_PPV_ARGS(&made)));
    const D3D12_TILED_RESOURCE_COORDINATE start = {};
    const D3D12_TILE_REGION_SIZE size = {1, FALSE, 0, 0, 0};
    const D3D12_TILE_RANGE_FLAGS flags = D3D12_TILE_RANGE_FLAG_NONE;
    const UINT offset = 0, count = 1;
    gpu.queue->UpdateTileMappings(made.Get(), 1, &start, &size, heap.Get(), 1, &flags, &offset, &count,
                                  D3D12_TILE_MAPPING_FLAG_NONE);
    float values[8];
    for (int i = 0; i < 8; i++)
        values[i] = first + static_cast<float>(i);
    ComPtr<ID3D12Resource> staging = gpu.upload(values, sizeof values);
    gpu.transition(staging.Get(), D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATE_COPY_SOURCE);
    gpu.list->CopyBufferRegion(made.Get(), 0, staging.Get(), 0, sizeof values);
    gpu.transition(made.Get(), D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    gpu.kept.push_back(staging);
    return made;
}

// y = x + y: the operator is initialized by the one initializer.
static void add(Gpu &gpu, IDMLOperatorInitializer *initializer, ID3D12Resource *x, ID3D12Resource *y)
{
    const Tensor tensor(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 1, 8});
    const DML_ELEMENT_WISE_ADD1_OPERATOR_DESC desc = {&tensor, &tensor, &tensor, nullptr};
    ComPtr<IDMLCompiledOperator> compiled = compile(gpu, DML_OPERATOR_ELEMENT_WISE_ADD1, &desc);
    IDMLCompiledOperator *operators[] = {compiled.Get()};
    CHECK(initializer->Reset(1, operators));
    ComPtr<IDMLBindingTable> table = gpu.table(initializer, initializer->GetBindingProperties());
    gpu.record(initializer, table.Get());
    gpu.kept.push_back(table);
    gpu.kept.push_back(compiled);
    gpu.dispatch(compiled.Get(), {{x, 0, 32}, {y, 0, 32}}, {{y, 0, 32}});
}

// Submits what is recorded, while a thread waits for its end already and signals another fence then.
static void submit_awaited(Gpu &gpu, ID3D12Fence *done)
{
    std::thread waiter([&gpu, done, value = gpu.value + 1] {
        CHECK(gpu.fence->SetEventOnCompletion(value, nullptr));
        CHECK(done->Signal(value));
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(gpu.list->Close());
    ID3D12CommandList *lists[] = {gpu.list.Get()};
    gpu.queue->ExecuteCommandLists(1, lists);
    CHECK(gpu.queue->Signal(gpu.fence.Get(), ++gpu.value));
    CHECK(done->SetEventOnCompletion(gpu.value, nullptr));
    waiter.join();
    gpu.reopen();
}

// What both plugins ask of the same objects for each operator.
static void ask_often(Gpu &gpu, ID3D12Resource *buffer, IDMLDispatchable *dispatchable)
{
    const SIZE_T cpu = gpu.descriptors->GetCPUDescriptorHandleForHeapStart().ptr;
    const UINT64 address = gpu.descriptors->GetGPUDescriptorHandleForHeapStart().ptr;
    const UINT descriptors = dispatchable->GetBindingProperties().RequiredDescriptorCount;
    const UINT64 place = buffer->GetGPUVirtualAddress();
    int same = 0;
    for (int i = 0; i < 5000; i++)
        same += buffer->GetDesc().Width == TILES && buffer->GetGPUVirtualAddress() == place &&
                gpu.descriptors->GetDesc().NumDescriptors == 64 &&
                gpu.descriptors->GetCPUDescriptorHandleForHeapStart().ptr == cpu &&
                gpu.descriptors->GetGPUDescriptorHandleForHeapStart().ptr == address &&
                gpu.queue->GetDesc().Type == D3D12_COMMAND_LIST_TYPE_COMPUTE &&
                dispatchable->GetBindingProperties().RequiredDescriptorCount == descriptors &&
                gpu.device->GetDeviceRemovedReason() == S_OK && gpu.dml->GetDeviceRemovedReason() == S_OK;
    std::printf("%d of 5000\n", same);
}

void torch()
{
    Gpu gpu;
    use_compute(gpu);
    ComPtr<IDMLOperatorInitializer> initializer;
    CHECK(gpu.dml->CreateOperatorInitializer(0, nullptr, IID_PPV_ARGS(&initializer)));
    ComPtr<ID3D12Fence> done;
    CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&done)));
    ComPtr<ID3D12Heap> heaps[2];
    ComPtr<ID3D12Resource> x = tiled(gpu, heaps[0], 1.0f), y = tiled(gpu, heaps[1], 0.5f);
    submit_awaited(gpu, done.Get());
    for (int i = 0; i < 4; i++) {
        add(gpu, initializer.Get(), i % 2 == 0 ? x.Get() : y.Get(), i % 2 == 0 ? y.Get() : x.Get());
        submit_awaited(gpu, done.Get());
    }
    gpu.print(x.Get(), 32);
    gpu.print(y.Get(), 32);
    ask_often(gpu, x.Get(), initializer.Get());
}
