"""Binding validation: the requirements on a buffer bound to a slot (BT5 to BT12, TN7, DD4)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...d3d12 import HeapType, MessageId, Resource, ResourceFlags
from ...d3d12.core.rows import BIND_FOREIGN_DEVICE, OBJECT_DELETED_IN_USE
from ...d3d12.lists.rows import BIND_RANGE
from ...d3d12.memory.declared import named
from ...diagnostics.declaration import Declaration
from ...errors import Error, as_integer, not_a, quote, spell, spell_object
from ..enums import BindingType, FeatureLevel
from ..lowering.dispatchable import Dispatchable, OperatorInitializer, Role, Slot
from ..object import refusal
from ..rows import BIND_PERSISTENT_MISSING, BIND_TEMP_MISSING, BIND_TYPE
from ..structs import Binding, BindingDesc, BufferArrayBinding, BufferBinding
from ..tensor_desc import MINIMUM_BUFFER_TENSOR_ALIGNMENT
from .rows import (
    BIND_COUNT,
    BIND_HEAP_TYPE,
    BIND_NOT_UAV,
    BIND_OFFSET_ALIGN,
    BIND_OWNED_BY_DML,
    BIND_PERSISTENT_SMALL,
    BIND_SIZE_SMALL,
    BIND_TEMP_SMALL,
)

if TYPE_CHECKING:
    from ..device_context import DeviceContext

__all__ = ["METHODS", "Bound", "as_desc", "counted", "find_bound", "group", "page_of"]

METHODS = {
    Role.INPUT: "BindInputs",
    Role.OUTPUT: "BindOutputs",
    Role.TEMPORARY: "BindTemporaryResource",
    Role.PERSISTENT: "BindPersistentResource",
}

_NO_RESOURCE = MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE

_ALLOW_UAV = int(ResourceFlags.ALLOW_UNORDERED_ACCESS)  # & of members of enums takes a microsecond
_SHOWN = 12  # most bindings listed in a message

_MISSING = {Role.TEMPORARY: BIND_TEMP_MISSING, Role.PERSISTENT: BIND_PERSISTENT_MISSING}
_TOO_SMALL = {Role.TEMPORARY: BIND_TEMP_SMALL, Role.PERSISTENT: BIND_PERSISTENT_SMALL}
_RULES = {Role.INPUT: "BT8", Role.OUTPUT: "BT8", Role.TEMPORARY: "BT11", Role.PERSISTENT: "BT12"}


class Bound(NamedTuple):
    """A buffer bound to a slot; ``size`` is SizeInBytes, ``address`` the GPU's and ``host`` the host's
    address of its first byte (placed resources that are aliased have one host address)."""

    slot: Slot
    resource: Resource
    offset: int
    size: int
    address: int
    host: int

    @property
    def read_only(self) -> bool:
        """The buffer cannot be a UAV: an initializer's input in an upload heap."""
        return not self.resource.flags & _ALLOW_UAV

    def __str__(self) -> str:
        holds = named(self.resource.declared, self.offset, self.offset + self.slot.size)
        return f"{self.slot.path} ({self.range} of {self.resource}{holds})"

    @property
    def range(self) -> str:
        """``bytes [16, 32)``: the bytes of its buffer that are used."""
        return f"bytes [{self.offset}, {self.offset + self.slot.size})"


def page_of(role: Role) -> str:
    """The documentation page of the bind method for the role."""
    return f"IDMLBindingTable::{METHODS[role]}"


def counted(
    dispatchable: Dispatchable, role: Role, bindings: Sequence[Binding] | None, count: int
) -> list[BindingDesc]:
    """The bindings as descs; raises if their number differs from the dispatchable's slots."""
    given = _as_list(dispatchable, role, "Bindings", () if bindings is None else bindings)
    if len(given) != count:
        which = "one per operator" if dispatchable.grouped else "optional tensors included"
        raise refusal(
            BIND_COUNT,
            (
                f"BindingCount ({len(given)}) differs from the {count} {role.value}{'s' * (count != 1)} of "
                f"{dispatchable.title()}, {which}."
            ),
            field="BindingCount",
            given=len(given),
            expected=count,
            object=dispatchable,
            context=_in_order(dispatchable, role),
            operation=METHODS[role],
            rule="BT5" if given else "BT16",
            page=page_of(role),
        )
    return [as_desc(dispatchable, role, f"Bindings[{i}]", binding) for i, binding in enumerate(given)]


