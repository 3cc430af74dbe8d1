// Finds the adapter as clients do, creates both devices with it, asks for its memory; and all HRESULTs.

#include "program.h"

#include <directx/dxcore.h>

static const GUID core_compute = {0x248e2800, 0xa793, 0x4724, {0xab, 0xaa, 0x23, 0xa6, 0xde, 0x1b, 0xe0, 0x90}};
static const GUID graphics = {0x0c9ece4d, 0x2f6e, 0x4f01, {0x8c, 0x96, 0xe8, 0x9e, 0x33, 0x1b, 0x47, 0xb1}};
static const GUID generic_ml = {0xb71b0d41, 0x1088, 0x422f, {0xa2, 0x7c, 0x02, 0x50, 0xb7, 0xd3, 0xa9, 0x88}};
static const GUID d3d11_graphics = {0x8c47866b, 0x7583, 0x450d, {0xf0, 0xf0, 0x6b, 0xad, 0xa8, 0x95, 0xaf, 0x4b}};
static const GUID factory1 = {0xd5682e19, 0x6d21, 0x401c, {0x82, 0x7a, 0x9a, 0x51, 0xa4, 0xea, 0x35, 0xd7}};
static const GUID adapter1 = {0xa0783366, 0xcfa3, 0x43be, {0x9d, 0x79, 0x55, 0xb2, 0xda, 0x97, 0xc6, 0x3c}};

// Newer than the installed headers may be.
struct Factory1 : IDXCoreAdapterFactory {
    virtual HRESULT STDMETHODCALLTYPE CreateAdapterListByWorkload(uint32_t workload, uint32_t runtimes, uint32_t types,
                                                                  REFIID riid, void **list) = 0;
};

struct Adapter1 : IDXCoreAdapter {
    virtual HRESULT STDMETHODCALLTYPE GetPropertyWithInput(DXCoreAdapterProperty property, size_t inputSize,
                                                           const void *input, size_t size, void *output) = 0;
};

static int failures;

