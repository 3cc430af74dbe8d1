"""RNN, GRU and LSTM: networks whose state follows from one input of a sequence after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.places import Count
from ..declared.rules import Demand, Given, NotOwned, Rule, SameType, Sizes
from ..declared.values import Exactly
from ..enums import FeatureLevel, OperatorType, RecurrentNetworkDirection, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, float64
from .families.fusion import Fused, unary_of

if TYPE_CHECKING:
    from ..declared.descs import GruOperatorDesc, LstmOperatorDesc, RnnOperatorDesc
    from ..declared.schema import OperatorDesc
    from ..lowering.compile import Operand, Program


_BOTH = RecurrentNetworkDirection.BIDIRECTIONAL
_BACKWARD = RecurrentNetworkDirection.BACKWARD
_FUNCTIONS = 6  # of dmlk_recurrent
_EXCHANGED = (
    "batch and sequence are exchanged in one of them: InputTensor.Sizes is {1, sequence, batch, input}"
)

Function = Callable[[Array], Array]


def directions(desc: Any) -> int:
    return 2 if desc.direction is _BOTH else 1


class _Shape(Sizes):
    """The sizes of a tensor: T steps, B items of I elements, H units (or a multiple), D directions."""

    def __init__(self, name: str, *letters: str) -> None:
        super().__init__(name, self._follow, "")
        self.letters = letters

    def _follow(self, desc: Any) -> Iterator[tuple[int, int, str]]:
        _, t, b, i = desc.input_tensor.sizes
        h = desc.recurrence_tensor.sizes[3]
        known = {
            "T": (t, "InputTensor.Sizes[1]"),
            "B": (b, "InputTensor.Sizes[2]"),
            "I": (i, "InputTensor.Sizes[3]"),
            "D": (directions(desc), f"the number of directions for Direction {desc.direction.name}"),
            "H": (h, "RecurrenceTensor.Sizes[3]"),
            "1": (1, "as in all tensors of the operator"),
        }
        for dimension, letter in enumerate(self.letters):
            if letter in known:
                yield dimension, *known[letter]
            else:
                times = int(letter[:-1])
                yield dimension, times * h, f"{times} times RecurrenceTensor.Sizes[3]"

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        exchanged = {"T": 2, "B": 1}  # the dimension of InputTensor that would be right with both exchanged
        for demand in super().demands(desc, level):
            size, letter = demand.place.value(desc), self.letters[demand.place.index]
            one, other = desc.input_tensor.sizes[1:3]
            is_hint = (
                letter in exchanged and one != other and size == desc.input_tensor.sizes[exchanged[letter]]
            )
            yield demand._replace(hint=_EXCHANGED) if is_hint else demand

    def sentence(self, cls: type[OperatorDesc]) -> str:
        c_name = "".join(each.capitalize() for each in self.name.split("_"))
        return (
            f"`{c_name}.Sizes` is `{{{', '.join(self.letters)}}}`, with T steps, B items of I elements, "
            "H units, D directions."
        )


class _ActivationCount(Rule):
    """ActivationDescCount: as many for each direction as the cell has functions."""

    def __init__(self, functions: int) -> None:
        self.functions = functions

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        count = self.functions * directions(desc)
        clause = f"is not {count}, {self.functions} for each direction"
        yield Demand(Count("activation_descs"), Exactly(count), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"`ActivationDescCount` is {self.functions} for each direction."


_INPUTS = ("input_tensor", "weight_tensor", "recurrence_tensor", "bias_tensor", "hidden_init_tensor")
_OUTPUTS = ("output_sequence_tensor", "output_single_tensor")
_ALSO = {
    OperatorType.ACTIVATION_SWISH: FeatureLevel.LEVEL_6_2,
    OperatorType.ACTIVATION_HARD_SWISH: FeatureLevel.LEVEL_6_2,
}


def _rules(
    gates: int,
    functions: int,
    states: Sequence[str] = (),
    outputs: Sequence[str] = (),
    more: Mapping[str, Sequence[str]] = {},
) -> tuple[Rule, ...]:
    """``states``, ``outputs``: further ones, of the sizes of the hidden state; ``more``: other tensors."""
    state, rows = ("1", "D", "B", "H"), f"{gates}H" if gates > 1 else "H"
    shapes: dict[str, Sequence[str]] = {
        "input_tensor": ("1", "T", "B", "I"),
        "weight_tensor": ("1", "D", rows, "I"),
        "recurrence_tensor": ("1", "D", rows, "H"),
        "bias_tensor": ("1", "1", "D", f"{2 * gates}H"),
        "sequence_lengths_tensor": ("1", "1", "1", "B"),
        "output_sequence_tensor": ("T", "D", "B", "H"),
        **more,
        **dict.fromkeys(("hidden_init_tensor", *states, "output_single_tensor", *outputs), state),
    }
    inputs = (*_INPUTS, *states, *more)
    return (
        SameType(*inputs, *_OUTPUTS, *outputs),
        NotOwned(*inputs, "sequence_lengths_tensor"),
        Given(*_OUTPUTS, *outputs),
        _ActivationCount(functions),
        Fused(_ALSO, "activation_descs"),
        *(_Shape(name, *letters) for name, letters in shapes.items()),
    )


_STEPS = """\
Each direction processes the ``L`` steps of an item from the first to the last, or backward from the
last to the first; the state before them is HiddenInitTensor, or 0. L is the item's element of
SequenceLengthsTensor, or all T steps. OutputSequenceTensor has the state after step t at index t, and
0 from L on; OutputSingleTensor has the last one, of the step that was processed last, or the first
state if L is 0. A length above T counts as T, and MEM_INDEX_VALUE reports it.

