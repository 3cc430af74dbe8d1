// What a program written for Windows uses beside Direct3D: events, DXGI, WIL, WRL, libraries.
//
// Each scene is named on the command line; without a name, all are played.

#include <windows.h>
#include <dxgi1_6.h>
#include <d3dx12.h>
#include <dxcore.h>
#include <wil/com.h>
#include <wil/resource.h>
#include <wil/result.h>
#include <wrl.h>
#include <DirectML.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

using Microsoft::WRL::ComPtr;

static int failures = 0;

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            std::printf("line %d: %s\n", __LINE__, #condition); \
            failures++; \
        } \
    } while (0)

static DWORD state_of(HANDLE event)
{
    return WaitForSingleObject(event, 0);
}

static void events()
{
    const HANDLE manual = CreateEvent(nullptr, TRUE, FALSE, nullptr);
    EXPECT(manual != nullptr && state_of(manual) == WAIT_TIMEOUT);
    EXPECT(SetEvent(manual) && SetEvent(manual));
    EXPECT(state_of(manual) == WAIT_OBJECT_0 && state_of(manual) == WAIT_OBJECT_0); // stays set
    EXPECT(ResetEvent(manual) && ResetEvent(manual) && state_of(manual) == WAIT_TIMEOUT);

    const HANDLE automatic = CreateEventW(nullptr, FALSE, TRUE, nullptr);
    EXPECT(state_of(automatic) == WAIT_OBJECT_0 && state_of(automatic) == WAIT_TIMEOUT);
    EXPECT(SetEvent(automatic) && SetEvent(automatic)); // one wait is let through, whatever was set before
    EXPECT(WaitForSingleObjectEx(automatic, INFINITE, FALSE) == WAIT_OBJECT_0);
    EXPECT(state_of(automatic) == WAIT_TIMEOUT);

    const HANDLE set = CreateEventEx(nullptr, nullptr, CREATE_EVENT_MANUAL_RESET | CREATE_EVENT_INITIAL_SET, 0);
    EXPECT(state_of(set) == WAIT_OBJECT_0);

    const HANDLE three[] = {manual, automatic, set};
    EXPECT(WaitForMultipleObjects(3, three, FALSE, INFINITE) == WAIT_OBJECT_0 + 2);
    EXPECT(WaitForMultipleObjects(3, three, TRUE, 0) == WAIT_TIMEOUT);
    EXPECT(SetEvent(automatic) && WaitForMultipleObjects(3, three, TRUE, 0) == WAIT_TIMEOUT);
    EXPECT(SetEvent(manual) && WaitForMultipleObjects(3, three, TRUE, INFINITE) == WAIT_OBJECT_0);
    EXPECT(state_of(automatic) == WAIT_TIMEOUT); // taken with the others
    EXPECT(WaitForMultipleObjectsEx(3, three, FALSE, 0, FALSE) == WAIT_OBJECT_0);

    const ULONGLONG before = GetTickCount64();
    EXPECT(WaitForSingleObject(automatic, 30) == WAIT_TIMEOUT);
    Sleep(10);
    EXPECT(GetTickCount64() >= before + 39);

    const HANDLE twice[] = {manual, manual};
    EXPECT(WaitForMultipleObjects(2, twice, TRUE, 0) == WAIT_FAILED && GetLastError() == ERROR_INVALID_PARAMETER);
    EXPECT(WaitForMultipleObjects(2, twice, FALSE, 0) == WAIT_OBJECT_0);
    EXPECT(WaitForMultipleObjects(0, twice, FALSE, 0) == WAIT_FAILED && GetLastError() == ERROR_INVALID_PARAMETER);
    EXPECT(WaitForMultipleObjects(65, twice, FALSE, 0) == WAIT_FAILED);
    EXPECT(CreateEventA(nullptr, FALSE, FALSE, "shared") == nullptr && GetLastError() == ERROR_NOT_SUPPORTED);

    close(STDIN_FILENO); // the next file has the number 0, which as a HANDLE is none
    const HANDLE first = CreateEvent(nullptr, FALSE, TRUE, nullptr);
    EXPECT(first != nullptr && state_of(first) == WAIT_OBJECT_0 && CloseHandle(first));

    for (HANDLE each : three)
        EXPECT(CloseHandle(each));
    SetLastError(ERROR_SUCCESS);
    EXPECT(!SetEvent(manual) && GetLastError() == ERROR_INVALID_HANDLE);
    EXPECT(!ResetEvent(manual) && !CloseHandle(manual) && !CloseHandle(nullptr));
    EXPECT(!SetEvent(INVALID_HANDLE_VALUE) && WaitForSingleObject(nullptr, 0) == WAIT_FAILED);
    EXPECT(WaitForMultipleObjects(3, three, TRUE, 0) == WAIT_FAILED && GetLastError() == ERROR_INVALID_HANDLE);
}

