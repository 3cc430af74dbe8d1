// Uses dmlemu.h: the rows of an image lie 16 bytes apart, and the operator reads them as if they were packed.

#include <chrono>
#include <thread>

#include <dmlemu.h>

#include "program.h"

static void wrong_arguments(Gpu &gpu, ID3D12Resource *buffer, const DML_TENSOR_DESC *tensor)
{
    const DML_TENSOR_DESC nothing = {DML_TENSOR_TYPE_BUFFER, nullptr};
    dmlemu_expect(nullptr, 0, tensor, "image");
    dmlemu_expect(buffer, 0, nullptr, "image");
    dmlemu_expect(buffer, 0, &nothing, "image");
    dmlemu_expect(buffer, 4, tensor, "image");
    dmlemu_expect(buffer, ~UINT64(0), tensor, nullptr); // beyond the buffer
    dmlemu_name(nullptr, "name");
    dmlemu_name(gpu.list.Get(), nullptr);
    dmlemu_mark(nullptr);
}

extern "C" int run(int how)
{
    const float sign = how == 'o' ? -1.0f : 1.0f;
    std::printf("%u\n", dmlemu_report_count());
    Gpu gpu;
    ComPtr<IDMLCompiledOperator> compiled = gpu.identity({1, 1, 2, 3}, {2.0f, 0.0f});
    const float values[8] = {sign, 2, 3, 0, 4, 5, 6, 0};
    ComPtr<ID3D12Resource> input = gpu.upload(values, sizeof values);
    ComPtr<ID3D12Resource> output = gpu.buffer(sizeof values, D3D12_RESOURCE_STATE_COMMON);
    const UINT sizes[] = {1, 1, 2, 3}, strides[] = {8, 8, 4, 1};
    const DML_BUFFER_TENSOR_DESC rows = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, strides, 32, 0};
    const DML_TENSOR_DESC image = {DML_TENSOR_TYPE_BUFFER, &rows};
    dmlemu_expect(input.Get(), 0, &image, "image");
    dmlemu_name(output.Get(), "gr\xC3\xB6\xC3\x9F" "er");
    dmlemu_mark("before the dispatch"); // mark
    gpu.dispatch(compiled.Get(), {{input.Get(), 0, 32}}, {{output.Get(), 0, 32}});
    gpu.print(output.Get(), 24);
    if (how == 'w')
        wrong_arguments(gpu, output.Get(), &image);
    if (how == 'c')
        *static_cast<volatile int *>(nullptr) = 1;
    if (how == 's') { // several threads, one after the other
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; i++)
            threads.emplace_back([i] {
                std::this_thread::sleep_for(std::chrono::milliseconds(5 * i));
                *static_cast<volatile int *>(nullptr) = 1;
            });
        for (std::thread &each : threads)
            each.join();
    }
    if (how == 't')
        throw 1;
    if (how == 'h') {
        std::puts("waiting");
        std::fflush(stdout);
        gpu.fence->SetEventOnCompletion(~UINT64(0) - 1, nullptr);
    }
    std::printf("%u %u %u\n", dmlemu_report_count(), dmlemu_report_count("LAYOUT_HANDOVER"),
                dmlemu_report_count("HAZARD_RAW"));
    return 0;
}

int main(int count, char **arguments)
{
    return run(count > 1 ? arguments[1][0] : 0);
}
