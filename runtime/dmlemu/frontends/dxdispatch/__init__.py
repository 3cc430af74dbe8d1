"""DxDispatch models: JSON files that describe buffers, DirectML operators and commands.

The format and the printed lines are those of DxDispatch, a tool of the DirectML repository:
https://github.com/microsoft/DirectML/tree/master/DxDispatch.
"""

from .errors import ModelError
from .executor import run_model
from .model import Model, read_model
from .options import OnnxInputs, Options, add_onnx_inputs, add_options, onnx_inputs_from, options_from
from .serialized_graph import SerializedGraph, read_graph

__all__ = [
    "Model",
    "ModelError",
    "OnnxInputs",
    "Options",
    "SerializedGraph",
    "add_onnx_inputs",
    "add_options",
    "onnx_inputs_from",
    "options_from",
    "read_graph",
    "read_model",
    "run_model",
]
