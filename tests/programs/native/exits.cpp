// Ends the process in one of several ways, with threads inside of calls.

#include "program.h"

#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static ComPtr<ID3D12Fence> kept; // released by its destructor, after Python's end

static void poll(ID3D12Fence *fence)
{
    for (;;)
        fence->GetCompletedValue();
}

int main(int, char **arguments)
{
    const std::string way = arguments[1];
    const int busy = std::atoi(arguments[2]);
    Gpu gpu;
    CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&kept)));
    for (int i = 0; i < busy; i++)
        std::thread(poll, gpu.fence.Get()).detach();
    if (busy != 0)
        gpu.fence->AddRef(); // the threads outlive this function
    std::puts("ends");
    std::fflush(stdout);
    if (way == "exit")
        std::exit(3);
    if (way == "thread")
        std::thread([] { std::exit(3); }).join();
    if (way == "quick")
        std::quick_exit(3);
    if (way == "fork") {
        const pid_t child = fork();
        if (child == 0) {
            ComPtr<ID3D12Fence> fence;
            const HRESULT result = gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence));
            const bool failed = result == DXGI_ERROR_DEVICE_REMOVED && fence == nullptr;
            _exit(failed && gpu.queue->AddRef() == 2 && gpu.queue->Release() == 1 ? 3 : 4);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    return 3;
}
