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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, fields
from enum import Enum, IntEnum
from math import inf
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from dmlemu_hw.frozen import Frozen, dataclass_transform

from ...errors import HResult, as_integer, failure, loading, quote
from ..enums import FeatureLevel, OperatorType, TensorDataType
from ..structs import ScalarUnion, ScaleBias
from ..tensor_desc import BufferTensorDesc

if TYPE_CHECKING:
    from ..compile import Program

__all__ = [
    "Allowed",
    "Check",
    "Field",
    "FieldKind",
    "OperatorDesc",
    "allow",
    "allow_each",
    "c_layout",
    "camel",
    "check_operator",
    "enumeration",
    "find_operator",
    "float32",
    "fused_activation",
    "input_tensor",
    "operator_fields",
    "output_tensor",
    "registry",
    "scalar_union",
    "scale_bias",
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


class Field(Frozen):
    """One field of an operator desc, as declared.

    ``count`` is the C name of the UINT that stands before the first array it counts (``AxisCount``);
    such counts are no Python fields: they follow from the arrays' lengths.  ``array`` marks arrays of
    tensors or of operator descs.  ``fusable``: the tensor is required, but absent when the desc is
    another operator's fused activation.  ``type_from`` names the field that gives a scalar's type.
    """

    name: str
    c_name: str
    kind: FieldKind
    optional: bool = False
    count: str = ""
    array: bool = False
    enum: type[IntEnum] | None = None
    type_from: str = ""
    fusable: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.kind in (FieldKind.INPUT_TENSOR, FieldKind.OUTPUT_TENSOR)


def _declare(kind: FieldKind, default: Any = ..., **info: Any) -> Any:
    metadata = {"dml": {"kind": kind, **info}}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


def input_tensor(*, optional: bool = False, count: str = "", fusable: bool = False) -> Any:
    """An input tensor; with ``count``, an array of them (``InputTensors``, counted by ``InputCount``)."""
    return _tensor(FieldKind.INPUT_TENSOR, optional, count, fusable)


def output_tensor(*, optional: bool = False, count: str = "", fusable: bool = False) -> Any:
    """An output tensor; with ``count``, an array of them."""
    return _tensor(FieldKind.OUTPUT_TENSOR, optional, count, fusable)


def _tensor(kind: FieldKind, optional: bool, count: str, fusable: bool) -> Any:
    default = None if optional or fusable else ...
    return _declare(kind, default, optional=optional, count=count, array=bool(count), fusable=fusable)


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


class Allowed(Frozen):
    """Ranks and data types that a feature level allows for one tensor field."""

    min_rank: int
    max_rank: int
    data_types: frozenset[TensorDataType]


def allow(min_rank: int, max_rank: int, data_types: str) -> Allowed:
    """``allow(4, 5, "FLOAT32 FLOAT16")``."""
    return Allowed(min_rank, max_rank, frozenset(TensorDataType[name] for name in data_types.split()))


def allow_each(fields: str, min_rank: int, max_rank: int, data_types: str) -> dict[str, Allowed]:
    """The same ranks and types for several fields: ``allow_each("a_tensor b_tensor", 4, 5, "FLOAT32")``."""
    return {name: allow(min_rank, max_rank, data_types) for name in fields.split()}


def registry() -> Mapping[OperatorType, type[OperatorDesc]]:
    """Every declared operator by its type.  The folder is the list: see ``operators/__init__.py``."""
    from . import load_all

    with loading():
        load_all()
    return _REGISTRY


def find_operator(name: str) -> type[OperatorDesc]:
    """The operator named ``DML_OPERATOR_GEMM`` or ``GEMM``.

    ValueError: DirectML has no such operator; NotImplementedError: it has, but it is not emulated.
    """
    suffix = name.removeprefix("DML_OPERATOR_")
    if suffix == "SCATTER":  # the header defines it as another name of SCATTER_ELEMENTS
        suffix = "SCATTER_ELEMENTS"
    if suffix not in OperatorType.__members__ or suffix == "INVALID":
        with loading():
            from difflib import get_close_matches

        close = get_close_matches(suffix, OperatorType.__members__, n=3)
        hint = f" (did you mean {' or '.join(close)}?)" if close else ""
        raise ValueError(f"DirectML has no operator named {name!r}{hint}.")
    kind = OperatorType[suffix]
    if kind not in _REGISTRY:
        from . import find

        with loading():
            find(f"{camel(suffix.lower())}OperatorDesc")  # else the whole registry
    found = _REGISTRY.get(kind)
    if found is None:
        raise NotImplementedError(f"DML_OPERATOR_{suffix} is not emulated.")
    return found


_REGISTRY: dict[OperatorType, type[OperatorDesc]] = {}


def camel(name: str) -> str:
    """``output_count_tensor`` -> ``OutputCountTensor``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


@dataclass_transform(frozen_default=True, kw_only_default=True)
class OperatorDesc(Frozen):
    """Base of every operator desc.  Subclasses are frozen, keyword-only dataclasses::

    class ElementWiseAddOperatorDesc(
        OperatorDesc, type=OperatorType.ELEMENT_WISE_ADD, introduced=..., support={...}, in_place=True
    ):
        a_tensor: BufferTensorDesc = base.input_tensor()
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
        super().__init_subclass__(kw_only=True, **kwargs)
        if type is None:  # a family's base class
            return
        cls.TYPE, cls.INTRODUCED, cls.SUPPORT, cls.IN_PLACE = type, introduced, support or {}, in_place
        _REGISTRY[type] = cls

    def __post_init__(self) -> None:
        """Arrays become tuples, so that descs never change; NumPy's numbers become Python's, which do not
        overflow; numbers of an enum become its members."""
        for item in operator_fields(type(self)):
            value = _plain(getattr(self, item.name))
            if item.kind in _ARRAYS or item.array:
                if isinstance(value, (list, tuple, range)) or (isinstance(value, np.ndarray) and value.ndim):
                    value = tuple(_plain(each) for each in value)
            elif item.enum is not None and not isinstance(value, Enum):
                with suppress(ValueError):  # the check refuses it later
                    value = item.enum(as_integer(value))  # type: ignore[arg-type]
            object.__setattr__(self, item.name, value)

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

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """The operator in plain NumPy: arrays by input field name -> arrays by output field name.

        Arrays have the logical shape (``Sizes``) and the NumPy type of their tensor; absent optional
        tensors are left out or None.
        """
        raise NotImplementedError


def is_operator_desc(value: object) -> bool:
    """Whether it describes an operator: the base classes describe none."""
    return isinstance(value, OperatorDesc) and hasattr(value, "TYPE")


def table_for(
    support: Mapping[FeatureLevel, Mapping[str, Allowed]], level: FeatureLevel
) -> Mapping[str, Allowed]:
    at_or_below = [known for known in support if known <= level]
    return support[max(at_or_below) if at_or_below else min(support)]


_ARRAYS = (FieldKind.UINT_ARRAY, FieldKind.INT_ARRAY, FieldKind.FLOAT_ARRAY)
_FIELDS: dict[type, tuple[Field, ...]] = {}


def operator_fields(cls: type[OperatorDesc]) -> tuple[Field, ...]:
    """The declared fields in C order, without the counts."""
    known = _FIELDS.get(cls)
    if known is None:
        declared = []
        for item in fields(cls):
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

    def inner(self, desc: OperatorDesc, field: str) -> Check:
        """The check of an operator desc that stands in a field of this one."""
        return Check(desc, self.level, self.operation, f"{self.path}{field}.")

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
    ) -> NoReturn:
        """Raises :class:`dmlemu.Error`.  ``field`` is the C path, ``rule`` the rule's id or text."""
        raise failure(
            id,
            message,
            api="DML",
            operation=self.operation,
            rule=f"{rule}: {self.struct}" if rule else self.struct,
            hresult=hresult,
            field=self.path + field,
            given=given,
            expected=expected,
            hint=hint,
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

    def _beside_first(
        self, names: Sequence[str]
    ) -> Iterator[tuple[tuple[str, BufferTensorDesc], tuple[str, BufferTensorDesc]]]:
        given = self._given(names)
        return ((given[0], other) for other in given[1:])

    def same_data_type(self, *names: str) -> None:
        for first, (c_name, tensor) in self._beside_first(names):
            if tensor.data_type != first[1].data_type:
                self.fail(
                    "TENSOR_DTYPE",
                    f"{c_name}.DataType",
                    f"{c_name}.DataType ({tensor.data_type.name}) differs from "
                    f"{first[0]}.DataType ({first[1].data_type.name}), but both need one type.",
                    given=tensor.data_type.name,
                    expected=first[1].data_type.name,
                )

    def same_rank(self, *names: str) -> None:
        for first, (c_name, tensor) in self._beside_first(names):
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
        for first, (c_name, tensor) in self._beside_first(names):
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

    # What follows from the declaration alone.

    def feature_level(self) -> None:
        """The operator exists on a device of this level."""
        introduced = self.desc.INTRODUCED
        if self.level < introduced:
            self.fail(
                "OP_FEATURE_LEVEL",
                "Type",
                f"DML_OPERATOR_{self.desc.TYPE.name} is newer than the device's feature level "
                f"({level_name(self.level)}).",
                given=f"feature level {level_name(self.level)}",
                expected=f"feature level {level_name(introduced)} or higher",
            )

    def attributes(self) -> None:
        """Every field that is no tensor holds a value its C type can hold; counted arrays agree."""
        counted: dict[str, Field] = {}
        for item in operator_fields(type(self.desc)):
            value = getattr(self.desc, item.name)
            if item.is_tensor or (value is None and item.optional):
                continue
            if item.kind in _ARRAYS:
                self._array(item, value)
                first = counted.setdefault(item.count, item)
                self._same_count(first, item)
            else:
                self._value(item.c_name, item, item.kind, value)

    def _array(self, item: Field, values: object) -> None:
        if not isinstance(values, tuple):
            self._refuse(item.c_name, values, "a sequence of numbers")
        element = {FieldKind.UINT_ARRAY: FieldKind.UINT, FieldKind.INT_ARRAY: FieldKind.INT}
        for i, value in enumerate(values):
            self._value(f"{item.c_name}[{i}]", item, element.get(item.kind, FieldKind.FLOAT), value)

    def _same_count(self, first: Field, item: Field) -> None:
        lengths = [len(getattr(self.desc, each.name)) for each in (first, item)]
        self.require(
            lengths[0] == lengths[1],
            "OP_FIELD_RANGE",
            item.c_name,
            f"{item.c_name} holds {lengths[1]} values and {first.c_name} {lengths[0]}, "
            f"but {item.count} counts both.",
            given=lengths[1],
            expected=lengths[0],
        )

    def _value(self, path: str, item: Field, kind: FieldKind, value: object) -> None:
        if kind is FieldKind.UINT and not _is_integer(value, 0, 2**32 - 1):
            self._refuse(path, value, "an integer from 0 to 4294967295")
        elif kind is FieldKind.INT and not _is_integer(value, -(2**31), 2**31 - 1):
            self._refuse(path, value, "an integer from -2147483648 to 2147483647")
        elif kind is FieldKind.BOOL and not _is_integer(value, 0, 1):
            self._refuse(path, value, "True or False")
        elif kind is FieldKind.FLOAT and not _is_float32(value):
            self._refuse(path, value, "a number that FLOAT can hold")
        elif kind is FieldKind.ENUM and item.enum is not None and not isinstance(value, item.enum):
            self._refuse(path, value, " or ".join(item.enum.__members__))
        elif kind is FieldKind.SCALE_BIAS:
            if not isinstance(value, ScaleBias):
                self._refuse(path, value, "a ScaleBias")
            self._value(f"{path}.Scale", item, FieldKind.FLOAT, value.scale)
            self._value(f"{path}.Bias", item, FieldKind.FLOAT, value.bias)
        elif kind is FieldKind.SCALAR_UNION and not isinstance(value, ScalarUnion):
            self._refuse(path, value, "a ScalarUnion")
        elif kind is FieldKind.OPERATOR_DESC and not is_operator_desc(value):
            self._refuse(path, value, "an operator desc")

    def _refuse(self, path: str, value: object, expected: str) -> NoReturn:
        given = quote(value)
        self.fail(
            "OP_FIELD_RANGE", path, f"{path} ({given}) is not {expected}.", given=given, expected=expected
        )

    def tensors(self) -> None:
        """Required tensors are there; ranks and data types are in the feature level's table."""
        table = self.desc.allowed(self.level)
        for item in operator_fields(type(self.desc)):
            if not item.is_tensor:
                continue
            value = getattr(self.desc, item.name)
            if value is None:
                if not item.optional:
                    self._missing(item)
            elif item.array:
                if not isinstance(value, tuple):
                    self._refuse(item.c_name, value, "a list of tensor descs")
                for i, tensor in enumerate(value):
                    self._in_table(f"{item.c_name}[{i}]", item.name, tensor, table)
            else:
                self._in_table(item.c_name, item.name, value, table)

    def _missing(self, item: Field) -> None:
        self.fail(
            "OP_OPTIONAL",
            item.c_name,
            f"{item.c_name} is missing; DML_OPERATOR_{self.desc.TYPE.name} requires it.",
            given="none",
            expected="a tensor desc",
            hint="only a fused activation leaves out its tensors" if item.fusable else "",
        )

    def _in_table(self, path: str, name: str, tensor: object, table: Mapping[str, Allowed]) -> None:
        if not isinstance(tensor, BufferTensorDesc):
            self._refuse(path, tensor, "a BufferTensorDesc")
        allowed = table[name]
        rank, data_type = len(tensor.sizes), tensor.data_type
        if not allowed.min_rank <= rank <= allowed.max_rank:
            ranks = str(allowed.min_rank)
            if allowed.max_rank > allowed.min_rank:
                ranks += f" to {allowed.max_rank}"
            self._outside_table(
                "TENSOR_RANK",
                f"{path}.DimensionCount",
                rank,
                ranks,
                lambda other: other[name].min_rank <= rank <= other[name].max_rank,
            )
        if data_type not in allowed.data_types:
            self._outside_table(
                "TENSOR_DTYPE",
                f"{path}.DataType",
                getattr(data_type, "name", data_type),
                ", ".join(known.name for known in sorted(allowed.data_types)),
                lambda other: data_type in other[name].data_types,
            )

    def _outside_table(
        self,
        id: str,
        field: str,
        given: object,
        expected: str,
        fits: Callable[[Mapping[str, Allowed]], bool],
    ) -> None:
        known = type(self.level)
        later = [level for level in known if level > self.level and fits(self.desc.allowed(level))]
        self.fail(
            id,
            field,
            f"{field} ({given}) is not allowed for DML_OPERATOR_{self.desc.TYPE.name} "
            f"at feature level {level_name(self.level)}.",
            given=given,
            expected=expected,
            hint=f"feature level {level_name(min(later))} allows it" if later else "",
        )


def check_operator(desc: OperatorDesc, level: FeatureLevel, operation: str) -> None:
    """All that an operator's declaration and rules demand, on a device of feature level ``level``.

    The tensor descs' own rules (sizes, strides, total size, alignment) are checked elsewhere and first.
    ``operation`` is the call that the report names.  Raises :class:`dmlemu.Error` (E_INVALIDARG).
    """
    check = Check(desc, level, operation)
    check.feature_level()
    check.attributes()
    check.tensors()
    desc.rules(check)


def level_name(level: FeatureLevel) -> str:
    """``LEVEL_4_1`` -> ``4_1``."""
    return level.name.removeprefix("LEVEL_")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_integer(value: object, low: int, high: int) -> bool:
    try:
        return low <= index(value) <= high  # type: ignore[arg-type]
    except Exception:  # whatever the value's own method raises
        return False


def _is_float32(value: object) -> bool:
    if not isinstance(value, (int, float)):
        return False
    return value != value or abs(value) <= _FLOAT32_MAX or abs(value) == inf


_FLOAT32_MAX = float(np.finfo(np.float32).max)
