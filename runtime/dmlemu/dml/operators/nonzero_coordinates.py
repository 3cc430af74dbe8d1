"""NONZERO_COORDINATES."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import Below, Ones, SameRank, Sizes
from ..declared.values import Between
from ..enums import FeatureLevel, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array

if TYPE_CHECKING:
    from ..declared.descs import NonzeroCoordinatesOperatorDesc
    from ..lowering.compile import Program


def effective_rank(tensor: BufferTensorDesc) -> int:
    """DimensionCount less the leading dimensions of size 1."""
    larger = [i for i, size in enumerate(tensor.sizes) if size > 1]
    return tensor.rank - larger[0] if larger else 0


def _rows_and_columns(desc: NonzeroCoordinatesOperatorDesc) -> Iterator[tuple[int, int | Between, str]]:
    yield -2, desc.input_tensor.element_count, "the element count of InputTensor: all may be nonzero"
    least, most = effective_rank(desc.input_tensor), desc.input_tensor.rank
    columns = Between(max(least, 1), most)
    yield -1, columns, f"InputTensor's effective rank ({least}) and its DimensionCount ({most})"


class NonzeroCoordinates(Definition, of="NONZERO_COORDINATES"):
    """Lists the coordinates of all elements that are not zero, in ascending logical order.

    OutputCountTensor gets their number; row r of OutputCoordinatesTensor, sizes ``{1.., M, N}``, gets
    the coordinates of the r-th one.  M is the element count of the input: the worst case.  N lies between
    the input's effective rank (its DimensionCount less the leading dimensions of size 1) and its
    DimensionCount; a row holds the coordinates along the last N dimensions, columns beyond the
    effective rank are leading columns of 0.  An input without any dimension above 1 has effective rank
    0 and one column of 0.

    -0.0 is zero, NaN is not.  The order is that of the logical index, whatever the strides.  Rows at and
    past the count are undefined.  Below feature level 4_0 the three tensors share one DimensionCount.
    """

    desc: NonzeroCoordinatesOperatorDesc

    RULES = (
        Below(
            FeatureLevel.LEVEL_4_0,
            SameRank("input_tensor", "output_count_tensor", "output_coordinates_tensor"),
        ),
        Ones("output_count_tensor", "since it holds one count"),
        Ones("output_coordinates_tensor", "since only the last two dimensions are used", but_last=2),
        Sizes(
            "output_coordinates_tensor",
            _rows_and_columns,
            "The last two sizes of `OutputCoordinatesTensor` are the element count of `InputTensor`, and "
            "from its effective rank to its DimensionCount.",
        ),
    )

    def lower(self, program: Program) -> None:
        program.call(
            "nonzero_coordinates",
            program.read("input_tensor"),
            program.write("output_count_tensor"),
            program.write("output_coordinates_tensor"),
            constants=kernels.pack(
                "nonzero_coordinates", columns=self.desc.output_coordinates_tensor.sizes[-1]
            ),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Rows past the count, undefined on the device, are 0 here."""
        desc = self.desc
        columns = desc.output_coordinates_tensor.sizes[-1]
        found = np.argwhere(np.asarray(inputs["input_tensor"]) != 0)[:, -columns:]
        count = np.full(desc.output_count_tensor.sizes, len(found), np.uint32)
        coordinates = np.zeros(desc.output_coordinates_tensor.sizes, np.uint32)
        coordinates.reshape(-1, columns)[: len(found)] = found
        return {"output_count_tensor": count, "output_coordinates_tensor": coordinates}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 2, 4]),
            "output_count_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 1, 1, 1]),
            "output_coordinates_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 1, 24, 4]),
        }
