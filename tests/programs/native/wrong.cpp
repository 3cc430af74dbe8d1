// Mistakes that C++ programmers make.  Each prints what the program sees; the line that the report must name ends
// with the id of the check, and that of the call which reports it, where it is another one, with "stop ID".

#include "operators.h"

static const UINT FOUR[] = {1, 1, 1, 4};

static void show(const char *what, HRESULT result) { std::printf("%s 0x%08X\n", what, static_cast<unsigned>(result)); }

// A GPU with an operator y = x + 1 of four floats, two buffers, and the same names in all programs.
struct Scene : Gpu {
    ComPtr<IDMLCompiledOperator> compiled = identity({1, 1, 1, 4}, {1.0f, 1.0f});
    ComPtr<ID3D12Resource> x, y;

    Scene()
    {
        const float values[] = {1, 2, 3, 4};
        x = upload(values, 16);
        y = upload(values, 16);
        run();
        x->SetName(L"x");
        y->SetName(L"y");
        compiled->SetName(L"plus one");
        list->SetName(L"list");
        queue->SetName(L"queue");
        allocator->SetName(L"allocator");
    }

    // RecordDispatch without a barrier behind it.
    ComPtr<IDMLBindingTable> bound(ID3D12Resource *input, ID3D12Resource *output)
    {
        ComPtr<IDMLBindingTable> bindings = table(compiled.Get(), compiled->GetBindingProperties());
        const DML_BUFFER_BINDING in = {input, 0, 16}, out = {output, 0, 16};
        const DML_BINDING_DESC from = {DML_BINDING_TYPE_BUFFER, &in}, to = {DML_BINDING_TYPE_BUFFER, &out};
        bindings->BindInputs(1, &from);
        bindings->BindOutputs(1, &to);
        ID3D12DescriptorHeap *heaps[] = {descriptors.Get()};
        list->SetDescriptorHeaps(1, heaps);
        return bindings;
    }

    void execute()
    {
        show("Close", list->Close());
        ID3D12CommandList *lists[] = {list.Get()};
        queue->ExecuteCommandLists(1, lists);
        show("Signal", queue->Signal(fence.Get(), ++value));
    }

    void reset()
    {
        show("removed", device->GetDeviceRemovedReason());
        show("allocator", allocator->Reset());
        show("Reset", list->Reset(allocator.Get(), nullptr));
    }
};

static void missing_barrier()
{
    Scene s;
    ComPtr<ID3D12Resource> between = s.buffer(16, D3D12_RESOURCE_STATE_COMMON);
    ComPtr<IDMLBindingTable> first = s.bound(s.x.Get(), between.Get()), second = s.bound(between.Get(), s.y.Get());
    s.recorder->RecordDispatch(s.list.Get(), s.compiled.Get(), first.Get());
    s.recorder->RecordDispatch(s.list.Get(), s.compiled.Get(), second.Get()); // HAZARD_RAW
    s.execute();
    show("wait", s.fence->SetEventOnCompletion(s.value, nullptr)); // stop HAZARD_RAW
    s.reset();
    s.print(s.y.Get(), 16);
}

static void copy_out_of_range()
{
    Scene s;
    s.list->CopyBufferRegion(s.y.Get(), 8, s.x.Get(), 0, 16); // COPY_RANGE
    show("Close", s.list->Close());
}

