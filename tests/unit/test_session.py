"""``dmlemu.Session``: what the guide does not show."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import dmlemu
from dmlemu import Session, d3d12, dml

PACKED = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4])
COPY = dml.ElementWiseIdentityOperatorDesc(input_tensor=PACKED, output_tensor=PACKED)


@pytest.fixture
def adapter() -> d3d12.Adapter:
    return d3d12.Adapter(dedicated_memory=16 << 20)


@pytest.fixture
def device(adapter: d3d12.Adapter) -> dml.Device:
    return dml.create_device(d3d12.create_device(adapter))


def run_copy(session: Session) -> list[float]:
    compiled = session.compile(COPY, "copy")
    source, target = session.upload("source", np.arange(4, dtype=np.float32)), session.buffer("target", 16)
    session.initialize(compiled)
    session.barrier()
    session.dispatch(compiled, [source], [target])
    found: list[float] = session.read(target, np.float32).tolist()
    return found


def test_it_is_loaded_when_it_is_asked_for() -> None:
    assert dmlemu.Session is Session and "Session" in dir(dmlemu)


def test_leaving_the_block_releases_what_it_made(adapter: d3d12.Adapter, device: dml.Device) -> None:
    before = adapter.query_memory_budget().current_usage
    with Session(device) as session:
        assert run_copy(session) == [0, 1, 2, 3]
        kept = session.keep(device.get_parent_device().create_fence())
        assert adapter.query_memory_budget().current_usage > before
    assert adapter.query_memory_budget().current_usage == before
    assert "(released)" in repr(kept) and "(released)" not in repr(device)


def test_an_exception_leaves_nothing_and_is_not_hidden(adapter: d3d12.Adapter, device: dml.Device) -> None:
    before = adapter.query_memory_budget().current_usage
    with pytest.raises(KeyError), Session(device) as session:
        session.list.copy_buffer_region(session.buffer("a", 16), 0, session.buffer("b", 16), 0, 16)
        session.submit()  # the GPU has not run yet: without the exception a check would report this
        raise KeyError
    assert adapter.query_memory_budget().current_usage == before


def test_a_full_descriptor_heap_says_what_to_do(device: dml.Device) -> None:
    with Session(device, descriptors=2) as session:
        assert run_copy(session) == [0, 1, 2, 3]
        compiled = session.compile(COPY, "another")
        with pytest.raises(ValueError, match=r"2 descriptors, of which 2 are used; .*'another'.* needs 2\."):
            session.table(compiled)
        session.use_descriptors(2)
        session.table(compiled)
        session.use_descriptors(64)
        assert session.descriptors.get_desc().num_descriptors == 64
        assert run_copy(session) == [0, 1, 2, 3]


def test_a_session_without_descriptors(device: dml.Device) -> None:
    with Session(device, descriptors=0) as session:
        session.run()
        with pytest.raises(ValueError, match="descriptors=0"):
            session.table(session.compile(COPY, "copy"))


def test_another_queue_type(device: dml.Device) -> None:
    with Session(device, queue=d3d12.CommandQueueDesc(d3d12.CommandListType.DIRECT)) as session:
        assert session.list.get_type() is d3d12.CommandListType.DIRECT
        assert run_copy(session) == [0, 1, 2, 3]


def test_a_list_left_half_recorded_is_replaced(device: dml.Device) -> None:
    with Session(device) as session:
        target = session.upload("target", np.zeros(4, np.float32))
        source = session.upload("source", np.ones(4, np.float32))
        session.list.copy_resource(target, source)
        session.new_list()
        assert session.read(target, np.float32).tolist() == [0, 0, 0, 0]


def test_uploads_of_odd_sizes_and_parts(device: dml.Device) -> None:
    with Session(device) as session:
        letters = session.upload("letters", np.frombuffer(b"abcde", np.uint8))
        assert letters.get_desc().width == 8
        session.write(letters, np.frombuffer(b"XYZ", np.uint8), offset=2)
        assert session.read(letters, np.uint8, 5).tobytes() == b"abXYZ"
        assert session.read(letters, np.uint8, (1, 2), offset=3).tolist() == [[ord("Y"), ord("Z")]]


def test_refusals_name_the_line_of_the_program(device: dml.Device) -> None:
    with Session(device) as session, pytest.raises(dmlemu.Error, match=r"test_session\.py:"):
        session.buffer("huge", 1 << 40)


def test_what_was_released_earlier_is_not_kept() -> None:
    session = Session()
    references = []
    for i in range(1000):
        buffer = session.buffer(f"step {i}", 256)
        references.append(weakref.ref(buffer))
        buffer.release()
        del buffer
    gc.collect()
    assert sum(each() is not None for each in references) < 100
    kept = session.buffer("kept", 256)
    session.close()
    assert kept.released
