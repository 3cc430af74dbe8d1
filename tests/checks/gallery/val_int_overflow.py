"""A sum of bytes above 127."""

import numpy as np

from dmlemu import dml
from dmlemu.checks.values import Values
from dmlemu.testing.stage import Stage, tensor

CHECK = "VAL_INT_OVERFLOW"


def run(stage: Stage, fixed: bool) -> None:
    stage.device.checks.add(Values)
    bytes_ = tensor([4], data_type=dml.TensorDataType.INT8)
    add = stage.compile(
        dml.ElementWiseAddOperatorDesc(
            a_tensor=bytes_, b_tensor=bytes_, output_tensor=bytes_
        ),
        "add",
    )
    stage.initialize(add)
    values = np.array([1, 60, 50 if fixed else 100, -3], np.int8)
    data = stage.upload("values", values)
    stage.dispatch(add, [data, data], [stage.buffer("sums")])
    stage.run()
