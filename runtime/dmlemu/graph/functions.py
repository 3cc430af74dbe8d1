"""One function for each operator of DirectML, made from its declaration: expressions in, expressions out.

A function has the operator's name in snake_case, ``dmlemu.graph.element_wise_add1``.  Its parameters are the
desc's fields: inputs first, then all others by keyword.  Outputs are computed, see
:mod:`dmlemu.graph.inference`; of optional outputs, a parameter says whether there is one.
"""

from __future__ import annotations

import builtins
import keyword
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from inspect import Parameter, Signature, cleandoc
from typing import TYPE_CHECKING, Any

from ..dml.declared import declared
from ..dml.declared.definition import definition_class
from ..dml.declared.rules import NotOwned
from ..dml.declared.schema import Field, FieldKind, OperatorDesc, operator_fields
from ..dml.enums import TensorDataType
from ..dml.structs import ScalarUnion, ScaleBias
from ..dml.tensor_desc import BufferTensorDesc
from .defaults import DEFAULTS, PRESENT, completed, follows
from .expression import Expression, OperatorNode, without_flags
from .inference import OPEN, REQUIRED, Open, Said, inferred
from .policies import laid_out

if TYPE_CHECKING:
    from .builder import Graph

_POSITIONAL, _KEYWORD = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
_KINDS = {
    FieldKind.INPUT_TENSOR: "Expression",
    FieldKind.OUTPUT_TENSOR: "bool",
    FieldKind.UINT: "int",
    FieldKind.INT: "int",
    FieldKind.FLOAT: "float",
    FieldKind.BOOL: "bool",
    FieldKind.UINT_ARRAY: "Sequence[int]",
    FieldKind.INT_ARRAY: "Sequence[int]",
    FieldKind.FLOAT_ARRAY: "Sequence[float]",
    FieldKind.SCALE_BIAS: "ScaleBias",
    FieldKind.SCALAR_UNION: "float",
    FieldKind.SIZE_2D: "Size2D",
    FieldKind.OPERATOR_DESC: "OperatorDesc",
}


