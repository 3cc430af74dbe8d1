"""Messages on tensor descs."""

from __future__ import annotations

from typing import NamedTuple

from ...dml.tensor_desc import BufferTensorDesc, element_bits
from ...errors import Severity

__all__ = ["Mixture", "Words", "in_overlap", "layout_guess", "padded_out", "stride_bytes", "total_large"]

Index = tuple[int, ...]


class Words(NamedTuple):
    """The parts of a report that depend on the finding."""

    message: str
    field: str
    given: str
    expected: str
    hint: str = ""
    severity: Severity | None = None  # if other than the declared severity
    byte: int | None = None  # to be seen in the picture


class Mixture(NamedTuple):
    """NCHW or NHWC for the sizes, the strides and the memory; and the strides that fit the sizes."""

    sizes: str
    strides: str
    memory: str
    fitting: Index


def _list(numbers: object) -> str:
    return str(list(numbers))  # type: ignore[call-overload]


def total_large(path: str, desc: BufferTensorDesc, least: int) -> Words:
    total = desc.size_in_bytes
    width = element_bits(desc.data_type) // 8
    hint = ""
    if width > 1 and total == width * (least + 3 & ~3):
        hint = (
            f"It is {width} times as much, as if a number of bytes had been multiplied by the element size."
        )
    return Words(
        f"{path}.TotalTensorSizeInBytes ({total}) is far more than the {least} bytes that "
        f"{'Strides' if desc.strides else 'Sizes'} reach.",
        f"{path}.TotalTensorSizeInBytes",
        str(total),
        str(least + 3 & ~3),
        hint,
    )


def stride_bytes(path: str, desc: BufferTensorDesc, elements: Index) -> Words:
    given = desc.strides
    return Words(
        f"{path}.Strides ({_list(given or ())}) are exactly the bytes between the elements of a packed tensor; "
        "Strides count elements.",
        f"{path}.Strides",
        _list(given or ()),
        f"{_list(elements)}, if the tensor is packed",
    )


def layout_guess(
    path: str, desc: BufferTensorDesc, mixture: Mixture, shared: tuple[Index, Index] | None
) -> Words:
    sizes, strides, memory, fitting = mixture
    message = (
        f"{path} has Sizes ({_list(desc.sizes)}) of {sizes} with Strides ({_list(desc.strides or ())}) listed in "
        f"the order of {strides}"
    )
    if shared is not None:
        message += f", so that elements {shared[0]} and {shared[1]} are the same bytes"
    return Words(
        f"{message}.",
        f"{path}.Strides",
        _list(desc.strides or ()),
        f"{_list(fitting)}, in the order of Sizes",
        f"Strides[i] belongs to Sizes[i]; a tensor of these Sizes that lies as {memory} in memory has Strides "
        f"{_list(fitting)}.",
        None if shared is not None else Severity.INFO,  # without overlapping elements it might be intended
    )


def in_overlap(path: str, desc: BufferTensorDesc, shared: tuple[Index, Index]) -> Words:
    first, second = shared
    place = sum(i * stride for i, stride in zip(first, desc.effective_strides, strict=True))
    return Words(
        f"Elements {first} and {second} of {path} are the same bytes, {place} elements from the start.",
        f"{path}.Strides",
        _list(desc.strides or ()),
        "a place of its own for each element, unless windows over one buffer are meant",
        byte=place * element_bits(desc.data_type) // 8,
    )


def padded_out(path: str, desc: BufferTensorDesc) -> Words:
    used = desc.element_count * element_bits(desc.data_type) // 8
    return Words(
        f"{path} has gaps: {desc.extent_in_bytes - used} of the {desc.extent_in_bytes} bytes that it spans keep "
        "their old contents.",
        f"{path}.Strides",
        _list(desc.strides or ()),
        "strides without gaps, unless something else lies there",
    )