// Each SetEvent of an event that resets itself lets one thread through, of an event reset by hand all of them.
static void threads()
{
    const int count = 4, rounds = 300;
    wil::unique_event go(wil::EventOptions::None), gone(wil::EventOptions::None), all(wil::EventOptions::ManualReset);
    std::atomic<int> passed(0), released(0);
    std::atomic<bool> is_over(false);
    std::vector<std::thread> waiting;
    for (int i = 0; i < count; i++)
        waiting.emplace_back([&] {
            while (go.wait(), !is_over) {
                passed++;
                gone.SetEvent();
            }
            go.SetEvent(); // the next thread ends, too
            all.wait();
            released++;
        });
    for (int i = 0; i < rounds; i++) {
        go.SetEvent();
        EXPECT(gone.wait(20000));
        EXPECT(passed == i + 1);
    }
    is_over = true;
    go.SetEvent();
    all.SetEvent();
    for (std::thread &each : waiting)
        each.join();
    EXPECT(passed == rounds && released == count && all.is_signaled());
}

// Two threads that wait for both of two events, named in either order: one gets both, and nothing is lost.
static void both()
{
    const int rounds = 300;
    wil::unique_event a(wil::EventOptions::None), b(wil::EventOptions::None), taken(wil::EventOptions::None);
    wil::unique_event end(wil::EventOptions::ManualReset);
    std::atomic<int> count(0);
    const auto take = [&](HANDLE first, HANDLE second) {
        const HANDLE pair[] = {first, second};
        for (;;) {
            const DWORD result = WaitForMultipleObjects(2, pair, TRUE, 20);
            if (result == WAIT_OBJECT_0) {
                count++;
                taken.SetEvent();
            } else if (result == WAIT_FAILED || end.is_signaled()) {
                return;
            }
        }
    };
    std::thread one(take, a.get(), b.get()), other(take, b.get(), a.get());
    for (int i = 0; i < rounds; i++) {
        a.SetEvent();
        b.SetEvent();
        EXPECT(taken.wait(20000));
    }
    end.SetEvent();
    one.join();
    other.join();
    EXPECT(count == rounds && !a.is_signaled() && !b.is_signaled());
}

static HRESULT returns(HRESULT code, const void *pointer)
{
    RETURN_IF_FAILED(code);
    RETURN_HR_IF_NULL(E_POINTER, pointer);
    RETURN_HR_IF(E_ABORT, code == S_FALSE);
    RETURN_IF_NULL_ALLOC(pointer);
    return S_OK;
}

static HRESULT catches(HRESULT code)
try {
    THROW_IF_FAILED(code);
    return S_OK;
}
CATCH_RETURN()

template <typename Function> HRESULT thrown(Function function)
{
    try {
        function();
    } catch (const wil::ResultException &error) {
        EXPECT(std::strstr(error.what(), "compat.cpp:") != nullptr);
        return error.GetErrorCode();
    }
    return S_OK;
}

