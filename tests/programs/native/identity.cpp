// Runs ELEMENT_WISE_IDENTITY (x * 2 + 1) on 24 floats, with a blocking wait, and prints the result's bits.

#include "program.h"

int main()
{
    Gpu gpu;
    const UINT sizes[] = {1, 2, 3, 4};
    const float scale = 2.0f, bias = 1.0f;
    DML_BUFFER_TENSOR_DESC buffer = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, 96, 0};
    DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
    DML_SCALE_BIAS scaled = {scale, bias};
    DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC identity = {&tensor, &tensor, &scaled};
    DML_OPERATOR_DESC desc = {DML_OPERATOR_ELEMENT_WISE_IDENTITY, &identity};

    ComPtr<IDMLOperator> op;
    CHECK(gpu.dml->CreateOperator(&desc, IID_PPV_ARGS(&op)));
    ComPtr<IDMLCompiledOperator> compiled;
    CHECK(gpu.dml->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
    gpu.initialize(compiled.Get());

    float values[24];
    for (int i = 0; i < 24; i++)
        values[i] = 1.5f * static_cast<float>(i) - 7.0f;
    ComPtr<ID3D12Resource> input = gpu.upload(values, sizeof values);
    ComPtr<ID3D12Resource> output = gpu.buffer(sizeof values, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    gpu.dispatch(compiled.Get(), {{input.Get(), 0, sizeof values}}, {{output.Get(), 0, sizeof values}});
    gpu.print(output.Get(), sizeof values);
}
