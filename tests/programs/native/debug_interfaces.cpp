// The debug interfaces: settings of the layer, filters, stored messages, callbacks, muting, live objects.

#include "program.h"

#include <directx/d3d12sdklayers.h>

#include <thread>

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

// A WARNING of category STATE_CREATION with number 1328, of a buffer of this size.
static void remark(Gpu &gpu, UINT64 size)
{
    gpu.buffer(size, D3D12_RESOURCE_STATE_COPY_DEST);
}

// A WARNING of category EXECUTION with number 1424.
static void warn(Gpu &gpu)
{
    gpu.queue->Wait(gpu.fence.Get(), 0);
}

static void check_layer()
{
    ComPtr<ID3D12Debug> debug;
    CHECK(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)));
    ComPtr<ID3D12Debug1> debug1;
    ComPtr<ID3D12Debug2> debug2;
    ComPtr<ID3D12Debug5> debug5;
    ComPtr<IUnknown> first, second;
    CHECK(debug.As(&debug1));
    CHECK(debug1.As(&debug2));
    CHECK(debug2.As(&debug5));
    CHECK(debug.As(&first));
    CHECK(debug2.As(&second));
    IS(first == second, true);

    debug->EnableDebugLayer();
    debug5->DisableDebugLayer();
    ComPtr<ID3D12InfoQueue> messages;
    IS(Gpu().device.As(&messages), E_NOINTERFACE);
    debug5->EnableDebugLayer();
    debug1->SetEnableGPUBasedValidation(TRUE);
}

// Only GPU-based validation sees what memory has never been written.
static void read_uninitialized()
{
    Gpu gpu;
    ComPtr<ID3D12InfoQueue> messages;
    CHECK(gpu.device.As(&messages));
    messages->SetMuteDebugOutput(TRUE);
    IS(messages->GetMuteDebugOutput(), TRUE);
    const UINT sizes[4] = {1, 1, 1, 4};
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity(sizes, {1, 0});
    D3D12_HEAP_PROPERTIES properties = {D3D12_HEAP_TYPE_DEFAULT, D3D12_CPU_PAGE_PROPERTY_UNKNOWN,
                                        D3D12_MEMORY_POOL_UNKNOWN, 0, 0};
    const D3D12_RESOURCE_DESC desc = buffer_desc(64, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
    ComPtr<ID3D12Resource> input, output = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    CHECK(gpu.device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_CREATE_NOT_ZEROED, &desc,
                                              D3D12_RESOURCE_STATE_COMMON, nullptr, IID_PPV_ARGS(&input)));
    gpu.dispatch(compiled.Get(), {{input.Get(), 0, 16}}, {{output.Get(), 0, 16}});
    gpu.run();
    int found = 0;
    for (UINT64 i = 0; i < messages->GetNumStoredMessages(); i++) {
        SIZE_T size = 0;
        IS(messages->GetMessage(i, nullptr, &size), S_FALSE);
        std::vector<char> bytes(size);
        D3D12_MESSAGE *message = reinterpret_cast<D3D12_MESSAGE *>(bytes.data());
        CHECK(messages->GetMessage(i, message, &size));
        found += std::strstr(message->pDescription, "MEM_UNINIT_READ") != nullptr;
    }
    IS(found, 1);
}

