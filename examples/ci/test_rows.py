"""The sum of each row of an image whose rows lie further apart than they are long."""

import numpy as np

import dmlemu
from dmlemu import d3d12, dml

HEIGHT, WIDTH, PITCH = 3, 5, 8  # in floats
States = d3d12.ResourceStates


def sums_of_rows(image):
    rows = dml.BufferTensorDesc(
        dml.TensorDataType.FLOAT32,
        [1, 1, HEIGHT, WIDTH],
        strides=[HEIGHT * PITCH, HEIGHT * PITCH, PITCH, 1],
    )
    sums = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 1, HEIGHT, 1])
    desc = dml.ReduceOperatorDesc(
        function=dml.ReduceFunction.SUM,
        input_tensor=rows,
        output_tensor=sums,
        axes=[3],
    )
    with dmlemu.Session() as session:
        add = session.compile(desc, "sum of rows")
        session.initialize(add)
        packed = session.upload_buffer("packed", image)
        padded = session.buffer("image", HEIGHT * PITCH * 4)
        size = WIDTH * 4
        for row in range(HEIGHT):
            place = row * PITCH * 4
            session.list.copy_buffer_region(padded, place, packed, row * size, size)
        session.transition(States.COPY_DEST, States.UNORDERED_ACCESS, padded)
        output = session.buffer("sums", HEIGHT * 4)
        session.dispatch(add, [padded], [output])
        return session.read(output, np.float32, [HEIGHT])


def test_sums():
    image = np.repeat([[1], [2], [3]], WIDTH, axis=1).astype(np.float32)
    assert sums_of_rows(image).tolist() == [5, 10, 15]
