"""Resource states: rules ST1 to ST19, AL1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dmlemu import Error, HResult, Strictness
from dmlemu.d3d12 import (
    CommandList,
    CommandListType,
    HeapDesc,
    HeapType,
    Resource,
    ResourceBarrier,
    ResourceBarrierFlags,
    ResourceBarrierType,
    ResourceDesc,
    ResourceFlags,
    ResourceStates,
)

from .stage import (
    COMPUTE,
    COPY,
    DIRECT,
    INVALID,
    INVALID_CALL,
    STATE,
    Stage,
    fails,
    remarks,
    transition,
)

BEGIN, END = ResourceBarrierFlags.BEGIN_ONLY, ResourceBarrierFlags.END_ONLY


class Track:
    """A list with three buffers and short methods for commands on them."""

    def __init__(self, stage: Stage, type: CommandListType = DIRECT) -> None:
        self.stage = stage
        self.buffer = stage.buffer()
        self.other = stage.buffer()
        self._source = stage.buffer(heap=HeapType.UPLOAD)
        self._sink = stage.buffer(heap=HeapType.READBACK)
        self.list, self.allocator = stage.record(type)

    def write(self, to: CommandList | None = None) -> None:
        """COPY_DEST."""
        (to or self.list).copy_resource(self.buffer, self._source)

    def read(self, to: CommandList | None = None) -> None:
        """COPY_SOURCE."""
        (to or self.list).copy_resource(self._sink, self.buffer)

    def use(self, state: ResourceStates) -> None:
        """Any state, as a dispatch would."""
        self.list.use_all("RecordDispatch", (self.buffer, int(state), "InputTensor"))

    def turn(self, before: ResourceStates, after: ResourceStates, to: CommandList | None = None) -> None:
        (to or self.list).resource_barrier(transition(self.buffer, before, after))


@pytest.fixture
def track(stage: Stage) -> Track:
    return Track(stage)


def test_ST1_use_in_another_state(track: Track) -> None:
    track.turn(STATE.COMMON, STATE.UNORDERED_ACCESS)

    with fails("ST1", INVALID, 538):
        track.write()
    with fails("ST1", INVALID, 538):
        track.read()
    track.turn(STATE.UNORDERED_ACCESS, STATE.COPY_DEST)
    track.write()
    track.stage.run(track.list)


def test_ST1_read_states_must_be_named(track: Track) -> None:
    track.turn(STATE.COMMON, STATE.NON_PIXEL_SHADER_RESOURCE)

    with fails("ST1", INVALID, 538):
        track.read()
    track.turn(STATE.NON_PIXEL_SHADER_RESOURCE, STATE.GENERIC_READ)
    track.read()


def test_ST2_promotion_by_first_use(track: Track) -> None:
    track.write()
    track.write()
    track.turn(STATE.COPY_DEST, STATE.COPY_SOURCE)
    track.stage.run(track.list)


def test_ST2_promotion_from_an_explicit_COMMON(track: Track) -> None:
    track.turn(STATE.COPY_DEST, STATE.COMMON)
    track.write()
    track.turn(STATE.COPY_DEST, STATE.COMMON)
    track.use(STATE.UNORDERED_ACCESS)
    track.stage.run(track.list)


def test_ST3_promoted_reads_join(track: Track) -> None:
    track.read()
    track.use(STATE.NON_PIXEL_SHADER_RESOURCE)
    track.use(STATE.INDIRECT_ARGUMENT)
    track.turn(STATE.COPY_SOURCE | STATE.NON_PIXEL_SHADER_RESOURCE | STATE.INDIRECT_ARGUMENT, STATE.COPY_DEST)
    track.stage.run(track.list)


@pytest.mark.parametrize("explicit", [False, True])
def test_ST3_a_promoted_write_must_be_left_by_a_transition(stage: Stage, explicit: bool) -> None:
    track = Track(stage)
    if explicit:
        track.turn(STATE.COPY_SOURCE, STATE.COMMON)
    track.write()

    with fails("ST3", INVALID, 538):
        track.read()
    with fails("ST3", INVALID, 942):
        track.use(STATE.UNORDERED_ACCESS)
    track.turn(STATE.COPY_DEST, STATE.COPY_SOURCE)
    track.read()


def test_ST3_a_promoted_read_is_not_promoted_to_a_write(track: Track) -> None:
    track.read()

    with fails("ST3", INVALID, 538):
        track.write()


@pytest.mark.parametrize("after", [STATE.COPY_SOURCE, STATE.UNORDERED_ACCESS, STATE.COPY_DEST])
def test_ST4_decay_after_every_call(track: Track, after: STATE) -> None:
    track.use(STATE.NON_PIXEL_SHADER_RESOURCE)
    track.turn(STATE.NON_PIXEL_SHADER_RESOURCE, after)
    track.stage.run(track.list)

    again, _ = track.stage.record()
    track.write(again)  # promoted anew
    track.stage.run(again)


def test_ST4_no_decay_between_lists_of_one_call(track: Track) -> None:
    track.write()
    second, _ = track.stage.record()
    track.read(second)

    with fails("ST3", INVALID_CALL, 538):
        track.stage.submit(track.list, second)
    track.stage.submit(track.list)
    track.stage.run(second)


def test_ST4_reads_join_across_lists_of_one_call(track: Track) -> None:
    track.read()
    second, _ = track.stage.record()
    second.use_all("RecordDispatch", (track.buffer, int(STATE.NON_PIXEL_SHADER_RESOURCE), "InputTensor"))
    second.resource_barrier(
        transition(track.buffer, STATE.COPY_SOURCE | STATE.NON_PIXEL_SHADER_RESOURCE, STATE.COPY_DEST)
    )
    third, _ = track.stage.record()
    track.write(third)
    track.stage.run(track.list, second, third)


@pytest.mark.parametrize(
    "before", [STATE.COMMON, STATE.UNORDERED_ACCESS, STATE.COPY_SOURCE, STATE.GENERIC_READ, STATE.COPY_DEST]
)
def test_ST5_a_common_buffer_may_be_named_in_any_state(track: Track, before: STATE) -> None:
    track.turn(before, STATE.NON_PIXEL_SHADER_RESOURCE)
    track.turn(STATE.NON_PIXEL_SHADER_RESOURCE, STATE.COMMON)
    track.turn(before | 0, STATE.INDIRECT_ARGUMENT)
    track.stage.run(track.list)


def test_ST5_as_DxDispatch_does_it(track: Track) -> None:
    """Buffers created in COMMON, with barriers from UAV, repeated in every call."""
    for _ in range(2):
        commands, _ = track.stage.record()
        track.turn(STATE.UNORDERED_ACCESS, STATE.COPY_DEST, commands)
        track.write(commands)
        track.turn(STATE.COPY_DEST, STATE.UNORDERED_ACCESS, commands)
        commands.use_all("RecordDispatch", (track.buffer, int(STATE.UNORDERED_ACCESS), "InputTensor"))
        track.stage.run(commands)


@pytest.mark.parametrize(
    "kind, before, after",
    [
        (HeapType.UPLOAD, STATE.GENERIC_READ, STATE.COPY_DEST),
        (HeapType.UPLOAD, STATE.COPY_DEST, STATE.COPY_SOURCE),
        (HeapType.READBACK, STATE.COPY_DEST, STATE.COPY_SOURCE),
    ],
)
def test_ST6_host_heaps_do_not_transition(stage: Stage, kind: HeapType, before: STATE, after: STATE) -> None:
    buffer = stage.buffer(heap=kind)
    commands, _ = stage.record()

    with fails("ST6", INVALID, 741):
        commands.resource_barrier(transition(buffer, before, after))


HOST_STATES = [(HeapType.UPLOAD, STATE.GENERIC_READ), (HeapType.READBACK, STATE.COPY_DEST)]


@pytest.mark.parametrize("kind, state", HOST_STATES)
@pytest.mark.parametrize("strictness", [Strictness.DEBUG, Strictness.STRICT])
def test_ST6_common_is_another_state(kind: HeapType, state: STATE, strictness: Strictness) -> None:
    stage = Stage(strictness)
    commands, _ = stage.record()

    with fails("ST6", INVALID, 741):
        commands.resource_barrier(transition(stage.buffer(heap=kind), state, STATE.COMMON))
    stage.run(commands)


@pytest.mark.parametrize("kind, state", HOST_STATES)
@pytest.mark.layer("STATE_COMBO")
def test_ST6_a_transition_to_common_fails_at_close_of_the_runtime(
    kind: HeapType, state: STATE, runtime: Stage
) -> None:
    stage = runtime
    commands, _ = stage.record()
    commands.resource_barrier(transition(stage.buffer(heap=kind), state, STATE.COMMON))

    with fails("ST6", INVALID, 741):
        commands.close()
    assert stage.device.get_device_removed_reason() is HResult.S_OK


@pytest.mark.parametrize("kind, state", HOST_STATES)
@pytest.mark.parametrize("strictness", [Strictness.DEBUG, Strictness.STRICT])
def test_ST6_from_common_which_it_never_was(kind: HeapType, state: STATE, strictness: Strictness) -> None:
    stage = Stage(strictness)
    commands, _ = stage.record()

    with fails("ST6", INVALID, 741):
        commands.resource_barrier(transition(stage.buffer(heap=kind), STATE.COMMON, state))
    stage.run(commands)


@pytest.mark.parametrize("kind, state", HOST_STATES)
@pytest.mark.layer("STATE_COMBO")
def test_ST6_the_runtime_knows_no_state_to_start_from(kind: HeapType, state: STATE, runtime: Stage) -> None:
    commands, _ = runtime.record()
    commands.resource_barrier(transition(runtime.buffer(heap=kind), STATE.COMMON, state))
    runtime.run(commands)
    assert runtime.device.get_device_removed_reason() is HResult.S_OK
    if runtime.device.context.has_layer:
        assert remarks(runtime) == [741]


@pytest.mark.parametrize("kind, state", HOST_STATES)
@pytest.mark.parametrize("strictness", list(Strictness))
def test_ST6_a_buffer_that_was_created_in_common_may_go_back_to_it(
    kind: HeapType, state: STATE, strictness: Strictness
) -> None:
    stage = Stage(strictness)
    buffer = stage.buffer(heap=kind, state=STATE.COMMON)
    commands, _ = stage.record()
    commands.resource_barrier(transition(buffer, STATE.COMMON, state))
    commands.resource_barrier(transition(buffer, state, STATE.COMMON))
    stage.run(commands)


def test_ST6_host_heaps_in_use(stage: Stage) -> None:
    upload, readback = stage.buffer(heap=HeapType.UPLOAD), stage.buffer(heap=HeapType.READBACK)
    commands, _ = stage.record()

    with fails("ST6", INVALID, 538):
        commands.copy_resource(upload, stage.buffer())
    with fails("ST6", INVALID, 538):
        commands.copy_resource(stage.buffer(), readback)
    commands.copy_resource(readback, upload)
    commands.resource_barrier(transition(upload, STATE.GENERIC_READ, STATE.COPY_SOURCE))
    commands.copy_resource(readback, upload)
    stage.run(commands)


def test_ST7_equal_states(track: Track) -> None:
    with fails("ST7", INVALID, 525):
        track.turn(STATE.COPY_DEST, STATE.COPY_DEST)


def test_ST8_before_state_within_a_list(track: Track) -> None:
    track.turn(STATE.COMMON, STATE.UNORDERED_ACCESS)

    with fails("ST8", INVALID, 527):
        track.turn(STATE.COPY_DEST, STATE.COPY_SOURCE)
    with fails("ST8", INVALID, 527):
        track.turn(STATE.COMMON, STATE.COPY_SOURCE)
    track.turn(STATE.UNORDERED_ACCESS, STATE.COPY_SOURCE)


@pytest.mark.parametrize(
    "use, before", [(STATE.COPY_DEST, STATE.COMMON), (STATE.COPY_DEST, STATE.COPY_SOURCE)]
)
def test_ST8_before_state_after_promotion(track: Track, use: STATE, before: STATE) -> None:
    track.use(use)

    with fails("ST8", INVALID, 527):
        track.turn(before, STATE.UNORDERED_ACCESS)
    track.turn(use, STATE.UNORDERED_ACCESS)


def test_ST8_before_state_across_lists(track: Track) -> None:
    track.turn(STATE.COMMON, STATE.UNORDERED_ACCESS)
    second, _ = track.stage.record()
    track.turn(STATE.COPY_SOURCE, STATE.COPY_DEST, second)

    with fails("ST8", INVALID_CALL, 527):
        track.stage.submit(track.list, second)
    track.stage.submit(track.list)
    track.stage.run(second)  # in a separate call the buffer is COMMON again


def test_ST8_after_promotion_in_an_earlier_list(track: Track) -> None:
    track.write()
    second, _ = track.stage.record()
    track.turn(STATE.COPY_SOURCE, STATE.UNORDERED_ACCESS, second)

    with fails("ST8", INVALID_CALL, 527):
        track.stage.submit(track.list, second)


@pytest.mark.layer("STATE_BEFORE")
def test_ST8_at_runtime_the_device_goes(runtime: Stage) -> None:
    stage = runtime
    track = Track(stage)
    track.turn(STATE.COMMON, STATE.UNORDERED_ACCESS)
    second, _ = stage.record()
    track.turn(STATE.COPY_SOURCE, STATE.COPY_DEST, second)
    stage.submit(track.list, second)

    assert stage.device.get_device_removed_reason() is INVALID_CALL


@pytest.mark.layer("STATE_BEFORE")
def test_ST8_at_runtime_close_fails_within_a_list(runtime: Stage) -> None:
    track = Track(runtime)
    track.turn(STATE.COMMON, STATE.UNORDERED_ACCESS)
    track.turn(STATE.COPY_DEST, STATE.COPY_SOURCE)

    with fails("ST8", INVALID, 527):
        track.list.close()


@pytest.mark.layer("HAZARD_RAW*", "STATE_BEFORE")
def test_ST1_at_runtime_nobody_looks(runtime: Stage) -> None:
    track = Track(runtime)
    track.write()
    track.read()
    track.turn(STATE.COPY_DEST, STATE.UNORDERED_ACCESS)
    track.write()
    track.stage.run(track.list)

    assert track.stage.device.get_device_removed_reason() is HResult.S_OK


@pytest.mark.parametrize(
    "state, message_id",
    [
        (STATE.COPY_DEST | STATE.COPY_SOURCE, 526),
        (STATE.COPY_DEST | STATE.UNORDERED_ACCESS, 526),
        (0x4000, 522),
    ],
)
def test_ST9_combinations(track: Track, state: STATE, message_id: int) -> None:
    with fails("ST9", INVALID, message_id):
        track.turn(state, STATE.COPY_SOURCE)
    with fails("ST9", INVALID, message_id):
        track.turn(STATE.COMMON, state)
    track.turn(STATE.COMMON, STATE.COPY_SOURCE)


def test_ST10_no_resource(track: Track) -> None:
    with fails("ST10", INVALID, 520):
        track.list.resource_barrier(transition(None, STATE.COMMON, STATE.COPY_DEST))


@pytest.mark.parametrize("subresource", [1, -1, 2**32])
def test_ST10_subresource(track: Track, subresource: int) -> None:
    with fails("ST10", INVALID, 521):
        track.list.resource_barrier(
            ResourceBarrier.transition(track.buffer, STATE.COMMON, STATE.COPY_DEST, subresource)
        )
    track.list.resource_barrier(ResourceBarrier.transition(track.buffer, STATE.COMMON, STATE.COPY_DEST, 0))


@pytest.mark.parametrize("type", [7, ResourceBarrierType.UAV])
def test_ST10_type(track: Track, type: ResourceBarrierType) -> None:
    inner = transition(track.buffer, STATE.COMMON, STATE.COPY_DEST).barrier

    with fails("ST10", INVALID, 519):
        track.list.resource_barrier(ResourceBarrier(type, ResourceBarrierFlags.NONE, inner))


@pytest.mark.dmlemu(expect=["BARRIER_DESC"])
def test_ST11_no_barriers(track: Track) -> None:
    track.list.resource_barrier([])

    assert remarks(track.stage) == [954]


@pytest.mark.dmlemu(expect=["STATE_COMBO"])
def test_ST12_duplicates_are_remarked(track: Track) -> None:
    track.list.resource_barrier(
        [
            transition(track.buffer, STATE.COMMON, STATE.COPY_DEST),
            transition(track.buffer, STATE.COPY_DEST, STATE.COPY_SOURCE),
        ]
    )

    assert remarks(track.stage) == [1008]
    track.read()


def split(buffer: Resource, flags: ResourceBarrierFlags, before: STATE, after: STATE) -> ResourceBarrier:
    return ResourceBarrier.transition(buffer, before, after, 0, flags)


A, B = STATE.COPY_DEST, STATE.UNORDERED_ACCESS


def test_ST13_split_barrier(track: Track) -> None:
    track.write()
    track.list.resource_barrier(split(track.buffer, BEGIN, A, B))
    track.list.resource_barrier(ResourceBarrier.uav(None))
    track.list.resource_barrier(split(track.buffer, END, A, B))
    track.use(B)
    track.stage.run(track.list)


def test_ST13_split_barrier_over_two_lists_and_two_calls(track: Track) -> None:
    def half(flags: ResourceBarrierFlags) -> CommandList:
        commands, _ = track.stage.record()
        commands.resource_barrier(split(track.buffer, flags, A, B))
        return commands

    track.stage.run(half(BEGIN), half(END))
    track.stage.run(half(BEGIN))
    track.stage.run(half(END))
    with fails("ST13", INVALID_CALL, 534):
        track.stage.submit(half(END))


@pytest.mark.parametrize("flags", [(END,), (BEGIN, END, END), (BEGIN, None), (BEGIN, BEGIN)])
def test_ST13_halves_in_calls_of_one_list_without_a_debug_layer(
    flags: tuple[ResourceBarrierFlags | None, ...],
) -> None:
    """The last one does not fit; None is a use.  A list alone takes another way when it has no halves."""
    stage = Stage(Strictness.RUNTIME)
    buffer = stage.buffer()
    for number, each in enumerate(flags):
        commands, _ = stage.record()
        if each is None:
            commands.copy_buffer_region(buffer, 0, stage.upload(np.zeros(4, np.uint8)), 0, 4)
        else:
            commands.resource_barrier(split(buffer, each, A, B))
        stage.submit(commands)
        removed = stage.device.get_device_removed_reason()
        assert removed == (HResult.S_OK if number + 1 < len(flags) else INVALID_CALL)


@pytest.mark.parametrize(
    "act, message_id",
    [
        (lambda t: t.write(), 957),
        (lambda t: t.turn(A, B), 957),
        (lambda t: t.list.resource_barrier(split(t.buffer, BEGIN, A, B)), 957),
        (lambda t: t.list.resource_barrier(split(t.buffer, END, A, STATE.COPY_SOURCE)), 534),
    ],
)
def test_ST13_between_begin_and_end(track: Track, act: Callable[[Track], Any], message_id: int) -> None:
    track.list.resource_barrier(split(track.buffer, BEGIN, A, B))

    with fails("ST13", INVALID, message_id):
        act(track)
    track.list.resource_barrier(split(track.buffer, END, A, B))
    track.use(B)


def test_ST13_touched_by_another_list(track: Track) -> None:
    track.list.resource_barrier(split(track.buffer, BEGIN, A, B))
    second, _ = track.stage.record()
    track.write(second)

    with fails("ST13", INVALID_CALL, 957):
        track.stage.submit(track.list, second)


def test_ST13_end_without_begin(track: Track) -> None:
    track.write()

    with fails("ST13", INVALID, 534):
        track.list.resource_barrier(split(track.buffer, END, A, B))


@pytest.mark.parametrize("flags, message_id", [(BEGIN | END, 531), (4, 531)])
def test_ST13_flags(track: Track, flags: ResourceBarrierFlags, message_id: int) -> None:
    with fails("ST13", INVALID, message_id):
        track.list.resource_barrier(split(track.buffer, flags, A, B))


def test_ST13_only_transitions_split(track: Track) -> None:
    barrier = ResourceBarrier(ResourceBarrierType.UAV, BEGIN, ResourceBarrier.uav(None).barrier)

    with fails("ST13", INVALID, 533):
        track.list.resource_barrier(barrier)


@pytest.mark.dmlemu(expect=["STATE_COMBO"])
def test_ST14_array_order_and_all_or_nothing(track: Track) -> None:
    with fails("ST8", INVALID, 527):
        track.list.resource_barrier(
            [
                transition(track.other, STATE.COMMON, STATE.COPY_DEST),
                transition(track.buffer, STATE.COMMON, STATE.COPY_DEST),
                transition(track.buffer, STATE.COPY_SOURCE, STATE.COMMON),
            ]
        )
    # None of it is applied.
    assert track.list.writer.count == 0
    track.write()
    track.stage.run(track.list)


def test_ST15_uav_barriers(track: Track) -> None:
    track.use(STATE.UNORDERED_ACCESS)
    track.list.resource_barrier([ResourceBarrier.uav(track.buffer), ResourceBarrier.uav(None)])
    track.use(STATE.UNORDERED_ACCESS)
    track.stage.run(track.list)


def test_ST16_uav_state_needs_the_flag(stage: Stage) -> None:
    buffer = stage.buffer(flags=ResourceFlags.NONE)
    commands, _ = stage.record()

    with fails("ST16", INVALID, 523):
        commands.resource_barrier(transition(buffer, STATE.COMMON, STATE.UNORDERED_ACCESS))
    with fails("ST16", INVALID, 523):
        commands.resource_barrier(ResourceBarrier.uav(buffer))
    with fails("RB7", INVALID, 523):
        commands.resource_barrier(transition(buffer, STATE.COMMON, STATE.RENDER_TARGET))


@pytest.mark.parametrize("state", [STATE.UNORDERED_ACCESS, STATE.GENERIC_READ, STATE.INDIRECT_ARGUMENT])
def test_ST17_copy_lists(stage: Stage, state: STATE) -> None:
    track = Track(stage, COPY)

    with fails("ST17", INVALID, 990):
        track.turn(STATE.COPY_DEST, state)
    track.turn(STATE.COMMON, STATE.COPY_DEST)
    track.write()
    track.turn(STATE.COPY_DEST, STATE.COPY_SOURCE)
    track.stage.run(track.list)


def test_ST17_copy_lists_have_no_uav_barriers(stage: Stage) -> None:
    track = Track(stage, COPY)

    with fails("ST17", INVALID, 990):
        track.list.resource_barrier(ResourceBarrier.uav(None))
    track.list.resource_barrier(ResourceBarrier.aliasing(None, None))
    track.stage.run(track.list)


@pytest.mark.parametrize("state", [STATE.PIXEL_SHADER_RESOURCE, STATE.GENERIC_READ, STATE.INDEX_BUFFER])
def test_ST18_compute_lists(stage: Stage, state: STATE) -> None:
    track = Track(stage, COMPUTE)

    with fails("ST18", INVALID, 990):
        track.turn(STATE.COMMON, state)
    for each in (STATE.UNORDERED_ACCESS, STATE.NON_PIXEL_SHADER_RESOURCE, STATE.INDIRECT_ARGUMENT):
        track.turn(STATE.COMMON, each)
        track.turn(each, STATE.COMMON)
    track.stage.run(track.list)


def test_ST19_readers_on_two_queues(stage: Stage) -> None:
    data = np.arange(64, dtype=np.uint32)
    source = stage.filled(data)
    targets = [stage.buffer(heap=HeapType.READBACK) for _ in range(2)]
    for type, target in zip((DIRECT, COMPUTE), targets, strict=True):
        commands, _ = stage.record(type)
        commands.copy_resource(target, source)
        stage.submit(commands)
    stage.finish(DIRECT)
    stage.finish(COMPUTE)

    for target in targets:
        np.testing.assert_array_equal(target.map().view(np.uint32), data)


def test_AL1_aliases_in_one_command(stage: Stage) -> None:
    heap = stage.device.create_heap(HeapDesc(65536))
    first, second = (
        stage.device.create_placed_resource(heap, 0, ResourceDesc.buffer(256), STATE.COMMON) for _ in range(2)
    )
    commands, _ = stage.record()
    commands.copy_buffer_region(first, 0, stage.upload(np.arange(64, dtype=np.uint8)), 0, 64)
    commands.resource_barrier(ResourceBarrier.aliasing(first, second))
    commands.resource_barrier(transition(first, STATE.COPY_DEST, STATE.COPY_SOURCE))
    commands.copy_buffer_region(second, 64, first, 0, 64)
    stage.run(commands)

    np.testing.assert_array_equal(stage.read(second)[64:128], np.arange(64))


def test_AL1_foreign_resources(stage: Stage) -> None:
    foreign = Stage().buffer()
    commands, _ = stage.record()

    for barrier in (
        ResourceBarrier.aliasing(foreign, None),
        ResourceBarrier.aliasing(None, foreign),
        ResourceBarrier.uav(foreign),
        transition(foreign, STATE.COMMON, STATE.COPY_DEST),
    ):
        with fails("OB3"):
            commands.resource_barrier(barrier)


def test_messages_name_both_states(track: Track) -> None:
    track.buffer.set_name("activations")
    track.write()

    with pytest.raises(Error) as caught:
        track.read()
    text = str(caught.value)
    assert "buffer 'activations'" in text
    assert "pSrcResource: given COPY_DEST (promoted from COMMON); expected COPY_SOURCE" in text
    assert "While calling CopyResource at test_states.py:" in text


def test_OR1_copies_to_the_same_bytes_keep_their_order(stage: Stage) -> None:
    buffer = stage.buffer()
    commands, _ = stage.record()
    for value in range(1, 9):
        source = stage.upload(np.full(256, value, np.uint8))
        commands.copy_buffer_region(buffer, value * 8, source, 0, 256 - value * 8)
    stage.run(commands)

    seen = stage.read(buffer).reshape(-1, 8)[:, 0].tolist()
    assert seen == [0, 1, 2, 3, 4, 5, 6, 7] + [8] * 24