def _in_order(dispatchable: Dispatchable, role: Role) -> tuple[str, ...]:
    """The expected bindings in order, if there are few enough to list."""
    slots = dispatchable.outputs
    if role is Role.INPUT:
        slots = () if dispatchable.grouped else tuple(slot for slot, *_ in dispatchable.inputs)
    if not 0 < len(slots) <= _SHOWN:
        return ()
    names = (f"{slot.path} (NONE: it {slot.absent})" if slot.absent else slot.path for slot in slots)
    return (f"Expected, in this order: {', '.join(names)}",)


def _as_list(dispatchable: Dispatchable, role: Role, path: str, given: object) -> Sequence[object]:
    if isinstance(given, (list, tuple)):
        return given
    raise refusal(
        BIND_TYPE,
        not_a(path, given, "is not a list of bindings"),
        field=path,
        given=spell_object(given),
        expected="a list of bindings",
        object=dispatchable,
        operation=METHODS[role],
        rule="BT5",
        page=page_of(role),
    )


def as_desc(dispatchable: Dispatchable, role: Role, path: str, binding: object) -> BindingDesc:
    """The desc that ``binding`` is or abbreviates."""
    if isinstance(binding, BindingDesc):
        if _fits(binding.type, binding.desc):
            return binding
        given = f"{spell(binding.type)} with {spell_object(binding.desc)}"
    elif isinstance(binding, BufferBinding):
        return BindingDesc(BindingType.BUFFER, binding)
    elif isinstance(binding, BufferArrayBinding):
        return BindingDesc(BindingType.BUFFER_ARRAY, binding)
    elif binding is None:
        return BindingDesc.none()
    else:
        given = spell_object(binding)
    raise refusal(
        BIND_TYPE,
        "{field} ({given}) is not a binding.",
        field=path,
        given=given,
        expected="a BindingDesc, BufferBinding, BufferArrayBinding or None",
        object=dispatchable,
        operation=METHODS[role],
        rule="BT6",
        page=page_of(role),
    )


def _fits(kind: object, desc: object) -> bool:
    """Whether the desc is what a binding of this type has."""
    if kind is BindingType.BUFFER:
        return isinstance(desc, BufferBinding)
    if kind is BindingType.NONE:
        return desc is None
    return kind is BindingType.BUFFER_ARRAY and isinstance(desc, BufferArrayBinding)


def group(
    dispatchable: Dispatchable, index: int, slots: Sequence[Slot], desc: BindingDesc
) -> list[tuple[Slot, BindingDesc]]:
    """The bindings of one operator's inputs, from the BUFFER_ARRAY bound to its initializer."""
    path, role = f"Bindings[{index}]", Role.INPUT
    array: Sequence[object] = ()
    if isinstance(desc.desc, BufferArrayBinding):
        array = _as_list(dispatchable, role, f"{path}.Bindings", desc.desc.bindings)
    elif desc.desc is not None:
        raise refusal(
            BIND_TYPE,
            (
                f"{path} is a DML_BINDING_TYPE_BUFFER, but an initializer takes one "
                "DML_BINDING_TYPE_BUFFER_ARRAY per operator."
            ),
            field=f"{path}.Type",
            given="BUFFER",
            expected="BUFFER_ARRAY or NONE",
            object=dispatchable,
            operation=METHODS[role],
            rule="BT6",
            page=page_of(role),
        )
    if len(array) not in (0, len(slots)):
        raise refusal(
            BIND_COUNT,
            (
                f"{path} has {len(array)} buffers, but the operator has {len(slots)} inputs, "
                "absent ones included."
            ),
            field=f"{path}.BindingCount",
            given=len(array),
            expected=len(slots),
            object=dispatchable,
            operation=METHODS[role],
            rule="BT5",
            page=page_of(role),
        )
    found = []
    for slot, entry in zip(slots, array or [None] * len(slots), strict=True):
        if isinstance(entry, BufferBinding) and entry.buffer is None:
            entry = None
        found.append((slot, as_desc(dispatchable, role, slot.path, entry)))
    return found


