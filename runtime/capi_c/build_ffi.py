"""Generates the extension ``_capi`` from interfaces.txt.  Run by CMake: ``python -m cffi.gen_src``.

Every method of every claimed interface becomes one ``extern "Python"`` function, shared by the interfaces
derived from the one that declares it.  Pointers are passed as numbers, structs by value as their bytes.
"""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

from cffi import FFI

HERE = Path(__file__).parent
# Getters whose values are constant: the first call asks Python, all others are C.  Grouped by object.
KEPT = (
    ("ID3D12Resource_GetDesc", "ID3D12Resource_GetGPUVirtualAddress"),
    (
        "ID3D12DescriptorHeap_GetDesc",
        "ID3D12DescriptorHeap_GetCPUDescriptorHandleForHeapStart",
        "ID3D12DescriptorHeap_GetGPUDescriptorHandleForHeapStart",
    ),
    ("ID3D12Heap_GetDesc",),
    ("ID3D12CommandQueue_GetDesc",),
    ("IDMLDispatchable_GetBindingProperties",),
    (
        "ID3D12Device_GetNodeCount",
        "ID3D12Device_GetAdapterLuid",
        "ID3D12Device_GetDescriptorHandleIncrementSize",  # the same for all types
    ),
)
# Read from a number that Python changes.
PUSHED = ("ID3D12Device_GetDeviceRemovedReason", "IDMLDevice_GetDeviceRemovedReason")
NATIVE = ("QueryInterface", "AddRef", "Release")  # of IUnknown

WIDE = {"UINT64", "SIZE_T", "size_t", "LUID", "D3D12_GPU_VIRTUAL_ADDRESS"}
WIDE |= {"D3D12_CPU_DESCRIPTOR_HANDLE", "D3D12_GPU_DESCRIPTOR_HANDLE"}
PLAIN = {
    "FLOAT": "float",
    "UINT8": "uint8_t",
    "UINT16": "uint16_t",
    "INT": "int32_t",
    "bool": "_Bool",
    "void": "void",
}
POINTERS = re.compile(
    r"[*&\[]|\bREF[CI]?[GIL]\w*ID\b|\bP?L?P?C?W?STR\b|\bLPVOID\b|\bLPC\w+\b|\bHANDLE\b|\bHMODULE\b|\bPFN_\w+|\bD3D12MessageFunc\b"
)


class Method:
    """A method, by the interface that declares it."""

    def __init__(self, owner: str, line: str, sizes: dict[str, int]) -> None:
        result, self.name, parameters = re.fullmatch(r"  ([\w *]+) (\w+)\((.*)\)", line).groups()
        self.symbol = f"{owner}_{self.name}"
        self.is_hresult = result == "HRESULT"
        self.hands_out = re.search(r"\bREFIID \w+, void \*\*\w+$", parameters) is not None
        self.result = c_type(result, sizes)
        kinds = [c_type(each, sizes) for each in parameters.split(", ") if each]
        self.count = 1 + len(kinds)
        self.parameters = ", ".join(["uintptr_t", *kinds])


def c_type(text: str, sizes: dict[str, int]) -> str:
    """The C type that is passed as the type of a parameter or result is."""
    if POINTERS.search(text):
        return "uintptr_t"
    kind = text.split()[0]
    if kind in WIDE:
        return "uint64_t"
    if kind in sizes:
        return f"struct capi_{sizes[kind]}"
    return PLAIN.get(kind, "uint32_t")


def read_table() -> tuple[dict[str, tuple[str, str, list[Method]]], dict[str, int]]:
    """Interfaces (base, IID, own methods) and the sizes of structs."""
    text = (HERE / "interfaces.txt").read_text(encoding="utf-8")
    sizes = {name: int(size) for name, size in re.findall(r"^struct (\w+) (\d+)", text, re.MULTILINE)}
    found = {}
    for name, base, iid, rows in re.findall(
        r"^interface (\w+)(?: : (\w+))? (\S+)\n((?:  .*\n)*)", text, re.MULTILINE
    ):
        found[name] = (base, iid, [Method(name, row, sizes) for row in rows.splitlines()])
    return found, sizes


INTERFACES, SIZES = read_table()


def chain(name: str) -> list[str]:
    """The interface and its bases, IUnknown first."""
    base = INTERFACES[name][0]
    return [*(chain(base) if base else []), name]


LEAVES = [name for name in INTERFACES if name not in {base for base, _, _ in INTERFACES.values()}]


