// Runs ELEMENT_WISE_IDENTITY (x * 2 + 1) on 24 floats, with a blocking wait, and prints the result's bits.

#include "program.h"

int main()
{
    Gpu gpu;
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 2, 3, 4}, {2.0f, 1.0f});

    float values[24];
    for (int i = 0; i < 24; i++)
        values[i] = 1.5f * static_cast<float>(i) - 7.0f;
    ComPtr<ID3D12Resource> input = gpu.upload(values, sizeof values);
    ComPtr<ID3D12Resource> output = gpu.buffer(sizeof values, D3D12_RESOURCE_STATE_COMMON);
    gpu.dispatch(compiled.Get(), {{input.Get(), 0, sizeof values}}, {{output.Get(), 0, sizeof values}});
    gpu.print(output.Get(), sizeof values);
}
