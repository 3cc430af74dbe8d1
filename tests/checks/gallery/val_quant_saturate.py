"""A scale that is too small: most values are cut off."""

import numpy as np

from dmlemu import dml
from dmlemu.checks.values import Values
from dmlemu.testing.stage import Stage, tensor

CHECK = "VAL_QUANT_SATURATE"


def run(stage: Stage, fixed: bool) -> None:
    stage.device.checks.add(Values)
    cast = stage.compile(
        dml.CastOperatorDesc(
            input_tensor=tensor([8]),
            output_tensor=tensor([8], data_type=dml.TensorDataType.UINT8),
        ),
        "quantize",
    )
    stage.initialize(cast)
    values = np.linspace(0, 255 if fixed else 600, 8, dtype=np.float32)
    stage.dispatch(cast, [stage.upload("values", values)], [stage.buffer("codes")])
    stage.run()
