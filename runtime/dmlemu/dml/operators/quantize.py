"""Operators between numbers and small integers, with a scale and a zero point for blocks or elements."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.places import Count, DataType, Rank, Size, field_of
from ..declared.rules import Below, Demand, Rule, SameRank, SameSizes, SameType, Without
from ..declared.values import Divisor, Exactly
from ..enums import QuantizationType, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert
from .families.quantization import OPTIONAL_FROM, Given, dequantize, limits, quantize

if TYPE_CHECKING:
    from ..declared.descs import (
        DequantizeOperatorDesc,
        ElementWiseDequantizeLinearOperatorDesc,
        ElementWiseQuantizeLinearOperatorDesc,
        QuantizeOperatorDesc,
    )
    from ..declared.schema import OperatorDesc
    from ..enums import FeatureLevel
    from ..lowering.compile import Program


class _Linear(Definition):
    """An operator with InputTensor, ScaleTensor, ZeroPointTensor and OutputTensor of the same sizes."""

    KERNEL: ClassVar[str]
    NUMBERS: ClassVar[str]
    INTEGERS: ClassVar[str]

    def lower(self, program: Program) -> None:
        tensors = [program.read(name) for name in ("input_tensor", "scale_tensor", "zero_point_tensor")]
        program.call(
            self.KERNEL, *tensors, program.write("output_tensor"), constants=kernels.pack(self.KERNEL)
        )

    @classmethod
    def example(cls) -> dict[str, Any]:
        numbers = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4])
        integers = BufferTensorDesc(TensorDataType.UINT8, [1, 2, 3, 4])
        return {
            cls.NUMBERS: numbers,
            cls.INTEGERS: integers,
            "scale_tensor": numbers,
            "zero_point_tensor": integers,
        }


def _linear_rules(integers: str, scale_type: Rule) -> Sequence[Rule]:
    """The rules of a :class:`_Linear`: the zero point has the data type of ``integers``."""
    return (
        Below(OPTIONAL_FROM, Given("zero_point_tensor", like=integers)),
        SameSizes("input_tensor", "scale_tensor", "zero_point_tensor", "output_tensor"),
        SameType(integers, "zero_point_tensor"),
        scale_type,
    )


class _Blocks(Definition):
    """An operator on InputTensor and OutputTensor with a scale, and perhaps a zero point, for each block.

    The scale has the data type of the tensor ``NUMBERS``, the zero point that of ``INTEGERS``, in the example
    ``TYPE``.
    """

    KERNEL: ClassVar[str]
    NUMBERS: ClassVar[str]
    INTEGERS: ClassVar[str]
    TYPE: ClassVar[TensorDataType]

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

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            cls.NUMBERS: BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
            cls.INTEGERS: BufferTensorDesc(cls.TYPE, [1, 2, 3, 4]),
            "quantization_type": QuantizationType.SCALE_ZERO_POINT,
            "quantization_tensors": [
                BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 1, 2]),
                BufferTensorDesc(cls.TYPE, [1, 2, 1, 2]),
            ],
        }


def _block_rules(numbers: str, integers: str) -> Sequence[Rule]:
    """The rules of a :class:`_Blocks`: the scale is typed as ``numbers``, the zero point as ``integers``."""
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

    def __init__(self, index: int, like: str, *, turned: bool = False) -> None:
        self.index = index
        self.like = like
        self.turned = turned

    def toward(self, results: Collection[str]) -> Rule:
        return _ParameterType(self.index, self.like, turned=self.like in results)

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        if self.index < len(desc.quantization_tensors):
            measure, place = DataType(self.like), DataType(f"quantization_tensors[{self.index}]")
            if self.turned:
                measure, place = place, measure
            wanted = measure.value(desc)
            clause = f"differs from {measure.path(desc)} ({wanted.name}), but both need one type"
            yield Demand(place, Exactly(wanted), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        given = "" if self.index == 0 else ", if given,"
        return (
            f"`QuantizationTensors[{self.index}]`{given} has the data type of "
            f"`{field_of(cls, self.like).c_name}`."
        )


class _ScaleType(Rule):
    """The scale has the input's type; for INT32, FLOAT32."""

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        given = DataType("input_tensor").value(desc)
        wanted = TensorDataType.FLOAT32 if given is TensorDataType.INT32 else given
        clause = f"is not {wanted.name}, the type of the scale of an InputTensor of {given.name}"
        yield Demand(DataType("scale_tensor"), Exactly(wanted), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "`ScaleTensor` has the data type of `InputTensor`, or FLOAT32 if that is INT32."


class Quantize(_Blocks, of="QUANTIZE"):
    """``output = saturate(round(input / scale) + zero_point)``, with a scale and a zero point for each block.

    A block is ``InputTensor.Sizes[d] / QuantizationTensors[0].Sizes[d]`` elements long in each dimension:
    sizes of 1 are one scale for all, the sizes of the input a scale for each element.  Two elements of INT4
    and UINT4 share a byte, the first one in the low half; rows may begin in the middle of a byte.  Of a
    byte that is only half an output, the other half keeps its contents.

    Microsoft's page is unfinished; this is what its clients rely on.  Without a zero point (SCALE) it is 0
    for signed types, and the middle of the range for unsigned ones: 8 for UINT4, 128 for UINT8.  As with
    ELEMENT_WISE_QUANTIZE_LINEAR, halves are rounded to even, the quotient is divided in FLOAT32, and a NaN is
    rounded to 0.
    """

    desc: QuantizeOperatorDesc

    KERNEL = "quantize"

    NUMBERS, INTEGERS, TYPE = "input_tensor", "output_tensor", TensorDataType.UINT4

    RULES = _block_rules(NUMBERS, INTEGERS)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        data_type = self.desc.output_tensor.data_type
        scale, zero_point = self.parameters(inputs, data_type)
        with np.errstate(all="ignore"):
            quotient = np.asarray(inputs["input_tensor"]).astype(np.float32) / scale.astype(np.float32)
        return {"output_tensor": quantize(quotient, zero_point, data_type)}


class Dequantize(_Blocks, of="DEQUANTIZE"):
    """``output = (input - zero_point) * scale``, with a scale and a zero point for each block.

    A block is ``InputTensor.Sizes[d] / QuantizationTensors[0].Sizes[d]`` elements long in each dimension:
    sizes of 1 are one scale for all, the sizes of the input a scale for each element.  Two elements of INT4
    and UINT4 share a byte, the first one in the low half; rows may begin in the middle of a byte.

    Microsoft's page is unfinished; this is what its clients rely on.  Without a zero point (SCALE) it is 0
    for signed types, and the middle of the range for unsigned ones: 8 for UINT4, 128 for UINT8.  The
    difference is exact, the product is FLOAT32, also for FLOAT16, and is rounded to that at the end.
    """

    desc: DequantizeOperatorDesc

    KERNEL = "dequantize"

    NUMBERS, INTEGERS, TYPE = "output_tensor", "input_tensor", TensorDataType.INT4

    RULES = _block_rules(NUMBERS, INTEGERS)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        scale, zero_point = self.parameters(inputs, self.desc.input_tensor.data_type)
        product = dequantize(np.asarray(inputs["input_tensor"]), zero_point, scale)
        return {"output_tensor": convert(product, self.desc.output_tensor.data_type)}


class ElementWiseQuantizeLinear(_Linear, of="ELEMENT_WISE_QUANTIZE_LINEAR"):
    """``output = saturate(round(input / scale) + zero_point)``, element by element.

    All tensors have the same sizes: one scale for the whole tensor or for each index of an axis is a
    tensor with strides of 0.  From feature level 6_2 on ZeroPointTensor may be absent, which acts as 0.

    The documentation does not say how halves are rounded: here to even, as devices were seen to do.  Nor
    does it name the precision: here the quotient is divided, not multiplied by a reciprocal, in FLOAT32
    (FLOAT16 too; INT32 in FLOAT64).  A NaN is rounded to 0; what is divided by a scale of 0 is infinite or
    NaN.
    """

    desc: ElementWiseQuantizeLinearOperatorDesc

    KERNEL = "quantize"

    NUMBERS, INTEGERS = "input_tensor", "output_tensor"

    RULES = _linear_rules(INTEGERS, _ScaleType())

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, scale = np.asarray(inputs["input_tensor"]), np.asarray(inputs["scale_tensor"])
        working = np.float32 if x.dtype.kind == "f" else np.float64
        with np.errstate(all="ignore"):
            quotient = x.astype(working) / scale.astype(working)
        zero_point = 0 if self.desc.zero_point_tensor is None else inputs["zero_point_tensor"]
        return {"output_tensor": quantize(quotient, zero_point, self.desc.output_tensor.data_type)}


class ElementWiseDequantizeLinear(_Linear, of="ELEMENT_WISE_DEQUANTIZE_LINEAR"):
    """``output = (input - zero_point) * scale``, element by element.

    All tensors have the same sizes: one scale for the whole tensor or for each index of an axis is a
    tensor with strides of 0.  From feature level 6_2 on ZeroPointTensor may be absent, which acts as 0.

    The documentation does not name the precision: here the difference is exact, whatever the type, then
    converted to FLOAT32 and multiplied in FLOAT32 (for FLOAT16 too, and rounded at the end).
    """

    desc: ElementWiseDequantizeLinearOperatorDesc

    KERNEL = "dequantize"

    NUMBERS, INTEGERS = "output_tensor", "input_tensor"

    RULES = _linear_rules(INTEGERS, SameType("scale_tensor", "output_tensor"))

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        zero_point = 0 if self.desc.zero_point_tensor is None else inputs["zero_point_tensor"]
        x, scale = np.asarray(inputs["input_tensor"]), np.asarray(inputs["scale_tensor"])
        return {"output_tensor": convert(dequantize(x, zero_point, scale), self.desc.output_tensor.data_type)}
