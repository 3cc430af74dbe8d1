"""The rows of an upload buffer of FLOAT16 have 24 numbers each, and the program fills 16 of them."""

import numpy as np

from dmlemu import d3d12, dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "MEM_UNINIT_READ"
ROWS, ROW = 2, 24


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([ROWS, ROW], data_type=dml.TensorDataType.FLOAT16)
    operator = stage.compile(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout),
        "act",
    )
    stage.initialize(operator)
    upload = stage.device.create_committed_resource(
        d3d12.HeapProperties(d3d12.HeapType.UPLOAD),
        d3d12.HeapFlags.CREATE_NOT_ZEROED,
        d3d12.ResourceDesc.buffer(2 * ROWS * ROW),
        d3d12.ResourceStates.GENERIC_READ,
    )
    upload.set_name("upload")
    weights = stage.buffer("weights", 2 * ROWS * ROW)
    with upload.map(0, d3d12.Range(0, 0)) as memory:
        rows = memory.view(np.float16).reshape(ROWS, ROW)
        if fixed:
            rows[:] = 0.5
        rows[:, :16] = 1.5
    stage.list.copy_resource(weights, upload)
    after = d3d12.ResourceStates.UNORDERED_ACCESS
    stage.list.resource_barrier(
        [
            d3d12.ResourceBarrier.transition(
                weights, d3d12.ResourceStates.COPY_DEST, after
            )
        ]
    )
    stage.dispatch(operator, [weights], [stage.buffer("result", 2 * ROWS * ROW)])
    stage.run()
