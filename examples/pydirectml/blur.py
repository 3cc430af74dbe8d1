"""A convolution by PyDirectML; docs/guide/run-a-pydirectml-program.md runs it."""

import directml as dml
import numpy as np

device = dml.Device()
graph = dml.Graph(device)
image = graph.input([1, 1, 4, 4], name="image")
kernel = graph.constant(np.full((1, 1, 3, 3), 0.5, np.float32))
blurred = dml.convolution(image, kernel, start_padding=[1, 1], end_padding=[1, 1])
operator = graph.compile([dml.activation_relu(blurred - 20.0)])

(result,) = operator({"image": np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)})
print(result[0, 0])
