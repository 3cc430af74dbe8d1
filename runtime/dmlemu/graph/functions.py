"""One function for each operator of DirectML, made from its declaration: expressions in, expressions out.

A function has the operator's name in snake_case, ``dmlemu.graph.element_wise_add1``.  Its parameters are the
desc's fields: inputs first, then all others by keyword.  Outputs are computed, see
:mod:`dmlemu.graph.inference`; of optional outputs, a parameter says whether there is one.
"""

from __future__ import annotations

import builtins
import keyword
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import cache, cached_property
from typing import Any

from ..d3d12.types.arguments import instance
from ..dml.declared import declared
from ..dml.declared.definition import definition_class
from ..dml.declared.rules import NotOwned
from ..dml.declared.schema import Field, FieldKind, OperatorDesc
from ..dml.enums import TensorDataType
from ..dml.lowering.dispatchable import Operator
from ..dml.structs import ScalarUnion, ScaleBias
from ..dml.tensor_desc import BufferTensorDesc
from ..errors import as_integer
from ..frozen import Frozen
from .defaults import completed
from .expression import Expression, GraphBase, OperatorNode, without_flags
from .inference import Said, inferred
from .policies import REPEATABLE, laid_out, packed
from .signatures import Declaration


class _Call:
    """The function of one operator."""

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.name = declaration.name

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        declaration = self.declaration
        values = self._bound(args, kwargs)
        instance(values["name"], str, "name")
        sources = {item.name: self._source(item, values[item.name]) for item in declaration.inputs}
        graph = self._graph(sources, values.get("graph"))
        fields = {name: self._read(name, found) for name, found in sources.items()}
        fields.update((item.name, values[item.name]) for item in declaration.others)
        completed(declaration.cls, fields, values.get("output_sizes"))
        fields.update(self._converted(fields))
        for name in declaration.open.more:
            self._check_more(name, values[name])
        said = Said(
            values.get("output_sizes"),
            values.get("output_data_type"),
            {name: values[name] for name in declaration.open.more},
            frozenset(item.name for item in declaration.optional if not values[item.name]),
        )
        operator = self._operator(graph, fields, said)
        flat = [each for found in sources.values() for each in _each(found)]
        return self._results(OperatorNode(graph, values["name"] or self.name, operator, flat), operator.desc)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The values of all parameters, as ``signature.bind`` says them; that takes ten times as long."""
        declaration = self.declaration
        given = dict(zip(declaration.positional, args, strict=False))
        values = {**declaration.defaults, **given, **kwargs}
        names = declaration.signature.parameters
        if (
            len(given) < len(args)
            or len(values) < len(names)
            or not names.keys() >= kwargs.keys()
            or not given.keys().isdisjoint(kwargs)
        ):
            try:
                declaration.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.name}(): {error}") from None
        return values

    def _operator(self, graph: GraphBase, fields: dict[str, Any], said: Said) -> Operator:
        """The operator with outputs as the rules and the graph's policy have them.

        Nodes with the same fields share one: networks repeat few shapes.
        """
        try:
            rest = tuple(said.more.items()), tuple(sorted(said.absent))
            key = self.name, graph.policy, _key((*fields.values(), said.sizes, said.data_type, *rest))
        except TypeError:
            key = None
        if graph.policy not in REPEATABLE:
            key = None
        operator = None if key is None else graph.operators.get(key)
        if operator is None:
            desc = inferred(self.declaration.cls, fields, said, graph.device.feature_level)
            if graph.policy is not packed:  # inferred ones are
                desc = self._laid_out(desc, graph)
            operator = graph.device.create_operator(desc)
            if key is not None:
                graph.operators[key] = operator
        return operator

    # --- inputs ---

    def _source(self, item: Field, value: Any) -> Any:
        """An expression, a tuple of them for an array, or None."""
        if not item.array:
            return None if value is None and item.optional else self._expression(item.name, value)
        if isinstance(value, Expression) or not isinstance(value, Sequence):
            raise TypeError(f"{self.name}(): {item.name} must be a sequence of expressions, not {value!r}.")
        return tuple(self._expression(f"{item.name}[{i}]", each) for i, each in enumerate(value))

    def _expression(self, path: str, value: Any) -> Expression:
        if isinstance(value, Expression):
            return value
        hint = "; Graph.constant makes one of an array" if hasattr(value, "__array__") else ""
        raise TypeError(f"{self.name}(): {path} must be an Expression, not {type(value).__name__}{hint}.")

    def _graph(self, sources: dict[str, Any], given: Any) -> GraphBase:
        """The graph of all inputs; that of an operator without inputs is given."""
        if self.declaration.needs_graph and not isinstance(given, GraphBase):
            raise TypeError(f"{self.name}(): graph must be a Graph, not {type(given).__name__}.")
        graph: GraphBase | None = given
        for name, found in sources.items():
            for each in _each(found):
                if each is not None:
                    graph = graph or each.graph
                    if each.graph is not graph:
                        raise ValueError(f"{self.name}(): {name} ({each!r}) belongs to another graph.")
        if graph is None:
            raise TypeError(f"{self.name}(): no input is given.")
        return graph

    def _read(self, name: str, found: Any) -> Any:
        """The tensors that the operator reads; of one that it must not own, without the flag."""
        if isinstance(found, tuple):
            return tuple(self._read(name, each) for each in found)
        if found is None:
            return None
        return without_flags(found.desc) if found.desc.flags and name in self._not_owned else found.desc

    @cached_property
    def _not_owned(self) -> set[str]:
        definition = definition_class(self.declaration.cls.TYPE)
        rules = () if definition is None else definition.RULES
        return {name for rule in rules if isinstance(rule, NotOwned) for name in rule.names}

    # --- other fields ---

    def _converted(self, fields: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Numbers as the structs that the desc has."""
        for item in self.declaration.structs:
            value = fields[item.name]
            if item.kind is FieldKind.SCALAR_UNION and not isinstance(value, ScalarUnion):
                data_type = fields[item.type_from]
                if isinstance(data_type, TensorDataType):  # otherwise the check of the desc refuses it
                    yield item.name, ScalarUnion.of(data_type, value)
            elif item.kind is FieldKind.SCALE_BIAS and isinstance(value, tuple):
                yield item.name, ScaleBias(*value)

    # --- outputs ---

    def _check_more(self, name: str, value: Any) -> None:
        """A parameter that no desc has, so that CreateOperator does not see it: a size, or several."""
        several = name.endswith("s")
        each = value if several and isinstance(value, Sequence) else [None if several else value]
        if any(as_integer(one) is None for one in each):
            expected = "a sequence of integers" if several else "an integer"
            raise TypeError(f"{self.name}(): {name} must be {expected}, not {value!r}.")

    def _laid_out(self, desc: OperatorDesc, graph: GraphBase) -> OperatorDesc:
        """With outputs as the graph's policy has them."""
        changes: dict[str, Any] = {}
        for item in self.declaration.outputs:
            found = getattr(desc, item.name)
            if isinstance(found, BufferTensorDesc):
                changes[item.name] = laid_out(found, graph.policy)
            elif found is not None:
                changes[item.name] = tuple(laid_out(each, graph.policy) for each in found)
        laid: OperatorDesc = replace(desc, **changes)
        return laid

    @cached_property
    def _outputs(self) -> Any:
        """The named tuple of several outputs."""
        names = [item.name for item in self.declaration.outputs]
        return namedtuple(self.declaration.results_name, names)

    def _results(self, node: OperatorNode, desc: OperatorDesc) -> Any:
        """One output as it is; several as a named tuple, with None for those that were not asked for."""
        made = [Expression(node, number) for number in range(len(node.outputs))]
        if self.declaration.outputs[0].array:
            return made
        if len(made) == 1:
            return made[0]
        present = iter(made)
        names = [item.name for item in self.declaration.outputs]
        return self._outputs(*(None if getattr(desc, name) is None else next(present) for name in names))


