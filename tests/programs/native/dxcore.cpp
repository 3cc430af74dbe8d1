// Finds the adapter as clients do, creates both devices with it, and asks for its memory.

#include "program.h"

#include <directx/dxcore.h>

static const GUID core_compute = {0x248e2800, 0xa793, 0x4724, {0xab, 0xaa, 0x23, 0xa6, 0xde, 0x1b, 0xe0, 0x90}};
static const GUID graphics = {0x0c9ece4d, 0x2f6e, 0x4f01, {0x8c, 0x96, 0xe8, 0x9e, 0x33, 0x1b, 0x47, 0xb1}};

int main()
{
    ComPtr<IDXCoreAdapterFactory> factory, same;
    CHECK(DXCoreCreateAdapterFactory(IID_PPV_ARGS(&factory)));
    CHECK(DXCoreCreateAdapterFactory(IID_PPV_ARGS(&same)));
    ComPtr<IDXCoreAdapterList> list;
    CHECK(factory->CreateAdapterList(1, &core_compute, IID_PPV_ARGS(&list)));
    const DXCoreAdapterPreference wanted[] = {DXCoreAdapterPreference::Hardware,
                                              DXCoreAdapterPreference::HighPerformance};
    CHECK(list->Sort(2, wanted));
    ComPtr<IDXCoreAdapter> adapter;
    CHECK(list->GetAdapter(0, IID_PPV_ARGS(&adapter)));
    std::printf("%d adapter, factory %s, graphics %d\n", list->GetAdapterCount(), factory == same ? "shared" : "new",
                adapter->IsAttributeSupported(graphics));

    bool hardware = false;
    CHECK(adapter->GetProperty(DXCoreAdapterProperty::IsHardware, sizeof hardware, &hardware));
    size_t size = 0;
    CHECK(adapter->GetPropertySize(DXCoreAdapterProperty::DriverDescription, &size));
    std::vector<char> name(size);
    CHECK(adapter->GetProperty(DXCoreAdapterProperty::DriverDescription, size, name.data()));
    DXCoreHardwareID id = {};
    CHECK(adapter->GetProperty(DXCoreAdapterProperty::HardwareID, sizeof id, &id));
    std::printf("%s, hardware %d, %04x\n", name.data(), hardware, id.vendorID);
    if (adapter->GetProperty(DXCoreAdapterProperty::HardwareID, 3, &id) != E_INVALIDARG)
        std::puts("a small buffer is accepted");

    const DXCoreAdapterMemoryBudgetNodeSegmentGroup local = {0, DXCoreSegmentGroup::Local};
    DXCoreAdapterMemoryBudget budget = {};
    CHECK(adapter->QueryState(DXCoreAdapterState::AdapterMemoryBudget, sizeof local, &local, sizeof budget, &budget));
    std::printf("budget %d GiB\n", static_cast<int>(budget.budget >> 30));

    ComPtr<ID3D12Device> device;
    CHECK(D3D12CreateDevice(adapter.Get(), D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)));
    LUID luid = {};
    CHECK(adapter->GetProperty(DXCoreAdapterProperty::InstanceLuid, sizeof luid, &luid));
    const LUID own = device->GetAdapterLuid();
    ComPtr<IDXCoreAdapter> found;
    CHECK(factory->GetAdapterByLuid(own, IID_PPV_ARGS(&found)));
    std::printf("luid %s, adapter %s\n", std::memcmp(&luid, &own, sizeof own) == 0 ? "equal" : "differs",
                found == adapter ? "shared" : "new");
    ComPtr<IDMLDevice> dml;
    CHECK(DMLCreateDevice1(device.Get(), DML_CREATE_DEVICE_FLAG_NONE, DML_FEATURE_LEVEL_6_4, IID_PPV_ARGS(&dml)));
}
