"""Rows past OutputCount are used: NONZERO_COORDINATES leaves them undefined."""

import numpy as np

from dmlemu import d3d12, dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "MEM_UNINIT_READ"


def run(stage: Stage, fixed: bool) -> None:
    u32 = dml.TensorDataType.UINT32
    values, count, rows = (
        tensor([4]),
        tensor([1], data_type=u32),
        tensor([4, 1], data_type=u32),
    )
    find = stage.compile(
        dml.NonzeroCoordinatesOperatorDesc(
            input_tensor=values,
            output_count_tensor=count,
            output_coordinates_tensor=rows,
        ),
        "find",
    )
    used = tensor([2 if fixed else 4, 1], data_type=u32)
    use = stage.compile(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=used, output_tensor=used),
        "use",
    )
    stage.initialize(find, use)
    upload, source = stage.host_buffer("values, upload", 16), stage.buffer("values", 16)
    with upload.map(0, d3d12.Range(0, 0)) as memory:
        memory.view(np.float32)[:] = [0, 7, 0, 7]
    stage.list.copy_buffer_region(source, 0, upload, 0, 16)
    stage.run()
    total, places, result = (
        stage.buffer("count"),
        stage.buffer("places"),
        stage.buffer("result"),
    )
    stage.dispatch(find, [source], [total, places])
    stage.barrier(places)
    stage.dispatch(use, [places], [result])
    stage.run()
