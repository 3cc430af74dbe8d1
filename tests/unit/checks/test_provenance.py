"""The provenance of memory, compared with a list of the last writer of every byte."""

from __future__ import annotations

import gc
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlemu import Session, Strictness, d3d12, dml
from dmlemu.checks.analysis import provenance
from dmlemu.checks.analysis.access_history import Pattern, Place
from dmlemu.checks.analysis.provenance import Author, Provenance, Source, Write
from dmlemu.checks.analysis.tensor_relation import Relation, Tensor, relate
from dmlemu.checks.provenance.check import WhoseBytes
from dmlemu_hw.events import WRITE, Access, Accesses, Footprint
from dmlemu_hw.kernels import ffi

SIZE = 96
F32, F16, I32, U32 = (dml.TensorDataType[name] for name in ("FLOAT32", "FLOAT16", "INT32", "UINT32"))
F64, I64 = dml.TensorDataType.FLOAT64, dml.TensorDataType.INT64


def pattern(begin: int, sizes: list[int], strides: list[int]) -> Pattern:
    """Bytes, as a footprint in physical memory."""
    footprint = Footprint(begin, 8, tuple(sizes), tuple(strides))
    accesses = Accesses.of([Access(0, WRITE, footprint)])
    return Pattern(Place(0, SIZE), ffi.new("dmlk_footprint *", accesses.pointer[0]), 0, None)


def bytes_of(each: Pattern) -> list[int]:
    struct = each.struct
    indices = np.ndindex(*struct.sizes[0 : struct.rank])
    strides = struct.strides[0 : struct.rank]
    return sorted({struct.address + sum(i * s for i, s in zip(at, strides, strict=True)) for at in indices})


patterns = st.builds(
    pattern,
    st.integers(0, 40),
    st.lists(st.integers(1, 3), min_size=2, max_size=2),
    st.lists(st.integers(0, 13), min_size=2, max_size=2),
)
writes = st.tuples(st.just("write"), patterns)
copies = st.tuples(st.just("copy"), st.integers(0, 60), st.integers(0, 60), st.integers(1, 30))
gone = st.tuples(st.just("forget"), st.integers(0, 60), st.integers(1, 30))


def once(step: Any) -> Any:
    """A step; a write is one object, as a command that is executed again makes it."""
    if step[0] != "write":
        return step
    (where,) = step[1:]
    return "write", Write(Author(), 0, where.begin, where.end, where, None, 0)


@given(
    pool=st.lists(st.one_of(writes, copies, gone).map(once), min_size=1, max_size=6),
    order=st.lists(st.integers(0, 5), max_size=20),
    read=patterns,
)
def test_every_byte_has_its_last_writer(pool: list[Any], order: list[int], read: Pattern) -> None:
    memory, last = Provenance(), [None] * SIZE
    for number, each in enumerate(order, 1):
        kind, *step = pool[each % len(pool)]
        if kind == "write":
            (write,) = step
            write.author, write.number = Author(number=number), number
            memory.write(write)
            for byte in bytes_of(write.pattern):
                last[byte] = number
        elif kind == "copy":
            source, target, size = step
            memory.copy(source, target, size, Author(number=number), number)
            moved = [None if each is None else number for each in last[source : source + size]]
            last[target : target + size] = moved[: len(last[target : target + size])]
        else:
            begin, size = step
            memory.forget(begin, begin + size)
            last[begin : begin + size] = [None] * len(last[begin : begin + size])
    found = {
        each.write and ceil(each.write.number): (each.first, each.size)
        for each in merged(memory.sources(read))
    }
    wanted: dict[int | None, tuple[int, int]] = {}
    for byte in bytes_of(read):
        first, count = wanted.get(last[byte], (byte, 0))
        wanted[last[byte]] = min(first, byte), count + 1
    assert found == wanted
    for byte in range(SIZE):
        there = memory.at(byte)
        assert (None if there is None else ceil(there.number)) == last[byte]


