"""Two rows in one buffer; the dispatch binds the first row where it should bind the second one."""

import numpy as np

import dmlemu
from dmlemu import dml

FLOAT32 = dml.TensorDataType.FLOAT32
row = dml.BufferTensorDesc(FLOAT32, [4])
ROW = 256  # bytes from row to row

with dmlemu.Session() as session:
    rows = np.zeros(128, np.float32)
    rows[:4], rows[64:68] = [1, 2, 3, 4], [5, 6, 7, 8]
    table = session.upload("table", rows)
    result = session.buffer("second row, negated", 16)
    negate = session.compile(dml.ElementWiseNegateOperatorDesc(input_tensor=row, output_tensor=row), "negate")
    session.initialize(negate)
    session.dispatch(negate, [dml.BufferBinding(table, 0 * ROW, 16)], [result])  # should be 1 * ROW
    print(session.read(result, np.float32))
