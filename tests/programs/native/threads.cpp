// Native threads on one device and one queue; right values, counted.
// threads COUNT ROUNDS SECONDS [shared]: with lists and buffers of their own, or all with those of the main thread,
// under a mutex.

#include "program.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

using Clock = std::chrono::steady_clock;

static std::atomic<int> wrong, done;

// Doubles 16 values and adds one.
static void once(Gpu &gpu, IDMLCompiledOperator *compiled, ID3D12Resource *output, int start)
{
    gpu.used = 0;
    float values[16];
    for (int i = 0; i < 16; i++)
        values[i] = static_cast<float>(i + start);
    ComPtr<ID3D12Resource> input = gpu.upload(values, sizeof values);
    gpu.dispatch(compiled, {{input.Get(), 0, sizeof values}}, {{output, 0, sizeof values}});
    std::vector<uint32_t> words = gpu.read(output, sizeof values);
    for (int i = 0; i < 16; i++) {
        const float expected = 2.0f * values[i] + 1.0f;
        wrong += std::memcmp(&words[static_cast<size_t>(i)], &expected, 4) != 0;
    }
    done++;
}

static void work_alone(Gpu *shared, int number, int rounds, Clock::time_point end)
{
    Gpu gpu(*shared);
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 1, 1, 16}, {2.0f, 1.0f});
    for (int round = 0; round < rounds && Clock::now() < end; round++)
        once(gpu, compiled.Get(), gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON).Get(), number + round);
}

// What the main thread made.
struct Made {
    Gpu *gpu;
    ComPtr<IDMLCompiledOperator> compiled;
    ComPtr<ID3D12Resource> output;
    std::mutex mutex;
};

static void work_together(Made *made, int number, int rounds, Clock::time_point end)
{
    for (int round = 0; round < rounds && Clock::now() < end; round++) {
        std::lock_guard<std::mutex> guard(made->mutex);
        once(*made->gpu, made->compiled.Get(), made->output.Get(), number + round);
    }
}

int main(int, char **arguments)
{
    const int count = std::atoi(arguments[1]), rounds = std::atoi(arguments[2]);
    const Clock::time_point end = Clock::now() + std::chrono::seconds(std::atoi(arguments[3]));
    Gpu gpu;
    Made made{&gpu, gpu.identity({1, 1, 1, 16}, {2.0f, 1.0f}), gpu.buffer(64, D3D12_RESOURCE_STATE_COMMON), {}};
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++) {
        if (arguments[4] != nullptr)
            threads.emplace_back(work_together, &made, i, rounds, end);
        else
            threads.emplace_back(work_alone, &gpu, i, rounds, end);
    }
    for (std::thread &each : threads)
        each.join();
    std::printf("%d wrong of %d\n", wrong.load(), done.load());
}
