// The few types of the Windows Implementation Library that its other headers need.

#pragma once

#include "../windows.h"

#include <utility>

namespace wil {

// A function that is called when the scope is left.
template <typename Function> class lambda_call {
public:
    explicit lambda_call(Function function) : function_(std::move(function)) {}
    lambda_call(lambda_call &&other) : function_(std::move(other.function_)), is_armed_(other.is_armed_)
    {
        other.is_armed_ = false;
    }
    lambda_call(const lambda_call &) = delete;
    lambda_call &operator=(const lambda_call &) = delete;
    ~lambda_call() { reset(); }

    void reset()
    {
        if (std::exchange(is_armed_, false))
            function_();
    }

    void release() { is_armed_ = false; }

private:
    Function function_;
    bool is_armed_ = true;
};

template <typename Function> lambda_call<Function> scope_exit(Function function)
{
    return lambda_call<Function>(std::move(function));
}

} // namespace wil