static void check_stored(Gpu &gpu, ID3D12InfoQueue *messages)
{
    IS(messages->GetMessageCountLimit(), 1024);
    IS(messages->GetNumStoredMessages(), 0);
    for (UINT64 size = 4; size <= 16; size += 4)
        remark(gpu, size);
    CHECK(messages->SetMessageCountLimit(3));
    IS(messages->GetNumStoredMessages(), 3);
    IS(messages->GetNumMessagesDiscardedByMessageCountLimit(), 1);
    IS(messages->GetNumMessagesAllowedByStorageFilter(), 4);
    CHECK(messages->SetMessageCountLimit(~0ull));
    IS(messages->GetMessageCountLimit(), ~0ull);

    SIZE_T size = 0;
    IS(messages->GetMessage(0, nullptr, &size), S_FALSE);
    std::vector<char> bytes(size);
    D3D12_MESSAGE *message = reinterpret_cast<D3D12_MESSAGE *>(bytes.data());
    CHECK(messages->GetMessage(0, message, &size));
    IS(message->Category, D3D12_MESSAGE_CATEGORY_STATE_CREATION);
    IS(message->Severity, D3D12_MESSAGE_SEVERITY_WARNING);
    IS(message->ID, 1328); // CREATERESOURCE_STATE_IGNORED
    IS(message->DescriptionByteLength, std::strlen(message->pDescription) + 1);
    SIZE_T small = size - 1;
    IS(messages->GetMessage(0, message, &small), E_INVALIDARG);
    IS(small, size);
    IS(messages->GetMessage(0, message, nullptr), E_INVALIDARG);
    IS(messages->GetMessage(100, message, &size), E_INVALIDARG);
    messages->ClearStoredMessages();
    IS(messages->GetNumStoredMessages(), 0);
}

static void check_filters(Gpu &gpu, ID3D12InfoQueue *messages)
{
    D3D12_MESSAGE_SEVERITY severities[] = {D3D12_MESSAGE_SEVERITY_INFO, D3D12_MESSAGE_SEVERITY_MESSAGE};
    D3D12_MESSAGE_ID ids[] = {static_cast<D3D12_MESSAGE_ID>(1424)};
    D3D12_MESSAGE_CATEGORY categories[] = {D3D12_MESSAGE_CATEGORY_SHADER};
    D3D12_INFO_QUEUE_FILTER filter = {};
    filter.DenyList.NumSeverities = 2;
    filter.DenyList.pSeverityList = severities;
    CHECK(messages->AddStorageFilterEntries(&filter)); // pushes one, since there is none
    IS(messages->GetStorageFilterStackSize(), 1);
    filter = {};
    filter.AllowList.NumIDs = 1;
    filter.AllowList.pIDList = ids;
    filter.DenyList.NumCategories = 1;
    filter.DenyList.pCategoryList = categories;
    CHECK(messages->AddStorageFilterEntries(&filter));
    IS(messages->GetStorageFilterStackSize(), 1);
    remark(gpu, 20);
    IS(messages->GetNumStoredMessages(), 0);
    IS(messages->GetNumMessagesDeniedByStorageFilter(), 1);
    warn(gpu);
    IS(messages->GetNumStoredMessages(), 1);

    SIZE_T size = 0;
    IS(messages->GetStorageFilter(nullptr, &size), S_FALSE);
    IS(size, sizeof(D3D12_INFO_QUEUE_FILTER) + 4 * sizeof(UINT));
    std::vector<char> bytes(size);
    D3D12_INFO_QUEUE_FILTER *found = reinterpret_cast<D3D12_INFO_QUEUE_FILTER *>(bytes.data());
    CHECK(messages->GetStorageFilter(found, &size));
    IS(found->AllowList.NumIDs, 1);
    IS(found->AllowList.pIDList[0], 1424);
    IS(found->AllowList.NumSeverities, 0);
    IS(found->AllowList.pSeverityList == nullptr, true);
    IS(found->DenyList.NumSeverities, 2);
    IS(found->DenyList.pSeverityList[1], D3D12_MESSAGE_SEVERITY_MESSAGE);
    IS(found->DenyList.pCategoryList[0], D3D12_MESSAGE_CATEGORY_SHADER);
    CHECK(messages->PushStorageFilter(found)); // what it wrote, it reads
    CHECK(messages->PushCopyOfStorageFilter());
    CHECK(messages->PushEmptyStorageFilter());
    IS(messages->GetStorageFilterStackSize(), 4);
    remark(gpu, 24);
    IS(messages->GetNumStoredMessages(), 2);

    filter = {};
    filter.AllowList.NumIDs = 1;
    filter.AllowList.pIDList = ids;
    CHECK(messages->AddRetrievalFilterEntries(&filter));
    IS(messages->GetRetrievalFilterStackSize(), 1);
    IS(messages->GetNumStoredMessagesAllowedByRetrievalFilter(), 1);
    IS(messages->GetRetrievalFilter(nullptr, &size), S_FALSE);
    IS(size, sizeof(D3D12_INFO_QUEUE_FILTER) + sizeof(UINT));
    CHECK(messages->PushCopyOfRetrievalFilter());
    CHECK(messages->PushEmptyRetrievalFilter());
    IS(messages->GetNumStoredMessagesAllowedByRetrievalFilter(), 2);
    CHECK(messages->PushRetrievalFilter(&filter));
    IS(messages->GetNumStoredMessagesAllowedByRetrievalFilter(), 1);
    messages->ClearRetrievalFilter();
    IS(messages->GetNumStoredMessagesAllowedByRetrievalFilter(), 2);
    for (int i = 0; i < 5; i++) {
        messages->PopRetrievalFilter();
        messages->PopStorageFilter();
    }
    IS(messages->GetRetrievalFilterStackSize() + messages->GetStorageFilterStackSize(), 0);

    filter.AllowList.pIDList = nullptr;
    IS(messages->PushStorageFilter(&filter), E_INVALIDARG);
    IS(messages->PushRetrievalFilter(nullptr), E_INVALIDARG);
    filter = {};
    severities[0] = static_cast<D3D12_MESSAGE_SEVERITY>(9);
    filter.DenyList.NumSeverities = 1;
    filter.DenyList.pSeverityList = severities;
    IS(messages->AddStorageFilterEntries(&filter), E_INVALIDARG);
    IS(messages->GetStorageFilter(found, nullptr), E_INVALIDARG);
    IS(messages->GetStorageFilterStackSize(), 0);
    messages->ClearStoredMessages();
}

