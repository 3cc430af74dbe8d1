"""RANDOM_GENERATOR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.definition import Definition
from ..declared.rules import Ones, SameSizes, Sizes
from ..enums import RandomGeneratorType, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array

if TYPE_CHECKING:
    from ..declared.descs import RandomGeneratorOperatorDesc
    from ..lowering.compile import Program

WORD = 2**32


def philox(counter: int, key: tuple[int, int]) -> list[int]:
    """Philox 4x32-10: the four words that a 128-bit counter and a key give."""
    c0, c1, c2, c3 = (counter >> 32 * i & (WORD - 1) for i in range(4))
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, WORD)
        high1, low1 = divmod(0xCD9E8D57 * c2, WORD)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % WORD, (k1 + 0xBB67AE85) % WORD
    return [c0, c1, c2, c3]


def _six(desc: RandomGeneratorOperatorDesc) -> Iterator[tuple[int, int, str]]:
    yield -1, 6, "the words of counter and key"


class RandomGenerator(Definition, of="RANDOM_GENERATOR"):
    """Random bits: element n of the output is word ``n mod 4`` of Philox 4x32-10 of ``counter + n / 4``.

    Elements are counted in row-major order.

    The state is six words: the 128-bit counter, lowest word first, and the 64-bit key.  The output depends
    on nothing else.  OutputStateTensor, if given, gets the counter plus the element count / 4, rounded up,
    and the same key.  The counter wraps at 2**128.

    The page does not say which word of the counter is the lowest, nor in which order words go to
    elements: both are as TensorFlow's DirectML plugin has them.  InputStateTensor is read before anything
    is written, and OutputStateTensor may be bound to the same buffer region.  (The page's example prints
    the two counters the wrong way round.)
    """

    desc: RandomGeneratorOperatorDesc

    RULES = (
        SameSizes("input_state_tensor", "output_state_tensor"),
        Ones("input_state_tensor", "since it has one state", but_last=1),
        Sizes("input_state_tensor", _six, "The last size of `InputStateTensor` is 6."),
    )

    def lower(self, program: Program) -> None:
        program.call(
            "random_generator",
            program.read("input_state_tensor"),
            program.write("output_tensor"),
            program.write("output_state_tensor"),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        state = np.asarray(inputs["input_state_tensor"])
        words = [int(word) for word in state.ravel()]
        counter, key = sum(word << 32 * i for i, word in enumerate(words[:4])), (words[4], words[5])
        blocks = -(-desc.output_tensor.element_count // 4)
        drawn = [word for block in range(blocks) for word in philox((counter + block) % 2**128, key)]
        found = {"output_tensor": np.array(drawn[: desc.output_tensor.element_count], np.uint32)}
        found["output_tensor"] = found["output_tensor"].reshape(desc.output_tensor.sizes)
        if desc.output_state_tensor is not None:
            after = (counter + blocks) % 2**128
            new = [*(after >> 32 * i & (WORD - 1) for i in range(4)), *key]
            found["output_state_tensor"] = np.array(new, np.uint32).reshape(state.shape)
        return found

    @classmethod
    def example(cls) -> dict[str, Any]:
        state = BufferTensorDesc(TensorDataType.UINT32, [1, 1, 1, 6])
        return {
            "input_state_tensor": state,
            "output_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 2, 3, 3]),
            "output_state_tensor": state,
            "type": RandomGeneratorType.PHILOX_4X32_10,
        }
