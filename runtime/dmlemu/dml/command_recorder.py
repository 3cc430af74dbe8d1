"""IDMLCommandRecorder: records dispatches, after checking list, dispatchable and binding table."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from dmlemu_hw.chaos import Mode
from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor
from dmlemu_hw.events import Footprint
from dmlemu_hw.footprints import meet
from dmlemu_hw.packets import FLAG_FUSED, FLAG_JOINED, FLAG_PASSED, FLAG_POISON, FLAG_TAIL, Opcode

from ..d3d12 import CommandList, DescriptorHeapType, MessageId
from ..d3d12.core.descriptor_uses import Reader
from ..d3d12.core.recording import SHADING
from ..errors import Error, Strictness, call_site, caller, not_a, spell_object
from .binding.aliasing import Clash, Meeting, Place, alias_reason, clash_picture, find_clash
from .binding.binding_checks import Bound
from .binding.binding_table import BindingTable
from .binding.rows import BT11, BT12
from .events import DispatchRecorded
from .lowering.dispatchable import CompiledOperator, Dispatchable, OperatorInitializer, Role, Slot
from .object import DeviceChild, check_own
from .rows import (
    BIND_OUT_OUT,
    BT2,
    BT10,
    BT14,
    DD4,
    R2_8,
    R2_10,
)

if TYPE_CHECKING:
    from ..d3d12.lists.list_recorder import ListRecording
    from .device_context import DeviceContext

__all__ = ["CommandRecorder"]

_OPERATION = "RecordDispatch"
_PAGE = "IDMLCommandRecorder::RecordDispatch"


class CommandRecorder(DeviceChild):
    """Mirrors ``IDMLCommandRecorder``: stateless; may record into any number of lists."""

    kind = "command recorder"

    def record_dispatch(
        self, command_list: CommandList, dispatchable: Dispatchable, bindings: BindingTable
    ) -> None:
        """Records the dispatch of a compiled operator or an initializer.

        The list must be open, of type DIRECT or COMPUTE, with the descriptor heap of the table's GPU
        handle set.  The table must be for this dispatchable, with all mandatory bindings (unless the
        operator was compiled with DESCRIPTORS_VOLATILE).  No barriers are recorded: the caller records
        UAV barriers between dependent dispatches.  The recorder and the table may be released
        immediately; the dispatchable, the buffers and the descriptors must outlive the GPU's work.

        A void method: see :class:`dmlemu.dml.Device` for its errors.  Mirrors
        ``IDMLCommandRecorder::RecordDispatch``.
        """
        context = self.context
        if context.is_removed():
            return
        try:
            _check_arguments(context, command_list, dispatchable, bindings)
            with bindings.alone(_OPERATION):
                event = _record(context, command_list, dispatchable, bindings)
        except Error as error:
            context.reject(error)
            return
        if event is not None:
            context.emit(event)


def _record(
    context: DeviceContext, command_list: CommandList, dispatchable: Dispatchable, bindings: BindingTable
) -> DispatchRecorded | None:
    """Records a dispatch of objects that were checked to match; returns its event."""
    if not command_list.may_record(_OPERATION, SHADING):
        return None
    if dispatchable.descriptor_count:
        _check_heap(command_list, dispatchable, bindings)
        _check_bindings(context, dispatchable, bindings)
    try:
        command_list.use_all(_OPERATION, *bindings.uses(), user=dispatchable.label)
    except Error as error:
        command_list.reject(error)
        return None
    recording = command_list.recording
    assert recording is not None and bindings.desc is not None
    first = len(recording.commands)
    if context.strictness is Strictness.STRICT:
        _track_initialization(command_list, dispatchable, bindings)
    _write(context, command_list, dispatchable, bindings)
    command_list.lose_compute_state(f"{_OPERATION} of {dispatchable.title()}")
    if context.d3d12.has_layer and len(recording.commands) > first:
        _note_descriptors(context, recording, first, bindings)
    if not context.gpu.events.wants(DispatchRecorded):
        return None
    table = bindings.desc.gpu_descriptor_handle
    kept = tuple(_persistent(dispatchable, bindings))
    site = recording.commands[first].site if len(recording.commands) > first else call_site()
    return DispatchRecorded(recording.serial, first, dispatchable, table, kept, site)


def _note_descriptors(
    context: DeviceContext,
    recording: ListRecording,
    first: int,
    bindings: BindingTable,
) -> None:
    """Registers that the dispatch needs the table's descriptors until the GPU has executed it."""
    desc = bindings.desc
    assert desc is not None
    dispatchable, start = desc.dispatchable, desc.gpu_descriptor_handle
    source = context.gpu.descriptors.place(desc.cpu_descriptor_handle)
    reader = Reader(
        recording.commands[first],
        weakref.ref(recording),
        start,
        dispatchable.paths,
        bindings.descriptors(),
        dispatchable.volatile,
        0 if source == start else source,
        weakref.ref(bindings),
        bindings.label,
    )
    if reader.source:
        reader.arrived = reader.differs(context.gpu.descriptors.content(start, len(reader.operands))) is None
    context.d3d12.descriptor_uses.add(reader, recording)


