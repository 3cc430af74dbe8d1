// Headers of Windows that ported programs include beside windows.h, and objects that newer programs ask for.

#include <initguid.h>

#include <atlbase.h>
#include <comdef.h>
#include <crtdbg.h>
#include <d3d12.h>
#include <dxgi1_4.h>
#include <rpcndr.h>
#include <stringapiset.h>
#include <windows.h>

#include <cstring>
#include <string>

DEFINE_GUID(own_guid, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);

static int failures = 0;

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            std::printf("line %d: %s\n", __LINE__, #condition); \
            failures++; \
        } \
    } while (0)

static void copies()
{
    char to[8] = "abcdefg";
    EXPECT(memcpy_s(to, sizeof to, "xy", 2) == 0 && std::strcmp(to, "xycdefg") == 0);
    EXPECT(memmove_s(to + 1, 7, to, 3) == 0 && std::strcmp(to, "xxycefg") == 0);
    EXPECT(memcpy_s(to, 4, "too long", 8) == ERANGE && to[0] == 0 && to[3] == 0 && to[4] == 'e');
    EXPECT(memcpy_s(nullptr, 4, "x", 1) == EINVAL && memcpy_s(to, sizeof to, nullptr, 1) == EINVAL && to[4] == 0);
    EXPECT(memcpy_s(to, 0, nullptr, 0) == 0);
    const byte number = 255;
    EXPECT(number == 255 && own_guid.Data1 == 1 && own_guid.Data4[7] == 11);
}

static void texts()
{
    const char utf8[] = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80";
    const wchar_t wide[] = L"a\u00e4\u20ac\U0001F600";
    EXPECT(MultiByteToWideChar(CP_UTF8, 0, utf8, -1, nullptr, 0) == 5);
    wchar_t letters[8] = {};
    EXPECT(MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, letters, 8) == 5 && !std::wcscmp(letters, wide));
    EXPECT(MultiByteToWideChar(CP_UTF8, 0, utf8, 3, letters, 8) == 2 && letters[1] == 0xE4);
    EXPECT(MultiByteToWideChar(CP_UTF8, 0, utf8, -1, letters, 4) == 0 && GetLastError() == ERROR_INSUFFICIENT_BUFFER);
    EXPECT(MultiByteToWideChar(CP_UTF8, 0, utf8, 0, letters, 4) == 0 && GetLastError() == ERROR_INVALID_PARAMETER);
    EXPECT(MultiByteToWideChar(437, 0, utf8, -1, letters, 8) == 0 && GetLastError() == ERROR_INVALID_PARAMETER);
    for (const char *wrong : {"\xFF", "\xC0\x80", "\xE2\x82", "\xED\xA0\x80", "\xF5\x80\x80\x80"}) {
        EXPECT(MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, wrong, -1, nullptr, 0) == 0);
        EXPECT(GetLastError() == ERROR_NO_UNICODE_TRANSLATION);
        EXPECT(MultiByteToWideChar(CP_UTF8, 0, wrong, -1, letters, 8) > 1 && letters[0] == 0xFFFD);
    }
    char bytes[16] = {};
    EXPECT(WideCharToMultiByte(CP_UTF8, 0, wide, -1, nullptr, 0, nullptr, nullptr) == 11);
    EXPECT(WideCharToMultiByte(CP_ACP, 0, wide, -1, bytes, 16, nullptr, nullptr) == 11 && !std::strcmp(bytes, utf8));
    EXPECT(WideCharToMultiByte(CP_UTF8, 0, L"a\0b", 3, bytes, 16, nullptr, nullptr) == 3 && bytes[2] == 'b');
    const wchar_t half[] = {static_cast<wchar_t>(0xD800), 0};
    EXPECT(WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, half, -1, bytes, 16, nullptr, nullptr) == 0);
    EXPECT(WideCharToMultiByte(CP_UTF8, 0, half, -1, bytes, 16, nullptr, nullptr) == 4);
}

