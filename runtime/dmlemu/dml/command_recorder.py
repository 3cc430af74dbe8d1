"""Recording dispatches (api: IDMLCommandRecorder), and what must hold before one is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE
from dmlemu_hw.packets import FLAG_JOINED, FLAG_POISON, Opcode

from ..d3d12 import CommandList, DescriptorHeapType
from ..d3d12.recording import SHADING
from ..errors import Error, Severity, Strictness, caller
from .binding_checks import Bound
from .binding_table import BindingTable
from .dispatchable import CompiledOperator, Dispatchable, OperatorInitializer, Role, Slot
from .object import DeviceChild, failure

if TYPE_CHECKING:
    from .device import Device

__all__ = ["CommandRecorder"]

_OPERATION = "RecordDispatch"
_PAGE = "IDMLCommandRecorder::RecordDispatch"


class CommandRecorder(DeviceChild):
    """Mirrors ``IDMLCommandRecorder``: stateless, may record into any number of lists."""

    kind = "command recorder"

    def record_dispatch(
        self, command_list: CommandList, dispatchable: Dispatchable, bindings: BindingTable
    ) -> None:
        """Records the dispatch of a compiled operator or an initializer.

        The list is open, of type DIRECT or COMPUTE, and has the descriptor heap of the table's GPU
        handle set.  The table is for this dispatchable, and everything mandatory is bound (unless the
        operator was compiled with DESCRIPTORS_VOLATILE).  No barriers are recorded: the caller places
        UAV barriers between dependent dispatches.  The recorder and the table may be released at
        once; the dispatchable, the buffers and the descriptors must outlive the GPU's work.

        A void method: see :class:`dmlemu.dml.Device` for what its mistakes do.  Mirrors
        ``IDMLCommandRecorder::RecordDispatch``.
        """
        device = self._device
        if device._is_removed():
            return
        try:
            _check_arguments(device, command_list, dispatchable, bindings)
            if not command_list._may_record(_OPERATION, SHADING):
                return
            if dispatchable.descriptor_count:
                _check_heap(command_list, dispatchable, bindings)
                _check_bindings(device, dispatchable, bindings)
        except Error as error:
            device._reject(error)
            return
        try:
            command_list._use_all(_OPERATION, *bindings._uses())
        except Error as error:
            command_list._reject(error)
            return
        if device._strictness is Strictness.STRICT:
            _track_initialization(command_list, dispatchable, bindings)
        _write(device, command_list, dispatchable, bindings)
        if device._strictness is not Strictness.RUNTIME:
            device._in_flight.add(command_list, dispatchable, bindings)


def _fail(
    id: str,
    message: str,
    dispatchable: object,
    field: str,
    given: object,
    expected: object,
    rule: str,
    *,
    operation: str = _OPERATION,
    **more: Any,
) -> Error:
    return failure(
        id,
        message,
        operation=operation,
        rule=f"{rule}: {_PAGE}",
        field=field,
        given=given,
        expected=expected,
        object=dispatchable,
        **more,
    )


def _check_arguments(device: Device, command_list: object, dispatchable: object, bindings: object) -> None:
    """The three objects are what they should be, ours, and belong together."""
    for field, value, kind in (
        ("CommandList", command_list, CommandList),
        ("Dispatchable", dispatchable, Dispatchable),
        ("Bindings", bindings, BindingTable),
    ):
        if not isinstance(value, kind):
            given = type(value).__name__
            raise _fail(
                "OP_FIELD_RANGE", f"{field} ({given}) is no {kind.kind}.", "", field, given, kind.kind, "2.10"
            )
    assert isinstance(command_list, CommandList)
    assert isinstance(dispatchable, Dispatchable) and isinstance(bindings, BindingTable)
    device._check_own(dispatchable, "Dispatchable", _OPERATION)
    device._check_own(bindings, "Bindings", _OPERATION)
    if command_list.get_device() is not device.get_parent_device():
        message = f"{command_list} belongs to another Direct3D 12 device than {device}."
        expected = device.get_parent_device()
        raise _fail(
            "BIND_FOREIGN_DEVICE",
            message,
            dispatchable,
            "CommandList",
            command_list.get_device(),
            expected,
            "DD4",
        )
    if bindings.dispatchable is not dispatchable:
        message = f"{bindings} is for {bindings.dispatchable}, not for {dispatchable._title()}."
        other = bindings.dispatchable or "an empty table"
        raise _fail("BIND_TABLE_OTHER", message, dispatchable, "Bindings", other, dispatchable, "2.10")


def _check_heap(command_list: CommandList, dispatchable: Dispatchable, bindings: BindingTable) -> None:
    """The heap of the table's GPU handle is the one that is set on the list."""
    heap = command_list._descriptor_heaps.get(DescriptorHeapType.CBV_SRV_UAV)
    if heap is not None and heap._heap is bindings._heap:
        return
    message = f"The descriptor heap of {bindings} is not set on {command_list}."
    raise _fail(
        "DESC_HEAP_NOT_SET",
        message,
        dispatchable,
        "Bindings",
        heap or "no descriptor heap",
        bindings._heap.label if bindings._heap is not None else "a descriptor heap",
        "BT2",
        hint="call SetDescriptorHeaps before RecordDispatch",
        message_id=554,
    )