def _persistent(
    dispatchable: Dispatchable, bindings: BindingTable
) -> Iterator[tuple[CompiledOperator, int, int]]:
    """The persistent resources that a dispatch fills, or reads: operator, address (0: none) and size."""
    if isinstance(dispatchable, OperatorInitializer):
        for operator, slot in zip(dispatchable.operators, dispatchable.outputs, strict=True):
            yield operator, _address(bindings, slot), slot.size
    elif isinstance(dispatchable, CompiledOperator):
        slot = dispatchable.persistent
        yield dispatchable, _address(bindings, slot), slot.size


def _check_arguments(
    context: DeviceContext, command_list: object, dispatchable: object, bindings: object
) -> None:
    """Checks that the three objects have the right types and device, and match each other."""
    for field, value, kind, what in (
        ("CommandList", command_list, CommandList, "a command list"),
        ("Dispatchable", dispatchable, Dispatchable, "a compiled operator or an operator initializer"),
        ("Bindings", bindings, BindingTable, "a binding table"),
    ):
        if not isinstance(value, kind):
            raise R2_10.field_range(
                message=not_a(field, value, f"is not {what}"),
                field=field,
                given=spell_object(value),
                expected=what,
                page=_PAGE,
                operation=_OPERATION,
            )
    assert isinstance(command_list, CommandList)
    assert isinstance(dispatchable, Dispatchable) and isinstance(bindings, BindingTable)
    check_own(context, dispatchable, "Dispatchable", _OPERATION)
    check_own(context, bindings, "Bindings", _OPERATION)
    if command_list.context is not context.d3d12:
        raise DD4.command_list(
            dispatchable,
            given=command_list.context,
            expected=context.d3d12,
            page=_PAGE,
            operation=_OPERATION,
            command_list=command_list,
            device=context,
        )
    if bindings.dispatchable is not dispatchable:
        raise R2_10.bindings(
            dispatchable,
            given=bindings.dispatchable or "an empty table",
            expected=dispatchable,
            page=_PAGE,
            operation=_OPERATION,
            bindings=bindings,
            dispatchable=bindings.dispatchable,
            title=dispatchable.title(),
        )


def _check_heap(command_list: CommandList, dispatchable: Dispatchable, bindings: BindingTable) -> None:
    """Checks that the heap of the table's GPU handle is set on the list."""
    heap = command_list.descriptor_heaps.get(DescriptorHeapType.CBV_SRV_UAV)
    if heap is not None and heap.hardware is bindings.heap:
        return
    wanted = bindings.heap.label if bindings.heap is not None else "a descriptor heap"
    set_heap = f"{heap} is" if heap is not None else "no descriptor heap is"
    raise BT2.bindings(
        dispatchable,
        given=heap or "no descriptor heap",
        expected=wanted,
        message_id=MessageId.SET_DESCRIPTOR_HEAP_INVALID
        if heap is None
        else MessageId.SET_DESCRIPTOR_TABLE_INVALID,
        page=_PAGE,
        operation=_OPERATION,
        bindings=bindings,
        set_heap=set_heap,
        command_list=command_list,
    )


def _check_bindings(context: DeviceContext, dispatchable: Dispatchable, bindings: BindingTable) -> None:
    """Checks that all mandatory slots are bound and no written range overlaps; once per set of bindings."""
    parent = context.d3d12
    if parent.has_layer and not dispatchable.volatile:
        error = _overwritten_error(context, dispatchable, bindings)
        if error is not None:
            parent.object_to(error)
    if bindings.complete:
        return
    if not dispatchable.volatile:
        for slot in dispatchable.mandatory:
            if slot not in bindings.bound:
                raise _unbound(dispatchable, slot)
    if parent.has_layer:  # no byte of an unused graph input is read
        error = _overlap_error(dispatchable, [bound for bound in bindings.bound.values() if bound.slot.size])
        if error is not None:
            parent.object_to(error)
    bindings.complete = True