static void errors()
{
    try {
        _com_util::CheckError(S_OK);
        _com_util::CheckError(E_OUTOFMEMORY);
        EXPECT(false);
    } catch (const _com_error &error) {
        EXPECT(error.Error() == E_OUTOFMEMORY && std::strcmp(error.ErrorMessage(), "HRESULT 0x8007000E") == 0);
    }
    _ASSERTE(failures >= 0);
    EXPECT(_CrtSetDbgFlag(_CRTDBG_ALLOC_MEM_DF | _CRTDBG_LEAK_CHECK_DF) == 0 && _CrtDumpMemoryLeaks() == 0);
}

static std::string destroyed;

static void STDMETHODCALLTYPE on_destruction(void *data)
{
    destroyed += static_cast<const char *>(data);
}

static void objects(ID3D12Device *device)
{
    CComPtr<ID3D12Fence> fence;
    EXPECT(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)) == S_OK && fence);
    CComPtr<ID3D12Fence> second = fence;
    CComQIPtr<ID3D12Device> of_fence = static_cast<IUnknown *>(static_cast<ID3D12Fence *>(fence));
    EXPECT(!of_fence && second == fence && second.IsEqualObject(fence));
    CComQIPtr<IDispatch> scripting(static_cast<IUnknown *>(device));
    EXPECT(!scripting);
    CComPtr<ID3DDestructionNotifier> notifier;
    EXPECT(fence.QueryInterface(&notifier) == S_OK);
    UINT one = 0, two = 0;
    char first[] = "1", other[] = "2";
    EXPECT(notifier->RegisterDestructionCallback(on_destruction, first, &one) == S_OK);
    EXPECT(notifier->RegisterDestructionCallback(on_destruction, other, &two) == S_OK && one != two);
    EXPECT(notifier->UnregisterDestructionCallback(one) == S_OK);
    EXPECT(notifier->UnregisterDestructionCallback(one) == E_INVALIDARG);
    EXPECT(notifier->RegisterDestructionCallback(nullptr, first, &one) == E_INVALIDARG);
    notifier.Release();
    fence.Release();
    EXPECT(destroyed.empty());
    second.Release();
    EXPECT(destroyed == "2");

    CComPtr<ID3D12DeviceConfiguration> configuration;
    EXPECT(device->QueryInterface(IID_PPV_ARGS(&configuration)) == S_OK);
    const D3D12_DEVICE_CONFIGURATION_DESC desc = configuration->GetDesc();
    EXPECT(desc.SDKVersion >= 606 && desc.NumEnabledExperimentalFeatures == 0 && desc.GpuBasedValidationFlags == 0);
    EXPECT(configuration->GetEnabledExperimentalFeatures(nullptr, 0) == S_OK);
    const GUID newest = {0x76cff76f, 0x1e9b, 0x4450, {0x8c, 0xdc, 0x34, 0xf1, 0xaf, 0x78, 0x8e, 0x5b}};
    CComPtr<IUnknown> device15;
    EXPECT(device->QueryInterface(newest, reinterpret_cast<void **>(&device15)) == S_OK);
}