static void wrong_state_before()
{
    Scene s;
    s.transition(s.x.Get(), D3D12_RESOURCE_STATE_COMMON, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    D3D12_RESOURCE_BARRIER barrier = {};
    barrier.Transition = {s.x.Get(), 0, D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_COPY_SOURCE};
    s.list->ResourceBarrier(1, &barrier); // STATE_BEFORE
    show("Close", s.list->Close());
}

static void overlapping_output()
{
    Scene s;
    ComPtr<IDMLCompiledOperator> op = s.identity({1, 1, 1, 8}, {1.0f, 0.0f});
    const float values[16] = {};
    ComPtr<ID3D12Resource> pool = s.upload(values, sizeof values);
    ComPtr<IDMLBindingTable> bindings = s.table(op.Get(), op->GetBindingProperties());
    const DML_BUFFER_BINDING in = {pool.Get(), 0, 32}, out = {pool.Get(), 16, 32};
    const DML_BINDING_DESC from = {DML_BINDING_TYPE_BUFFER, &in}, to = {DML_BINDING_TYPE_BUFFER, &out};
    bindings->BindInputs(1, &from);
    bindings->BindOutputs(1, &to);
    ID3D12DescriptorHeap *heaps[] = {s.descriptors.Get()};
    s.list->SetDescriptorHeaps(1, heaps);
    s.recorder->RecordDispatch(s.list.Get(), op.Get(), bindings.Get()); // BIND_ALIAS
    show("Close", s.list->Close());
}

static void heap_not_set()
{
    Scene s;
    ComPtr<IDMLBindingTable> bindings = s.bound(s.x.Get(), s.y.Get());
    CHECK(s.list->Close());
    CHECK(s.list->Reset(s.allocator.Get(), nullptr)); // forgets the heaps
    s.recorder->RecordDispatch(s.list.Get(), s.compiled.Get(), bindings.Get()); // DESC_HEAP_NOT_SET
    show("Close", s.list->Close());
}

static void unbound_output()
{
    Scene s;
    ComPtr<IDMLBindingTable> bindings = s.table(s.compiled.Get(), s.compiled->GetBindingProperties());
    const DML_BUFFER_BINDING in = {s.x.Get(), 0, 16};
    const DML_BINDING_DESC from = {DML_BINDING_TYPE_BUFFER, &in};
    bindings->BindInputs(1, &from);
    ID3D12DescriptorHeap *heaps[] = {s.descriptors.Get()};
    s.list->SetDescriptorHeaps(1, heaps);
    s.recorder->RecordDispatch(s.list.Get(), s.compiled.Get(), bindings.Get()); // BIND_TYPE
    show("Close", s.list->Close());
    show("removed", s.device->GetDeviceRemovedReason());
}

static void size_without_strides()
{
    Scene s;
    const UINT strides[] = {0, 0, 0, 2};
    const DML_BUFFER_TENSOR_DESC buffer = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, FOUR, strides, 16, 0};
    const DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC identity = {&tensor, &tensor, nullptr};
    const DML_OPERATOR_DESC desc = {DML_OPERATOR_ELEMENT_WISE_IDENTITY, &identity};
    ComPtr<IDMLOperator> op;
    show("CreateOperator", s.dml->CreateOperator(&desc, IID_PPV_ARGS(&op))); // TENSOR_TOTAL_SMALL
}

static void binding_in_elements()
{
    Scene s;
    ComPtr<IDMLBindingTable> bindings = s.table(s.compiled.Get(), s.compiled->GetBindingProperties());
    const DML_BUFFER_BINDING in = {s.x.Get(), 0, 4};
    const DML_BINDING_DESC from = {DML_BINDING_TYPE_BUFFER, &in};
    bindings->BindInputs(1, &from); // BIND_SIZE_SMALL
    show("removed", s.device->GetDeviceRemovedReason());
    show("of DirectML", s.dml->GetDeviceRemovedReason());
}

static void released_while_in_use()
{
    Scene s;
    ComPtr<ID3D12Resource> z = s.buffer(16, D3D12_RESOURCE_STATE_COMMON);
    s.list->CopyBufferRegion(z.Get(), 0, s.x.Get(), 0, 16);
    s.execute();
    z.Reset(); // OBJECT_DELETED_IN_USE
    show("wait", s.fence->SetEventOnCompletion(s.value, nullptr));
    show("removed", s.device->GetDeviceRemovedReason());
}

static void allocator_in_flight()
{
    Scene s;
    s.list->CopyBufferRegion(s.y.Get(), 0, s.x.Get(), 0, 16);
    s.execute();
    show("allocator", s.allocator->Reset()); // ALLOC_RESET_IN_FLIGHT
    show("wait", s.fence->SetEventOnCompletion(s.value, nullptr));
}

static void map_without_wait()
{
    Scene s;
    ComPtr<ID3D12Resource> readback =
        s.committed(D3D12_HEAP_TYPE_READBACK, 16, D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_STATE_COPY_DEST);
    s.list->CopyBufferRegion(readback.Get(), 0, s.x.Get(), 0, 16);
    s.execute();
    uint32_t *words = nullptr;
    show("Map", readback->Map(0, nullptr, reinterpret_cast<void **>(&words))); // READBACK_EARLY
    std::printf("%08x\n", words[0]);
    show("wait", s.fence->SetEventOnCompletion(s.value, nullptr));
    std::printf("%08x\n", words[0]);
    readback->Unmap(0, nullptr);
}

