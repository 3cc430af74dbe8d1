/* The functions that the libraries export.  They forward to functions that the extension fills in, in this order. */

#ifndef DMLEMU_EXPORTS_H
#define DMLEMU_EXPORTS_H

#include <stddef.h>
#include <stdint.h>

struct dl_phdr_info;
struct dmlemu_stack;

/* Characters, which stay where they are until the call returns. */
struct dmlemu_text {
    uintptr_t at;
    uint32_t size, width; /* in bytes: of all, and of each */
};

/* A line of the program's Python. */
struct dmlemu_line {
    struct dmlemu_text file, function;
    uint64_t hash; /* of both: later, there may be another text at the same place */
    int64_t number;
};

enum { DMLEMU_LINES = 3 };

#define DMLEMU_D3D12_EXPORTS(EXPORT) \
    EXPORT(D3D12CreateDevice, (uintptr_t adapter, uint32_t level, uintptr_t riid, uintptr_t out), (adapter, level, riid, out)) \
    EXPORT(D3D12GetDebugInterface, (uintptr_t riid, uintptr_t out), (riid, out)) \
    EXPORT(D3D12GetInterface, (uintptr_t clsid, uintptr_t riid, uintptr_t out), (clsid, riid, out)) \
    EXPORT(D3D12EnableExperimentalFeatures, (uint32_t count, uintptr_t iids, uintptr_t structs, uintptr_t sizes), \
           (count, iids, structs, sizes)) \
    EXPORT(D3D12SerializeRootSignature, (uintptr_t desc, uint32_t version, uintptr_t blob, uintptr_t error), \
           (desc, version, blob, error)) \
    EXPORT(D3D12SerializeVersionedRootSignature, (uintptr_t desc, uintptr_t blob, uintptr_t error), (desc, blob, error)) \
    EXPORT(D3D12CreateRootSignatureDeserializer, (uintptr_t data, uintptr_t size, uintptr_t riid, uintptr_t out), \
           (data, size, riid, out)) \
    EXPORT(D3D12CreateVersionedRootSignatureDeserializer, \
           (uintptr_t data, uintptr_t size, uintptr_t riid, uintptr_t out), (data, size, riid, out))

#define DMLEMU_DXCORE_EXPORTS(EXPORT) EXPORT(DXCoreCreateAdapterFactory, (uintptr_t riid, uintptr_t out), (riid, out))

#define DMLEMU_DXGI_EXPORTS(EXPORT) \
    EXPORT(CreateDXGIFactory, (uintptr_t riid, uintptr_t out), (riid, out)) \
    EXPORT(CreateDXGIFactory1, (uintptr_t riid, uintptr_t out), (riid, out)) \
    EXPORT(CreateDXGIFactory2, (uint32_t flags, uintptr_t riid, uintptr_t out), (flags, riid, out)) \
    EXPORT(DXGIGetDebugInterface1, (uint32_t flags, uintptr_t riid, uintptr_t out), (flags, riid, out))

#define DMLEMU_DIRECTML_EXPORTS(EXPORT) \
    EXPORT(DMLCreateDevice, (uintptr_t device, uint32_t flags, uintptr_t riid, uintptr_t out), (device, flags, riid, out)) \
    EXPORT(DMLCreateDevice1, (uintptr_t device, uint32_t flags, uint32_t level, uintptr_t riid, uintptr_t out), \
           (device, flags, level, riid, out))

/* Those of dmlemu.h, in libd3d12.so, too. */
#define DMLEMU_OWN_EXPORTS(EXPORT) \
    EXPORT(dmlemu_expect, (uintptr_t resource, uint64_t offset, uintptr_t desc, uintptr_t name), \
           (resource, offset, desc, name)) \
    EXPORT(dmlemu_name, (uintptr_t object, uintptr_t name), (object, name)) \
    EXPORT(dmlemu_mark, (uintptr_t text), (text)) \
    EXPORT(dmlemu_report_count, (uintptr_t id, uintptr_t count), (id, count))

#define DMLEMU_EXPORTS(EXPORT) \
    DMLEMU_D3D12_EXPORTS(EXPORT) DMLEMU_OWN_EXPORTS(EXPORT) DMLEMU_DXCORE_EXPORTS(EXPORT) \
    DMLEMU_DXGI_EXPORTS(EXPORT) DMLEMU_DIRECTML_EXPORTS(EXPORT)

/* A function for each export; NULL until Python has started. */
struct dmlemu_exports {
    /* Set by libd3d12.so before. */
    int is_isolated; /* Python runs on threads of its own alone: the program's threads belong to another C library */
    int (*iterate)(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data); /* over the program's files */
    void (*measure_stack)(struct dmlemu_stack *); /* of a thread of the program */
    int (*find_lines)(struct dmlemu_line *lines); /* of this thread: how many; NULL: they are not known */
    const char *unknown_python; /* the version of a Python whose lines are not known; otherwise NULL */

#define FIELD(name, parameters, arguments) uint32_t (*name) parameters;
    DMLEMU_EXPORTS(FIELD)
#undef FIELD
    void (*enter)(uintptr_t site); /* sets where the next export was called from */
    void (*end)(void); /* after this, every call fails */
    void (*print_left)(void); /* prints the objects that the program has not released */
    int (*keeps_files)(void); /* whether files are written at the end, also where a signal ends the program */
    int (*fails)(void); /* whether the program is to end with 1 where its own status is 0 */
};

#endif
