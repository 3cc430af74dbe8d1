"""A product that FLOAT32 cannot hold."""

import numpy as np

from dmlemu import dml
from dmlemu.checks.values import Values
from dmlemu.testing.stage import Stage, tensor

CHECK = "VAL_INF_BORN"


def run(stage: Stage, fixed: bool) -> None:
    stage.device.checks.add(Values)
    layout = tensor([4])
    desc = dml.ActivationLinearOperatorDesc(
        input_tensor=layout, output_tensor=layout, alpha=1e30, beta=0.0
    )
    scale = stage.compile(desc, "scale")
    stage.initialize(scale)
    values = np.array([1, 2, 3e8 if fixed else 3e9, 4], np.float32)
    stage.dispatch(scale, [stage.upload("values", values)], [stage.buffer("result")])
    stage.run()
