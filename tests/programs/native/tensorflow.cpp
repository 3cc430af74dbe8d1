// What TensorFlow does: a thread records and executes; the one that made an operator has released it by then.

#include "operators.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

// Runs functions one after the other on a thread of its own.
class Worker {
public:
    Worker() : thread([this] { work(); }) {}
    ~Worker()
    {
        run(nullptr);
        thread.join();
    }
    void run(std::function<void()> function)
    {
        {
            std::lock_guard<std::mutex> lock(mutex);
            functions.push_back(std::move(function));
        }
        changed.notify_one();
    }

private:
    void work()
    {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex);
            changed.wait(lock, [this] { return !functions.empty(); });
            std::function<void()> next = std::move(functions.front());
            functions.pop_front();
            lock.unlock();
            if (!next)
                return;
            next();
        }
    }

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> functions;
    std::thread thread;
};

// Queues a dispatch with a raw pointer to what the table was made for: only the table keeps that alive.
static void queue_dispatch(Gpu &gpu, Worker &worker, IDMLDispatchable *dispatchable, ComPtr<IDMLBindingTable> table)
{
    worker.run([&gpu, dispatchable, table] {
        gpu.record(dispatchable, table.Get());
        gpu.kept.push_back(table);
    });
}

// result = sum + step, by an operator that is released at the end of this function.
static void add(Gpu &gpu, Worker &worker, ID3D12Resource *sum, ID3D12Resource *step, ID3D12Resource *result)
{
    const Tensor tensor(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 1, 8});
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = {&tensor, &tensor, &tensor};
    ComPtr<IDMLCompiledOperator> compiled = one_node(gpu, create(gpu, DML_OPERATOR_ELEMENT_WISE_ADD, &desc).Get());
    ComPtr<IDMLOperatorInitializer> initializer;
    IDMLCompiledOperator *operators[] = {compiled.Get()};
    CHECK(gpu.dml->CreateOperatorInitializer(1, operators, IID_PPV_ARGS(&initializer)));
    queue_dispatch(gpu, worker, initializer.Get(), gpu.table(initializer.Get(), initializer->GetBindingProperties()));

    ComPtr<IDMLBindingTable> table = gpu.table(compiled.Get(), compiled->GetBindingProperties());
    const DML_BUFFER_BINDING buffers[] = {{sum, 0, 32}, {step, 0, 32}, {result, 0, 32}};
    const DML_BINDING_DESC inputs[] = {{DML_BINDING_TYPE_BUFFER, &buffers[0]}, {DML_BINDING_TYPE_BUFFER, &buffers[1]}};
    const DML_BINDING_DESC output = {DML_BINDING_TYPE_BUFFER, &buffers[2]};
    table->BindInputs(2, inputs);
    table->BindOutputs(1, &output);
    queue_dispatch(gpu, worker, compiled.Get(), table);
}

void tensorflow()
{
    Gpu gpu;
    const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, steps[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    ComPtr<ID3D12Resource> buffers[2] = {gpu.upload(ones, sizeof ones), gpu.upload(ones, sizeof ones)};
    ComPtr<ID3D12Resource> step = gpu.upload(steps, sizeof steps);
    gpu.run();
    {
        Worker worker;
        for (int i = 0; i < 6; i++)
            add(gpu, worker, buffers[i % 2].Get(), step.Get(), buffers[1 - i % 2].Get());
        worker.run([&gpu] { gpu.run(); });
    }
    gpu.print(buffers[0].Get(), sizeof ones);
}
