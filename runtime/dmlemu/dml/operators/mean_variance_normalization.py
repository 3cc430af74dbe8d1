"""MEAN_VARIANCE_NORMALIZATION, MEAN_VARIANCE_NORMALIZATION1 and MEAN_VARIANCE_NORMALIZATION2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.descs import ActivationReluOperatorDesc
from ..declared.places import Attribute
from ..declared.rules import Axis, Below, Demand, HasCount, Rule, SameRank, SameSizes, SameType
from ..declared.values import Between, Exactly, Except, Values
from ..enums import FeatureLevel, TensorDataType
from ..rows import OP_OPTIONAL
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, float64
from .families.fusion import Fused
from .families.normalization import Normalization, broadcast_sizes, float32

if TYPE_CHECKING:
    from ..declared.schema import OperatorDesc

_GIVEN = "a tensor desc"


class _Presence(Attribute):
    """Whether an optional tensor is given."""

    __slots__ = ()

    check = OP_OPTIONAL

    def value(self, desc: OperatorDesc) -> str | None:
        return None if super().value(desc) is None else _GIVEN

    def put(self, desc: Any, value: str | None) -> OperatorDesc:
        tensor = BufferTensorDesc(desc.input_tensor.data_type, desc.input_tensor.sizes)
        return super().put(desc, None if value is None else tensor)

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        return Except(())


class _Only(Exactly):
    """Present, or absent."""

    __slots__ = ()

    def outside(self, domain: Values) -> list[str | None]:
        return [_GIVEN if self.only is None else None]


class _BothOrNeither(Rule):
    """ScaleTensor and BiasTensor are both given or both absent."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        if desc.scale_tensor is None:
            wanted, clause = None, "is given, but ScaleTensor is not"
        else:
            wanted, clause = _GIVEN, "is missing, but ScaleTensor is given"
        yield Demand(_Presence("bias_tensor"), _Only(wanted), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "`ScaleTensor` and `BiasTensor` are both given or both absent."


_TENSORS = ("input_tensor", "scale_tensor", "bias_tensor", "output_tensor")
_SHAPES: tuple[Rule, ...] = (
    SameType(*_TENSORS),
    SameSizes("input_tensor", "output_tensor"),
    broadcast_sizes("scale_tensor", "ScaleTensor"),
    broadcast_sizes("bias_tensor", "BiasTensor"),
)
_ANY_RANK: tuple[Rule, ...] = (SameRank(*_TENSORS), *_SHAPES)
_AXES: tuple[Rule, ...] = (HasCount("axes", Between(1, None)), Axis("axes", of="input_tensor"))


class MeanVarianceNormalization(Normalization, of="MEAN_VARIANCE_NORMALIZATION"):
    """``output = FusedActivation((input - mean) / sqrt(variance + Epsilon) * Scale + Bias)`` of each image.

    Mean and variance are those of a channel's height and width, with CrossChannel of all channels of a
    batch item.  Without NormalizeVariance nothing is divided.  The variance is the population's.  Statistics
    are FLOAT64, whatever the data type; a variance of 0 with Epsilon 0 gives NaN.
    """

    RULES = (*_SHAPES, Below(FeatureLevel.LEVEL_5_2, _BothOrNeither()), Fused())

    @property
    def axes(self) -> tuple[int, ...]:
        return (1, 2, 3) if self.desc.cross_channel else (2, 3)

    @property
    def use(self) -> tuple[bool, bool]:
        """Whether the mean is subtracted, and whether elements are divided by the deviation."""
        return True, self.desc.normalize_variance

    def kernel(self) -> str:
        return {
            (True, True): "normalize_moments",
            (True, False): "normalize_mean",
            (False, True): "normalize_squares",
            (False, False): "normalize_nothing",
        }[self.use]

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        use_mean, use_variance = self.use
        x = float64(inputs["input_tensor"])
        with np.errstate(all="ignore"):
            y = x - x.mean(self.axes, keepdims=True) if use_mean else x
            if use_variance:
                variance = (y * y).mean(self.axes, keepdims=True)
                y = y / np.sqrt(variance + float32(self.desc.epsilon))
            if self.desc.scale_tensor is not None:
                y = y * float64(inputs["scale_tensor"])
            if self.desc.bias_tensor is not None:
                y = y + float64(inputs["bias_tensor"])
        return {"output_tensor": self.activated(y)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        tensor = BufferTensorDesc(TensorDataType.FLOAT32, [2, 3, 2, 4])
        of_channels = BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 1, 1])
        return {
            **dict.fromkeys(["input_tensor", "output_tensor"], tensor),
            **dict.fromkeys(["scale_tensor", "bias_tensor"], of_channels),
            "cross_channel": False,
            "normalize_variance": True,
            "axes": [2, 3],
            "use_mean": True,
            "use_variance": True,
            "epsilon": 0.5,
            "fused_activation": ActivationReluOperatorDesc(),
        }


class MeanVarianceNormalization1(MeanVarianceNormalization, of="MEAN_VARIANCE_NORMALIZATION1"):
    """``output = FusedActivation((input - mean) / sqrt(variance + Epsilon) * Scale + Bias)``.

    Mean and variance are those of the elements with the same coordinates except along Axes.  Without
    NormalizeVariance nothing is divided.  The variance is the population's.  Statistics are FLOAT64, whatever
    the data type; a variance of 0 with Epsilon 0 gives NaN.
    """

    RULES = (
        *_ANY_RANK,
        *_AXES,
        Below(
            FeatureLevel.LEVEL_4_0,
            SameSizes("input_tensor", "scale_tensor", "bias_tensor", only=slice(1, 2)),
        ),
        Below(FeatureLevel.LEVEL_5_2, _BothOrNeither()),
        Fused(),
    )

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(self.desc.axes)


class MeanVarianceNormalization2(MeanVarianceNormalization1, of="MEAN_VARIANCE_NORMALIZATION2"):
    """``output = FusedActivation((input - m) / sqrt(v + Epsilon) * Scale + Bias)``.

    With UseMean, m is the mean of the elements with the same coordinates except along Axes, otherwise 0; v
    is the mean of their ``(input - m)^2``: without UseMean, elements are divided by their root mean square.
    Without UseVariance nothing is divided.  Statistics are FLOAT64, whatever the data type; v = 0 with
    Epsilon 0 gives NaN.
    """

    RULES = (*_ANY_RANK, *_AXES, Fused())

    @property
    def use(self) -> tuple[bool, bool]:
        return self.desc.use_mean, self.desc.use_variance