static void macros()
{
    int there = 0;
    EXPECT(ARRAYSIZE("four") == 5);
    EXPECT(CoInitializeEx(nullptr, COINIT_MULTITHREADED) == S_OK);
    CoUninitialize();
    EXPECT(returns(E_FAIL, &there) == E_FAIL && returns(S_OK, nullptr) == E_POINTER);
    EXPECT(returns(S_FALSE, &there) == E_ABORT && returns(S_OK, &there) == S_OK);
    EXPECT(catches(E_HANDLE) == E_HANDLE && catches(S_FALSE) == S_OK);
    EXPECT(THROW_IF_FAILED(S_FALSE) == S_FALSE);
    EXPECT(thrown([] { THROW_IF_FAILED(E_ACCESSDENIED); }) == E_ACCESSDENIED);
    EXPECT(thrown([] { THROW_HR(E_ABORT); }) == E_ABORT);
    EXPECT(thrown([] { THROW_HR_IF(E_FAIL, true); }) == E_FAIL);
    EXPECT(thrown([] { THROW_HR_IF(E_FAIL, false); }) == S_OK);
    EXPECT(thrown([] { THROW_IF_NULL_ALLOC(static_cast<int *>(nullptr)); }) == E_OUTOFMEMORY);
    SetLastError(ERROR_INVALID_HANDLE);
    EXPECT(thrown([] { THROW_LAST_ERROR_IF_NULL(static_cast<HANDLE>(nullptr)); }) == E_HANDLE);
    EXPECT(thrown([] { THROW_IF_WIN32_BOOL_FALSE(CloseHandle(nullptr)); }) == E_HANDLE);
    EXPECT(thrown([] { THROW_LAST_ERROR_IF(false); }) == S_OK);
    wil::unique_handle event(CreateEvent(nullptr, true, false, nullptr));
    THROW_LAST_ERROR_IF_NULL(event);
    const HANDLE number = event.get();
    wil::unique_handle other(std::move(event));
    EXPECT(!event && other.get() == number);
    other.reset();
    EXPECT(!CloseHandle(number)); // closed
    {
        const auto leave = wil::scope_exit([&] { there = 1; });
        EXPECT(there == 0);
    }
    EXPECT(there == 1);
    Microsoft::WRL::Wrappers::Event owned(CreateEvent(nullptr, false, true, nullptr));
    EXPECT(owned.IsValid() && state_of(owned.Get()) == WAIT_OBJECT_0);
    EXPECT(LOG_IF_FAILED(E_FAIL) == E_FAIL);
    OutputDebugString("nobody reads this\n");
    OutputDebugStringW(L"nor this: \u00e4\u20ac\U0001F600\n");
    EXPECT(!IsDebuggerPresent() && dmlemu_compat::utf8(L"\u00e4\u20ac\U0001F600x") == "ä€😀x");
}

static void libraries()
{
    const HMODULE library = LoadLibraryW(L"DXCore.dll");
    EXPECT(library != nullptr && library == LoadLibrary("C:\\Windows\\System32\\dxcore.dll"));
    const auto create = reinterpret_cast<HRESULT(WINAPI *)(REFIID, void **)>(
        reinterpret_cast<void *>(GetProcAddress(library, "DXCoreCreateAdapterFactory")));
    ComPtr<IDXCoreAdapterFactory> factory;
    ComPtr<IDXCoreAdapterList> list;
    EXPECT(create != nullptr && create(IID_PPV_ARGS(&factory)) == S_OK);
    EXPECT(factory->CreateAdapterList(1, &DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML, IID_PPV_ARGS(&list)) == S_OK);
    EXPECT(list->GetAdapterCount() == 1);
    EXPECT(GetProcAddress(library, "Nothing") == nullptr && GetLastError() == ERROR_PROC_NOT_FOUND);
    EXPECT(LoadLibraryA("nothing.dll") == nullptr && GetLastError() == ERROR_MOD_NOT_FOUND);
    EXPECT(GetModuleHandleW(L"DXCore.dll") == library && GetModuleHandle("dxcore") == library);
    EXPECT(FreeLibrary(library));
    EXPECT(GetModuleHandle("nothing.dll") == nullptr && GetLastError() == ERROR_MOD_NOT_FOUND);
    EXPECT(GetModuleHandleA(nullptr) != nullptr && GetProcAddress(GetModuleHandleA(nullptr), "malloc") != nullptr);
}

