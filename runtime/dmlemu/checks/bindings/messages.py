"""Messages on descriptors, persistent resources and overlapping bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor, DescriptorKind

from ...d3d12.core.descriptor_uses import Reader
from ...d3d12.core.events import DescriptorsWritten
from ...dml.binding.aliasing import Clash, alias_reason, clash_picture
from ...dml.lowering.dispatchable import Dispatchable
from ...errors import spell_site
from ..framework.names import NamedCommand, Names

if TYPE_CHECKING:
    from ...d3d12.device.device import Device

__all__ = ["aliased", "changed", "not_copied", "overwritten", "remapped", "shows", "unordered"]


def shows(content: bytes, names: Names) -> str:
    """``UAV of bytes [0, 64) of buffer 'act'``: what the descriptor describes."""
    try:
        view = Descriptor.decode(content)
    except ValueError:
        return "bytes that are not a descriptor"
    if view.kind is DescriptorKind.UNWRITTEN:
        return "nothing: it was never written"
    if not view.address:
        return f"a null {view.kind.name}"
    return f"{view.kind.name} of {names.bytes(view.address, view.address + view.size)}"


def _slots(device: Device, places: Sequence[int]) -> str:
    """``slots 3 to 5 of descriptor heap 'main'``: places in one heap."""
    first, last = device.context.names.place(places[0]), device.context.names.place(places[-1])
    if len(places) == 1 or not first.startswith("slot ") or not last.startswith("slot "):
        return first
    number, heap = first.removeprefix("slot ").split(" ", 1)
    return f"slots {number} to {last.split()[1]} {heap}"


def _operands(reader: Reader, slots: Sequence[int]) -> str:
    names = [reader.operands[at] for at in slots if reader.operands[at]]
    return f" for {', '.join(names)}" if names else ""


def _writer(event: DescriptorsWritten) -> str:
    """``CreateUnorderedAccessView at app.py:12``."""
    of, at = (f" of {event.writer}" if event.writer else ""), spell_site(event.site)
    return f"{event.operation}{of}" + (f" at {at}" if at else "")


def overwritten(
    device: Device,
    names: Names,
    reader: Reader,
    slots: Sequence[int],
    contents: tuple[bytes, bytes],
    writer: DescriptorsWritten | None,
    hint: str,
    *,
    in_flight: bool,
) -> dict[str, Any]:
    """Descriptors that a command needs were overwritten; ``contents``: of the first, before and after."""
    places = [reader.start + at * DESCRIPTOR_SIZE for at in slots]
    where = _slots(device, places)
    was, now = (shows(content, names) for content in contents)
    by = "Something" if writer is None else _writer(writer)
    needs = f"{reader} needs{_operands(reader, slots)}"
    if in_flight:
        message = f"{by} overwrites {where}, which {needs} until the GPU is known to have finished."
    else:
        message = f"{by} has overwritten {where}, which {needs}, between binding and ExecuteCommandLists."
    context = [
        f"{device.context.names.place(places[0])} held {was}; it holds {now}, and that is what the GPU reads"
    ]
    return {
        "message": message,
        "operation": writer.operation if in_flight and writer is not None else "ExecuteCommandLists",
        "given": now,
        "expected": was,
        "field": reader.operands[slots[0]],
        "object": reader.command.name,
        "context": (*context, reader.context),
        "hint": hint,
        "properties": {"heap_slot": where, "dispatch": reader.command.name, "list": reader.list_name},
    }


def not_copied(
    device: Device, names: Names, reader: Reader, slots: Sequence[int], contents: tuple[bytes, bytes]
) -> dict[str, Any]:
    """The range at a table's GPU handle does not hold what the table wrote at its CPU handle."""
    places = [reader.start + at * DESCRIPTOR_SIZE for at in slots]
    origin = device.context.names.place(reader.source + slots[0] * DESCRIPTOR_SIZE)
    where, bound, found = _slots(device, places), *(shows(content, names) for content in contents)
    what = str(reader)
    return {
        "message": f"{what[0].upper()}{what[1:]} is executed, and what {reader.title} wrote was not copied to "
        f"{where}, where the GPU reads it{_operands(reader, slots)}.",
        "operation": "ExecuteCommandLists",
        "field": reader.operands[slots[0]],
        "given": found,
        "expected": bound,
        "object": reader.title,
        "context": (f"The table wrote to {origin}: its CPU and GPU handles differ", reader.context),
        "hint": f"CopyDescriptors the {len(reader.operands)} descriptors from the table's CPU handle to its GPU "
        "handle before ExecuteCommandLists",
    }


