"""ADAM_OPTIMIZER."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.places import Attribute
from ..declared.rules import Demand, Ones, Rule
from ..declared.schema import OperatorDesc
from ..declared.values import Between
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, float64
from .families.element_wise import alike
from .families.normalization import float32

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..declared.descs import AdamOptimizerOperatorDesc
    from ..enums import FeatureLevel
    from ..lowering.compile import Program

_INPUTS = (
    "input_parameters_tensor",
    "input_first_moment_tensor",
    "input_second_moment_tensor",
    "gradient_tensor",
)
_OUTPUTS = ("output_parameters_tensor", "output_first_moment_tensor", "output_second_moment_tensor")


class _Fraction(Rule):
    """A FLOAT from 0 to 1."""

    def __init__(self, name: str, c_name: str) -> None:
        self.name = name
        self.c_name = c_name

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        yield Demand(Attribute(self.name), Between(0, 1))

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"`{self.c_name}` is in the range 0 to 1."


class AdamOptimizer(Definition, of="ADAM_OPTIMIZER"):
    """A step of Adam, with the gradient G and the TrainingStep T:
    ``M' = Beta1 * M + (1 - Beta1) * G``, ``V' = Beta2 * V + (1 - Beta2) * G^2``,
    ``X' = X - LearningRate * sqrt(1 - Beta2^T) / (1 - Beta1^T) * M' / (sqrt(V') + Epsilon)``.

    Epsilon is added to the root of the uncorrected V'.  The operator does not advance T; T = 0 gives
    NaN parameters, as 0 / 0.  Computed in FLOAT64 and rounded once.  An output may be bound to the memory
    of any input but TrainingStep.
    """

    desc: AdamOptimizerOperatorDesc

    ULPS = 1

    RULES = (
        *alike(*_INPUTS, *_OUTPUTS),
        Ones("training_step_tensor", "as it holds one number"),
        _Fraction("beta1", "Beta1"),
        _Fraction("beta2", "Beta2"),
    )

    def lower(self, program: Program) -> None:
        desc = self.desc
        numbers = kernels.pack(
            "adam_optimizer",
            learning_rate=desc.learning_rate,
            beta1=desc.beta1,
            beta2=desc.beta2,
            epsilon=desc.epsilon,
        )
        program.call(
            "adam_optimizer",
            *(program.read(name) for name in (*_INPUTS, "training_step_tensor")),
            *(program.write(name) for name in _OUTPUTS),
            constants=numbers,
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        x, m, v, g = (float64(inputs[name]) for name in _INPUTS)
        t = float(np.asarray(inputs["training_step_tensor"]).ravel()[0])
        beta1, beta2 = float32(desc.beta1), float32(desc.beta2)
        with np.errstate(all="ignore"):
            rate = (
                float32(desc.learning_rate)
                * np.sqrt(1 - np.float64(beta2) ** t)
                / (1 - np.float64(beta1) ** t)
            )
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g * g
            x = x - rate * m / (np.sqrt(v) + float32(desc.epsilon))
        found = zip(_OUTPUTS, (x, m, v), strict=True)
        return {name: convert(value, getattr(desc, name).data_type) for name, value in found}

    @classmethod
    def example(cls) -> dict[str, Any]:
        tensor = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 3])
        return {
            **dict.fromkeys([*_INPUTS, *_OUTPUTS], tensor),
            "training_step_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 1, 1, 1]),
            "learning_rate": 0.125,
            "beta1": 0.5,
            "beta2": 0.75,
            "epsilon": 0.0625,
        }
