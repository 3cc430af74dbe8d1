// CComPtr and CComQIPtr of the Active Template Library.

#pragma once

#include "windows.h"

#include <cassert>
#include <utility>

namespace ATL {

template <typename T> class CComPtr {
public:
    CComPtr() noexcept = default;
    CComPtr(decltype(nullptr)) noexcept {}
    CComPtr(T *object) noexcept : p(object) // NOLINT: implicit, as on Windows
    {
        if (p != nullptr)
            p->AddRef();
    }
    CComPtr(const CComPtr &other) noexcept : CComPtr(other.p) {}
    CComPtr(CComPtr &&other) noexcept : p(std::exchange(other.p, nullptr)) {}
    ~CComPtr() { Release(); }

    CComPtr &operator=(CComPtr other) noexcept
    {
        std::swap(p, other.p);
        return *this;
    }
    CComPtr &operator=(T *object) noexcept { return *this = CComPtr(object); }

    operator T *() const noexcept { return p; }
    T &operator*() const { return *p; }
    T *operator->() const noexcept { return p; }
    T **operator&() noexcept
    {
        assert(p == nullptr && "the address of a CComPtr that holds an object");
        return &p;
    }
    bool operator!() const noexcept { return p == nullptr; }
    bool operator==(T *other) const noexcept { return p == other; }
    bool operator!=(T *other) const noexcept { return p != other; }
    bool operator<(T *other) const noexcept { return p < other; }

    void Release() noexcept
    {
        if (T *before = std::exchange(p, nullptr))
            before->Release();
    }
    void Attach(T *object) noexcept
    {
        Release();
        p = object;
    }
    T *Detach() noexcept { return std::exchange(p, nullptr); }
    HRESULT CopyTo(T **to) noexcept
    {
        if (to == nullptr)
            return E_POINTER;
        *to = p;
        if (p != nullptr)
            p->AddRef();
        return S_OK;
    }
    template <typename Q> HRESULT QueryInterface(Q **to) const { return p->QueryInterface(__uuidof(Q), reinterpret_cast<void **>(to)); }

    // Whether both are interfaces of the same object.
    bool IsEqualObject(IUnknown *other) const
    {
        if (p == nullptr || other == nullptr)
            return p == nullptr && other == nullptr;
        CComPtr<IUnknown> one, two;
        p->QueryInterface(__uuidof(IUnknown), reinterpret_cast<void **>(&one));
        other->QueryInterface(__uuidof(IUnknown), reinterpret_cast<void **>(&two));
        return one.p == two.p;
    }

    T *p = nullptr;
};

// A CComPtr that asks an object of another type for its interface.
template <typename T> class CComQIPtr : public CComPtr<T> {
public:
    using CComPtr<T>::CComPtr;
    CComQIPtr() noexcept = default;
    CComQIPtr(T *object) noexcept : CComPtr<T>(object) {} // NOLINT: implicit, as on Windows
    CComQIPtr(IUnknown *object) noexcept                  // NOLINT: implicit, as on Windows
    {
        if (object != nullptr && FAILED(object->QueryInterface(__uuidof(T), reinterpret_cast<void **>(&this->p))))
            this->p = nullptr;
    }
};

} // namespace ATL

using ATL::CComPtr;
using ATL::CComQIPtr;
