"""An initializer reads an upload buffer, which is filled with the weights of the next layer too early."""

import numpy as np

from dmlemu import d3d12, dml
from dmlemu.testing.stage import OWNED, Stage, product

CHECK = "MAP_RACE"


def run(stage: Stage, fixed: bool) -> None:
    dense = stage.compile(product(OWNED), "dense")
    upload = stage.host_buffer("upload", 64)
    persistent = stage.buffer(
        "persistent", dense.get_binding_properties().persistent_resource_size
    )
    memory = upload.map(0, d3d12.Range(0, 0)).view(np.float32)
    memory[:] = 1.0
    initializer = stage.dml.create_operator_initializer([dense])
    table = stage.table(initializer)
    table.bind_inputs([dml.BufferArrayBinding([None, dml.BufferBinding(upload), None])])
    table.bind_outputs([dml.BufferBinding(persistent)])
    stage.recorder.record_dispatch(stage.list, initializer, table)
    stage.submit()
    if fixed:
        stage.fence.wait(stage.fence_value)
    memory[12:] = 2.0
    stage.wait()
