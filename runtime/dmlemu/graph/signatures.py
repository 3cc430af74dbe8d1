"""The parameters of the function of an operator, and its documentation, from the operator's declaration."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter, Signature, cleandoc
from typing import Any

from ..dml.declared.schema import Field, FieldKind, OperatorDesc, operator_fields
from ..dml.enums import TensorDataType
from .defaults import DEFAULTS, PRESENT, follows
from .inference import OPEN, REQUIRED, Open

__all__ = ["Declaration"]

_POSITIONAL, _KEYWORD = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
_KINDS = {
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


class Declaration:
    """An operator as its function sees it.

    ``optional`` are outputs that a parameter asks for; ``open``: what else the caller says of outputs.  An
    operator without inputs needs ``graph`` as its first argument.
    """

    def __init__(self, cls: type[OperatorDesc]) -> None:
        fields = operator_fields(cls)
        self.cls = cls
        self.name = cls.TYPE.name.lower()
        self.open = OPEN.get(cls.TYPE.name, Open())
        self.inputs = [item for item in fields if item.kind is FieldKind.INPUT_TENSOR]
        self.outputs = [item for item in fields if item.kind is FieldKind.OUTPUT_TENSOR]
        self.others = [item for item in fields if not item.is_tensor]
        self.optional = [item for item in self.outputs if item.optional]
        self.needs_graph = len(self.inputs) < 2 and all(item.optional for item in self.inputs)
        self.results_name = f"{cls.__name__.removesuffix('OperatorDesc')}Outputs"
        self.structs = [
            item for item in self.others if item.kind in (FieldKind.SCALAR_UNION, FieldKind.SCALE_BIAS)
        ]
        parameters = list(self._parameters())
        self.signature = Signature(parameters, return_annotation=self._returned())
        self.positional = [each.name for each in parameters if each.kind is _POSITIONAL]
        self.defaults = {each.name: each.default for each in parameters if each.default is not each.empty}

    def _returned(self) -> str:
        if len(self.outputs) > 1:
            return "Expression | " * bool(self.optional) + self.results_name
        return "list[Expression]" if self.outputs[0].array else "Expression"

    def _parameters(self) -> Iterator[Parameter]:
        if self.needs_graph:
            yield Parameter("graph", _POSITIONAL, annotation="Graph")
        for item in sorted(self.inputs, key=lambda item: item.optional):
            kind = "Sequence[Expression]" if item.array else "Expression"
            yield _parameter(item.name, kind, None if item.optional else Parameter.empty, _POSITIONAL)
        for item in self.others:
            yield _parameter(item.name, _annotation(item), self._default(item))
        present = PRESENT.get(self.cls.TYPE.name, 0)
        for number, item in enumerate(self.optional):
            yield _parameter(item.name, "bool", number < present)
        for name in self.open.more:
            yield _parameter(name, "Sequence[int]" if name.endswith("s") else "int", Parameter.empty)
        said = {
            "output_sizes": (self.open.sizes, "Sequence[int]"),
            "output_data_type": (self.open.data_type, "TensorDataType"),
        }
        for name, (given, kind) in said.items():
            if given:
                yield _parameter(name, kind, Parameter.empty if given == REQUIRED else None)
        yield _parameter("name", "str", "")

    def _default(self, item: Field) -> Any:
        if item.optional or follows(self.cls, item.name) is not None:
            return None
        own = f"{self.cls.TYPE.name}.{item.name}"
        return DEFAULTS.get(own, DEFAULTS.get(item.name, Parameter.empty))

    @property
    def documentation(self) -> str:
        """What the declaration says, and what is taken for each parameter that is left out."""
        declared = cleandoc(self.cls.__doc__ or "").partition("\n\n")[2]
        lines = [f"DML_OPERATOR_{self.cls.TYPE.name}.", "", declared, ""]
        lines += ["Parameters that may be left out:", ""]
        for parameter in self.signature.parameters.values():
            if parameter.default is not Parameter.empty:
                lines.append(f"* ``{parameter.name}``: {self._left_out(parameter)}")
        return "\n".join(lines)

    def _left_out(self, parameter: Parameter) -> str:
        name, default = parameter.name, parameter.default
        if name == "name":
            return f"reports call the operator ``{self.name}``"
        if name == "output_sizes" or (default is None and follows(self.cls, name) is not None):
            return "computed from the other arguments"
        if name == "output_data_type":
            given = self.open.data_type
            other = f", otherwise {given.name}" if isinstance(given, TensorDataType) else ""
            return f"the type that the inputs ask for{other}"
        if name in {item.name for item in self.optional}:
            return "computed" if default else "not computed"
        return "none" if default is None else str(getattr(default, "name", default))


def _parameter(name: str, kind: str, default: Any, place: Any = _KEYWORD) -> Parameter:
    return Parameter(name, place, default=default, annotation=kind + " | None" * (default is None))


def _annotation(item: Field) -> str:
    if item.enum is not None:
        return item.enum.__name__
    kind = _KINDS[item.kind]
    return f"Sequence[{kind}]" if item.array else kind