Bias is that of the inputs for all gates, then that of the states; without it, it is 0.
ActivationDescs are those of the forward direction, then those of the other one. States and gates are
FLOAT32 whatever the data type.
"""


class Recurrent(Definition):
    """The common loop; a subclass has the cell, and documents what is its own."""

    desc: Any

    GATES: ClassVar[int]
    FUNCTIONS: ClassVar[int]

    ULPS = 64
    ULPS_REASON = "sums in FLOAT32, whose errors every step passes on"
    LARGEST_ERROR = 2.0**-16

    def __init_subclass__(cls, *, of: str = "") -> None:
        super().__init_subclass__(of=of)
        cls.__doc__ = f"{cleandoc(cls.__doc__ or '')}\n\n{_STEPS}"

    @property
    def units(self) -> int:
        units: int = self.desc.recurrence_tensor.sizes[3]
        return units

    @property
    def gates(self) -> list[range]:
        """The gates whose weights are read, as runs that follow each other."""
        return [range(self.GATES)]

    # --- lowering ---

    def lower(self, program: Program) -> None:
        desc, h, g = self.desc, self.units, self.GATES
        d, (_, t, b, _) = directions(desc), desc.input_tensor.sizes
        products = program.temporary(TensorDataType.FLOAT32, [d, t, b, g, h])
        x = self._inputs(program)
        for run in self.gates:
            self._multiply(program, x, products.write(), run)
        _, s1, s2, s3 = desc.recurrence_tensor.effective_strides
        program.call(
            "recurrent",
            products.read(),
            program.read("recurrence_tensor").part(0, [d, g, h, h], [s1, h * s2, s2, s3]),
            self._of_gates(program, "bias_tensor", g, first=g),
            self._state(program.read("hidden_init_tensor")),
            self._state(program.read("cell_mem_init_tensor")),
            self._last_axis(program.read("sequence_lengths_tensor")),
            self._of_gates(program, "peephole_tensor", 3),
            program.write("output_sequence_tensor"),
            self._state(program.write("output_single_tensor")),
            self._state(program.write("output_cell_single_tensor")),
            constants=self._constants(),
        )

    def _inputs(self, program: Program) -> Operand:
        """The inputs; with lengths a copy with zeros after the ends of sequences, which are not read."""
        x = program.read("input_tensor")
        if self.desc.sequence_lengths_tensor is None:
            return x
        copy = program.temporary(x.data_type, x.sizes)
        program.call("take_sequences", x, program.read("sequence_lengths_tensor"), copy.write())
        return copy.read()

    def _multiply(self, program: Program, x: Operand, products: Operand, run: range) -> None:
        """The products of all inputs and the weights of a run of gates, with their bias."""
        desc, h, rows = self.desc, self.units, len(run) * self.units
        d, (_, t, b, i) = directions(desc), x.sizes
        _, by_t, by_b, by_i = x.strides
        _, s1, s2, s3 = desc.weight_tensor.effective_strides
        out_d, out_t, out_b, *_ = products.strides
        bias = desc.bias_tensor
        bias_d, bias_h = (0, 0) if bias is None else bias.effective_strides[2:]
        together = by_t == b * by_b or 1 in (t, b)  # steps and items as the rows of one matrix
        by_row = by_t if b == 1 else by_b
        steps, m = ([], t * b) if together else ([t], b)
        none = [0] * len(steps)  # the stride of what is the same in each step
        constants = kernels.pack("gemm", trans_a=0, trans_b=1, alpha=1.0, beta=1.0)
        program.call(
            "gemm",
            x.part(0, [d, *steps, m, i], [0, *([] if together else [by_t]), by_row, by_i]),
            program.read("weight_tensor").part(run.start * h * s2, [d, *steps, rows, i], [s1, *none, s2, s3]),
            program.read("bias_tensor").part(
                run.start * h * bias_h,
                [d, *steps, m, rows],
                [bias_d, *none, 0, bias_h],
            ),
            products.part(
                run.start * h,
                [d, *steps, m, rows],
                [out_d, *([] if together else [out_t]), out_b, 1],
            ),
            constants=constants,
        )

    def _of_gates(self, program: Program, name: str, gates: int, first: int = 0) -> Operand:
        """``{1, 1, D, gates * H}`` as ``{D, gates, H}``, from gate ``first`` on."""
        d, h, whole = directions(self.desc), self.units, program.read(name)
        if not whole.sizes:
            return whole
        _, _, by_d, by_h = whole.strides
        return whole.part(first * h * by_h, [d, gates, h], [by_d, h * by_h, by_h])

    @staticmethod
    def _state(operand: Operand) -> Operand:
        return operand.part(0, operand.sizes[1:], operand.strides[1:])

    @staticmethod
    def _last_axis(operand: Operand) -> Operand:
        return operand.part(0, operand.sizes[3:], operand.strides[3:])

    def _constants(self) -> bytes:
        desc, single = self.desc, TensorDataType.FLOAT32
        functions = [unary_of(each) for each in desc.activation_descs]
        missing = _FUNCTIONS - len(functions)
        parameters = [list(each.constants(single, desc.input_tensor.data_type)) for each in functions]
        return kernels.pack(
            "recurrent",
            cell=kernels.constant(f"DMLK_CELL_{self.desc.TYPE.name}"),
            direction=desc.direction,
            functions=[*(kernels.number(each.KERNEL) for each in functions), *[0] * missing],
            parameters=[*parameters, *[[0]] * missing],
            **self.cell_constants(),
        )

    def cell_constants(self) -> dict[str, Any]:
        """The constants of the kernel that only this cell has."""
        return {}

    # --- reference ---

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc, h = self.desc, self.units
        _, t, b, _ = desc.input_tensor.sizes
        d, data_type = directions(desc), desc.input_tensor.data_type
        given = {name: value for name, value in inputs.items() if value is not None}
        lengths = np.minimum(np.ravel(given.pop("sequence_lengths_tensor", [t] * b)), t)
        read = {name: float64(value) for name, value in given.items()}
        states = {
            name: read.get(name, np.zeros((1, d, b, h)))[0].copy()
            for name in ("hidden_init_tensor", *self.CELLS)
        }
        sequence = np.zeros((t, d, b, h))
        with np.errstate(all="ignore"):
            for k, item in np.ndindex(d, b):
                steps = range(int(lengths[item]))
                state = [each[k, item] for each in states.values()]
                for step in reversed(steps) if k or desc.direction is _BACKWARD else steps:
                    state = self.cell(k, read, read["input_tensor"][0, step, item], *state)
                    sequence[step, k, item] = state[0]
                for each, last in zip(states.values(), state, strict=True):
                    each[k, item] = last
        hidden, *cells = (each[None] for each in states.values())
        found = {"output_sequence_tensor": sequence, "output_single_tensor": hidden}
        if cells:
            found["output_cell_single_tensor"] = cells[0]
        return {
            name: convert(value, data_type)
            for name, value in found.items()
            if getattr(desc, name) is not None
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        """The forward direction of 3 steps, with 1 item, 2 inputs and 2 units."""
        weights = [1, 1, 2 * cls.GATES, 2]
        return {
            "input_tensor": [1, 3, 1, 2],
            "weight_tensor": weights,
            "recurrence_tensor": weights,
            "bias_tensor": None,
            "hidden_init_tensor": [1, 1, 1, 2],
            "sequence_lengths_tensor": None,
            "output_sequence_tensor": [3, 1, 1, 2],
            "output_single_tensor": [1, 1, 1, 2],
            "direction": RecurrentNetworkDirection.FORWARD,
            "activation_descs": cls.example()["activation_descs"][: cls.FUNCTIONS],
        }

    CELLS: ClassVar[Sequence[str]] = ()
    """The initial states besides the hidden one."""

    def cell(self, d: int, tensors: Mapping[str, Array], x: Array, *state: Array) -> list[Array]:
        """The states of an item after a step in direction ``d``."""
        raise NotImplementedError

    def function(self, d: int, which: int) -> Function:
        """An activation of a direction."""
        found = unary_of(self.desc.activation_descs[d * self.FUNCTIONS + which])
        return lambda x: found.apply(x, data_type=self.desc.input_tensor.data_type)

    def sums(
        self, d: int, tensors: Mapping[str, Array], x: Array, h: Array
    ) -> tuple[list[Array], list[Array]]:
        """Of each gate: the product of the input, and that of the state, with their biases."""
        g = self.GATES
        bias = tensors["bias_tensor"][0, 0, d] if "bias_tensor" in tensors else np.zeros(2 * g * self.units)
        of_x, of_h = np.split(bias, 2)
        of_x = of_x + tensors["weight_tensor"][0, d] @ x
        of_h = of_h + tensors["recurrence_tensor"][0, d] @ h
        return np.split(of_x, g), np.split(of_h, g)


def _example(gates: int, activations: Sequence[OperatorDesc], **tensors: Sequence[int]) -> dict[str, Any]:
    """Both directions of 3 steps, 2 items, 4 inputs and 5 units."""

    def tensor(*sizes: int) -> BufferTensorDesc:
        return BufferTensorDesc(TensorDataType.FLOAT32, sizes)

    return {
        "input_tensor": tensor(1, 3, 2, 4),
        "weight_tensor": tensor(1, 2, 5 * gates, 4),
        "recurrence_tensor": tensor(1, 2, 5 * gates, 5),
        "bias_tensor": tensor(1, 1, 2, 10 * gates),
        "hidden_init_tensor": tensor(1, 2, 2, 5),
        "sequence_lengths_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 1, 1, 2]),
        "output_sequence_tensor": tensor(3, 2, 2, 5),
        "output_single_tensor": tensor(1, 2, 2, 5),
        "direction": _BOTH,
        "activation_descs": [*activations, *activations],
        **{name: tensor(*sizes) for name, sizes in tensors.items()},
    }


class Rnn(Recurrent, of="RNN"):
    """A network of one gate: ``H' = f(X W^T + H R^T + Wb + Rb)`` for each step."""

    desc: RnnOperatorDesc

    GATES = 1
    FUNCTIONS = 1
    RULES = _rules(GATES, FUNCTIONS)

    def cell(self, d: int, tensors: Mapping[str, Array], x: Array, *state: Array) -> list[Array]:
        (h,) = state
        (of_x,), (of_h,) = self.sums(d, tensors, x, h)
        return [self.function(d, 0)(of_x + of_h)]

    @classmethod
    def example(cls) -> dict[str, Any]:
        from ..declared.descs import ActivationTanhOperatorDesc

        return _example(cls.GATES, [ActivationTanhOperatorDesc()])


class Gru(Recurrent, of="GRU"):
    """Gated recurrent units: an update gate z, a reset gate r and a new state n in each step.

    ``z = f(X Wz^T + Wbz + H Rz^T + Rbz)``, ``r = f(X Wr^T + Wbr + H Rr^T + Rbr)``, ``n = g(X Wh^T + Wbh +
    (r H) Rh^T + Rbh)``, or with LinearBeforeReset ``n = g(X Wh^T + Wbh + r (H Rh^T + Rbh))``, and ``H' =
    (1 - z) n + z H``. Gates are in the order z, r, h.
    """

    desc: GruOperatorDesc

    GATES = 3
    FUNCTIONS = 2
    RULES = _rules(GATES, FUNCTIONS)

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
        return {**_example(cls.GATES, activations), "linear_before_reset": False}


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
    RULES = _rules(GATES, FUNCTIONS, CELLS, ("output_cell_single_tensor",), _MORE)

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
            **_example(
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
