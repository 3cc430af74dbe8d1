"""A script as one writes it with pydirectml: a small network on an image, beside the same in NumPy."""

import sys

import numpy as np
import pydirectml as dml

random = np.random.default_rng(int(sys.argv[1]))
image = random.random((1, 1, 8, 8))  # of doubles: a binding makes floats of them
weights, bias = random.random((4, 1, 3, 3)) - 0.5, random.random((1, 4, 1, 1))
offsets, matrix = random.random((1, 4, 1, 1)), random.random((1, 1, 64, 10)) - 0.5

device = dml.Device(True, False)
builder = dml.GraphBuilder(device)
bindings = []


def input_tensor(desc, data):
    tensor = dml.input_tensor(builder, len(bindings), desc)
    bindings.append(dml.Binding(tensor, data))
    return tensor


owned, FLOAT = dml.TensorFlags.OWNED_BY_DML, dml.TensorDataType.FLOAT32
x = input_tensor(dml.TensorDesc(FLOAT, [1, 1, 8, 8]), image)
w = input_tensor(dml.TensorDesc(FLOAT, owned, [4, 1, 3, 3]), weights)
b = input_tensor(dml.TensorDesc(FLOAT, owned, [1, 4, 1, 1]), bias)
convolved = dml.convolution(x, w, b, start_padding=[1, 1], end_padding=[1, 1])
each = input_tensor(dml.TensorDesc(FLOAT, [1, 4, 8, 8], [4, 1, 0, 0]), offsets)  # repeated along the image
pooled = dml.max_pooling(dml.activation_relu(dml.add(convolved, each)), window_sizes=[2, 2], strides=[2, 2])
row = dml.reinterpret(pooled.values, FLOAT, [1, 1, 1, 64], [64, 64, 64, 1])
m = input_tensor(dml.TensorDesc(FLOAT, owned, [1, 1, 64, 10]), matrix)
result = dml.activation_soft_max(dml.gemm(row, m) * 2.0)

model = builder.build(dml.ExecutionFlags.NONE, [result])
found = np.array(device.compute(model, bindings, [result])[0], np.float32)

around = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3), (2, 3))
y = np.maximum(np.einsum("ncyxij,fcij->nfyx", windows, weights) + bias + offsets, 0)
powers = np.exp(2 * (y.reshape(1, 4, 4, 2, 4, 2).max((3, 5)).reshape(1, 64) @ matrix[0, 0]))
np.testing.assert_allclose(found[0, 0], powers / powers.sum(), rtol=1e-4)
print(f"{device}: {result.get_output_desc()}, the digit is {found.argmax()}")
