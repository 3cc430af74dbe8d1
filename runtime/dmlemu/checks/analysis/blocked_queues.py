"""Blocked queues: waits for fence values that nothing can have signalled yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from dmlemu_hw.packets import HEADER, Opcode, SignalPacket, WaitPacket, decode_one

from .happens_before import FenceValue

if TYPE_CHECKING:
    from dmlemu_hw.gpu import Gpu
    from dmlemu_hw.queue import Queue

__all__ = ["Hold", "holds"]


class Hold(NamedTuple):
    """A wait that cannot end before the host acts: nothing behind this ticket begins."""

    ticket: int
    awaited: FenceValue


def holds(gpu: Gpu) -> dict[int, Hold]:
    """The waits that block queues, by queue serial; call this with the GPU's lock held.

    Every queue is assumed to have progressed as far as possible; the emulated progress does not matter.
    A value that the host has lowered again still counts for waits that were queued before.
    """
    rows = {queue.serial: _waits_and_signals(queue) for queue in gpu.queues}
    heads = {serial: next(row, None) for serial, row in rows.items()}
    reached: dict[int, int] = {}
    goes_on = True
    while goes_on:
        goes_on = False
        for serial, row in rows.items():
            step = heads[serial]
            while step is not None and (
                step.is_signal or step.value <= max(step.now, reached.get(step.fence, 0))
            ):
                if step.is_signal:
                    reached[step.fence] = max(step.value, reached.get(step.fence, 0))
                step = next(row, None)
                goes_on = True
            heads[serial] = step
    return {
        serial: Hold(step.ticket, FenceValue(step.fence, step.value))
        for serial, step in heads.items()
        if step is not None
    }


class _Step(NamedTuple):
    ticket: int
    is_signal: bool
    fence: int
    value: int
    now: int  # the current value of the fence


def _waits_and_signals(queue: Queue) -> Iterator[_Step]:
    """The pending waits and signals of the queue; waits that have ended are left out."""
    for entry in list(queue.pending):
        is_over = entry.wait is not None and entry.wait.over
        if not is_over and HEADER.unpack_from(entry)[0] in (Opcode.WAIT, Opcode.SIGNAL):
            packet = decode_one(entry)
            assert isinstance(packet, WaitPacket | SignalPacket) and entry.fence is not None
            is_signal = isinstance(packet, SignalPacket)
            yield _Step(entry.ticket, is_signal, packet.fence, packet.value, entry.fence.value)
