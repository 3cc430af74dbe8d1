"""Which instructions the tuned kernels use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dmlemu_hw import kernels

NAMES = ["generic", "avx2", "avx512"]
PROGRAM = "from dmlemu_hw import kernels; print(kernels.instructions())"


def run(isa: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DMLEMU_ISA": isa}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("isa", NAMES)
def test_a_lower_one_can_be_forced(isa: str) -> None:
    best = run("avx512").stdout.strip()
    assert run(isa).stdout.strip() == min(isa, best, key=NAMES.index)
    assert kernels.instructions() in NAMES


def test_an_unknown_one_is_refused() -> None:
    refused = run("sse9")
    assert refused.returncode == 1
    assert "DMLEMU_ISA is 'sse9'; expected one of generic, avx2, avx512." in refused.stderr
