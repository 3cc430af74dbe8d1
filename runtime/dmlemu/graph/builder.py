"""Graph: inputs, constants, the layout of what operators make; compiled into one operator."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..d3d12.types.arguments import instance
from ..dml.device import Device
from ..dml.enums import ExecutionFlags, TensorDataType, TensorFlags
from ..dml.lowering.graph_structs import (
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OperatorGraphNodeDesc,
    OutputGraphEdgeDesc,
)
from ..dml.tensor_desc import BufferTensorDesc, array_of
from ..evaluation import pack_tensor
from ..frozen import changed
from . import arithmetic
from .compiled import CompiledGraph, Source
from .expression import ConstantNode, Expression, GraphBase, InputNode, Node, OperatorNode, reachable
from .functions import FUNCTIONS
from .policies import Policy, packed

__all__ = ["Graph"]

Array = np.ndarray[Any, np.dtype[Any]]


class Graph(GraphBase):
    """A graph of operators on a DirectML device, under construction.

    ``policy`` lays out the outputs of the operators that are added from now on, see
    :mod:`dmlemu.graph.policies`.  Operators are created when they are added, so that a mistake is reported at
    its line.
    """

    def __init__(self, device: Device, *, policy: Policy = packed) -> None:
        if not isinstance(device, Device):
            raise TypeError(f"device must be a dmlemu.dml.Device, not {type(device).__name__}.")
        if not callable(policy):
            raise TypeError(f"policy must be a function, not {type(policy).__name__}.")
        self.device = device
        self.policy = policy
        self.operators = {}
        self.numbers: dict[Any, Expression] = {}  # constants that nodes share, by who adds them
        self._names: set[str] = set()
        self._constants = 0

    def __repr__(self) -> str:
        return f"<Graph on {self.device}>"

    def unary(self, name: str, x: Expression) -> Expression:
        return arithmetic.unary(name, x)

    def binary(self, name: str, x: Expression, other: Any, turned: bool) -> Any:
        return arithmetic.binary(name, x, other, turned)

    def evaluate(self, wanted: Sequence[Expression], arrays: Mapping[Any, Any], flags: ExecutionFlags) -> Any:
        with self.compile(wanted, flags=flags) as compiled:
            return compiled.run(arrays)

    def input(
        self,
        desc: BufferTensorDesc | Sequence[int],
        data_type: TensorDataType = TensorDataType.FLOAT32,
        *,
        name: str = "",
    ) -> Expression:
        """An input, whose array is given in each run: a tensor desc, or sizes and a data type, then packed.

        ``name``: the argument of a compiled graph; by default ``input0``, ``input1`` and so on.  An input
        that is OWNED_BY_DML is given in the first call, which initialises the graph.  ValueError: the graph
        has an input of this name.
        """
        if not isinstance(desc, BufferTensorDesc):
            desc = BufferTensorDesc(data_type, desc)
        name = instance(name, str, "name") or self._free_name()
        if name in self._names:
            raise ValueError(f"The graph has an input named {name!r} already.")
        self._names.add(name)
        return Expression(InputNode(self, name, [desc]))

    def _free_name(self) -> str:
        numbers = itertools.count(len(self._names))
        return next(name for name in map("input{}".format, numbers) if name not in self._names)

    def constant(
        self,
        array: Any,
        desc: BufferTensorDesc | None = None,
        *,
        owned_by_dml: bool = True,
        name: str = "",
    ) -> Expression:
        """Values that the graph keeps, of an array; ``desc``: their layout, by default packed.

        ``owned_by_dml``: they are uploaded when the compiled graph is initialised.  Otherwise they lie in a
        buffer that is bound in each run.  TypeError: the array has a type that DirectML does not have.
        """
        array = array_of(array)
        if array.ndim == 0:
            array = array.reshape(1)
        if array.dtype == np.bool_:
            array = array.astype(np.uint8)
        if desc is None:
            desc = BufferTensorDesc.from_array(np.ascontiguousarray(array))
        instance(desc, BufferTensorDesc, "desc")
        desc = changed(desc, flags=TensorFlags.OWNED_BY_DML if owned_by_dml else TensorFlags.NONE)
        if _is_memory_of(desc, array) and _never_changes(array):
            memory = array.reshape(-1).view(np.uint8)
        else:
            memory = pack_tensor(desc, array)
        name = instance(name, str, "name") or f"constant{self._constants}"
        self._constants += 1
        return Expression(ConstantNode(self, name, desc, memory))

    def compile(
        self,
        outputs: Expression | Sequence[Expression],
        *,
        keep: Expression | Sequence[Expression] = (),
        flags: ExecutionFlags = ExecutionFlags.NONE,
        name: str = "",
    ) -> CompiledGraph:
        """Compiles what ``outputs`` need into one operator.

        ``keep``: further tensors whose values are wanted, after those of ``outputs``.

        Raises :class:`dmlemu.Error` as CompileGraph does; nodes are called by name and line.
        """
        single = isinstance(outputs, Expression)
        wanted = [*_listed("outputs", outputs), *_listed("keep", keep)]
        for each in wanted:
            if not isinstance(each, Expression):
                raise TypeError(f"outputs must be expressions, not {type(each).__name__}.")
            if each.graph is not self:
                raise ValueError(f"{each!r} belongs to another graph.")
        if not wanted:
            raise ValueError("A graph has at least one output.")
        made = [_made(each) for each in wanted]
        plan = _Plan(made)
        operator = self.device.compile_graph(plan.desc, flags)
        if name:
            operator.set_name(name)
        return CompiledGraph(operator, plan.sources, made, single=single and len(made) == 1)


def _is_memory_of(desc: BufferTensorDesc, array: Array) -> bool:
    """Whether the bytes of a tensor are those of an array with its elements."""
    return (
        desc.strides is None
        and array.shape == desc.sizes
        and array.nbytes == desc.size_in_bytes
        and desc.data_type is not TensorDataType.UNKNOWN
        and array.dtype == desc.dtype
    )


def _never_changes(array: Array) -> bool:
    """Whether its elements follow each other in a ``bytes`` object."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, bytes) and array.flags.c_contiguous


