"""The logarithm of a sum that is negative."""

import numpy as np

from dmlemu import dml
from dmlemu.checks.values import Values
from dmlemu.testing.stage import Stage, tensor

CHECK = "VAL_NAN_BORN"


def run(stage: Stage, fixed: bool) -> None:
    stage.device.checks.add(Values)
    log_sum = stage.compile(
        dml.ReduceOperatorDesc(
            function=dml.ReduceFunction.LOG_SUM,
            input_tensor=tensor([2, 4]),
            output_tensor=tensor([2, 1]),
            axes=[1],
        ),
        "log_sum",
    )
    stage.initialize(log_sum)
    values = np.array([[1, 2, 3, 4], [1, 2, -9, 4]], np.float32)
    if fixed:
        values = np.abs(values)
    stage.dispatch(log_sum, [stage.upload("values", values)], [stage.buffer("result")])
    stage.run()
