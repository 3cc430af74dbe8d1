// A graph as DirectMLX builds it: a constant, broadcast by strides, a matrix product and an activation.

#include "program.h"

#include <DirectMLX.h>

int main()
{
    Gpu gpu;
    dml::Graph graph(gpu.dml.Get());
    const dml::TensorDesc left_desc(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 3, 4});
    const dml::TensorDesc right_desc(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 4, 2});
    dml::Expression left = dml::InputTensor(graph, 0, left_desc);
    dml::Expression right = dml::InputTensor(graph, 1, right_desc);
    const float half = 0.5f;
    dml::Expression constant = dml::ConstantData(
        graph, dml::Span<const dml::Byte>(reinterpret_cast<const dml::Byte *>(&half), sizeof half),
        dml::TensorDesc(DML_TENSOR_DATA_TYPE_FLOAT32, {1}));
    dml::Expression scale = dml::Reinterpret(constant, {1, 1, 3, 2}, dml::TensorStrides{0, 0, 0, 0});
    dml::Expression output = dml::ActivationRelu(dml::Gemm(left, right) * scale - 1.0f);
    ComPtr<IDMLCompiledOperator> compiled;
    compiled.Attach(graph.Compile(DML_EXECUTION_FLAG_NONE, {output}).Detach());

    float a[12], b[8];
    for (int i = 0; i < 12; i++)
        a[i] = static_cast<float>(i % 5) - 2.0f;
    for (int i = 0; i < 8; i++)
        b[i] = static_cast<float>(i % 3) + 0.25f;
    const auto left_buffer = gpu.upload(a, sizeof a), right_buffer = gpu.upload(b, sizeof b);
    const auto result = gpu.buffer(24, D3D12_RESOURCE_STATE_COMMON);
    const DML_BINDING_PROPERTIES properties = compiled->GetBindingProperties();
    const auto persistent = gpu.buffer(properties.PersistentResourceSize, D3D12_RESOURCE_STATE_COMMON);
    ComPtr<IDMLOperatorInitializer> initializer;
    IDMLCompiledOperator *operators[] = {compiled.Get()};
    CHECK(gpu.dml->CreateOperatorInitializer(1, operators, IID_PPV_ARGS(&initializer)));

    const DML_BUFFER_BINDING buffers[] = {{left_buffer.Get(), 0, sizeof a},
                                          {right_buffer.Get(), 0, sizeof b},
                                          {result.Get(), 0, 24},
                                          {persistent.Get(), 0, properties.PersistentResourceSize}};
    DML_BINDING_DESC bindings[4];
    for (int i = 0; i < 4; i++)
        bindings[i] = {DML_BINDING_TYPE_BUFFER, &buffers[i]};
    auto table = gpu.table(initializer.Get(), initializer->GetBindingProperties());
    table->BindOutputs(1, &bindings[3]);
    gpu.record(initializer.Get(), table.Get());
    table = gpu.table(compiled.Get(), properties);
    table->BindInputs(2, bindings);
    table->BindOutputs(1, &bindings[2]);
    table->BindPersistentResource(&bindings[3]);
    gpu.record(compiled.Get(), table.Get());
    gpu.print(result.Get(), 24);
}
