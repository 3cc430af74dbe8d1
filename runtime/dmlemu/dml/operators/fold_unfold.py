"""FOLD and UNFOLD, between an image and columns of the elements under a window that moves over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.places import Element, Rank, Size, field_of
from ..declared.rules import AtLeast, Demand, Length, Ones, Rule, SameType
from ..declared.values import Between, Exactly
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, float64

if TYPE_CHECKING:
    from ..declared.descs import FoldOperatorDesc, UnfoldOperatorDesc
    from ..declared.schema import OperatorDesc
    from ..enums import FeatureLevel
    from ..lowering.compile import Program


def _blocks(desc: Any, image: BufferTensorDesc) -> list[int]:
    """The positions of the window along each spatial dimension."""
    return [
        (image.sizes[2 + i] + desc.start_padding[i] + desc.end_padding[i] - (size - 1) * dilation - 1)
        // stride
        + 1
        for i, (size, stride, dilation) in enumerate(
            zip(desc.window_sizes, desc.strides, desc.dilations, strict=True)
        )
    ]


class _Columns(Rule):
    """The last three sizes of the columns tensor follow from the image and the window."""

    def __init__(self, image: str, columns: str) -> None:
        self.image = image
        self.columns = columns

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        image, rank = getattr(desc, self.image), Rank(self.columns).value(desc)
        for i, dilation in enumerate(desc.dilations):
            padded = image.sizes[2 + i] + desc.start_padding[i] + desc.end_padding[i]
            span = (desc.window_sizes[i] - 1) * dilation + 1
            clause = (
                f"with Dilations[{i}] ({dilation}) spans {span} elements, but the padded image has {padded}"
            )
            yield Demand(
                Element("window_sizes", i),
                Between(None, (padded - 1) // dilation + 1),
                clause=clause,
                given=span,
                expected=f"at most {padded}",
            )
        name = field_of(type(desc), self.image).c_name
        n, c, *_ = image.sizes
        rows = c * prod(desc.window_sizes)
        for dimension, size, why in (
            (rank - 3, n, f"{name}.Sizes[0]"),
            (rank - 2, rows, f"{name}.Sizes[1] times the product of WindowSizes"),
            (
                rank - 1,
                prod(_blocks(desc, image)),
                "the number of positions of the window in the padded image",
            ),
        ):
            yield Demand(Size(self.columns, dimension), Exactly(size), why)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        image, columns = (field_of(cls, name).c_name for name in (self.image, self.columns))
        padded = f"{image}.Sizes[2 + i] + StartPadding[i] + EndPadding[i]"
        return (
            f"The last three sizes of `{columns}` are `{image}.Sizes[0]`, `{image}.Sizes[1]` times the "
            "product of `WindowSizes`, and the number of window positions, the product of "
            f"`({padded} - Dilations[i] * (WindowSizes[i] - 1) - 1) / Strides[i] + 1` rounded down, "
            "each of which is at least 1."
        )


def _rules(image: str, columns: str) -> Sequence[Rule]:
    return (
        SameType("input_tensor", "output_tensor"),
        Length("window_sizes", of=image, spatial=True),
        AtLeast("window_sizes", 1),
        AtLeast("strides", 1),
        AtLeast("dilations", 1),
        Ones(columns, "since only the last three dimensions are used", but_last=3),
        _Columns(image, columns),
    )


class FoldFamily(Definition):
    """A kernel named ``KERNEL`` between the tensors ``IMAGE`` and ``COLUMNS``."""

    desc: Any

    KERNEL: ClassVar[str]
    IMAGE: ClassVar[str]
    COLUMNS: ClassVar[str]

    @property
    def blocks(self) -> list[int]:
        return _blocks(self.desc, getattr(self.desc, self.IMAGE))

    def lower(self, program: Program) -> None:
        desc = self.desc
        constants = kernels.pack(
            self.KERNEL,
            spatial=len(desc.window_sizes),
            window=desc.window_sizes,
            strides=desc.strides,
            dilations=desc.dilations,
            start_padding=desc.start_padding,
            blocks=self.blocks,
        )
        program.call(
            self.KERNEL, program.read("input_tensor"), program.write("output_tensor"), constants=constants
        )

    def places(self) -> Iterator[tuple[Any, ...]]:
        """For each place of the window in row-major order: the index, into the image with its padding, of the
        elements under it, block by block."""
        desc = self.desc
        for place in np.ndindex(*desc.window_sizes):
            each = zip(self.blocks, desc.strides, desc.dilations, place, strict=True)
            at = [np.arange(count) * stride + w * dilation for count, stride, dilation, w in each]
            yield slice(None), slice(None), *np.ix_(*at)

    @property
    def padded(self) -> tuple[int, ...]:
        """The spatial sizes of the image with its padding."""
        desc, image = self.desc, getattr(self.desc, self.IMAGE)
        each = zip(desc.start_padding, image.sizes[2:], desc.end_padding, strict=True)
        return tuple(start + size + end for start, size, end in each)

    @property
    def inside(self) -> tuple[slice, ...]:
        """The image in the padded one."""
        image = getattr(self.desc, self.IMAGE)
        each = zip(self.desc.start_padding, image.sizes[2:], strict=True)
        return (slice(None), slice(None), *(slice(start, start + size) for start, size in each))

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            cls.IMAGE: BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 4]),
            cls.COLUMNS: BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 4, 8]),
            "window_sizes": [2, 2],
            "strides": [1, 1],
            "dilations": [2, 1],
            "start_padding": [0, 1],
            "end_padding": [1, 0],
        }


class Fold(FoldFamily, of="FOLD"):
    """Adds the columns of the positions of a window to the elements of an image under it: where windows
    overlap, their elements are summed.

    ``output[n, c, b * Strides - StartPadding + w * Dilations] += input[n, c * K + w, b]``: w counts the K
    places of the window and b its positions, both in row-major order.  What falls in the padding is dropped,
    and not read; elements under no window are 0.  Sums are computed in FLOAT64, in the order of w, and
    rounded once.

    The output has the dimensions N, C and the spatial ones; the input has three, or leading ones of
    size 1 before them: the page asks for one DimensionCount, its examples have different ones.  Its
    table names no data types; here they are FLOAT32 and FLOAT16.
    """

    desc: FoldOperatorDesc

    KERNEL = "fold"
    IMAGE = "output_tensor"
    COLUMNS = "input_tensor"

    RULES = _rules(IMAGE, COLUMNS)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        output = self.desc.output_tensor
        n, c = output.sizes[:2]
        columns = float64(inputs["input_tensor"]).reshape(n, c, -1, *self.blocks)
        padded = np.zeros((n, c, *self.padded))
        with np.errstate(all="ignore"):
            for w, place in enumerate(self.places()):
                padded[place] += columns[:, :, w]
        return {"output_tensor": convert(padded[self.inside], output.data_type)}


class Unfold(FoldFamily, of="UNFOLD"):
    """Copies the elements under a window that moves over an image to a column for each of its positions.

    ``output[n, c * K + w, b] = input[n, c, b * Strides - StartPadding + w * Dilations]``: w counts the K
    places of the window and b its positions, both in row-major order; 0 outside of the input.  Elements are
    copied bit by bit; those under no place of the window are not read.

    The input has the dimensions N, C and the spatial ones; the output has three, or leading ones of
    size 1 before them: the page asks for one DimensionCount, its examples have different ones.  Its
    table names no data types; here they are FLOAT32 and FLOAT16.
    """

    desc: UnfoldOperatorDesc

    KEEPS_NANS = True
    KERNEL = "unfold"
    IMAGE = "input_tensor"
    COLUMNS = "output_tensor"

    RULES = _rules(IMAGE, COLUMNS)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x = np.asarray(inputs["input_tensor"])
        padded = np.zeros((*x.shape[:2], *self.padded), x.dtype)
        padded[self.inside] = x
        rows = [padded[place].reshape(*x.shape[:2], -1) for place in self.places()]
        columns = np.stack(rows, axis=2)  # N, C, places, blocks
        return {"output_tensor": columns.reshape(self.desc.output_tensor.sizes)}
