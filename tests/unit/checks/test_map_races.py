"""MAP_RACE where a fence holds a queue back: the CPU may write until the fence can have its value.

ID3D12Resource::Map: what a command list reads is to be written before the GPU executes it; before
ExecuteCommandLists mostly, "but using a fence to delay command list execution works as well".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dmlemu import Error, chaos, d3d12
from dmlemu.checks.map_races.check import MapRaces
from dmlemu.d3d12 import Policy
from dmlemu.errors import Severity
from dmlemu.reporting import Response
from dmlemu.testing.stage import OtherQueue, Stage, States, other_queue

pytestmark = pytest.mark.dmlemu(expect=["MAP_*", "FENCE_BACKWARDS*"])
POLICIES = [Policy.LAZY, Policy.EAGER, *map(chaos, range(4))]


class Upload:
    """A mapped upload buffer, a list that copies it to be read, and fences to hold that back."""

    def __init__(self, policy: object) -> None:
        self.stage = Stage(policy=policy)
        self.stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
        self.buffer, self.result = (
            self.stage.host_buffer("upload", 64),
            self.stage.host_buffer("result", 64, "READBACK"),
        )
        self.memory: Any = self.buffer.map(0, d3d12.Range(0, 0)).view(np.float32)
        self.stage.list.copy_resource(self.result, self.buffer)

    def fence(self, value: int = 0) -> Any:
        return self.stage.device.create_fence(value)

    def other(self) -> OtherQueue:
        return other_queue(self.stage, "COPY")

    def wait(self, fence: Any, value: int = 1) -> None:
        self.stage.queue.wait(fence, value)

    def submit(self) -> None:
        self.stage.submit()

    def write(self, value: float = 3.0) -> None:
        self.memory[:] = value

    def end(self) -> tuple[list[str], float | None]:
        """What was said, and the result if all of it is one value."""
        self.stage.wait()
        found = np.frombuffer(bytes(self.result.map()[:64]), np.float32)
        said = [each.report.id for each in self.stage.device.reports if each.report.id != "FENCE_BACKWARDS"]
        return said, float(found[0]) if len(set(found.tolist())) == 1 else None


@pytest.fixture(params=POLICIES, ids=str)
def policy(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture
def upload(policy: object) -> Upload:
    return Upload(policy)


# --- legal: the GPU sees the bytes, and nothing is said ---


@pytest.mark.parametrize("element", [np.float32, np.uint8])
def test_the_buffer_is_mapped_while_the_fence_holds_the_queue(policy: object, element: Any) -> None:
    stage = Stage(policy=policy)
    upload, weights, result = (
        stage.host_buffer("upload", 64),
        stage.buffer("weights", 64),
        stage.buffer("out", 64),
    )
    operator, gate = stage.copy_operator("copy"), stage.device.create_fence()
    stage.initialize(operator)
    stage.list.copy_resource(weights, upload)
    before, after = d3d12.ResourceStates.COPY_DEST, d3d12.ResourceStates.UNORDERED_ACCESS
    stage.list.resource_barrier([d3d12.ResourceBarrier.transition(weights, before, after)])
    stage.dispatch(operator, [weights], [result])
    stage.queue.wait(gate, 1)
    stage.submit()
    upload.map().view(element)[:] = 3
    gate.signal(1)
    stage.wait()


def test_the_host_sets_the_fence_when_it_has_written(upload: Upload) -> None:
    gate = upload.fence()
    upload.wait(gate)
    upload.submit()
    upload.write()
    gate.signal(1)

    assert upload.end() == ([], 3.0)


def test_it_may_write_several_times_and_set_lower_values(upload: Upload) -> None:
    gate = upload.fence()
    upload.wait(gate, 5)
    upload.submit()
    for value in (1, 4, 2):
        upload.write(float(value))
        gate.signal(value)
    upload.write(7.0)
    gate.signal(6)

    assert upload.end() == ([], 7.0)


def test_another_queue_is_told_to_set_the_fence(upload: Upload) -> None:
    gate, other = upload.fence(), upload.other()
    upload.wait(gate)
    upload.submit()
    upload.write()
    other.queue.signal(gate, 1)

    assert upload.end() == ([], 3.0)


def test_the_other_queue_waits_itself(upload: Upload) -> None:
    """Its signal was handed over before the CPU wrote, but cannot come before the host's."""
    gate, relay, other = upload.fence(), upload.fence(), upload.other()
    upload.wait(relay)
    upload.submit()
    other.queue.wait(gate, 1)
    other.queue.signal(relay, 1)
    upload.write()
    gate.signal(1)

    assert upload.end() == ([], 3.0)


