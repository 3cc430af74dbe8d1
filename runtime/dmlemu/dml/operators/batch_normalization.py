"""BATCH_NORMALIZATION, BATCH_NORMALIZATION_TRAINING and their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..declared.definition import Definition
from ..declared.descs import ActivationReluOperatorDesc
from ..declared.rules import Below, Rule, SameRank, SameSizes, SameType, Sizes
from ..enums import FeatureLevel, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, float64
from .families.fusion import Fused
from .families.normalization import (
    Normalization,
    broadcast_sizes,
    constants,
    float32,
    group_sizes,
    ones,
    spread,
)

if TYPE_CHECKING:
    from ..lowering.compile import Program

_LONG = 1 << 7  # elements of a group that are worth the work of a group


def _spatial_sizes(desc: Any) -> Iterator[tuple[int, int, str]]:
    for d, size in enumerate(desc.input_tensor.sizes):
        if d >= 2 and not desc.spatial:
            yield d, size, "the size of InputTensor, since Spatial is FALSE"


def _spatial(name: str, c_name: str) -> Rule:
    sentence = f"Unless `Spatial`, sizes of `{c_name}` from dimension 2 on are those of `InputTensor`."
    return Below(FeatureLevel.LEVEL_4_0, Sizes(name, _spatial_sizes, sentence))


_PARAMETERS = {
    "mean_tensor": "MeanTensor",
    "variance_tensor": "VarianceTensor",
    "scale_tensor": "ScaleTensor",
    "bias_tensor": "BiasTensor",
}


def _tensor(*sizes: int) -> BufferTensorDesc:
    return BufferTensorDesc(TensorDataType.FLOAT32, sizes)


class BatchNormalization(Normalization, of="BATCH_NORMALIZATION"):
    """``output = FusedActivation(Scale * (input - Mean) / sqrt(Variance + Epsilon) + Bias)``.

    Mean, Variance, Scale and Bias are broadcast along their dimensions of size 1.  Statistics are FLOAT64,
    and the output is good to one unit in the last place, before an activation FLOAT32.
    """

    RULES = (
        SameType("input_tensor", *_PARAMETERS, "output_tensor"),
        SameRank("input_tensor", *_PARAMETERS, "output_tensor"),
        SameSizes("input_tensor", "output_tensor"),
        *(broadcast_sizes(*each) for each in _PARAMETERS.items()),
        *(_spatial(name, _PARAMETERS[name]) for name in ("mean_tensor", "variance_tensor")),
        Fused(),
    )

    def kernel(self) -> str:
        return "normalize_given"

    @property
    def axes(self) -> tuple[int, ...]:
        """The last dimensions along which the statistics are constant, until groups are long enough: more
        groups can be split among more threads."""
        desc, axes, length = self.desc, [], 1
        both = set(ones(desc.mean_tensor)) & set(ones(desc.variance_tensor))
        for d in sorted(both, reverse=True):
            if length < _LONG:
                axes.append(d)
                length *= desc.input_tensor.sizes[d]
        return tuple(axes)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, mean, variance, scale, bias = (float64(inputs[name]) for name in ("input_tensor", *_PARAMETERS))
        with np.errstate(all="ignore"):
            y = scale * ((x - mean) / np.sqrt(variance + float32(self.desc.epsilon))) + bias
        return {"output_tensor": self.activated(y)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        image = _tensor(2, 3, 2, 4)
        return {
            "input_tensor": image,
            **dict.fromkeys(["mean_tensor", "variance_tensor"], _tensor(1, 3, 2, 4)),
            **dict.fromkeys(["scale_tensor", "bias_tensor"], _tensor(1, 3, 1, 1)),
            "output_tensor": image,
            "spatial": False,
            "epsilon": 0.5,
            "fused_activation": ActivationReluOperatorDesc(),
        }


class BatchNormalizationTraining(Normalization, of="BATCH_NORMALIZATION_TRAINING"):
    """``output = FusedActivation(Scale * (input - mean) / sqrt(variance + Epsilon) + Bias + FusedAdd)``.

    Mean and variance, which are outputs, too, are those of the elements with the same coordinates except
    along the dimensions where Scale has size 1.  The variance is the population's, without Epsilon.
    Statistics are FLOAT64; the output is good to one unit in the last place, before an activation FLOAT32.
    """

    _GROUPS = ("scale_tensor", "bias_tensor", "output_mean_tensor", "output_variance_tensor")

    RULES = (
        SameType("input_tensor", "fused_add_tensor", *_GROUPS, "output_tensor"),
        SameRank("input_tensor", "fused_add_tensor", *_GROUPS, "output_tensor"),
        SameSizes("input_tensor", "fused_add_tensor", "output_tensor"),
        broadcast_sizes("scale_tensor", "ScaleTensor"),
        SameSizes(*_GROUPS),
        Fused(),
    )

    def kernel(self) -> str:
        return "normalize_moments"

    @property
    def axes(self) -> tuple[int, ...]:
        return ones(self.desc.scale_tensor)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        x, scale, bias = (float64(inputs[name]) for name in ("input_tensor", "scale_tensor", "bias_tensor"))
        with np.errstate(all="ignore"):
            mean = x.mean(self.axes, keepdims=True)
            variance = ((x - mean) ** 2).mean(self.axes, keepdims=True)
            y = scale * ((x - mean) / np.sqrt(variance + float32(desc.epsilon))) + bias
            if desc.fused_add_tensor is not None:
                y = y + float64(inputs["fused_add_tensor"])
        return {
            "output_tensor": self.activated(y),
            "output_mean_tensor": convert(mean, desc.output_mean_tensor.data_type),
            "output_variance_tensor": convert(variance, desc.output_variance_tensor.data_type),
        }

    @classmethod
    def example(cls) -> dict[str, Any]:
        image = _tensor(2, 3, 2, 4)
        return {
            "input_tensor": image,
            **dict.fromkeys(cls._GROUPS, _tensor(1, 3, 1, 1)),
            "fused_add_tensor": image,
            "output_tensor": image,
            "epsilon": 0.5,
            "fused_activation": ActivationReluOperatorDesc(),
        }


class BatchNormalizationGrad(Definition, of="BATCH_NORMALIZATION_GRAD"):
    """The gradients of BATCH_NORMALIZATION, whose Mean and Variance are constants.

    With ``r = 1 / sqrt(Variance + Epsilon)`` and sums over the dimensions where Mean has size 1:
    ``OutputGradient = InputGradient * Scale * r``,
    ``OutputScaleGradient = sum(InputGradient * (Input - Mean) * r)``,
    ``OutputBiasGradient = sum(InputGradient)``.  Computed in FLOAT64 and rounded once.
    """

    desc: Any

    KERNEL: ClassVar[str] = "normalize_given_grad"
    ULPS = 1

    _IMAGES = ("input_tensor", "input_gradient_tensor", "output_gradient_tensor")
    _GROUPS = (
        "mean_tensor",
        "variance_tensor",
        "scale_tensor",
        "output_scale_gradient_tensor",
        "output_bias_gradient_tensor",
    )

    RULES = (
        SameType(*_IMAGES, *_GROUPS),
        SameRank(*_IMAGES, *_GROUPS),
        SameSizes(*_IMAGES),
        broadcast_sizes("mean_tensor", "MeanTensor"),
        SameSizes(*_GROUPS),
    )

    @property
    def axes(self) -> tuple[int, ...]:
        """The dimensions that are summed over."""
        return ones(self.desc.mean_tensor)

    def lower(self, program: Program) -> None:
        desc = self.desc
        sizes = group_sizes(desc.input_tensor.sizes, self.axes)
        images, groups = self._IMAGES, self._GROUPS
        program.call(
            self.KERNEL,
            *(program.read(name) for name in images[:2]),
            *(spread(program, desc, name, sizes) for name in groups[:3]),
            *(program.write(name) for name in (images[2], *groups[3:])),
            constants=constants(self.KERNEL, self.axes, desc.epsilon),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, g = (float64(inputs[name]) for name in self._IMAGES[:2])
        mean, variance, scale = (float64(inputs[name]) for name in self._GROUPS[:3])
        with np.errstate(all="ignore"):
            guarded = variance + float32(self.desc.epsilon)
            outputs = {
                "output_gradient_tensor": self.gradient(x, g, guarded, scale),
                "output_scale_gradient_tensor": self.total(g * (x - mean)) / np.sqrt(guarded),
                "output_bias_gradient_tensor": self.total(g),
            }
        return {name: convert(value, getattr(self.desc, name).data_type) for name, value in outputs.items()}

    def gradient(self, x: Array, g: Array, guarded: Array, scale: Array) -> Array:
        """OutputGradient; ``guarded`` is the variance and Epsilon."""
        return g * scale / np.sqrt(guarded)

    def total(self, x: Array) -> Array:
        """The sum of each group."""
        total: Array = x.sum(self.axes, keepdims=True)
        return total

    @classmethod
    def example(cls) -> dict[str, Any]:
        image, groups = _tensor(2, 3, 2, 4), _tensor(1, 3, 1, 1)
        return {**dict.fromkeys(cls._IMAGES, image), **dict.fromkeys(cls._GROUPS, groups), "epsilon": 0.5}


class BatchNormalizationTrainingGrad(BatchNormalizationGrad, of="BATCH_NORMALIZATION_TRAINING_GRAD"):
    """The gradients of BATCH_NORMALIZATION_TRAINING, whose mean and variance depend on the input.

    With ``V = Variance + Epsilon``, and c and gc the Input and the InputGradient less their means over the
    dimensions where Mean has size 1:
    ``OutputGradient = Scale / sqrt(V) * (gc - c * mean(InputGradient * c) / V)``,
    ``OutputScaleGradient = sum(InputGradient * (Input - Mean)) / sqrt(V)``,
    ``OutputBiasGradient = sum(InputGradient)``.  Computed in FLOAT64 and rounded once.
    FusedAdd and the activation have no part in it: InputGradient is the gradient before them.
    """

    KERNEL = "normalize_moments_grad"

    def gradient(self, x: Array, g: Array, guarded: Array, scale: Array) -> Array:
        c = x - x.mean(self.axes, keepdims=True)
        centred = g - g.mean(self.axes, keepdims=True)
        slope = (g * c).mean(self.axes, keepdims=True) / guarded
        y: Array = scale / np.sqrt(guarded) * (centred - c * slope)
        return y
