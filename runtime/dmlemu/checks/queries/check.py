"""Query heaps: two queues that write or resolve the same timestamps (group a)."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from typing import TYPE_CHECKING, NamedTuple

from dmlemu_hw.events import Accessing, Executing, Foresight, Freed
from dmlemu_hw.packets import WRITE, commands, decode_one

from ...d3d12.memory.query_heap import QUERY_SIZE
from ..framework.check import Check, on
from ..framework.names import NamedCommand
from ..hazards.rows import HAZARD_QUEUE
from . import messages

if TYPE_CHECKING:
    from ...d3d12.device.device import Device

_OPCODES = commands(lambda effects: bool(effects.queries))


class _Use(NamedTuple):
    """The last command of a queue that wrote or read a query."""

    ticket: int
    command: NamedCommand


class QueryHeaps(Check, Foresight):
    """Compares the use of a query with the last uses by other queues.

    Barriers do not name query heaps: between queues only fences order their use.
    """

    declarations = (HAZARD_QUEUE,)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._clocks = device.checks.clocks
        self._clocks.watchers.append(self._forget_queues)
        # By heap and index: the last uses by queue, and whether they write.
        self._uses: dict[int, dict[int, dict[tuple[int, bool], _Use]]] = {}
        self._gone: deque[int] = deque()

    @on(Freed)
    def freed(self, event: Freed) -> None:
        """A heap was released; garbage collection may cause this at any moment."""
        if event.serial in self._uses:
            self._gone.append(event.serial)

    def _forget_queues(self, released: Container[int]) -> None:
        """Removes queues whose work nothing can conflict with."""
        for queries in self._uses.values():
            for uses in queries.values():
                for key in [key for key in uses if key[0] in released]:
                    del uses[key]

    @on(Accessing)
    def executing(self, event: Executing) -> None:
        """A command is about to write timestamps or to resolve them."""
        if event.opcode not in _OPCODES:
            return
        while self._gone:
            self._uses.pop(self._gone.popleft(), None)
        self._clocks.start(event.queue, event.ticket)
        packet = decode_one(event.packet)
        writes = packet.opcode.effects.queries == WRITE
        if writes:
            [(address, data, _)] = packet.stores()
            count = len(data) // QUERY_SIZE
        else:
            [(_, address, size)] = packet.moves()
            count = size // QUERY_SIZE
        heap = self.device.context.gpu.memory.find(address)
        if heap is None or not count:
            return
        first = (address - heap.address) // QUERY_SIZE
        queries = self._uses.setdefault(heap.serial, {})
        use = _Use(event.ticket, self.names.command(event))
        for index in range(first, first + count):
            uses = queries.setdefault(index, {})
            if self._compare(event.queue, use, writes, uses, f"query {index} of {heap.label}"):
                break  # the lowest one is reported
        for index in range(first, first + count):
            queries.setdefault(index, {})[event.queue, writes] = use

    def _compare(
        self, queue: int, use: _Use, writes: bool, uses: dict[tuple[int, bool], _Use], query: str
    ) -> bool:
        """Reports an unordered use by another queue, if there is one."""
        known = self._clocks.of(queue)
        for (other, wrote), before in uses.items():
            conflicts = other != queue and (writes or wrote)
            if conflicts and not self._clocks.is_done(known, other, before.ticket):
                signal = self._clocks.signal_after(other, before.ticket)
                shared = signal is not None and self._clocks.is_shared(signal, other, before.ticket)
                fence = None if signal is None or shared else (self.names.fence(signal.fence), signal.value)
                words = messages.unordered(use.command, before.command, query, writes, wrote, fence)
                cause = (use.command.command.site, before.command.command.site, query)
                self.report(HAZARD_QUEUE.id, cause=cause, **words)
                return True
        return False


CHECKS = (QueryHeaps,)
