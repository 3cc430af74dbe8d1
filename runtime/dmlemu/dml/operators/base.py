"""The single declaration of an operator, and what is derived from it.

An operator is one class, in one file of this folder: its annotated fields, in C order, are the
fields of the ``DML_*_OPERATOR_DESC`` struct; the class arguments say what it is and which ranks and
data types each feature level allows; :meth:`OperatorDesc.rules` holds its shape rules,
:meth:`OperatorDesc.lower` names the kernels that run it and :meth:`OperatorDesc.reference` is its
definition in NumPy.  Validation, reading the C struct, DxDispatch JSON, the reference pages,
hypothesis strategies and the command line all read the same class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import Error, HResult, Report
from ..enums import FeatureLevel, OperatorType, TensorDataType

if TYPE_CHECKING:
    from ..compile import Program
    from ..tensor_desc import BufferTensorDesc

__all__ = [
    "Allowed",
    "Check",
    "Field",
    "FieldKind",
    "OperatorDesc",
    "allow",
    "enumeration",
    "float32",
    "fused_activation",
    "input_tensor",
    "operator_fields",
    "output_tensor",
    "registry",
    "scale_bias",
    "scalar_union",
    "uint",
    "uint_array",
]


class FieldKind(Enum):
    """What a field of an operator desc is; decides its C type, its JSON form and its checks."""

    INPUT_TENSOR = "const DML_TENSOR_DESC*"
    OUTPUT_TENSOR = "const DML_TENSOR_DESC* (output)"
    UINT = "UINT"
    INT = "INT"
    FLOAT = "FLOAT"
    BOOL = "BOOL"
    ENUM = "enum"
    UINT_ARRAY = "const UINT*"
    INT_ARRAY = "const INT*"
    FLOAT_ARRAY = "const FLOAT*"
    SCALE_BIAS = "const DML_SCALE_BIAS*"
    SCALAR_UNION = "DML_SCALAR_UNION"
    SIZE_2D = "DML_SIZE_2D"
    OPERATOR_DESC = "const DML_OPERATOR_DESC*"


@dataclass(frozen=True)
class Field:
    """One field of an operator desc, as declared.

    ``count`` is the C name of the UINT that stands before the first array it counts (``AxisCount``);
    such counts are no Python fields: they follow from the arrays' lengths.  ``array`` marks arrays of
    tensors or of operator descs.
    """

    name: str
    c_name: str
    kind: FieldKind
    optional: bool = False
    count: str = ""
    array: bool = False
    enum: type[IntEnum] | None = None
    type_from: str = ""


def _declare(kind: FieldKind, default: Any = ..., **info: Any) -> Any:
    metadata = {"dml": {"kind": kind, **info}}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


def input_tensor(*, optional: bool = False, count: str = "") -> Any:
    """An input tensor; with ``count``, an array of them (``InputTensors``, counted by ``InputCount``)."""
    default = None if optional else ...
    return _declare(FieldKind.INPUT_TENSOR, default, optional=optional, count=count, array=bool(count))


def output_tensor(*, optional: bool = False, count: str = "") -> Any:
    """An output tensor; with ``count``, an array of them."""
    default = None if optional else ...
    return _declare(FieldKind.OUTPUT_TENSOR, default, optional=optional, count=count, array=bool(count))


def uint(default: Any = ...) -> Any:
    return _declare(FieldKind.UINT, default)


def float32(default: Any = ...) -> Any:
    return _declare(FieldKind.FLOAT, default)


def enumeration(enum: type[IntEnum], default: Any = ...) -> Any:
    return _declare(FieldKind.ENUM, default, enum=enum)


def uint_array(count: str, default: Any = ...) -> Any:
    return _declare(FieldKind.UINT_ARRAY, default, count=count)


def scale_bias() -> Any:
    return _declare(FieldKind.SCALE_BIAS, None, optional=True)


def scalar_union(type_from: str) -> Any:
    """8 raw bytes read as the data type of the tensor or enum field named ``type_from``."""
    return _declare(FieldKind.SCALAR_UNION, type_from=type_from)


def fused_activation() -> Any:
    return _declare(FieldKind.OPERATOR_DESC, None, optional=True)


@dataclass(frozen=True)
class Allowed:
    """Ranks and data types that a feature level allows for one tensor field."""

    min_rank: int
    max_rank: int
    data_types: frozenset[TensorDataType]


def allow(min_rank: int, max_rank: int, data_types: str) -> Allowed:
    """``allow(4, 5, "FLOAT32 FLOAT16")``."""
    return Allowed(min_rank, max_rank, frozenset(TensorDataType[name] for name in data_types.split()))


def registry() -> Mapping[OperatorType, type[OperatorDesc]]:
    """Every declared operator by its type.  The folder is the list: see ``operators/__init__.py``."""
    from . import load_all

    load_all()
    return _REGISTRY


_REGISTRY: dict[OperatorType, type[OperatorDesc]] = {}


def camel(name: str) -> str:
    """``output_count_tensor`` -> ``OutputCountTensor``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


