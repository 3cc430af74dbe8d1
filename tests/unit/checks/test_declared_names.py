"""Names that a program declared by ``Resource.expect`` appear in the reports on those bytes."""

from __future__ import annotations

import numpy as np
import pytest

from dmlemu import Error, Session, d3d12, dml
from dmlemu.d3d12.memory.declared import Declared, named

F32, U4 = dml.TensorDataType.FLOAT32, dml.TensorDataType.UINT4
UAV = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS


def tensor(sizes: list[int], strides: list[int] | None = None, kind: dml.TensorDataType = F32):
    return dml.BufferTensorDesc(kind, sizes, strides)


def relu(session: Session, desc: dml.BufferTensorDesc, name: str = "relu"):
    compiled = session.compile(dml.ActivationReluOperatorDesc(input_tensor=desc, output_tensor=desc), name)
    session.initialize(compiled)
    return compiled


def declared(offset: int, desc: dml.BufferTensorDesc, name: str = "it") -> Declared:
    return Declared(name, offset, offset + desc.extent_in_bytes, desc)


@pytest.mark.parametrize(
    ("desc", "begin", "end", "words"),
    [
        (tensor([2, 3]), 16, 40, " ('it')"),
        (tensor([2, 3]), 0, 100, " ('it')"),
        (tensor([2, 3]), 24, 28, " ('it' element (0, 2))"),
        (tensor([2, 3]), 25, 26, " ('it' element (0, 2))"),
        (tensor([2, 3]), 24, 33, " ('it' elements (0, 2) to (1, 1))"),
        (tensor([2, 3], [1, 2]), 24, 28, " ('it' element (0, 1))"),
        (tensor([2, 3], [4, 1]), 28, 32, " ('it')"),  # a gap
        (tensor([4, 3], [0, 1]), 20, 24, " ('it' element (0, 1))"),
        (tensor([7], kind=U4), 17, 18, " ('it' elements (2) to (3))"),
        (tensor([2, 3]), 0, 16, ""),
        (tensor([2, 3]), 40, 48, ""),
    ],
)
def test_ranges_in_words(desc: dml.BufferTensorDesc, begin: int, end: int, words: str) -> None:
    assert named([declared(16, desc)], begin, end) == words


def test_only_a_few_are_listed() -> None:
    each = [declared(16 * i, tensor([4]), f"t{i}") for i in range(5)]
    assert named(each, 4, 72) == " ('t0' elements (1) to (3), 't1', 't2', 2 more)"


def test_a_later_declaration_replaces_those_that_it_meets() -> None:
    with Session() as session:
        buffer = session.buffer("weights", 64)
        buffer.expect(0, tensor([4]), "a")
        buffer.expect(16, tensor([4]), "b")
        buffer.expect(8, tensor([2]), "c")
        assert buffer.part(0, 32) == "bytes [0, 32) of buffer 'weights' ('b', 'c')"
        buffer.expect(16, tensor([4]))
        assert buffer.part(20, 21) == "byte 20 of buffer 'weights'"


@pytest.mark.dmlemu(expect=["HAZARD_RAW"])
def test_hazards_use_the_name() -> None:
    with Session() as session:
        row = tensor([4])
        compiled = relu(session, row)
        source, act, out = (
            session.upload("in", np.ones(4, np.float32)),
            *(session.buffer(name, 64) for name in ("act", "out")),
        )
        act.expect(16, row, "features")
        session.dispatch(compiled, [source], [dml.BufferBinding(act, 16, 16)])
        session.dispatch(compiled, [dml.BufferBinding(act, 16, 16)], [out])
        with pytest.raises(Error, match=r"reads bytes \[16, 32\) of buffer 'act' \('features'\), which"):
            session.run()


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_reads_of_unwritten_bytes_use_the_name() -> None:
    with Session() as session:
        row = tensor([4])
        compiled = relu(session, row)
        weights, out = session.buffer("weights", 64), session.buffer("out", 64)
        session.write(weights, np.ones(2, np.float32), 16)
        weights.expect(16, row, "bias")
        session.dispatch(compiled, [dml.BufferBinding(weights, 16, 16)], [out])
        session.run()
        [report] = [each.report for each in session.device.reports if each.report.id == "MEM_UNINIT_READ"]
        assert "from byte 24 of buffer 'weights' ('bias' element (2)), which" in report.message


@pytest.mark.dmlemu(expect=["BIND_ALIAS"])
def test_bindings_that_overlap_use_the_name() -> None:
    with Session() as session:
        row = tensor([8])
        compiled = relu(session, row)
        arena = session.buffer("arena", 64)
        arena.expect(0, row, "left")
        with pytest.raises(Error) as caught:
            session.dispatch(compiled, [dml.BufferBinding(arena, 0, 32)], [dml.BufferBinding(arena, 16, 32)])
        assert "InputTensor (bytes [0, 32) of buffer 'arena'" in caught.value.report.message
        assert "('left'))" in caught.value.report.message
        assert "byte 16 of buffer 'arena' ('left' element (4)) is" in " ".join(caught.value.report.context)


@pytest.mark.dmlemu(expect=["VAL_*"])
def test_values_use_the_name() -> None:
    with Session() as session:
        row = tensor([4])
        desc = dml.ElementWiseLogOperatorDesc(input_tensor=row, output_tensor=row)
        log = session.compile(desc, "log")
        session.initialize(log)
        session.device.checks.add(dml_values())
        source = session.upload("in", np.float32([1, 2, -1, 4]))
        out = session.buffer("out", 16)
        out.expect(0, row, "logits")
        session.dispatch(log, [source], [out])
        session.run()
        [report] = [each.report for each in session.device.reports if each.report.id == "VAL_NAN_BORN"]
        assert report.ranges == ("bytes [8, 12) of buffer 'out' ('logits' element (2))",)


def dml_values() -> type:
    from dmlemu.checks.values import Values

    return Values