def merged(sources: list[Source]) -> list[Source]:
    """Bytes that one copy brought from several writes count together."""
    found: dict[int | None, Source] = {}
    for each in sources:
        key = each.write and ceil(each.write.number)
        known = found.get(key)
        found[key] = (
            each
            if known is None
            else Source(each.write, min(each.first, known.first), each.size + known.size)
        )
    return list(found.values())


def tensor(sizes: list[int], strides: list[int] | None = None, address: int = 0, kind: Any = F32) -> Tensor:
    desc = dml.BufferTensorDesc(kind, sizes, strides)
    return Tensor("", kind, tuple(sizes), desc.effective_strides, address)


@pytest.mark.parametrize(
    ("writer", "reader", "relation"),
    [
        (tensor([1, 3, 4, 5]), tensor([3, 20]), Relation.SAME),
        (tensor([3, 4, 5]), tensor([2, 5], [20, 1], 20), Relation.SAME),
        (tensor([128, 768]), tensor([12, 128, 64], [64, 768, 1]), Relation.SAME),
        (tensor([3]), tensor([1, 3, 4, 5], [0, 1, 0, 0]), Relation.SAME),
        (tensor([2, 4, 5], [40, 5, 1]), tensor([2, 8, 5]), Relation.SAME),
        (tensor([4, 5], [8, 1]), tensor([2, 3], [8, 1], 36), Relation.SAME),
        (tensor([4], kind=I32), tensor([4], kind=U32), Relation.SAME),
        (tensor([3, 4, 5]), tensor([3, 5, 4], [20, 1, 5]), Relation.TRANSPOSED),
        (tensor([3, 4, 4]), tensor([3, 4, 4], [16, 1, 4]), Relation.TRANSPOSED),
        (tensor([3, 4, 5]), tensor([3, 4, 5], [20, 1, 4]), Relation.OTHER_STRIDES),
        (tensor([4, 5], [8, 1]), tensor([4, 5]), Relation.OTHER_STRIDES),
        (tensor([3, 4, 5]), tensor([4, 5, 3]), Relation.SWAPPED_SIZES),
        (tensor([4, 5], [8, 1]), tensor([2, 3], [5, 1]), Relation.OTHER_ROWS),
        (tensor([4], kind=F16), tensor([2]), Relation.OTHER_TYPE),
        (tensor([4], kind=I32), tensor([4]), Relation.OTHER_TYPE),
        (tensor([8]), tensor([4], address=2), Relation.SPLIT),
        # The lower words of integers of 64 bits.
        (tensor([4, 5], [10, 2], kind=U32), tensor([4, 5], kind=I64), Relation.SAME),
        (tensor([1, 1], [0, 2], kind=U32), tensor([1, 1], [0, 1], kind=I64), Relation.SAME),
        (tensor([4, 5], [10, 2], kind=U32), tensor([2, 5], address=40, kind=I64), Relation.SAME),
        (tensor([4, 5], [16, 2], kind=U32), tensor([4, 5], kind=I64), Relation.OTHER_STRIDES),
        (tensor([8], [2], kind=U32), tensor([4], address=4, kind=I64), Relation.SPLIT),
        (tensor([8], kind=U32), tensor([4], kind=I64), Relation.OTHER_TYPE),
        (tensor([1], kind=U32), tensor([1], kind=I64), Relation.OTHER_TYPE),
        (tensor([4], [2]), tensor([4], kind=I64), Relation.OTHER_TYPE),
        (tensor([4], [2], kind=I32), tensor([4], kind=I64), Relation.OTHER_TYPE),
        (tensor([4], [2], kind=U32), tensor([4], kind=F64), Relation.OTHER_TYPE),
    ],
)
def test_relations(writer: Tensor, reader: Tensor, relation: Relation) -> None:
    assert relate(writer, reader, is_all=True) is relation


# --- device.lineage ---


