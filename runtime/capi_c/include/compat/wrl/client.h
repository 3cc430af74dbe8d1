// ComPtr of DirectX-Headers, with comparisons: without these, any two pointers that are not NULL compare equal.

#pragma once

#include <wsl/wrladapter.h>

namespace Microsoft {
namespace WRL {

template <typename T, typename U> bool operator==(const ComPtr<T> &a, const ComPtr<U> &b) throw()
{
    return static_cast<const void *>(a.Get()) == static_cast<const void *>(b.Get());
}

template <typename T, typename U> bool operator!=(const ComPtr<T> &a, const ComPtr<U> &b) throw()
{
    return !(a == b);
}

template <typename T, typename U> bool operator<(const ComPtr<T> &a, const ComPtr<U> &b) throw()
{
    return static_cast<const void *>(a.Get()) < static_cast<const void *>(b.Get());
}

template <typename T> bool operator==(const ComPtr<T> &a, decltype(nullptr)) throw()
{
    return a.Get() == nullptr;
}

template <typename T> bool operator!=(const ComPtr<T> &a, decltype(nullptr)) throw()
{
    return a.Get() != nullptr;
}

template <typename T> bool operator==(decltype(nullptr), const ComPtr<T> &a) throw()
{
    return a.Get() == nullptr;
}

template <typename T> bool operator!=(decltype(nullptr), const ComPtr<T> &a) throw()
{
    return a.Get() != nullptr;
}

} // namespace WRL
} // namespace Microsoft
