// Ways to leave our frames that are no return: an exception or the end of the thread in a callback, a cancelled wait.

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
    else
        leave_a_callback(gpu, arguments[1]);
    std::puts("done");
}
