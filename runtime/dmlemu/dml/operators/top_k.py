"""TOP_K and TOP_K1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.places import Attribute
from ..declared.rules import Axis, Demand, Rule, SameRank, SameSizes, SameType, Sizes
from ..declared.values import Between
from ..enums import AxisDirection, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, float64

if TYPE_CHECKING:
    from ..declared.schema import OperatorDesc
    from ..enums import FeatureLevel
    from ..lowering.compile import Program


class _Fits(Rule):
    """K elements exist along Axis."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        size = desc.input_tensor.sizes[desc.axis]
        clause = f"is not in the range 1 to InputTensor.Sizes[{desc.axis}] ({size})"
        yield Demand(Attribute("k"), Between(1, size), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "`K` is at least 1 and at most `InputTensor.Sizes[Axis]`."


def _output_sizes(desc: Any) -> Iterator[tuple[int, int, str]]:
    yield desc.axis, desc.k, "which is K"


class TopK(Definition, of="TOP_K"):
    """The K largest elements of each line along Axis, largest first, and their indices on the line.

    Equal elements are in ascending order of index; +0.0 equals -0.0, and NaNs come last.  Values are
    copied bit by bit.  The page has K less than the size along Axis; here it may be equal, as callers use
    it.
    """

    desc: Any

    KEEPS_NANS = True

    RULES = (
        SameType("input_tensor", "output_value_tensor"),
        SameRank("input_tensor", "output_value_tensor", "output_index_tensor"),
        Axis("axis", of="input_tensor"),
        _Fits(),
        SameSizes("input_tensor", "output_value_tensor", but="axis"),
        Sizes("output_value_tensor", _output_sizes, "`OutputValueTensor.Sizes[Axis]` is `K`."),
        SameSizes("output_value_tensor", "output_index_tensor"),
    )

    @property
    def largest(self) -> bool:
        return True

    def lower(self, program: Program) -> None:
        program.call(
            "top_k",
            program.read("input_tensor"),
            program.write("output_value_tensor"),
            program.write("output_index_tensor"),
            constants=kernels.pack("top_k", axis=self.desc.axis, largest=int(self.largest)),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, axis = np.asarray(inputs["input_tensor"]), self.desc.axis
        keys = float64(x) if x.dtype.kind == "f" else x
        if self.largest:
            keys = -keys if x.dtype.kind == "f" else ~keys  # the opposite order, without overflow
        order = np.argsort(keys, axis, kind="stable")  # NaNs last
        index = np.take(order, range(self.desc.k), axis)
        return {
            "output_value_tensor": np.take_along_axis(x, index, axis),
            "output_index_tensor": index.astype(self.desc.output_index_tensor.dtype),
        }

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 5]),
            "output_value_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 2]),
            "output_index_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 2, 3, 2]),
            "axis": 3,
            "k": 2,
        }


class TopK1(TopK, of="TOP_K1"):
    """The first K elements of each line along Axis in the order of AxisDirection, and their indices on the
    line.

    DECREASING: the largest, largest first.  INCREASING: the smallest, smallest first.  In both, equal
    elements are in ascending order of index, +0.0 equals -0.0, and NaNs come last.  Values are copied bit
    by bit.  The page has K less than the size along Axis; here it may be equal, as callers use it.
    """

    @property
    def largest(self) -> bool:
        return bool(self.desc.axis_direction == AxisDirection.DECREASING)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {**super().example(), "axis_direction": AxisDirection.INCREASING}
