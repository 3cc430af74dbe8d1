"""What the digits need beyond :class:`dmlemu.Session`: operators with their buffers, counts, GPU time.

Nothing here is about digits.  ``Gpu`` is the session, ``Step`` a compiled operator with its buffers,
``Commands`` a command list under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

import dmlemu
from dmlemu import d3d12, dml

COPY_DEST = d3d12.ResourceStates.COPY_DEST
COPY_SOURCE = d3d12.ResourceStates.COPY_SOURCE
UNORDERED_ACCESS = d3d12.ResourceStates.UNORDERED_ACCESS
DESCRIPTORS = 256  # places in the descriptor heap
TIMESTAMPS = 4096  # places in the query heap: two for each command list


@dataclass
class Step:
    """An operator that is ready to be dispatched.

    ``inputs`` and ``outputs`` hold one buffer per tensor of the operator's desc, in the desc's order;
    None stands for an optional tensor that is absent.  ``owned`` holds the buffers of tensors flagged
    OWNED_BY_DML by their place among the inputs: DirectML reads those once, at initialisation.
    """

    name: str
    operator: dml.CompiledOperator
    inputs: Sequence[d3d12.Resource | None]
    outputs: Sequence[d3d12.Resource]
    owned: Mapping[int, d3d12.Resource]
    persistent: d3d12.Resource | None
    temporary: d3d12.Resource | None
    table: dml.BindingTable


@dataclass
class Counts:
    """What was recorded so far; ``lists`` has the name of each command list."""

    lists: list[str] = field(default_factory=list)
    dispatches: int = 0
    copies: int = 0
    barriers: int = 0


class Gpu(dmlemu.Session):
    """A session that counts what it records, and measures the GPU's time for each command list."""

    def __init__(self) -> None:
        super().__init__(descriptors=DESCRIPTORS)
        self.adapter = d3d12.create_adapter_list()[0]
        self.counts = Counts()
        self.query_heap = self.keep(
            self.device.create_query_heap(
                d3d12.QueryHeapDesc(type=d3d12.QueryHeapType.TIMESTAMP, count=TIMESTAMPS)
            )
        )
        self.timestamps = self.readback_buffer("timestamps", 8 * TIMESTAMPS)

    def step(
        self,
        name: str,
        desc: dml.OperatorDesc,
        inputs: Sequence[d3d12.Resource | None],
        outputs: Sequence[d3d12.Resource],
        owned: Mapping[int, d3d12.Resource] | None = None,
    ) -> Step:
        """Compiles ``desc`` and binds its buffers.  It must be initialised before it is dispatched."""
        operator = self.compile(desc, name)
        persistent = self.persistent_buffer(operator)
        temporary = self.temporary_buffer(operator)
        table = self.keep(self.bind(operator, inputs, outputs, persistent=persistent, temporary=temporary))
        return Step(name, operator, inputs, outputs, owned or {}, persistent, temporary, table)

    # --- command lists ---

    @contextmanager
    def record(self, name: str) -> Iterator[Commands]:
        """Records a command list and submits it.  The GPU runs it later: see ``wait``."""
        commands = Commands(self, name)
        yield commands
        commands.submit()

    def wait(self, value: int | None = None) -> None:
        """Waits until the GPU has done everything that was submitted, or the list numbered ``value``."""
        self.fence.wait(self.fence_value if value is None else value)

    def seconds(self) -> dict[str, float]:
        """GPU time of all lists submitted so far, by their names.  Wait first."""
        names = self.counts.lists
        total = dict.fromkeys(names, 0.0)
        ticks = self.read(self.timestamps, np.uint64, (len(names), 2))
        for name, (before, after) in zip(names, ticks.tolist(), strict=True):
            total[name] += (after - before) / self.queue.get_timestamp_frequency()
        return total


@dataclass
class Commands:
    """A command list being recorded.  Counts what goes in, and takes the GPU's time at both ends."""

    gpu: Gpu
    name: str
    list: d3d12.CommandList = field(init=False)

    def __post_init__(self) -> None:
        self.list = self.gpu.list
        self.list.set_name(f"{self.name} (list {len(self.gpu.counts.lists)})")
        self.first_query = 2 * len(self.gpu.counts.lists)
        self.list.end_query(self.gpu.query_heap, d3d12.QueryType.TIMESTAMP, self.first_query)

    def submit(self) -> None:
        """Ends the recording and hands the list to the queue; the next one begins while the GPU works."""
        gpu, heap, first = self.gpu, self.gpu.query_heap, self.first_query
        self.list.end_query(heap, d3d12.QueryType.TIMESTAMP, first + 1)
        kind = d3d12.QueryType.TIMESTAMP
        self.list.resolve_query_data(heap, kind, first, 2, gpu.timestamps, 8 * first)
        gpu.submit()
        gpu.open()
        gpu.counts.lists.append(self.name)

    def copy(
        self, destination: d3d12.Resource, offset: int, source: d3d12.Resource, source_offset: int, size: int
    ) -> None:
        """Copies ``size`` bytes between buffers in the states COPY_DEST and COPY_SOURCE."""
        self.list.copy_buffer_region(destination, offset, source, source_offset, size)
        self.gpu.counts.copies += 1

    def transition(
        self, before: d3d12.ResourceStates, after: d3d12.ResourceStates, *buffers: d3d12.Resource
    ) -> None:
        """Whatever was done to the buffers in the one state ends before anything begins in the other."""
        self.gpu.transition(before, after, *buffers)
        self.gpu.counts.barriers += len(buffers)

    def initialise(self, steps: Sequence[Step]) -> None:
        """Prepares operators for their first dispatch: DirectML takes the tensors that it is to own."""
        self.gpu.initialize(
            *(step.operator for step in steps),
            inputs=[self._owned_inputs(step) for step in steps],
            persistent=[step.persistent for step in steps],
        )
        self.gpu.counts.dispatches += 1
        self.gpu.barrier()
        self.gpu.counts.barriers += 1

    @staticmethod
    def _owned_inputs(step: Step) -> Sequence[d3d12.Resource | None] | None:
        """One entry per input of the operator; only those flagged OWNED_BY_DML have a buffer."""
        return [step.owned.get(i) for i in range(len(step.inputs))] if step.owned else None

    def dispatch(self, step: Step) -> None:
        """Runs an operator; whatever comes after may use what it writes."""
        self.gpu.recorder.record_dispatch(self.list, step.operator, step.table)
        self.gpu.counts.dispatches += 1
        self.gpu.barrier(*step.outputs)
        self.gpu.counts.barriers += len(step.outputs)