static void adapters()
{
    ComPtr<IDXGIFactory6> factory;
    EXPECT(CreateDXGIFactory2(DXGI_CREATE_FACTORY_DEBUG, IID_PPV_ARGS(&factory)) == S_OK);
    EXPECT(factory->GetCreationFlags() == DXGI_CREATE_FACTORY_DEBUG && factory->IsCurrent());
    ComPtr<IDXGIAdapter> adapter;
    ComPtr<IDXGIAdapter1> first, warp, by_luid, preferred;
    EXPECT(factory->EnumAdapters(0, &adapter) == S_OK && factory->EnumAdapters1(0, &first) == S_OK);
    EXPECT(adapter == first && !(adapter != first)); // as identities; ComPtr of DirectX-Headers cannot tell
    EXPECT(factory->EnumAdapters1(1, &warp) == DXGI_ERROR_NOT_FOUND && warp == nullptr);
    EXPECT(factory->EnumWarpAdapter(IID_PPV_ARGS(&warp)) == S_OK);
    EXPECT(factory->EnumAdapterByGpuPreference(0, DXGI_GPU_PREFERENCE_HIGH_PERFORMANCE, IID_PPV_ARGS(&preferred)) ==
           S_OK);
    EXPECT(preferred == first);
    EXPECT(factory->EnumAdapterByGpuPreference(1, DXGI_GPU_PREFERENCE_UNSPECIFIED, IID_PPV_ARGS(&preferred)) ==
           DXGI_ERROR_NOT_FOUND);

    ComPtr<IDXGIAdapter4> newest;
    EXPECT(first.As(&newest) == S_OK);
    struct {
        DXGI_ADAPTER_DESC1 desc;
        UINT64 guard;
    } described = {{}, 0x5555};
    EXPECT(first->GetDesc1(&described.desc) == S_OK && described.guard == 0x5555);
    EXPECT(std::wcscmp(described.desc.Description, L"dmlemu Virtual GPU") == 0);
    EXPECT(described.desc.DedicatedVideoMemory > 0 && described.desc.Flags == DXGI_ADAPTER_FLAG_NONE);
    DXGI_ADAPTER_DESC3 desc3 = {};
    EXPECT(newest->GetDesc3(&desc3) == S_OK && desc3.VendorId == described.desc.VendorId);
    EXPECT(desc3.ComputePreemptionGranularity == DXGI_COMPUTE_PREEMPTION_DISPATCH_BOUNDARY);
    EXPECT(factory->EnumAdapterByLuid(desc3.AdapterLuid, IID_PPV_ARGS(&by_luid)) == S_OK && by_luid == first);
    EXPECT(factory->EnumAdapterByLuid({77, 77}, IID_PPV_ARGS(&by_luid)) == DXGI_ERROR_NOT_FOUND);
    DXGI_QUERY_VIDEO_MEMORY_INFO memory = {};
    EXPECT(newest->QueryVideoMemoryInfo(0, DXGI_MEMORY_SEGMENT_GROUP_LOCAL, &memory) == S_OK && memory.Budget > 0);
    EXPECT(newest->QueryVideoMemoryInfo(0, DXGI_MEMORY_SEGMENT_GROUP_NON_LOCAL, &memory) == S_OK);
    LARGE_INTEGER version = {};
    EXPECT(adapter->CheckInterfaceSupport(__uuidof(IDXGIDevice), &version) == S_OK && version.QuadPart != 0);
    EXPECT(adapter->CheckInterfaceSupport(__uuidof(IDXGIAdapter), &version) == DXGI_ERROR_UNSUPPORTED);
    IDXGIOutput *output = reinterpret_cast<IDXGIOutput *>(&version);
    EXPECT(adapter->EnumOutputs(0, &output) == DXGI_ERROR_NOT_FOUND && output == nullptr);

    ComPtr<IDXGIFactory4> parent;
    EXPECT(adapter->GetParent(IID_PPV_ARGS(&parent)) == S_OK && parent == factory);
    ComPtr<IDXGIFactory7> unlike;
    EXPECT(factory.As(&unlike) == S_OK);
    EXPECT(factory->QueryInterface(IID_IDXGIAdapter, reinterpret_cast<void **>(parent.ReleaseAndGetAddressOf())) ==
           E_NOINTERFACE);
    parent = nullptr;
    unlike = nullptr;
    factory = nullptr;
    EXPECT(adapter->GetParent(IID_PPV_ARGS(&parent)) == S_OK); // kept by its adapters

    wil::com_ptr<ID3D12Device> device;
    EXPECT(D3D12CreateDevice(adapter.Get(), D3D_FEATURE_LEVEL_11_0, __uuidof(ID3D12Device), device.put_void()) == S_OK);
    D3D_FEATURE_LEVEL levels[] = {D3D_FEATURE_LEVEL_1_0_GENERIC, D3D_FEATURE_LEVEL_1_0_CORE, D3D_FEATURE_LEVEL_11_0};
    D3D12_FEATURE_DATA_FEATURE_LEVELS highest = {ARRAYSIZE(levels), levels, levels[0]};
    EXPECT(device->CheckFeatureSupport(D3D12_FEATURE_FEATURE_LEVELS, &highest, sizeof highest) == S_OK);
    EXPECT(highest.MaxSupportedFeatureLevel == D3D_FEATURE_LEVEL_11_0);
    const LUID luid = device->GetAdapterLuid();
    EXPECT(std::memcmp(&luid, &desc3.AdapterLuid, sizeof luid) == 0);
    wil::com_ptr<ID3D12Device> again(device);
    EXPECT(again == device && device.query<ID3D12Object>() == device && !device.try_query<IDXGIAdapter>());
    const CD3DX12_HEAP_PROPERTIES properties(D3D12_HEAP_TYPE_DEFAULT);
    const CD3DX12_RESOURCE_DESC desc = CD3DX12_RESOURCE_DESC::Buffer(1 << 20);
    ComPtr<ID3D12Resource> buffer;
    EXPECT(device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, D3D12_RESOURCE_STATE_COMMON,
                                           nullptr, IID_PPV_ARGS(&buffer)) == S_OK);
    EXPECT(newest->QueryVideoMemoryInfo(0, DXGI_MEMORY_SEGMENT_GROUP_LOCAL, &memory) == S_OK);
    EXPECT(memory.CurrentUsage >= 1 << 20);

    // UpdateSubresources of d3dx12.h needs the variable IID_ID3D12Device.
    ComPtr<ID3D12CommandAllocator> allocator;
    ComPtr<ID3D12GraphicsCommandList> list;
    ComPtr<ID3D12Resource> upload;
    const D3D12_COMMAND_LIST_TYPE type = D3D12_COMMAND_LIST_TYPE_DIRECT;
    const CD3DX12_HEAP_PROPERTIES uploads(D3D12_HEAP_TYPE_UPLOAD);
    EXPECT(device->CreateCommandAllocator(type, IID_PPV_ARGS(&allocator)) == S_OK);
    EXPECT(device->CreateCommandList(0, type, allocator.Get(), nullptr, IID_PPV_ARGS(&list)) == S_OK);
    EXPECT(device->CreateCommittedResource(&uploads, D3D12_HEAP_FLAG_NONE, &desc, D3D12_RESOURCE_STATE_GENERIC_READ,
                                           nullptr, IID_PPV_ARGS(&upload)) == S_OK);
    const std::vector<char> bytes(1 << 20, 'x');
    D3D12_SUBRESOURCE_DATA data = {bytes.data(), 1 << 20, 1 << 20};
    EXPECT(UpdateSubresources(list.Get(), buffer.Get(), upload.Get(), 0, 0, 1, &data) == 1 << 20);
    EXPECT(list->Close() == S_OK);

    ComPtr<IDMLDevice> dml;
    EXPECT(DMLCreateDevice(device.get(), DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&dml)) == S_OK);
}

