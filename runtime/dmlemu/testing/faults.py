"""Fault injection: removes the device in the middle, or lets calls run out of memory.

Each is a context manager over a device, and subscribes to its events: leaving the block ends the fault
(a removed device stays removed).  The yielded object records whether the fault happened, so that a program
can be tried with every fault in turn::

    for n in itertools.count():
        device = d3d12.create_device(d3d12.Adapter())
        with faults.removal(device, after=n) as fault:
            run(device)
        if not fault.happened:
            break
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dmlemu_hw.events import Executing
from dmlemu_hw.faults import FaultKind, GpuFault

from .. import d3d12, dml
from ..d3d12.core.events import CallBegun
from ..d3d12.types.arguments import integer, outside, text
from .rows import OutOfMemory

__all__ = ["Injection", "memory_budget", "out_of_memory", "removal"]


@dataclass
class Injection:
    """State of a fault: ``seen`` counts matching commands or calls; ``happened``: the fault occurred."""

    seen: int = 0
    happened: bool = False


@contextmanager
def removal(device: d3d12.Device | dml.Device, *, after: int = 0, at: str = "") -> Iterator[Injection]:
    """Removes the device (DXGI_ERROR_DEVICE_HUNG) as by a fault of the GPU.

    The next command after ``after`` executed ones is not executed.  ``at``: only commands of that name count,
    such as ``CopyBufferRegion``, or dispatches of an operator with the name given by ``set_name``.
    """
    parent, after, injection = _parent(device), _count(after, "after", 0), Injection()
    text(at, "at")

    def strike(event: Executing) -> None:
        if event.joined or injection.happened or not _is_called(parent, event, at):
            return
        if injection.seen < after:
            injection.seen += 1
            return
        injection.happened = True
        named = f" named {at!r}" if at else ""
        message = f"Fault injection removes the device (commands{named} executed before: {after})."
        raise GpuFault(FaultKind.INJECTED, message)

    with parent.events.subscribe(strike, Executing):
        yield injection


def _is_called(device: d3d12.Device, event: Executing, name: str) -> bool:
    recording = device.context.recordings.get(event.list_serial)
    if not name or recording is None:
        return not name
    command = recording.commands[event.command].name
    return command == name or f"'{name}'" in command


@contextmanager
def out_of_memory(device: d3d12.Device | dml.Device, *, at: int = 1) -> Iterator[Injection]:
    """The allocating call number ``at``, counted from 1, fails with E_OUTOFMEMORY and has no effect.

    These are all calls of the device, and of DirectML devices on it, that create or compile something,
    and Map.
    """
    at, injection = _count(at, "at", 1), Injection()

    def strike(event: CallBegun) -> None:
        operation = event.operation
        if injection.happened or not (operation.startswith(("Create", "Compile")) or operation == "Map"):
            return
        injection.seen += 1
        if injection.seen == at:
            injection.happened = True
            raise OutOfMemory.of_memory(operation=operation, at=at)

    with _parent(device).events.subscribe(strike, CallBegun):
        yield injection


@contextmanager
def memory_budget(device: d3d12.Device | dml.Device, size: int) -> Iterator[None]:
    """Limits the device to ``size`` bytes of memory; existing allocations beyond that stay.

    The events that were registered for changes of the budget are set, at the end, too.
    """
    context, size = _parent(device).context, _count(size, "size", 0)
    memory, adapter = context.gpu.memory, context.adapter
    before, memory.budget = memory.budget, size
    try:
        adapter.budget_changed()
        yield
    finally:
        memory.budget = before
        adapter.budget_changed()


def _parent(device: d3d12.Device | dml.Device) -> d3d12.Device:
    parent = device.get_parent_device() if isinstance(device, dml.Device) else device
    if not isinstance(parent, d3d12.Device):
        raise TypeError(f"device must be a d3d12.Device or a dml.Device, not {type(device).__name__}.")
    return parent


def _count(value: int, field: str, least: int) -> int:
    if integer(value, field) < least:
        raise outside(value, field, f"at least {least}", f"is below {least}")
    return value
