"""GRU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .families.conversion import Array
from .families.recurrent import Recurrent, example, rules

if TYPE_CHECKING:
    from ..declared.descs import GruOperatorDesc


class Gru(Recurrent, of="GRU"):
    """Gated recurrent units: an update gate z, a reset gate r and a new state n in each step.

    ``z = f(X Wz^T + Wbz + H Rz^T + Rbz)``, ``r = f(X Wr^T + Wbr + H Rr^T + Rbr)``, ``n = g(X Wh^T + Wbh +
    (r H) Rh^T + Rbh)``, or with LinearBeforeReset ``n = g(X Wh^T + Wbh + r (H Rh^T + Rbh))``, and ``H' =
    (1 - z) n + z H``. Gates are in the order z, r, h.
    """

    desc: GruOperatorDesc

    GATES = 3
    FUNCTIONS = 2
    RULES = rules(GATES, FUNCTIONS)

    def cell_constants(self) -> dict[str, Any]:
        return {"linear": int(self.desc.linear_before_reset)}

    def cell(self, d: int, tensors: Mapping[str, Array], x: Array, *state: Array) -> list[Array]:
        (h,) = state
        f, g = (self.function(d, which) for which in range(2))
        (xz, xr, xn), (hz, hr, hn) = self.sums(d, tensors, x, h)
        z, r = f(xz + hz), f(xr + hr)
        of_h = r * hn if self.desc.linear_before_reset else self.sums(d, tensors, x, r * h)[1][2]
        n = g(xn + of_h)
        return [(1 - z) * n + z * h]

    @classmethod
    def example(cls) -> dict[str, Any]:
        from ..declared.descs import ActivationSigmoidOperatorDesc, ActivationTanhOperatorDesc

        activations = [ActivationSigmoidOperatorDesc(), ActivationTanhOperatorDesc()]
        return {**example(cls.GATES, activations), "linear_before_reset": False}