def _overwritten_error(
    context: DeviceContext, dispatchable: Dispatchable, bindings: BindingTable
) -> Error | None:
    """BT14: the error if another table has overwritten a descriptor of this one."""
    start = bindings.visible_start
    if not start:
        return None  # descriptors to be copied may be overwritten after the copy
    uses = context.d3d12.descriptor_uses
    for at, data in enumerate(bindings.descriptors()):
        place = start + at * DESCRIPTOR_SIZE
        binder = None if data is None else uses.binder(place)
        if binder is None or binder.table() is bindings:
            continue
        if context.gpu.descriptors.content(place, 1) == data:
            continue
        path = dispatchable.paths[at]
        where = context.d3d12.names.place(place)
        return BT14.overwritten(
            dispatchable,
            field=path,
            given=f"a descriptor written by {binder.title}",
            expected=f"the one that {bindings} wrote",
            context=(f"It was overwritten by {binder}",),
            title=dispatchable.title(),
            where=where,
            writer=binder.title,
        )
    return None


def _unbound(dispatchable: Dispatchable, slot: Slot) -> Error:
    broken = {Role.TEMPORARY: BT11.unbound, Role.PERSISTENT: BT12.unbound}.get(slot.role, R2_10.unbound)
    hint = ""
    if slot.role is Role.PERSISTENT and isinstance(dispatchable, CompiledOperator):
        filled = dispatchable.initialized_at
        hint = f"bind {_name_bytes(dispatchable, filled)}, which its initializer has filled" if filled else ""
    return broken(
        dispatchable,
        field=slot.path,
        expected=f"{slot.size} bytes",
        hint=hint,
        operation=_OPERATION,
        page=_PAGE,
        title=dispatchable.title(),
        size=slot.size,
    )


def _overlap_error(dispatchable: Dispatchable, bound: list[Bound]) -> Error | None:
    """BT10: the error if written bytes overlap another binding, except for documented in-place execution."""
    last = 0
    for start, end in sorted([(each.host, each.host + each.slot.size) for each in bound]):
        if start < last:
            break
        last = end
    else:
        return None  # every binding has bytes of its own, as nearly always
    by_slot = {each.slot: each for each in bound}
    places = [Place(each.slot, each.host) for each in bound]
    clash = find_clash(dispatchable, places, _first_meeting, lambda a, b: a.address == b.address)
    if clash is None:
        return None
    return _alias_error(dispatchable, clash, by_slot[clash.first.slot], by_slot[clash.second.slot])


def _first_meeting(a: Footprint, b: Footprint) -> Meeting | None:
    """By host address, as aliased placed resources have the same host address."""
    low, high = a.byte_range
    if b.address >= high or b.byte_range[1] <= low:
        return None
    byte = meet(a, b)
    return None if byte is None else Meeting(byte, byte)


def _alias_error(dispatchable: Dispatchable, clash: Clash, first: Bound, second: Bound) -> Error:
    check, why = alias_reason(dispatchable, clash)
    at = clash.byte - first.host
    byte = first.offset + at
    where = first.resource.part(byte, byte + 1)
    if second.resource is not first.resource:
        byte = second.offset + clash.byte - second.host
        where += f" ({second.resource.part(byte, byte + 1)})"
    context = (
        f"{where} is {clash.is_to_first} of {first.slot.path} and {clash.is_to_second} of {second.slot.path}"
    )
    broken = BT10.both_written if check is BIND_OUT_OUT else BT10.aliased
    return broken(
        dispatchable,
        field=second.slot.path,
        given=second.range,
        operation=_OPERATION,
        page=_PAGE,
        context=(context,),
        first=first,
        second=second,
        title=dispatchable.title(),
        why=why,
        **clash_picture(clash, first.host - first.offset),
    )


def _track_initialization(
    command_list: CommandList, dispatchable: Dispatchable, bindings: BindingTable
) -> None:
    """Defers the check of the initialization to submission, as lists take effect in that order."""
    recording = command_list.recording
    assert recording is not None
    if isinstance(dispatchable, OperatorInitializer):
        pairs = zip(dispatchable.operators, dispatchable.outputs, strict=True)
        places = {operator: _address(bindings, slot) for operator, slot in pairs}
        recording.on_submit.append(partial(_mark_initialized, places))
    elif isinstance(dispatchable, CompiledOperator):
        slot = dispatchable.persistent
        if dispatchable.initialized_at is not None and not slot.size:
            return
        place: Callable[[], int] = partial(int, _address(bindings, slot))
        if dispatchable.volatile and slot.descriptor is not None:
            assert bindings.desc is not None
            handle = bindings.desc.gpu_descriptor_handle + slot.descriptor * DESCRIPTOR_SIZE
            place = partial(_shown, bindings.context, handle)  # it may be bound until submission
        where = f"Recorded by {_OPERATION} into {command_list} at {caller()}"
        recording.on_submit.append(partial(_check_initialized, dispatchable, place, where))


