// Calls that random ones have found to fail inside of us: HRESULTs, and nothing else.

#include "program.h"

#include <directx/d3d12sdklayers.h>

#define EXPECT(condition) \
    do { \
        if (!(condition)) \
            std::printf("line %d: %s\n", __LINE__, #condition); \
    } while (0)

static void info_queue(Gpu &gpu)
{
    ComPtr<ID3D12InfoQueue1> messages;
    CHECK(gpu.device.As(&messages));
    DWORD cookie = 7;
    EXPECT(messages->RegisterMessageCallback(nullptr, D3D12_MESSAGE_CALLBACK_FLAG_NONE, nullptr, &cookie) ==
           E_INVALIDARG);
    const auto unknown = static_cast<D3D12_MESSAGE_SEVERITY>(64);
    EXPECT(messages->AddApplicationMessage(unknown, "text") == E_INVALIDARG);
    EXPECT(messages->AddApplicationMessage(D3D12_MESSAGE_SEVERITY_INFO, nullptr) == E_INVALIDARG);
}

// Sizes that no memory has are not read.
static void sizes(Gpu &gpu)
{
    EXPECT(gpu.fence->SetPrivateData(__uuidof(ID3D12Fence), 0xFFFFFFFF, &gpu) == E_INVALIDARG);
    gpu.queue->SetMarker(1, &gpu, 0xFFFFFFFF);
    const DML_CONSTANT_DATA_GRAPH_NODE_DESC constant = {&gpu, 1ull << 63, nullptr};
    const DML_GRAPH_NODE_DESC node = {DML_GRAPH_NODE_TYPE_CONSTANT, &constant};
    const DML_GRAPH_DESC graph = {1, 1, 1, &node, 0, nullptr, 0, nullptr, 0, nullptr};
    ComPtr<IDMLDevice1> device;
    CHECK(gpu.dml.As(&device));
    ComPtr<IDMLCompiledOperator> compiled;
    EXPECT(device->CompileGraph(&graph, DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)) == E_INVALIDARG);
    const D3D12_RESOURCE_DESC desc = buffer_desc(~0ull, D3D12_RESOURCE_FLAG_NONE);
    EXPECT(gpu.device->GetResourceAllocationInfo(0, 1, &desc).SizeInBytes == ~0ull);
}

int main()
{
    ComPtr<ID3D12Debug> debug;
    CHECK(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)));
    debug->EnableDebugLayer();
    Gpu gpu;
    info_queue(gpu);
    sizes(gpu);
    std::puts("done");
}
