// All ways to wait for a fence, while another native thread signals it later.

#include "program.h"

#include <chrono>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

static std::thread signal_later(ID3D12Fence *fence, UINT64 value, int milliseconds)
{
    return std::thread([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        CHECK(fence->Signal(value));
    });
}

int main(int, char **arguments)
{
    const int milliseconds = std::atoi(arguments[1]);
    Gpu gpu;
    ID3D12Fence *fence = gpu.fence.Get();

    std::thread first = signal_later(fence, 1, milliseconds);
    CHECK(fence->SetEventOnCompletion(1, nullptr));
    std::printf("%llu\n", static_cast<unsigned long long>(fence->GetCompletedValue()));
    first.join();

    const int event = eventfd(0, 0);
    CHECK(fence->SetEventOnCompletion(2, reinterpret_cast<HANDLE>(static_cast<intptr_t>(event))));
    std::thread second = signal_later(fence, 2, 1);
    uint64_t set = 0;
    if (read(event, &set, sizeof set) != sizeof set || set != 1)
        std::puts("the event is not set");
    second.join();
    std::printf("%llu\n", static_cast<unsigned long long>(fence->GetCompletedValue()));
    close(event);
    if (fence->SetEventOnCompletion(9, reinterpret_cast<HANDLE>(static_cast<intptr_t>(event))) != E_HANDLE)
        std::puts("a closed event is accepted");

    CHECK(gpu.queue->Signal(fence, 3));
    while (fence->GetCompletedValue() < 3)
        std::this_thread::yield();
    std::puts("3");

    std::thread third = signal_later(fence, 4, milliseconds); // the GPU waits
    CHECK(gpu.queue->Wait(fence, 4));
    CHECK(gpu.queue->Signal(fence, 5));
    CHECK(fence->SetEventOnCompletion(5, nullptr));
    third.join();
    std::printf("%llu\n", static_cast<unsigned long long>(fence->GetCompletedValue()));
}