def test_lineage_leads_back_to_the_upload() -> None:
    with Session(dml.create_device(device_of(Strictness.STRICT))) as session:
        row = dml.BufferTensorDesc(F32, [4])
        relu = dml.ActivationReluOperatorDesc(input_tensor=row, output_tensor=row)
        operators = [session.compile(relu, name) for name in ("first", "second")]
        session.initialize(*operators)
        source, between, result = (
            session.upload("in", np.ones(4, np.float32)),
            *(session.buffer(name, 16) for name in ("between", "out")),
        )
        source.expect(0, row, "ones")
        session.dispatch(operators[0], [source], [between])
        session.barrier()
        session.dispatch(operators[1], [between], [result])
        session.run()
        lineage = session.device.lineage(result, 5)
        assert [step.inputs for step in lineage] == [(("InputTensor", (2,)),), (("InputTensor", (3,)),), ()]
        first, second, third = str(lineage).splitlines()
        assert "'second'" in first and "'first'" in second
        assert "CopyBufferRegion" in third and "the CPU" in third and "'ones'" in third
        assert lineage.to_json()["steps"][0]["inputs"] == {"InputTensor": [2]}
        assert str(session.device.lineage(session.buffer("unused", 16), 0)) == (
            "Nobody is known to have written it."
        )
        with pytest.raises(
            ValueError, match="offset must lie in buffer 'out', which has 16 bytes, not at 16"
        ):
            session.device.lineage(result, 16)


def test_a_frame_that_repeats_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Session(dml.create_device(device_of(Strictness.STRICT))) as session:
        session.upload("source", np.ones(64, np.float32))
        source, middle, target = (session.upload(name, np.ones(64, np.float32)) for name in "abc")
        operators = []
        for strides in ([8, 1], [2, 8], [4, 1]):
            operand = dml.BufferTensorDesc(F32, [4, 4], strides=strides)
            desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=operand, output_tensor=operand)
            operators.append(session.compile(desc, "identity"))
        session.initialize(*operators)
        looked = []
        find = Provenance.sources
        monkeypatch.setattr(Provenance, "sources", lambda *each: looked.append(each) or find(*each))
        for _ in range(6):
            del looked[:]
            session.use_descriptors(0)
            for operator in operators:
                for read, written in ((source, middle), (middle, target)):
                    session.dispatch(operator, [read], [written])
                    session.barrier()
            session.run()
        assert not looked


def test_lineage_needs_strictness_strict() -> None:
    device = dml.create_device(device_of(Strictness.DEBUG))
    with Session(device) as session, pytest.raises(ValueError, match="strictness strict"):
        session.device.lineage(session.buffer("any", 16), 0)


def device_of(strictness: Strictness) -> d3d12.Device:
    return d3d12.create_device(d3d12.create_adapter_list()[0], strictness=strictness)


def test_what_is_expected_is_checked() -> None:
    with Session() as session:
        buffer = session.buffer("weights", 64)
        with pytest.raises(ValueError, match="64 bytes at offset 4 reach beyond buffer 'weights'"):
            buffer.expect(4, dml.BufferTensorDesc(F32, [16]), "bias")
        with pytest.raises(TypeError, match="tensor_desc must be a BufferTensorDesc, not list"):
            buffer.expect(0, [16], "bias")  # type: ignore[arg-type]


# --- large tensors, and elements of 4 bits ---


def footprint(begin: int, bits: int, sizes: list[int], strides: list[int]) -> Pattern:
    accesses = Accesses.of([Access(0, WRITE, Footprint(begin, bits, tuple(sizes), tuple(strides)))])
    return Pattern(Place(0, 1 << 40), ffi.new("dmlk_footprint *", accesses.pointer[0]), 0, None)


def entered(memory: Provenance, where: Pattern, number: int) -> Write:
    write = Write(Author(number=number), 0, where.begin, where.end, where, None, number)
    memory.write(write)
    return write


