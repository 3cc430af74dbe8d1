"""Graphs of operators, written as expressions: what DirectMLX is for C++ programs.

graph = Graph(device)
x = graph.input([1, 3, 32, 32], name="x")
y = relu(convolution(x, graph.constant(weights)) + 1)
run = graph.compile(y)
run(x=image)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .builder import Graph
from .compiled import CompiledGraph
from .expression import Expression, broadcast, reinterpret, transpose
from .functions import *  # noqa: F403
from .functions import FUNCTIONS
from .functions import __all__ as _function_names
from .policies import (
    Policy,
    TensorProperties,
    interleaved_bytes,
    interleaved_channel,
    packed,
    random_layouts,
)

globals().update(FUNCTIONS)

__all__ = [
    "CompiledGraph",
    "Expression",
    "Graph",
    "Policy",
    "TensorProperties",
    "broadcast",
    "interleaved_bytes",
    "interleaved_channel",
    "packed",
    "random_layouts",
    "reinterpret",
    "transpose",
    *_function_names,
]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