class _Builder:
    """What the function of one operator knows."""

    def __init__(self, cls: type[OperatorDesc]) -> None:
        self.cls = cls
        self.name = cls.TYPE.name.lower()
        self.open = OPEN.get(cls.TYPE.name, Open())
        fields = operator_fields(cls)
        self.inputs = [item for item in fields if item.kind is FieldKind.INPUT_TENSOR]
        self.outputs = [item for item in fields if item.kind is FieldKind.OUTPUT_TENSOR]
        self.others = [item for item in fields if not item.is_tensor]
        self.optional = [item for item in self.outputs if item.optional]
        self.needs_graph = all(item.optional for item in self.inputs) and len(self.inputs) < 2
        self.results = namedtuple(  # type: ignore[misc]
            f"{cls.__name__.removesuffix('OperatorDesc')}Outputs", [item.name for item in self.outputs]
        )
        self.signature = Signature(list(self._parameters()), return_annotation=self._returned())

    def _returned(self) -> str:
        if len(self.outputs) > 1:
            return f"Expression | {self.results.__name__}" if self.optional else self.results.__name__
        return "list[Expression]" if self.outputs[0].array else "Expression"

    def _parameters(self) -> Iterator[Parameter]:
        if self.needs_graph:
            yield Parameter("graph", _POSITIONAL, annotation="Graph")
        for item in sorted(self.inputs, key=lambda item: item.optional):
            default = None if item.optional else Parameter.empty
            kind = "Sequence[Expression]" if item.array else "Expression"
            yield Parameter(
                item.name, _POSITIONAL, default=default, annotation=kind + " | None" * item.optional
            )
        for item in self.others:
            default = self._default(item)
            yield Parameter(
                item.name, _KEYWORD, default=default, annotation=_annotation(item) + " | None" * (default is None)
            )
        present = PRESENT.get(self.cls.TYPE.name, 0)
        for number, item in enumerate(self.optional):
            yield Parameter(item.name, _KEYWORD, default=number < present, annotation="bool")
        for name in self.open.more:
            yield Parameter(name, _KEYWORD, annotation="Sequence[int]" if name.endswith("s") else "int")
        for name, given, kind in (
            ("output_sizes", self.open.sizes, "Sequence[int]"),
            ("output_data_type", self.open.data_type, "TensorDataType"),
        ):
            if given:
                default = Parameter.empty if given == REQUIRED else None
                yield Parameter(name, _KEYWORD, default=default, annotation=kind + " | None" * (default is None))
        yield Parameter("name", _KEYWORD, default="", annotation="str")

    def _default(self, item: Field) -> Any:
        if item.optional or follows(self.cls, item.name) is not None:
            return None
        found = DEFAULTS.get(f"{self.cls.TYPE.name}.{item.name}", DEFAULTS.get(item.name, Parameter.empty))
        return found

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        bound.apply_defaults()
        values = bound.arguments
        sources = {item.name: self._source(item, values[item.name]) for item in self.inputs}
        graph = self._graph(sources, values)
        fields = {name: self._descs(name, found) for name, found in sources.items()}
        fields.update((item.name, values[item.name]) for item in self.others)
        sizes = values.get("output_sizes")
        completed(self.cls, fields, sizes)
        fields.update(self._converted(fields))
        said = Said(
            sizes,
            values.get("output_data_type"),
            {name: values[name] for name in self.open.more},
            frozenset(item.name for item in self.optional if not values[item.name]),
        )
        desc = self._laid_out(inferred(self.cls, fields, said, graph.device.feature_level), graph)
        flat = [each for found in sources.values() for each in (found if isinstance(found, tuple) else [found])]
        operator = graph.device.create_operator(desc)
        return self._results(OperatorNode(graph, values["name"] or self.name, operator, flat), desc)

    # --- inputs ---

    def _source(self, item: Field, value: Any) -> Any:
        """An expression, a tuple of them for an array, or None."""
        if item.array:
            if isinstance(value, Expression) or not isinstance(value, Sequence):
                raise TypeError(f"{self.name}(): {item.name} must be a sequence of expressions, not {value!r}.")
            return tuple(self._expression(f"{item.name}[{i}]", each) for i, each in enumerate(value))
        return None if value is None and item.optional else self._expression(item.name, value)

    def _expression(self, path: str, value: Any) -> Expression:
        if not isinstance(value, Expression):
            hint = "; Graph.constant makes one of an array" if hasattr(value, "__array__") else ""
            raise TypeError(
                f"{self.name}(): {path} must be an Expression, not {type(value).__name__}{hint}."
            )
        return value

    def _graph(self, sources: dict[str, Any], values: dict[str, Any]) -> Graph:
        from .builder import Graph

        graph = values["graph"] if self.needs_graph else None
        if self.needs_graph and not isinstance(graph, Graph):
            raise TypeError(f"{self.name}(): graph must be a Graph, not {type(graph).__name__}.")
        for name, found in sources.items():
            for each in found if isinstance(found, tuple) else (found,):
                if each is not None:
                    graph = graph or each.graph
                    if each.graph is not graph:
                        raise ValueError(f"{self.name}(): {name} ({each!r}) belongs to another graph.")
        if graph is None:
            raise TypeError(f"{self.name}(): no input is given.")
        return graph

    def _descs(self, name: str, found: Any) -> Any:
        """The tensors that the operator reads; of one that it must not own, without the flag."""
        if isinstance(found, tuple):
            return tuple(self._descs(name, each) for each in found)
        if found is None:
            return None
        return without_flags(found.desc) if found.desc.flags and name in self._not_owned() else found.desc

    def _not_owned(self) -> set[str]:
        definition = definition_class(self.cls.TYPE)
        rules = () if definition is None else definition.RULES
        return {name for rule in rules if isinstance(rule, NotOwned) for name in rule.names}

    # --- fields ---

    def _converted(self, fields: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Numbers as the structs that the desc has."""
        for item in self.others:
            value = fields[item.name]
            if item.kind is FieldKind.SCALAR_UNION and not isinstance(value, ScalarUnion):
                data_type = fields[item.type_from]
                if isinstance(data_type, TensorDataType):  # otherwise the desc's check refuses it
                    yield item.name, ScalarUnion.of(data_type, value)
            elif item.kind is FieldKind.SCALE_BIAS and isinstance(value, tuple):
                yield item.name, ScaleBias(*value)

    # --- outputs ---

    def _laid_out(self, desc: OperatorDesc, graph: Graph) -> OperatorDesc:
        """With outputs as the graph's policy has them."""
        changes: dict[str, Any] = {}
        for item in self.outputs:
            found = getattr(desc, item.name)
            if isinstance(found, BufferTensorDesc):
                changes[item.name] = laid_out(found, graph.policy)
            elif found is not None:
                changes[item.name] = tuple(laid_out(each, graph.policy) for each in found)
        laid: OperatorDesc = replace(desc, **changes)
        return laid

    def _results(self, node: OperatorNode, desc: OperatorDesc) -> Any:
        if self.outputs[0].array:
            return [Expression(node, number) for number in range(len(node.outputs))]
        made, number = [], 0
        for item in self.outputs:
            made.append(None if getattr(desc, item.name) is None else Expression(node, number))
            number += made[-1] is not None
        if number == 1:
            return next(each for each in made if each is not None)
        return self.results(*made)

    # --- documentation ---

    def documentation(self) -> str:
        head, _, rest = cleandoc(self.cls.__doc__ or "").partition("\n\n")
        lines = [f"DML_OPERATOR_{self.cls.TYPE.name}.", "", rest, "", "Parameters that may be left out:", ""]
        for parameter in self.signature.parameters.values():
            if parameter.default is not Parameter.empty:
                lines.append(f"* ``{parameter.name}``: {self._left_out(parameter)}")
        return "\n".join(lines)

    def _left_out(self, parameter: Parameter) -> str:
        name, default = parameter.name, parameter.default
        if name == "name":
            return f"what reports call the operator; by default ``{self.name}``"
        if name == "output_sizes":
            return "computed from the inputs"
        if name == "output_data_type":
            given = self.open.data_type
            of_input = "the type that the inputs ask for"
            return f"{of_input}, otherwise {given.name}" if isinstance(given, TensorDataType) else of_input
        if any(name == item.name for item in self.optional):
            return f"whether there is this output; {default}"
        if default is None and follows(self.cls, name) is not None:
            return "computed from the other fields"
        return getattr(default, "name", None) or str(default)


def _annotation(item: Field) -> str:
    if item.enum is not None:
        return item.enum.__name__
    kind = _KINDS[item.kind]
    return f"Sequence[{kind}]" if item.array else kind


def _function(cls: type[OperatorDesc]) -> Callable[..., Any]:
    builder = _Builder(cls)

    def function(*args: Any, **kwargs: Any) -> Any:
        return builder(args, kwargs)

    function.__name__ = function.__qualname__ = builder.name
    function.__doc__ = builder.documentation()
    function.__signature__ = builder.signature  # type: ignore[attr-defined]
    return function


def _short_names(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """DirectMLX's names, where no operator has them: without the family, the first of those that share one."""
    taken = set(names)
    for prefix in ("element_wise_", "element_wise_logical_", "activation_"):
        for name in names:
            short = name.removeprefix(prefix)
            if short != name:
                short += "_" * keyword.iskeyword(short)
                if short not in taken:
                    taken.add(short)
                    yield short, name
    yield "conv", "convolution"


_functions = {cls.TYPE.name.lower(): _function(cls) for cls in declared().values()}
_short = dict(_short_names(list(_functions)))

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_functions,
    **{short: _functions[name] for short, name in _short.items()},
}
"""By name: those of all operators, and short names of some."""

globals().update(FUNCTIONS)

__all__ = ["FUNCTIONS", *(name for name in FUNCTIONS if not hasattr(builtins, name))]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., Any]: ...
