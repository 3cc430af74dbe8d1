// The interface for scripting, for programs that mention it: nothing here implements it.

#pragma once

#include <wsl/winadapter.h>

typedef int32_t DISPID;
typedef uint32_t LCID;

struct ITypeInfo;
struct tagDISPPARAMS;
struct tagEXCEPINFO;
struct tagVARIANT;

struct IDispatch : IUnknown {
    virtual HRESULT STDMETHODCALLTYPE GetTypeInfoCount(UINT *count) = 0;
    virtual HRESULT STDMETHODCALLTYPE GetTypeInfo(UINT index, LCID locale, ITypeInfo **info) = 0;
    virtual HRESULT STDMETHODCALLTYPE GetIDsOfNames(REFIID riid, wchar_t **names, UINT count, LCID locale,
                                                    DISPID *ids) = 0;
    virtual HRESULT STDMETHODCALLTYPE Invoke(DISPID member, REFIID riid, LCID locale, uint16_t flags,
                                             tagDISPPARAMS *parameters, tagVARIANT *result, tagEXCEPINFO *exception,
                                             UINT *wrong) = 0;
};
