"""Indices made for a longer tensor: two of them choose elements that are not there."""

import numpy as np

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "MEM_INDEX_VALUE"


def run(stage: Stage, fixed: bool) -> None:
    scores, places = tensor([2, 4]), tensor([2, 3], data_type=dml.TensorDataType.INT32)
    pick = stage.compile(
        dml.GatherElementsOperatorDesc(
            input_tensor=scores,
            indices_tensor=places,
            output_tensor=tensor([2, 3]),
            axis=1,
        ),
        "pick",
    )
    stage.initialize(pick)
    indices = np.array([[0, 3, -4], [5, 1, -6]], np.int32)
    if fixed:
        indices %= 4
    chosen = stage.upload("places", indices)
    stage.dispatch(pick, [stage.filled("scores", 32), chosen], [stage.buffer("result")])
    stage.run()