def find_bound(
    context: DeviceContext, dispatchable: Dispatchable, slot: Slot, desc: BindingDesc
) -> Bound | None:
    """The buffer that ``desc`` binds to the slot; None for NONE."""
    binding = desc.desc
    if desc.type is BindingType.NONE and (slot.absent or slot.optional):
        return None
    if type(binding) is BufferBinding and not slot.absent and _is_plain(context, slot, binding):
        resource, offset, size = binding.buffer, binding.offset, binding.size_in_bytes
        assert resource is not None and size is not None
        allocation = resource.allocation
        return Bound(slot, resource, offset, size, allocation.address + offset, allocation.host + offset)
    return SlotCheck(context, dispatchable, slot).find(desc)


def _is_plain(context: DeviceContext, slot: Slot, binding: BufferBinding) -> bool:
    """Whether a binding is as nearly all are, and passes every check of :class:`SlotCheck`."""
    resource, offset, size = binding.buffer, binding.offset, binding.size_in_bytes
    return (
        isinstance(resource, Resource)
        and resource.context is context.d3d12
        and not resource.released
        and resource.heap_type is HeapType.DEFAULT
        and resource.flags & _ALLOW_UAV != 0
        and type(offset) is int
        and type(size) is int
        and not offset % slot.alignment
        and offset >= 0
        and slot.size <= size <= resource.width - offset
    )


