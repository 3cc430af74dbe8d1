"""Hints of refused descs: what they advise is accepted, and gives what was meant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dmlemu import Error, dml
from dmlemu.evaluation import evaluate

T = dml.TensorDataType


def tensor(*sizes: int, strides: list[int] | None = None, type: T = T.FLOAT32) -> dml.BufferTensorDesc:
    return dml.BufferTensorDesc(type, list(sizes), strides)


def hint_of(desc: dml.OperatorDesc) -> str:
    with pytest.raises(Error) as raised:
        evaluate(desc)
    return raised.value.report.hint


# --- GATHER_ELEMENTS and SCATTER_ELEMENTS: a part of the input ---


def gather(table: dml.BufferTensorDesc, *sizes: int) -> dml.OperatorDesc:
    return dml.GatherElementsOperatorDesc(
        input_tensor=table, indices_tensor=tensor(*sizes, type=T.UINT32), output_tensor=tensor(*sizes), axis=2
    )


def scatter(table: dml.BufferTensorDesc, *sizes: int) -> dml.OperatorDesc:
    return dml.ScatterElementsOperatorDesc(
        input_tensor=table,
        indices_tensor=tensor(*sizes, type=T.UINT32),
        updates_tensor=tensor(*sizes),
        output_tensor=table,
        axis=2,
    )


SLICE = "the slice of it with Sizes [1, 2, 10] and Strides [30, 10, 1]"


def test_smaller_indices_reach_a_slice() -> None:
    """And not what a stride of 0 would repeat."""
    assert hint_of(gather(tensor(2, 3, 10), 1, 2, 3)) == (
        f"indices smaller than InputTensor reach only a part of it: describe InputTensor as {SLICE}"
    )
    x = np.arange(60, dtype=np.float32)
    indices = np.array([[[9, 0, 5], [1, 1, 2]]], np.uint32)
    part = gather(tensor(1, 2, 10, strides=[30, 10, 1]), 1, 2, 3)
    result = evaluate(part, input_tensor=x[:20].reshape(1, 2, 10), indices_tensor=indices)
    found = result["output_tensor"] if isinstance(result, dict) else result
    assert np.asarray(found).ravel().tolist() == [9, 0, 5, 11, 11, 12]


def test_smaller_indices_scatter_into_a_slice() -> None:
    hint = hint_of(scatter(tensor(2, 3, 10), 1, 2, 3))
    assert hint.startswith("indices smaller than InputTensor reach only a part of it")
    assert SLICE in hint and "stride 0" not in hint


def test_an_input_of_size_1_can_be_repeated() -> None:
    assert "stride 0" in hint_of(gather(tensor(1, 3, 10), 2, 3, 3))
    assert hint_of(gather(tensor(2, 3, 10), 3, 3, 3)) == ""


# --- LSTM, GRU, RNN: batch and sequence ---


def rnn(inputs: tuple[int, ...], outputs: tuple[int, ...], **more: Any) -> dml.OperatorDesc:
    relu = dml.ActivationReluOperatorDesc(input_tensor=None, output_tensor=None)
    return dml.RnnOperatorDesc(
        input_tensor=tensor(*inputs),
        weight_tensor=tensor(1, 1, 5, 3),
        recurrence_tensor=tensor(1, 1, 5, 5),
        output_sequence_tensor=tensor(*outputs),
        activation_descs=[relu],
        direction=dml.RecurrentNetworkDirection.FORWARD,
        **more,
    )


EXCHANGED = (
    "batch and sequence are exchanged in one of them: InputTensor.Sizes is {1, sequence, batch, input}"
)


@pytest.mark.parametrize(
    ("inputs", "outputs", "hint"),
    [
        ((1, 2, 7, 3), (7, 1, 2, 5), EXCHANGED),
        ((1, 7, 2, 3), (2, 1, 7, 5), EXCHANGED),
        ((1, 7, 2, 3), (6, 1, 2, 5), ""),
        ((1, 7, 2, 3), (7, 2, 2, 5), ""),
    ],
)
def test_batch_and_sequence_exchanged(inputs: tuple[int, ...], outputs: tuple[int, ...], hint: str) -> None:
    assert hint_of(rnn(inputs, outputs)) == hint


def test_initial_state_of_the_sequence() -> None:
    assert hint_of(rnn((1, 7, 2, 3), (7, 1, 2, 5), hidden_init_tensor=tensor(1, 1, 7, 5))) == EXCHANGED


# --- two elements in a byte ---


def dequantize(width: int, zero_width: int = 2) -> dml.OperatorDesc:
    scale, zero = tensor(4, 2), tensor(4, zero_width, type=T.UINT4)
    return dml.DequantizeOperatorDesc(
        input_tensor=tensor(4, width, type=T.UINT4),
        quantization_type=dml.QuantizationType.SCALE_ZERO_POINT,
        quantization_tensors=[scale, zero],
        output_tensor=tensor(4, 8),
    )


def test_half_the_width_of_nibbles() -> None:
    hint = "Sizes count elements, not bytes: two elements of UINT4 lie in a byte"
    assert hint_of(dequantize(4)) == hint
    assert hint_of(dequantize(8, zero_width=1)) == hint
    assert hint_of(dequantize(5)) == ""


def test_an_array_of_bytes_for_nibbles() -> None:
    packed = np.zeros((4, 4), np.uint8)
    with pytest.raises(Error) as raised:
        evaluate(
            dequantize(8),
            input_tensor=packed,
            quantization_tensors=[np.ones((4, 2), np.float32), np.zeros((4, 2), np.uint8)],
        )
    assert raised.value.report.hint == "the array has one element for each item, not two for each byte"


# --- IDENTITY as a reshape ---


def identity(source: dml.BufferTensorDesc, target: dml.BufferTensorDesc, **more: Any) -> dml.OperatorDesc:
    return dml.ElementWiseIdentityOperatorDesc(input_tensor=source, output_tensor=target, **more)


def test_a_reshape_needs_no_operator() -> None:
    hint = "no operator is needed for a reshape: bind the same bytes under the other desc"
    assert hint_of(identity(tensor(2, 6), tensor(3, 4))) == hint
    assert hint_of(identity(tensor(2, 6), tensor(12))) == hint
    assert hint_of(identity(tensor(2, 6), tensor(3, 4, strides=[1, 3]))) == ""
    assert hint_of(identity(tensor(2, 6), tensor(3, 4), scale_bias=dml.ScaleBias(2, 0))) == ""
    assert hint_of(identity(tensor(2, 6), tensor(3, 5))) == ""
