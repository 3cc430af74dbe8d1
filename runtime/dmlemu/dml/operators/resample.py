"""RESAMPLE in its four versions, and the gradients RESAMPLE_GRAD and RESAMPLE_GRAD1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import AboveZero, Length, Rule, SameRank, SameType
from ..enums import AxisDirection, InterpolationMode, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, float64

if TYPE_CHECKING:
    from ..lowering.compile import Program

_NEAREST = InterpolationMode.NEAREST_NEIGHBOR
_FAR = np.float32(2.0**52)  # positions beyond it are clamped like this one
CENTRES = (0.5, -0.5)  # InputPixelOffset and OutputPixelOffset of RESAMPLE


def pack_linear(scales: Sequence[float]) -> bytes:
    """The constants of the kernel that enlarges by ``scales``, interpolating between centres."""
    outer, inner = ([centre] * len(scales) for centre in reversed(CENTRES))
    return _pack(scales, outer, inner, mode=3, gradient=0)


def positions(count: int, scale: float, outer: float, inner: float) -> Array:
    """Where elements 0 to ``count`` - 1 lie in the other tensor: ``(o - outer) / scale - inner``.

    Each step is rounded to FLOAT32 (decision 0022); a NaN is before the first element.  An element that
    nothing moves is at its index, however many there are.
    """
    if np.float32(scale) == 1 and np.float32(outer) + np.float32(inner) == 0:
        return np.arange(count, dtype=np.float64)
    with np.errstate(all="ignore"):
        o = np.arange(count).astype(np.float32)
        p = (o - np.float32(outer)) / np.float32(scale) - np.float32(inner)
    clipped: Array = np.clip(np.where(np.isnan(p), -_FAR, p), -_FAR, _FAR)
    return clipped


def half_up(p: Array) -> Array:
    """The nearest index: ``floor(p + 0.5)``, whose sum is rounded to FLOAT32; a whole position is one."""
    nearest: Array = np.where(p == np.floor(p), p, np.floor(p + np.float32(0.5)))
    return nearest


def _pack(scales: Sequence[float], outer: Sequence[float], inner: Sequence[float], **rest: int) -> bytes:
    return kernels.pack("resample", rank=len(scales), scales=scales, outer=outer, inner=inner, **rest)


class _Resampling(Definition):
    """What sampling and its gradient share: where each element of one tensor lies in the other."""

    INPUT, OUTPUT = "input_tensor", "output_tensor"
    GRADIENT = False

    ULPS = 1
    ULPS_REASON = "the kernel adds in another order"

    @property
    def _outer(self) -> Sequence[float]:
        """What is subtracted from an index before it is divided by the scale."""
        raise NotImplementedError

    @property
    def _inner(self) -> Sequence[float]:
        """What is subtracted from the quotient."""
        raise NotImplementedError

    @property
    def _rounding(self) -> AxisDirection | None:
        """How NEAREST_NEIGHBOR rounds positions; None: to the nearest, halves up."""
        direction: AxisDirection | None = getattr(self.desc, "rounding_direction", None)
        return direction

    @property
    def _antialiased(self) -> bool:
        return bool(getattr(self.desc, "antialiased", False))

    def lower(self, program: Program) -> None:
        constants = _pack(
            self.desc.scales, self._outer, self._inner, mode=self._mode(), gradient=int(self.GRADIENT)
        )
        program.call("resample", program.read(self.INPUT), program.write(self.OUTPUT), constants=constants)

    def _mode(self) -> int:
        """The number of ``enum dmlk_resample_mode``."""
        if self.desc.interpolation_mode is _NEAREST:
            return {None: 0, AxisDirection.DECREASING: 1, AxisDirection.INCREASING: 2}[self._rounding]
        return 4 if self._antialiased else 3

    def _weights(self, axis: int, count: int, size: int) -> Array:
        """A row for each of ``count`` indices: the weights of the ``size`` elements of the other tensor."""
        scale = float(np.float32(self.desc.scales[axis]))
        p32 = positions(count, scale, self._outer[axis], self._inner[axis])
        p = float64(p32)
        weights, rows = np.zeros((count, size)), np.arange(count)

        def add(index: Array, weight: Any) -> None:
            np.add.at(weights, (rows, np.clip(index, 0, size - 1).astype(np.int64)), weight)

        if self.desc.interpolation_mode is _NEAREST:
            nearest = {AxisDirection.DECREASING: np.floor, AxisDirection.INCREASING: np.ceil}
            add(nearest[self._rounding](p) if self._rounding is not None else half_up(p32), 1.0)
        elif self._antialiased and scale < 1:
            for offset in range(-int(1 / scale) - 1, int(1 / scale) + 3):
                index = np.floor(p) + offset
                add(index, np.maximum(0, 1 - np.abs(index - p) * scale))
            weights /= weights.sum(1, keepdims=True)
        else:
            low = np.floor(p)
            add(low, 1 - (p - low))
            add(low + 1, p - low)
        return weights

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        source, target = (getattr(self.desc, name) for name in (self.INPUT, self.OUTPUT))
        x = np.asarray(inputs[self.INPUT])
        if self.KEEPS_NANS:  # bits are copied
            for axis in range(x.ndim):
                nearest = self._weights(axis, target.sizes[axis], source.sizes[axis]).argmax(1)
                x = x.take(nearest, axis)
            return {self.OUTPUT: x}
        values = float64(x)
        for axis in reversed(range(x.ndim)):
            if self.GRADIENT:
                weights = self._weights(axis, source.sizes[axis], target.sizes[axis]).T
            else:
                weights = self._weights(axis, target.sizes[axis], source.sizes[axis])
            values = _mixed(values, weights, axis)
        if target.data_type in (TensorDataType.INT8, TensorDataType.UINT8):
            values = values.astype(np.float32)
        return {self.OUTPUT: convert(values, target.data_type)}


def _mixed(values: Array, weights: Array, axis: int) -> Array:
    """The weighted sums along an axis; an element of weight 0 has no influence."""
    rows = np.moveaxis(values, axis, 0)
    result = np.zeros((len(weights), *rows.shape[1:]))
    with np.errstate(all="ignore"):
        for i, row in enumerate(weights):
            used = np.flatnonzero(row)
            for n, j in enumerate(used):
                term = row[j] * rows[j]
                result[i] = term if n == 0 else result[i] + term
    return np.moveaxis(result, 0, axis)


def _rules(source: str, target: str) -> tuple[Rule, ...]:
    return (
        SameType(source, target),
        SameRank(source, target),
        Length("scales", of=source),
        AboveZero("scales"),
    )


class Resample(_Resampling, of="RESAMPLE"):
    """Samples the input at scaled positions, along every dimension, batch and channels too.

    Output element o lies at ``p = (o + 0.5) / Scales - 0.5`` of the input: the centres of elements are
    matched. Output sizes need not be those of the scaled input: it is cropped, or its edge repeated, as every
    index of the input that is outside is moved to the edge.

    NEAREST_NEIGHBOR copies the bits of element ``floor(p + 0.5)``. LINEAR mixes elements floor(p) and
    floor(p) + 1 with the weights ``1 - w`` and ``w = p - floor(p)``, and multiplies the weights of all
    dimensions.

    Positions are computed in FLOAT32, as GPUs do: each step of the formula is rounded, ``p + 0.5`` included.
    Scales that FLOAT32 cannot hold, such as 1 / 7, move a position that should be whole (or a half) below it
    or above it, and the neighbour is taken; devices that divide less exactly differ in such places.

    Weights and sums are FLOAT64, the last dimension first, and the sum is rounded once; of integers to
    FLOAT32, whose fraction is then dropped, as by CAST (ONNX Runtime's tests of UINT8 ask DirectML for 2
    where the mean is 2.67). An element of weight 0 has no influence, even if it is infinite or NaN.
    """

    RULES: ClassVar[Sequence[Rule]] = _rules("input_tensor", "output_tensor")

    def __init__(self, desc: Any) -> None:
        super().__init__(desc)
        self.KEEPS_NANS = desc.interpolation_mode is _NEAREST

    @property
    def _outer(self) -> Sequence[float]:
        return [CENTRES[1]] * len(self.desc.scales)

    @property
    def _inner(self) -> Sequence[float]:
        return [CENTRES[0]] * len(self.desc.scales)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 3]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 4, 6]),
            "interpolation_mode": InterpolationMode.LINEAR,
            "rounding_direction": AxisDirection.DECREASING,
            "scales": [1.0, 1.0, 2.0, 2.0],
            "input_pixel_offsets": [0.5] * 4,
            "output_pixel_offsets": [-0.5] * 4,
            "antialiased": False,
        }


class ResampleAt(Resample, of="RESAMPLE1 RESAMPLE2 RESAMPLE3"):
    """Samples the input at scaled positions, along every dimension, batch and channels too.

    Output element o lies at ``p = (o - OutputPixelOffsets) / Scales - InputPixelOffsets`` of the input.
    Offsets of 0.5 and -0.5 match the centres of elements, as RESAMPLE does. Output sizes need not be those of
    the scaled input: it is cropped, or its edge repeated, as every index of the input that is outside is
    moved to the edge.

    NEAREST_NEIGHBOR copies the bits of element ``floor(p + 0.5)``; RESAMPLE2 and later: ``ceil(p)`` for
    RoundingDirection INCREASING, ``floor(p)`` for DECREASING. LINEAR mixes elements floor(p) and floor(p) + 1
    with the weights ``1 - w`` and ``w = p - floor(p)``, and multiplies the weights of all dimensions.

    Antialiased (LINEAR only) widens the filter where Scales is below 1: every element i with ``|i - p| < 1 /
    Scales`` has the weight ``1 - |i - p| * Scales``, divided by the sum of all; positions outside count as
    the element at the edge.

    Positions are computed in FLOAT32, as GPUs do: each step of the formula is rounded, ``p + 0.5`` included.
    Scales that FLOAT32 cannot hold, such as 1 / 7, move a position that should be whole (or a half) below it
    or above it, and the neighbour is taken; devices that divide less exactly differ in such places.

    Weights and sums are FLOAT64, the last dimension first, and the sum is rounded once; of integers to
    FLOAT32, whose fraction is then dropped, as by CAST (ONNX Runtime's tests of UINT8 ask DirectML for 2
    where the mean is 2.67). An element of weight 0 has no influence, even if it is infinite or NaN.
    """

    RULES: ClassVar[Sequence[Rule]] = (
        *Resample.RULES,
        Length("input_pixel_offsets", of="input_tensor"),
        Length("output_pixel_offsets", of="input_tensor"),
    )

    @property
    def _outer(self) -> Sequence[float]:
        offsets: Sequence[float] = self.desc.output_pixel_offsets
        return offsets

    @property
    def _inner(self) -> Sequence[float]:
        offsets: Sequence[float] = self.desc.input_pixel_offsets
        return offsets


class ResampleGrad(_Resampling, of="RESAMPLE_GRAD RESAMPLE_GRAD1"):
    """The gradient of RESAMPLE1, or of RESAMPLE2: adds each element of the input gradient to the elements
    that were sampled for it, times their weights.

    The input gradient has the sizes of the forward output, the output gradient those of the forward input,
    and Scales are those of the forward operator. The offsets change places: InputPixelOffsets are the forward
    OutputPixelOffsets and OutputPixelOffsets the forward InputPixelOffsets, so that element o of the input
    gradient lies at ``p = (o - InputPixelOffsets) / Scales - OutputPixelOffsets``. (The page says otherwise;
    Microsoft's TensorFlow plugin passes them so, and its gradients are tested.)

    Positions are computed in FLOAT32, as by the forward operator, sums in FLOAT64, the last dimension first,
    and rounded once. Elements that nothing sampled are 0.
    """

    INPUT, OUTPUT = "input_gradient_tensor", "output_gradient_tensor"
    GRADIENT = True

    RULES: ClassVar[Sequence[Rule]] = (
        *_rules("input_gradient_tensor", "output_gradient_tensor"),
        Length("input_pixel_offsets", of="input_gradient_tensor"),
        Length("output_pixel_offsets", of="input_gradient_tensor"),
    )

    @property
    def _outer(self) -> Sequence[float]:
        offsets: Sequence[float] = self.desc.input_pixel_offsets
        return offsets

    @property
    def _inner(self) -> Sequence[float]:
        offsets: Sequence[float] = self.desc.output_pixel_offsets
        return offsets

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 4, 6]),
            "output_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 3]),
            "interpolation_mode": InterpolationMode.LINEAR,
            "rounding_direction": AxisDirection.DECREASING,
            "scales": [1.0, 1.0, 2.0, 2.0],
            "input_pixel_offsets": [-0.5] * 4,
            "output_pixel_offsets": [0.5] * 4,
        }
