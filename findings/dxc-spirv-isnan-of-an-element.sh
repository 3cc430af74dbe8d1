#!/usr/bin/env bash
# DXC (the HLSL compiler), way to SPIR-V: isnan and isinf of an element of a buffer, or of a number of a constant buffer, become
# an instruction whose result is a uint, which DXC's own validator then refuses.
#
# Expected: the shader compiles, as the same one does to DXIL; the result of OpIsNan is a bool.
# Seen with DXC 1.8.0.4597 (package compushady-lrtu 0.18.0): "generated SPIR-V is invalid: Expected bool scalar or vector type as
# Result Type: IsNan"; the way out is to copy the element to a local variable first.
# Who meets it: shaders that are compiled for Direct3D 12 and for Vulkan.
#
# Usage: dxc-spirv-isnan-of-an-element.sh [PYTHON]   (3.11, x86-64)
# Exits with 1 if what is seen changes.
set -euo pipefail
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --only-binary :all: compushady-lrtu==0.18.0 2>"$work/pip.log" ||
    { cat "$work/pip.log"; exit 2; }
"$work/venv/bin/python" - <<'END'
import ctypes, glob, importlib.util, sys, uuid

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


compiler = ctypes.c_void_p()
library.DxcCreateInstance(
    guid("73e22d93-e6ce-47f3-b5bf-f0664f39c1b0"), guid("228b4687-5a6a-4730-900c-9702b2203f54"), ctypes.byref(compiler)
)


def errors(body, *more):
    """What the compiler says; empty: nothing is wrong."""
    source = f"""RWStructuredBuffer<float> a; RWStructuredBuffer<uint> o; cbuffer Constants {{ float4 k; }};
    [numthreads(1, 1, 1)] void main(uint i : SV_GroupIndex) {{ {body} }}""".encode()
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
    return ctypes.string_at(method(text, 3, pointer)(), method(text, 4, ctypes.c_size_t)()).decode(errors="replace")


status = 0
for body, more, seen in (
    ("o[i] = isnan(a[i]) ? 1 : 2;", ["-spirv"], "Result Type: IsNan"),
    ("o[i] = isnan(k.x) ? 1 : 2;", ["-spirv"], "Result Type: IsNan"),
    ("if (isinf(k.x)) o[i] = 1;", ["-spirv"], "Result Type: IsInf"),
    ("float x = a[i]; o[i] = isnan(x) ? 1 : 2;", ["-spirv"], ""),
    ("o[i] = isnan(a[i]) ? 1 : 2;", [], ""),
):
    found = errors(body, *more)
    print(f"{body}  {' '.join(more) or 'to DXIL'}: {found.splitlines()[0] if found else 'compiles'}")
    if (seen not in found) if seen else found:
        print(f"  expected to see: {seen or 'nothing'}")
        status = 1
sys.exit(status)
END