def _check_bindings(device: Device, dispatchable: Dispatchable, bindings: BindingTable) -> None:
    """Everything mandatory is bound and no written range meets another; checked once per set of bindings."""
    if bindings._complete:
        return
    if not dispatchable.volatile:
        for slot in dispatchable._slots():
            if not (slot.absent or slot.optional or slot in bindings._bound):
                raise _unbound(dispatchable, slot)
    if device._strictness is not Strictness.RUNTIME:
        # Of an unused graph input no byte is read.
        _check_aliases(dispatchable, [bound for bound in bindings._bound.values() if bound.slot.size])
    bindings._complete = True


def _unbound(dispatchable: Dispatchable, slot: Slot) -> Error:
    id, rule = {
        Role.TEMPORARY: ("BIND_TEMP_MISSING", "BT11"),
        Role.PERSISTENT: ("BIND_PERSISTENT_MISSING", "BT12"),
    }.get(slot.role, ("BIND_TYPE", "2.10"))
    message = f"{slot.path} of {dispatchable._title()} is not bound; it needs {slot.size} bytes."
    return _fail(id, message, dispatchable, slot.path, "no binding", f"{slot.size} bytes", rule)


def _check_aliases(dispatchable: Dispatchable, bound: list[Bound]) -> None:
    """BT10: what the dispatch writes meets nothing else that it uses, but for documented in-place work."""
    for a, b in combinations(bound, 2):
        if a.host >= b.host + b.slot.size or b.host >= a.host + a.slot.size:
            continue
        roles = {a.slot.role, b.slot.role}
        if roles <= {Role.INPUT, Role.PERSISTENT}:
            continue  # both are only read
        if roles == {Role.OUTPUT}:
            message = f"{a} and {b} of {dispatchable._title()} overlap, and both are written."
            raise _fail(
                "BIND_OUT_OUT", message, dispatchable, b.slot.path, b.range, "a range of its own", "BT10"
            )
        if roles == {Role.INPUT, Role.OUTPUT} and dispatchable.in_place and _one_layout(a, b):
            continue
        first, second = (b, a) if a.slot.role is Role.OUTPUT else (a, b)
        why = "the operator cannot work in place"
        if roles == {Role.INPUT, Role.OUTPUT} and dispatchable.in_place:
            why = "in place needs the same offset, sizes, strides and total size"
        message = f"{second} of {dispatchable._title()} overlaps {first}, and {why}."
        raise _fail(
            "BIND_ALIAS", message, dispatchable, second.slot.path, second.range, "a range of its own", "BT10"
        )


def _one_layout(a: Bound, b: Bound) -> bool:
    """In place: the same bytes in the same layout."""
    first, second = a.slot.desc, b.slot.desc
    return (
        a.host == b.host
        and first is not None
        and second is not None
        and first.data_type == second.data_type
        and first.sizes == second.sizes
        and first.effective_strides == second.effective_strides
        and first.size_in_bytes == second.size_in_bytes
    )


