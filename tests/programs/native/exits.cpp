// Ends the process in one of several ways, with threads inside of calls.

#include "program.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static ComPtr<ID3D12Fence> kept; // released by its destructor, after Python's end

// Its destructor runs after Python's end, too: it was made before Python was started.
static struct Last {
    ~Last()
    {
        if (kept == nullptr)
            return;
        ComPtr<ID3D12Device> device;
        const HRESULT signaled = kept->Signal(1), asked = kept->GetDevice(IID_PPV_ARGS(&device));
        const HRESULT made = D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device));
        if (signaled != DXGI_ERROR_DEVICE_REMOVED || asked != signaled || made != signaled || device != nullptr) {
            std::puts("calls reach Python after its end");
            std::fflush(stdout);
        }
    }
} last;

static void poll(ID3D12Fence *fence)
{
    for (;;)
        fence->GetCompletedValue();
}

// Also creates: objects of several threads come and go.
static void create(ID3D12Device *device)
{
    for (;;) {
        ComPtr<ID3D12Fence> fence;
        if (device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)) == S_OK)
            fence->Signal(1);
    }
}

// A call that is refused, twice: one report, counted.
static void refuse(Gpu &gpu)
{
    for (int i = 0; i < 2; i++) {
        ComPtr<ID3D12Fence> fence;
        gpu.device->CreateFence(0, static_cast<D3D12_FENCE_FLAGS>(0x40), IID_PPV_ARGS(&fence));
    }
}

static int in_child(Gpu &gpu)
{
    ID3D12Fence *fence = gpu.fence.Get();
    const HRESULT result = gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence));
    ID3D12Device *device = gpu.device.Get();
    const HRESULT exported = D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device));
    const HRESULT waited = kept->SetEventOnCompletion(1, nullptr);
    ComPtr<ID3D12Device> parent;
    const HRESULT found = gpu.queue->GetDevice(IID_PPV_ARGS(&parent));
    const bool failed = result == DXGI_ERROR_DEVICE_REMOVED && fence == nullptr && device == nullptr &&
                        exported == DXGI_ERROR_DEVICE_REMOVED && waited == DXGI_ERROR_DEVICE_REMOVED &&
                        found == DXGI_ERROR_DEVICE_REMOVED && parent == nullptr &&
                        gpu.list->Close() == DXGI_ERROR_DEVICE_REMOVED && gpu.fence->GetCompletedValue() == 0;
    return failed && gpu.queue->AddRef() == 2 && gpu.queue->Release() == 1 && kept->Release() == 0 ? 3 : 4;
}

static int fork_and_wait(Gpu &gpu, bool exits)
{
    const pid_t child = fork();
    if (child == 0) {
        const int status = in_child(gpu);
        kept.Detach();
        if (exits)
            std::exit(status);
        _exit(status);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

// Python stays: the libraries are never unloaded.
static int unload(Gpu &gpu)
{
    for (const char *name : {"libd3d12.so", "libdirectml.so", "libdxcore.so"}) {
        void *library = dlopen(name, RTLD_NOW);
        if (library == nullptr || dlclose(library) != 0 || dlclose(library) != 0)
            return 4;
    }
    ComPtr<ID3D12Fence> fence;
    return gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)) == S_OK ? 3 : 4;
}

int main(int, char **arguments)
{
    const std::string way = arguments[1];
    const int busy = std::atoi(arguments[2]);
    static Gpu gpu; // its objects are released after Python's end
    CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&kept)));
    refuse(gpu);
    for (int i = 0; i < busy; i++)
        i % 2 == 0 ? std::thread(poll, gpu.fence.Get()).detach() : std::thread(create, gpu.device.Get()).detach();
    if (busy != 0) { // the threads outlive this function
        gpu.fence->AddRef();
        gpu.device->AddRef();
    }
    std::puts("ends");
    std::fflush(stdout);
    if (way == "exit")
        std::exit(3);
    if (way == "_exit")
        _exit(3);
    if (way == "thread")
        std::thread([] { std::exit(3); }).join();
    if (way == "quick")
        std::quick_exit(3);
    if (way == "abort")
        std::abort();
    if (way == "fork" || way == "fork-exit")
        return fork_and_wait(gpu, way == "fork-exit");
    if (way == "dlclose")
        return unload(gpu);
    return 3;
}
