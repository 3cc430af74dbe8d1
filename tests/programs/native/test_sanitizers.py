"""C++ programs built with sanitizers, under valgrind, and against our own C built with sanitizers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path

import fuzz_capi
import pytest
from toolchain import HERE, Built, capi, compiled, copy_installation, needs_compiler, run_alone

from dmlemu.frontends.capi import _capi

pytestmark = [*needs_compiler, pytest.mark.long]

CAPI = HERE.parents[2] / "runtime" / "capi_c"
OPTIONS = {  # leaks are not looked for: the interpreter stays
    "address": ["-fsanitize=address"],
    "undefined": ["-fsanitize=undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover"],
    "thread": ["-fsanitize=thread"],
}
NO_LEAKS = "detect_leaks=0"
PROGRAMS = {  # with the status of each
    ("identity",): 0,
    ("threads", "4", "5", "100"): 0,
    ("waits", "100"): 0,
    ("refusals",): 0,
    ("consequences",): 0,
    ("debug_layer",): 0,
    ("dxcore",): 0,
    ("getters",): 0,
    ("versions",): 0,
    ("own_programs",): 0,
    ("turns",): 0,
    ("references", "100"): 0,
    ("pairs", "20"): 0,
    ("bad_input",): 0,
    ("unwinding", "small"): 0,
    ("compat", "events", "threads", "both", "macros", "libraries", "adapters", "refused"): 0,
    ("debug_interfaces",): 0,
    ("settings",): 0,
    ("mistakes",): 0,
    ("wrong",): 0,
    ("ends", "wrong", "5"): 5,
    ("unwinding", "cancel"): 0,
    ("surroundings", "libd3d12.so", "local", "4", "64", "coroutine"): 0,
    ("exits", "return", "4"): 3,
    ("exits", "thread", "4"): 3,
    ("exits", "fork-exit", "4"): 3,
}

STRICTNESSES = {  # of programs that set it, and of one that uses an object after its last Release
    "debug_layer": [""],
    "debug_interfaces": [""],
    "mistakes": ["strict"],
}
CLIENTS = (
    ("identity",),
    ("threads", "4", "5", "100"),
    ("own_programs",),
    ("waits", "100"),
    ("references", "100"),
)


def _clean(done: subprocess.CompletedProcess[str], status: int) -> None:
    assert done.returncode == status, done.stderr
    for word in ("Sanitizer", "runtime error", "a bug of dmlemu"):
        assert word not in done.stderr, done.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("strictness", ["runtime", "strict"])
def test_programs_with_sanitizers(tmp_path: Path, kind: str, strictness: str) -> None:
    run_one = partial(run_alone, ASAN_OPTIONS=NO_LEAKS, DMLEMU_STRICTNESS=strictness, timeout=300)
    for name, *arguments in CLIENTS:
        program = compiled(f"{name}.cpp", tmp_path / name, *OPTIONS[kind])
        _clean(run_one(program, *arguments), 0)


# --- our own C ---


def _sanitized(folder: Path) -> Path:
    """Libraries that have AddressSanitizer and UndefinedBehaviorSanitizer, as their extension has."""
    packages = copy_installation(folder / "prefix")
    flags = [
        "-g",
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
        "-shared",
        "-fPIC",
    ]
    source = folder / "_capi.c"
    subprocess.run(
        [sys.executable, "-m", "cffi.gen_src", "exec-python", CAPI / "build_ffi.py", source], check=True
    )
    extension = packages / "dmlemu" / "frontends" / "capi" / Path(_capi.__file__).name
    python = ["-DPy_LIMITED_API=0x030a0000", f"-I{CAPI}", f"-I{sysconfig.get_path('include')}"]
    subprocess.run(["gcc", *flags, *python, source, "-o", extension], check=True)
    scripts = {"d3d12": f"-Wl,--version-script={CAPI / 'libd3d12.map'}"}
    for name, part in (("d3d12", ""), ("dxcore", "DXCORE"), ("dxgi", "DXGI"), ("directml", "DIRECTML")):
        library = packages / "dmlemu" / "lib" / f"lib{name}.so"
        own = [f"-DDMLEMU_FORWARDED=DMLEMU_{part}_EXPORTS"] if part else []
        own.append("-fvisibility=hidden")
        own += filter(None, [scripts.get(name)])
        c = CAPI / ("forward.c" if part else "start.c")
        command = ["gcc", *flags, *own, f"-Wl,-soname,lib{name}.so", c, "-o", library]
        subprocess.run(command, check=True)
    return packages / "dmlemu" / "lib"


@pytest.mark.timeout(300)
def test_our_c_with_sanitizers(tmp_path: Path) -> None:
    folder = _sanitized(tmp_path)
    for (name, *arguments), status in PROGRAMS.items():
        program = tmp_path / name
        if not program.exists():
            compiled(f"{name}.cpp", program, "-fsanitize=address")
        for strictness in STRICTNESSES.get(name, ["", "strict"]):
            variables = {"LD_LIBRARY_PATH": str(folder), "DMLEMU_STRICTNESS": strictness}
            _clean(run_alone(program, *arguments, ASAN_OPTIONS=NO_LEAKS, timeout=300, **variables), status)
    fuzzer = fuzz_capi.build(tmp_path, "-fsanitize=address")
    for seed, strictness in enumerate(fuzz_capi.LEVELS):
        variables = {"LD_LIBRARY_PATH": str(folder), "DMLEMU_STRICTNESS": strictness}
        done = run_alone(fuzzer, str(seed), "2", "600", ASAN_OPTIONS=NO_LEAKS, timeout=300, **variables)
        _clean(done, 0)


# --- valgrind ---


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize("arguments", [("identity",), ("threads", "2", "1", "100")])
def test_valgrind_finds_no_bad_access(built: Built, arguments: tuple[str, ...]) -> None:
    name, *rest = arguments
    valgrind = [
        "valgrind",
        "-q",
        "--error-exitcode=9",
        f"--suppressions={capi('--valgrind-suppressions')[0]}",
    ]
    done = run_alone(*valgrind, built(name), *rest, timeout=280)
    assert done.returncode == 0, done.stderr[-6000:]
