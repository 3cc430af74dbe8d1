"""Family: operators between numbers and small integers with a scale and a zero point.

The kernels are those of ``kernels_c/operators/quantization``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ...declared.definition import Definition
from ...declared.places import Attribute, Count, DataType, Rank, Size, field_of
from ...declared.rules import Demand, Rule, SameRank, SameSizes, Without
from ...declared.values import Divisor, Exactly, Except, Values
from ...enums import FeatureLevel, QuantizationType, TensorDataType
from ...rows import OP_OPTIONAL
from ...tensor_desc import element_bits
from .conversion import Array, dtype_of

if TYPE_CHECKING:
    from ...declared.schema import OperatorDesc
    from ...lowering.compile import Program


class Given(Rule):
    """An optional tensor is not absent."""

    def __init__(self, name: str, like: str) -> None:
        self.name = name
        self.like = like

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        place = _Presence(self.name, self.like)
        yield Demand(place, Except((None,)), clause="is missing", expected="a tensor desc")

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"`{field_of(cls, self.name).c_name}` is required."


class _Presence(Attribute):
    """Whether an optional tensor is given; a new one has the sizes and the type of the field ``like``."""

    check = OP_OPTIONAL

    def __init__(self, name: str, like: str) -> None:
        super().__init__(name)
        self.like = like

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        return super().put(desc, None if value is None else getattr(desc, self.like))

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        return Except(())


OPTIONAL_FROM = FeatureLevel.LEVEL_6_2
"""The level from which a zero point may be absent."""


class Linear(Definition):
    """An operator with InputTensor, ScaleTensor, ZeroPointTensor and OutputTensor of the same sizes."""

    KERNEL: ClassVar[str]

    def lower(self, program: Program) -> None:
        tensors = [program.read(name) for name in ("input_tensor", "scale_tensor", "zero_point_tensor")]
        program.call(
            self.KERNEL, *tensors, program.write("output_tensor"), constants=kernels.pack(self.KERNEL)
        )


class Blocks(Definition):
    """An operator on InputTensor and OutputTensor with a scale, and perhaps a zero point, for each block."""

    KERNEL: ClassVar[str]

    def lower(self, program: Program) -> None:
        program.call(
            self.KERNEL,
            program.read("input_tensor"),
            program.read("quantization_tensors", 0),
            program.read("quantization_tensors", 1),  # absent without SCALE_ZERO_POINT
            program.write("output_tensor"),
            constants=kernels.pack(self.KERNEL, centered=1),
        )

    def parameters(self, inputs: Mapping[str, Any], integers: TensorDataType) -> tuple[Array, Array]:
        """Scale and zero point of each element of the input."""
        given = [np.asarray(each) for each in inputs["quantization_tensors"]]
        if len(given) == 1:
            low, high = limits(integers)
            given.append(np.full(given[0].shape, (high + 1) // 2 if low == 0 else 0))
        for axis, size in enumerate(self.desc.input_tensor.sizes):
            given = [np.repeat(each, size // each.shape[axis], axis) for each in given]
        return given[0], given[1]


def block_rules(numbers: str, integers: str) -> Sequence[Rule]:
    """The rules of a :class:`Blocks`: the scale is typed as ``numbers``, the zero point as ``integers``."""
    return (
        Without("quantization_type", QuantizationType.NONE),
        _TensorsOfType(),
        SameSizes("input_tensor", "output_tensor"),
        SameRank("input_tensor", "quantization_tensors"),
        _WholeBlocks(),
        _EqualBlocks("quantization_tensors"),
        _ParameterType(0, numbers),
        _ParameterType(1, integers),
    )


class _TensorsOfType(Rule):
    """As many tensors as QuantizationType says."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        count = desc.quantization_type.value  # SCALE is 1, SCALE_ZERO_POINT 2
        clause = f"is not {count}, the number of tensors of {desc.quantization_type.name}"
        yield Demand(Count("quantization_tensors"), Exactly(count), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return (
            "`QuantizationTensorCount` is 1 for SCALE, and 2 for SCALE_ZERO_POINT: "
            "`QuantizationTensors[0]` is the scale, `QuantizationTensors[1]` the zero point."
        )


class _WholeBlocks(Rule):
    """Sizes of the scale divide those of the input."""

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        for d in range(Rank("input_tensor").value(desc)):
            size = Size("input_tensor", d)
            clause = f"does not divide {size.path(desc)} ({size.value(desc)})"
            yield Demand(Size("quantization_tensors[0]", d), Divisor(size.value(desc)), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "Each of `QuantizationTensors[0].Sizes` divides that of `InputTensor`."


class _EqualBlocks(SameSizes):
    """The zero point has the scale's sizes."""

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "`QuantizationTensors[1]`, if given, has the Sizes of `QuantizationTensors[0]`."


class _ParameterType(Rule):
    """A tensor of QuantizationTensors has the type of another field."""

    def __init__(self, index: int, like: str) -> None:
        self.index = index
        self.like = like

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        if self.index < len(desc.quantization_tensors):
            measure = DataType(self.like)
            wanted = measure.value(desc)
            clause = f"differs from {measure.path(desc)} ({wanted.name}), but both need one type"
            place = DataType(f"quantization_tensors[{self.index}]")
            yield Demand(place, Exactly(wanted), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        given = "" if self.index == 0 else ", if given,"
        return (
            f"`QuantizationTensors[{self.index}]`{given} has the data type of "
            f"`{field_of(cls, self.like).c_name}`."
        )


def limits(data_type: TensorDataType) -> tuple[int, int]:
    """The lowest and the highest number of an integer type."""
    bits = element_bits(data_type)
    if data_type.name.startswith("U"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def quantize(quotient: Array, zero_point: Array | int, data_type: TensorDataType) -> Array:
    """Rounds half to even, adds the zero point, then saturates; NaN is rounded to 0."""
    low, high = limits(data_type)
    with np.errstate(invalid="ignore"):
        rounded = np.rint(np.where(np.isnan(quotient), 0, quotient))
    near = np.clip(rounded, -(2**20), 2**20).astype(np.int64)  # past that it is saturated in any case
    total: Array = np.clip(near + np.asarray(zero_point).astype(np.int64), low, high)
    return total.astype(dtype_of(data_type))


def dequantize(x: Array, zero_point: Array | int, scale: Array) -> Array:
    """The exact difference as FLOAT32, times the scale in FLOAT32."""
    difference = x.astype(np.int64) - np.asarray(zero_point).astype(np.int64)
    with np.errstate(all="ignore"):
        product: Array = difference.astype(np.float32) * scale.astype(np.float32)
    return product