#define IS(expression, expected) \
    compare(static_cast<long long>(expression), static_cast<long long>(expected), #expression, __LINE__)

static void compare(long long found, long long expected, const char *what, int line)
{
    if (found != expected) {
        std::printf("line %d: %s is 0x%llX, not 0x%llX\n", line, what, found, expected);
        failures++;
    }
}

static const HRESULT invalid_call = static_cast<HRESULT>(0x887A0001u);
static const HRESULT unsupported = static_cast<HRESULT>(0x887A0004u);

static void check_factory(IDXCoreAdapterFactory *factory, IDXCoreAdapter *adapter)
{
    ComPtr<IDXCoreAdapterList> list, same;
    const GUID all[] = {generic_ml, core_compute, graphics};
    for (const GUID &each : all) {
        CHECK(factory->CreateAdapterList(1, &each, IID_PPV_ARGS(&list)));
        IS(list->GetAdapterCount(), 1);
        IS(adapter->IsAttributeSupported(each), true);
    }
    CHECK(factory->CreateAdapterList(3, all, IID_PPV_ARGS(&same)));
    IS(list == same, true);
    const GUID both[] = {core_compute, d3d11_graphics};
    CHECK(factory->CreateAdapterList(2, both, IID_PPV_ARGS(&list)));
    IS(list->GetAdapterCount(), 0);
    IS(adapter->IsAttributeSupported(d3d11_graphics), false);

    void *out = &out;
    IS(factory->CreateAdapterList(0, all, IID_PPV_ARGS(&list)), E_INVALIDARG);
    IS(factory->CreateAdapterList(1, nullptr, __uuidof(IDXCoreAdapterList), &out), E_INVALIDARG);
    IS(out == nullptr, true);
    IS(factory->CreateAdapterList(1, all, __uuidof(IDXCoreAdapterList), nullptr), E_POINTER);
    IS(factory->CreateAdapterList(1, all, __uuidof(IDXCoreAdapter), &out), E_NOINTERFACE);
    IS(DXCoreCreateAdapterFactory(__uuidof(IDXCoreAdapter), &out), E_NOINTERFACE);
    IS(DXCoreCreateAdapterFactory(__uuidof(IDXCoreAdapterFactory), nullptr), E_POINTER);

    const LUID luid = {77, 77};
    IS(factory->GetAdapterByLuid(luid, __uuidof(IDXCoreAdapter), &out), E_INVALIDARG);
    IS(factory->GetAdapterByLuid(luid, __uuidof(IDXCoreAdapter), nullptr), E_POINTER);
    uint32_t cookie = 7;
    IS(factory->IsNotificationTypeSupported(DXCoreNotificationType::AdapterListStale), false);
    IS(factory->RegisterEventNotification(adapter, DXCoreNotificationType::AdapterNoLongerValid, nullptr, nullptr,
                                          &cookie),
       E_NOTIMPL);
    IS(cookie, 0);
    IS(factory->UnregisterEventNotification(1), E_NOTIMPL);
}

static void check_newer(IDXCoreAdapterFactory *factory, IDXCoreAdapter *adapter)
{
    Factory1 *newer = nullptr;
    CHECK(factory->QueryInterface(factory1, reinterpret_cast<void **>(&newer)));
    IS(newer == factory, true);
    const struct {
        uint32_t workload, runtimes, types, count;
    } rows[] = {{3, 0, 0, 1}, {1, 2, 1, 1}, {0, 3, 15, 1}, {2, 0, 0, 0}, {3, 1, 0, 0}, {3, 0, 4, 0}};
    for (const auto &row : rows) {
        ComPtr<IDXCoreAdapterList> list;
        CHECK(newer->CreateAdapterListByWorkload(row.workload, row.runtimes, row.types, IID_PPV_ARGS(&list)));
        IS(list->GetAdapterCount(), row.count);
    }
    void *out = nullptr;
    IS(newer->CreateAdapterListByWorkload(4, 0, 0, __uuidof(IDXCoreAdapterList), &out), E_INVALIDARG);
    IS(newer->CreateAdapterListByWorkload(0, 4, 0, __uuidof(IDXCoreAdapterList), &out), E_INVALIDARG);
    IS(newer->CreateAdapterListByWorkload(0, 0, 16, __uuidof(IDXCoreAdapterList), &out), E_INVALIDARG);
    IS(newer->CreateAdapterListByWorkload(0, 0, 0, __uuidof(IDXCoreAdapterList), nullptr), E_POINTER);
    newer->Release();
    Adapter1 *with_input = nullptr;
    CHECK(adapter->QueryInterface(adapter1, reinterpret_cast<void **>(&with_input)));
    IS(with_input->GetPropertyWithInput(DXCoreAdapterProperty::IsHardware, 0, nullptr, 1, &out), E_NOTIMPL);
    with_input->Release();
}

static void check_list(IDXCoreAdapterFactory *factory, IDXCoreAdapterList *list)
{
    ComPtr<IDXCoreAdapterFactory> found;
    CHECK(list->GetFactory(IID_PPV_ARGS(&found)));
    IS(found.Get() == factory, true);
    IS(list->IsStale(), false);
    IS(list->IsAdapterPreferenceSupported(DXCoreAdapterPreference::MinimumPower), true);
    IS(list->IsAdapterPreferenceSupported(static_cast<DXCoreAdapterPreference>(3)), false);
    const DXCoreAdapterPreference unknown = static_cast<DXCoreAdapterPreference>(3);
    IS(list->Sort(1, &unknown), S_OK); // ignored
    IS(list->Sort(0, &unknown), E_INVALIDARG);
    IS(list->Sort(1, nullptr), E_INVALIDARG);
    void *out = &out;
    IS(list->GetAdapter(1, __uuidof(IDXCoreAdapter), &out), E_INVALIDARG);
    IS(out == nullptr, true);
    IS(list->GetAdapter(0, __uuidof(IDXCoreAdapter), nullptr), E_POINTER);
    IS(list->GetAdapter(0, __uuidof(IDXCoreAdapterList), &out), E_NOINTERFACE);
    IS(list->GetFactory(__uuidof(IDXCoreAdapterFactory), nullptr), E_POINTER);
}

static void check_properties(IDXCoreAdapter *adapter)
{
    const size_t sizes[] = {8, 8, 0, 16, 4, 2, 2, 8, 8, 8, 1, 1, 1, 1, 20, 4};
    for (uint32_t i = 0; i < 16; i++) {
        const DXCoreAdapterProperty property = static_cast<DXCoreAdapterProperty>(i);
        size_t size = 0;
        CHECK(adapter->GetPropertySize(property, &size));
        IS(adapter->IsPropertySupported(property), true);
        if (i != 2)
            IS(size, sizes[i]);
        std::vector<unsigned char> bytes(size + 4, 0xAA);
        IS(adapter->GetProperty(property, size - 1, bytes.data()), E_INVALIDARG);
        IS(bytes[0], 0xAA);
        CHECK(adapter->GetProperty(property, size, bytes.data()));
        IS(bytes[size], 0xAA);
        CHECK(adapter->GetProperty(property, size + 4, bytes.data()));
        IS(bytes[size + 3], 0);
        IS(adapter->GetProperty(property, size, nullptr), E_POINTER);
        IS(adapter->GetPropertySize(property, nullptr), E_POINTER);
    }
    size_t size = 0;
    for (uint32_t i : {16u, 17u, 18u, ~0u}) {
        const DXCoreAdapterProperty property = static_cast<DXCoreAdapterProperty>(i);
        const HRESULT expected = i < 18 ? unsupported : invalid_call;
        IS(adapter->IsPropertySupported(property), false);
        IS(adapter->GetProperty(property, 8, &size), expected);
        IS(adapter->GetPropertySize(property, &size), expected);
    }
    IS(adapter->IsValid(), true);
}

static void check_states(IDXCoreAdapter *adapter)
{
    struct {
        DXCoreAdapterMemoryBudget budget;
        uint64_t behind;
    } out = {{}, 5};
    DXCoreAdapterMemoryBudgetNodeSegmentGroup group = {0, DXCoreSegmentGroup::NonLocal};
    const DXCoreAdapterState budget = DXCoreAdapterState::AdapterMemoryBudget;
    IS(adapter->IsQueryStateSupported(budget), true);
    CHECK(adapter->QueryState(budget, sizeof group, &group, sizeof out.budget, &out.budget));
    IS(out.budget.budget >> 30, 8);
    IS(out.behind, 5);
    IS(adapter->QueryState(budget, 7, &group, sizeof out.budget, &out), E_INVALIDARG);
    IS(adapter->QueryState(budget, 8, &group, sizeof out.budget - 1, &out), E_INVALIDARG);
    IS(adapter->QueryState(budget, 8, nullptr, sizeof out.budget, &out), E_POINTER);
    IS(adapter->QueryState(budget, 8, &group, sizeof out.budget, nullptr), E_POINTER);
    group.nodeIndex = 1;
    IS(adapter->QueryState(budget, 8, &group, sizeof out.budget, &out), E_INVALIDARG);
    group = {0, static_cast<DXCoreSegmentGroup>(2)};
    IS(adapter->QueryState(budget, 8, &group, sizeof out.budget, &out), E_INVALIDARG);

    const DXCoreAdapterState updating = DXCoreAdapterState::IsDriverUpdateInProgress;
    uint8_t is_updating = 7;
    IS(adapter->IsQueryStateSupported(updating), true);
    CHECK(adapter->QueryState(updating, 0, nullptr, 1, &is_updating));
    IS(is_updating, 0);
    for (uint32_t i : {0u, 1u, 2u, 10u, 11u, ~0u}) {
        const DXCoreAdapterState state = static_cast<DXCoreAdapterState>(i);
        const HRESULT expected = i < 11 ? unsupported : invalid_call;
        if (i > 1) {
            IS(adapter->IsQueryStateSupported(state), false);
            IS(adapter->QueryState(state, 8, &group, 32, &out), expected);
        }
        IS(adapter->IsSetStateSupported(state), false);
        IS(adapter->SetState(state, 8, &group, 8, &out), expected);
        IS(adapter->SetState(state, 8, &group, 8, nullptr), E_POINTER);
    }
}

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
    IS(adapter->GetProperty(DXCoreAdapterProperty::HardwareID, 3, &id), E_INVALIDARG);

    ComPtr<ID3D12Device> device;
    CHECK(D3D12CreateDevice(adapter.Get(), D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)));
    const D3D12_HEAP_DESC desc = {1 << 20, {D3D12_HEAP_TYPE_DEFAULT, D3D12_CPU_PAGE_PROPERTY_UNKNOWN,
                                            D3D12_MEMORY_POOL_UNKNOWN, 0, 0},
                                  0, D3D12_HEAP_FLAG_ALLOW_ONLY_BUFFERS};
    ComPtr<ID3D12Heap> heap;
    CHECK(device->CreateHeap(&desc, IID_PPV_ARGS(&heap)));
    const DXCoreAdapterMemoryBudgetNodeSegmentGroup local = {0, DXCoreSegmentGroup::Local};
    DXCoreAdapterMemoryBudget budget = {};
    CHECK(adapter->QueryState(DXCoreAdapterState::AdapterMemoryBudget, sizeof local, &local, sizeof budget, &budget));
    std::printf("budget %d GiB, used %d\n", static_cast<int>(budget.budget >> 30),
                budget.currentUsage >= desc.SizeInBytes && budget.currentUsage < budget.budget);

    LUID luid = {};
    CHECK(adapter->GetProperty(DXCoreAdapterProperty::InstanceLuid, sizeof luid, &luid));
    const LUID own = device->GetAdapterLuid();
    ComPtr<IDXCoreAdapter> found;
    CHECK(factory->GetAdapterByLuid(own, IID_PPV_ARGS(&found)));
    std::printf("luid %s, adapter %s\n", std::memcmp(&luid, &own, sizeof own) == 0 ? "equal" : "differs",
                found == adapter ? "shared" : "new");
    ComPtr<IDMLDevice> dml;
    CHECK(DMLCreateDevice1(device.Get(), DML_CREATE_DEVICE_FLAG_NONE, DML_FEATURE_LEVEL_6_4, IID_PPV_ARGS(&dml)));

    check_factory(factory.Get(), adapter.Get());
    check_newer(factory.Get(), adapter.Get());
    check_list(factory.Get(), list.Get());
    check_properties(adapter.Get());
    check_states(adapter.Get());
    std::printf("%d failures\n", failures);
}
