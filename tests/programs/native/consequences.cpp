// Wrong calls: what a program sees of them is the same whatever is looked for.

#include "operators.h"

static void show(const char *what, HRESULT result) { std::printf("%s 0x%08X\n", what, static_cast<unsigned>(result)); }

// x += y by a graph of one node whose output is its first input: what TensorFlow does.
static void add_in_place()
{
    Gpu gpu;
    const Tensor tensor(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 1, 4});
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC add = {&tensor, &tensor, &tensor};
    ComPtr<IDMLCompiledOperator> compiled = one_node(gpu, create(gpu, DML_OPERATOR_ELEMENT_WISE_ADD, &add).Get());
    gpu.initialize(compiled.Get());
    const float ones[4] = {1, 1, 1, 1};
    ComPtr<ID3D12Resource> x = gpu.upload(ones, 16), y = gpu.upload(ones, 16);
    gpu.dispatch(compiled.Get(), {{x.Get(), 0, 16}, {y.Get(), 0, 16}}, {{x.Get(), 0, 16}});
    float found = 0;
    const uint32_t word = gpu.read(x.Get(), 16)[0];
    std::memcpy(&found, &word, 4);
    std::printf("in place %g\n", static_cast<double>(found));
}

static void copy_beyond_the_end()
{
    Gpu gpu;
    ComPtr<ID3D12Resource> buffer = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    gpu.list->CopyBufferRegion(buffer.Get(), 0, buffer.Get(), 32, 1000);
    gpu.list->CopyBufferRegion(buffer.Get(), 0, buffer.Get(), 32, 8); // further commands are ignored
    show("Close", gpu.list->Close());
    show("removed", gpu.device->GetDeviceRemovedReason());
    show("Close again", gpu.list->Close());
    show("Reset", gpu.list->Reset(gpu.allocator.Get(), nullptr));
    D3D12_RESOURCE_BARRIER barrier = {};
    barrier.Type = static_cast<D3D12_RESOURCE_BARRIER_TYPE>(9);
    gpu.list->ResourceBarrier(1, &barrier);
    show("Close of an unknown barrier", gpu.list->Close());
}

// A buffer in the wrong state: only a debug layer finds that, and the copy is done.
static void copy_in_a_wrong_state()
{
    Gpu gpu;
    const uint32_t words[] = {7, 8};
    ComPtr<ID3D12Resource> source = gpu.upload(words, 8), target = gpu.buffer(8, D3D12_RESOURCE_STATE_COMMON);
    gpu.transition(target.Get(), D3D12_RESOURCE_STATE_COMMON, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    gpu.list->CopyBufferRegion(target.Get(), 0, source.Get(), 0, 8);
    std::printf("copied %u\n", gpu.read(target.Get(), 8)[1]);
}

static void void_methods()
{
    Gpu gpu;
    gpu.device->CreateUnorderedAccessView(nullptr, nullptr, nullptr, {0x1234});
    show("removed", gpu.device->GetDeviceRemovedReason());
    ComPtr<ID3D12Fence> fence;
    show("CreateFence", gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
    show("removed, of DirectML", gpu.dml->GetDeviceRemovedReason());
}

int main()
{
    add_in_place();
    copy_beyond_the_end();
    copy_in_a_wrong_state();
    void_methods();
}
