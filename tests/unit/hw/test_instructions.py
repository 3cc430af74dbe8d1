"""Which instructions the tuned kernels use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dmlemu_hw import kernels

PROGRAM = "from dmlemu_hw import kernels; print(kernels.instructions())"


def run(isa: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DMLEMU_ISA": isa}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("isa", kernels.instruction_sets())
def test_each_can_be_forced_if_the_cpu_supports_it(isa: str) -> None:
    done = run(isa)
    if kernels.instruction_sets()[isa]:
        assert (done.returncode, done.stdout.strip()) == (0, isa)
        return
    assert done.returncode == 1
    assert f"DMLEMU_ISA is {isa!r}, which this CPU does not support; expected one of generic" in done.stderr


def test_the_best_one_is_chosen() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DMLEMU_ISA"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    supported = [name for name, is_supported in kernels.instruction_sets().items() if is_supported]
    assert done.stdout.strip() == [name for name in supported if name != "amx_model"][-1]


def test_an_unknown_one_is_refused() -> None:
    refused = run("sse9")
    assert refused.returncode == 1
    names = ", ".join(kernels.instruction_sets())
    assert f"DMLEMU_ISA is 'sse9'; expected one of {names}." in refused.stderr
