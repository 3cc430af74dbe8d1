"""RANDOM_GENERATOR."""

from __future__ import annotations

import numpy as np
import pytest
from examples import example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import Array, shapes, tensors

import dmlemu
from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType  # noqa: E741
ONES = 2**32 - 1


def generator(count: int, **changes: object) -> dml.OperatorDesc:
    desc: dml.OperatorDesc = example(
        O.RANDOM_GENERATOR, output_tensor=tensor(T.UINT32, 1, 1, 1, count), **changes
    )
    return desc


def state(*words: int) -> dict[str, Array]:
    return {"input_state_tensor": np.array(words, np.uint32).reshape(1, 1, 1, 6)}


def generated(count: int, *words: int) -> tuple[list[str], list[int]]:
    """The words in hexadecimal, and the state after."""
    found = compare(generator(count), state(*words))
    drawn = [f"{word:08x}" for word in found["output_tensor"].ravel()]
    return drawn, found["output_state_tensor"].ravel().tolist()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((0, 0, 0, 0, 0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((ONES, ONES, ONES, ONES, ONES, ONES), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
    ids=["zeros", "ones", "pi"],
)
def test_known_answers(words: tuple[int, ...], expected: str) -> None:
    """Of philox4x32 with 10 rounds, in kat_vectors of Random123."""
    assert generated(4, *words)[0] == expected.split()


def test_four_elements_for_each_counter() -> None:
    drawn, after = generated(12, 0, 0, 0, 0, 0, 0)

    assert drawn[:4] == generated(4, 0, 0, 0, 0, 0, 0)[0]
    assert drawn[4:8] == generated(4, 1, 0, 0, 0, 0, 0)[0]
    assert drawn[8:] == generated(4, 2, 0, 0, 0, 0, 0)[0]
    assert after == [3, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("before", "after"),
    [((ONES, 0, 0, 0), [0, 1, 0, 0]), ((ONES, ONES, 7, 0), [0, 0, 8, 0]), ((ONES,) * 4, [0, 0, 0, 0])],
)
def test_the_counter_carries(before: tuple[int, ...], after: list[int]) -> None:
    drawn, found = generated(5, *before, 1, 2)

    assert drawn[4:] == generated(1, *after, 1, 2)[0]
    assert found == [after[0] + 1, *after[1:], 1, 2]


def test_a_counter_of_which_few_words_are_used_is_spent() -> None:
    assert generated(1, 0, 0, 0, 0, 9, 8)[1] == [1, 0, 0, 0, 9, 8]


def test_the_counter_of_the_page() -> None:
    """Its two counters are printed the wrong way round: 0x4f4f7 more than ...74746c65 ends in 7479615c."""
    op = generator(3 * 3 * 20 * 7219)
    words = 0x74746C65, 0x6D536561, 0x6F46726F, 0x48656C6C, 0, 0

    after = dmlemu.evaluate(op, **state(*words))["output_state_tensor"]

    assert after.ravel().tolist() == [0x7479615C, 0x6D536561, 0x6F46726F, 0x48656C6C, 0, 0]


def test_many_threads_draw_what_one_does() -> None:
    count = 300_003
    drawn = dmlemu.evaluate(generator(count), **state(ONES - 5, 3, 0, 0, 1, 2))["output_tensor"].ravel()

    for first in (0, 20, 99_996, count // 2 // 4 * 4, count - 3):
        counter = (3 << 32) + ONES - 5 + first // 4
        expected = generated(3, counter & ONES, counter >> 32, 0, 0, 1, 2)[0]
        assert [f"{word:08x}" for word in drawn[first : first + 3]] == expected


def test_without_a_new_state() -> None:
    assert list(compare(generator(3, output_state_tensor=None), state(1, 2, 3, 4, 5, 6))) == ["output_tensor"]


@given(st.data(), examples=60)
def test_any_layout(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 8))
    sizes = (1,) * (rank - 1) + (6,)
    op = dml.RandomGeneratorOperatorDesc(
        input_state_tensor=data.draw(tensors(T.UINT32, sizes)),
        output_tensor=data.draw(tensors(T.UINT32, data.draw(shapes()), output=True)),
        output_state_tensor=data.draw(st.none() | tensors(T.UINT32, sizes, output=True)),
        type=dml.RandomGeneratorType.PHILOX_4X32_10,
    )
    words = data.draw(
        st.lists(st.sampled_from([0, 1, ONES - 1, ONES]) | st.integers(0, ONES), min_size=6, max_size=6)
    )
    strides = op.input_state_tensor.effective_strides
    before = np.array(words, np.uint32) if strides[-1] else np.full(6, words[0], np.uint32)
    compare(op, {"input_state_tensor": before.reshape(sizes)}, offset=data.draw(offsets))


# --- rules (each is broken alone in test_rules.py) ---


def test_the_state_has_six_words() -> None:
    five = tensor(T.UINT32, 1, 1, 1, 5)

    refused(
        generator(3, input_state_tensor=five, output_state_tensor=None),
        "OP_SHAPE",
        "InputStateTensor.Sizes[3]",
        5,
        6,
    )