def _key(value: Any) -> Any:
    """What tells fields apart, hashable.  TypeError: one may change, or is of an unknown type.

    Equal numbers of several types, and zeros of both signs, are not the same field.
    """
    if isinstance(value, BufferTensorDesc) or value is None:
        return value
    if isinstance(value, (tuple, list)):
        return tuple(map(_key, value))
    if isinstance(value, Enum | int | str | float):
        return type(value), repr(value) if isinstance(value, float) else value
    if isinstance(value, Frozen):
        return type(value), tuple(map(_key, vars(value).values()))
    raise TypeError


def _each(found: Any) -> Sequence[Expression | None]:
    return found if isinstance(found, tuple) else (found,)


@cache
def _function(name: str) -> Callable[..., Any]:
    declaration = Declaration(_declared()[name])
    call = _Call(declaration)

    def function(*args: Any, **kwargs: Any) -> Any:
        return call(args, kwargs)

    function.__name__ = function.__qualname__ = declaration.name
    function.__doc__ = declaration.documentation
    function.__signature__ = declaration.signature  # type: ignore[attr-defined]
    return function


def _short_names(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """DirectMLX's names, where no operator has them: without the family, of namesakes the first family's."""
    taken = set(names)
    for prefix in ("element_wise_", "element_wise_logical_", "activation_"):
        for name in names:
            short = name.removeprefix(prefix)
            short += "_" * keyword.iskeyword(short)
            if name.startswith(prefix) and short not in taken:
                taken.add(short)
                yield short, name
    yield "conv", "convolution"


@cache
def _declared() -> dict[str, type[OperatorDesc]]:
    """The descs by the names of their functions."""
    return {cls.TYPE.name.lower(): cls for cls in declared().values()}


class _Functions(Mapping[str, Callable[..., Any]]):
    """Each function is made when it is asked for: programs use few of them."""

    def __init__(self) -> None:
        names = list(_declared())
        self._names = dict(zip(names, names, strict=True)) | dict(_short_names(names))

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return _function(self._names[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


FUNCTIONS: Mapping[str, Callable[..., Any]] = _Functions()
"""By name: those of all operators, and the short names of some."""

__all__ = ["FUNCTIONS", *(name for name in FUNCTIONS if not hasattr(builtins, name))]
