"""Calls of the graph's functions that make a given desc."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

from dmlemu.dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from dmlemu.dml.tensor_desc import BufferTensorDesc
from dmlemu.graph import FUNCTIONS, Expression, Graph
from dmlemu.graph.inference import OPEN, Open


def built(graph: Graph, desc: OperatorDesc, *, said: bool = True) -> Any:
    """What the function of the operator returns; ``said``: with what may be said of the outputs."""
    open_ = OPEN.get(desc.TYPE.name, Open())
    arguments: dict[str, Any] = {}
    for item in operator_fields(type(desc)):
        value = getattr(desc, item.name)
        if item.kind is FieldKind.INPUT_TENSOR:
            arguments[item.name] = _inputs(graph, value)
        elif item.kind is not FieldKind.OUTPUT_TENSOR:
            arguments[item.name] = value
        elif item.optional:
            arguments[item.name] = value is not None
    outputs = dict(_output_fields(desc))
    tensor = outputs[open_.output or next(iter(outputs))]
    arguments |= {name: _of_output(desc, name, tensor) for name in open_.more}
    if tensor is not None and open_.sizes and (said or open_.sizes == "required"):
        arguments["output_sizes"] = tensor.sizes
    if tensor is not None and open_.data_type and (said or open_.data_type == "required"):
        arguments["output_data_type"] = tensor.data_type
    function = FUNCTIONS[desc.TYPE.name.lower()]
    if "graph" in signature(function).parameters:
        arguments["graph"] = graph
    return function(**arguments)


def _inputs(graph: Graph, value: Any) -> Any:
    if isinstance(value, tuple):
        return [graph.input(each) for each in value]
    return None if value is None else graph.input(value)


def _output_fields(desc: OperatorDesc) -> Iterator[tuple[str, Any]]:
    for item in operator_fields(type(desc)):
        if item.kind is FieldKind.OUTPUT_TENSOR:
            yield item.name, getattr(desc, item.name)


def _of_output(desc: Any, name: str, tensor: Any) -> Any:
    """A parameter that the desc does not have, from its outputs."""
    if name == "output_axis_sizes":
        return [each.sizes[desc.axis] for each in tensor]
    if name == "output_length":
        return tensor.sizes[desc.axis]
    return tensor.sizes[{"output_height": -2, "output_width": -1}[name]]


def desc_of(result: Any) -> OperatorDesc:
    """The desc of the operator that made it."""
    while not isinstance(result, Expression):
        result = next(each for each in result if each is not None)
    made: OperatorDesc = result.node.operator.desc
    return made


def outputs(desc: OperatorDesc) -> dict[str, list[BufferTensorDesc]]:
    """The tensors of each output field."""
    found = {name: value if isinstance(value, tuple) else (value,) for name, value in _output_fields(desc)}
    return {name: [each for each in value if each is not None] for name, value in found.items()}


def essence(tensor: BufferTensorDesc) -> tuple[Any, ...]:
    """Data type and sizes, but for leading dimensions of 1, of which some operators may have any number."""
    sizes = list(tensor.sizes)
    while sizes[:1] == [1]:
        del sizes[0]
    return tensor.data_type, *sizes
