#!/usr/bin/env bash
# DXC (the HLSL compiler): in a constant buffer, what follows a matrix of double or 64-bit integers has the place of its second
# column; in a structured buffer, the numbers of a matrix of 16-bit types take four bytes each.
#
# Expected, by HLSL's packing rules: cbuffer { double2x2 m; double z; } has the columns of m at bytes 0 and 16 and z at 32, as
# { double2 m[2]; double z; } has them; a struct of a uint16_t2x3 has 12 bytes, as one of a uint16_t2[3] has.
# Seen with DXC 1.8.0.4597 (package compushady-lrtu 0.18.0): the second column and z are both read at byte 32; the number of row
# 1 in column 2 of the uint16_t2x3 is read at byte 20 of 24.
# Who meets it: shaders with such matrices. The way out is an array of vectors.
#
# Usage: dxc-matrices-of-16-and-64-bits.sh [PYTHON]   (3.11, x86-64)
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


def loads(source):
    """Where the shader loads from: rows of a constant buffer, or bytes of an element of a structured one."""
    source = f"""{source}
    [numthreads(8, 1, 1)] void main(uint i : SV_GroupIndex) {{ test(i); }}""".encode()
    words = ["-E", "main", "-T", "cs_6_2", "-enable-16bit-types"]
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
    found = blob(text).decode()
    rows = re.findall(r"@dx.op.cbufferLoadLegacy.\w+\(i32 59, %dx.types.Handle %\d+, i32 (\d+)\)", found)
    places = re.findall(r"@dx.op.rawBufferLoad.\w+\(i32 139, %dx.types.Handle %\d+, i32 %\d+, i32 (\d+),", found)
    return " ".join([*(f"row {row}" for row in rows), *(f"byte {place}" for place in places)])


OF_CONSTANTS = "RWStructuredBuffer<double> o; void test(uint i) {{ o[i] = {0}; o[i + 8] = z; }}"
OF_ELEMENTS = "StructuredBuffer<S> x; RWStructuredBuffer<uint16_t> o; void test(uint i) {{ o[i] = x[i].m{0}; }}"
status = 0
for declared, test, seen in (
    ("cbuffer C { double2x2 m; double z; };", OF_CONSTANTS.format("m[0][1]"), "row 2 row 2"),
    ("cbuffer C { int64_t2x2 m; int64_t z; };", OF_CONSTANTS.format("m[0][1]"), "row 2 row 2"),
    ("cbuffer C { double2 m[2]; double z; };", OF_CONSTANTS.format("m[1].x"), "row 1 row 2"),
    ("struct S { uint16_t2x3 m; };", OF_ELEMENTS.format("[1][2]"), "byte 20"),
    # The whole vector is loaded.
    ("struct S { uint16_t2 m[3]; };", OF_ELEMENTS.format("[2].y"), "byte 8"),
):
    found = loads(declared + test)
    print(f"{declared} {found}")
    if found != seen:
        print(f"  expected to see: {seen}")
        status = 1
sys.exit(status)
END
