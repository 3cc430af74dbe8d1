#!/usr/bin/env bash
# DXC (the HLSL compiler): its own validator refuses a row of a matrix in a constant buffer, if the index of the row is loaded and
# the matrix has more rows than columns.
#
# Expected: m[i] of a float4x3 m compiles, as it does for a float3x4, for a row_major one, and for a copy of the matrix.
# Seen with DXC 1.8.0.4597 (package compushady-lrtu 0.18.0): "validation errors: Access to out-of-bounds memory is disallowed":
# the numbers of a column go through a local array of as many elements as there are columns.
# Who meets it: shaders with an array of rows in a matrix, such as float4x3. The way out is a local copy of the matrix.
#
# Usage: dxc-refuses-a-row-of-a-matrix.sh [PYTHON]   (3.11, x86-64)
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


def error(declared, expression):
    """Why the compiler refuses the shader; empty: it compiles it."""
    source = f"""cbuffer C {{ {declared} m; }}; StructuredBuffer<uint> i; RWStructuredBuffer<float> o;
    [numthreads(8, 1, 1)] void main(uint t : SV_GroupIndex) {{ float4x3 v = (float4x3)0; {expression} }}""".encode()
    words = ["-E", "main", "-T", "cs_6_0", "-Wno-everything"]
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
for declared, expression, seen in (
    ("float4x3", "o[t] = m[i[t] % 4][1];", "Access to out-of-bounds memory is disallowed."),
    ("float3x2", "o[t] = m[i[t] % 3][1];", "Access to out-of-bounds memory is disallowed."),
    ("float3x4", "o[t] = m[i[t] % 3][1];", ""),
    ("row_major float4x3", "o[t] = m[i[t] % 4][1];", ""),
    ("float4x3", "v = m; o[t] = v[i[t] % 4][1];", ""),
):
    found = error(declared, expression)
    print(f"{declared} m; {expression}  {found or 'compiles'}")
    if found != seen:
        print(f"  expected to see: {seen or 'nothing'}")
        status = 1
sys.exit(status)
END