static void features(ID3D12Device *device)
{
    for (const auto model : {D3D_SHADER_MODEL_5_1, D3D_SHADER_MODEL_6_0, D3D_SHADER_MODEL_6_6, D3D_SHADER_MODEL_6_7}) {
        D3D12_FEATURE_DATA_SHADER_MODEL asked = {model};
        EXPECT(device->CheckFeatureSupport(D3D12_FEATURE_SHADER_MODEL, &asked, sizeof asked) == S_OK);
        EXPECT(asked.HighestShaderModel == (model < D3D_SHADER_MODEL_6_6 ? model : D3D_SHADER_MODEL_6_6));
    }
    D3D12_FEATURE_DATA_D3D12_OPTIONS7 seven;
    EXPECT(device->CheckFeatureSupport(D3D12_FEATURE_D3D12_OPTIONS7, &seven, sizeof seven) == S_OK);
    EXPECT(seven.MeshShaderTier == D3D12_MESH_SHADER_TIER_NOT_SUPPORTED);

    D3D12_RESOURCE_DESC desc = {D3D12_RESOURCE_DIMENSION_BUFFER, 0, 3 * 65536 + 1, 1, 1, 1, DXGI_FORMAT_UNKNOWN, {1, 0},
                                D3D12_TEXTURE_LAYOUT_ROW_MAJOR, D3D12_RESOURCE_FLAG_NONE};
    CComPtr<ID3D12Resource> tiled;
    EXPECT(device->CreateReservedResource(&desc, D3D12_RESOURCE_STATE_COMMON, nullptr, IID_PPV_ARGS(&tiled)) == S_OK);
    UINT tiles = 0, count = 2;
    D3D12_PACKED_MIP_INFO packed = {9, 9, 9, 9};
    D3D12_TILE_SHAPE shape = {};
    D3D12_SUBRESOURCE_TILING tilings[2] = {};
    device->GetResourceTiling(tiled, &tiles, &packed, &shape, &count, 0, tilings);
    EXPECT(tiles == 4 && packed.NumStandardMips == 0 && shape.WidthInTexels == 65536 && shape.HeightInTexels == 1);
    EXPECT(count == 1 && tilings[0].WidthInTiles == 4 && tilings[0].HeightInTiles == 1 && tilings[1].WidthInTiles == 0);
    device->GetResourceTiling(tiled, nullptr, nullptr, nullptr, nullptr, 0, nullptr);
    count = 2;
    device->GetResourceTiling(tiled, nullptr, nullptr, nullptr, &count, 1, tilings);
    EXPECT(count == 0);

    desc = {D3D12_RESOURCE_DIMENSION_TEXTURE2D, 0, 1024, 512, 1, 1, DXGI_FORMAT_R8G8B8A8_UNORM, {1, 0},
            D3D12_TEXTURE_LAYOUT_UNKNOWN, D3D12_RESOURCE_FLAG_NONE};
    const D3D12_RESOURCE_ALLOCATION_INFO info = device->GetResourceAllocationInfo(0, 1, &desc);
    EXPECT(info.SizeInBytes == 2097152 && info.Alignment == 65536);

    const GUID key = {1, 2, 3, {4}};
    EXPECT(tiled->SetPrivateData(key, 3, "abc") == S_OK);
    EXPECT(tiled->SetPrivateData(key, 3, nullptr) == S_OK && tiled->SetPrivateData(key, 3, nullptr) == S_FALSE);
    UINT size = 0;
    EXPECT(tiled->GetPrivateData(key, &size, nullptr) == DXGI_ERROR_NOT_FOUND);
}

static void budgets()
{
    CComPtr<IDXGIFactory4> factory;
    CComPtr<IDXGIAdapter1> adapter;
    CComPtr<IDXGIAdapter3> third;
    EXPECT(CreateDXGIFactory1(IID_PPV_ARGS(&factory)) == S_OK && factory->EnumAdapters1(0, &adapter) == S_OK);
    EXPECT(adapter.QueryInterface(&third) == S_OK);
    const HANDLE event = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    DWORD cookie = 0;
    EXPECT(third->RegisterVideoMemoryBudgetChangeNotificationEvent(event, &cookie) == S_OK && cookie != 0);
    EXPECT(WaitForSingleObject(event, 0) == WAIT_TIMEOUT);
    third->UnregisterVideoMemoryBudgetChangeNotification(cookie);
    CloseHandle(event);
}

int main()
{
    CComPtr<ID3D12Device> device;
    EXPECT(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)) == S_OK);
    copies();
    texts();
    errors();
    objects(device);
    features(device);
    budgets();
    std::printf("%d failures\n", failures);
    return failures != 0;
}
