"""``Session.upload`` and ``write`` say what they upload, so that nobody has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dmlemu import Session, dml
from dmlemu.checks.analysis.tensor_relation import Relation, Tensor, relate
from dmlemu.dml import TensorDataType as T

HANDOVER = pytest.mark.dmlemu(expect=["LAYOUT_HANDOVER"])


def read(
    array: Any,
    kind: T,
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    *,
    written: tuple[int, Any] | None = None,
) -> list[str]:
    """What is reported when an uploaded array is read as this tensor; ``written`` over it: (offset, data)."""
    with Session() as session:
        source = session.upload("source", array)
        if written is not None:
            session.write(source, written[1], written[0])
        desc = dml.BufferTensorDesc(kind, sizes, strides)
        output = dml.BufferTensorDesc(kind, sizes)
        target = session.buffer("target", output.total_tensor_size_in_bytes)
        add = dml.ElementWiseAddOperatorDesc(a_tensor=desc, b_tensor=desc, output_tensor=output)
        compiled = session.compile(add, "add")
        session.initialize(compiled)
        bound = dml.BufferBinding(source, 0, desc.total_tensor_size_in_bytes)
        session.dispatch(compiled, [bound, bound], [target])
        session.read(target, np.uint8)
        return [each.id for each in session.device.reports if each.severity <= 2]


F32 = np.float32


@HANDOVER
@pytest.mark.parametrize(
    ("array", "kind", "sizes", "strides"),
    [
        pytest.param(np.ones((2, 6)), T.FLOAT32, [2, 6], None, id="FLOAT64 as FLOAT32"),
        pytest.param([1.0, 2.0], T.FLOAT32, [2], None, id="floats of Python as FLOAT32"),
        pytest.param(np.ones(8, np.int32), T.FLOAT32, [8], None, id="INT32 as FLOAT32"),
        pytest.param(np.ones((4, 6), F32), T.FLOAT32, [4, 5], None, id="a pitch of 6 as 5"),
        pytest.param(np.ones((3, 3, 8, 16), F32), T.FLOAT32, [16, 8, 3, 3], None, id="HWIO as OIHW"),
        pytest.param(np.ones((1, 4, 5, 3), F32), T.FLOAT32, [1, 3, 4, 5], None, id="NHWC as NCHW"),
        pytest.param(np.ones((5, 7), np.int8), T.INT8, [7, 5], None, id="rows as columns"),
    ],
)
def test_what_is_told(array: Any, kind: T, sizes: list[int], strides: list[int] | None) -> None:
    assert set(read(array, kind, sizes, strides)) == {"LAYOUT_HANDOVER"}


@pytest.mark.parametrize(
    ("array", "kind", "sizes", "strides"),
    [
        pytest.param(
            np.ones((3, 3, 8, 16), F32), T.FLOAT32, [16, 8, 3, 3], [1, 16, 384, 128], id="HWIO by strides"
        ),
        pytest.param(np.ones((4, 6), F32), T.FLOAT32, [4, 5], [6, 1], id="a part of each row"),
        pytest.param(np.ones((4, 6), F32), T.FLOAT32, [3, 6], None, id="the first rows"),
        pytest.param(np.ones((4, 6), F32), T.FLOAT32, [24], None, id="flat"),
        pytest.param(np.ones((4, 6), F32), T.FLOAT32, [2, 2, 6], None, id="an axis divided"),
        pytest.param(np.ones((4, 6), F32), T.FLOAT32, [1, 1, 4, 6], None, id="more axes"),
        pytest.param(np.ones((1, 6), F32), T.FLOAT32, [4, 6], [0, 1], id="broadcast"),
        pytest.param(np.ones(60, F32), T.FLOAT32, [1, 3, 4, 5], [60, 1, 15, 3], id="of one axis"),
        pytest.param(F32(1), T.FLOAT32, [1], None, id="a scalar"),
        pytest.param(np.ones(24, np.uint8), T.FLOAT32, [2, 3], None, id="bytes"),
        pytest.param(np.ones((2, 3), np.uint16), T.FLOAT16, [2, 3], None, id="bits of FLOAT16"),
        pytest.param(np.ones((2, 4), np.uint32), T.INT32, [2, 4], None, id="signed as unsigned"),
        pytest.param(np.ones((2, 4), bool), T.UINT8, [2, 4], None, id="bool"),
        pytest.param(np.ones((1,) * 9 + (4,), F32), T.FLOAT32, [4], None, id="more axes than a tensor has"),
        pytest.param(np.ones(4, np.complex64), T.FLOAT32, [4, 2], None, id="what no tensor has"),
        pytest.param(np.zeros((2, 6)), T.FLOAT32, [3, 4], None, id="zeros"),
        pytest.param(np.ones((6, 4), F32).T, T.FLOAT32, [4, 6], None, id="not contiguous"),
    ],
)
def test_what_is_right(array: Any, kind: T, sizes: list[int], strides: list[int] | None) -> None:
    assert read(array, kind, sizes, strides) == []


def test_two_elements_in_a_byte() -> None:
    """NumPy has no type for them."""
    array = Tensor("", T.INT8, (2, 4), (4, 1), 0, is_array=True)
    reader = Tensor("ATensor", T.INT4, (2, 8), (8, 1), 0)
    assert relate(array, reader, is_all=True) is Relation.SAME
    assert relate(array._replace(is_array=False), reader, is_all=True) is Relation.OTHER_TYPE


def test_other_data_over_it_are_other_tensors() -> None:
    """And parts are patches."""
    old = np.ones((4, 6))
    assert read(old, T.FLOAT32, [48], written=(0, np.ones((6, 8), F32))) == []
    assert read(np.ones((4, 6), F32), T.FLOAT32, [4, 6], written=(24, np.zeros(3, F32))) == []
    assert read(np.ones((4, 6), F32), T.FLOAT32, [4, 6], written=(26, np.zeros(6, np.uint8))) == []


def test_what_the_program_declares_wins() -> None:
    with Session() as session:
        arena = session.upload("arena", np.ones((6, 4), F32))
        arena.expect(0, dml.BufferTensorDesc(T.FLOAT32, [4, 6]), "weights")
        desc = dml.BufferTensorDesc(T.FLOAT32, [4, 6])
        compiled = session.compile(
            dml.ElementWiseIdentityOperatorDesc(input_tensor=desc, output_tensor=desc), "op"
        )
        session.initialize(compiled)
        session.dispatch(compiled, [arena], [session.buffer("target", 96)])
        session.run()
        assert not list(session.device.reports)


@pytest.mark.parametrize("data", [[1, 2, 3], [[1], [2]], (1, 2), 5])
def test_integers_of_python_need_a_dtype(data: Any) -> None:
    with Session() as session:
        buffer = session.buffer("buffer", 64)
        for call in (
            lambda: session.upload("data", data),
            lambda: session.write(buffer, data),
            lambda: session.upload_buffer("data", data),
        ):
            with pytest.raises(
                TypeError, match=r"Python integers, which NumPy turns into int64: .* np\.int32"
            ):
                call()
        session.write(buffer, np.array(data, np.int32))
        session.write(buffer, [np.int32(1), np.int32(2)])
        session.write(buffer, [True, False])
