"""Binding validation: the requirements on a buffer bound to a slot (BT5 to BT12, TN7, DD4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...d3d12 import HeapType, Resource, ResourceFlags
from ...d3d12.memory.declared import named
from ...diagnostics.rule import Breach
from ...errors import Error, as_integer, not_a, number_of, quote, spell, spell_object
from ..enums import BindingType, FeatureLevel
from ..lowering.dispatchable import Dispatchable, OperatorInitializer, Role, Slot
from ..rows import DD4, TN7
from ..structs import Binding, BindingDesc, BufferArrayBinding, BufferBinding
from ..tensor_desc import MINIMUM_BUFFER_TENSOR_ALIGNMENT
from .rows import BT5, BT6, BT7, BT8, BT9, BT11, BT12, BT13, BT16, BoundRange, BoundType

if TYPE_CHECKING:
    from ..device_context import DeviceContext

__all__ = ["METHODS", "Bound", "as_desc", "counted", "find_bound", "group", "page_of"]

METHODS = {
    Role.INPUT: "BindInputs",
    Role.OUTPUT: "BindOutputs",
    Role.TEMPORARY: "BindTemporaryResource",
    Role.PERSISTENT: "BindPersistentResource",
}

_ALLOW_UAV = int(ResourceFlags.ALLOW_UNORDERED_ACCESS)  # & of members of enums takes a microsecond
_SHOWN = 12  # most bindings listed in a message

_TYPES: dict[Role, type[BoundType]] = {
    Role.INPUT: BT6,
    Role.OUTPUT: BT6,
    Role.TEMPORARY: BT11,
    Role.PERSISTENT: BT12,
}
_RANGES: dict[Role, type[BoundRange]] = {
    Role.INPUT: BT8,
    Role.OUTPUT: BT8,
    Role.TEMPORARY: BT11,
    Role.PERSISTENT: BT12,
}


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
        broken = BT5.bindings if given else BT16.bindings
        raise broken(
            dispatchable,
            given=len(given),
            expected=count,
            page=page_of(role),
            operation=METHODS[role],
            context=_in_order(dispatchable, role),
            needed=number_of(count, role.value),
            title=dispatchable.title(),
            which=which,
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
    raise BT5.type(
        dispatchable,
        message=not_a(path, given, "is not a list of bindings"),
        field=path,
        given=spell_object(given),
        page=page_of(role),
        operation=METHODS[role],
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
    raise BT6.type(dispatchable, field=path, given=given, page=page_of(role), operation=METHODS[role])


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
        raise BT6.not_an_array(
            dispatchable, field=f"{path}.Type", page=page_of(role), operation=METHODS[role], path=path
        )
    if len(array) not in (0, len(slots)):
        raise BT5.array_count(
            dispatchable,
            field=f"{path}.BindingCount",
            given=len(array),
            expected=len(slots),
            page=page_of(role),
            operation=METHODS[role],
            path=path,
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
        and (resource.heap_type or HeapType.DEFAULT) is HeapType.DEFAULT  # or a reserved buffer
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
    def rule(self) -> type[BoundRange]:
        """The rule of the buffers that the slot's role takes."""
        return _RANGES[self.slot.role]

    def error(self, broken: Breach, member: str = "", **more: Any) -> Error:
        """The error of a breach, with the bind method as operation; ``member``: of the binding."""
        slot, role = self.slot, self.slot.role
        return broken(
            self.dispatchable,
            field=f"{slot.path}.{member}" if member else slot.path,
            operation=METHODS[role],
            page=page_of(role),
            title=self._title(),
            **more,
        )

    def find(self, desc: BindingDesc) -> Bound:
        """The buffer that ``desc`` binds."""
        slot = self.slot
        if slot.absent:
            kind = desc.type.name
            broken = BT7.absent if "OWNED_BY_DML" in slot.absent else self._type_rule().absent
            raise self.error(broken, given=kind, why=slot.absent)
        if not isinstance(desc.desc, BufferBinding):
            why = " is OWNED_BY_DML and" if self._is_owned() else ""
            raise self.error(self._type_rule().missing, given=desc.type.name, why=why, size=slot.size)
        resource = self._resource(desc.desc.buffer)
        offset, size = self._range(desc.desc, resource)
        allocation = resource.allocation
        return Bound(slot, resource, offset, size, allocation.address + offset, allocation.host + offset)

    def _type_rule(self) -> type[BoundType]:
        return BT7 if self._is_owned() else _TYPES[self.slot.role]

    def _is_owned(self) -> bool:
        """An input at initialization: only OWNED_BY_DML tensors are bound there."""
        return self.slot.role is Role.INPUT and isinstance(self.dispatchable, OperatorInitializer)

    def _resource(self, resource: object) -> Resource:
        """Device, lifetime, heap type and UAV flag."""
        if not isinstance(resource, Resource):
            raise self.error(self.rule.buffer, "Buffer", given=spell_object(resource))
        if resource.released:
            raise self.error(BT13.released, "Buffer", resource=resource)
        parent = self.context.d3d12
        if resource.context is not parent:
            given = resource.context
            raise self.error(DD4.other_device, "Buffer", given=given, expected=parent, resource=resource)
        # BT9 does not apply to reserved buffers, which have no heap type: their tiles may lie in any heap,
        # CPU-visible ones included, and are mapped when the queue executes the mapping.
        heap = resource.heap_type or HeapType.DEFAULT
        if heap is not HeapType.DEFAULT and heap not in self._heap_types():
            expected = " or ".join(kind.name for kind in self._heap_types())
            raise self.error(BT9.heap_type, "Buffer", given=heap.name, expected=expected, resource=resource)
        # A buffer in an upload heap cannot be a UAV; an initializer may read it nevertheless.
        if heap is HeapType.DEFAULT and not resource.flags & _ALLOW_UAV:
            flags = resource.get_desc().flags
            raise self.error(self.rule.not_uav, "Buffer", given=flags, resource=resource)
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
            tensor = slot.role in (Role.INPUT, Role.OUTPUT) and slot.desc is not None
            guaranteed = tensor and slot.alignment > MINIMUM_BUFFER_TENSOR_ALIGNMENT
            raise self.error(
                TN7.offset if guaranteed else self.rule.alignment,
                "Offset",
                given=offset,
                expected=f"a multiple of {slot.alignment}",
                resource=resource,
                alignment=slot.alignment,
                alignment_name=self._alignment_name(),
            )
        if offset > width:
            expected = f"<= {width}"
            raise self.error(
                self.rule.offset, "Offset", given=offset, expected=expected, resource=resource, width=width
            )
        size = width - offset
        if binding.size_in_bytes is not None:
            size = self._number("SizeInBytes", binding.size_in_bytes)
        if size < slot.size:
            raise self.error(
                self.rule.small,
                "SizeInBytes",
                given=size,
                expected=f">= {slot.size}",
                resource=resource,
                size=slot.size,
                why=self._why(),
                **self._drawn(offset, offset + size),
            )
        if offset + size > width:
            raise self.error(
                self.rule.range,
                "SizeInBytes",
                given=size,
                expected=f"<= {width - offset}, what is left from Offset ({offset}) on",
                offset=offset,
                resource=resource,
                width=width,
            )
        return offset, size

    def _drawn(self, offset: int, end: int) -> dict[str, Any]:
        """The tensor and the part of it past the binding's end; nothing for a slot without a layout."""
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
            raise self.error(self.rule.number, member, given=quote(value), member_name=member)
        return number

    def _title(self) -> str:
        """``InputTensor (binding 2) of operator 'gemm'``."""
        return f"{self.slot.path}{self._position()} of {self.dispatchable.title()}"

    def _position(self) -> str:
        """`` (binding 2)``: its index in the caller's list."""
        if self.slot.role not in (Role.INPUT, Role.OUTPUT):
            return ""
        inputs, outputs = self.dispatchable.inputs, [(slot,) for slot in self.dispatchable.outputs]
        for i, slots in enumerate(outputs if self.slot.role is Role.OUTPUT else inputs):
            if self.slot in slots:
                return f" (binding {i})"
        return ""  # of an initializer that another thread has reset meanwhile
