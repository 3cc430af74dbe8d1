// Buffers that share memory: placed on a heap, reserved and mapped to tiles, and several views of one heap.

#include "operators.h"

static const UINT64 TILE = 65536;

static ComPtr<ID3D12Heap> make_heap(Gpu &gpu, UINT64 size, D3D12_HEAP_FLAGS flags)
{
    D3D12_HEAP_DESC desc = {};
    desc.SizeInBytes = size;
    desc.Properties.Type = D3D12_HEAP_TYPE_DEFAULT;
    desc.Flags = flags;
    ComPtr<ID3D12Heap> heap;
    CHECK(gpu.device->CreateHeap(&desc, IID_PPV_ARGS(&heap)));
    return heap;
}

static ComPtr<ID3D12Resource> place(Gpu &gpu, ID3D12Heap *heap, UINT64 offset, UINT64 size)
{
    const D3D12_RESOURCE_DESC desc = buffer_desc(size, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
    ComPtr<ID3D12Resource> made;
    CHECK(gpu.device->CreatePlacedResource(heap, offset, &desc, D3D12_RESOURCE_STATE_COMMON, nullptr, IID_PPV_ARGS(&made)));
    return made;
}

static void alias(Gpu &gpu, ID3D12Resource *before, ID3D12Resource *after)
{
    D3D12_RESOURCE_BARRIER barrier = {};
    barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_ALIASING;
    barrier.Aliasing = {before, after};
    gpu.list->ResourceBarrier(1, &barrier);
}

// A buffer in state COPY_DEST gets the floats first, first + 1, ...; it is in state UNORDERED_ACCESS then.
static void fill(Gpu &gpu, ID3D12Resource *buffer, UINT64 offset, int count, float first)
{
    ComPtr<ID3D12Resource> staging =
        gpu.committed(D3D12_HEAP_TYPE_UPLOAD, 4 * static_cast<UINT64>(count), D3D12_RESOURCE_FLAG_NONE,
                      D3D12_RESOURCE_STATE_GENERIC_READ);
    void *memory = nullptr;
    const D3D12_RANGE nothing = {0, 0};
    CHECK(staging->Map(0, &nothing, &memory));
    for (int i = 0; i < count; i++)
        static_cast<float *>(memory)[i] = first + static_cast<float>(i);
    staging->Unmap(0, nullptr);
    gpu.list->CopyBufferRegion(buffer, offset, staging.Get(), 0, 4 * static_cast<UINT64>(count));
    gpu.kept.push_back(staging);
}

// Two buffers side by side on a heap, then a third one in the memory of both.
static void placed_and_aliased(Gpu &gpu, IDMLCompiledOperator *compiled)
{
    ComPtr<ID3D12Heap> heap = make_heap(gpu, 2 * TILE, D3D12_HEAP_FLAG_ALLOW_ONLY_BUFFERS);
    ComPtr<ID3D12Resource> first = place(gpu, heap.Get(), 0, TILE);
    ComPtr<ID3D12Resource> second = place(gpu, heap.Get(), TILE, TILE);
    ComPtr<ID3D12Resource> both = place(gpu, heap.Get(), 0, 2 * TILE);
    heap.Reset(); // its buffers keep it
    fill(gpu, first.Get(), 0, 16, 1.0f);
    gpu.transition(first.Get(), D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    gpu.dispatch(compiled, {{first.Get(), 0, 64}}, {{second.Get(), 1024, 64}});
    const std::vector<uint32_t> words = gpu.read(second.Get(), 1024 + 64);
    std::printf("%08x %08x\n", words[256], words[271]);

    alias(gpu, nullptr, both.Get());
    fill(gpu, both.Get(), TILE - 32, 16, 100.0f); // what the others held is lost
    gpu.transition(both.Get(), D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    gpu.dispatch(compiled, {{both.Get(), TILE - 32, 64}}, {{both.Get(), 0, 64}});
    gpu.print(both.Get(), 64);
}

static void map_tiles(Gpu &gpu, ID3D12Resource *reserved, UINT first, UINT count, ID3D12Heap *heap, UINT offset)
{
    const D3D12_TILED_RESOURCE_COORDINATE start = {first, 0, 0, 0};
    D3D12_TILE_REGION_SIZE size = {};
    size.NumTiles = count;
    const D3D12_TILE_RANGE_FLAGS flags = D3D12_TILE_RANGE_FLAG_NONE;
    gpu.queue->UpdateTileMappings(reserved, 1, &start, &size, heap, 1, &flags, &offset, &count,
                                  D3D12_TILE_MAPPING_FLAG_NONE);
}

// Two reserved buffers: the second one sees the tiles of the first in another order.
static void reserved(Gpu &gpu, IDMLCompiledOperator *compiled)
{
    ComPtr<ID3D12Heap> heap = make_heap(gpu, 3 * TILE, D3D12_HEAP_FLAG_ALLOW_ONLY_BUFFERS);
    const D3D12_RESOURCE_DESC desc = buffer_desc(2 * TILE, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
    ComPtr<ID3D12Resource> buffers[2];
    for (ComPtr<ID3D12Resource> &each : buffers)
        CHECK(gpu.device->CreateReservedResource(&desc, D3D12_RESOURCE_STATE_COMMON, nullptr, IID_PPV_ARGS(&each)));
    map_tiles(gpu, buffers[0].Get(), 0, 2, heap.Get(), 1); // tiles 1 and 2 of the heap
    map_tiles(gpu, buffers[1].Get(), 0, 1, heap.Get(), 2);
    map_tiles(gpu, buffers[1].Get(), 1, 1, heap.Get(), 0);
    fill(gpu, buffers[0].Get(), TILE - 64, 32, -8.0f);
    gpu.transition(buffers[0].Get(), D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    gpu.dispatch(compiled, {{buffers[0].Get(), TILE - 32, 64}}, {{buffers[0].Get(), TILE + 256, 64}});
    gpu.run();
    alias(gpu, buffers[0].Get(), buffers[1].Get());
    gpu.transition(buffers[1].Get(), D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    gpu.dispatch(compiled, {{buffers[1].Get(), 256, 64}}, {{buffers[1].Get(), TILE, 64}});
    const std::vector<uint32_t> words = gpu.read(buffers[1].Get(), TILE + 64);
    std::printf("%08x %08x %08x %08x\n", words[0], words[64], words[TILE / 4], words[TILE / 4 + 15]);
}

// As TensorFlow allocates: three buffers over one heap, each for ever in the state of one use.
static void three_views(Gpu &gpu, IDMLCompiledOperator *compiled)
{
    ComPtr<ID3D12Heap> heap = make_heap(
        gpu, 2 << 20, D3D12_HEAP_FLAG_DENY_RT_DS_TEXTURES | D3D12_HEAP_FLAG_DENY_NON_RT_DS_TEXTURES);
    ComPtr<ID3D12Resource> used = place(gpu, heap.Get(), 0, 2 << 20);
    ComPtr<ID3D12Resource> source = place(gpu, heap.Get(), 0, 2 << 20);
    ComPtr<ID3D12Resource> target = place(gpu, heap.Get(), 0, 2 << 20);
    const auto separate = [&gpu] { // between two uses of any view
        D3D12_RESOURCE_BARRIER barriers[2] = {};
        barriers[0].Type = D3D12_RESOURCE_BARRIER_TYPE_UAV;
        barriers[1].Type = D3D12_RESOURCE_BARRIER_TYPE_ALIASING;
        gpu.list->ResourceBarrier(2, barriers);
    };
    separate();
    fill(gpu, target.Get(), 4096, 16, 0.5f);
    separate();
    gpu.dispatch(compiled, {{used.Get(), 4096, 64}}, {{used.Get(), 8192, 64}});
    separate();
    ComPtr<ID3D12Resource> readback =
        gpu.committed(D3D12_HEAP_TYPE_READBACK, 64, D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_STATE_COPY_DEST);
    gpu.list->CopyBufferRegion(readback.Get(), 0, source.Get(), 8192, 64);
    gpu.run();
    gpu.print_words(gpu.read_mapped(readback.Get(), 64));
}

void memory()
{
    Gpu gpu;
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 1, 1, 16}, {0.25f, 3.0f});
    placed_and_aliased(gpu, compiled.Get());
    reserved(gpu, compiled.Get());
    three_views(gpu, compiled.Get());
}