struct Seen {
    int count;
    D3D12_MESSAGE_CATEGORY category;
    D3D12_MESSAGE_ID id;
    std::thread::id thread;
};

static void STDMETHODCALLTYPE on_message(D3D12_MESSAGE_CATEGORY category, D3D12_MESSAGE_SEVERITY,
                                         D3D12_MESSAGE_ID id, LPCSTR, void *context)
{
    Seen *seen = static_cast<Seen *>(context);
    *seen = {seen->count + 1, category, id, std::this_thread::get_id()};
}

static void check_callbacks(Gpu &gpu, ID3D12InfoQueue1 *messages)
{
    Seen filtered = {}, all = {};
    DWORD first = 0, second = 0, none = 7;
    CHECK(messages->RegisterMessageCallback(on_message, D3D12_MESSAGE_CALLBACK_FLAG_NONE, &filtered, &first));
    CHECK(messages->RegisterMessageCallback(on_message, D3D12_MESSAGE_CALLBACK_IGNORE_FILTERS, &all, &second));
    IS(first != 0 && second != 0 && first != second, true);
    D3D12_MESSAGE_CATEGORY categories[] = {D3D12_MESSAGE_CATEGORY_STATE_CREATION};
    D3D12_INFO_QUEUE_FILTER filter = {};
    filter.DenyList.NumCategories = 1;
    filter.DenyList.pCategoryList = categories;
    CHECK(messages->PushStorageFilter(&filter));
    std::thread other([&] { remark(gpu, 28); });
    const std::thread::id thread = other.get_id();
    other.join();
    IS(filtered.count, 0);
    IS(all.count, 1);
    IS(all.category, D3D12_MESSAGE_CATEGORY_STATE_CREATION);
    IS(all.thread == thread, true);
    messages->PopStorageFilter();
    warn(gpu);
    IS(filtered.count, 1);
    IS(filtered.id, 1424);
    CHECK(messages->UnregisterMessageCallback(first));
    CHECK(messages->AddApplicationMessage(D3D12_MESSAGE_SEVERITY_INFO, "half of the work is done"));
    IS(filtered.count, 1);
    IS(all.count, 3);
    IS(all.id, D3D12_MESSAGE_ID_STRING_FROM_APPLICATION);
    IS(all.category, D3D12_MESSAGE_CATEGORY_APPLICATION_DEFINED);
    CHECK(messages->UnregisterMessageCallback(second));
    IS(messages->UnregisterMessageCallback(second), E_INVALIDARG);
    IS(messages->RegisterMessageCallback(nullptr, D3D12_MESSAGE_CALLBACK_FLAG_NONE, nullptr, &none), E_INVALIDARG);
    IS(none, 0);
    IS(messages->RegisterMessageCallback(on_message, static_cast<D3D12_MESSAGE_CALLBACK_FLAGS>(2), &all, &none),
       E_INVALIDARG);

    CHECK(messages->AddMessage(D3D12_MESSAGE_CATEGORY_SHADER, D3D12_MESSAGE_SEVERITY_WARNING,
                               static_cast<D3D12_MESSAGE_ID>(5000), "of the program"));
    IS(messages->AddMessage(static_cast<D3D12_MESSAGE_CATEGORY>(11), D3D12_MESSAGE_SEVERITY_INFO,
                            static_cast<D3D12_MESSAGE_ID>(0), "x"),
       E_INVALIDARG);
    IS(messages->AddApplicationMessage(D3D12_MESSAGE_SEVERITY_INFO, nullptr), E_INVALIDARG);
    messages->SetMuteDebugOutput(TRUE);
    CHECK(messages->AddApplicationMessage(D3D12_MESSAGE_SEVERITY_ERROR, "said by nobody"));
    messages->SetMuteDebugOutput(FALSE);
}

