#!/usr/bin/env bash
# DXC (the HLSL compiler): an integer that becomes a float and then another integer is only cut to the size of the latter.
#
# Expected, by the functional specification of Direct3D 11.3 (ftou, ftoi): conversions from float clamp, so that
# uint(double(x)) is 0 for an x of -1, and int16_t(float(y)) is 32767 for a uint16_t y of 40000.
# Seen with DXC 1.8.0.4597 (package compushady-lrtu 0.18.0), also with -Gis: where the float holds every value of the first
# integer, no conversion is left in the DXIL, so that the results are 0xffffffff and -25536. From int by way of float, which is
# not exact, both conversions stay.
# Who meets it: shaders that rely on the clamping. The way out is a comparison: x < 0 ? 0 : uint(x).
#
# Usage: dxc-converts-there-and-back.sh [PYTHON]   (3.11, x86-64)
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


def conversions(expression, kind, *more):
    """Those that the compiled shader does."""
    source = f"""StructuredBuffer<uint> a; RWStructuredBuffer<{kind}> o;
    [numthreads(8, 1, 1)] void main(uint i : SV_GroupIndex) {{ uint x = a[i]; o[i] = {expression}; }}""".encode()
    words = ["-E", "main", "-T", "cs_6_2", "-enable-16bit-types", *more]
    result, text = ctypes.c_void_p(), ctypes.c_void_p()
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    method(compiler, 3, ctypes.c_int32, pointer, pointer, number, pointer, pointer, pointer)(
        ctypes.byref(Buffer(source, len(source), 65001)), (ctypes.c_wchar_p * len(words))(*words), len(words), None, RESULT,
        ctypes.byref(result),
    )
    container = blob(result)
    method(compiler, 4, ctypes.c_int32, pointer, pointer, pointer)(
        ctypes.byref(Buffer(container, len(container), 0)), RESULT, ctypes.byref(text)
    )
    return " ".join(re.findall("= ([su]itofp|fpto[su]i) ", blob(text).decode()))


status = 0
for expression, kind, more, seen in (
    ("uint(double(int(x)))", "uint", [], ""),
    ("uint(double(int(x)))", "uint", ["-Gis"], ""),
    ("int16_t(float(uint16_t(x)))", "int16_t", [], ""),
    ("uint(float(int(x)))", "uint", [], "sitofp fptoui"),
):
    found = conversions(expression, kind, *more)
    print(f"{expression} {' '.join(more)}: {found or 'no conversion to or from a float'}")
    if found != seen:
        print(f"  expected to see: {seen or 'none'}")
        status = 1
sys.exit(status)
END
