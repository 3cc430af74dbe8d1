"""RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .families.conversion import Array
from .families.recurrent import Recurrent, example, rules

if TYPE_CHECKING:
    from ..declared.descs import GruOperatorDesc, LstmOperatorDesc, RnnOperatorDesc


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


_MORE = {"peephole_tensor": ("1", "1", "D", "3H")}


class Lstm(Recurrent, of="LSTM"):
    """Long short-term memory: an input, an output and a forget gate around a cell C in each step.

    ``i = f(X Wi^T + H Ri^T + Pi C + Wbi + Rbi)``, ``F = f(X Wf^T + H Rf^T + Pf C + Wbf + Rbf)`` or, with
    CoupleInputForget, ``1 - i`` (then nothing of f is read), ``c = g(X Wc^T + H Rc^T + Wbc + Rbc)``, ``C'
    = F C + i c``, ``o = f(X Wo^T + H Ro^T + Po C' + Wbo + Rbo)``, ``H' = o h(C')``. The peephole of o is
    multiplied by the new cell, as in ONNX. Gates are in the order i, o, f, c; peepholes i, o, f. With
    UseClipThreshold the sums of all four are clipped to plus and minus ClipThreshold before f and g.
    """

    desc: LstmOperatorDesc

    GATES = 4
    FUNCTIONS = 3
    CELLS = ("cell_mem_init_tensor",)
    RULES = rules(GATES, FUNCTIONS, CELLS, ("output_cell_single_tensor",), _MORE)

    @property
    def gates(self) -> list[range]:
        return [range(2), range(3, 4)] if self.desc.couple_input_forget else super().gates

    def cell_constants(self) -> dict[str, Any]:
        desc = self.desc
        return {
            "couples": int(desc.couple_input_forget),
            "clips": int(desc.use_clip_threshold),
            "clip": desc.clip_threshold,
        }

    def clip(self, x: Array) -> Array:
        limit = np.float32(self.desc.clip_threshold)
        return (
            np.where(x > limit, limit, np.where(x < -limit, -limit, x)) if self.desc.use_clip_threshold else x
        )

    def cell(self, d: int, tensors: Mapping[str, Array], x: Array, *state: Array) -> list[Array]:
        hidden, cell = state
        f, g, h = (self.function(d, which) for which in range(3))
        peepholes = (
            tensors["peephole_tensor"][0, 0, d] if "peephole_tensor" in tensors else np.zeros(3 * self.units)
        )
        pi, po, pf = np.split(peepholes, 3)
        i, o, forget, c = (of_x + of_h for of_x, of_h in zip(*self.sums(d, tensors, x, hidden), strict=True))
        i = f(self.clip(i + pi * cell))
        forget = 1 - i if self.desc.couple_input_forget else f(self.clip(forget + pf * cell))
        cell = forget * cell + i * g(self.clip(c))
        o = f(self.clip(o + po * cell))
        return [o * h(cell), cell]

    @classmethod
    def example(cls) -> dict[str, Any]:
        from ..declared.descs import ActivationSigmoidOperatorDesc, ActivationTanhOperatorDesc

        activations = [
            ActivationSigmoidOperatorDesc(),
            ActivationTanhOperatorDesc(),
            ActivationTanhOperatorDesc(),
        ]
        return {
            **example(
                cls.GATES,
                activations,
                cell_mem_init_tensor=[1, 2, 2, 5],
                peephole_tensor=[1, 1, 2, 15],
                output_cell_single_tensor=[1, 2, 2, 5],
            ),
            "clip_threshold": 3.0,
            "use_clip_threshold": True,
            "couple_input_forget": False,
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {
            **super().page_changes(),
            "cell_mem_init_tensor": [1, 1, 1, 2],
            "output_cell_single_tensor": [1, 1, 1, 2],
            "peephole_tensor": None,
        }
