// Private data and names, a debug layer with a callback, and the removal of a device.

#include "operators.h"

#include <directx/d3d12sdklayers.h>

static void show(const char *what, HRESULT result) { std::printf("%s 0x%08X\n", what, static_cast<unsigned>(result)); }

static const GUID key = {0x3d1c0a52, 0x71f4, 0x4d1e, {0x9b, 1, 2, 3, 4, 5, 6, 7}};
static const GUID name = {0x4cca5fd8, 0x921f, 0x42c8, {0x85, 0x66, 0x70, 0xca, 0xf2, 0xa9, 0xb7, 0x41}};

// Any object of both APIs.
template <typename T> static void private_data(const char *what, T *object)
{
    char bytes[8] = {};
    UINT size = sizeof bytes;
    show(what, object->GetPrivateData(key, &size, bytes)); // not found
    CHECK(object->SetPrivateData(key, 5, "four"));
    size = 0;
    CHECK(object->GetPrivateData(key, &size, nullptr));
    std::printf("%u\n", size);
    size = 4;
    show("a small buffer", object->GetPrivateData(key, &size, bytes));
    size = sizeof bytes;
    CHECK(object->GetPrivateData(key, &size, bytes));
    std::printf("%u %s\n", size, bytes);
    CHECK(object->SetPrivateData(key, 0, nullptr));
    show("removed again", object->SetPrivateData(key, 0, nullptr));

    CHECK(object->SetName(L"accumulator \u03b1"));
    wchar_t text[32] = {};
    size = sizeof text;
    CHECK(object->GetPrivateData(name, &size, text));
    std::printf("%d\n", size == 14 * sizeof *text && std::wcscmp(text, L"accumulator \u03b1") == 0);
}

// An interface as private data has a reference until it is replaced.
static void private_interface(Gpu &gpu)
{
    ComPtr<ID3D12Fence> fence;
    CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
    CHECK(gpu.queue->SetPrivateDataInterface(key, fence.Get()));
    const ULONG held = fence->AddRef();
    ID3D12Fence *found = nullptr;
    UINT size = sizeof found;
    CHECK(gpu.queue->GetPrivateData(key, &size, &found));
    const ULONG given = found->Release();
    CHECK(gpu.queue->SetPrivateData(key, 0, nullptr));
    std::printf("%u %u %u %d\n", held, given, fence->Release(), found == fence.Get());
}

static void STDMETHODCALLTYPE on_message(D3D12_MESSAGE_CATEGORY, D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID,
                                         LPCSTR text, void *context)
{
    *static_cast<int *>(context) += 1;
    if (severity <= D3D12_MESSAGE_SEVERITY_WARNING)
        std::printf("%s\n", text);
}

// A device with the debug layer, where there is one, says nothing of a right program.
static void debug_layer()
{
    ComPtr<ID3D12Debug> debug;
    CHECK(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)));
    debug->EnableDebugLayer();
    Gpu gpu;
    int called = 0;
    ComPtr<ID3D12InfoQueue1> messages;
    DWORD cookie = 0;
    if (SUCCEEDED(gpu.device.As(&messages)))
        CHECK(messages->RegisterMessageCallback(on_message, D3D12_MESSAGE_CALLBACK_FLAG_NONE, &called, &cookie));
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 1, 2, 4}, {3.0f, 0.0f});
    const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    ComPtr<ID3D12Resource> input = gpu.upload(values, sizeof values);
    ComPtr<ID3D12Resource> output = gpu.buffer(sizeof values, D3D12_RESOURCE_STATE_COMMON);
    gpu.dispatch(compiled.Get(), {whole(input)}, {whole(output)});
    gpu.print(output.Get(), sizeof values);
    if (messages != nullptr) {
        if (called != 0)
            std::puts("the callback is called");
        CHECK(messages->UnregisterMessageCallback(cookie));
    }
}

static void removal()
{
    Gpu gpu;
    ComPtr<ID3D12Device5> device;
    CHECK(gpu.device.As(&device));
    show("before", device->GetDeviceRemovedReason());
    device->RemoveDevice();
    show("after", device->GetDeviceRemovedReason());
    show("of DirectML", gpu.dml->GetDeviceRemovedReason());
    show("wait", gpu.fence->SetEventOnCompletion(1, nullptr)); // all waits end
    std::printf("%016llX\n", static_cast<unsigned long long>(gpu.fence->GetCompletedValue()));
}

void objects()
{
    {
        Gpu gpu;
        private_data("ID3D12Device", gpu.device.Get());
        private_data("ID3D12GraphicsCommandList", gpu.list.Get());
        private_data("IDMLDevice", gpu.dml.Get());
        private_interface(gpu);
    }
    debug_layer();
    removal();
}
