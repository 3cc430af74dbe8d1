// Settings without effect, a Release too many, and pointers that are not dmlemu's.

#include "program.h"

#include <directx/d3d12sdklayers.h>

struct Own : IUnknown {
    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID, void **) override { return E_NOINTERFACE; }
    ULONG STDMETHODCALLTYPE AddRef() override { return 2; }
    ULONG STDMETHODCALLTYPE Release() override { return 1; }
};

int main()
{
    {
        ComPtr<ID3D12Device> device;
        ComPtr<IDMLDevice> dml;
        CHECK(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)));
        CHECK(DMLCreateDevice(device.Get(), DML_CREATE_DEVICE_FLAG_DEBUG, IID_PPV_ARGS(&dml)));
        void *out = nullptr; // calls of DirectML are checked from here on
        CHECK(dml->CreateOperator(nullptr, __uuidof(IDMLOperator), &out) == E_INVALIDARG ? S_OK : E_FAIL);
        ComPtr<IDMLBindingTable> table;
        CHECK(dml->CreateBindingTable(nullptr, IID_PPV_ARGS(&table)));
        const DML_BINDING_DESC none = {};
        table->BindInputs(1, &none); // of an empty table
        CHECK(dml->GetDeviceRemovedReason() < 0 ? S_OK : E_FAIL);
    }
    Gpu gpu; // from here on with the debug layer, by the flag
    ComPtr<ID3D12Debug3> debug;
    CHECK(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)));
    for (int i = 0; i < 2; i++)
        debug->SetGPUBasedValidationFlags(D3D12_GPU_BASED_VALIDATION_FLAGS_DISABLE_STATE_TRACKING);
    static Own own;
    void *out = nullptr;
    CHECK(D3D12CreateDevice(&own, D3D_FEATURE_LEVEL_11_0, __uuidof(ID3D12Device), &out) == E_INVALIDARG ? S_OK : E_FAIL);

    ID3D12Device *device = gpu.device.Get(); // the queue and others keep it
    const ULONG count = device->AddRef() - 1;
    device->Release();
    gpu.device.Detach();
    device->Release();
    device->Release(); // once too often
    ComPtr<ID3D12Device> again;
    CHECK(gpu.queue->GetDevice(IID_PPV_ARGS(&again)));
    std::printf("same %d, counted %d\n", again.Get() == device, device->AddRef() == count + 1);
    gpu.device.Attach(device);
}
