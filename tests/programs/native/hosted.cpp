// A library that a Python program loads by ctypes, as extension modules of PyTorch and TensorFlow are: what host.py
// calls.

#include "program.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace {

struct Made {
    Gpu gpu;
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 1, 1, 16}, {2.0f, 1.0f});
    ComPtr<ID3D12Fence> ended;

    Made() { CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&ended))); }
};

// Kept to the end of the process, as those programs do.
Made *made;
std::mutex mutex;

// Doubles 16 values and adds one; returns how many results are wrong.
int once(Gpu &gpu, int start)
{
    float values[16];
    for (int i = 0; i < 16; i++)
        values[i] = static_cast<float>(i + start);
    gpu.used = 0;
    ComPtr<ID3D12Resource> input = gpu.upload(values, sizeof values);
    ComPtr<ID3D12Resource> output = gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    gpu.dispatch(made->compiled.Get(), {{input.Get(), 0, sizeof values}}, {{output.Get(), 0, sizeof values}});
    std::vector<uint32_t> words = gpu.read(output.Get(), sizeof values);
    int wrong = 0;
    for (int i = 0; i < 16; i++) {
        const float expected = 2.0f * values[i] + 1.0f;
        wrong += std::memcmp(&words[static_cast<size_t>(i)], &expected, 4) != 0;
    }
    return wrong;
}

} // namespace

extern "C" {

void start()
{
    made = new Made;
}

// Computes with lists and buffers of its own; returns how many results are wrong.
int compute(int rounds)
{
    Gpu gpu(made->gpu);
    int wrong = 0;
    for (int round = 0; round < rounds; round++)
        wrong += once(gpu, round);
    return wrong;
}

// The same with those of everybody, under the library's mutex.
int compute_in_turn(int rounds)
{
    int wrong = 0;
    for (int round = 0; round < rounds; round++) {
        std::lock_guard<std::mutex> guard(mutex);
        wrong += once(made->gpu, round);
    }
    return wrong;
}

// Waits until nobody computes under the mutex.
void wait_for_turn()
{
    std::lock_guard<std::mutex> guard(mutex);
}

// Waits for a value that nobody signals, unless another thread ends the wait.
void wait_for_ever()
{
    made->ended->SetEventOnCompletion(1, nullptr);
}

void end_the_wait()
{
    CHECK(made->ended->Signal(1));
}

// How many handlers of SIGALRM run while one call waits for a list of many commands.
int count_signals()
{
    Gpu gpu(made->gpu);
    const UINT64 size = 8 << 20;
    ComPtr<ID3D12Resource> from = gpu.buffer(size, D3D12_RESOURCE_STATE_COMMON);
    ComPtr<ID3D12Resource> to = gpu.buffer(size, D3D12_RESOURCE_STATE_COMMON);
    for (int i = 0; i < 300; i++)
        gpu.list->CopyBufferRegion(to.Get(), 0, from.Get(), 0, size);
    CHECK(gpu.list->Close());
    ID3D12CommandList *lists[] = {gpu.list.Get()};
    static std::atomic<int> count;
    std::signal(SIGALRM, [](int) { count++; });
    ualarm(1000, 1000);
    gpu.queue->ExecuteCommandLists(1, lists);
    CHECK(gpu.queue->Signal(gpu.fence.Get(), 1));
    const int before = count;
    CHECK(gpu.fence->SetEventOnCompletion(1, nullptr));
    const int during = count - before;
    ualarm(0, 0);
    return during;
}

// A handler that does not return.
void end_in_handler()
{
    std::signal(SIGALRM, [](int) { pthread_exit(nullptr); });
    ualarm(100000, 0);
    wait_for_ever();
}

// What a call returns.
unsigned create_fence()
{
    ComPtr<ID3D12Fence> fence;
    return static_cast<unsigned>(made->gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
}

// Calls until a call fails.
void call_until_the_end()
{
    while (create_fence() == 0)
        made->gpu.queue->Signal(made->gpu.fence.Get(), 0);
}

// Fences that nobody releases.
void leave_fences(int count)
{
    for (int i = 0; i < count; i++) {
        ID3D12Fence *fence;
        CHECK(made->gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
    }
}

// A mistake, which the debug layer reports.
void make_mistake()
{
    ComPtr<ID3D12Resource> buffer = made->gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON);
    made->gpu.list->CopyBufferRegion(buffer.Get(), 32, buffer.Get(), 0, 64); // the mistake
}

// The same on a thread that Python does not know.
void make_mistake_elsewhere()
{
    std::thread(make_mistake).join();
}

// Nanoseconds that each of `count` calls takes, with a pause of some microseconds before it: of one that Python
// implements, or of a getter in C.
double time_calls(int count, int pause, int is_native)
{
    using Clock = std::chrono::steady_clock;
    ID3D12DescriptorHeap *heap = made->gpu.descriptors.Get();
    ID3D12CommandAllocator *allocator = made->gpu.allocator.Get();
    GUID id = {1, 2, 3, {4}};
    Clock::duration sum = {};
    for (int i = 0; i < count;) {
        const int next = pause != 0 ? i + 1 : count;
        if (pause != 0)
            std::this_thread::sleep_for(std::chrono::microseconds(pause));
        const Clock::time_point begin = Clock::now();
        for (; i < next; i++) {
            if (is_native)
                heap->GetDesc();
            else
                allocator->SetPrivateData(id, 0, nullptr);
        }
        sum += Clock::now() - begin;
    }
    return std::chrono::duration<double, std::nano>(sum).count() / count;
}
}
