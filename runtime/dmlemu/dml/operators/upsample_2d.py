"""UPSAMPLE_2D."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import AtLeast, SameSizes, SameType, Sizes
from ..enums import InterpolationMode, TensorDataType
from ..structs import Size2D
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, float64
from .resample import CENTRES, pack_linear, positions

if TYPE_CHECKING:
    from ..declared.descs import Upsample2dOperatorDesc
    from ..lowering.compile import Program


def _enlarged(desc: Upsample2dOperatorDesc) -> Iterator[tuple[int, int, str]]:
    rank, (height, width) = desc.input_tensor.rank, desc.input_tensor.sizes[-2:]
    yield rank - 2, height * desc.scale_size.height, f"InputTensor.Sizes[{rank - 2}] * ScaleSize.Height"
    yield rank - 1, width * desc.scale_size.width, f"InputTensor.Sizes[{rank - 1}] * ScaleSize.Width"


class Upsample2d(Definition, of="UPSAMPLE_2D"):
    """Enlarges the last two dimensions by whole factors.

    NEAREST_NEIGHBOR repeats each element: ``output[.., y, x] = input[.., y / Height, x / Width]``, rounded
    down; bits are copied.

    LINEAR interpolates between the centres of elements: output i of a dimension enlarged by f lies at ``p =
    (i + 0.5) / f - 0.5`` of the input, between elements floor(p) and floor(p) + 1 with the weights ``1 - w``
    and ``w = p - floor(p)``; beyond the ends the last element is used.  This is RESAMPLE with these scales,
    positions in FLOAT32 included.  DirectML does not print the rule; it speaks of centres.  Sums are
    computed in FLOAT64, the last dimension first, and rounded once.  An element of weight 0 has no
    influence, even if it is infinite or NaN.
    """

    desc: Upsample2dOperatorDesc

    RULES = (
        SameType("input_tensor", "output_tensor"),
        SameSizes("input_tensor", "output_tensor", only=slice(0, -2)),
        AtLeast("scale_size", 1),
        Sizes(
            "output_tensor",
            _enlarged,
            "The last two sizes of `OutputTensor` are those of `InputTensor` times `ScaleSize.Height` and "
            "`ScaleSize.Width`.",
        ),
    )

    def __init__(self, desc: Upsample2dOperatorDesc) -> None:
        super().__init__(desc)
        self.KEEPS_NANS = desc.interpolation_mode is InterpolationMode.NEAREST_NEIGHBOR

    def lower(self, program: Program) -> None:
        scale, rank = self.desc.scale_size, self.desc.input_tensor.rank
        if self.desc.interpolation_mode is InterpolationMode.NEAREST_NEIGHBOR:
            name, constants = (
                "upsample_2d",
                kernels.pack("upsample_2d", height=scale.height, width=scale.width),
            )
        else:
            name, constants = "resample", pack_linear([*[1] * (rank - 2), scale.height, scale.width])
        program.call(name, program.read("input_tensor"), program.write("output_tensor"), constants=constants)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc, x = self.desc, np.asarray(inputs["input_tensor"])
        scale = desc.scale_size
        if desc.interpolation_mode is InterpolationMode.NEAREST_NEIGHBOR:
            return {"output_tensor": x.repeat(scale.height, axis=-2).repeat(scale.width, axis=-1)}
        with np.errstate(all="ignore"):
            wide = _interpolated(float64(x), scale.width)
            both = _interpolated(wide.swapaxes(-1, -2), scale.height).swapaxes(-1, -2)
        return {"output_tensor": convert(both, desc.output_tensor.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 3]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 4, 9]),
            "scale_size": Size2D(width=3, height=2),
            "interpolation_mode": InterpolationMode.LINEAR,
        }


def _interpolated(x: Array, factor: int) -> Array:
    """The last dimension enlarged."""
    size = x.shape[-1]
    p = float64(positions(size * factor, factor, *reversed(CENTRES)))
    low = np.floor(p)
    before, behind = (np.clip(each, 0, size - 1).astype(np.int64) for each in (low, low + 1))
    weight = np.where(before == behind, 0, p - low)
    between: Array = (1 - weight) * x[..., before] + weight * x[..., behind]
    return np.where(weight == 0, x[..., before], between)
