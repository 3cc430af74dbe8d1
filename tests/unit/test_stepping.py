"""Runs that are stepped through: what is known of each moment, and the searches."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlemu
from dmlemu import d3d12, dml
from dmlemu.pictures import Tensor
from dmlemu.stepping import Moment, Run, observe, read_tensor
from dmlemu.stepping.model import HOST
from dmlemu.stepping.versions import Versions

FLOAT32 = dml.TensorDataType.FLOAT32
VECTOR = dml.BufferTensorDesc(FLOAT32, [4])
END = 1 << 40
TILE = 65536


@pytest.fixture(autouse=True)
def no_devices_of_other_tests() -> None:
    """A device that still lives would be used again, and is not new."""
    gc.collect()


def negate(session: dmlemu.Session, source: Any, target: Any, desc: dml.BufferTensorDesc = VECTOR) -> None:
    operator = session.compile(
        dml.ElementWiseNegateOperatorDesc(input_tensor=desc, output_tensor=desc), "negate"
    )
    session.initialize(operator)
    session.dispatch(operator, [source], [target])


def the(run: Run, name: str) -> Moment:
    """The only dispatch, or the first moment of that name."""
    return next(each for each in run.moments if each.name.startswith(name))


def number(run: Run, name: str) -> int:
    return next(each.number for each in run.buffers if each.name == f"buffer '{name}'")


def values(run: Run, name: str, moment: int) -> list[float]:
    data = run.content(number(run, name), moment).data
    found: list[float] = np.frombuffer(data, np.float32).tolist()
    return found


@pytest.fixture(scope="module")
def simple() -> Run:
    """Uploads, negates, reads back."""
    gc.collect()
    with observe() as run, dmlemu.Session() as session:
        source = session.upload("source", np.float32([1, 2, 3, 4]))
        target = session.buffer("target", 16)
        negate(session, source, target)
        session.read(target, np.float32)
    return run


def test_contents_before_and_after(simple: Run) -> None:
    at = the(simple, "Dispatch").number
    assert values(simple, "source", at) == [1, 2, 3, 4]
    assert values(simple, "target", at) == [-1, -2, -3, -4] == values(simple, "target", END)
    assert values(simple, "target", at - 1) == [0, 0, 0, 0] == values(simple, "target", -1)
    [change] = simple.changes(at)
    assert (change.buffer, change.end) == (number(simple, "target"), 16)
    assert np.frombuffer(bytes(change.begin) + change.after, np.float32).tolist() == [-1, -2, -3, -4]
    assert not any(change.before)
    assert simple.changed(number(simple, "source"), at) == []


def test_a_dispatch_tells_its_operands(simple: Run) -> None:
    moment = the(simple, "Dispatch")
    source, target = moment.operands
    assert (source.name, source.access, source.begin, source.end) == ("InputTensor", "reads", 0, 16)
    assert (target.name, target.access, target.writes) == ("OutputTensor", "writes", True)
    assert source.tensor == Tensor("InputTensor", "FLOAT32", 32, (4,), (1,), 0, 16)
    assert moment.text.startswith("DISPATCH sign_flip") and moment.is_dispatch and not moment.failed
    assert moment.site.startswith("test_stepping.py:") and moment.ended > moment.started
    assert (moment.packet, moment.command) == (1, 1)


def test_host_and_queue_are_told_apart(simple: Run) -> None:
    names = {kind: {each.name for each in simple.moments if each.kind == kind} for kind in ("host", "queue")}
    assert {"CreateFence", "Unmap", "ExecuteCommandLists", "Signal", "BindInputs", "wait"} <= names["host"]
    assert names["queue"] == {"Signal"}
    assert [each.number for each in simple.moments] == list(range(len(simple)))


def test_a_program_marks_a_moment() -> None:
    with observe() as run, dmlemu.Session() as session:
        session.device.mark("before")
        session.upload("source", np.float32([1, 2, 3, 4]))
        session.device.mark("after")
        with pytest.raises(TypeError, match="text"):
            session.device.mark(1)  # type: ignore[arg-type]
    first, last = (each for each in run.moments if each.name == "mark")
    assert (first.text, last.text) == ("before", "after")
    assert first.kind == HOST and first.site.startswith("test_stepping.py:")
    assert first.number < the(run, "CopyBufferRegion").number < last.number


def test_a_run_is_the_same_after_pickling(simple: Run) -> None:
    """As a native program leaves it to dmlemu step."""
    simple.spell()  # there is nothing to spell late
    copy: Run = pickle.loads(pickle.dumps(simple))
    assert [(each.name, each.site, each.text) for each in copy.moments] == [
        (each.name, each.site, each.text) for each in simple.moments
    ]
    at = the(copy, "Dispatch").number
    assert copy.changes(at) == simple.changes(at)
    listing, original = copy.listing(at), simple.listing(at)
    assert listing is not None and original is not None
    assert list(listing.lines()) == list(original.lines())


def test_what_the_cpu_wrote(simple: Run) -> None:
    moment = the(simple, "Unmap")
    [operand] = moment.operands
    assert (operand.name, operand.access) == ("mapped memory", "writes")
    assert values(simple, "source, upload", moment.number) == [1, 2, 3, 4]
    assert values(simple, "source, upload", moment.number - 1) == [0, 0, 0, 0]


def test_states_are_promoted_and_decay(simple: Run) -> None:
    at, target = the(simple, "Dispatch").number, number(simple, "target")
    assert simple.states(at - 1)[target] == "COMMON"
    assert simple.states(at)[target] == "UNORDERED_ACCESS (promoted)"
    assert simple.states(at + 1)[target] == "COMMON"
    copy = max(each.number for each in simple.moments if each.name == "CopyBufferRegion")
    assert simple.states(copy)[target] == "COPY_SOURCE (promoted)"
    upload = the(simple, "CopyBufferRegion").number
    assert simple.states(upload)[number(simple, "source, upload")] == "GENERIC_READ"


def test_descriptors_and_fences(simple: Run) -> None:
    at = the(simple, "Dispatch").number
    assert simple.descriptors(the(simple, "BindInputs").number - 1) == {}
    assert simple.descriptors(at) == {
        (0, 0): "UAV R32_TYPELESS bytes [0, 16) of buffer 'source'",
        (0, 1): "UAV R32_TYPELESS bytes [0, 16) of buffer 'target'",
    }
    assert [each.descriptor for each in simple.moments[at].operands] == [(0, 0), (0, 1)]
    assert simple.fences == ["fence #1"]
    assert [simple.fence_values(each)[0] for each in (0, at, at + 1)] == [0, 1, 2]


def test_buffers_live_from_creation_to_release(simple: Run) -> None:
    upload = simple.buffers[number(simple, "source, upload")]
    assert simple.moments[upload.released or 0].name == "Release"
    assert upload.lives(upload.created) and not upload.lives(upload.created - 1)
    assert upload not in simple.living(upload.released or 0)
    assert (upload.heap_type, upload.size) == ("UPLOAD", 16)


def test_searches(simple: Run) -> None:
    at, target = the(simple, "Dispatch").number, number(simple, "target")
    assert (
        simple.next_dispatch(-1, 1) == at == simple.next_dispatch(END, -1) == simple.next_dispatch(at + 2, -1)
    )
    assert simple.next_dispatch(at, 1) is None and simple.next_report(-1, 1) is None
    assert simple.next_writer(END, -1, target, 5) == at and simple.next_writer(at, 1, target, 5) is None
    first = simple.next_list(-1, 1)
    assert first is not None and simple.moments[first].packet == 0
    second = simple.next_list(first, 1)
    assert second is not None and simple.moments[second].ticket != simple.moments[first].ticket
    assert simple.next_list(second, -1) == first


def test_gaps_between_elements_have_no_writer() -> None:
    spread = dml.BufferTensorDesc(FLOAT32, [2], strides=[2])
    with observe() as run, dmlemu.Session() as session:
        source = session.upload("source", np.float32([1, 2, 3, 4]))
        target = session.buffer("target", 16)
        negate(session, source, target, spread)
        session.run()
    at, target_number = the(run, "Dispatch").number, number(run, "target")
    found = [run.next_writer(END, -1, target_number, byte) for byte in (0, 3, 4, 7, 8, 11)]
    assert found == [at, at, None, None, at, at]


def test_a_write_is_seen_through_every_buffer_over_the_memory() -> None:
    with observe() as run, dmlemu.Session() as session:
        desc = d3d12.HeapDesc(TILE, d3d12.HeapProperties(d3d12.HeapType.DEFAULT), 0, d3d12.HeapFlags.NONE)
        heap = session.keep(session.device.create_heap(desc))
        for name in ("one", "other"):
            made = session.keep(
                session.device.create_placed_resource(
                    heap,
                    0,
                    d3d12.ResourceDesc.buffer(64, d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS),
                    d3d12.ResourceStates.COMMON,
                )
            )
            made.set_name(name)
        session.list.resource_barrier([d3d12.ResourceBarrier.aliasing(None, made)])
        session.write(made, np.float32([1, 2]), offset=8)
        session.read(made, np.float32, 2, offset=8)
    at = next(each.number for each in run.moments if each.name == "CopyBufferRegion")
    one, other = run.buffers[number(run, "one")], run.buffers[number(run, "other")]
    assert (one.memory, one.offset) == (other.memory, other.offset)
    assert run.changed(one.number, at) == run.changed(other.number, at) == [(10, 16)]
    assert run.next_writer(END, -1, one.number, 8) == at
    assert [each.buffer for each in run.changes(at)] == [other.number]


def test_what_the_cpu_writes_while_mapped_is_seen_before_the_gpu_reads_it() -> None:
    with observe() as run, dmlemu.Session() as session:
        source = session.upload_buffer("source", np.zeros(4, np.float32))
        target = session.buffer("target", 16)
        mapped = source.map(0, d3d12.Range(0, 0))
        mapped.view(np.float32)[:] = [5, 6, 7, 8]
        session.list.copy_buffer_region(target, 0, source, 0, 16)
        session.run()
        session.read(target, np.float32)
        source.unmap()
    copy = the(run, "CopyBufferRegion").number
    written = next(each for each in run.moments if each.name == "CPU")
    assert written.number < copy and "wrote into buffer 'source'" in written.text
    assert run.next_writer(END, -1, number(run, "source"), 0) == written.number
    assert values(run, "target", copy) == [5, 6, 7, 8]


@pytest.mark.dmlemu(expect=["HAZARD_RAW"])
def test_a_report_belongs_to_its_command() -> None:
    with pytest.raises(dmlemu.Error), observe() as run, dmlemu.Session() as session:
        source = session.upload("source", np.float32([1, 2, 3, 4]))
        middle, target = session.buffer("middle", 16), session.buffer("target", 16)
        negate(session, source, middle)
        negate(session, middle, target)
        session.run()
    first, second = (each for each in run.moments if each.is_dispatch)
    assert [each.id for each in second.reports] == ["HAZARD_RAW"] and not first.reports
    assert run.next_report(-1, 1) == second.number and run.next_report(second.number, 1) is None


def test_a_command_that_fails_is_the_last_one() -> None:
    device = d3d12.create_device(d3d12.Adapter(), strictness=dmlemu.Strictness.RUNTIME)
    with observe(device) as run:
        session = dmlemu.Session(dml.create_device(device))
        source, target = session.buffer("source", 16), session.buffer("target", 16)
        negate(session, source, target)
        session.barrier()
        session.submit()
        target.release()
        session.fence.wait(session.fence_value, 1)
    assert device.get_device_removed_reason()
    failed = [each for each in run.moments if each.failed]
    assert [each.is_dispatch for each in failed] == [True]
    assert [each.id for each in failed[0].reports] == ["DESC_STALE"]
    listing = run.listing(failed[0].number)
    assert listing is not None and [packet for packet, _ in listing.lines()] == [-1, 0, -1, 1, -1, 2]
    assert run.next_command(failed[0].number, 1) is None


def test_a_command_that_cannot_be_read_is_the_last_one() -> None:
    device = d3d12.create_device(d3d12.Adapter(), strictness=dmlemu.Strictness.RUNTIME)
    with observe(device) as run:
        session = dmlemu.Session(dml.create_device(device))
        negate(session, session.buffer("source", 16), session.buffer("target", 16))
        first = session.descriptors.get_cpu_descriptor_handle_for_heap_start()
        view = d3d12.UnorderedAccessViewDesc(d3d12.Format.R32_UINT, buffer=d3d12.BufferUav(0, 4))
        device.create_unordered_access_view(None, None, view, first)
        session.submit()
        session.fence.wait(session.fence_value, 1)
    [failed] = [each for each in run.moments if each.failed]
    assert (failed.is_dispatch, failed.packet, failed.list) == (True, 1, "command list #1")
    assert [each.id for each in failed.reports] == ["DESC_KIND"]
    assert run.listing(failed.number) is not None
    assert run.descriptors(failed.number)[0, 0] == "UAV null"


@pytest.mark.dmlemu(expect=["MAP_HEAP"])
def test_the_error_that_ends_the_run_is_its_last_moment() -> None:
    with pytest.raises(dmlemu.Error), observe() as run, dmlemu.Session() as session:
        session.buffer("target", 16).map()
    assert [each.id for each in run.moments[-1].reports] == ["MAP_HEAP"]


def test_the_run_ends_at_its_limit_and_says_so() -> None:
    with observe(limit=16384) as run, dmlemu.Session() as session:
        for _ in range(20):
            session.upload("source", np.float32([1, 2, 3, 4]))
    assert len(run) == 8
    assert run.notes == ["The run ends after moment 7: what follows exceeds the limit of 16384 bytes."]


def test_a_moment_that_a_thread_of_another_device_adds_first_is_counted() -> None:
    class Raced(list[Moment]):
        def append(self, moment: Moment) -> None:
            if not self:
                super().append(Moment(0, HOST, "of another thread"))
            super().append(moment)

    with observe() as run:
        run.moments = Raced()
        d3d12.create_device(d3d12.Adapter()).create_fence()
    assert [each.number for each in run.moments[:2]] == [0, 1] and run.moments[1].name == "CreateFence"


def test_states_change_only_at_moments_of_the_own_device() -> None:
    class Raced(list[Moment]):
        def append(self, moment: Moment) -> None:
            super().append(Moment(len(self), HOST, "of another thread"))
            super().append(moment)

    with observe() as run, dmlemu.Session() as session:
        run.moments = Raced(run.moments)
        source, target = session.upload("source", np.float32([1, 2, 3, 4])), session.buffer("target", 16)
        session.list.copy_buffer_region(target, 0, source, 0, 16)
        session.run()
        session.read(target, np.float32)
    changed = {at for at in range(len(run)) if run.state_versions.changes(at)}
    assert changed and "of another thread" not in {run.moments[at].name for at in changed}


def test_queues_of_one_name_are_told_apart() -> None:
    with observe() as run:
        for size in (16, 32):
            with dmlemu.Session() as session:
                source, target = session.buffer("source", size), session.buffer("target", size)
                for _ in range(size // 16):
                    session.list.copy_buffer_region(target, 0, source, 0, size)
                session.run()
            del session, source, target
    copies = [each.number for each in run.moments if each.name == "CopyBufferRegion"]
    assert len({run.moments[each].queue for each in copies}) == 1
    listings = [run.listing(each) for each in copies]
    assert listings[0] is not None and listings[0] is not listings[1] and listings[1] is listings[2]
    assert run.next_list(copies[0], 1) is not None


def test_the_end_leaves_no_cycle_that_keeps_the_device() -> None:
    device = d3d12.create_device(d3d12.Adapter())
    with observe(device):
        device.create_fence()
    known = weakref.ref(device)
    gc.disable()
    try:
        del device
        assert known() is None
    finally:
        gc.enable()


def test_a_watch_that_cannot_be_closed_leaves_no_other_one_open(monkeypatch: pytest.MonkeyPatch) -> None:
    observation = observe()
    with pytest.raises(RuntimeError, match="cannot be closed"), observation as run:
        first, second = (d3d12.create_device(d3d12.Adapter()) for _ in range(2))
        assert first is not second

        def fail() -> None:
            raise RuntimeError("cannot be closed")

        monkeypatch.setattr(observation.watches[0], "close", fail)
    count = len(run)
    second.create_fence()
    assert len(run) == count and not observation.watches


def test_a_command_too_large_for_the_limit_is_not_kept_in_part() -> None:
    with observe(limit=1 << 20) as run, dmlemu.Session() as session:
        source, target = session.buffer("source", 1 << 20), session.buffer("target", 1 << 20)
        session.list.copy_buffer_region(target, 0, source, 0, 1 << 20)
        session.run()
    assert run.moments[-1].name == "SetDescriptorHeaps" and run.pages.size == 0
    assert "exceeds the limit of 1048576 bytes" in run.notes[0]


def test_a_limit_is_not_negative() -> None:
    with pytest.raises(ValueError, match=r"limit \(-1\) is negative"):
        observe(limit=-1)


def test_what_nothing_accessed_is_unknown() -> None:
    with observe() as run, dmlemu.Session() as session:
        target = session.buffer("target", 3 * 4096)
        session.write(target, np.float32([1]), offset=4096)
        session.read(target, np.float32, 1, offset=4096)
    content = run.content(number(run, "target"), END)
    assert content.unknown == ((0, 4096), (8192, 12288))
    assert content.knows(4096, 8192) and not content.knows(4095, 4097)
    assert run.content(number(run, "target"), END, 4096, 4100) == (np.float32([1]).tobytes(), ())


def test_reserved_buffers_follow_their_tiles() -> None:
    with observe() as run, dmlemu.Session() as session:
        desc = d3d12.HeapDesc(2 * TILE, d3d12.HeapProperties(d3d12.HeapType.DEFAULT), 0, d3d12.HeapFlags.NONE)
        heap = session.keep(session.device.create_heap(desc))
        buffer = session.keep(
            session.device.create_reserved_resource(
                d3d12.ResourceDesc.buffer(2 * TILE), d3d12.ResourceStates.COMMON
            )
        )
        buffer.set_name("tiles")
        whole = d3d12.TileRegionSize(2), d3d12.TileRangeFlags.NONE
        session.queue.update_tile_mappings(
            buffer, [d3d12.TiledResourceCoordinate()], [whole[0]], heap, [whole[1]], [0], [2]
        )
        session.write(buffer, np.float32([1, 2]), offset=TILE)
    mapped = next(each for each in run.moments if each.kind == "queue" and each.name == "UpdateTileMappings")
    copy = the(run, "CopyBufferRegion")
    assert mapped.number < copy.number
    assert run.buffers[number(run, "tiles")].heap_type == "reserved"
    assert run.changed(number(run, "tiles"), copy.number) == [(TILE + 2, TILE + 8)]


def test_a_device_that_exists_is_observed_from_then_on() -> None:
    with dmlemu.Session() as session:
        source = session.upload("source", np.float32([1, 2, 3, 4]))
        with observe(session.dml) as run:
            copied = session.read(source, np.float32)
        later = len(run)
        session.read(source, np.float32)
    assert copied.tolist() == [1, 2, 3, 4] == values(run, "source", -1)
    assert len(run) == later and run.notes == []


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 5))), st.integers(-1, 20))
def test_versions_keep_every_state(steps: list[tuple[int, int, int]], asked: int) -> None:
    versions: Versions[int, int] = Versions()
    moment, states = 0, {}
    plain: dict[int, int] = {}
    for forward, key, value in steps:
        moment += forward
        versions.set(moment, key, value)
        plain[key] = value
        states[moment] = dict(plain)
    expected = max((each for each in states if each <= asked), default=None)
    assert dict(versions.items(asked)) == ({} if expected is None else states[expected])
    replayed: dict[int, int] = {}
    for at in range(asked + 1):
        replayed |= versions.changes(at)
    assert replayed == dict(versions.items(asked))
    assert all((versions.last(key), key in versions) == (value, True) for key, value in plain.items())


@pytest.mark.parametrize(
    ("kind", "bits", "data", "expected"),
    [
        ("INT4", 4, b"\x21\xf8", [1, 2, -8, -1]),
        ("UINT4", 4, b"\x21\xf8", [1, 2, 8, 15]),
        ("INT8", 8, b"\xff\x01\x02\x03", [-1, 1, 2, 3]),
        ("FLOAT16", 16, np.float16([1, -2, 0.5, 4]).tobytes(), [1, -2, 0.5, 4]),
        ("UINT64", 64, np.uint64([1, 2, 3, 2**64 - 1]).tobytes(), [1, 2, 3, 2**64 - 1]),
    ],
)
def test_elements_of_every_width(kind: str, bits: int, data: bytes, expected: list[float]) -> None:
    tensor = Tensor("", kind, bits, (2, 2), (2, 1), 0, len(data))
    assert read_tensor(data, tensor).ravel().tolist() == expected
    with pytest.raises(ValueError, match="are given"):
        read_tensor(data[:-1], tensor)