def _track_initialization(
    command_list: CommandList, dispatchable: Dispatchable, bindings: BindingTable
) -> None:
    """What was initialised, and where, is known when lists are submitted: in their order."""
    recording = command_list._recording
    assert recording is not None
    if isinstance(dispatchable, OperatorInitializer):
        pairs = zip(dispatchable.operators, dispatchable.outputs, strict=True)
        places = {operator: _address(bindings, slot) for operator, slot in pairs}
        recording.on_submit.append(partial(_mark_initialized, places))
    elif isinstance(dispatchable, CompiledOperator):
        place = _address(bindings, dispatchable.persistent)
        if place or dispatchable._initialized_at is None:
            where = f"Recorded by {_OPERATION} into {command_list} at {caller()}"
            recording.on_submit.append(partial(_check_initialized, dispatchable, place, where))


def _address(bindings: BindingTable, slot: Slot) -> int:
    bound = bindings._bound.get(slot)
    return 0 if bound is None else bound.address


def _mark_initialized(places: dict[CompiledOperator, int]) -> Callable[[], None]:
    """Returns how to take it back, should the submission fail."""
    before = {operator: operator._initialized_at for operator in places}

    def put(values: Mapping[CompiledOperator, int | None]) -> None:
        for operator, place in values.items():
            operator._initialized_at = place

    put(places)
    return partial(put, before)


def _check_initialized(operator: CompiledOperator, place: int, where: str) -> None:
    """``where`` the dispatch was recorded, for the message: submitting is what fails."""
    more: dict[str, Any] = {"operation": "ExecuteCommandLists", "context": (where,)}
    if operator._initialized_at is None:
        message = f"{operator._title()} is dispatched, but its initializer has not been."
        hint = "record an operator initializer for it, earlier in this list or in one submitted before"
        raise _fail(
            "OP_NOT_INITIALIZED",
            message,
            operator,
            "Dispatchable",
            "not initialized",
            "initialized",
            "2.8",
            hint=hint,
            **more,
        )
    if operator._initialized_at != place:
        message = f"{operator._title()} is dispatched with another persistent resource than was initialized."
        given, expected = f"address 0x{place:X}", f"address 0x{operator._initialized_at:X}"
        raise _fail(
            "BIND_PERSISTENT_CHANGED",
            message,
            operator,
            "PersistentResource",
            given,
            expected,
            "2.8",
            severity=Severity.CORRUPTION,
            **more,
        )


def _write(
    device: Device, command_list: CommandList, dispatchable: Dispatchable, bindings: BindingTable
) -> None:
    """The packets: one per kernel call, all with the table's GPU handle, and what they leave undefined."""
    assert bindings._desc is not None
    writer, table = command_list._writer, bindings._desc.gpu_descriptor_handle
    label, names = f"Dispatch of {dispatchable._label}", dispatchable._operand_names
    poison = FLAG_POISON if device._gpu.poison else 0
    joined = 0

    def discard(slot: Slot, start: int, size: int, flags: int) -> None:
        nonlocal joined
        assert slot.descriptor is not None
        writer.discard(table + slot.descriptor * DESCRIPTOR_SIZE, start, size, flags | joined)
        command_list._announce(Opcode.DISCARD, label, (slot.path,), joined=bool(joined))
        joined = FLAG_JOINED

    if dispatchable.calls:
        command_list._need(dispatchable, *command_list._descriptor_heaps.values())
    temporary = dispatchable.temporary
    if poison and temporary.descriptor is not None:
        discard(temporary, 0, temporary.size, poison)  # whatever it held before
    for call, operands in zip(dispatchable.calls, names, strict=True):
        writer.dispatch(call.kernel, table, call.tensors, call.constants, poison | joined)
        command_list._announce(Opcode.DISPATCH, label, operands, joined=bool(joined))
        joined = FLAG_JOINED
    if poison:
        for slot, start, size in dispatchable._tails:
            discard(slot, start, size, poison)
        if temporary.descriptor is not None:
            discard(temporary, 0, temporary.size, 0)