static void check_breaks(ID3D12InfoQueue *messages)
{
    CHECK(messages->SetBreakOnSeverity(D3D12_MESSAGE_SEVERITY_CORRUPTION, TRUE));
    CHECK(messages->SetBreakOnCategory(D3D12_MESSAGE_CATEGORY_COMPILATION, TRUE));
    CHECK(messages->SetBreakOnID(static_cast<D3D12_MESSAGE_ID>(1424), TRUE));
    CHECK(messages->SetBreakOnID(static_cast<D3D12_MESSAGE_ID>(1424), FALSE));
    IS(messages->GetBreakOnSeverity(D3D12_MESSAGE_SEVERITY_CORRUPTION), TRUE);
    IS(messages->GetBreakOnSeverity(D3D12_MESSAGE_SEVERITY_ERROR), FALSE);
    IS(messages->GetBreakOnCategory(D3D12_MESSAGE_CATEGORY_COMPILATION), TRUE);
    IS(messages->GetBreakOnCategory(D3D12_MESSAGE_CATEGORY_EXECUTION), FALSE);
    IS(messages->GetBreakOnID(static_cast<D3D12_MESSAGE_ID>(1424)), FALSE);
    IS(messages->SetBreakOnSeverity(static_cast<D3D12_MESSAGE_SEVERITY>(5), TRUE), E_INVALIDARG);
    IS(messages->SetBreakOnCategory(static_cast<D3D12_MESSAGE_CATEGORY>(11), TRUE), E_INVALIDARG);
}

