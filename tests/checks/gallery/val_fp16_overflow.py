"""A sum of halves above 65504."""

import numpy as np

from dmlemu import dml
from dmlemu.checks.values import Values
from dmlemu.testing.stage import Stage, tensor

CHECK = "VAL_FP16_OVERFLOW"


def run(stage: Stage, fixed: bool) -> None:
    stage.device.checks.add(Values)
    half = tensor([4], data_type=dml.TensorDataType.FLOAT16)
    add = stage.compile(
        dml.ElementWiseAddOperatorDesc(
            a_tensor=half, b_tensor=half, output_tensor=half
        ),
        "add",
    )
    stage.initialize(add)
    values = np.array([1, 2, 3, 30000 if fixed else 40000], np.float16)
    data = stage.upload("values", values)
    stage.dispatch(add, [data, data], [stage.buffer("sums")])
    stage.run()