def test_the_buffer_is_mapped_meanwhile(upload: Upload) -> None:
    gate = upload.fence()
    upload.buffer.unmap()
    upload.wait(gate)
    upload.submit()
    with upload.buffer.map(0, d3d12.Range(0, 0)) as memory:
        memory.view(np.float32)[:] = 3.0
    gate.signal(1)

    assert upload.end() == ([], 3.0)


def test_each_list_has_its_own_wait(upload: Upload) -> None:
    """The second list reads what is written when the first one is done."""
    gate, stage = upload.fence(), upload.stage
    upload.write(1.0)
    upload.submit()
    stage.fence.wait(stage.fence_value)
    upload.wait(gate)
    stage.queue.execute_command_lists([stage.list])
    stage.queue.signal(stage.fence, 2)
    stage.fence_value = 2
    upload.write()
    gate.signal(1)

    assert upload.end() == ([], 3.0)


# --- not legal ---


def test_the_host_sets_the_fence_before_it_writes(upload: Upload) -> None:
    gate = upload.fence()
    gate.set_name("gate")
    upload.wait(gate)
    upload.submit()
    upload.write(2.0)
    gate.signal(1)
    upload.write()

    assert upload.end()[0] == ["MAP_RACE"]
    [stored] = upload.stage.device.reports
    assert "after fence 'gate' could reach 1, before it knew" in stored.report.message


def test_the_fence_has_the_value_before(upload: Upload) -> None:
    upload.wait(upload.fence(1))
    upload.submit()
    upload.write()

    assert upload.end()[0] == ["MAP_RACE"]
    [stored] = upload.stage.device.reports
    assert "after ExecuteCommandLists, before it knew" in stored.report.message


def test_the_fence_had_the_value_for_a_moment(upload: Upload) -> None:
    """A wait that was over once stays so."""
    gate = upload.fence()
    upload.wait(gate)
    upload.submit()
    gate.signal(1)
    gate.signal(0)
    upload.write()

    assert upload.end()[0] == ["MAP_RACE"]


def test_the_fence_had_the_value_for_a_moment_before(upload: Upload) -> None:
    gate = upload.fence()
    upload.wait(gate)
    gate.signal(1)
    gate.signal(0)
    upload.submit()
    upload.write()

    assert upload.end()[0] == ["MAP_RACE"]


def test_another_queue_may_set_the_fence_at_any_moment(upload: Upload) -> None:
    gate, other = upload.fence(), upload.other()
    other.queue.signal(gate, 1)
    upload.wait(gate)
    upload.submit()
    upload.write()

    assert upload.end()[0] == ["MAP_RACE"]


def test_the_other_queue_is_told_before_the_cpu_writes(upload: Upload) -> None:
    gate, other = upload.fence(), upload.other()
    upload.wait(gate)
    upload.submit()
    other.queue.signal(gate, 1)
    upload.write()

    assert upload.end()[0] == ["MAP_RACE"]


def test_a_wait_behind_the_list_holds_nothing_back(upload: Upload) -> None:
    gate = upload.fence()
    upload.submit()
    upload.wait(gate)
    upload.write()
    gate.signal(1)

    assert upload.end()[0] == ["MAP_RACE"]


def test_a_wait_of_another_queue_holds_nothing_back(upload: Upload) -> None:
    gate, other = upload.fence(), upload.other()
    other.queue.wait(gate, 1)
    upload.submit()
    upload.write()
    gate.signal(1)

    assert upload.end()[0] == ["MAP_RACE"]


# --- every memory that the CPU sees ---

SEEN = {
    "UPLOAD": d3d12.HeapProperties(d3d12.HeapType.UPLOAD),
    "READBACK": d3d12.HeapProperties(d3d12.HeapType.READBACK),
    "GPU_UPLOAD": d3d12.HeapProperties(d3d12.HeapType.GPU_UPLOAD),
    "CUSTOM": d3d12.HeapProperties(
        d3d12.HeapType.CUSTOM, d3d12.CpuPageProperty.WRITE_BACK, d3d12.MemoryPool.L0
    ),
}
TILE = 65536
STATES = {"UPLOAD": States.GENERIC_READ, "READBACK": States.COPY_DEST}