def changed(
    command: NamedCommand, operator: str, place: str, writer: NamedCommand, operand: str, byte: str
) -> dict[str, Any]:
    """A dispatch uses a persistent resource that was written after initialization."""
    through = f" through {operand}" if operand else ""
    return {
        "message": f"{operator} is dispatched with a persistent resource into which {writer.command.brief} (command "
        f"{writer.command.number} of {writer.list}) has written since it was initialized, first {byte}{through}.",
        "operation": command.place,
        "field": "PersistentResource",
        "given": f"bytes that {writer.command.brief} wrote",
        "expected": "the bytes that the operator's initializer left",
        "object": place,
        "context": (writer.context, command.context),
        "hint": "give the persistent resource memory that nothing else writes; new weights need a new operator",
    }


def remapped(command: NamedCommand, operator: str, place: str) -> dict[str, Any]:
    """The tiles of a persistent resource were remapped after initialization."""
    return {
        "message": f"{operator} is dispatched, and UpdateTileMappings has mapped other memory to its persistent "
        "resource since it was initialized.",
        "operation": command.place,
        "field": "PersistentResource",
        "given": "other tiles",
        "expected": "the tiles that the operator's initializer wrote",
        "object": place,
        "context": (command.context,),
        "hint": "leave the tiles of a persistent resource as they are; a new operator can be initialized elsewhere",
    }


def unordered(
    command: NamedCommand, operator: str, initializer: str, queue: str, signal: str
) -> dict[str, Any]:
    """An operator is dispatched on another queue than its initializer, without a fence between them."""
    advice = (
        f"let {command.queue} Wait for {signal}" if signal else f"signal a fence on {queue} after it and Wait"
    )
    return {
        "message": f"{operator} is dispatched on {command.queue}, and nothing makes that wait for its initializer "
        f"on {queue}.",
        "operation": command.place,
        "field": "Dispatchable",
        "given": "an initializer that may not have finished",
        "expected": "an initialized operator",
        "object": operator,
        "context": (initializer, command.context),
        "hint": f"{advice} before the list of the dispatch is executed",
    }


def aliased(command: NamedCommand, dispatchable: Dispatchable, clash: Clash, names: Names) -> dict[str, Any]:
    """Two bindings of a dispatch share a byte that it writes, as found at execution."""
    _, why = alias_reason(dispatchable, clash)
    first, second = clash.first, clash.second
    ranges = [names.bytes(each.address, each.address + each.slot.size) for each in (first, second)]
    second_byte, buffer = clash.second_byte, names.buffer(first.address)
    byte = names.byte(clash.byte)
    if clash.byte != second_byte:
        byte += f" ({names.byte(second_byte)})"
    return {
        "message": f"{second.slot.path} ({ranges[1]}) of {dispatchable.title()} overlaps {first.slot.path} "
        f"({ranges[0]}), and {why}.",
        "operation": command.place,
        "field": second.slot.path,
        "given": ranges[1],
        "expected": "bytes of its own",
        "object": str(dispatchable),
        "context": (
            f"{byte} is {clash.is_to_first} of {first.slot.path} and {clash.is_to_second} of {second.slot.path}",
            command.context,
        ),
        **clash_picture(clash, first.address if buffer is None else buffer.address),
    }
