"""Compute shaders of C++ programs."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from toolchain import (
    DMLEMU,
    HEADERS,
    HERE,
    Built,
    compiled,
    needs_compiler,
    needs_headers,
    reported,
    run,
    run_alone,
)

from dmlemu.shaders import dxc

pytest.importorskip("llvmlite", reason="the extra hlsl is not installed")
pytestmark = needs_compiler

SAXPY = HERE.parents[1] / "unit" / "shaders" / "containers" / "saxpy.dxil"
PRINTED = """\
root descriptors: 10.5 21 31.5 42 52.5 63 73.5 84
a table: 12 24 36 48 50 60 70 80
indirect: 111 222 33 44 55 66 77 88
model 0x66, root signature 2, waves 1 of 4 to 64 lanes, int64 1, half 1, double 1, atomics 1 1
done
"""


@pytest.mark.parametrize("strictness", ["runtime", "debug", "strict"])
def test_pipelines_run(built: Built, strictness: str) -> None:
    done = run(*DMLEMU, "exec", "--strictness", strictness, built("shaders"), SAXPY, "run")
    assert (done.stdout, reported(done.stderr), done.returncode) == (PRINTED, "", 0)


HOST = """
import ctypes, sys
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
machine = llvm.Target.from_default_triple().create_target_machine()
module = llvm.parse_assembly("define i32 @answer() { ret i32 42 }")
engine = llvm.create_mcjit_compiler(module, machine)
engine.finalize_object()
answer = ctypes.CFUNCTYPE(ctypes.c_int)(engine.get_function_address("answer"))
assert answer() == 42
library, *words = map(str.encode, sys.argv[1:])
arguments = (ctypes.c_char_p * 4)(b"shaders", *words, None)
status = ctypes.CDLL(library.decode()).main(3, arguments)
assert answer() == 42
sys.exit(status)
"""


@pytest.mark.parametrize("how", ["run", "refuse"])
@pytest.mark.parametrize("mode", ["direct", "isolated"])
def test_a_python_program_with_an_llvm_of_its_own(built: Built, mode: str, how: str) -> None:
    """In isolated mode a second copy of llvmlite makes the code of shaders."""
    variables = {"DMLEMU_CAPI_MODE": mode, "DMLEMU_STRICTNESS": "strict"}
    done = run_alone(sys.executable, "-c", HOST, built("shaders.so"), SAXPY, how, **variables)
    assert (done.stdout, done.returncode) == (PRINTED if how == "run" else "done\n", 0), done.stderr
    assert "a bug of dmlemu" not in done.stderr


@pytest.mark.parametrize("strictness", ["runtime", "debug", "strict"])
def test_arguments_that_cannot_be_are_refused(built: Built, strictness: str) -> None:
    done = run(*DMLEMU, "exec", "--strictness", strictness, built("shaders"), SAXPY, "refuse")
    assert done.stdout == "done\n", done.stderr
    assert "a bug of dmlemu" not in done.stderr


DOUBLES = """
def scales(run):
    return any(each.work.is_shader and each.work.desc.indirect for each in run.record.dispatches)