def kept() -> str:
    """The functions in front of :data:`KEPT`, which are in the vtables instead."""
    methods = {each.symbol: each for _, _, own in INTERFACES.values() for each in own}
    found = [
        f"""
static uint32_t kept_{symbol}(uintptr_t self)
{{
    struct capi_object *object = (struct capi_object *)self;
    if (atomic_load(&capi_is_alive) && is_kept(object, CAPI_PUSHED))
        return *object->pushed;
    capi_client = (uintptr_t)__builtin_return_address(0);
    return {symbol}(self);
}}"""
        for symbol in PUSHED
    ]
    for group in KEPT:
        word = 0
        for bit, symbol in enumerate(group):
            kind, rest = methods[symbol].result, methods[symbol].parameters.split(", ")[1:]
            names = ", ".join(["self", *(f"a{i}" for i in range(len(rest)))])
            parameters = ", ".join(["uintptr_t self", *(f"{each} a{i}" for i, each in enumerate(rest))])
            size = int(kind.rpartition("_")[2]) if kind.startswith("struct") else 8
            found.append(f"""
static {kind} kept_{symbol}({parameters})
{{
    struct capi_object *object = (struct capi_object *)self;
    {kind} value;
    if (is_kept(object, {1 << bit}u)) {{
        memcpy(&value, object->values + {word}, sizeof value);
        return value;
    }}
    const int outer = capi_is_passing;
    capi_client = (uintptr_t)__builtin_return_address(0);
    capi_is_passing = 0;
    value = {symbol}({names});
    keep_value(object, {1 << bit}u, {word}, &value, sizeof value);
    capi_is_passing = outer; /* of the getter during which a callback of the client's called this one */
    return value;
}}""")
            word += -(-size // 8)
        assert word <= 8, group
    return "".join(found)


def counts() -> str:
    """The symbols of the methods that return a number of 32 bits which is no HRESULT."""
    methods = [method for _, _, own in INTERFACES.values() for method in own]
    symbols = [each.symbol for each in methods if each.result == "uint32_t" and not each.is_hresult]
    return ", ".join(f'"{symbol}"' for symbol in ["Object_AddRef", *symbols])


def creators() -> str:
    """The methods and exports whose last argument says where an object goes, and how many they have."""
    methods = [each for _, _, own in INTERFACES.values() for each in own if each.hands_out]
    found = [(each.symbol, each.count) for each in methods]
    found += [
        (f"Exports_{name}", 2 + parameters.count(","))
        for name, parameters in exports()
        if parameters.endswith("riid, uintptr_t out")
    ]
    return ", ".join(f'{{"{symbol}", {count}}}' for symbol, count in found)


def exports() -> list[tuple[str, str]]:
    """The exported functions and their parameters."""
    text = (HERE / "exports.h").read_text(encoding="utf-8")
    return re.findall(r"EXPORT\((\w+),[\s\\]*\(([^()]*)\)", text)


def vtables() -> str:
    """The vtables of the newest versions, which have the slots of all others.

    Two zero words precede each, where C++ looks for the type of the object.
    """
    lines, rows = [], []
    front = {symbol: f"kept_{symbol}" for group in (*KEPT, PUSHED) for symbol in group}
    for name in LEAVES:
        slots = [
            front.get(method.symbol, method.symbol) for each in chain(name) for method in INTERFACES[each][2]
        ]
        iids = [UUID(INTERFACES[each][1]).bytes_le for each in chain(name)[1:]]
        words = [[int.from_bytes(iid[i : i + 4], "little") for i in range(0, 16, 4)] for iid in iids]
        lines.append(f"static const void *const vtable_{name}[] = {{0, 0, {', '.join(slots)}}};")
        initial = (
            ", ".join("{{" + ", ".join(f"0x{word:08X}" for word in each) + "}}" for each in words) or "{{0}}"
        )
        lines.append(f"static const struct capi_iid iids_{name}[] = {{{initial}}};")
        rows.append(f"    {{vtable_{name} + 2, iids_{name}, {len(iids)}}},")
    return "\n".join([*lines, "static const struct capi_interface capi_interfaces[] = {", *rows, "};"])


def externs() -> list[str]:
    """The declarations of all functions that Python implements."""
    found = [
        "uint32_t Object_AddRef(uintptr_t);",
        "void Object_Released(uintptr_t, uint32_t);",
        "void Object_ReleasedTooOften(uintptr_t);",
        "uint32_t Object_QueryInterface(uintptr_t, uintptr_t, uintptr_t);",
    ]
    found += [f"uint32_t Exports_{name}(uintptr_t, {parameters});" for name, parameters in exports()]
    for base, _, methods in INTERFACES.values():
        found += [f"{method.result} {method.symbol}({method.parameters});" for method in methods if base]
    return found


def table() -> str:
    """The interfaces of interfaces.txt as a string of C, for what Python makes of their signatures."""
    text = (HERE / "interfaces.txt").read_text(encoding="utf-8")
    return "\n".join(f'    "{line}\\n"' for line in text[: text.index("\nstruct ")].splitlines())


STRUCTS = "\n".join(
    f"struct capi_{size} {{ uint64_t words[2]; }};"
    if size == 16
    else f"struct capi_{size} {{ uint8_t bytes[{size}]; }};"
    for size in sorted(set(SIZES.values()))
)

ffibuilder = FFI()
ffibuilder.cdef(f"""
{STRUCTS}
extern "Python+C" {{ {" ".join(externs())} }}
extern const char *const capi_names[{len(LEAVES)}];
extern const char *const capi_table;
extern const char *const capi_counts[{counts().count(",") + 1}];
struct capi_creator {{ const char *symbol; int arguments; }};
extern const struct capi_creator capi_creators[{creators().count("{")}];
uintptr_t capi_new(uint32_t interface, uintptr_t owner);
void capi_free(uintptr_t object);
void capi_keep_memory(void);
struct capi_kind {{ const char *name; uint32_t count; }};
struct capi_left {{
    uintptr_t object;
    struct capi_kind *kind;
    const char *text;
    const uint32_t *holds;
    uint32_t hold_count;
    uint32_t references;
    uint32_t is_alive;
}};
void *malloc(size_t size);
void capi_leave(struct capi_left *rows, uint32_t count, struct capi_kind *kinds, uint32_t kind_count);
int capi_has_python(void);
uint32_t capi_count(uintptr_t object);
int capi_supports_iid(uintptr_t object, uintptr_t iid);
enum {{ CAPI_OF_CLIENT, CAPI_OF_OURS }};
enum {{ CAPI_RELEASED = ... }};
void capi_hold(uintptr_t object, uint32_t reference);
void capi_give(uintptr_t object, uintptr_t out);
void capi_let_go(uintptr_t object);
uint32_t capi_drop(uintptr_t object, uint32_t reference);
void capi_add_ref_any(uintptr_t pointer);
void capi_release_any(uintptr_t pointer);
void capi_deliver(uintptr_t, uint32_t, uint32_t, uint32_t, const char *, uintptr_t);
void capi_notify(uintptr_t, uintptr_t);
enum {{ CAPI_FRAMES = ..., CAPI_LINES = ... }};
const char *capi_version_without_lines(void);
uintptr_t capi_frames(void);
uintptr_t capi_place(uintptr_t address, char *file, size_t size);
void capi_want_frames(void);
void capi_let_signals_in(void);
int capi_blocks_signals(void);
void capi_stop(void);
void capi_fail_at_exit(void);
int capi_knows_status(void);
void capi_keep_files(void);
int capi_lives(void);
void capi_end(void);
void capi_wait_for_calls(int milliseconds);
void capi_changed(uintptr_t object);
void capi_push(uintptr_t object, uintptr_t number);
void capi_do_not_keep(void);
uintptr_t capi_fill(uintptr_t exports);
""")
ffibuilder.set_source(
    "dmlemu.frontends.capi._capi",
    f"""
/* Our functions keep Python's lock (GIL), unless they say otherwise: most take less time than it does to give
 * the lock away and get it back, in which another thread may take it. */
#undef Py_BEGIN_ALLOW_THREADS
#undef Py_END_ALLOW_THREADS
#define Py_BEGIN_ALLOW_THREADS {{
#define Py_END_ALLOW_THREADS }}
#include "exports.h"
#include "objects.h"
{STRUCTS}
#include "hook.h"
static uint32_t IUnknown_QueryInterface(uintptr_t, uintptr_t, uintptr_t);
static uint32_t IUnknown_AddRef(uintptr_t);
static uint32_t IUnknown_Release(uintptr_t);
{chr(10).join(externs())}
static int is_kept(struct capi_object *, uint32_t);
static void keep_value(struct capi_object *, uint32_t, uint32_t, const void *, size_t);
{kept()}
{vtables()}
static const char *const capi_counts[] = {{{counts()}}};
static const struct capi_creator capi_creators[] = {{{creators()}}};
static const char *const capi_names[] = {{{", ".join(f'"{name}"' for name in LEAVES)}}};
static const char *const capi_table =
{table()};
#include "objects.c"
static int capi_supports_iid(uintptr_t object, uintptr_t iid)
{{
    return capi_supports(object, (const struct capi_iid *)iid);
}}
""",
    py_limited_api=True,
)
