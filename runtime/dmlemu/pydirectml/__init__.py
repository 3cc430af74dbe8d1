"""PyDirectML: the module ``pydirectml`` of microsoft/DirectML's folder ``Python``, on the emulated device.

``python -m dmlemu.pydirectml script.py`` runs a script that imports ``pydirectml``.  Names, parameters and
their defaults are those of that module; what it does not have, such as broadcasting, this one has neither.
Data of bindings are FLOAT32, as there.  A result has the type of its tensor; there it is always read as
FLOAT32.
"""

from __future__ import annotations

from ..dml.enums import (
    ConvolutionDirection,
    ConvolutionMode,
    ExecutionFlags,
    InterpolationMode,
    MatrixTransform,
    OperatorType,
    PaddingMode,
    RecurrentNetworkDirection,
    TensorDataType,
    TensorFlags,
)
from ..dml.structs import Size2D
from .functions import (
    activation_identity,
    activation_linear,
    activation_relu,
    activation_sigmoid,
    activation_soft_max,
    activation_tanh,
    add,
    average_pooling,
    batch_normalization,
    convolution,
    divide,
    gather,
    gemm,
    gru,
    input_tensor,
    join,
    local_response_normalization,
    max_pooling,
    mean_variance_normalization,
    multiply,
    padding,
    reinterpret,
    slice,
    subtract,
    up_sample_2d,
    value_scale_2d,
)
from .model import Binding, Device, GraphBuilder, Model, TensorData
from .tensors import (
    Expression,
    FusedActivation,
    GRUOutputs,
    MaxPoolingOutputs,
    OutputOptions,
    TensorDesc,
    TensorPolicy,
)

__all__ = [
    "Binding",
    "ConvolutionDirection",
    "ConvolutionMode",
    "Device",
    "ExecutionFlags",
    "Expression",
    "FusedActivation",
    "GRUOutputs",
    "GraphBuilder",
    "InterpolationMode",
    "MatrixTransform",
    "MaxPoolingOutputs",
    "Model",
    "OperatorType",
    "OutputOptions",
    "PaddingMode",
    "RecurrentNetworkDirection",
    "Size2D",
    "TensorData",
    "TensorDataType",
    "TensorDesc",
    "TensorFlags",
    "TensorPolicy",
    "activation_identity",
    "activation_linear",
    "activation_relu",
    "activation_sigmoid",
    "activation_soft_max",
    "activation_tanh",
    "add",
    "average_pooling",
    "batch_normalization",
    "convolution",
    "divide",
    "gather",
    "gemm",
    "gru",
    "input_tensor",
    "join",
    "local_response_normalization",
    "max_pooling",
    "mean_variance_normalization",
    "multiply",
    "padding",
    "reinterpret",
    "slice",
    "subtract",
    "up_sample_2d",
    "value_scale_2d",
]

# The members of most enums are names of the module, too; of namesakes the last one is.
for _enum in (
    TensorDataType,
    TensorFlags,
    MatrixTransform,
    RecurrentNetworkDirection,
    ConvolutionMode,
    ConvolutionDirection,
    InterpolationMode,
    PaddingMode,
    ExecutionFlags,
    OperatorType,
):
    globals().update(_enum.__members__)
