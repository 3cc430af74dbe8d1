"""The second dispatch reads what the first one writes; there is no UAV barrier between them."""

import numpy as np

import dmlemu
from dmlemu import dml

FLOAT32 = dml.TensorDataType.FLOAT32
vector = dml.BufferTensorDesc(FLOAT32, [4])
double = dml.ElementWiseAddOperatorDesc(a_tensor=vector, b_tensor=vector, output_tensor=vector)

with dmlemu.Session() as session:
    source = session.upload("source", np.float32([1, 2, 3, 4]))
    middle, result = session.buffer("middle", 16), session.buffer("result", 16)
    first, second = session.compile(double, "first"), session.compile(double, "second")
    session.initialize(first, second)
    session.dispatch(first, [source, source], [middle])
    session.dispatch(second, [middle, middle], [result])
    print(session.read(result, np.float32))
