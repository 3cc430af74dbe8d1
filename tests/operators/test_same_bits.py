"""Results are the same bits whatever the instructions, the threads and the kernels: NaNs, too.

``same_bits.py`` runs in processes of its own, because instructions are chosen when the kernels are loaded.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from dmlemu_hw import kernels

PROGRAM = Path(__file__).parent / "same_bits.py"
CASES = 40  # so many of them are run, evenly spread; all by make test-long
ALL = 10**6
# They take two to four minutes, or more beside other programs.
OF_ALL = pytest.param(ALL, marks=[pytest.mark.long, pytest.mark.timeout(1800)])

# A CPU of 2008: SSE4.2, and no AVX.
OLD_CPU = ["qemu-x86_64", "-cpu", "Nehalem"]
VZEROUPPER = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("c5f877c3"))  # vzeroupper, ret
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""

needs_qemu = pytest.mark.skipif(
    shutil.which("qemu-x86_64") is None or platform.machine() != "x86_64",
    reason="needs an x86-64 Linux with qemu-x86_64 (the Debian package qemu-user; .ci/run installs it)",
)


@cache
def digests(isa: str, threads: int, *options: str, cpu: tuple[str, ...] = ()) -> dict[str, str]:
    """What the program prints: a digest of the results for each case."""
    environment = {**os.environ, "DMLEMU_ISA": isa, "OMP_NUM_THREADS": str(threads)}
    if not isa:
        del environment["DMLEMU_ISA"]  # the best of the CPU
    if cpu:
        environment["OPENBLAS_CORETYPE"] = "Nehalem"  # NumPy's BLAS takes the real CPU for the emulated one
    command = [*cpu, sys.executable, str(PROGRAM), *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t") for line in done.stdout.splitlines())


def assert_same(found: dict[str, str], expected: dict[str, str]) -> None:
    assert found.keys() == expected.keys() and len(found) > 10
    assert [name for name in expected if found[name] != expected[name]] == []


def of_this_cpu() -> list[str]:
    return [name for name, is_supported in kernels.instruction_sets().items() if is_supported]


@pytest.mark.parametrize("cases", [CASES, OF_ALL])
def test_instructions_and_threads_do_not_matter(cases: int) -> None:
    expected = digests("generic", 1, f"--cases={cases}")

    for isa in of_this_cpu():
        assert_same(digests(isa, 3, f"--cases={cases}"), expected)


@pytest.mark.parametrize("cases", [CASES, OF_ALL])
def test_plain_kernels_give_the_same(cases: int) -> None:
    """The tuned ones of all sets give the same by the test above; here are the first and the best set."""
    for isa in {*of_this_cpu()[:1], *of_this_cpu()[-1:]} if cases == CASES else of_this_cpu():
        assert_same(digests(isa, 1, f"--cases={cases}", "--plain"), digests("generic", 1, f"--cases={cases}"))


@needs_qemu
def test_the_old_cpu_has_no_avx() -> None:
    """What the next test relies on."""
    done = subprocess.run([*OLD_CPU, sys.executable, "-c", VZEROUPPER], capture_output=True, text=True)

    assert done.returncode in (-signal.SIGILL, 128 + signal.SIGILL), done.stderr


@needs_qemu
@pytest.mark.parametrize("cases", [CASES, OF_ALL])
def test_a_cpu_without_avx_runs_every_kernel(cases: int) -> None:
    """An instruction that it does not have would end the program."""
    found = digests("", 1, f"--cases={cases}", cpu=tuple(OLD_CPU))

    assert_same(found, digests("generic", 1, f"--cases={cases}"))