class Shared:
    """A mapped buffer, and ``alias``, through which commands reach the same bytes."""

    def __init__(self, policy: object, kind: str, by: str) -> None:
        stage = self.stage = Stage(policy=policy)
        device = stage.device
        device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
        desc, state = d3d12.ResourceDesc.buffer(TILE), STATES.get(kind, States.COMMON)
        if by == "itself":
            self.mapped = self.alias = device.create_committed_resource(
                SEEN[kind], d3d12.HeapFlags.NONE, desc, state
            )
        else:
            heap = device.create_heap(d3d12.HeapDesc(2 * TILE, SEEN[kind]))
            self.mapped = device.create_placed_resource(heap, TILE, desc, state)
            if by == "placed":
                self.alias = device.create_placed_resource(heap, TILE, desc, state)
            else:
                self.alias = device.create_reserved_resource(desc, States.COMMON)
                stage.queue.update_tile_mappings(self.alias, None, None, heap, None, [1])
        self.mapped.set_name("mapped")
        self.other = stage.buffer("other", TILE)
        self.memory: Any = self.mapped.map().view(np.uint8)

    def copy(self, *, from_alias: bool) -> None:
        """A copy of 64 bytes from byte 128 of the alias, or to there."""
        if from_alias:
            self.stage.list.copy_buffer_region(self.other, 0, self.alias, 128, 64)
        else:
            self.stage.list.copy_buffer_region(self.alias, 128, self.other, 0, 64)

    def said(self) -> list[str]:
        ids = [stored.report.id for stored in self.stage.device.reports]
        return [id for id in ids if id.startswith("MAP")]


WAYS = [
    (kind, by, from_alias)
    for kind in SEEN
    for by in ("itself", "placed", "tiles")
    for from_alias in (True, False)
    if not (kind == "UPLOAD" and not from_alias and by != "tiles")  # the GPU writes no upload buffer
    and not (kind == "READBACK" and from_alias and by != "tiles")  # and reads no readback buffer
]


@pytest.fixture(params=WAYS, ids=str)
def shared(policy: object, request: pytest.FixtureRequest) -> Shared:
    kind, by, from_alias = request.param
    shared = Shared(policy, kind, by)
    shared.memory[:] = 1
    shared.copy(from_alias=from_alias)
    return shared


@pytest.mark.dmlemu(expect=["*"])
def test_a_change_under_a_command_is_told(shared: Shared) -> None:
    shared.stage.submit()
    shared.memory[130] = 9
    shared.stage.wait()

    assert shared.said() == ["MAP_RACE"]
    [message] = [each.report.message for each in shared.stage.device.reports if each.report.id == "MAP_RACE"]
    assert " bytes [128, 192) of " in message and "changed byte 130 " in message
    assert ("(byte 130 of buffer 'mapped')" in message) == (shared.alias is not shared.mapped)


@pytest.mark.dmlemu(expect=["*"])
def test_a_change_before_and_behind_it_and_beside_it_is_not(shared: Shared) -> None:
    shared.memory[140] = 5
    shared.stage.submit()
    shared.memory[127] = shared.memory[192] = 9
    shared.stage.wait()
    shared.memory[:] = 7
    shared.stage.run()

    assert shared.said() == []


@pytest.mark.parametrize("by", ["itself", "placed", "tiles"])
@pytest.mark.dmlemu(expect=["*"])
def test_what_commands_write_is_no_change_of_the_cpu(policy: object, by: str) -> None:
    """The second command of the list reads what the first one has written; so does the next list."""
    shared = Shared(policy, "CUSTOM", by)
    stage, memory = shared.stage, shared.memory
    source = stage.filled("source", 256)
    for _ in range(3):
        stage.list.copy_buffer_region(shared.alias, 128, source, 0, 64)
        stage.list.copy_buffer_region(shared.alias, 192, source, 64, 64)
        before, after = States.COPY_DEST, States.COPY_SOURCE
        stage.list.resource_barrier([d3d12.ResourceBarrier.transition(shared.alias, before, after)])
        stage.list.copy_buffer_region(shared.other, 0, shared.alias, 64, 256)
        stage.submit()
        stage.list.reset(stage.allocator)
    stage.list.close()
    stage.fence.wait(stage.fence_value)
    assert shared.said() == []
    assert bytes(memory[128:256]) == np.arange(1, 33, dtype=np.float32).tobytes()


