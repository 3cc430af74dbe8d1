"""Two dispatches of one list use the same descriptors: both run with those that were written last."""

import numpy as np

import dmlemu
from dmlemu import d3d12, dml

FLOAT32 = dml.TensorDataType.FLOAT32
vector = dml.BufferTensorDesc(FLOAT32, [4])
device = d3d12.create_device(d3d12.Adapter(), strictness=dmlemu.Strictness.RUNTIME)

with dmlemu.Session(dml.create_device(device)) as session:
    source = session.upload("source", np.float32([1, 2, 3, 4]))
    first, second = session.buffer("first", 16), session.buffer("second", 16)
    negate = session.compile(
        dml.ElementWiseNegateOperatorDesc(input_tensor=vector, output_tensor=vector), "negate"
    )
    session.initialize(negate)
    for target in (first, second):
        table = session.bind(negate, [source], [target], first=0)
        session.recorder.record_dispatch(session.list, negate, table)
        session.barrier()
    session.run()
    print(session.read(first, np.float32), session.read(second, np.float32))