"""


def test_a_record_is_compared_replayed_and_reduced(built: Built, tmp_path: Path) -> None:
    """Root descriptors, a table and an ExecuteIndirect; the reduced program is one of Python."""
    record = tmp_path / "run.dmlrec"
    done = run(*DMLEMU, "exec", "--strict", "--record", record, built("shaders"), SAXPY, "run")
    assert (reported(done.stderr), done.returncode) == ("", 0)
    done = run(*DMLEMU, "replay", record)
    assert done.returncode == 0 and re.match(r"\d dispatches were run again: no output", done.stdout), done
    assert run(*DMLEMU, "diff", record, record).returncode == 0
    done = run(*DMLEMU, "diff", record, "--reference")
    assert done.returncode == 2 and "not compared with a reference: a compute shader." in done.stderr, done
    (tmp_path / "shows.py").write_text(DOUBLES)
    done = run(*DMLEMU, "reduce", record, "--while", "shows:scales", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert re.match(r"1 of \d dispatches, ", done.stdout) and "does not show" not in done.stdout, done.stdout
    assert "is an ExecuteIndirect, and a model has the numbers of groups" in done.stdout
    done = run(sys.executable, tmp_path / "run.reduced.py")
    assert done.returncode == 0, done.stderr


# --- the example ---

EXAMPLE = HERE.parents[2] / "examples" / "shaders"
MISSING = {
    "filters": ("STATE_FOR_DISPATCH", "a transition of buffer 'filters' from COPY_DEST to UNORDERED_ACCESS"),
    "pixels": ("STATE_BEFORE", "a transition of buffer 'pixels' from COPY_DEST to NON_PIXEL_SHADER_RESOURCE"),
    "tensor": ("HAZARD_RAW", "ResourceBarrier(UAV('tensor'))"),
    "scores": ("STATE_BEFORE", "a transition of buffer 'scores' from UNORDERED_ACCESS to NON_PIXEL_SHADER_"),
    "classes": ("STATE_BEFORE", "a transition of buffer 'classes' from UNORDERED_ACCESS to COPY_SOURCE"),
}


def expected() -> list[str]:
    """What the example prints, by NumPy in doubles."""
    y, x = np.mgrid[:64, :64]
    image = np.stack([4 * x, 4 * y, (x * x + y * y) // 16]).astype(np.uint8) / 255
    numbers = (np.arange(4 * 3 * 9) * 7919 % 1009).astype(np.float32)
    filters = (numbers / np.float32(1009) - np.float32(0.5)).astype(np.float64).reshape(4, 3, 3, 3)
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    scores = np.einsum("cyxij,kcij->kyx", windows, filters)
    best = np.sort(scores, axis=0)
    assert (best[-1] - best[-2]).min() > 1e-5, "rounding could decide"
    return ["".join(map(str, row)) for row in scores.argmax(axis=0)]


def test_shaders_beside_directml_compute_what_numpy_does(tmp_path: Path) -> None:
    program = compiled(EXAMPLE / "pixels.cpp", tmp_path / "pixels")
    done = run(*DMLEMU, "exec", "--strict", program, EXAMPLE)
    assert (done.stdout.splitlines(), done.stderr, done.returncode) == (expected(), "", 0)
    done = run(*DMLEMU, "exec", "--strict", "--chaos", "3", program, EXAMPLE)
    assert (done.stdout.splitlines(), done.returncode) == (expected(), 0), done.stderr


@pytest.mark.parametrize("name", MISSING)
def test_each_barrier_that_is_missing_is_named(name: str, tmp_path: Path) -> None:
    source = (EXAMPLE / "pixels.cpp").read_text(encoding="utf-8")
    text, count = re.subn(rf"^ +gpu\.Barrier\(.*\); // {name}$", "", source, flags=re.MULTILINE)
    assert count == 1
    (tmp_path / "pixels.cpp").write_text(text, encoding="utf-8")
    program = compiled(tmp_path / "pixels.cpp", tmp_path / "pixels")
    done = run(*DMLEMU, "exec", "--strict", program, EXAMPLE)
    id, hint = MISSING[name]
    first, *_ = re.findall(r"^(?:D3D12|DML) ERROR (\w+)(?:.*\n)+?  hint: (.*)$", done.stderr, re.MULTILINE)
    assert (first[0], hint in first[1]) == (id, True), done.stderr
    assert done.returncode == 1


# --- DXC in a C++ program ---


@pytest.mark.parametrize("headers", [None, pytest.param(HEADERS, marks=needs_headers)])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_program_compiles_hlsl_itself(compiler: str, headers: str | None, tmp_path: Path) -> None:
    """DXC's own header and d3d12.h are in one file, and so is what reflection gives."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    library = dxc_library()
    flags = ("-isystem", str(library.parent), "-Wno-deprecated-declarations")
    program = compiled("compiles.cpp", tmp_path / "compiles", *flags, compiler=compiler, headers=headers)
    done = run(*DMLEMU, "exec", program, library)
    expected = "DXBC, 32 characters and .pdb\ncounts: u3, space2; 8 x 4 x 1 threads\n"
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr


def dxc_library() -> Path:
    try:
        library = dxc._library()
    except dxc.CompilerMissing as absent:
        pytest.skip(str(absent))
    if not (library.parent / "dxcapi.h").exists():
        pytest.skip("the package of DXC has no dxcapi.h")
    return library


def test_dispatches_are_work(built: Built, tmp_path: Path) -> None:
    work = tmp_path / "work"
    done = run(*DMLEMU, "exec", built("shaders"), SAXPY, "run", DMLEMU_WORK=str(work))
    assert (done.stdout, done.returncode) == (PRINTED, 0), done.stderr
    pipelines = ["state 'saxpy'", "state #2", "state 'saxpy'", "state 'saxpy'"]  # two by ExecuteIndirect
    assert work.read_text().splitlines() == [f"dispatch pipeline {each}" for each in pipelines]