class SlotCheck:
    """The checks of one binding."""

    def __init__(self, context: DeviceContext, dispatchable: Dispatchable, slot: Slot) -> None:
        self.context, self.dispatchable, self.slot = context, dispatchable, slot

    @property
    def rule(self) -> str:
        """The rule of the slot's role."""
        return _RULES[self.slot.role]

    @property
    def refused(self) -> partial[Error]:
        """:func:`refusal` with the bind method as operation."""
        role = self.slot.role
        return partial(refusal, operation=METHODS[role], page=page_of(role), object=self.dispatchable)

    def find(self, desc: BindingDesc) -> Bound:
        """The buffer that ``desc`` binds."""
        slot = self.slot
        if slot.absent:
            kind = desc.type.name
            owned = "OWNED_BY_DML" in slot.absent
            what = f"is bound as DML_BINDING_TYPE_{kind}, but it {slot.absent}"
            raise self.refused(
                BIND_OWNED_BY_DML if owned else BIND_TYPE,
                f"{self._title()} {what}.",
                field=self.slot.path,
                given=kind,
                expected="NONE",
                hint="bind DML_BINDING_TYPE_NONE",
                rule="BT7" if owned else self._type_rule(),
            )
        if not isinstance(desc.desc, BufferBinding):
            why, kind = " is OWNED_BY_DML and" if self._is_owned() else "", desc.type.name
            what = f"is bound as DML_BINDING_TYPE_{kind}, but it{why} needs a buffer of {slot.size} bytes"
            raise self.refused(
                self._missing(),
                f"{self._title()} {what}.",
                field=self.slot.path,
                given=kind,
                expected="BUFFER",
                rule=self._type_rule(),
            )
        resource = self._resource(desc.desc.buffer)
        offset, size = self._range(desc.desc, resource)
        allocation = resource.allocation
        return Bound(slot, resource, offset, size, allocation.address + offset, allocation.host + offset)

    def _missing(self) -> Declaration:
        """The check that a missing binding of the slot violates."""
        if self._is_owned():
            return BIND_OWNED_BY_DML
        return _MISSING.get(self.slot.role, BIND_TYPE)

    def _type_rule(self) -> str:
        if self._is_owned():
            return "BT7"
        return "BT6" if self.slot.role in (Role.INPUT, Role.OUTPUT) else self.rule

    def _is_owned(self) -> bool:
        """An input at initialization: only OWNED_BY_DML tensors are bound there."""
        return self.slot.role is Role.INPUT and isinstance(self.dispatchable, OperatorInitializer)

    def _resource(self, resource: object) -> Resource:
        """Device, lifetime, heap type and UAV flag."""
        if not isinstance(resource, Resource):
            given = spell_object(resource)
            raise self.refused(
                BIND_TYPE,
                f"{self._title()} is bound to Buffer ({given}).",
                field=f"{self.slot.path}.Buffer",
                given=given,
                expected="a resource",
                rule=self.rule,
            )
        if resource.released:
            what = f"is bound to {resource}, which was released"
            raise self.refused(
                OBJECT_DELETED_IN_USE,
                f"{self._title()} {what}.",
                field=f"{self.slot.path}.Buffer",
                given="a released resource",
                expected="a live one",
                rule="BT13",
            )
        parent = self.context.d3d12
        if resource.context is not parent:
            what = f"is bound to {resource} of another Direct3D 12 device"
            raise self.refused(
                BIND_FOREIGN_DEVICE,
                f"{self._title()} {what}.",
                field=f"{self.slot.path}.Buffer",
                given=resource.context,
                expected=parent,
                rule="DD4",
            )
        # BT9 does not apply to reserved buffers, which have no heap type: their tiles may lie in any heap,
        # CPU-visible ones included, and are mapped when the queue executes the mapping.
        heap = resource.heap_type or HeapType.DEFAULT
        if heap is not HeapType.DEFAULT and heap not in self._heap_types():
            expected = " or ".join(kind.name for kind in self._heap_types())
            demand = f"DirectML requires bound buffers to be in a heap of type {expected}"
            what = f"is bound to {resource} in a heap of type {heap.name}; {demand}"
            raise self.refused(
                BIND_HEAP_TYPE,
                f"{self._title()} {what}.",
                field=f"{self.slot.path}.Buffer",
                given=heap.name,
                expected=expected,
                rule="BT9",
            )
        # A buffer in an upload heap cannot be a UAV; an initializer may read it nevertheless.
        if heap is HeapType.DEFAULT and not resource.flags & _ALLOW_UAV:
            what = f"is bound to {resource}, which was created without ALLOW_UNORDERED_ACCESS"
            raise self.refused(
                BIND_NOT_UAV,
                f"{self._title()} {what}.",
                field=f"{self.slot.path}.Buffer",
                given=resource.get_desc().flags,
                expected="ALLOW_UNORDERED_ACCESS",
                rule=self.rule,
            )
        return resource

    def _heap_types(self) -> list[HeapType]:
        if not self._is_owned():
            return [HeapType.DEFAULT]
        if self.context.level < FeatureLevel.LEVEL_2_0:
            return [HeapType.DEFAULT, HeapType.UPLOAD]
        return [HeapType.DEFAULT, HeapType.UPLOAD, HeapType.CUSTOM]

    def _range(self, binding: BufferBinding, resource: Resource) -> tuple[int, int]:
        """Offset and size in bytes."""
        slot, width = self.slot, resource.width
        offset = self._number("Offset", binding.offset)
        if offset % slot.alignment:
            what = (
                f"is bound at Offset ({offset}) of {resource}, which is not a multiple of {slot.alignment}, "
                f"{self._alignment_name()}"
            )
            tensor = slot.role in (Role.INPUT, Role.OUTPUT) and slot.desc is not None
            rule = "TN7" if tensor and slot.alignment > MINIMUM_BUFFER_TENSOR_ALIGNMENT else self.rule
            raise self.refused(
                BIND_OFFSET_ALIGN,
                f"{self._title()} {what}.",
                field=f"{self.slot.path}.Offset",
                given=offset,
                expected=f"a multiple of {slot.alignment}",
                rule=rule,
            )
        if offset > width:
            what = f"is bound at Offset ({offset}) of {resource}, which has {width} bytes"
            raise self.refused(
                BIND_RANGE,
                f"{self._title()} {what}.",
                field=f"{self.slot.path}.Offset",
                given=offset,
                expected=f"<= {width}",
                rule=self.rule,
                message_id=_NO_RESOURCE,
            )
        size = width - offset
        if binding.size_in_bytes is not None:
            size = self._number("SizeInBytes", binding.size_in_bytes)
        if size < slot.size:
            what = f"is bound to SizeInBytes ({size}) of {resource}, less than the {slot.size} {self._why()}"
            raise self.refused(
                _TOO_SMALL.get(slot.role, BIND_SIZE_SMALL.id),
                f"{self._title()} {what}.",
                field=f"{self.slot.path}.SizeInBytes",
                given=size,
                expected=f">= {slot.size}",
                rule=self.rule,
                **self._drawn(offset, offset + size),
            )
        if offset + size > width:
            what = (
                f"is bound to SizeInBytes ({size}) from Offset ({offset}) on of {resource}, "
                f"which has {width} bytes"
            )
            raise self.refused(
                BIND_RANGE,
                f"{self._title()} {what}.",
                field=f"{self.slot.path}.SizeInBytes",
                given=size,
                expected=f"<= {width - offset}, what is left from Offset ({offset}) on",
                rule=self.rule,
                message_id=_NO_RESOURCE,
            )
        return offset, size

    def _drawn(self, offset: int, end: int) -> dict[str, Any]:
        """The tensor and what of it lies behind the binding's end; nothing of what has no layout."""
        if self.slot.desc is None:
            return {}
        from ...pictures import Tensor

        outside = Tensor.of_bytes("outside of the binding", end, offset + self.slot.size - end)
        return {"layouts": (self.slot.drawn(offset), outside), "faulty_byte": end}

    def _alignment_name(self) -> str:
        """The reason for the required alignment."""
        slot = self.slot
        if slot.role is Role.TEMPORARY:
            return "DML_TEMPORARY_BUFFER_ALIGNMENT"
        if slot.desc is None:
            return "DML_PERSISTENT_BUFFER_ALIGNMENT"
        if slot.alignment > MINIMUM_BUFFER_TENSOR_ALIGNMENT:
            return "its GuaranteedBaseOffsetAlignment"
        return "DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT"

    def _why(self) -> str:
        """The reason for the size that a slot needs."""
        desc = self.slot.desc
        if desc is None:
            return "that it needs"
        layout = f"Sizes {list(desc.sizes)}"
        if desc.strides is not None:
            layout += f" and Strides {list(desc.strides)}"
        name = desc.data_type.name
        return f"bytes of its TotalTensorSizeInBytes ({name} with {layout})"

    def _number(self, member: str, value: object) -> int:
        number = value if type(value) is int else as_integer(value)
        if number is None or not 0 <= number < 2**64:
            what = f"is bound with {member} ({quote(value)}), which is not a UINT64"
            raise self.refused(
                BIND_RANGE,
                f"{self._title()} {what}.",
                field=f"{self.slot.path}.{member}" if member else self.slot.path,
                given=quote(value),
                expected="0 to 2**64 - 1",
                rule=self.rule,
                message_id=0,
            )
        return number

    def _title(self) -> str:
        """``InputTensor (binding 2) of operator 'gemm'``."""
        return f"{self.slot.path}{self._position()} of {self.dispatchable.title()}"

    def _position(self) -> str:
        """`` (binding 2)``: its index in the caller's list."""
        if self.slot.role not in (Role.INPUT, Role.OUTPUT):
            return ""
        if self.slot.role is Role.OUTPUT:
            return f" (binding {self.dispatchable.outputs.index(self.slot)})"
        for i, slots in enumerate(self.dispatchable.inputs):
            if self.slot in slots:
                return f" (binding {i})"
        return ""
