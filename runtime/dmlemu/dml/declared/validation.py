"""Checks of an operator desc against its declaration and its definition's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...diagnostics import spelling
from ...diagnostics.declaration import Declaration
from ...diagnostics.rule import error_of
from ...errors import HResult, quote
from ..enums import FeatureLevel, TensorDataType
from ..rows import OP_FEATURE_LEVEL, OP_FIELD_RANGE, OP_OPTIONAL, TENSOR_DTYPE, TENSOR_RANK
from ..structs import ScalarUnion, ScaleBias, Size2D
from ..tensor_desc import BufferTensorDesc, data_type_hint, spell_data_type
from .schema import (
    ARRAYS,
    Allowed,
    Field,
    FieldKind,
    OperatorDesc,
    is_operator_desc,
    level_name,
    other_items,
    tensor_items,
)

if TYPE_CHECKING:
    from .rules import Demand

__all__ = ["DescValidator"]


class DescValidator:
    """Raises on the first violated rule, with the path of its field.

    ``path`` is put before every field (a fused activation is checked as ``FusedActivation.``).
    """

    def __init__(self, desc: OperatorDesc, level: FeatureLevel, operation: str, path: str = "") -> None:
        self.desc = desc
        self.level = level
        self.operation = operation
        self.path = path

    def inner(self, desc: OperatorDesc, field: str) -> DescValidator:
        """The check of an operator desc nested in a field of this one."""
        return DescValidator(desc, self.level, self.operation, f"{self.path}{field}.")

    @property
    def struct(self) -> str:
        return f"DML_{self.desc.TYPE.name}_OPERATOR_DESC"

    def fail(
        self,
        id: Declaration,
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
        raise error_of(
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

    def require(self, condition: bool, id: Declaration, field: str, message: str, **details: Any) -> None:
        if not condition:
            self.fail(id, field, message, **details)

    def refuse(self, demand: Demand) -> NoReturn:
        """Raises for a demand of a rule that the desc violates."""
        place = demand.place
        DescValidator(place.struct(self.desc), self.level, self.operation).fail(
            demand.check or place.check,
            place.path(self.desc),
            demand.message(self.desc),
            given=demand.value(self.desc) if demand.given is None else demand.given,
            expected=demand.expected or demand.allowed.expected,
            rule=demand.rule,
            hint=demand.hint,
        )

    # Checks by the declaration alone.

    def feature_level(self) -> None:
        """Checks that the operator exists at the device's feature level."""
        introduced = self.desc.INTRODUCED
        if self.level < introduced:
            self.fail(
                OP_FEATURE_LEVEL,
                "Type",
                f"DML_OPERATOR_{self.desc.TYPE.name} is newer than the device's feature level "
                f"({level_name(self.level)}).",
                given=f"feature level {level_name(self.level)}",
                expected=f"feature level {level_name(introduced)} or higher",
            )

    def attributes(self) -> None:
        """Checks that non-tensor fields fit their C types and that arrays with one count have one length."""
        counted: dict[str, Field] = {}
        for item in other_items(type(self.desc)):
            value = getattr(self.desc, item.name)
            if value is None and item.optional:
                continue
            if item.kind in ARRAYS:
                self._array(item, value)
                first = counted.setdefault(item.count, item)
                self._same_count(first, item)
            else:
                self._value(item.c_name, item, item.kind, value)

    def _array(self, item: Field, values: object) -> None:
        if not isinstance(values, tuple):
            self._refuse(item.c_name, values, "a sequence of numbers")
        if item.kind is FieldKind.UINT_ARRAY and all(
            type(each) is int and 0 <= each < 2**32 for each in values
        ):
            return  # nearly always
        element = {FieldKind.UINT_ARRAY: FieldKind.UINT, FieldKind.INT_ARRAY: FieldKind.INT}
        for i, value in enumerate(values):
            self._value(f"{item.c_name}[{i}]", item, element.get(item.kind, FieldKind.FLOAT), value)

    def _same_count(self, first: Field, item: Field) -> None:
        lengths = [len(getattr(self.desc, each.name)) for each in (first, item)]
        if lengths[0] != lengths[1]:
            self.fail(
                OP_FIELD_RANGE,
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
            self._refuse(path, value, " or ".join(reversed(spelling.words.truth)))
        elif kind is FieldKind.FLOAT and not _is_float32(value):
            self._refuse(path, value, "a number that FLOAT can hold")
        elif kind is FieldKind.ENUM and item.enum is not None and not isinstance(value, item.enum):
            if item.enum is TensorDataType:
                self._refuse(path, value, "a DML_TENSOR_DATA_TYPE", data_type_hint(value))
            self._refuse(path, value, " or ".join(item.enum.__members__))
        elif kind is FieldKind.SCALE_BIAS:
            if not isinstance(value, ScaleBias):
                self._refuse(path, value, "a DML_SCALE_BIAS")
            self._value(f"{path}.Scale", item, FieldKind.FLOAT, value.scale)
            self._value(f"{path}.Bias", item, FieldKind.FLOAT, value.bias)
        elif kind is FieldKind.SIZE_2D:
            if not isinstance(value, Size2D):
                self._refuse(path, value, "a DML_SIZE_2D")
            self._value(f"{path}.Width", item, FieldKind.UINT, value.width)
            self._value(f"{path}.Height", item, FieldKind.UINT, value.height)
        elif kind is FieldKind.SCALAR_UNION and not isinstance(value, ScalarUnion):
            self._refuse(path, value, "a DML_SCALAR_UNION")
        elif kind is FieldKind.OPERATOR_DESC:
            self._operator_descs(path, item, value)

    def _operator_descs(self, path: str, item: Field, value: object) -> None:
        if item.array and not isinstance(value, tuple):
            self._refuse(path, value, "a sequence of operator descs")
        each = enumerate(value) if isinstance(value, tuple) else ()
        for name, desc in [(f"{path}[{i}]", desc) for i, desc in each] if item.array else [(path, value)]:
            if not is_operator_desc(desc):
                self._refuse(name, desc, "an operator desc")
            assert isinstance(desc, OperatorDesc)
            self.inner(desc, name).attributes()

    def _refuse(self, path: str, value: object, expected: str, hint: str = "") -> NoReturn:
        given = spell_data_type(value) if hint else quote(value)
        message = f"{path} ({given}) is not {expected}."
        self.fail(OP_FIELD_RANGE, path, message, given=given, expected=expected, hint=hint)

    def tensors(self) -> None:
        """Checks that required tensors are present, with ranks and data types of the level's table."""
        table = self.desc.allowed(self.level)
        for item in tensor_items(type(self.desc)):
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
            OP_OPTIONAL,
            item.c_name,
            f"{item.c_name} is missing; DML_OPERATOR_{self.desc.TYPE.name} requires it.",
            given="none",
            expected="a tensor desc",
            hint="only a fused activation leaves out its tensors" if item.fusable else "",
        )

    def _in_table(self, path: str, name: str, tensor: object, table: Mapping[str, Allowed]) -> None:
        if not isinstance(tensor, BufferTensorDesc):
            self._refuse(path, tensor, "a DML_BUFFER_TENSOR_DESC")
        allowed = table[name]
        rank, data_type = len(tensor.sizes), tensor.data_type
        if not allowed.min_rank <= rank <= allowed.max_rank:
            ranks = str(allowed.min_rank)
            if allowed.max_rank > allowed.min_rank:
                ranks += f" to {allowed.max_rank}"
            self._outside_table(
                TENSOR_RANK,
                f"{path}.DimensionCount",
                rank,
                ranks,
                lambda other: other[name].min_rank <= rank <= other[name].max_rank,
            )
        if data_type not in allowed.data_types:
            self._outside_table(
                TENSOR_DTYPE,
                f"{path}.DataType",
                getattr(data_type, "name", data_type),
                ", ".join(known.name for known in sorted(allowed.data_types)),
                lambda other: data_type in other[name].data_types,
            )

    def _outside_table(
        self,
        id: Declaration,
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


def _is_integer(value: object, low: int, high: int) -> bool:
    try:
        return low <= index(value) <= high  # type: ignore[arg-type]
    except Exception:  # any exception of the value's own method
        return False


def _is_float32(value: object) -> bool:
    if not isinstance(value, (int, float)):
        return False
    return value != value or abs(value) <= _FLOAT32_MAX or abs(value) == inf


_FLOAT32_MAX = float(np.finfo(np.float32).max)
