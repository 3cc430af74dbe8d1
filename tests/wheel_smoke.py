"""Run by `make check-wheel` in an environment that holds only the wheel and what it depends on."""

import numpy as np

import dmlemu
from dmlemu import dml
from dmlemu.dml.enums import TensorDataType

sizes = [2, 3]
desc = dml.ElementWiseBitCountOperatorDesc(
    input_tensor=dml.BufferTensorDesc(TensorDataType.UINT32, sizes),
    output_tensor=dml.BufferTensorDesc(TensorDataType.UINT8, sizes),
)
values = np.array([[0, 1, 3], [7, 15, 0xFFFFFFFF]], np.uint32)
result = dmlemu.evaluate(desc, input_tensor=values)["output_tensor"]
assert result.tolist() == [[0, 1, 2], [3, 4, 32]], result
print(f"wheel works: {dmlemu.__file__}")
