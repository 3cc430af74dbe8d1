#!/usr/bin/env bash
# DXC (the HLSL compiler): an integer constant that is too large for half, converted to it, is undefined, and takes a select with it.
#
# Expected: float16_t(70000) is infinity, as of an integer that is loaded and as of the float 70000.0; float16_t(x == 0 ? 70000 : x)
# is infinity where x is 0, and float16_t(firstbithigh(x)), whose result for 0 is 0xffffffff, too.
# Seen with DXC 1.8.0.4597 (package compushady-lrtu 0.18.0), -enable-16bit-types: the first is refused, "Assignment of undefined
# values to UAV"; the select of the second is left out, so that it is float16_t(x), 0 where x is 0; so is that of the third, which
# is 32. From 65520 on; constants up to 65519 and floats are as expected.
# Who meets it: shaders with native 16-bit types that convert indices or "none found" markers to half. The way out is
# a conversion by way of float.
#
# Usage: dxc-folds-integers-too-large-for-half.sh [PYTHON]   (3.11, x86-64)
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
    return contents(found)


def contents(held):  # of an IDxcBlob
    return ctypes.string_at(method(held, 3, ctypes.c_void_p)(), method(held, 4, ctypes.c_size_t)())


compiler = ctypes.c_void_p()
library.DxcCreateInstance(
    guid("73e22d93-e6ce-47f3-b5bf-f0664f39c1b0"), guid("228b4687-5a6a-4730-900c-9702b2203f54"), ctypes.byref(compiler)
)


def compiled(expression):
    """What the compiler makes: the words of the code that choose, or why it refuses."""
    source = f"""StructuredBuffer<uint> a; RWStructuredBuffer<float16_t> o;
    [numthreads(8, 1, 1)] void main(uint i : SV_GroupIndex) {{ uint x = a[i]; o[i] = {expression}; }}""".encode()
    words = ["-E", "main", "-T", "cs_6_2", "-enable-16bit-types"]
    result, text, status = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int32()
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    method(compiler, 3, ctypes.c_int32, pointer, pointer, number, pointer, pointer, pointer)(
        ctypes.byref(Buffer(source, len(source), 65001)), (ctypes.c_wchar_p * len(words))(*words), len(words), None, RESULT,
        ctypes.byref(result),
    )
    method(result, 3, ctypes.c_int32, pointer)(ctypes.byref(status))
    if status.value < 0:
        method(result, 5, ctypes.c_int32, pointer)(ctypes.byref(text))
        return re.search("error: (Assignment.*)", contents(text).decode(errors="replace"))[1]
    container = blob(result)
    method(compiler, 4, ctypes.c_int32, pointer, pointer, pointer)(
        ctypes.byref(Buffer(container, len(container), 0)), RESULT, ctypes.byref(text)
    )
    return " ".join(re.findall("= (select|uitofp|fptrunc) ", blob(text).decode()))


status = 0
for expression, seen in (
    ("float16_t(70000u)", "Assignment of undefined values to UAV."),
    ("float16_t(x == 0 ? 70000u : x)", "uitofp"),
    ("float16_t(x == 0 ? 65520u : x)", "uitofp"),
    ("float16_t(x == 0 ? 65519u : x)", "uitofp select"),
    ("float16_t(firstbithigh(x))", "uitofp"),
    ("float16_t(float(firstbithigh(x)))", "uitofp fptrunc select"),
):
    found = compiled(expression)
    print(f"{expression}: {found}")
    if found != seen:
        print(f"  expected to see: {seen}")
        status = 1
sys.exit(status)
END
