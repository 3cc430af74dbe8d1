// Operators as programs use them: a graph with a constant, weights that DirectML owns, a count to read back.

#include "operators.h"

static const auto F32 = DML_TENSOR_DATA_TYPE_FLOAT32;
static const auto U32 = DML_TENSOR_DATA_TYPE_UINT32;

// relu(x * constant + y) and its sums, by a graph with the descs that DirectMLX writes.
static void graph(Gpu &gpu)
{
    const Tensor x(F32, {1, 2, 3, 4}), y(F32, {1, 2, 3, 4}, {0, 0, 0, 1}), sums(F32, {1, 2, 3, 1});
    const DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC multiply = {&x, &x, &x};
    const DML_ACTIVATION_RELU_OPERATOR_DESC relu = {nullptr, nullptr};
    const DML_OPERATOR_DESC fused = {DML_OPERATOR_ACTIVATION_RELU, &relu};
    const DML_ELEMENT_WISE_ADD1_OPERATOR_DESC add = {&x, &y, &x, &fused};
    const UINT axis = 3;
    const DML_REDUCE_OPERATOR_DESC reduce = {DML_REDUCE_FUNCTION_SUM, &x, &sums, 1, &axis};
    ComPtr<IDMLOperator> product = create(gpu, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, &multiply);
    ComPtr<IDMLOperator> sum = create(gpu, DML_OPERATOR_ELEMENT_WISE_ADD1, &add);
    ComPtr<IDMLOperator> total = create(gpu, DML_OPERATOR_REDUCE, &reduce);

    float weights[24], values[24];
    for (int i = 0; i < 24; i++) {
        weights[i] = 0.125f * static_cast<float>(i) - 1.0f;
        values[i] = 1.5f * static_cast<float>(i) - 7.0f;
    }
    const DML_CONSTANT_DATA_GRAPH_NODE_DESC constant = {weights, sizeof weights, "weights"};
    const DML_OPERATOR_GRAPH_NODE_DESC operators[] = {
        {product.Get(), "product"}, {sum.Get(), "sum"}, {total.Get(), nullptr}};
    const DML_GRAPH_NODE_DESC nodes[] = {{DML_GRAPH_NODE_TYPE_CONSTANT, &constant},
                                         {DML_GRAPH_NODE_TYPE_OPERATOR, &operators[0]},
                                         {DML_GRAPH_NODE_TYPE_OPERATOR, &operators[1]},
                                         {DML_GRAPH_NODE_TYPE_OPERATOR, &operators[2]}};
    const DML_INPUT_GRAPH_EDGE_DESC in[] = {{0, 1, 0, "x"}, {1, 2, 1, "y"}};
    const DML_INTERMEDIATE_GRAPH_EDGE_DESC between[] = {{0, 0, 1, 1, nullptr}, {1, 0, 2, 0, nullptr}, {2, 0, 3, 0, nullptr}};
    const DML_OUTPUT_GRAPH_EDGE_DESC out[] = {{2, 0, 0, nullptr}, {3, 0, 1, nullptr}};
    const DML_GRAPH_EDGE_DESC inputs[] = {{DML_GRAPH_EDGE_TYPE_INPUT, &in[0]}, {DML_GRAPH_EDGE_TYPE_INPUT, &in[1]}};
    const DML_GRAPH_EDGE_DESC intermediates[] = {{DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &between[0]},
                                                 {DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &between[1]},
                                                 {DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &between[2]}};
    const DML_GRAPH_EDGE_DESC outputs[] = {{DML_GRAPH_EDGE_TYPE_OUTPUT, &out[0]}, {DML_GRAPH_EDGE_TYPE_OUTPUT, &out[1]}};
    const DML_GRAPH_DESC desc = {2, 2, 4, nodes, 2, inputs, 2, outputs, 3, intermediates};
    ComPtr<IDMLDevice1> device;
    CHECK(gpu.dml.As(&device));
    ComPtr<IDMLCompiledOperator> compiled;
    CHECK(device->CompileGraph(&desc, DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
    std::memset(weights, 0, sizeof weights); // the graph has a copy

    ComPtr<ID3D12Resource> persistent = gpu.initialize(compiled.Get());
    const float row[] = {0.5f, -0.25f, 3.0f, 1e-3f};
    ComPtr<ID3D12Resource> first = gpu.upload(values, sizeof values), second = gpu.upload(row, sizeof row);
    ComPtr<ID3D12Resource> result = gpu.buffer(x.size(), D3D12_RESOURCE_STATE_COMMON);
    ComPtr<ID3D12Resource> result_sums = gpu.buffer(sums.size(), D3D12_RESOURCE_STATE_COMMON);
    gpu.dispatch(compiled.Get(), {whole(first), whole(second)}, {whole(result), whole(result_sums)}, persistent.Get());
    gpu.print(result.Get(), x.size());
    gpu.print(result_sums.Get(), sums.size());
}

// CONVOLUTION_INTEGER: both images of the batch are the same, rows are padded to 8 bytes, DirectML owns the weights.
static void convolution(Gpu &gpu)
{
    const Tensor input(DML_TENSOR_DATA_TYPE_UINT8, {2, 2, 5, 5}, {0, 40, 8, 1});
    const Tensor input_zero(DML_TENSOR_DATA_TYPE_UINT8, {1, 1, 1, 1});
    const Tensor filter(DML_TENSOR_DATA_TYPE_INT8, {3, 2, 3, 3}, {}, DML_TENSOR_FLAG_OWNED_BY_DML);
    const Tensor filter_zero(DML_TENSOR_DATA_TYPE_INT8, {1, 3, 1, 1}, {}, DML_TENSOR_FLAG_OWNED_BY_DML);
    const Tensor output(DML_TENSOR_DATA_TYPE_INT32, {2, 3, 3, 3});
    const UINT strides[] = {2, 2}, ones[] = {1, 1};
    const DML_CONVOLUTION_INTEGER_OPERATOR_DESC desc = {&input, &input_zero, &filter, &filter_zero, &output,
                                                        2, strides, ones, ones, ones, 1};
    ComPtr<IDMLCompiledOperator> compiled = compile(gpu, DML_OPERATOR_CONVOLUTION_INTEGER, &desc);

    uint8_t values[80], zero[4] = {7};
    int8_t weights[56], zeros[4] = {1, -2, 3};
    for (int i = 0; i < 80; i++)
        values[i] = static_cast<uint8_t>(i * 37 % 251);
    for (int i = 0; i < 56; i++)
        weights[i] = static_cast<int8_t>(i * 29 % 255 - 127);
    ComPtr<ID3D12Resource> filters = gpu.upload(weights, 56), filter_zeros = gpu.upload(zeros, 4);
    ComPtr<ID3D12Resource> persistent =
        gpu.initialize(compiled.Get(), {{}, {}, whole(filters), whole(filter_zeros)});
    filters.Reset(); // DirectML has them
    filter_zeros.Reset();
    ComPtr<ID3D12Resource> image = gpu.upload(values, 80), image_zero = gpu.upload(zero, 4);
    ComPtr<ID3D12Resource> result = gpu.buffer(output.size(), D3D12_RESOURCE_STATE_COMMON);
    gpu.dispatch(compiled.Get(), {whole(image), whole(image_zero), {}, {}}, {whole(result)}, persistent.Get());
    gpu.print(result.Get(), output.size());
}

// NONZERO_COORDINATES: only as many rows are read as were found.
static void nonzero(Gpu &gpu)
{
    const Tensor input(F32, {1, 1, 3, 4}), count(U32, {1}), coordinates(U32, {1, 1, 12, 2});
    const DML_NONZERO_COORDINATES_OPERATOR_DESC desc = {&input, &count, &coordinates};
    ComPtr<IDMLCompiledOperator> compiled = compile(gpu, DML_OPERATOR_NONZERO_COORDINATES, &desc);
    ComPtr<ID3D12Resource> persistent = gpu.initialize(compiled.Get());
    const float values[12] = {0, 1, -0.0f, 0, 2, 0, 0, -3, 0, 0, 1e-30f, 0};
    ComPtr<ID3D12Resource> source = gpu.upload(values, sizeof values);
    ComPtr<ID3D12Resource> found = gpu.buffer(4, D3D12_RESOURCE_STATE_COMMON);
    ComPtr<ID3D12Resource> rows = gpu.buffer(coordinates.size(), D3D12_RESOURCE_STATE_COMMON);
    gpu.dispatch(compiled.Get(), {whole(source)}, {whole(found), whole(rows)}, persistent.Get());
    const uint32_t number = gpu.read(found.Get(), 4)[0];
    std::printf("%u\n", number);
    gpu.print(rows.Get(), 8 * number);
}

// BIT_COUNT over 8 dimensions, whose input is stored in another order.
static void bit_count(Gpu &gpu)
{
    const std::vector<UINT> sizes = {2, 1, 3, 2, 1, 2, 2, 2};
    const Tensor input(U32, sizes, {1, 7, 2, 6, 5, 12, 24, 48}), output(U32, sizes);
    const DML_ELEMENT_WISE_BIT_COUNT_OPERATOR_DESC desc = {&input, &output};
    ComPtr<IDMLCompiledOperator> compiled = compile(gpu, DML_OPERATOR_ELEMENT_WISE_BIT_COUNT, &desc);
    ComPtr<ID3D12Resource> persistent = gpu.initialize(compiled.Get());
    uint32_t values[96];
    for (uint32_t i = 0; i < 96; i++)
        values[i] = i * 2654435761u;
    ComPtr<ID3D12Resource> source = gpu.upload(values, sizeof values);
    ComPtr<ID3D12Resource> result = gpu.buffer(output.size(), D3D12_RESOURCE_STATE_COMMON);
    gpu.dispatch(compiled.Get(), {whole(source)}, {whole(result)}, persistent.Get());
    gpu.print(result.Get(), output.size());
}

void operators()
{
    Gpu gpu;
    graph(gpu);
    convolution(gpu);
    nonzero(gpu);
    bit_count(gpu);
}
