// Descs of tensors and operators, as short as DirectMLX makes them.

#pragma once

#include "program.h"

// A DML_TENSOR_DESC that has its arrays; without strides it is packed.
struct Tensor {
    std::vector<UINT> sizes, strides;
    DML_BUFFER_TENSOR_DESC buffer = {};
    DML_TENSOR_DESC desc = {DML_TENSOR_TYPE_BUFFER, &buffer};

    Tensor(DML_TENSOR_DATA_TYPE type, std::vector<UINT> its_sizes, std::vector<UINT> its_strides = {},
           DML_TENSOR_FLAGS flags = DML_TENSOR_FLAG_NONE)
        : sizes(std::move(its_sizes)), strides(std::move(its_strides))
    {
        UINT64 last = 0, step = 1; // element index of the last element; product of the sizes behind
        for (size_t i = sizes.size(); i-- > 0; step *= sizes[i])
            last += (sizes[i] - 1) * (strides.empty() ? step : strides[i]);
        const UINT64 total = ((last + 1) * width(type) + 3) / 4 * 4;
        buffer = {type, flags, static_cast<UINT>(sizes.size()), sizes.data(), strides.empty() ? nullptr : strides.data(),
                  total, 0};
    }
    Tensor(const Tensor &) = delete;

    const DML_TENSOR_DESC *operator&() const { return &desc; } // for the fields of operator descs
    UINT64 size() const { return buffer.TotalTensorSizeInBytes; }

    static UINT64 width(DML_TENSOR_DATA_TYPE type)
    {
        return type == DML_TENSOR_DATA_TYPE_UINT8 || type == DML_TENSOR_DATA_TYPE_INT8 ? 1 : 4;
    }
};

inline ComPtr<IDMLOperator> create(Gpu &gpu, DML_OPERATOR_TYPE type, const void *fields)
{
    const DML_OPERATOR_DESC desc = {type, fields};
    ComPtr<IDMLOperator> made;
    CHECK(gpu.dml->CreateOperator(&desc, IID_PPV_ARGS(&made)));
    return made;
}

inline ComPtr<IDMLCompiledOperator> compile(Gpu &gpu, DML_OPERATOR_TYPE type, const void *fields)
{
    ComPtr<IDMLCompiledOperator> compiled;
    CHECK(gpu.dml->CompileOperator(create(gpu, type, fields).Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
    return compiled;
}

// A graph of one node with two inputs, as TensorFlow's plugin makes of such an operator.
inline ComPtr<IDMLCompiledOperator> one_node(Gpu &gpu, IDMLOperator *op)
{
    const DML_OPERATOR_GRAPH_NODE_DESC operator_node = {op, nullptr};
    const DML_GRAPH_NODE_DESC node = {DML_GRAPH_NODE_TYPE_OPERATOR, &operator_node};
    const DML_INPUT_GRAPH_EDGE_DESC in[] = {{0, 0, 0, nullptr}, {1, 0, 1, nullptr}};
    const DML_OUTPUT_GRAPH_EDGE_DESC out = {0, 0, 0, nullptr};
    const DML_GRAPH_EDGE_DESC inputs[] = {{DML_GRAPH_EDGE_TYPE_INPUT, &in[0]}, {DML_GRAPH_EDGE_TYPE_INPUT, &in[1]}};
    const DML_GRAPH_EDGE_DESC output = {DML_GRAPH_EDGE_TYPE_OUTPUT, &out};
    const DML_GRAPH_DESC graph = {2, 1, 1, &node, 2, inputs, 1, &output, 0, nullptr};
    ComPtr<IDMLDevice1> device;
    CHECK(gpu.dml.As(&device));
    ComPtr<IDMLCompiledOperator> compiled;
    CHECK(device->CompileGraph(&graph, DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
    return compiled;
}

// A binding of a whole buffer.
inline DML_BUFFER_BINDING whole(const ComPtr<ID3D12Resource> &buffer)
{
    return {buffer.Get(), 0, buffer->GetDesc().Width};
}
