"""The data of a graph: nodes, and expressions, which are tensors that nodes make.

A node knows the expressions that it reads; nothing else refers to it.  What a graph computes is therefore
what can be reached from its outputs, and nodes are never removed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..dml.device import Device
from ..dml.enums import ExecutionFlags, TensorDataType, TensorFlags
from ..dml.lowering.dispatchable import Operator
from ..dml.tensor_desc import BufferTensorDesc, element_bits
from ..errors import CallSite, call_site
from ..evaluation import Evaluable
from ..frozen import changed
from .operators import Operators
from .policies import Policy

__all__ = [
    "ConstantNode",
    "Expression",
    "GraphBase",
    "InputNode",
    "Node",
    "OperatorNode",
    "broadcast",
    "reachable",
    "reinterpret",
    "transpose",
]

Array = np.ndarray[Any, np.dtype[Any]]

_serials = itertools.count()


class GraphBase:
    """What expressions know of their graph, a :class:`dmlemu.graph.Graph`."""

    device: Device
    policy: Policy
    operators: dict[Any, Operator]
    """Those of packed tensors, by their fields."""

    def constant(self, array: Any) -> Expression:
        raise NotImplementedError

    def unary(self, name: str, x: Expression) -> Expression:
        """A Python operator of one operand."""
        raise NotImplementedError

    def binary(self, name: str, x: Expression, other: Any, turned: bool) -> Any:
        """A Python operator of two operands."""
        raise NotImplementedError

    def evaluate(self, wanted: Sequence[Expression], arrays: Mapping[Any, Any], flags: ExecutionFlags) -> Any:
        """The values of expressions, from the arrays of inputs."""
        raise NotImplementedError


class Node:
    """What makes tensors of a graph; ``outputs`` are their descs, as they lie in memory.

    ``serial`` grows with each node: what a node reads was made before it.  ``site`` is the line of the
    program that made it.
    """

    __slots__ = ("graph", "name", "outputs", "serial", "site")

    def __init__(self, graph: GraphBase, name: str, outputs: Sequence[BufferTensorDesc]) -> None:
        self.graph = graph
        self.name = name
        self.outputs = tuple(outputs)
        self.serial = next(_serials)
        self.site: CallSite | None = call_site()

    @property
    def location(self) -> str:
        """``file:line`` of the call that made it; empty if no Python line did."""
        return "" if self.site is None else self.site.innermost

    @property
    def title(self) -> str:
        """``relu at model.py:12``: how reports name it."""
        return f"{self.name} at {self.location}" if self.location else self.name

    @property
    def sources(self) -> tuple[Expression | None, ...]:
        """What it reads."""
        return ()


class InputNode(Node):
    """An input of the graph, given in each run."""

    __slots__ = ()


class ConstantNode(Node):
    """Values that the graph keeps.  ``memory`` are the bytes of the tensor.

    ``owned_by_dml``: they are uploaded when the compiled graph is initialised, and may be rearranged then;
    otherwise they are bound in each run.  A function that returns the bytes is called then.
    """

    __slots__ = ("_memory",)

    def __init__(
        self, graph: GraphBase, name: str, desc: BufferTensorDesc, memory: Array | Callable[[], Array]
    ) -> None:
        super().__init__(graph, name, [desc])
        self._memory = memory

    @property
    def memory(self) -> Array:
        return self._memory() if callable(self._memory) else self._memory


class OperatorNode(Node):
    """An operator.  ``sources`` are in the order of its input bindings; None: the tensor is absent.

    ``outputs`` are those that the desc has; ``bindings`` are their numbers among the operator's outputs.
    """

    __slots__ = ("_sources", "bindings", "operator")

    def __init__(
        self, graph: GraphBase, name: str, operator: Operator, sources: Sequence[Expression | None]
    ) -> None:
        fields = [field for field in operator.program.fields if field.output]
        super().__init__(graph, name, [field.desc for field in fields if field.desc is not None])
        self.bindings = tuple(number for number, field in enumerate(fields) if field.desc is not None)
        self.operator = operator
        self._sources = tuple(sources)

    @property
    def sources(self) -> tuple[Expression | None, ...]:
        return self._sources


class Expression(Operators, Evaluable):
    """A tensor of a graph: output number ``output`` of ``node``, read through ``desc``.

    Usually ``desc`` is the node's own; a view (:func:`reinterpret`, :func:`broadcast`, :func:`transpose`)
    reads the same bytes through another one.  Expressions never change, and as keys of a dict they equal only
    themselves: ``==`` is an operator of the graph, as ``+`` and the others are.
    """

    __slots__ = ("__weakref__", "desc", "node", "output")

    def __init__(self, node: Node, output: int = 0, desc: BufferTensorDesc | None = None) -> None:
        self.node = node
        self.output = output
        self.desc = node.outputs[output] if desc is None else desc

    @property
    def graph(self) -> GraphBase:
        return self.node.graph

    @property
    def name(self) -> str:
        """The name of the input or constant, or of the operator that makes it."""
        return self.node.name

    @property
    def location(self) -> str:
        """``file:line`` of the call that made it."""
        return self.node.location

    @property
    def data_type(self) -> TensorDataType:
        return self.desc.data_type

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of its elements."""
        return self.desc.dtype

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.desc.sizes)

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements, computed where the desc has none."""
        return self.desc.effective_strides

    @property
    def rank(self) -> int:
        return self.desc.rank

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        return f"<Expression {self.node.title}: {self.data_type.name} [{sizes}]>"

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} has no truth value: it is a tensor that is computed when its graph runs.")

    def __iter__(self) -> Any:
        raise TypeError(f"{self!r} cannot be iterated; split divides a tensor.")

    __hash__ = object.__hash__  # Operators has an __eq__

    def evaluate_all(
        self, wanted: Sequence[Any], arrays: Mapping[Any, Any], flags: ExecutionFlags
    ) -> list[Array]:
        """The values of several expressions of this graph; see :func:`dmlemu.evaluate`."""
        values: list[Array] = self.graph.evaluate(wanted, arrays, flags)
        return values


def reachable(expressions: Iterable[Expression]) -> list[Node]:
    """The nodes that the expressions need, each behind those that it reads."""
    found: dict[int, Node] = {}
    open_ = [each.node for each in expressions]
    while open_:
        node = open_.pop()
        if node.serial not in found:
            found[node.serial] = node
            open_ += [source.node for source in node.sources if source is not None]
    return [found[serial] for serial in sorted(found)]


# --- views ---


def _checked(x: Expression, **sequences: Any) -> Expression:
    """TypeError: it is no expression, or what is given with it is neither a sequence nor None."""
    if not isinstance(x, Expression):
        raise TypeError(f"x must be an Expression, not {type(x).__name__}.")
    for name, value in sequences.items():
        if value is not None and not isinstance(value, Iterable):
            raise TypeError(f"{name} must be a sequence of integers, not {value!r}.")
    return x


def reinterpret(
    x: Expression,
    sizes: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    data_type: TensorDataType | None = None,
) -> Expression:
    """The bytes of ``x`` as another tensor: no operator runs.

    ``sizes`` None: those of ``x``.  ``strides`` None: those of ``x`` if sizes and width of an element stay,
    otherwise packed.  The first element stays where it is.

    Raises ValueError when the tensor reaches past the bytes of ``x``, and when ``x`` is not packed but would
    be read as if it were.
    """
    old = _checked(x, sizes=sizes, strides=strides).desc
    new_type = old.data_type if data_type is None else data_type
    new_sizes = old.sizes if sizes is None else tuple(sizes)
    new_strides = None if strides is None else tuple(strides)
    if strides is None and old.strides is not None:
        if tuple(new_sizes) == tuple(old.sizes) and element_bits(new_type) == element_bits(old.data_type):
            new_strides = tuple(old.strides)
        elif not _is_packed(old):
            raise ValueError(
                f"{x!r} has strides {list(x.strides)}: its bytes are not those of a packed tensor of sizes "
                f"{list(new_sizes)}.  Give strides, or copy it first, with identity."
            )
    are_integers = all(type(each) is int for each in (*new_sizes, *(new_strides or ())))
    view = (_kept_view if are_integers else _view)(old, new_type, new_sizes, new_strides)
    if view.extent_in_bytes > old.size_in_bytes:
        raise ValueError(
            f"A tensor of {new_type.name}, sizes {list(new_sizes)} and strides "
            f"{list(view.effective_strides)} has {view.extent_in_bytes} bytes, {x!r} only "
            f"{old.size_in_bytes}."
        )
    return Expression(x.node, x.output, view)


def _view(
    old: BufferTensorDesc, data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None
) -> BufferTensorDesc:
    size, alignment = old.size_in_bytes, old.guaranteed_base_offset_alignment
    return BufferTensorDesc(data_type, sizes, strides, size, alignment, old.flags)


_kept_view = lru_cache(maxsize=1024)(_view)  # networks repeat few shapes


def _is_packed(desc: BufferTensorDesc) -> bool:
    strides = zip(
        desc.sizes, desc.effective_strides, replace(desc, strides=None).effective_strides, strict=True
    )
    return all(size == 1 or given == packed for size, given, packed in strides)


def broadcast(x: Expression, sizes: Sequence[int]) -> Expression:
    """``x`` repeated to ``sizes``, as NumPy's ``broadcast_to``: a view with strides of 0.

    Dimensions are matched from the last one on.  ValueError: a size of ``x`` is neither 1 nor the new one.
    """
    rank = _checked(x, sizes=sizes).rank
    sizes = tuple(sizes)
    new = len(sizes) - rank
    if new < 0 or any(old not in (1, size) for old, size in zip(x.sizes, sizes[new:], strict=True)):
        raise ValueError(f"{x!r} cannot be repeated to sizes {list(sizes)}.")
    if sizes == x.sizes:
        return x
    kept = (
        stride if old == size else 0
        for old, size, stride in zip(x.sizes, sizes[new:], x.strides, strict=True)
    )
    return reinterpret(x, sizes, (*(0,) * new, *kept))


def transpose(x: Expression, order: Sequence[int] | None = None) -> Expression:
    """``x`` with its dimensions in another order, as NumPy's ``transpose``: a view; None reverses them.

    ValueError: ``order`` does not name each dimension once.
    """
    rank = _checked(x, order=order).rank
    order = tuple(reversed(range(rank))) if order is None else tuple(order)
    if sorted(order) != list(range(x.rank)):
        raise ValueError(f"order ({list(order)}) does not name each dimension of {x!r} once.")
    return reinterpret(x, [x.sizes[i] for i in order], [x.strides[i] for i in order])


def without_flags(desc: BufferTensorDesc) -> BufferTensorDesc:
    """The desc of a tensor that is bound in each run."""
    return changed(desc, flags=TensorFlags.NONE) if desc.flags else desc
