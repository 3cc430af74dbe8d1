// Getters that are C, and the calls that change what they return.

#include "program.h"

static ComPtr<IDMLCompiledOperator> product(IDMLDevice *dml)
{
    const UINT sizes[] = {1, 1, 4, 4};
    DML_BUFFER_TENSOR_DESC plain = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, 64, 0};
    DML_BUFFER_TENSOR_DESC owned = plain;
    owned.Flags = DML_TENSOR_FLAG_OWNED_BY_DML;
    DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &plain}, weights = {DML_TENSOR_TYPE_BUFFER, &owned};
    DML_GEMM_OPERATOR_DESC gemm = {&tensor, &weights, nullptr, &tensor, DML_MATRIX_TRANSFORM_NONE,
                                   DML_MATRIX_TRANSFORM_NONE, 1.0f, 0.0f, nullptr};
    DML_OPERATOR_DESC desc = {DML_OPERATOR_GEMM, &gemm};
    ComPtr<IDMLOperator> op;
    CHECK(dml->CreateOperator(&desc, IID_PPV_ARGS(&op)));
    ComPtr<IDMLCompiledOperator> compiled;
    CHECK(dml->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
    return compiled;
}

int main()
{
    Gpu gpu;
    ComPtr<IDMLCompiledOperator> compiled = product(gpu.dml.Get());
    IDMLCompiledOperator *operators[] = {compiled.Get()};
    ComPtr<IDMLOperatorInitializer> initializer;
    CHECK(gpu.dml->CreateOperatorInitializer(0, nullptr, IID_PPV_ARGS(&initializer)));
    auto descriptors = [&] { return initializer->GetBindingProperties().RequiredDescriptorCount; };
    std::printf("initializer of nothing %u %u", descriptors(), descriptors());
    CHECK(initializer->Reset(1, operators));
    std::printf(", of one operator %u %u", descriptors(), descriptors());
    CHECK(initializer->Reset(0, nullptr));
    std::printf(", of nothing %u\n", descriptors());

    for (int type = 0; type < D3D12_DESCRIPTOR_HEAP_TYPE_NUM_TYPES; type++)
        std::printf("%u ", gpu.device->GetDescriptorHandleIncrementSize(static_cast<D3D12_DESCRIPTOR_HEAP_TYPE>(type)));
    std::printf("bytes each\n");

    ComPtr<IDMLDevice> other;
    CHECK(DMLCreateDevice(gpu.device.Get(), DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&other)));
    auto reasons = [&](const char *when) {
        std::printf("%s 0x%08X 0x%08X 0x%08X\n", when, static_cast<unsigned>(gpu.device->GetDeviceRemovedReason()),
                    static_cast<unsigned>(gpu.dml->GetDeviceRemovedReason()),
                    static_cast<unsigned>(other->GetDeviceRemovedReason()));
    };
    reasons("before");
    ComPtr<IDMLBindingTable> table;
    const DML_BINDING_TABLE_DESC desc = {initializer.Get(), {}, {}, 0};
    CHECK(gpu.dml->CreateBindingTable(&desc, IID_PPV_ARGS(&table)));
    const DML_BINDING_DESC bindings[3] = {};
    table->BindOutputs(3, bindings); // too many: removes this DirectML device only
    reasons("after a wrong call");
    ComPtr<ID3D12Device5> device;
    CHECK(gpu.device.As(&device));
    device->RemoveDevice();
    reasons("after RemoveDevice");
    ComPtr<IDMLDevice> late;
    const HRESULT refused = DMLCreateDevice(gpu.device.Get(), DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&late));
    std::printf("another one 0x%08X\n", static_cast<unsigned>(refused));
}
