"""Indices that choose elements all over a tensor, in more than 1024 pieces."""

import numpy as np

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "MEM_READS_SCATTERED"
COUNT = 3000


def run(stage: Stage, fixed: bool) -> None:
    places = tensor([COUNT], data_type=dml.TensorDataType.UINT32)
    pick = stage.compile(
        dml.GatherElementsOperatorDesc(
            input_tensor=tensor([3 * COUNT]),
            indices_tensor=places,
            output_tensor=tensor([COUNT]),
            axis=0,
        ),
        "pick",
    )
    stage.initialize(pick)
    indices = np.arange(3 * COUNT, dtype=np.uint32)
    if not fixed:
        indices = np.random.default_rng(0).permutation(indices)
    indices = indices[:COUNT]
    stage.dispatch(
        pick,
        [stage.filled("scores", 12 * COUNT), stage.upload("places", indices)],
        [stage.buffer("result", 4 * COUNT)],
    )
    stage.run()
