"""RNN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .families.conversion import Array
from .families.recurrent import Recurrent, example, rules

if TYPE_CHECKING:
    from ..declared.descs import RnnOperatorDesc


class Rnn(Recurrent, of="RNN"):
    """A network of one gate: ``H' = f(X W^T + H R^T + Wb + Rb)`` for each step.

    Each direction processes the ``L`` steps of an item from the first to the last, or backward from the
    last to the first; the state before them is HiddenInitTensor, or 0. L is the item's element of
    SequenceLengthsTensor, or all T steps. OutputSequenceTensor has the state after step t at index t, and
    0 from L on; OutputSingleTensor has the last one, of the step that was processed last, or the first
    state if L is 0. A length above T counts as T, and MEM_INDEX_VALUE reports it.

    Bias is that of the inputs for all gates, then that of the states; without it, it is 0.
    ActivationDescs are those of the forward direction, then those of the other one. States and gates are
    FLOAT32 whatever the data type.
    """

    desc: RnnOperatorDesc

    GATES = 1
    FUNCTIONS = 1
    RULES = rules(GATES, FUNCTIONS)

    def cell(self, d: int, tensors: Mapping[str, Array], x: Array, *state: Array) -> list[Array]:
        (h,) = state
        (of_x,), (of_h,) = self.sums(d, tensors, x, h)
        return [self.function(d, 0)(of_x + of_h)]

    @classmethod
    def example(cls) -> dict[str, Any]:
        from ..declared.descs import ActivationTanhOperatorDesc

        return example(cls.GATES, [ActivationTanhOperatorDesc()])
