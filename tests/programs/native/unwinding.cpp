// Callbacks: on which thread they run.  Ways to leave our frames that are no return: an exception or the end of the
// thread in a callback, a cancelled wait.

#include <windows.h>

#include "program.h"

#include <directx/d3d12sdklayers.h>

#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>

static void CALLBACK leave(D3D12_MESSAGE_CATEGORY, D3D12_MESSAGE_SEVERITY, D3D12_MESSAGE_ID, LPCSTR, void *context)
{
    if (std::strcmp(static_cast<const char *>(context), "throw") == 0)
        throw std::runtime_error("of the callback");
    pthread_exit(nullptr);
}

static void leave_a_callback(Gpu &gpu, char *how)
{
    ComPtr<ID3D12InfoQueue1> messages;
    CHECK(gpu.device.As(&messages));
    DWORD cookie;
    CHECK(messages->RegisterMessageCallback(leave, D3D12_MESSAGE_CALLBACK_FLAG_NONE, how, &cookie));
    CHECK(gpu.list->Close());
    std::thread([&gpu] {
        try {
            gpu.list->Close(); // once too often
        } catch (const std::exception &) {
            std::puts("caught");
        }
    }).join();
}

struct Called {
    pthread_t thread;
    ID3D12Fence *fence;
    UINT64 value;
    ID3D12InfoQueue1 *messages;
    DWORD cookie;
};

static void CALLBACK note(D3D12_MESSAGE_CATEGORY, D3D12_MESSAGE_SEVERITY, D3D12_MESSAGE_ID, LPCSTR, void *context)
{
    Called *called = static_cast<Called *>(context);
    called->thread = pthread_self();
    called->value = called->fence->GetCompletedValue(); // a call inside of a call
    static bool is_inside;
    if (is_inside)
        return; // about the next line
    is_inside = true;
    called->fence->SetName(nullptr); // wrong in the callback
    called->messages->UnregisterMessageCallback(called->cookie); // waits for callbacks of other threads
}

static void *close_again(void *list)
{
    static_cast<ID3D12GraphicsCommandList *>(list)->Close();
    return nullptr;
}

// Private data that says on which thread it is released.
struct Released : IUnknown {
    pthread_t thread = {};
    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID, void **) override { return E_NOINTERFACE; }
    ULONG STDMETHODCALLTYPE AddRef() override { return 2; }
    ULONG STDMETHODCALLTYPE Release() override
    {
        thread = pthread_self();
        return 1;
    }
};

static void *remove_data(void *fence)
{
    static_cast<ID3D12Fence *>(fence)->SetPrivateDataInterface(IID_ID3D12Fence, nullptr);
    return nullptr;
}

static pthread_t run_with_stack(size_t size, void *(*function)(void *), void *argument)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size);
    pthread_create(&thread, &attributes, function, argument);
    pthread_join(thread, nullptr);
    return thread; // to be compared only
}

// On threads with such a stack; in 64 KiB there is no room for Python.
static void call_back(Gpu &gpu, size_t stack)
{
    ComPtr<ID3D12InfoQueue1> messages;
    CHECK(gpu.device.As(&messages));
    CHECK(gpu.fence->Signal(7));
    Called called = {{}, gpu.fence.Get(), 0, messages.Get(), 0};
    CHECK(messages->RegisterMessageCallback(note, D3D12_MESSAGE_CALLBACK_FLAG_NONE, &called, &called.cookie));
    CHECK(gpu.list->Close());
    pthread_t thread = run_with_stack(stack, close_again, gpu.list.Get());
    std::puts(pthread_equal(called.thread, thread) && called.value == 7 ? "on the caller's thread" : "elsewhere");
    Released data;
    CHECK(gpu.fence->SetPrivateDataInterface(IID_ID3D12Fence, &data));
    thread = run_with_stack(stack, remove_data, gpu.fence.Get());
    std::puts(pthread_equal(data.thread, thread) ? "on the caller's thread" : "elsewhere");
}

static void *wait(void *fence)
{
    static_cast<ID3D12Fence *>(fence)->SetEventOnCompletion(1, nullptr);
    std::puts("waited");
    std::fflush(stdout);
    for (;;)
        pause();
}

// The wait goes on; the thread ends behind it.
static void cancel_a_wait(Gpu &gpu)
{
    pthread_t thread;
    pthread_create(&thread, nullptr, wait, gpu.fence.Get());
    std::this_thread::sleep_for(std::chrono::milliseconds(200)); // so that it waits, most probably
    pthread_cancel(thread);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CHECK(gpu.fence->Signal(1));
    pthread_join(thread, nullptr);
    CHECK(gpu.queue->Signal(gpu.fence.Get(), 2));
    CHECK(gpu.fence->SetEventOnCompletion(2, nullptr));
}

int main(int, char **arguments)
{
    ComPtr<ID3D12Debug> debug;
    CHECK(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)));
    debug->EnableDebugLayer();
    Gpu gpu;
    if (std::strcmp(arguments[1], "cancel") == 0)
        cancel_a_wait(gpu);
    else if (std::strcmp(arguments[1], "small") == 0)
        call_back(gpu, 64 << 10);
    else if (std::strcmp(arguments[1], "large") == 0)
        call_back(gpu, 8 << 20);
    else
        leave_a_callback(gpu, arguments[1]);
    std::puts("done");
}