class OperatorDesc:
    """Base of every operator desc.  Subclasses are frozen, keyword-only dataclasses::

    @dataclass(frozen=True, kw_only=True)
    class ElementWiseAddOperatorDesc(
        OperatorDesc, type=OperatorType.ELEMENT_WISE_ADD, introduced=..., support={...}, in_place=True
    ): ...
    """

    TYPE: ClassVar[OperatorType]
    INTRODUCED: ClassVar[FeatureLevel]
    SUPPORT: ClassVar[Mapping[FeatureLevel, Mapping[str, Allowed]]]
    IN_PLACE: ClassVar[bool]

    def __init_subclass__(
        cls,
        *,
        type: OperatorType | None = None,
        introduced: FeatureLevel = FeatureLevel.LEVEL_1_0,
        support: Mapping[FeatureLevel, Mapping[str, Allowed]] | None = None,
        in_place: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if type is None:  # a family's base class
            return
        cls.TYPE, cls.INTRODUCED, cls.SUPPORT, cls.IN_PLACE = type, introduced, support or {}, in_place
        _REGISTRY[type] = cls

    def allowed(self, level: FeatureLevel) -> Mapping[str, Allowed]:
        """Ranks and types per tensor field on a device of ``level``: the highest table not above it.

        REDUCE, whose tables depend on its function, overrides this.
        """
        return table_for(self.SUPPORT, level)

    def rules(self, check: Check) -> None:
        """Shape and field rules; ranks and data types have been checked before."""

    def lower(self, program: Program) -> None:
        """Adds the kernel calls that run this operator to ``program``."""
        raise NotImplementedError

    @staticmethod
    def reference(desc: Any, inputs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """The operator in plain NumPy: arrays by input field name -> arrays by output field name."""
        raise NotImplementedError


def table_for(
    support: Mapping[FeatureLevel, Mapping[str, Allowed]], level: FeatureLevel
) -> Mapping[str, Allowed]:
    at_or_below = [known for known in support if known <= level]
    return support[max(at_or_below) if at_or_below else min(support)]


_FIELDS: dict[type, tuple[Field, ...]] = {}


def operator_fields(cls: type[OperatorDesc]) -> tuple[Field, ...]:
    """The declared fields in C order, without the counts."""
    known = _FIELDS.get(cls)
    if known is None:
        declared = []
        for item in fields(cls):  # type: ignore[arg-type]
            info = dict(item.metadata["dml"])
            declared.append(Field(item.name, info.pop("c_name", camel(item.name)), **info))
        known = _FIELDS[cls] = tuple(declared)
    return known


def c_layout(cls: type[OperatorDesc]) -> Iterator[tuple[str, str]]:
    """``(C name, C type)`` of every field of the struct, counts included, in order."""
    counted: set[str] = set()
    for item in operator_fields(cls):
        if item.count and item.count not in counted:
            counted.add(item.count)
            yield item.count, "UINT"
        c_type = item.kind.value.replace(" (output)", "")
        if item.kind is FieldKind.ENUM and item.enum is not None:
            c_type = "DML_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", item.enum.__name__).upper()
        yield item.c_name, c_type


class Check:
    """Collects nothing and forgives nothing: the first broken rule raises, with its field path.

    ``path`` is put before every field (a fused activation is checked as ``FusedActivation.``).
    """

    def __init__(self, desc: OperatorDesc, level: FeatureLevel, operation: str, path: str = "") -> None:
        self.desc = desc
        self.level = level
        self.operation = operation
        self.path = path

    @property
    def struct(self) -> str:
        return f"DML_{self.desc.TYPE.name}_OPERATOR_DESC"

    def fail(
        self,
        id: str,
        field: str,
        message: str,
        *,
        given: object = "",
        expected: object = "",
        rule: str = "",
        hint: str = "",
        hresult: HResult = HResult.E_INVALIDARG,
    ) -> None:
        """Raises :class:`dmlemu.Error`.  ``field`` is the C path, ``rule`` the rule's id or text."""
        where = self.path + field
        raise Error(
            hresult,
            Report(
                id=id,
                api="DML",
                message=message,
                operation=self.operation,
                field=where,
                given=str(given),
                expected=str(expected),
                rule=", ".join(part for part in (rule, self.struct) if part),
                hint=hint,
            ),
        )

    def require(self, condition: bool, id: str, field: str, message: str, **details: Any) -> None:
        if not condition:
            self.fail(id, field, message, **details)

    def tensor(self, name: str) -> BufferTensorDesc | None:
        tensor: BufferTensorDesc | None = getattr(self.desc, name)
        return tensor

    def _given(self, names: Sequence[str]) -> list[tuple[str, BufferTensorDesc]]:
        """The tensors among ``names`` that are present, with their C names."""
        found = []
        for name in names:
            tensor = self.tensor(name)
            if tensor is not None:
                found.append((camel(name), tensor))
        return found

    def same_data_type(self, *names: str) -> None:
        first, *rest = self._given(names)
        for c_name, tensor in rest:
            if tensor.data_type != first[1].data_type:
                self.fail(
                    "TENSOR_DTYPE",
                    f"{c_name}.DataType",
                    f"{c_name}.DataType ({tensor.data_type.name}) differs from "
                    f"{first[0]}.DataType ({first[1].data_type.name}); this operator needs one type for both.",
                    given=tensor.data_type.name,
                    expected=first[1].data_type.name,
                )

    def same_rank(self, *names: str) -> None:
        first, *rest = self._given(names)
        for c_name, tensor in rest:
            if len(tensor.sizes) != len(first[1].sizes):
                self.fail(
                    "TENSOR_RANK",
                    f"{c_name}.DimensionCount",
                    f"{c_name}.DimensionCount ({len(tensor.sizes)}) differs from "
                    f"{first[0]}.DimensionCount ({len(first[1].sizes)}).",
                    given=len(tensor.sizes),
                    expected=len(first[1].sizes),
                )

    def same_sizes(self, *names: str) -> None:
        """Equal ranks and sizes; says that broadcasting is done with strides of 0."""
        self.same_rank(*names)
        first, *rest = self._given(names)
        for c_name, tensor in rest:
            for i, (size, wanted) in enumerate(zip(tensor.sizes, first[1].sizes, strict=True)):
                if size != wanted:
                    broadcast = 1 in (size, wanted)
                    self.fail(
                        "OP_NO_BROADCAST" if broadcast else "OP_SHAPE",
                        f"{c_name}.Sizes[{i}]",
                        f"{c_name}.Sizes[{i}] ({size}) differs from {first[0]}.Sizes[{i}] ({wanted}).",
                        given=size,
                        expected=wanted,
                        hint="operators do not broadcast by size: give the full size and stride 0"
                        if broadcast
                        else "",
                    )

    def size(self, name: str, dimension: int, expected: int, why: str) -> None:
        """``Sizes[dimension]`` of the tensor must be ``expected``; ``why`` is a clause: "since ..."."""
        tensor = self.tensor(name)
        if tensor is None:
            return
        dimension %= len(tensor.sizes)
        if tensor.sizes[dimension] != expected:
            self.fail(
                "OP_SHAPE",
                f"{camel(name)}.Sizes[{dimension}]",
                f"{camel(name)}.Sizes[{dimension}] ({tensor.sizes[dimension]}) is not {expected}, {why}.",
                given=tensor.sizes[dimension],
                expected=expected,
            )
