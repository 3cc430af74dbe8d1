#!/usr/bin/env bash
# DXC (the HLSL compiler), way to SPIR-V: an integer that becomes a float of fewer bits loses its upper half first.
#
# Expected: float(x) of a uint64_t x is the nearest float, as the same shader has it by way of DXIL; so is float16_t(x) of a uint.
# Seen with DXC 1.8.0.4597 (package compushady-lrtu 0.18.0): OpUConvert to 32 bits, or to 16, comes before OpConvertUToF, so that
# float(1ull << 32) is 0. From uint64_t to double, and from uint to float, nothing is lost.
# Who meets it: shaders that are compiled for Direct3D 12 and for Vulkan. The way out is float(double(x)), float16_t(float(x)).
#
# Usage: dxc-spirv-cuts-integers.sh [PYTHON]   (3.11, x86-64)
# Exits with 1 if what is seen changes.
set -euo pipefail
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --only-binary :all: compushady-lrtu==0.18.0 2>"$work/pip.log" ||
    { cat "$work/pip.log"; exit 2; }
"$work/venv/bin/python" - <<'END'
import ctypes, glob, importlib.util, struct, sys, uuid

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


CONVERSIONS = {109: "OpConvertFToU", 111: "OpConvertSToF", 112: "OpConvertUToF", 113: "OpUConvert", 114: "OpSConvert", 115: "OpFConvert"}


def conversions(source, result):
    """Those of the SPIR-V, with the bits of what they give."""
    text = f"""StructuredBuffer<{source}> a; RWStructuredBuffer<{result}> o;
    [numthreads(16, 1, 1)] void main(uint i : SV_GroupIndex) {{ o[i] = {result}(a[i]); }}""".encode()
    words = ["-E", "main", "-T", "cs_6_2", "-enable-16bit-types", "-spirv"]
    made, pointer, number = ctypes.c_void_p(), ctypes.c_void_p, ctypes.c_uint32
    method(compiler, 3, ctypes.c_int32, pointer, pointer, number, pointer, pointer, pointer)(
        ctypes.byref(Buffer(text, len(text), 65001)), (ctypes.c_wchar_p * len(words))(*words), len(words), None, RESULT,
        ctypes.byref(made),
    )
    code = blob(made)
    words, at, bits, found = struct.unpack(f"<{len(code) // 4}I", code), 5, {}, []
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if opcode in (21, 22):  # OpTypeInt, OpTypeFloat
            bits[words[at + 1]] = words[at + 2]
        if opcode in CONVERSIONS:
            found.append(f"{CONVERSIONS[opcode]} {bits[words[at + 1]]}")
        at += length
    return ", ".join(found)


status = 0
for source, result, seen in (
    ("uint64_t", "float", "OpUConvert 32, OpConvertUToF 32"),
    ("int64_t", "float", "OpSConvert 32, OpConvertSToF 32"),
    ("uint", "float16_t", "OpUConvert 16, OpConvertUToF 16"),
    ("uint64_t", "double", "OpConvertUToF 64"),
    ("uint", "float", "OpConvertUToF 32"),
):
    found = conversions(source, result)
    print(f"{result}({source}): {found}")
    if found != seen:
        print(f"  expected to see: {seen}")
        status = 1
sys.exit(status)
END
