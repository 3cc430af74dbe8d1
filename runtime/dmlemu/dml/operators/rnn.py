"""RNN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .families.conversion import Array
from .families.recurrent import Recurrent, example, rules

if TYPE_CHECKING:
    from ..declared.descs import RnnOperatorDesc


class Rnn(Recurrent, of="RNN"):
    """A network of one gate: ``H' = f(X W^T + H R^T + Wb + Rb)`` for each step."""

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
