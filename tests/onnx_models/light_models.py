"""The architectures that the onnx package ships, with weights that show a mistake.

As shipped, all weights are one number and so are all outputs, whatever an implementation mixes up.  Here they
are random numbers, the same in each run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import onnx.version_converter
from onnx.numpy_helper import from_array, to_array

FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "light"
NAMES = sorted(path.stem for path in FOLDER.glob("light_*.onnx"))


def network(name: str) -> onnx.ModelProto:
    """With random weights instead of ConstantOfShape nodes, scaled so that the numbers keep their size."""
    model = onnx.load(FOLDER / f"{name}.onnx")
    model.ir_version = 8  # from version 4 on, initialisers need not be inputs
    graph, rng = model.graph, np.random.default_rng(0)
    shapes = {each.name: to_array(each) for each in graph.initializer}
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            kept.append(node)
            continue
        sizes = tuple(int(each) for each in shapes[node.input[0]])
        if len(sizes) > 1:
            weights = rng.normal(0, (2 / np.prod(sizes[1:])) ** 0.5, sizes)
        else:
            weights = rng.uniform(0.5, 1.5, sizes)
        graph.initializer.append(from_array(weights.astype(np.float32), node.output[0]))
    if kept[-1].op_type == "Softmax":  # before opset 13 the reference implementation gets it wrong
        graph.output[0].name = kept.pop().input[0]
    del graph.node[:]
    graph.node.extend(kept)
    return model


def quantizable_resnet50() -> onnx.ModelProto:
    """ResNet-50 for ONNX Runtime's quantiser: as it knows no Sum, with Add; with the batch normalisations in
    the convolutions before them."""
    import onnxruntime

    model = onnx.version_converter.convert_version(network("light_resnet50"), 13)
    for node in model.graph.node:
        if node.op_type == "Sum":
            node.op_type = "Add"
    known = {each.name for each in model.graph.initializer}
    for each in [each for each in model.graph.input if each.name in known]:
        model.graph.input.remove(each)  # what may be replaced is no part of another node
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors alone
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(Path(folder) / "model.onnx")
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)
