"""IDMLDevice: creates and compiles operators, creates initializers, binding tables and recorders."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

from ..d3d12 import Device as D3D12Device
from ..d3d12.core.adapter import Adapter
from ..d3d12.core.events import Evicted
from ..d3d12.core.object import Object
from ..diagnostics.rule import error_of
from ..errors import Error, HResult, as_integer, loading, not_a, quote, spell, spell_object
from ..frozen import Frozen
from .binding.binding_table import BindingTable, BindingTableDesc
from .command_recorder import CommandRecorder
from .declared import declared
from .declared.definition import definition_class, definition_of, emulated
from .declared.desc_checks import check_operator
from .declared.schema import OperatorDesc, c_enum, is_operator_desc, tables
from .declared.validation import DescValidator
from .device_context import DeviceContext, removed_error
from .enums import CreateDeviceFlags, ExecutionFlags, Feature, FeatureLevel, TensorDataType
from .events import GraphCompiled, OperatorCreated
from .lowering.compile import Program
from .lowering.dispatchable import CompiledOperator, Dispatchable, Operator, OperatorInitializer
from .lowering.fields import tensor_fields
from .lowering.graph_structs import GraphDesc
from .object import check_own, not_implemented
from .rows import (
    DD1,
    DD2,
    DD5,
    DD7,
    OP_FIELD_RANGE,
    R2_6,
    DeviceCall,
)
from .tensor_desc import BufferTensorDesc, data_type_hint, spell_data_type

__all__ = [
    "Device",
    "FeatureDataFeatureLevels",
    "FeatureDataTensorDataTypeSupport",
    "FeatureQueryFeatureLevels",
    "FeatureQueryTensorDataTypeSupport",
    "create_device",
]

HIGHEST_FEATURE_LEVEL = max(FeatureLevel)
_EXECUTION_FLAGS = sum(ExecutionFlags)
_serials = itertools.count(1)
_T = TypeVar("_T")
_E = TypeVar("_E", bound=IntEnum)


class FeatureQueryTensorDataTypeSupport(Frozen):
    """Mirrors ``DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT``."""

    data_type: TensorDataType


class FeatureDataTensorDataTypeSupport(Frozen):
    """Mirrors ``DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT``."""

    is_supported: bool


class FeatureQueryFeatureLevels(Frozen):
    """Mirrors ``DML_FEATURE_QUERY_FEATURE_LEVELS``."""

    requested_feature_levels: Sequence[FeatureLevel]


class FeatureDataFeatureLevels(Frozen):
    """Mirrors ``DML_FEATURE_DATA_FEATURE_LEVELS``."""

    max_supported_feature_level: FeatureLevel


def create_device(
    d3d12_device: D3D12Device,
    flags: CreateDeviceFlags = CreateDeviceFlags.NONE,
    minimum_feature_level: FeatureLevel = FeatureLevel.LEVEL_1_0,
    *,
    feature_level: FeatureLevel = HIGHEST_FEATURE_LEVEL,
) -> Device:
    """A new DirectML device over a Direct3D 12 device; mirrors ``DMLCreateDevice1``.

    ``feature_level`` is the level of the emulated DirectML (on Windows, its version determines the
    level): operators, data types and ranks introduced later are rejected.  ``minimum_feature_level``
    is the level that the program requires.

    Raises :class:`dmlemu.Error`: DXGI_ERROR_UNSUPPORTED when the minimum is above ``feature_level``,
    DXGI_ERROR_SDK_COMPONENT_MISSING for the DEBUG flag below level 5_2 without the Direct3D debug
    layer (strictness ``runtime``), E_INVALIDARG for anything else that is wrong.
    """
    operation = "DMLCreateDevice1"
    if not isinstance(d3d12_device, D3D12Device):
        raise DD1.d3_d12_device(
            message=not_a("D3D12Device", d3d12_device, "is not a Direct3D 12 device"),
            given=spell_object(d3d12_device),
        )
    _check_flags(flags, int(CreateDeviceFlags.DEBUG), operation)
    level = _member(FeatureLevel, feature_level, "feature_level", operation)
    # A level unknown to this version is not an invalid argument, just unsupported.
    if not isinstance(minimum_feature_level, int):
        raise _wrong_type(
            minimum_feature_level,
            field="MinimumFeatureLevel",
            expected="a DML_FEATURE_LEVEL",
            operation=operation,
            rule="DD1",
            page=operation,
        )
    if minimum_feature_level > level:
        raise DD1.minimum_feature_level(
            given=_level(minimum_feature_level),
            expected=f"{level.name} or lower",
            level=level.name,
        )
    no_layer = not d3d12_device.context.has_layer
    if flags & CreateDeviceFlags.DEBUG and level < FeatureLevel.LEVEL_5_2 and no_layer:
        raise DD2.flags()
    if d3d12_device.get_device_removed_reason() != HResult.S_OK:
        raise removed_error(
            operation, "(the Direct3D 12 device was removed)", d3d12_device.context.removal_lines()
        )
    return Device(d3d12_device, CreateDeviceFlags(flags), level)


class Device(Object):
    """Mirrors ``IDMLDevice1``: not a singleton, thread-safe, keeps its Direct3D 12 device alive.

    An invalid call of a method that returns void raises :class:`dmlemu.Error` at strictness ``debug``
    and ``strict`` of the Direct3D device, which stays usable.  At ``runtime`` it puts this device into the
    removed state, as on Windows: from then on methods raise DXGI_ERROR_DEVICE_REMOVED, void methods do
    nothing, and :meth:`get_device_removed_reason` returns the reason.
    """

    kind = "DirectML device"

    def __init__(self, d3d12_device: D3D12Device, flags: CreateDeviceFlags, level: FeatureLevel) -> None:
        super().__init__()
        self.serial = next(_serials)
        self._d3d12_device = d3d12_device
        self.context = DeviceContext(self, d3d12_device, flags, level)

    @property
    def removed_by(self) -> Error | None:
        """The error that removed this device (strictness ``runtime``)."""
        return self.context.removed_by

    # --- feature support ---

    @property
    def feature_level(self) -> FeatureLevel:
        """The emulated feature level."""
        return self.context.level

    def check_feature_support(
        self, feature: Feature, query: FeatureQueryTensorDataTypeSupport | FeatureQueryFeatureLevels
    ) -> FeatureDataTensorDataTypeSupport | FeatureDataFeatureLevels:
        """Answers a query struct with the data struct of the same feature.

        Mirrors ``IDMLDevice::CheckFeatureSupport``.  Raises DXGI_ERROR_UNSUPPORTED for an unknown
        feature and when no requested level is supported, E_INVALIDARG for the wrong struct.
        """
        operation = "CheckFeatureSupport"
        self.context.check_alive(operation)
        number = as_integer(feature)
        if number is None or number not in list(Feature):
            raise self._unsupported(
                operation, "Feature", feature, "TENSOR_DATA_TYPE_SUPPORT or FEATURE_LEVELS"
            )
        if number == Feature.TENSOR_DATA_TYPE_SUPPORT:
            asked = self._query(query, FeatureQueryTensorDataTypeSupport, operation)
            data_type = _member(TensorDataType, asked.data_type, "DataType", operation)
            return FeatureDataTensorDataTypeSupport(self._supports(data_type))
        levels = self._query(query, FeatureQueryFeatureLevels, operation).requested_feature_levels
        if not isinstance(levels, (list, tuple)) or not levels:
            raise DD5.requested_feature_levels(given=quote(levels))
        asked_for = {as_integer(level) for level in levels}
        known = [level for level in FeatureLevel if level in asked_for and level <= self.context.level]
        if not known:
            expected = f"a level up to {self.context.level.name}"
            raise self._unsupported(operation, "RequestedFeatureLevels", list(levels), expected)
        return FeatureDataFeatureLevels(max(known))

    def _query(self, query: object, kind: type[_T], operation: str) -> _T:
        if not isinstance(query, kind):
            raise _wrong_type(
                query,
                field="FeatureQueryData",
                expected=f"a {kind.__name__}",
                operation=operation,
                rule="DD5",
                page=f"IDMLDevice::{operation}",
            )
        return query

    def _unsupported(self, operation: str, field: str, given: object, expected: str) -> Error:
        return DD5.feature_level(field=field, given=given, expected=expected, operation=operation)

    def _supports(self, data_type: TensorDataType) -> bool:
        """Whether some operator of this level supports tensors of the type."""
        return any(
            data_type in allowed.data_types
            for operator in emulated()
            for level, table in tables(declared()[operator]).items()
            if level <= self.context.level
            for allowed in table.values()
        )

    # --- operators ---

    def create_operator(self, desc: OperatorDesc) -> Operator:
        """Checks an operator desc and keeps a copy; mirrors ``IDMLDevice::CreateOperator``.

        Raises :class:`dmlemu.Error`: E_INVALIDARG, with the field's path, for a tensor, shape, type or
        level that the operator does not allow; E_NOTIMPL for an operator that is not emulated.
        """
        self.context.check_alive("CreateOperator")
        if not is_operator_desc(desc):
            raise _wrong_type(
                desc,
                field="Desc",
                expected="an operator desc",
                operation="CreateOperator",
                rule="TN1",
                page="IDMLDevice::CreateOperator",
            )
        operation = f"CreateOperator(DML_OPERATOR_{desc.TYPE.name})"
        try:
            check_desc(desc, self.context.level, operation)
            _check_limit(desc, self.context.d3d12.adapter, operation)
            program = Program(tensor_fields(desc))
            definition_of(desc).lower(program)
        except NotImplementedError as reason:
            what = f"DML_OPERATOR_{desc.TYPE.name}"
            raise not_implemented(operation, what, hint=str(reason)) from None
        operator = Operator(self.context, desc, program)
        self.context.emit(OperatorCreated(operator))
        return operator

    def compile_operator(self, op: Operator, flags: ExecutionFlags = ExecutionFlags.NONE) -> CompiledOperator:
        """Compiles an operator into a dispatchable; mirrors ``IDMLDevice::CompileOperator``.

        ALLOW_HALF_PRECISION_COMPUTATION has no effect.  With DISABLE_META_COMMANDS, or the environment
        variable DMLEMU_FUSION=off, a fused activation runs after its operator and not on pieces of its
        output; results have the same bits.  Raises E_INVALIDARG for unknown flags and for operators of
        another device.
        """
        operation = "CompileOperator"
        self.context.check_alive(operation)
        if not isinstance(op, Operator):
            raise _wrong_type(
                op,
                field="Operator",
                expected="an operator",
                operation=operation,
                rule="2.6",
                page=f"IDMLDevice::{operation}",
            )
        check_own(self.context, op, "Operator", operation)
        _check_flags(flags, _EXECUTION_FLAGS, operation)
        return CompiledOperator(
            self.context,
            op.program,
            ExecutionFlags(flags),
            type_name=op.type_name,
            in_place=op.desc.IN_PLACE,
            operator=op,
        )

    def compile_graph(self, desc: GraphDesc, flags: ExecutionFlags = ExecutionFlags.NONE) -> CompiledOperator:
        """Compiles a graph of operators into one dispatchable; mirrors ``IDMLDevice1::CompileGraph``.

        The result has InputCount inputs and OutputCount outputs, does not refer to ``desc`` and needs its
        own initialization.  Connected tensors pass raw bytes: their sizes, strides and types may differ,
        their TotalTensorSizeInBytes must not.  An input without edges may be bound or NONE.  Outputs must
        not be bound to the same bytes as inputs.  Tensors between nodes share the temporary resource where
        they are not needed at once; copies that change nothing are left out, unless ``flags`` has
        DISABLE_META_COMMANDS.  Element-wise nodes after a convolution or GEMM run on pieces of its
        output, unless that flag is given or the environment variable DMLEMU_FUSION is ``off``.  The results
        have the same bits.

        Raises :class:`dmlemu.Error`: E_INVALIDARG, with the field's path, for a graph that violates a rule
        (GR1 to GR6); E_OUTOFMEMORY when its resources are larger than any buffer; E_NOINTERFACE below
        feature level 2_1.
        """
        with loading():
            from .lowering.fusion import may_fuse
            from .lowering.graph import lower_graph
            from .lowering.graph_checks import check_graph

        operation = "CompileGraph"
        self.context.check_alive(operation)
        if self.context.level < FeatureLevel.LEVEL_2_1:
            raise DeviceCall.feature_level(given=self.context.level.name, operation=operation)
        _check_flags(flags, _EXECUTION_FLAGS, operation)
        graph = check_graph(self.context, desc)
        count = len(graph.nodes)
        compiled = CompiledOperator(
            self.context,
            lower_graph(
                graph,
                optimized=not flags & ExecutionFlags.DISABLE_META_COMMANDS,
                fused=may_fuse(flags),
            ),
            ExecutionFlags(flags),
            type_name=f"graph of {count} node{'s' * (count != 1)}",
            in_place=False,
            operator=None,
        )
        self.context.emit(GraphCompiled(desc, graph, compiled))
        return compiled

    def create_operator_initializer(
        self, compiled_operators: Sequence[CompiledOperator] = ()
    ) -> OperatorInitializer:
        """An initializer of any number of compiled operators.

        Mirrors ``IDMLDevice::CreateOperatorInitializer``.  Raises E_INVALIDARG for anything but
        compiled operators of this device.
        """
        self.context.check_alive("CreateOperatorInitializer")
        return OperatorInitializer(self.context, compiled_operators)

    # --- dispatching ---

    def create_binding_table(self, desc: BindingTableDesc | None = None) -> BindingTable:
        """A table over a range of descriptors; without a desc it is empty until its ``reset``.

        Mirrors ``IDMLDevice::CreateBindingTable``.  Raises E_INVALIDARG when the range is too small,
        is not in a descriptor heap, or its GPU handle is not shader-visible.
        """
        self.context.check_alive("CreateBindingTable")
        return BindingTable(self.context, desc)

    def create_command_recorder(self) -> CommandRecorder:
        """Mirrors ``IDMLDevice::CreateCommandRecorder``."""
        self.context.check_alive("CreateCommandRecorder")
        return CommandRecorder(self.context)

    # --- residency ---

    def make_resident(self, pageables: Sequence[Dispatchable]) -> None:
        """Increments each object's residency count; mirrors ``IDMLDevice::MakeResident``.

        Raises E_INVALIDARG for anything but compiled operators and initializers of this device.
        """
        self._page(pageables, +1, "MakeResident")

    def evict(self, pageables: Sequence[Dispatchable]) -> None:
        """Decrements the count; an object is resident while its count is positive (initially 1).

        Mirrors ``IDMLDevice::Evict``.  Raises E_INVALIDARG as :meth:`make_resident`, and for an object
        that is not resident.
        """
        self._page(pageables, -1, "Evict")

    def _page(self, pageables: Sequence[Dispatchable], step: int, operation: str) -> None:
        self.context.check_alive(operation)
        if not isinstance(pageables, (list, tuple)):
            raise _wrong_type(
                pageables,
                field="Objects",
                expected="a list of objects",
                operation=operation,
                rule="DD7",
                page=f"IDMLDevice::{operation}",
            )
        for i, item in enumerate(pageables):
            field = f"Objects[{i}]"
            if not isinstance(item, Dispatchable):
                raise _wrong_type(
                    item,
                    field=field,
                    expected="a compiled operator or an operator initializer",
                    operation=operation,
                    rule="DD7",
                    page=f"IDMLDevice::{operation}",
                )
            check_own(self.context, item, field, operation)
        for item, times in Counter(pageables).items():
            if item.residency + step * times < 0:
                raise DD7.field_range(
                    field=f"Objects[{pageables.index(item)}]",
                    given=f"{item.title()}, evicted before",
                    page=f"IDMLDevice::{operation}",
                    operation=operation,
                )
        here = self.context.d3d12.here()
        for item in pageables:
            item.residency += step
            item.evicted_at = here
        gone = (item for item in dict.fromkeys(pageables) if item.residency == 0)
        self.context.d3d12.emit(*map(Evicted, gone))

    # --- removal ---

    def get_device_removed_reason(self) -> HResult:
        """S_OK, or the reason of the device removal; mirrors ``IDMLDevice::GetDeviceRemovedReason``.

        Removal of the Direct3D 12 device removes this device, but not vice versa.
        """
        return self.context.removed_reason

    def get_parent_device(self) -> D3D12Device:
        """The Direct3D 12 device; mirrors ``IDMLDevice::GetParentDevice``."""
        return self._d3d12_device


def check_desc(desc: OperatorDesc, level: FeatureLevel, operation: str) -> None:
    """All rules of an operator desc: the level, its tensors' layouts, then the operator's own."""
    check = DescValidator(desc, level, operation)
    check.feature_level()
    for field in tensor_fields(desc):
        if isinstance(field.desc, BufferTensorDesc):
            field.desc.check(field.path, operation, level, output=field.output)
    check_operator(desc, level, operation)


def _check_limit(desc: OperatorDesc, adapter: Adapter, operation: str) -> None:
    """Rejects tensors that the adapter does not support."""
    definition = definition_class(desc.TYPE)
    limit = None if definition is None else definition.largest_leading_size(adapter)
    if limit is None:
        return
    for field in tensor_fields(desc):
        for i, size in enumerate(() if field.desc is None else field.desc.sizes[:-2]):
            if size > limit:
                path = f"{field.path}.Sizes[{i}]"
                raise DeviceCall.limit(
                    field=path,
                    given=size,
                    expected=f"<= {limit}",
                    page="D3D12_CS_DISPATCH_MAX_THREAD_GROUPS_PER_DIMENSION",
                    operation=operation,
                    limit=limit,
                )


def _wrong_type(
    value: object,
    *,
    field: str,
    expected: str,
    operation: str,
    rule: str = "",
    page: str = "",
    hint: str = "",
) -> Error:
    """The error of an argument of the wrong type."""
    return error_of(
        OP_FIELD_RANGE,
        not_a(field, value, f"is not {expected}"),
        field=field,
        given=spell_object(value),
        expected=expected,
        operation=operation,
        rule=": ".join(filter(None, (rule, page))),
        hint=hint,
        api="DML",
    )


def _member(enum: type[_E], value: object, field: str, operation: str) -> _E:
    try:
        return enum(as_integer(value))  # type: ignore[arg-type]
    except ValueError:
        raise DeviceCall.field_range(
            field=field,
            given=spell_data_type(value),
            expected=f"a {c_enum(enum)}",
            hint=data_type_hint(value) if enum is TensorDataType else "",
            page=operation if operation.startswith("DML") else f"IDMLDevice::{operation}",
            operation=operation,
        ) from None


def _check_flags(flags: object, known: int, operation: str) -> None:
    if not isinstance(flags, int) or isinstance(flags, bool) or flags & ~known:
        raise (
            R2_6.flags(given=quote(flags), expected=f"bits of 0x{known:X}", operation=operation)
            if known != 1
            else DD1.flags(
                given=quote(flags),
                expected=f"bits of 0x{known:X}",
                page="DML_CREATE_DEVICE_FLAGS",
                operation=operation,
            )
        )


def _level(value: int) -> str:
    return value.name if isinstance(value, FeatureLevel) else spell(value)