static void no_temporary()
{
    Scene s;
    const UINT sizes[] = {1, 1, 4, 4};
    const DML_BUFFER_TENSOR_DESC buffer = {DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, 32, 0};
    const DML_TENSOR_DESC half = {DML_TENSOR_TYPE_BUFFER, &buffer};
    const DML_ACTIVATION_RELU_OPERATOR_DESC relu = {nullptr, nullptr};
    const DML_OPERATOR_DESC fused = {DML_OPERATOR_ACTIVATION_RELU, &relu};
    const DML_GEMM_OPERATOR_DESC fields = {
        &half, &half, nullptr, &half, DML_MATRIX_TRANSFORM_NONE, DML_MATRIX_TRANSFORM_NONE, 1.0f, 0.0f, &fused};
    ComPtr<IDMLCompiledOperator> product = compile(s, DML_OPERATOR_GEMM, &fields);
    s.initialize(product.Get());
    ComPtr<IDMLBindingTable> bindings = s.table(product.Get(), {product->GetBindingProperties().RequiredDescriptorCount, 0, 0});
    const float zeros[8] = {};
    ComPtr<ID3D12Resource> matrix = s.upload(zeros, 32), result = s.buffer(32, D3D12_RESOURCE_STATE_COMMON);
    const DML_BUFFER_BINDING in = {matrix.Get(), 0, 32}, out = {result.Get(), 0, 32};
    const DML_BINDING_DESC to = {DML_BINDING_TYPE_BUFFER, &out};
    const DML_BINDING_DESC from[] = {
        {DML_BINDING_TYPE_BUFFER, &in}, {DML_BINDING_TYPE_BUFFER, &in}, {DML_BINDING_TYPE_NONE, nullptr}};
    bindings->BindInputs(3, from);
    bindings->BindOutputs(1, &to);
    ID3D12DescriptorHeap *heaps[] = {s.descriptors.Get()};
    s.list->SetDescriptorHeaps(1, heaps);
    s.recorder->RecordDispatch(s.list.Get(), product.Get(), bindings.Get()); // BIND_TEMP_MISSING
    show("Close", s.list->Close());
}

static void never_written()
{
    Scene s;
    ComPtr<ID3D12Resource> sum = s.buffer(16, D3D12_RESOURCE_STATE_COMMON);
    ComPtr<IDMLBindingTable> bindings = s.bound(sum.Get(), s.y.Get());
    s.recorder->RecordDispatch(s.list.Get(), s.compiled.Get(), bindings.Get()); // MEM_UNINIT_READ
    s.execute();
    show("wait", s.fence->SetEventOnCompletion(s.value, nullptr)); // stop MEM_UNINIT_READ
    s.reset();
    s.print(s.y.Get(), 16); // committed resources begin with zeros
}

static void open_list()
{
    Scene s;
    ID3D12CommandList *lists[] = {s.list.Get()};
    s.queue->ExecuteCommandLists(1, lists); // LIST_OPEN
    show("removed", s.device->GetDeviceRemovedReason());
}

static void executed_twice()
{
    Scene s;
    s.list->CopyBufferRegion(s.y.Get(), 0, s.x.Get(), 0, 16);
    s.execute();
    ID3D12CommandList *lists[] = {s.list.Get()};
    s.queue->ExecuteCommandLists(1, lists); // LIST_EXECUTED_TWICE
    show("Signal", s.queue->Signal(s.fence.Get(), ++s.value));
    show("wait", s.fence->SetEventOnCompletion(s.value, nullptr));
    show("removed", s.device->GetDeviceRemovedReason());
}

static void recorded_after_close()
{
    Scene s;
    CHECK(s.list->Close());
    s.list->CopyBufferRegion(s.y.Get(), 0, s.x.Get(), 0, 16); // LIST_CLOSED
    show("Close", s.list->Close());
    show("removed", s.device->GetDeviceRemovedReason());
}

static void descriptors_overwritten()
{
    Scene s;
    ComPtr<IDMLBindingTable> bindings = s.bound(s.x.Get(), s.y.Get());
    s.recorder->RecordDispatch(s.list.Get(), s.compiled.Get(), bindings.Get());
    s.execute();
    const DML_BUFFER_BINDING in = {s.y.Get(), 0, 16};
    const DML_BINDING_DESC from = {DML_BINDING_TYPE_BUFFER, &in};
    bindings->BindInputs(1, &from); // DESC_OVERWRITTEN
    show("wait", s.fence->SetEventOnCompletion(s.value, nullptr));
    show("removed", s.device->GetDeviceRemovedReason());
}

static void not_initialized()
{
    Scene s;
    const Tensor four(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 1, 4});
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC fields = {&four, &four, nullptr};
    s.compiled = compile(s, DML_OPERATOR_ELEMENT_WISE_IDENTITY, &fields);
    ComPtr<IDMLBindingTable> bindings = s.bound(s.x.Get(), s.y.Get());
    s.recorder->RecordDispatch(s.list.Get(), s.compiled.Get(), bindings.Get()); // OP_NOT_INITIALIZED
    s.execute(); // stop OP_NOT_INITIALIZED
    show("wait", s.fence->SetEventOnCompletion(s.value, nullptr));
    show("removed", s.device->GetDeviceRemovedReason());
}

