"""What certainly cannot begin yet: lists behind a wait whose fence value nobody can have set."""

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
    """The wait of this ticket cannot end before the host does something: nothing behind it begins."""

    ticket: int
    awaited: FenceValue


def holds(gpu: Gpu) -> dict[int, Hold]:
    """By the serial of each queue that is held; to be called under the GPU's lock.

    Queues are taken to have come as far as they may have: how far the emulated ones are does not matter.
    A value that the host took back again counts for the waits that were queued by then.
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
    now: int  # what the fence holds


def _waits_and_signals(queue: Queue) -> Iterator[_Step]:
    """What the queue still has to do, waits that are over left out."""
    for entry in list(queue.pending):
        is_over = entry.wait is not None and entry.wait.over
        if not is_over and HEADER.unpack_from(entry)[0] in (Opcode.WAIT, Opcode.SIGNAL):
            packet = decode_one(entry)
            assert isinstance(packet, WaitPacket | SignalPacket) and entry.fence is not None
            is_signal = isinstance(packet, SignalPacket)
            yield _Step(entry.ticket, is_signal, packet.fence, packet.value, entry.fence.value)