def _shown(context: DeviceContext, handle: int) -> int:
    """The address in a descriptor; 0: none."""
    try:
        return Descriptor.decode(context.gpu.descriptors.content(handle, 1)).address
    except ValueError:  # heap released or invalid descriptor: the GPU reports it
        return 0


def _address(bindings: BindingTable, slot: Slot) -> int:
    bound = bindings.bound.get(slot)
    return 0 if bound is None else bound.address


def _mark_initialized(places: dict[CompiledOperator, int]) -> Callable[[], None]:
    """Marks the operators as initialized; returns a function that undoes it if the submission fails."""
    before = {operator: operator.initialized_at for operator in places}

    def put(values: Mapping[CompiledOperator, int | None]) -> None:
        for operator, place in values.items():
            operator.initialized_at = place

    put(places)
    return partial(put, before)


def _check_initialized(operator: CompiledOperator, place: Callable[[], int], where: str) -> None:
    """``where`` names the line that recorded the dispatch, as the error is raised at submission."""
    if operator.initialized_at is None:
        raise R2_8.dispatchable(
            operator, operation="ExecuteCommandLists", context=(where,), title=operator.title()
        )
    address = place()
    if operator.initialized_at != address and (address or not operator.persistent.size):
        given, expected = (_name_bytes(operator, each) for each in (address, operator.initialized_at))
        raise R2_8.persistent_resource(
            operator,
            given=given,
            expected=expected,
            operation="ExecuteCommandLists",
            context=(where,),
            title=operator.title(),
        )


def _name_bytes(operator: CompiledOperator, address: int) -> str:
    """``bytes [256, 320) of buffer 'weights'``: a persistent resource of the operator's size."""
    return operator.context.d3d12.names.bytes_at(address, operator.persistent.size)


def _write(
    context: DeviceContext, command_list: CommandList, dispatchable: Dispatchable, bindings: BindingTable
) -> None:
    """Writes the packets: one per kernel call, with the table's GPU handle, and those of undefined bytes."""
    assert bindings.desc is not None
    writer, table = command_list.writer, bindings.desc.gpu_descriptor_handle
    label, names = f"Dispatch of {dispatchable.label}", dispatchable.operand_names
    gpu = context.gpu
    poison = FLAG_POISON if gpu.poison else 0
    is_chaos = gpu.chaos is not None and gpu.random(Mode.POISON) is not None
    joined, site = 0, bindings.site

    def discard(slot: Slot, start: int, size: int, flags: int) -> None:
        nonlocal joined
        assert slot.descriptor is not None
        writer.discard(table + slot.descriptor * DESCRIPTOR_SIZE, start, size, flags | joined)
        command_list.announce(Opcode.DISCARD, label, (slot.path,), joined=bool(joined), site=site)
        joined = FLAG_JOINED

    if dispatchable.calls:
        command_list.need(dispatchable, *command_list.descriptor_heaps.values())
    temporary = dispatchable.temporary
    if poison and temporary.descriptor is not None:
        discard(temporary, 0, temporary.size, poison)  # regardless of its previous content
    if is_chaos and isinstance(dispatchable, OperatorInitializer):
        for slot in dispatchable.outputs:
            if slot.descriptor is not None:
                discard(slot, 0, slot.size, poison)
    for call, operands in zip(dispatchable.calls, names, strict=True):
        flags = poison | joined | FLAG_FUSED * call.fused | FLAG_PASSED * call.passed
        writer.dispatch(call.kernel, table, call.tensors, call.constants, flags, order=gpu.write_order)
        command_list.announce(Opcode.DISPATCH, label, operands, joined=bool(joined), site=site)
        joined = FLAG_JOINED
    if gpu.poison or gpu.overwrites_tails:  # else nobody would notice
        for slot, start, size in dispatchable.tails:
            discard(slot, start, size, FLAG_TAIL | FLAG_POISON * gpu.overwrites_tails)
    if poison and temporary.descriptor is not None:
        discard(temporary, 0, temporary.size, poison if is_chaos else 0)
