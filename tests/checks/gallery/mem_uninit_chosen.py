"""Of a table that is uploaded in half, elements of the other half are chosen, too."""

import numpy as np

from dmlemu import d3d12, dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "MEM_UNINIT_READ"


def run(stage: Stage, fixed: bool) -> None:
    places = tensor([4], data_type=dml.TensorDataType.UINT32)
    pick = stage.compile(
        dml.GatherElementsOperatorDesc(
            input_tensor=tensor([8]),
            indices_tensor=places,
            output_tensor=tensor([4]),
            axis=0,
        ),
        "pick",
    )
    stage.initialize(pick)
    table = stage.buffer("table", 32, heap_flags=d3d12.HeapFlags.CREATE_NOT_ZEROED)
    stage.list.copy_buffer_region(table, 0, stage.filled("half", 16), 0, 16)
    stage.run()
    indices = np.array([0, 3, 2, 1] if fixed else [0, 3, 6, 1], np.uint32)
    stage.dispatch(
        pick, [table, stage.upload("places", indices)], [stage.buffer("result")]
    )
    stage.run()
