"""An NHWC image is read as NCHW: the strides of the input are packed ones."""

import numpy as np

import dmlemu
from dmlemu import dml

FLOAT32 = dml.TensorDataType.FLOAT32
pixels = np.array([[[1, 100], [2, 200]], [[3, 300], [4, 400]]], np.float32)  # height, width, channels
image = dml.BufferTensorDesc(FLOAT32, [1, 2, 2, 2])  # should be strides=[8, 1, 4, 2]
planes = dml.BufferTensorDesc(FLOAT32, [1, 2, 2, 2])

with dmlemu.Session() as session:
    source = session.upload("image", pixels)
    target = session.buffer("planes", 32)
    copy = session.compile(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=image, output_tensor=planes), "to planes"
    )
    session.initialize(copy)
    session.dispatch(copy, [source], [target])
    print(session.read(target, np.float32, [2, 2, 2]))
