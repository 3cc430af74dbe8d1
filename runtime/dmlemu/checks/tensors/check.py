"""Group a: advice on tensor descs that DirectML accepts and that are probably mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ...dml.events import OperatorCreated
from ...dml.lowering.compile import TensorField
from ...dml.lowering.dispatchable import Operator
from ...dml.overlap import shared_element
from ...dml.tensor_desc import BufferTensorDesc, element_bits
from ..framework.check import Check, on
from . import messages
from .rows import (
    TENSOR_IN_OVERLAP,
    TENSOR_LAYOUT_GUESS,
    TENSOR_PADDED_OUT,
    TENSOR_STRIDE_BYTES,
    TENSOR_TOTAL_LARGE,
)

CHECKS: tuple[type[Check], ...]

NCHW_TO_NHWC = (0, 2, 3, 1)
NHWC_TO_NCHW = (0, 3, 1, 2)


def packed(sizes: Sequence[int]) -> tuple[int, ...]:
    """Strides without gaps, the last dimension fastest."""
    return tuple(prod(sizes[i + 1 :]) for i in range(len(sizes)))


def has_gaps(desc: BufferTensorDesc) -> bool:
    """Are there gaps between the elements?  (Padding after the last one does not count.)"""
    return desc.extent_in_bytes * 8 - desc.element_count * element_bits(desc.data_type) >= 8


def overlap(desc: BufferTensorDesc) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Two elements at one place, apart from those that stride 0 repeats on purpose."""
    strides = desc.effective_strides
    sizes = [1 if stride == 0 else size for size, stride in zip(desc.sizes, strides, strict=True)]
    return shared_element(sizes, strides)


def in_bytes(desc: BufferTensorDesc) -> tuple[int, ...] | None:
    """The packed strides, if the given ones are these in bytes."""
    width = element_bits(desc.data_type) // 8
    right = packed(desc.sizes)
    if desc.strides is None or width < 2 or max(desc.sizes) == 1:
        return None
    return right if tuple(desc.strides) == tuple(width * stride for stride in right) else None


def other_layout(desc: BufferTensorDesc) -> messages.Mixture | None:
    """Mixed NCHW and NHWC: the strides are listed in the order of the layout in memory.

    Strides must be listed per dimension of Sizes, in the order of Sizes.
    """
    if desc.strides is None or desc.rank != 4 or tuple(desc.strides) == packed(desc.sizes):
        return None
    for sizes, strides, order in (("NCHW", "NHWC", NCHW_TO_NHWC), ("NHWC", "NCHW", NHWC_TO_NCHW)):
        listed = packed([desc.sizes[i] for i in order])
        fitting = tuple(listed[order.index(i)] for i in range(4))
        if tuple(desc.strides) == listed != fitting:
            return messages.Mixture(sizes, strides, strides, fitting)
    return None


def other_sizes(desc: BufferTensorDesc) -> messages.Mixture | None:
    """The same for sizes: Sizes are listed in memory order, and Strides in the other order.

    Many intended tensors look like this: only overlapping elements prove the mistake, and only where
    channels, height and width are more than one, so that no other order has the same strides.
    """
    if desc.strides is None or desc.rank != 4 or min(desc.sizes[1:]) == 1:
        return None
    fitting = packed(desc.sizes)
    for sizes, strides, order in (("NHWC", "NCHW", NHWC_TO_NCHW), ("NCHW", "NHWC", NCHW_TO_NHWC)):
        if tuple(desc.strides) == tuple(fitting[i] for i in order) != fitting:
            return messages.Mixture(sizes, strides, sizes, fitting)
    return None


class TensorAdvice(Check):
    """Checks the tensors of every operator that is created."""

    declarations = (
        TENSOR_TOTAL_LARGE,
        TENSOR_STRIDE_BYTES,
        TENSOR_LAYOUT_GUESS,
        TENSOR_IN_OVERLAP,
        TENSOR_PADDED_OUT,
    )

    @on(OperatorCreated)
    def look(self, event: OperatorCreated) -> None:
        """Reports everything unusual about the tensors."""
        for field in event.operator.program.fields:
            if field.desc is not None:
                for id, words in self._advice(field, field.desc):
                    self._say(event.operator, field, id, words)

    def _advice(self, field: TensorField, desc: BufferTensorDesc) -> Iterator[tuple[str, messages.Words]]:
        least = desc.extent_in_bytes
        if desc.size_in_bytes >= 2 * (least + 3 & ~3):
            yield TENSOR_TOTAL_LARGE.id, messages.total_large(field.path, desc, least)
        if desc.strides is None:
            return
        elements = in_bytes(desc)
        shared = None if field.output else overlap(desc)
        mixture = other_layout(desc) or (other_sizes(desc) if shared is not None else None)
        if mixture is not None:
            yield TENSOR_LAYOUT_GUESS.id, messages.layout_guess(field.path, desc, mixture, shared)
            return  # other oddities of the strides follow from that
        if elements is not None:
            yield TENSOR_STRIDE_BYTES.id, messages.stride_bytes(field.path, desc, elements)
        if shared is not None:
            yield TENSOR_IN_OVERLAP.id, messages.in_overlap(field.path, desc, shared)
        if field.output and has_gaps(desc):
            yield TENSOR_PADDED_OUT.id, messages.padded_out(field.path, desc)

    def _say(self, operator: Operator, field: TensorField, id: str, words: messages.Words) -> None:
        desc = field.desc
        assert desc is not None
        self.report(
            id,
            words.message,
            api="DML",
            operation=f"CreateOperator({operator.type_name})",
            field=words.field,
            given=words.given,
            expected=words.expected,
            hint=words.hint,
            object=str(operator),
            layouts=desc.layout(field.path).tensors,
            faulty_byte=words.byte,
            severity=words.severity or self._declared[id].severity,
            cause=(operator.type_name, field.path, desc, operator.created_at),
        )


CHECKS = (TensorAdvice,)
