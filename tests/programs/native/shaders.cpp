// Compute shaders: pipelines of descs and of streams, what lists set for them, Dispatch and ExecuteIndirect.

#include "program.h"

#include <fstream>
#include <iterator>

#define EXPECT(condition) \
    do { \
        if (!(condition)) \
            std::printf("line %d: %s\n", __LINE__, #condition); \
    } while (0)

static std::vector<char> file(const std::string &path)
{
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

struct Shaders : Gpu {
    std::vector<char> code; // saxpy: y[i] += a * x[i] for i < n; b0: a and n, t0: x, u0: y
    ComPtr<ID3D12RootSignature> roots, tables;
    ComPtr<ID3D12PipelineState> pipeline;

    explicit Shaders(const char *path) : code(file(path)) {}

    D3D12_COMPUTE_PIPELINE_STATE_DESC desc(ID3D12RootSignature *root) const
    {
        D3D12_COMPUTE_PIPELINE_STATE_DESC made = {};
        made.pRootSignature = root;
        made.CS = {code.data(), code.size()};
        return made;
    }
};

static ComPtr<ID3D12RootSignature> root_signature(Shaders &gpu, std::vector<D3D12_ROOT_PARAMETER> parameters)
{
    const UINT count = static_cast<UINT>(parameters.size());
    const D3D12_ROOT_SIGNATURE_DESC desc = {count, parameters.data(), 0, nullptr, D3D12_ROOT_SIGNATURE_FLAG_NONE};
    ComPtr<ID3DBlob> blob;
    CHECK(D3D12SerializeRootSignature(&desc, D3D_ROOT_SIGNATURE_VERSION_1, &blob, nullptr));
    ComPtr<ID3D12RootSignature> made;
    CHECK(gpu.device->CreateRootSignature(0, blob->GetBufferPointer(), blob->GetBufferSize(), IID_PPV_ARGS(&made)));
    return made;
}

static D3D12_ROOT_PARAMETER constants()
{
    D3D12_ROOT_PARAMETER made = {};
    made.ParameterType = D3D12_ROOT_PARAMETER_TYPE_32BIT_CONSTANTS;
    made.Constants = {0, 0, 2};
    return made;
}

static D3D12_ROOT_PARAMETER descriptor(D3D12_ROOT_PARAMETER_TYPE type)
{
    D3D12_ROOT_PARAMETER made = {};
    made.ParameterType = type;
    return made;
}

static void create(Shaders &gpu)
{
    gpu.roots = root_signature(gpu, {constants(), descriptor(D3D12_ROOT_PARAMETER_TYPE_SRV),
                                     descriptor(D3D12_ROOT_PARAMETER_TYPE_UAV)});
    const D3D12_DESCRIPTOR_RANGE ranges[] = {
        {D3D12_DESCRIPTOR_RANGE_TYPE_SRV, 1, 0, 0, D3D12_DESCRIPTOR_RANGE_OFFSET_APPEND},
        {D3D12_DESCRIPTOR_RANGE_TYPE_UAV, 1, 0, 0, D3D12_DESCRIPTOR_RANGE_OFFSET_APPEND}};
    D3D12_ROOT_PARAMETER table = {};
    table.ParameterType = D3D12_ROOT_PARAMETER_TYPE_DESCRIPTOR_TABLE;
    table.DescriptorTable = {2, ranges};
    gpu.tables = root_signature(gpu, {constants(), table});
    const D3D12_COMPUTE_PIPELINE_STATE_DESC desc = gpu.desc(gpu.roots.Get());
    CHECK(gpu.device->CreateComputePipelineState(&desc, IID_PPV_ARGS(&gpu.pipeline)));
    CHECK(gpu.pipeline->SetName(L"saxpy"));
    ComPtr<ID3D12Device> device;
    CHECK(gpu.pipeline->GetDevice(IID_PPV_ARGS(&device)));
    EXPECT(device.Get() == gpu.device.Get());
}

// --- running ---

static const float xs[] = {1, 2, 3, 4, 5, 6, 7, 8}, ys[] = {10, 20, 30, 40, 50, 60, 70, 80};

static void set_constants(Shaders &gpu, float a, UINT n)
{
    UINT words[2] = {0, n};
    std::memcpy(&words[0], &a, sizeof a);
    gpu.list->SetComputeRoot32BitConstants(0, 2, words, 0);
}

static void print(Shaders &gpu, const char *what, ID3D12Resource *y)
{
    std::printf("%s:", what);
    for (const uint32_t word : gpu.read(y, sizeof ys)) {
        float value;
        std::memcpy(&value, &word, sizeof value);
        std::printf(" %g", value);
    }
    std::printf("\n");
}

static void through_roots(Shaders &gpu)
{
    const ComPtr<ID3D12Resource> x = gpu.upload(xs, sizeof xs), y = gpu.upload(ys, sizeof ys);
    gpu.transition(x.Get(), D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE);
    gpu.list->SetPipelineState(gpu.pipeline.Get());
    gpu.list->SetComputeRootSignature(gpu.roots.Get());
    set_constants(gpu, 0.5f, 100);
    gpu.list->SetComputeRoot32BitConstant(0, 8, 1);
    gpu.list->SetComputeRootShaderResourceView(1, x->GetGPUVirtualAddress());
    gpu.list->SetComputeRootUnorderedAccessView(2, y->GetGPUVirtualAddress());
    gpu.list->Dispatch(1, 1, 1);
    print(gpu, "root descriptors", y.Get());
}

static void view(Shaders &gpu, ID3D12Resource *x, ID3D12Resource *y)
{
    const UINT step = gpu.device->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
    D3D12_CPU_DESCRIPTOR_HANDLE slot = gpu.descriptors->GetCPUDescriptorHandleForHeapStart();
    D3D12_SHADER_RESOURCE_VIEW_DESC srv = {};
    srv.ViewDimension = D3D12_SRV_DIMENSION_BUFFER;
    srv.Shader4ComponentMapping = D3D12_DEFAULT_SHADER_4_COMPONENT_MAPPING;
    srv.Buffer = {0, 8, 4, D3D12_BUFFER_SRV_FLAG_NONE};
    gpu.device->CreateShaderResourceView(x, &srv, slot);
    slot.ptr += step;
    D3D12_UNORDERED_ACCESS_VIEW_DESC uav = {};
    uav.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
    uav.Buffer = {0, 8, 4, 0, D3D12_BUFFER_UAV_FLAG_NONE};
    gpu.device->CreateUnorderedAccessView(y, nullptr, &uav, slot);
}

template <typename T, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE Type> struct alignas(void *) Subobject {
    D3D12_PIPELINE_STATE_SUBOBJECT_TYPE type = Type;
    T value;
};

struct Stream {
    Subobject<UINT, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_NODE_MASK> mask;
    Subobject<D3D12_SHADER_BYTECODE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_CS> shader;
    Subobject<D3D12_PIPELINE_STATE_FLAGS, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_FLAGS> flags;
    Subobject<ID3D12RootSignature *, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_ROOT_SIGNATURE> root;
    Subobject<D3D12_CACHED_PIPELINE_STATE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_CACHED_PSO> cached;
};

// Every subobject once, as helpers make a stream of any kind of pipeline.
struct WholeStream {
    Subobject<D3D12_PIPELINE_STATE_FLAGS, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_FLAGS> flags;
    Subobject<UINT, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_NODE_MASK> mask;
    Subobject<ID3D12RootSignature *, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_ROOT_SIGNATURE> root;
    Subobject<D3D12_INPUT_LAYOUT_DESC, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_INPUT_LAYOUT> inputs;
    Subobject<D3D12_INDEX_BUFFER_STRIP_CUT_VALUE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_IB_STRIP_CUT_VALUE> cut;
    Subobject<D3D12_PRIMITIVE_TOPOLOGY_TYPE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_PRIMITIVE_TOPOLOGY> topology;
    Subobject<D3D12_SHADER_BYTECODE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_VS> vertex;
    Subobject<D3D12_SHADER_BYTECODE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_GS> geometry;
    Subobject<D3D12_STREAM_OUTPUT_DESC, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_STREAM_OUTPUT> outputs;
    Subobject<D3D12_SHADER_BYTECODE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_HS> hull;
    Subobject<D3D12_SHADER_BYTECODE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_DS> domain;
    Subobject<D3D12_SHADER_BYTECODE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_PS> pixel;
    Subobject<D3D12_SHADER_BYTECODE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_AS> amplification;
    Subobject<D3D12_SHADER_BYTECODE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_MS> mesh;
    Subobject<D3D12_SHADER_BYTECODE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_CS> shader;
    Subobject<D3D12_BLEND_DESC, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_BLEND> blend;
    Subobject<D3D12_DEPTH_STENCIL_DESC, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_DEPTH_STENCIL> depth;
    Subobject<D3D12_DEPTH_STENCIL_DESC1, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_DEPTH_STENCIL1> depth1;
    Subobject<D3D12_DEPTH_STENCIL_DESC2, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_DEPTH_STENCIL2> depth2;
    Subobject<DXGI_FORMAT, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_DEPTH_STENCIL_FORMAT> depth_format;
    Subobject<D3D12_RASTERIZER_DESC, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_RASTERIZER> rasterizer;
    Subobject<D3D12_RT_FORMAT_ARRAY, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_RENDER_TARGET_FORMATS> targets;
    Subobject<DXGI_SAMPLE_DESC, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_SAMPLE_DESC> samples;
    Subobject<UINT, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_SAMPLE_MASK> sample_mask;
    Subobject<D3D12_CACHED_PIPELINE_STATE, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_CACHED_PSO> cached;
    Subobject<D3D12_VIEW_INSTANCING_DESC, D3D12_PIPELINE_STATE_SUBOBJECT_TYPE_VIEW_INSTANCING> views;
};

// The stream of a helper, with a compute shader alone: what belongs to graphics is ignored.
static void of_all_subobjects(Shaders &gpu)
{
    ComPtr<ID3D12Device2> device;
    CHECK(gpu.device.As(&device));
    WholeStream stream = {};
    stream.root.value = gpu.tables.Get();
    stream.samples.value.Count = 1;
    const D3D12_PIPELINE_STATE_STREAM_DESC desc = {sizeof stream, &stream};
    const D3D12_SHADER_BYTECODE code = {gpu.code.data(), gpu.code.size()};
    const auto result = [&](D3D12_SHADER_BYTECODE cs, D3D12_SHADER_BYTECODE vs, D3D12_SHADER_BYTECODE ps) {
        stream.shader.value = cs;
        stream.vertex.value = vs;
        stream.pixel.value = ps;
        ComPtr<ID3D12PipelineState> pipeline;
        return device->CreatePipelineState(&desc, IID_PPV_ARGS(&pipeline));
    };
    EXPECT(result(code, {}, {}) == S_OK);
    EXPECT(result(code, {}, code) == S_OK);
    EXPECT(result(code, code, {}) == E_INVALIDARG);
    EXPECT(result({}, code, code) == E_NOTIMPL);
    EXPECT(result({}, {}, code) == E_INVALIDARG);
}

// A pipeline of a stream, which the list has from the beginning.
static void through_a_table(Shaders &gpu)
{
    ComPtr<ID3D12Device2> device;
    CHECK(gpu.device.As(&device));
    Stream stream = {};
    stream.mask = {};
    stream.shader.value = {gpu.code.data(), gpu.code.size()};
    stream.root.value = gpu.tables.Get();
    const D3D12_PIPELINE_STATE_STREAM_DESC desc = {sizeof stream, &stream};
    ComPtr<ID3D12PipelineState> pipeline;
    CHECK(device->CreatePipelineState(&desc, IID_PPV_ARGS(&pipeline)));

    const ComPtr<ID3D12Resource> x = gpu.upload(xs, sizeof xs), y = gpu.upload(ys, sizeof ys);
    gpu.transition(x.Get(), D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE);
    gpu.run();
    view(gpu, x.Get(), y.Get());
    CHECK(gpu.list->Close());
    CHECK(gpu.list->Reset(gpu.allocator.Get(), pipeline.Get()));
    ID3D12DescriptorHeap *heaps[] = {gpu.descriptors.Get()};
    gpu.list->SetDescriptorHeaps(1, heaps);
    gpu.list->SetComputeRootSignature(gpu.tables.Get());
    set_constants(gpu, 2, 4);
    gpu.list->SetComputeRootDescriptorTable(1, gpu.descriptors->GetGPUDescriptorHandleForHeapStart());
    gpu.transition(x.Get(), D3D12_RESOURCE_STATE_COMMON, D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE);
    gpu.list->Dispatch(1, 1, 1);
    print(gpu, "a table", y.Get());
}

// One command, and then one of two, as another buffer says; each sets a and n.
static void indirect(Shaders &gpu)
{
    struct Command {
        float a;
        UINT n;
        D3D12_DISPATCH_ARGUMENTS groups;
    };
    const Command commands[] = {{1, 8, {1, 1, 1}}, {100, 2, {1, 1, 1}}, {1000, 8, {1, 1, 1}}};
    const UINT count[] = {1};
    D3D12_INDIRECT_ARGUMENT_DESC arguments[2] = {};
    arguments[0].Type = D3D12_INDIRECT_ARGUMENT_TYPE_CONSTANT;
    arguments[0].Constant = {0, 0, 2};
    arguments[1].Type = D3D12_INDIRECT_ARGUMENT_TYPE_DISPATCH;
    const D3D12_COMMAND_SIGNATURE_DESC desc = {sizeof(Command), 2, arguments, 0};
    ComPtr<ID3D12CommandSignature> signature;
    CHECK(gpu.device->CreateCommandSignature(&desc, gpu.roots.Get(), IID_PPV_ARGS(&signature)));

    const ComPtr<ID3D12Resource> x = gpu.upload(xs, sizeof xs), y = gpu.upload(ys, sizeof ys);
    const ComPtr<ID3D12Resource> buffer = gpu.upload(commands, sizeof commands), number = gpu.upload(count, sizeof count);
    const D3D12_RESOURCE_STATES before = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
    gpu.transition(x.Get(), before, D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE);
    gpu.transition(buffer.Get(), before, D3D12_RESOURCE_STATE_INDIRECT_ARGUMENT);
    gpu.transition(number.Get(), before, D3D12_RESOURCE_STATE_INDIRECT_ARGUMENT);
    gpu.list->ClearState(gpu.pipeline.Get());
    gpu.list->SetComputeRootSignature(gpu.roots.Get());
    gpu.list->SetComputeRootShaderResourceView(1, x->GetGPUVirtualAddress());
    gpu.list->SetComputeRootUnorderedAccessView(2, y->GetGPUVirtualAddress());
    gpu.list->ExecuteIndirect(signature.Get(), 1, buffer.Get(), 0, nullptr, 0);
    D3D12_RESOURCE_BARRIER written = {};
    written.Type = D3D12_RESOURCE_BARRIER_TYPE_UAV;
    gpu.list->ResourceBarrier(1, &written);
    gpu.list->ExecuteIndirect(signature.Get(), 2, buffer.Get(), sizeof(Command), number.Get(), 0);
    print(gpu, "indirect", y.Get());
}

// --- cached blobs ---

static void cached(Shaders &gpu)
{
    ComPtr<ID3DBlob> blob;
    CHECK(gpu.pipeline->GetCachedBlob(&blob));
    D3D12_COMPUTE_PIPELINE_STATE_DESC desc = gpu.desc(gpu.roots.Get());
    desc.CachedPSO = {blob->GetBufferPointer(), blob->GetBufferSize()};
    ComPtr<ID3D12PipelineState> again;
    CHECK(gpu.device->CreateComputePipelineState(&desc, IID_PPV_ARGS(&again)));
    EXPECT(again.Get() != gpu.pipeline.Get());
}

static void refuse_cached(Shaders &gpu)
{
    ComPtr<ID3DBlob> blob;
    CHECK(gpu.pipeline->GetCachedBlob(&blob));
    D3D12_COMPUTE_PIPELINE_STATE_DESC desc = gpu.desc(gpu.tables.Get());
    desc.CachedPSO = {blob->GetBufferPointer(), blob->GetBufferSize()};
    ComPtr<ID3D12PipelineState> other;
    EXPECT(gpu.device->CreateComputePipelineState(&desc, IID_PPV_ARGS(&other)) == E_INVALIDARG && !other);
    EXPECT(gpu.pipeline->GetCachedBlob(nullptr) == E_INVALIDARG);
}

// --- features ---

static void features(Shaders &gpu)
{
    D3D12_FEATURE_DATA_SHADER_MODEL model = {D3D_SHADER_MODEL_6_7};
    D3D12_FEATURE_DATA_ROOT_SIGNATURE root = {D3D_ROOT_SIGNATURE_VERSION_1_1};
    D3D12_FEATURE_DATA_D3D12_OPTIONS options;
    D3D12_FEATURE_DATA_D3D12_OPTIONS1 waves;
    D3D12_FEATURE_DATA_D3D12_OPTIONS4 halves;
    D3D12_FEATURE_DATA_D3D12_OPTIONS9 atomics;
    CHECK(gpu.device->CheckFeatureSupport(D3D12_FEATURE_SHADER_MODEL, &model, sizeof model));
    CHECK(gpu.device->CheckFeatureSupport(D3D12_FEATURE_ROOT_SIGNATURE, &root, sizeof root));
    CHECK(gpu.device->CheckFeatureSupport(D3D12_FEATURE_D3D12_OPTIONS, &options, sizeof options));
    CHECK(gpu.device->CheckFeatureSupport(D3D12_FEATURE_D3D12_OPTIONS1, &waves, sizeof waves));
    CHECK(gpu.device->CheckFeatureSupport(D3D12_FEATURE_D3D12_OPTIONS4, &halves, sizeof halves));
    CHECK(gpu.device->CheckFeatureSupport(D3D12_FEATURE_D3D12_OPTIONS9, &atomics, sizeof atomics));
    std::printf("model 0x%X, root signature %d, waves %d of %u to %u lanes, int64 %d, half %d, double %d, atomics %d %d\n",
                model.HighestShaderModel, root.HighestVersion, waves.WaveOps, waves.WaveLaneCountMin,
                waves.WaveLaneCountMax, waves.Int64ShaderOps, halves.Native16BitShaderOpsSupported,
                options.DoublePrecisionFloatShaderOps, atomics.AtomicInt64OnTypedResourceSupported,
                atomics.AtomicInt64OnGroupSharedSupported);
}

// --- memory that cannot be what it says ---

static void *const untouched = reinterpret_cast<void *>(0x1234);

static void refuse_desc(Shaders &gpu)
{
    D3D12_COMPUTE_PIPELINE_STATE_DESC desc = gpu.desc(gpu.roots.Get());
    const IID &riid = __uuidof(ID3D12PipelineState);
    const auto refused = [&] {
        void *out = untouched;
        return gpu.device->CreateComputePipelineState(&desc, riid, &out) == E_INVALIDARG && out == nullptr;
    };
    EXPECT(gpu.device->CreateComputePipelineState(&desc, riid, nullptr) == S_FALSE);
    desc.CS.BytecodeLength = SIZE_MAX;
    EXPECT(refused());
    desc.CS = {nullptr, 4};
    EXPECT(refused());
    desc.CS = {gpu.code.data(), 0};
    EXPECT(refused());
    desc = gpu.desc(reinterpret_cast<ID3D12RootSignature *>(gpu.fence.Get()));
    EXPECT(refused());
    desc = gpu.desc(gpu.roots.Get());
    desc.CachedPSO = {nullptr, 1};
    EXPECT(refused());
    EXPECT(gpu.device->CreateRootSignature(0, nullptr, 100, riid, nullptr) == E_INVALIDARG);
    EXPECT(gpu.device->CreateRootSignature(0, gpu.code.data(), SIZE_MAX, riid, nullptr) == E_INVALIDARG);
}

static void refuse_stream(Shaders &gpu)
{
    ComPtr<ID3D12Device2> device;
    CHECK(gpu.device.As(&device));
    Stream stream = {};
    stream.shader.value = {gpu.code.data(), gpu.code.size()};
    stream.root.value = gpu.roots.Get();
    const auto result = [&](SIZE_T size, void *address) {
        const D3D12_PIPELINE_STATE_STREAM_DESC desc = {size, address};
        void *out = untouched;
        const HRESULT found = device->CreatePipelineState(&desc, __uuidof(ID3D12PipelineState), &out);
        EXPECT(found < 0 && out == nullptr);
        return found;
    };
    EXPECT(result(0, nullptr) == E_INVALIDARG);
    EXPECT(result(sizeof stream, nullptr) == E_INVALIDARG);
    EXPECT(result(SIZE_MAX, &stream) == E_INVALIDARG);
    for (SIZE_T size : {2u, 4u, 7u, 12u, 30u})
        EXPECT(result(size, &stream) == E_INVALIDARG);
    stream.cached.type = static_cast<D3D12_PIPELINE_STATE_SUBOBJECT_TYPE>(1000);
    EXPECT(result(sizeof stream, &stream) == E_INVALIDARG);
}

static void refuse_commands(Shaders &gpu)
{
    D3D12_INDIRECT_ARGUMENT_DESC argument = {};
    argument.Type = D3D12_INDIRECT_ARGUMENT_TYPE_DISPATCH;
    const IID &riid = __uuidof(ID3D12CommandSignature);
    const auto result = [&](UINT stride, UINT count, const D3D12_INDIRECT_ARGUMENT_DESC *address) {
        const D3D12_COMMAND_SIGNATURE_DESC desc = {stride, count, address, 0};
        return gpu.device->CreateCommandSignature(&desc, nullptr, riid, nullptr);
    };
    EXPECT(result(12, 1, &argument) == S_FALSE);
    EXPECT(result(12, 1, nullptr) == E_INVALIDARG);
    EXPECT(result(12, UINT_MAX, &argument) == E_INVALIDARG);
    EXPECT(result(8, 1, &argument) == E_INVALIDARG);
    argument.Type = D3D12_INDIRECT_ARGUMENT_TYPE_DRAW;
    EXPECT(result(16, 1, &argument) == E_NOTIMPL);
}

static void refuse_constants(Shaders &gpu)
{
    const UINT words[65] = {};
    const auto refused = [&](UINT count, const UINT *address) {
        gpu.list->SetComputeRootSignature(gpu.roots.Get());
        gpu.list->SetComputeRoot32BitConstants(0, count, address, 0);
    };
    refused(2, nullptr);
    refused(65, words);
    refused(UINT_MAX, words);
}

// "run", or "refuse": everything that is wrong with arguments.
int main(int, char **arguments)
{
    Shaders gpu(arguments[1]);
    create(gpu);
    if (arguments[2] == std::string("run")) {
        through_roots(gpu);
        through_a_table(gpu);
        indirect(gpu);
        cached(gpu);
        features(gpu);
    } else {
        refuse_cached(gpu);
        refuse_desc(gpu);
        refuse_stream(gpu);
        of_all_subobjects(gpu);
        refuse_commands(gpu);
        refuse_constants(gpu);
    }
    std::printf("done\n");
}
