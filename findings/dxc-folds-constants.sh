#!/usr/bin/env bash
# DXC (the HLSL compiler): what it computes while compiling depends on whether an argument is a literal or a local variable that
# holds the same constant, and is not always what HLSL says.
#
# Expected, by HLSL's documents: frac(x) is x - floor(x), so 0.75 for -0.25; x % y is smaller than y in size; fmod(5, 3) is 2;
# atan2(0, 0) is 0; clamp(31, 100, 1) is min(max(31, 100), 1), so 1; and a literal gives what a variable gives.
# Seen with DXC 1.8.0.4597 (package compushady-lrtu 0.18.0), stored as constants in the DXIL: for variables 0.25, 1e30, 1.9999999
# and pi / 2, and 1 for clamp; for literals 0.75, 2 and 0, and 100 for clamp of int, 1 for clamp of uint.
# Who meets it: tests of shaders with constants in them, which then test the compiler. The way out is to load the
# arguments from a buffer: then the DXIL has the operations, and the device computes them.
#
# Usage: dxc-folds-constants.sh [PYTHON]   (3.11, x86-64)
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


def blob(result):  # of an IDxcResult whose status is good
    status, found = ctypes.c_int32(), ctypes.c_void_p()
    method(result, 3, ctypes.c_int32, ctypes.c_void_p)(ctypes.byref(status))
    assert status.value >= 0, status
    method(result, 4, ctypes.c_int32, ctypes.c_void_p)(ctypes.byref(found))
    size = method(found, 4, ctypes.c_size_t)()
    return ctypes.string_at(method(found, 3, ctypes.c_void_p)(), size)


compiler = ctypes.c_void_p()
library.DxcCreateInstance(
    guid("73e22d93-e6ce-47f3-b5bf-f0664f39c1b0"), guid("228b4687-5a6a-4730-900c-9702b2203f54"), ctypes.byref(compiler)
)


def stored(expression, x, y):
    """The constant that the compiled shader stores; None: it computes it when it runs."""
    source = f"""RWByteAddressBuffer o;
    [numthreads(1, 1, 1)] void main() {{ float x = {x}; float y = {y}; o.Store(0, asuint({expression})); }}""".encode()
    words = ["-E", "main", "-T", "cs_6_0"]
    result, text = ctypes.c_void_p(), ctypes.c_void_p()
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    method(compiler, 3, ctypes.c_int32, pointer, pointer, number, pointer, pointer, pointer)(
        ctypes.byref(Buffer(source, len(source), 65001)), (ctypes.c_wchar_p * 4)(*words), 4, None, RESULT, ctypes.byref(result)
    )
    container = blob(result)
    method(compiler, 4, ctypes.c_int32, pointer, pointer, pointer)(
        ctypes.byref(Buffer(container, len(container), 0)), RESULT, ctypes.byref(text)
    )
    found = re.search(r"call void @dx\.op\.bufferStore\.i32\([^)]*?i32 0, i32 undef, i32 (-?\d+),", blob(text).decode())
    if found is None:
        return None
    return ctypes.c_float.from_buffer(ctypes.c_int32(int(found[1]))).value


status = 0
for expression, x, y, seen in (
    ("frac(x)", "-0.25", "0", 0.25),
    ("frac(-0.25)", "0", "0", 0.75),
    ("fmod(x, y)", "5", "3", 1.9999999),
    ("fmod(5.0, 3.0)", "0", "0", 2.0),
    ("x % y", "1e30", "3", 1e30),
    ("float(clamp(int(x), 100, int(y)))", "31", "1", 1.0),
    ("float(clamp(int(31), int(100), int(1)))", "0", "0", 100.0),
    ("float(clamp(uint(31), uint(100), uint(1)))", "0", "0", 1.0),
    ("atan2(x, y)", "0", "0", 1.5707964),
    ("atan2(0.0, 0.0)", "0", "0", 0.0),
):
    found = stored(expression, x, y)
    print(f"x = {x}, y = {y}: {expression} = {found}")
    if found != ctypes.c_float(seen).value:
        print(f"  expected to see: {seen}")
        status = 1
sys.exit(status)
END
