"""Two updates of one element: which remains is undefined.  Equal ones, as of element 4, are not reported."""

import numpy as np

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "MEM_SCATTER_RACE"


def run(stage: Stage, fixed: bool) -> None:
    scores, updates = tensor([6]), tensor([5])
    places = tensor([5], data_type=dml.TensorDataType.UINT32)
    put = stage.compile(
        dml.ScatterElementsOperatorDesc(
            input_tensor=scores,
            indices_tensor=places,
            updates_tensor=updates,
            output_tensor=scores,
            axis=0,
        ),
        "put",
    )
    stage.initialize(put)
    indices = np.array([3, 4, 5 if fixed else 3, 0, 4], np.uint32)
    chosen = stage.upload("places", indices)
    new = stage.upload("new", np.array([10, 20, 30, 40, 20], np.float32))
    stage.dispatch(
        put, [stage.filled("scores", 24), chosen, new], [stage.buffer("result")]
    )
    stage.run()
