"""Run by `make check-wheel` in an environment that holds only the wheel and what it depends on."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import dmlemu
from dmlemu import dml
from dmlemu.dml.enums import TensorDataType


def printed(*arguments: str) -> str:
    """What the command prints; what it says where it fails goes to our stderr."""
    command = [sys.executable, "-m", "dmlemu", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


sizes = [2, 3]
desc = dml.ElementWiseBitCountOperatorDesc(
    input_tensor=dml.BufferTensorDesc(TensorDataType.UINT32, sizes),
    output_tensor=dml.BufferTensorDesc(TensorDataType.UINT8, sizes),
)
values = np.array([[0, 1, 3], [7, 15, 0xFFFFFFFF]], np.uint32)
result = dmlemu.evaluate(desc, input_tensor=values)["output_tensor"]
assert result.tolist() == [[0, 1, 2], [3, 4, 32]], result
libraries = Path(printed("capi", "--libdir").strip())
for name in ("directml", "dxcore", "dxgi", "d3d12"):
    assert (libraries / f"lib{name}.so").exists(), name
for name in (
    "pkgconfig/dmlemu.pc",
    "cmake/dmlemu/dmlemu-windows.cmake",
    "../include/compat/windows.h",
    "../include/dmlemu.h",
):
    assert (libraries / name).exists(), name
assert (Path(sys.prefix) / "share/man/man1/dmlemu.1").exists()
explained = printed("explain", "HAZARD_RAW")
assert "stage.dispatch(" in explained and "D3D12 ERROR HAZARD_RAW [" in explained, explained
print(f"wheel works: {dmlemu.__file__}")
