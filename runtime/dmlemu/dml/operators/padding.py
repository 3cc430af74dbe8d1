"""PADDING and PADDING1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import Below, Length, Rule, SameRank, SameType, Sizes, Without
from ..enums import FeatureLevel, PaddingMode, TensorDataType
from ..structs import ScalarUnion
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, raw_bits

if TYPE_CHECKING:
    from ..declared.descs import Padding1OperatorDesc, PaddingOperatorDesc
    from ..lowering.compile import Program


def _padded(desc: PaddingOperatorDesc) -> Iterator[tuple[int, int, str]]:
    padding = zip(desc.start_padding, desc.end_padding, strict=True)
    for i, (start, end) in enumerate(padding):
        size = desc.input_tensor.sizes[i]
        yield i, start + size + end, f"StartPadding[{i}] + InputTensor.Sizes[{i}] + EndPadding[{i}]"


_RULES = (
    Below(FeatureLevel.LEVEL_6_4, Without("padding_mode", PaddingMode.WRAP)),
    SameType("input_tensor", "output_tensor"),
    SameRank("input_tensor", "output_tensor"),
    Length("start_padding", of="input_tensor"),
    Sizes(
        "output_tensor",
        _padded,
        "`OutputTensor.Sizes[i]` is `StartPadding[i] + InputTensor.Sizes[i] + EndPadding[i]`.",
    ),
)


class Padding(Definition, of="PADDING"):
    """Continues the input beyond its ends: by StartPadding[i] elements before it and EndPadding[i] behind it
    along each dimension i.

    Element o of the output is element ``p = o - StartPadding`` of the input.  Where p is outside of its n
    elements, along each dimension by itself:

    * CONSTANT: PaddingValue (if p is outside along any dimension);
    * EDGE: the nearest element, ``clamp(p, 0, n - 1)``;
    * REFLECTION: mirrored at the first and the last element, which are not repeated: 3 2 **1 2 3** 2 1;
    * SYMMETRIC: mirrored beyond them, so that they are repeated: 2 1 **1 2 3** 3 2;
    * WRAP: from the start again: 2 3 **1 2 3** 1 2; ``p mod n``.

    Padding may be longer than the input: mirroring and wrapping are repeated.  REFLECTION of one element
    repeats it.  Elements are copied bit by bit.

    PaddingValue is a FLOAT, which is converted to the tensor's type as CAST does: 10.6 becomes 10.
    """

    desc: PaddingOperatorDesc | Padding1OperatorDesc

    KEEPS_NANS = True

    RULES: ClassVar[Sequence[Rule]] = (
        Below(FeatureLevel.LEVEL_3_0, Without("padding_mode", PaddingMode.SYMMETRIC)),
        *_RULES,
    )

    def value(self) -> bytes:
        """PaddingValue as an element."""
        desc: Any = self.desc
        output = desc.output_tensor
        bits = raw_bits(desc.padding_value, output.data_type)
        return bits.to_bytes(output.dtype.itemsize, "little")

    def lower(self, program: Program) -> None:
        constants = kernels.pack(
            "padding",
            mode=int(self.desc.padding_mode),
            start=self.desc.start_padding,
            value=int.from_bytes(self.value(), "little"),
        )
        program.call(
            "padding", program.read("input_tensor"), program.write("output_tensor"), constants=constants
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc, x = self.desc, np.asarray(inputs["input_tensor"])
        inside, sources = np.array(True), []
        for start, n, size in zip(desc.start_padding, x.shape, desc.output_tensor.sizes, strict=True):
            p = np.arange(size) - start
            inside = np.logical_and.outer(inside, (p >= 0) & (p < n))
            sources.append(_source(desc.padding_mode, p, n))
        padded = x[np.ix_(*sources)]
        if desc.padding_mode is PaddingMode.CONSTANT:
            padded[~inside] = np.frombuffer(self.value(), x.dtype)
        return {"output_tensor": padded}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 3]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 4, 6]),
            "padding_mode": PaddingMode.REFLECTION,
            "padding_value": 0.5,
            "start_padding": [0, 0, 1, 2],
            "end_padding": [0, 0, 1, 1],
        }


class Padding1(Padding, of="PADDING1"):
    """As PADDING, with a PaddingValue of the tensor's type, whose bits are copied.

    PaddingValueDataType is the tensor's type in every mode, also where PaddingValue is not used.
    """

    RULES = (*_RULES, SameType("output_tensor", "padding_value_data_type"))

    def value(self) -> bytes:
        desc: Any = self.desc
        element: bytes = desc.padding_value.bytes[: desc.output_tensor.dtype.itemsize]
        return element

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            **super().example(),
            "padding_mode": PaddingMode.CONSTANT,
            "padding_value_data_type": TensorDataType.FLOAT32,
            "padding_value": ScalarUnion.of(TensorDataType.FLOAT32, 0.5),
        }


def _source(mode: PaddingMode, p: Array, n: int) -> Array:
    """The input element at each position, in [0, n)."""
    if mode is PaddingMode.WRAP:
        return p % n
    if mode is PaddingMode.SYMMETRIC:
        q = p % (2 * n)
        return np.where(q < n, q, 2 * n - 1 - q)
    if mode is PaddingMode.REFLECTION and n > 1:
        q = p % (2 * (n - 1))
        return np.where(q < n, q, 2 * (n - 1) - q)
    return np.clip(p, 0, n - 1)
