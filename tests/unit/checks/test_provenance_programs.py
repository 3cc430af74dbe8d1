"""Whose bytes are read: through graphs, initializers, buffers in one place, and tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dmlemu import Severity, d3d12, dml
from dmlemu.checks.provenance.check import WhoseBytes
from dmlemu.testing.stage import OWNED, UAV, Stage, States, chain, give_weights, product, tensor

pytestmark = pytest.mark.dmlemu(expect=["*"])
TILE = 65536
PADDED = tensor([4, 5], [8, 1])
PACKED = tensor([4, 5])


def said(stage: Stage, *ids: str) -> list[str]:
    return [each.report.message for each in stage.device.reports if each.report.id in ids]


def relu(stage: Stage, name: str, source: Any, target: Any) -> Any:
    desc = dml.ActivationReluOperatorDesc(input_tensor=source, output_tensor=target)
    compiled = stage.compile(desc, name)
    stage.initialize(compiled)
    return compiled


def whole(buffer: Any, desc: dml.BufferTensorDesc) -> dml.BufferBinding:
    return dml.BufferBinding(buffer, 0, desc.size_in_bytes)


def test_after_a_restart_what_was_before_is_unknown() -> None:
    stage = Stage()
    pad, use = relu(stage, "pad", PACKED, PADDED), relu(stage, "use", PACKED, PACKED)
    image, result = stage.filled("image", 80), stage.buffer("result", 80)
    act = stage.upload("act", np.zeros(32, np.float32))
    for restarts in (True, False):
        stage.dispatch(pad, [image], [whole(act, PADDED)])
        stage.run()
        if restarts:
            stage.device.checks.rest()
            stage.device.checks.resume()
        stage.dispatch(use, [whole(act, PACKED)], [result])
        stage.run()
        assert len(said(stage, "LAYOUT_HANDOVER")) == (0 if restarts else 1)


def test_tensors_of_a_graph() -> None:
    stage = Stage()
    graph = stage.dml.compile_graph(chain(stage, PACKED, PACKED))
    graph.set_name("net")
    stage.initialize(graph)
    image, act, result = stage.filled("image", 80), stage.buffer("act", 128), stage.buffer("result", 80)
    stage.dispatch(graph, [image], [whole(act, PACKED)])
    stage.barrier()
    stage.dispatch(relu(stage, "use", PADDED, PACKED), [whole(act, PADDED)], [result])
    stage.run()
    [message] = said(stage, "LAYOUT_HANDOVER", "READ_MIXED")
    assert "the dispatch of compiled operator 'net'" in message


def test_a_graph_that_reads_another_layout() -> None:
    stage = Stage()
    graph = stage.dml.compile_graph(chain(stage, PACKED, PACKED))
    pad = relu(stage, "pad", PACKED, PADDED)
    stage.initialize(graph)
    act, result = stage.upload("act", np.zeros(32, np.float32)), stage.buffer("result", 80)
    stage.dispatch(pad, [stage.filled("image", 80)], [whole(act, PADDED)])
    stage.barrier()
    stage.dispatch(graph, [whole(act, PACKED)], [result])
    stage.run()
    [message] = said(stage, "LAYOUT_HANDOVER")
    assert "'pad'" in message


@pytest.mark.parametrize("wrong", [False, True])
def test_weights_that_an_initializer_reads(wrong: bool) -> None:
    stage = Stage()
    compiled = stage.compile(product(OWNED), "product")
    weights, persistent = stage.filled("weights", 64), stage.buffer("kept")
    weights.expect(
        0, tensor([1, 1, 4, 4], data_type=dml.TensorDataType.INT32 if wrong else PACKED.data_type), "w"
    )
    give_weights(stage, compiled, weights, persistent)
    messages = said(stage, "LAYOUT_HANDOVER", "READ_MIXED")
    assert len(messages) == wrong
    assert not wrong or ("'w' INT32" in messages[0] and "BTensor" in messages[0])


def test_half_of_the_weights() -> None:
    stage = Stage()
    compiled = stage.compile(product(OWNED), "product")
    weights, persistent = stage.upload("weights", np.zeros(64, np.float32)), stage.buffer("kept")
    stage.write(weights, np.ones(8, np.float32))
    give_weights(stage, compiled, dml.BufferBinding(weights, 0, 64), persistent)
    [message] = said(stage, "READ_MIXED")
    assert "8 elements, element (0, 0, 2, 0) first, are older" in message


@pytest.mark.parametrize("wrong", [None, "another write", "another place", "another frame"])
def test_a_part_that_was_copied_away_and_back(wrong: str | None) -> None:
    """Each byte is still of one write and in its place, as after torch has changed a column of a matrix."""
    stage = Stage()
    write, use = relu(stage, "write", PACKED, PACKED), relu(stage, "use", PACKED, PACKED)
    image, result = stage.filled("image", 80), stage.buffer("result", 80)
    act, other, away = (stage.buffer(name, 80) for name in ("act", "other", "away"))
    for made in (act, other):
        stage.dispatch(write, [image], [made])
    stage.run()
    source = other if wrong == "another write" else act
    stage.list.copy_buffer_region(away, 0, source, 16 if wrong == "another place" else 0, 64)
    stage.run()
    if wrong == "another frame":
        for made in (act, other):
            stage.dispatch(write, [image], [made])
        stage.run()
    stage.list.copy_buffer_region(act, 0, away, 0, 64)
    stage.run()
    stage.dispatch(use, [act], [result])
    stage.run()
    assert len(said(stage, "READ_MIXED")) == (wrong is not None)


def test_columns_that_are_changed_in_a_copy() -> None:
    """As torch changes one after another: the bytes between the first and the last element of each move."""
    stage = Stage()
    size, rows, one = 4 * 26, tensor([6, 5]), tensor([6, 1], [5, 1])
    fill, change = relu(stage, "fill", rows, rows), relu(stage, "change", one, one)
    use = relu(stage, "use", tensor([2, 3, 5]), tensor([2, 3, 5]))
    image, result = stage.filled("image", 120), stage.buffer("result", 120)
    act, away = stage.buffer("act", 120), stage.buffer("away", size)
    stage.dispatch(fill, [image], [act])
    stage.run()
    for column in range(5):
        stage.list.copy_buffer_region(away, 0, act, 4 * column, size)
        stage.run()
        stage.dispatch(change, [whole(image, one)], [whole(away, one)])
        stage.run()
        stage.list.copy_buffer_region(act, 4 * column, away, 0, size)
        stage.run()
    stage.dispatch(use, [act], [result])
    stage.run()
    assert not said(stage, "READ_MIXED", "LAYOUT_HANDOVER")


def placed(stage: Stage, heap: Any, name: str) -> Any:
    made = stage.device.create_placed_resource(heap, 0, d3d12.ResourceDesc.buffer(256, UAV), States.COMMON)
    made.set_name(name)
    return made


@pytest.mark.parametrize("wrong", [False, True])
def test_what_another_buffer_left_in_this_place(wrong: bool) -> None:
    stage = Stage()
    rows, half = tensor([4, 8]), tensor([2, 8])
    heap = stage.device.create_heap(d3d12.HeapDesc(TILE))
    first, second = placed(stage, heap, "first"), placed(stage, heap, "second")
    image, result = stage.filled("image", 128), stage.buffer("result", 128)
    stage.dispatch(relu(stage, "old", rows, rows), [image], [whole(first, rows)])
    stage.run()
    stage.list.resource_barrier([d3d12.ResourceBarrier.aliasing(first, second)])
    new = half if wrong else rows
    stage.dispatch(relu(stage, "new", new, new), [whole(image, new)], [whole(second, new)])
    stage.barrier()
    stage.dispatch(relu(stage, "use", rows, rows), [whole(second, rows)], [result])
    stage.run()
    messages = said(stage, "READ_MIXED")
    assert len(messages) == wrong
    assert not wrong or ("'new'" in messages[0] and "'old'" in messages[0])


@pytest.mark.parametrize("wrong", [False, True])
def test_a_tensor_whose_tiles_are_mapped_elsewhere(wrong: bool) -> None:
    stage = Stage()
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE))
    desc = d3d12.ResourceDesc.buffer(TILE, UAV)
    first, second = (stage.device.create_reserved_resource(desc, States.COMMON) for _ in range(2))
    stage.queue.update_tile_mappings(first, heap=heap)
    image, result = stage.filled("image", 80), stage.buffer("result", 80)
    stage.write(first, np.zeros(32, np.float32))
    stage.dispatch(relu(stage, "pad", PACKED, PADDED), [image], [whole(first, PADDED)])
    stage.run()
    stage.queue.update_tile_mappings(first, range_flags=[d3d12.TileRangeFlags.NULL])
    stage.queue.update_tile_mappings(second, heap=heap)
    view = PACKED if wrong else PADDED
    stage.dispatch(relu(stage, "use", view, PACKED), [whole(second, view)], [result])
    stage.run()
    assert len(said(stage, "LAYOUT_HANDOVER")) == wrong


CACHE = tensor([2, 8, 4])


def cleared(stage: Stage, by: str, size: int) -> Any:
    """A buffer of zeros, as caches begin."""
    if by == "the CPU":
        return stage.upload("cache", np.zeros(size // 4, np.float32))
    made, desc = stage.buffer("cache", size), tensor([size // 4])
    zero = dml.ScalarUnion(bytes(8))
    fill = dml.FillValueConstantOperatorDesc(output_tensor=desc, value_data_type=desc.data_type, value=zero)
    compiled = stage.compile(fill, "fill")
    stage.initialize(compiled)
    stage.dispatch(compiled, [], [made])
    stage.barrier()
    return made


@pytest.mark.parametrize("by", ["the CPU", "a dispatch"])
@pytest.mark.parametrize(
    ("written", "source"),
    [
        (tensor([2, 1, 4], [32, 4, 1]), tensor([2, 1, 4])),  # the first row of each head
        (tensor([1, 3, 4]), tensor([1, 3, 4])),  # the first rows, as of a prompt
        (tensor([2, 8, 3], [32, 4, 1]), tensor([2, 8, 3])),  # padded columns
    ],
)
@pytest.mark.parametrize("wrong", [False, True])
def test_a_tensor_that_was_cleared_to_be_filled(
    by: str, written: dml.BufferTensorDesc, source: dml.BufferTensorDesc, wrong: bool
) -> None:
    """Not an arena that was cleared as a whole, where the rest is what happened to lie there."""
    stage = Stage()
    size = CACHE.size_in_bytes
    cache = cleared(stage, by, 2 * size if wrong else size)
    image, result = stage.filled("image", size), stage.buffer("result", size)
    stage.dispatch(relu(stage, "row", source, written), [whole(image, source)], [whole(cache, written)])
    stage.barrier()
    stage.dispatch(relu(stage, "use", CACHE, CACHE), [whole(cache, CACHE)], [result])
    stage.run()
    messages = said(stage, "READ_MIXED", "LAYOUT_HANDOVER")
    assert len(messages) == wrong


# --- numbers without a type of their own, and padding ---


def filling(stage: Stage, target: dml.BufferTensorDesc) -> Any:
    one = dml.ScalarUnion.of(target.data_type, 1)
    desc = dml.FillValueConstantOperatorDesc(
        output_tensor=target, value_data_type=target.data_type, value=one
    )
    compiled = stage.compile(desc, "start")
    stage.initialize(compiled)
    return compiled


def doubling(stage: Stage, layout: dml.BufferTensorDesc) -> Any:
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=layout, b_tensor=layout, output_tensor=layout)
    compiled = stage.compile(desc, "double")
    stage.initialize(compiled)
    return compiled


Type = dml.TensorDataType


@pytest.mark.parametrize(
    ("written", "read", "severity"),
    [
        (tensor([4, 5], data_type=Type.INT32), PACKED, None),
        (tensor([4, 5], data_type=Type.INT8), tensor([1], data_type=Type.INT64), None),
        (tensor([4, 5], data_type=Type.INT64), tensor([4, 5], [10, 2], data_type=Type.UINT32), None),
        (tensor([4, 5], [8, 1], data_type=Type.INT32), PACKED, Severity.INFO),
        (PADDED, PACKED, Severity.WARNING),
    ],
)
@pytest.mark.parametrize("is_copied", [False, True])
def test_what_is_filled_in_has_no_type(
    written: Any, read: Any, severity: Severity | None, is_copied: bool
) -> None:
    stage = Stage()
    act, other = (stage.upload(name, np.zeros(64, np.float32)) for name in ("act", "other"))
    stage.dispatch(filling(stage, written), [], [whole(act, written)])
    stage.run()
    if is_copied:
        stage.list.copy_buffer_region(other, 0, act, 0, 256)
        stage.run()
        act = other
    source = whole(act, read)
    stage.dispatch(doubling(stage, read), [source, source], [stage.buffer("result")])
    stage.run()
    found = {each.report.severity for each in stage.device.reports if each.report.id == "LAYOUT_HANDOVER"}
    assert found == ({severity} - {None})


def test_what_is_computed_from_it_has_a_type() -> None:
    stage = Stage()
    whole_numbers = tensor([4, 5], data_type=Type.INT32)
    act = stage.upload("act", np.zeros(64, np.float32))
    stage.dispatch(filling(stage, whole_numbers), [], [whole(act, whole_numbers)])
    stage.barrier()
    source = whole(act, whole_numbers)
    stage.dispatch(doubling(stage, whole_numbers), [source, source], [source])
    stage.barrier()
    stage.dispatch(doubling(stage, PACKED), [whole(act, PACKED)] * 2, [stage.buffer("result")])
    stage.run()
    message, _ = said(stage, "LAYOUT_HANDOVER")  # of ATensor, and of BTensor
    assert "'double'" in message


COUNT = dml.BufferTensorDesc(Type.UINT32, [1], None, 8)


def after_a_count(stage: Stage) -> Any:
    """A cleared buffer with one UINT32 in eight bytes."""
    act = stage.upload("act", np.zeros(64, np.float32))
    stage.dispatch(filling(stage, COUNT), [], [whole(act, COUNT)])
    stage.run()
    return act


@pytest.mark.parametrize("is_copied", [False, True])
def test_padding_that_is_read(is_copied: bool) -> None:
    stage = Stage()
    act = after_a_count(stage)
    if is_copied:
        other = stage.buffer("other")
        stage.list.copy_buffer_region(other, 0, act, 0, 256)
        stage.run()
        act = other
    pair = tensor([2], data_type=Type.UINT32)
    for _ in range(2):
        stage.dispatch(doubling(stage, pair), [whole(act, pair)] * 2, [stage.buffer("result")])
        stage.run()
    message, _ = said(stage, "MEM_PADDING_READ")  # of ATensor, and of BTensor
    assert (
        f"element (1) of ATensor from bytes [4, 8) of buffer '{'other' if is_copied else 'act'}'" in message
    )
    assert "OutputTensor UINT32 [1] with strides [1], which" in message and "'start'" in message
    assert not said(stage, "MEM_UNINIT_READ", "READ_MIXED", "LAYOUT_HANDOVER")


def test_padding_that_is_not_read() -> None:
    """Its elements are, or the CPU reads it, or somebody has written it since."""
    stage = Stage()
    act = after_a_count(stage)
    one, pair = tensor([1], data_type=Type.UINT32), tensor([2], data_type=Type.UINT32)
    stage.dispatch(doubling(stage, one), [whole(act, one)] * 2, [stage.buffer("result")])
    stage.run()
    assert stage.read(act, np.int64)[0] == 1
    stage.write(act, np.uint32([7]), 4)
    stage.dispatch(doubling(stage, pair), [whole(act, pair)] * 2, [stage.buffer("other result")])
    stage.run()
    assert not said(stage, "MEM_PADDING_READ", "MEM_UNINIT_READ")


def test_nobody_needs_to_read_padding() -> None:
    stage = Stage()
    act, result = after_a_count(stage), stage.buffer("result")
    one = tensor([1], data_type=Type.UINT32)
    stage.dispatch(doubling(stage, one), [whole(act, one)] * 2, [result])
    stage.run()
    stage.read(result, np.uint32)
    stage.device.checks.end()
    assert not said(stage, "WRITTEN_NEVER_READ", "OVERWRITTEN_UNREAD")


def test_padding_does_not_slow_down_what_repeats() -> None:
    """The same dispatch again changes nothing that is known of memory."""
    stage = Stage()
    start, act = filling(stage, COUNT), stage.upload("act", np.zeros(64, np.float32))
    check = next(each for each in stage.device.checks if isinstance(each, WhoseBytes))
    versions = []
    for _ in range(4):
        stage.dispatch(start, [], [whole(act, COUNT)])
        stage.run()
        versions.append(check._memory.version)
    assert versions[1] == versions[-1]


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_padding_that_nobody_wrote_stays_unwritten() -> None:
    stage = Stage()
    act, pair = stage.buffer("act"), tensor([2], data_type=Type.UINT32)
    stage.dispatch(filling(stage, COUNT), [], [whole(act, COUNT)])
    stage.barrier()
    stage.dispatch(doubling(stage, pair), [whole(act, pair)] * 2, [stage.buffer("result")])
    stage.run()
    message, _ = said(stage, "MEM_UNINIT_READ")
    assert message.endswith("nobody has written: it is still zero from the buffer's creation.")