// What has no meaning here is refused, by name.
static void refused()
{
    ComPtr<IDXGIFactory2> factory;
    ComPtr<IDXGIAdapter1> adapter;
    EXPECT(CreateDXGIFactory1(IID_PPV_ARGS(&factory)) == S_OK && factory->EnumAdapters1(0, &adapter) == S_OK);
    IDXGISwapChain1 *chain = nullptr;
    EXPECT(factory->CreateSwapChainForHwnd(nullptr, 0, nullptr, nullptr, nullptr, &chain) == E_NOTIMPL);
    EXPECT(factory->CreateSoftwareAdapter(nullptr, nullptr) == E_NOTIMPL);
    UINT size = 0;
    EXPECT(adapter->GetPrivateData(__uuidof(IDXGIAdapter), &size, nullptr) == E_NOTIMPL);
    EXPECT(adapter->GetDesc(nullptr) == E_INVALIDARG && adapter->EnumOutputs(0, nullptr) == DXGI_ERROR_INVALID_CALL);
    EXPECT(factory->EnumAdapters(0, nullptr) == DXGI_ERROR_INVALID_CALL);
    EXPECT(CreateDXGIFactory(__uuidof(IDXGIFactory), nullptr) == E_POINTER);
    void *nothing = &size;
    EXPECT(CreateDXGIFactory2(8, __uuidof(IDXGIFactory), &nothing) == E_INVALIDARG && nothing == nullptr);
    EXPECT(CreateDXGIFactory1(__uuidof(ID3D12Device), &nothing) == E_NOINTERFACE && nothing == nullptr);
    EXPECT(DXGIGetDebugInterface1(0, __uuidof(IUnknown), &nothing) == E_NOINTERFACE && nothing == nullptr);
}

int main(int count, char **names)
{
    const struct {
        const char *name;
        void (*play)();
    } scenes[] = {{"events", events},       {"threads", threads},   {"both", both},      {"macros", macros},
                  {"libraries", libraries}, {"adapters", adapters}, {"refused", refused}};
    for (const auto &scene : scenes)
        for (int i = count > 1 ? 1 : 0; i < count; i++)
            if (i == 0 || std::strcmp(names[i], scene.name) == 0)
                scene.play();
    std::printf("%d failures\n", failures);
    return failures != 0;
}
