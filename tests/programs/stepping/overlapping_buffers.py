"""Two placed buffers share bytes of a heap: filling the second one changes the first one."""

import numpy as np

import dmlemu
from dmlemu import d3d12, dml

FLOAT32 = dml.TensorDataType.FLOAT32
vector = dml.BufferTensorDesc(FLOAT32, [4])
SIZE = 65536 + 16

with dmlemu.Session() as session:
    heap = session.keep(
        session.device.create_heap(
            d3d12.HeapDesc(1 << 18, d3d12.HeapProperties(d3d12.HeapType.DEFAULT), 0, d3d12.HeapFlags.NONE)
        )
    )

    def place(name: str, offset: int) -> d3d12.Resource:
        desc = d3d12.ResourceDesc.buffer(SIZE, d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS)
        buffer = session.keep(
            session.device.create_placed_resource(heap, offset, desc, d3d12.ResourceStates.COMMON)
        )
        buffer.set_name(name)
        return buffer

    weights = place("weights", 0)
    output = place("output", 65536)  # weights ends 16 bytes further
    session.list.resource_barrier([d3d12.ResourceBarrier.aliasing(None, weights)])
    session.write(weights, np.float32([1, 2, 3, 4]), offset=65536)
    session.list.resource_barrier([d3d12.ResourceBarrier.aliasing(None, output)])
    source = session.upload("source", np.float32([10, 20, 30, 40]))
    negate = session.compile(
        dml.ElementWiseNegateOperatorDesc(input_tensor=vector, output_tensor=vector), "negate"
    )
    session.initialize(negate)
    session.dispatch(negate, [source], [dml.BufferBinding(output, 0, 16)])
    session.run()
    print(session.read(weights, np.float32, [4], offset=65536))
