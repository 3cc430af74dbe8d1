"""Compute shaders of C++ programs."""

from __future__ import annotations

import pytest
from toolchain import DMLEMU, HERE, Built, needs_compiler, reported, run

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


@pytest.mark.parametrize("strictness", ["runtime", "debug", "strict"])
def test_arguments_that_cannot_be_are_refused(built: Built, strictness: str) -> None:
    done = run(*DMLEMU, "exec", "--strictness", strictness, built("shaders"), SAXPY, "refuse")
    assert done.stdout == "done\n", done.stderr
    assert "a bug of dmlemu" not in done.stderr