def _listed(name: str, given: Any) -> Sequence[Any]:
    if isinstance(given, Expression):
        return [given]
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"{name} must be an Expression or a list of them, not {type(given).__name__}.")
    return given


def _made(expression: Expression) -> Expression:
    """What an operator makes; inputs and constants are copied, as an edge starts at a node."""
    if isinstance(expression.node, OperatorNode):
        return expression
    copied: Expression = FUNCTIONS["element_wise_identity"](expression, name=f"copy of {expression.name}")
    return copied


class _Plan:
    """The desc of a graph, and what its inputs are.

    Inputs come first, in the order in which they were made, then constants.  A constant is one input for the
    operators that read it as OWNED_BY_DML, and another one for those that must not.
    """

    def __init__(self, outputs: Sequence[Expression]) -> None:
        nodes = reachable(outputs)
        self.operators = [node for node in nodes if isinstance(node, OperatorNode)]
        self.numbers = {node.serial: number for number, node in enumerate(self.operators)}
        self.sources = self._sources(nodes)
        self._inputs = {(source.node.serial, source.owned): i for i, source in enumerate(self.sources)}
        self.input_edges: list[InputGraphEdgeDesc] = []
        self.intermediate_edges: list[IntermediateGraphEdgeDesc] = []
        for number, node in enumerate(self.operators):
            fields = (field for field in node.operator.program.fields if not field.output)
            for index, (source, field) in enumerate(zip(node.sources, fields, strict=True)):
                if source is not None and field.desc is not None:
                    self._edge(source, field.desc, number, index)
        self.desc = GraphDesc(
            input_count=len(self.sources),
            output_count=len(outputs),
            nodes=[OperatorGraphNodeDesc(node.operator, node.title) for node in self.operators],
            input_edges=self.input_edges,
            intermediate_edges=self.intermediate_edges,
            output_edges=[
                OutputGraphEdgeDesc(*self._port(each), number) for number, each in enumerate(outputs)
            ],
        )

    def _sources(self, nodes: Sequence[Node]) -> list[Source]:
        readers: dict[tuple[int, bool], None] = {}
        for node in self.operators:
            fields = (field for field in node.operator.program.fields if not field.output)
            for source, field in zip(node.sources, fields, strict=True):
                if source is not None and field.desc is not None:
                    readers[source.node.serial, field.desc.owned_by_dml] = None
        found = [
            Source(node, owned)
            for node in nodes
            if isinstance(node, (InputNode, ConstantNode))
            for owned in (False, True)
            if (node.serial, owned) in readers
        ]
        return sorted(found, key=lambda source: isinstance(source.node, ConstantNode))

    def _port(self, expression: Expression) -> tuple[int, int]:
        """The node, and the number of its output's binding."""
        node = expression.node
        assert isinstance(node, OperatorNode)
        return self.numbers[node.serial], node.bindings[expression.output]

    def _edge(self, source: Expression, desc: BufferTensorDesc, number: int, index: int) -> None:
        if isinstance(source.node, OperatorNode):
            edge = IntermediateGraphEdgeDesc(*self._port(source), number, index)
            self.intermediate_edges.append(edge)
        else:
            start = self._inputs[source.node.serial, desc.owned_by_dml]
            self.input_edges.append(InputGraphEdgeDesc(start, number, index))
