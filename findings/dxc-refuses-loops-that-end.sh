#!/usr/bin/env bash
# DXC (the HLSL compiler): its own validator refuses a loop that ends, where the count of the loop around it has one bit.
#
# Expected: for (a = 0; a < n; ++a) for (b = 0; b < a; ++b) compiles whatever n is; both loops end.
# Seen with DXC 1.8.0.4597 (package compushady-lrtu 0.18.0): with n = x & 1, x % 2 or x >> 31 "validation errors: Loop must have
# break". The optimizer finds that b < a is never true in a round that happens, and takes the end of the inner loop out,
# but leaves the loop where no thread comes.
# Who meets it: shaders whose loops count to a flag. The way out is a != n as the condition, or -Od.
#
# Usage: dxc-refuses-loops-that-end.sh [PYTHON]   (3.11, x86-64)
# Exits with 1 if what is seen changes.
set -euo pipefail
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --only-binary :all: compushady-lrtu==0.18.0 2>"$work/pip.log" ||
    { cat "$work/pip.log"; exit 2; }
"$work/venv/bin/python" - <<'END'
import ctypes, glob, importlib.util, re, sys, uuid

folder = importlib.util.find_spec("compushady").submodule_search_locations[0]
library = ctypes.CDLL(glob.glob(f"{folder}/backends/libdxcompiler_*.so")[0])
guid = lambda text: ctypes.create_string_buffer(uuid.UUID(text).bytes_le, 16)
RESULT = guid("58346cda-dde7-4497-9461-6f87af5e0659")


class Buffer(ctypes.Structure):  # DxcBuffer
    _fields_ = [("pointer", ctypes.c_char_p), ("size", ctypes.c_size_t), ("encoding", ctypes.c_uint32)]


def method(this, slot, result, *types):  # of a COM object
    table = ctypes.cast(this, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))[0]
    function = ctypes.CFUNCTYPE(result, ctypes.c_void_p, *types)(table[slot])
    return lambda *arguments: function(this, *arguments)


def contents(held):  # of an IDxcBlob
    return ctypes.string_at(method(held, 3, ctypes.c_void_p)(), method(held, 4, ctypes.c_size_t)())


compiler = ctypes.c_void_p()
library.DxcCreateInstance(
    guid("73e22d93-e6ce-47f3-b5bf-f0664f39c1b0"), guid("228b4687-5a6a-4730-900c-9702b2203f54"), ctypes.byref(compiler)
)


def error(count, *more, condition="a < n"):
    """Why the compiler refuses two loops; empty: it compiles them."""
    source = f"""RWByteAddressBuffer o; ByteAddressBuffer i;
    [numthreads(8, 1, 1)] void main(uint t : SV_GroupIndex) {{
        uint x = i.Load(0), n = {count};
        for (uint a = 0; {condition}; ++a) for (uint b = 0; b < a; ++b) o.InterlockedMax(4 * t, b);
    }}""".encode()
    words = ["-E", "main", "-T", "cs_6_0", *more]
    result, text, status = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int32()
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    method(compiler, 3, ctypes.c_int32, pointer, pointer, number, pointer, pointer, pointer)(
        ctypes.byref(Buffer(source, len(source), 65001)), (ctypes.c_wchar_p * len(words))(*words), len(words), None, RESULT,
        ctypes.byref(result),
    )
    method(result, 3, ctypes.c_int32, pointer)(ctypes.byref(status))
    if status.value >= 0:
        return ""
    method(result, 5, ctypes.c_int32, pointer)(ctypes.byref(text))
    return re.findall("error: (.*)", contents(text).decode(errors="replace"))[-1]


status = 0
for count, more, condition, seen in (
    ("x & 1", [], "a < n", "Loop must have break."),
    ("x % 2", [], "a < n", "Loop must have break."),
    ("x >> 31", [], "a < n", "Loop must have break."),
    ("x & 3", [], "a < n", ""),
    ("x & 1", [], "a != n", ""),
    ("x & 1", ["-Od"], "a < n", ""),
):
    found = error(count, *more, condition=condition)
    print(f"n = {count}, {condition}  {' '.join(more)}: {found or 'compiles'}")
    if found != seen:
        print(f"  expected to see: {seen or 'nothing'}")
        status = 1
sys.exit(status)
END
