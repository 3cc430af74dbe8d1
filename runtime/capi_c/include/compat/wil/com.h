// com_ptr of the Windows Implementation Library.

#pragma once

#include "result.h"

namespace wil {

template <typename T> class com_ptr {
public:
    using element_type = T;

    com_ptr() noexcept = default;
    com_ptr(decltype(nullptr)) noexcept {}
    com_ptr(T *object) noexcept : object_(object) { add_ref(); }
    com_ptr(const com_ptr &other) noexcept : com_ptr(other.get()) {}
    template <typename U> com_ptr(const com_ptr<U> &other) noexcept : com_ptr(static_cast<T *>(other.get())) {}
    com_ptr(com_ptr &&other) noexcept : object_(other.detach()) {}
    ~com_ptr() { reset(); }

    com_ptr &operator=(com_ptr other) noexcept // (`other` is a copy, so that self-assignment is safe)
    {
        std::swap(object_, other.object_);
        return *this;
    }

    T *get() const noexcept { return object_; }
    T *operator->() const noexcept { return object_; }
    T &operator*() const noexcept { return *object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    T *detach() noexcept { return std::exchange(object_, nullptr); }

    void reset() noexcept
    {
        T *const before = detach();
        if (before != nullptr)
            before->Release();
    }

    void attach(T *object) noexcept
    {
        reset();
        object_ = object;
    }

    // The address of the pointer, for a function that sets it.
    T **put() noexcept
    {
        reset();
        return &object_;
    }

    void **put_void() noexcept { return reinterpret_cast<void **>(put()); }
    IUnknown **put_unknown() noexcept { return reinterpret_cast<IUnknown **>(put()); }
    T **operator&() noexcept { return put(); }
    T *const *addressof() const noexcept { return &object_; }
    T **addressof() noexcept { return &object_; }

    // Another interface of the object: where query throws, try_query returns NULL.
    template <typename U> com_ptr<U> try_query() const noexcept
    {
        com_ptr<U> found;
        if (object_ != nullptr)
            object_->QueryInterface(__uuidof(U), found.put_void());
        return found;
    }

    template <typename U> com_ptr<U> query() const
    {
        com_ptr<U> found;
        THROW_IF_FAILED(query_to(found.put()));
        return found;
    }

    template <typename U> HRESULT query_to(U **out) const noexcept
    {
        return object_->QueryInterface(__uuidof(U), reinterpret_cast<void **>(out));
    }

    template <typename U> HRESULT copy_to(U **out) const noexcept { return query_to(out); }
    HRESULT copy_to(REFIID riid, void **out) const noexcept { return object_->QueryInterface(riid, out); }

private:
    void add_ref() const noexcept
    {
        if (object_ != nullptr)
            object_->AddRef();
    }

    T *object_ = nullptr;
};

template <typename T, typename U> bool operator==(const com_ptr<T> &a, const com_ptr<U> &b) noexcept
{
    return static_cast<const void *>(a.get()) == static_cast<const void *>(b.get());
}

template <typename T, typename U> bool operator!=(const com_ptr<T> &a, const com_ptr<U> &b) noexcept
{
    return !(a == b);
}

template <typename T> bool operator==(const com_ptr<T> &a, decltype(nullptr)) noexcept
{
    return a.get() == nullptr;
}

template <typename T> bool operator!=(const com_ptr<T> &a, decltype(nullptr)) noexcept
{
    return a.get() != nullptr;
}

template <typename T> using com_ptr_nothrow = com_ptr<T>;
template <typename T> using com_ptr_failfast = com_ptr<T>;

} // namespace wil