static void check_debug_device(Gpu &gpu)
{
    ComPtr<ID3D12DebugDevice2> debug;
    ComPtr<ID3D12DebugDevice1> debug1;
    CHECK(gpu.device.As(&debug));
    CHECK(debug.As(&debug1));
    IS(debug->GetFeatureMask(), 0);
    CHECK(debug->SetFeatureMask(D3D12_DEBUG_FEATURE_CONSERVATIVE_RESOURCE_STATE_TRACKING));
    IS(debug->GetFeatureMask(), 2);
    const FLOAT slow = 2;
    FLOAT found = 0;
    const auto slowdown = D3D12_DEBUG_DEVICE_PARAMETER_GPU_SLOWDOWN_PERFORMANCE_FACTOR;
    CHECK(debug1->SetDebugParameter(slowdown, &slow, sizeof slow));
    CHECK(debug->GetDebugParameter(slowdown, &found, sizeof found));
    IS(found, 2);
    IS(debug->GetDebugParameter(slowdown, &found, 3), E_INVALIDARG);
    IS(debug->SetDebugParameter(slowdown, nullptr, 4), E_INVALIDARG);
    IS(debug->SetDebugParameter(static_cast<D3D12_DEBUG_DEVICE_PARAMETER_TYPE>(9), &slow, 4), E_INVALIDARG);
    IS(debug->ReportLiveDeviceObjects(static_cast<D3D12_RLDO_FLAGS>(8)), E_INVALIDARG);
    ComPtr<ID3D12Resource> alive = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    CHECK(alive->SetName(L"alive"));
    CHECK(debug->ReportLiveDeviceObjects(D3D12_RLDO_SUMMARY));
    CHECK(debug1->ReportLiveDeviceObjects(D3D12_RLDO_DETAIL));
}

// DirectML's own debug device mutes DirectML's messages only.
static void check_directml(Gpu &gpu)
{
    ComPtr<IDMLDevice> dml;
    CHECK(DMLCreateDevice(gpu.device.Get(), DML_CREATE_DEVICE_FLAG_DEBUG, IID_PPV_ARGS(&dml)));
    ComPtr<IDMLDebugDevice> debug;
    CHECK(dml.As(&debug));
    debug->SetMuteDebugOutput(TRUE);
    ComPtr<IDMLOperator> made;
    IS(dml->CreateOperator(nullptr, IID_PPV_ARGS(&made)), E_INVALIDARG);
    debug->SetMuteDebugOutput(FALSE);
}

// Stops at the warning and not before.
static void stop(const char *kind)
{
    ComPtr<ID3D12Debug> debug;
    CHECK(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)));
    debug->EnableDebugLayer();
    Gpu gpu;
    ComPtr<ID3D12InfoQueue> messages;
    CHECK(gpu.device.As(&messages));
    if (std::strcmp(kind, "severity") == 0)
        CHECK(messages->SetBreakOnSeverity(D3D12_MESSAGE_SEVERITY_WARNING, TRUE));
    else if (std::strcmp(kind, "category") == 0)
        CHECK(messages->SetBreakOnCategory(D3D12_MESSAGE_CATEGORY_EXECUTION, TRUE));
    else if (std::strcmp(kind, "id") == 0)
        CHECK(messages->SetBreakOnID(static_cast<D3D12_MESSAGE_ID>(1424), TRUE));
    if (std::strcmp(kind, "severity") != 0)
        remark(gpu, 4); // a WARNING, too
    CHECK(messages->AddApplicationMessage(D3D12_MESSAGE_SEVERITY_INFO, "not here"));
    std::puts("not yet");
    std::fflush(stdout);
    warn(gpu);
    std::puts("behind it");
}

int main(int count, char **arguments)
{
    if (count > 1) {
        stop(arguments[1]);
        return 0;
    }
    check_layer();
    read_uninitialized();
    Gpu gpu;
    ComPtr<ID3D12InfoQueue1> messages;
    CHECK(gpu.device.As(&messages));
    check_stored(gpu, messages.Get());
    check_filters(gpu, messages.Get());
    check_callbacks(gpu, messages.Get());
    check_breaks(messages.Get());
    check_debug_device(gpu);
    check_directml(gpu);
    std::printf("%d failures\n", failures);
}