def test_tiles_that_are_mapped_by_the_queue_before_the_list(policy: object) -> None:
    """The page table is as the command will find it, not as it is when the list is handed over."""
    stage = Stage(policy=policy)
    stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
    desc = d3d12.ResourceDesc.buffer(TILE)
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE, SEEN["CUSTOM"]))
    first, second = (stage.device.create_placed_resource(heap, i * TILE, desc, States.COMMON) for i in (0, 1))
    tiles = stage.device.create_reserved_resource(desc, States.COMMON)
    arrays = [each.map().view(np.uint8) for each in (first, second)]
    for array in arrays:
        array[:] = 1
    gate = stage.device.create_fence()
    stage.queue.update_tile_mappings(tiles, None, None, heap, None, [0])
    stage.queue.wait(gate, 1)
    stage.queue.update_tile_mappings(tiles, None, None, heap, None, [1])
    stage.list.copy_buffer_region(stage.buffer("other"), 0, tiles, 0, 64)
    stage.submit()
    gate.signal(1)
    arrays[0][:] = 2
    stage.fence.wait(stage.fence_value)
    assert not list(stage.device.reports)

    stage.queue.execute_command_lists([stage.list])
    stage.queue.signal(stage.fence, 2)
    arrays[1][5] = 2
    stage.fence.wait(2)
    assert [stored.report.id for stored in stage.device.reports] == ["MAP_RACE"]


@pytest.mark.parametrize("written", [0, 1])
def test_tiles_that_are_mapped_by_the_queue_behind_the_list(policy: object, written: int) -> None:
    stage = Stage(policy=policy)
    stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
    desc = d3d12.ResourceDesc.buffer(TILE)
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE, SEEN["CUSTOM"]))
    buffers = [stage.device.create_placed_resource(heap, i * TILE, desc, States.COMMON) for i in (0, 1)]
    tiles = stage.device.create_reserved_resource(desc, States.COMMON)
    arrays = [each.map().view(np.uint8) for each in buffers]
    for array in arrays:
        array[:] = 1
    gate, is_mapped = stage.device.create_fence(), stage.device.create_fence()
    stage.queue.update_tile_mappings(tiles, None, None, heap, None, [0])
    stage.queue.signal(is_mapped, 1)
    stage.queue.wait(gate, 1)
    stage.list.copy_buffer_region(stage.buffer("other"), 0, tiles, 0, 64)
    stage.submit()
    stage.queue.update_tile_mappings(tiles, None, None, heap, None, [1])
    is_mapped.wait(1)
    gate.signal(1)
    arrays[written][5] = 2
    stage.fence.wait(stage.fence_value)
    told = [stored.report.id for stored in stage.device.reports]
    assert told == ([] if written else ["MAP_RACE"])


def test_no_number_of_commands_is_too_large() -> None:
    """The oldest of many that the host does not know to be done is watched as the newest."""
    stage = Stage(policy=Policy.LAZY)
    stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
    count = 4200
    upload, weights = stage.host_buffer("upload", 4 * count), stage.buffer("weights")
    array = upload.map().view(np.uint32)
    array[:] = 1
    for i in range(count):
        stage.list.copy_buffer_region(weights, 0, upload, 4 * i, 4)
    stage.submit()
    array[0] = array[-1] = 2
    stage.fence.wait(stage.fence_value)
    [stored] = [each for each in stage.device.reports if each.report.id == "MAP_RACE"]
    assert "changed byte 0 after" in stored.report.message
    assert stored.count == 2


def test_the_same_list_again_and_again_takes_no_more_memory() -> None:
    """Nobody waits; what is known of one command holds for all that touch the same bytes."""
    stage = Stage(policy=Policy.EAGER)
    check = next(each for each in stage.device.checks if isinstance(each, MapRaces))
    upload, weights = stage.host_buffer("upload", 64), stage.buffer("weights", 64)
    array = upload.map().view(np.uint32)
    array[:] = 1
    for _ in range(50):
        stage.list.copy_resource(weights, upload)
        stage.submit()
        stage.list.reset(stage.allocator)
    assert len(check._open) == 1
    array[3] = 2
    with pytest.raises(Error, match="MAP_RACE"):
        stage.fence.wait(stage.fence_value)
    stage.list.close()