static void buffer_without_flag()
{
    Scene s;
    ComPtr<ID3D12Resource> plain =
        s.committed(D3D12_HEAP_TYPE_DEFAULT, 16, D3D12_RESOURCE_FLAG_NONE, D3D12_RESOURCE_STATE_COMMON);
    ComPtr<IDMLBindingTable> bindings = s.table(s.compiled.Get(), s.compiled->GetBindingProperties());
    const DML_BUFFER_BINDING in = {plain.Get(), 0, 16};
    const DML_BINDING_DESC from = {DML_BINDING_TYPE_BUFFER, &in};
    bindings->BindInputs(1, &from); // BIND_NOT_UAV
    show("removed", s.device->GetDeviceRemovedReason());
}

static void fence_backwards()
{
    Scene s;
    show("Signal", s.queue->Signal(s.fence.Get(), 1)); // FENCE_BACKWARDS
    s.execute();
    show("wait", s.fence->SetEventOnCompletion(s.value, nullptr)); // stop FENCE_BACKWARDS
    show("removed", s.device->GetDeviceRemovedReason());
}

static void shape()
{
    Scene s;
    const Tensor in(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 3, 4}), out(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 1, 4});
    const UINT axis = 3;
    const DML_REDUCE_OPERATOR_DESC fields = {DML_REDUCE_FUNCTION_SUM, &in, &out, 1, &axis};
    const DML_OPERATOR_DESC desc = {DML_OPERATOR_REDUCE, &fields};
    ComPtr<IDMLOperator> op;
    show("CreateOperator", s.dml->CreateOperator(&desc, IID_PPV_ARGS(&op))); // OP_SHAPE
}

static void two_queues_without_fence()
{
    Scene s;
    const D3D12_COMMAND_QUEUE_DESC desc = {D3D12_COMMAND_LIST_TYPE_DIRECT, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
    ComPtr<ID3D12CommandQueue> other;
    CHECK(s.device->CreateCommandQueue(&desc, IID_PPV_ARGS(&other)));
    ComPtr<ID3D12GraphicsCommandList> reader;
    ComPtr<ID3D12CommandAllocator> allocator;
    CHECK(s.device->CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE_DIRECT, IID_PPV_ARGS(&allocator)));
    CHECK(s.device->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_DIRECT, allocator.Get(), nullptr,
                                      IID_PPV_ARGS(&reader)));
    ComPtr<ID3D12Resource> z = s.buffer(16, D3D12_RESOURCE_STATE_COMMON);
    s.list->CopyBufferRegion(s.y.Get(), 0, s.x.Get(), 0, 16);
    reader->CopyBufferRegion(z.Get(), 0, s.y.Get(), 0, 16); // HAZARD_QUEUE
    s.execute();
    CHECK(reader->Close());
    ID3D12CommandList *lists[] = {reader.Get()};
    other->ExecuteCommandLists(1, lists);
    ComPtr<ID3D12Fence> done;
    CHECK(s.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&done)));
    show("Signal", other->Signal(done.Get(), 1));
    show("wait", s.fence->SetEventOnCompletion(s.value, nullptr)); // stop HAZARD_QUEUE
    show("wait", done->SetEventOnCompletion(1, nullptr));
}

static void after_removal()
{
    Scene s;
    ComPtr<ID3D12Device5> device;
    CHECK(s.device.As(&device));
    device->RemoveDevice();
    ComPtr<ID3D12Fence> fence;
    show("CreateFence", device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence))); // DEVICE_REMOVED
    show("Signal", s.queue->Signal(s.fence.Get(), 9));
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)();
    } programs[] = {
        {"missing_barrier", missing_barrier},
        {"copy_out_of_range", copy_out_of_range},
        {"wrong_state_before", wrong_state_before},
        {"overlapping_output", overlapping_output},
        {"heap_not_set", heap_not_set},
        {"unbound_output", unbound_output},
        {"size_without_strides", size_without_strides},
        {"binding_in_elements", binding_in_elements},
        {"released_while_in_use", released_while_in_use},
        {"allocator_in_flight", allocator_in_flight},
        {"map_without_wait", map_without_wait},
        {"no_temporary", no_temporary},
        {"never_written", never_written},
        {"open_list", open_list},
        {"executed_twice", executed_twice},
        {"fence_backwards", fence_backwards},
        {"recorded_after_close", recorded_after_close},
        {"descriptors_overwritten", descriptors_overwritten},
        {"not_initialized", not_initialized},
        {"buffer_without_flag", buffer_without_flag},
        {"shape", shape},
        {"two_queues_without_fence", two_queues_without_fence},
        {"after_removal", after_removal},
    };
    for (const auto &each : programs) {
        if (count == 1 || std::strcmp(arguments[1], each.name) == 0) {
            std::puts(each.name);
            each.run();
        }
    }
}