def test_halves_of_bytes_have_their_own_writers() -> None:
    memory = Provenance()
    whole = entered(memory, footprint(0, 4, [8], [1]), 1)
    odd = entered(memory, footprint(0, 4, [2, 2], [4, 1]), 2)
    assert memory.sources(footprint(0, 4, [8], [1])) == [Source(odd, 0, 2), Source(whole, 1, 2)]
    every_third = entered(memory, footprint(0, 4, [3], [3]), 3)
    found = memory.sources(footprint(0, 4, [8], [1]))
    assert [(each.write, each.first, each.size) for each in found] == [
        (every_third, 0, 2),
        (odd, 0, 2),
        (whole, 1, 1),
    ]


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ([1 << 15, 1 << 15], [(1 << 15) + 3, 1]),  # rows with padding
        ([2] * 7 + [1 << 14], [3 << (20 - i) for i in range(7)] + [1]),  # in eight dimensions
        ([1 << 20, 1 << 20], [0, 2]),  # a broadcast
        ([1 << 14, 1 << 14, 4], [1, 1 << 15, 1 << 30]),  # axes in another order
        ([1 << 16, 1 << 16], [1 << 4, 1]),  # rows that overlap
    ],
)
def test_tensors_of_gigabytes_are_not_painted(
    sizes: list[int], strides: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    painted: list[int] = []
    zeros = np.zeros
    monkeypatch.setattr(np, "zeros", lambda count, kind: painted.append(count) or zeros(count, kind))
    memory = Provenance()
    dense = entered(memory, footprint(0, 8, [1 << 34], [1]), 1)
    newer = entered(memory, footprint(0, 32, sizes, strides), 2)
    assert memory.sources(footprint(0, 32, sizes, strides))[0].write is newer
    again = memory.sources(footprint(0, 32, [*sizes[:-1], max(1, sizes[-1] // 2)], strides))
    assert [each.write for each in again] == [newer]
    last = memory.sources(footprint((1 << 34) - 4096, 32, [1 << 10], [1]))
    assert last == [Source(dense, (1 << 34) - 4096, 4096)]
    assert max(painted, default=0) <= 1 << 24


def test_bytes_of_a_freed_heap_are_forgotten() -> None:
    with Session(dml.create_device(device_of(Strictness.STRICT))) as session:
        check = next(each for each in session.device.checks if isinstance(each, WhoseBytes))
        before = len(check._memory._starts)
        for _ in range(3):
            with session.upload("gone", np.ones(64, np.float32)):
                assert len(check._memory._starts) > before
            session.run()
        gc.collect()
        session.run()
        assert len(check._memory._starts) <= before + 1


def test_what_is_not_compared_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_MOST", 8)
    with Session(dml.create_device(device_of(Strictness.STRICT))) as session:
        packed, padded = (dml.BufferTensorDesc(F32, [4, 5], strides) for strides in (None, [8, 1]))
        row = dml.BufferTensorDesc(F32, [29])
        write = session.compile(
            dml.ActivationReluOperatorDesc(input_tensor=packed, output_tensor=padded), "pad"
        )
        read = session.compile(dml.ActivationReluOperatorDesc(input_tensor=row, output_tensor=row), "read")
        session.initialize(write, read)
        arena, source = session.upload("arena", np.zeros(64)), session.upload("in", np.ones(20, np.float32))
        result = session.buffer("out", 128)
        session.dispatch(write, [source], [dml.BufferBinding(arena, 0, padded.size_in_bytes)])
        for _ in range(2):
            session.barrier()
            session.dispatch(
                read, [dml.BufferBinding(arena, 0, row.size_in_bytes)], [dml.BufferBinding(result, 0, 116)]
            )
        session.run()
        told = [each for each in session.device.reports if each.report.id == "READ_NOT_COMPARED"]
        assert len(told) == 1
        assert "reads InputTensor as FLOAT32 [29]" in told[0].report.message


def test_lineage_is_of_a_buffer_of_the_device() -> None:
    adapters = [d3d12.Adapter(dedicated_memory=1 << 26) for _ in range(2)]
    devices = [
        dml.create_device(d3d12.create_device(each, strictness=Strictness.STRICT)) for each in adapters
    ]
    with Session(devices[0]) as one, Session(devices[1]) as other:
        with pytest.raises(ValueError, match=r"resource must belong to device #.*, not buffer 'foreign'"):
            one.device.lineage(other.buffer("foreign", 16), 0)
        with pytest.raises(TypeError, match="offset must be an integer"):
            one.device.lineage(one.buffer("own", 16), "0")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="name must be a str"):
            one.buffer("own", 16).expect(0, dml.BufferTensorDesc(F32, [4]), 5)  # type: ignore[arg-type]
