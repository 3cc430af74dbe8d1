// Native threads with lists and buffers of their own, on one device and one queue; right values, counted.

#include "program.h"

#include <atomic>
#include <thread>

static std::atomic<int> wrong, done;

static void work(Gpu *shared, int number, int rounds)
{
    Gpu gpu(*shared);
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 1, 1, 16}, {2.0f, static_cast<float>(number)});
    for (int round = 0; round < rounds; round++) {
        gpu.used = 0;
        float values[16];
        for (int i = 0; i < 16; i++)
            values[i] = static_cast<float>(i + round);
        ComPtr<ID3D12Resource> input = gpu.upload(values, sizeof values);
        ComPtr<ID3D12Resource> output = gpu.buffer(sizeof values, D3D12_RESOURCE_STATE_COMMON);
        gpu.dispatch(compiled.Get(), {{input.Get(), 0, sizeof values}}, {{output.Get(), 0, sizeof values}});
        std::vector<uint32_t> words = gpu.read(output.Get(), sizeof values);
        for (int i = 0; i < 16; i++) {
            const float expected = 2.0f * values[i] + static_cast<float>(number);
            wrong += std::memcmp(&words[static_cast<size_t>(i)], &expected, 4) != 0;
        }
        done++;
    }
}

int main(int, char **arguments)
{
    const int count = std::atoi(arguments[1]), rounds = std::atoi(arguments[2]);
    Gpu gpu;
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++)
        threads.emplace_back(work, &gpu, i, rounds);
    for (std::thread &each : threads)
        each.join();
    std::printf("%d wrong of %d\n", wrong.load(), done.load());
}
