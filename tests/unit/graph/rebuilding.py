"""Calls of the graph's functions that make a given desc."""

from __future__ import annotations

from typing import Any

from dmlemu.dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from dmlemu.dml.tensor_desc import BufferTensorDesc
from dmlemu.graph import FUNCTIONS, Expression, Graph
from dmlemu.graph.inference import OPEN, Open


def built(graph: Graph, desc: OperatorDesc, *, said: bool = True) -> Any:
    """What the function of the operator returns; ``said``: with what may be said of the outputs."""
    open_ = OPEN.get(desc.TYPE.name, Open())
    arguments: dict[str, Any] = {}
    output = ""
    for item in operator_fields(type(desc)):
        value = getattr(desc, item.name)
        if item.kind is FieldKind.INPUT_TENSOR:
            arguments[item.name] = expressions(graph, value)
        elif item.kind is not FieldKind.OUTPUT_TENSOR:
            arguments[item.name] = value
        else:
            output = output or item.name
            if item.optional:
                arguments[item.name] = value is not None
    tensor = getattr(desc, open_.output or output)
    arguments |= {name: of_output(desc, name, tensor) for name in open_.more}
    if tensor is not None and (said or open_.sizes == "required") and open_.sizes:
        arguments["output_sizes"] = tensor.sizes
    if tensor is not None and (said or open_.data_type == "required") and open_.data_type:
        arguments["output_data_type"] = tensor.data_type
    function = FUNCTIONS[desc.TYPE.name.lower()]
    if not any(isinstance(each, (Expression, list)) for each in arguments.values()):
        arguments["graph"] = graph
    elif "graph" in __import__("inspect").signature(function).parameters:
        arguments["graph"] = graph
    return function(**arguments)


def expressions(graph: Graph, value: Any) -> Any:
    if isinstance(value, tuple):
        return [graph.input(each) for each in value]
    return None if value is None else graph.input(value)


def of_output(desc: Any, name: str, tensor: Any) -> Any:
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


def packed(tensor: BufferTensorDesc) -> BufferTensorDesc:
    return BufferTensorDesc(tensor.data_type, tensor.sizes)
