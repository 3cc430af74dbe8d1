// The debug layer: messages through a callback and the info queue; a device made anew without it.

#include "program.h"

#include <directx/d3d12sdklayers.h>

#include <atomic>
#include <mutex>
#include <thread>

static int called;
static std::thread::id called_on;

static void STDMETHODCALLTYPE on_message(D3D12_MESSAGE_CATEGORY, D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID,
                                         LPCSTR text, void *context)
{
    called_on = std::this_thread::get_id();
    called += severity == D3D12_MESSAGE_SEVERITY_WARNING && std::strstr(text, "RES_STATE_IGNORED") != nullptr &&
              context == &called;
}

static std::mutex mutex;
static std::atomic<int> waiting;

static void STDMETHODCALLTYPE take_mutex(D3D12_MESSAGE_CATEGORY, D3D12_MESSAGE_SEVERITY, D3D12_MESSAGE_ID, LPCSTR,
                                         void *)
{
    waiting = 1;
    std::lock_guard<std::mutex> lock(mutex);
}

// A callback waits for a mutex whose owner calls the device.
static void share_mutex(Gpu &gpu, ID3D12InfoQueue1 *messages)
{
    DWORD cookie = 0;
    CHECK(messages->RegisterMessageCallback(take_mutex, D3D12_MESSAGE_CALLBACK_FLAG_NONE, nullptr, &cookie));
    std::atomic<int> has_mutex{0};
    std::thread owner([&] {
        std::lock_guard<std::mutex> lock(mutex);
        has_mutex = 1;
        while (waiting == 0)
            std::this_thread::yield();
        Gpu own(gpu);
        own.buffer(64, D3D12_RESOURCE_STATE_COMMON);
        own.run();
    });
    while (has_mutex == 0)
        std::this_thread::yield();
    gpu.buffer(64, D3D12_RESOURCE_STATE_COPY_DEST);
    owner.join();
    std::puts("the callback took the mutex");
    CHECK(messages->UnregisterMessageCallback(cookie));
}

int main()
{
    for (int i = 0; i < 3; i++) {
        Gpu gpu;
        ComPtr<ID3D12InfoQueue1> none;
        if (gpu.device.As(&none) != E_NOINTERFACE)
            std::puts("an info queue without the debug layer");
    }
    ComPtr<ID3D12Debug3> debug;
    CHECK(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)));
    debug->EnableDebugLayer();

    Gpu gpu;
    ComPtr<ID3D12InfoQueue1> messages;
    CHECK(gpu.device.As(&messages));
    ComPtr<IUnknown> first, second;
    CHECK(messages.As(&first));
    CHECK(gpu.device.As(&second));
    DWORD cookie = 0;
    CHECK(messages->RegisterMessageCallback(on_message, D3D12_MESSAGE_CALLBACK_FLAG_NONE, &called, &cookie));
    std::thread::id other;
    std::thread([&] {
        other = std::this_thread::get_id();
        gpu.buffer(64, D3D12_RESOURCE_STATE_COPY_DEST); // initial states of buffers are ignored
    }).join();
    CHECK(messages->UnregisterMessageCallback(cookie));
    gpu.buffer(64, D3D12_RESOURCE_STATE_COPY_SOURCE);
    SIZE_T size = 0;
    CHECK(messages->GetMessage(0, nullptr, &size));
    std::vector<char> bytes(size);
    D3D12_MESSAGE *message = reinterpret_cast<D3D12_MESSAGE *>(bytes.data());
    CHECK(messages->GetMessage(0, message, &size));
    std::printf("called %d, on its thread %d, stored %d, identity %d, text %d\n", called, called_on == other,
                static_cast<int>(messages->GetNumStoredMessages()), first == second,
                std::strlen(message->pDescription) + 1 == message->DescriptionByteLength);
    share_mutex(gpu, messages.Get());
}
