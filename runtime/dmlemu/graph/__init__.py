"""Graphs of operators, written as expressions: what DirectMLX is for C++ programs.

graph = Graph(device)
x = graph.input([1, 3, 32, 32], name="x")
y = relu(convolution(x, graph.constant(weights)) + 1)
run = graph.compile(y)
run(x=image)
"""

from __future__ import annotations

from typing import Any

from .builder import Graph
from .compiled import CompiledGraph
from .expression import Expression, broadcast, reinterpret, transpose
from .functions import FUNCTIONS as FUNCTIONS  # __all__ has it, among the functions
from .functions import __all__ as _function_names
from .policies import (
    Policy,
    TensorProperties,
    interleaved_bytes,
    interleaved_channel,
    packed,
    random_layouts,
)

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


def __getattr__(name: str) -> Any:
    """The function of an operator, on first access."""
    if name not in FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = FUNCTIONS[name]
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *FUNCTIONS})
