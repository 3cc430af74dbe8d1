"""``dmlemu layout``: a picture of where the elements of a tensor lie."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentTypeError, Namespace
from functools import reduce
from pathlib import Path
from typing import Any

from ..dml import TENSOR_DIMENSION_COUNT_MAX1, BufferTensorDesc, TensorDataType
from ..files import write_file
from ..pictures import Layout
from .usage import HELP

__all__ = ["add_command"]

_FORM = re.compile(
    r"(?:(?P<name>[\w-]+)=)?(?P<type>\w+):(?P<sizes>[\d,]+)(?::(?P<strides>[\d,]+))?(?:@(?P<offset>\d+))?"
)


def add_command(commands: Any) -> None:
    """Adds the command to the command line."""
    layout = commands.add_parser(
        "layout",
        allow_abbrev=False,
        help=HELP["layout"],
        description="Draws the byte of each element of a tensor, and the element in each byte. Large tensors "
        "are drawn in part: the first and last elements, and those around --around.",
        epilog="for instance: dmlemu layout --type FLOAT32 --sizes 1,3,4,4 --strides 48,1,12,3 "
        "--beside bias=FLOAT16:8@160",
    )
    layout.add_argument(
        "--type", required=True, type=_type, metavar="TYPE", help="for instance FLOAT32, INT4"
    )
    layout.add_argument(
        "--sizes", required=True, type=_numbers, metavar="N,N,...", help="elements of each dimension"
    )
    layout.add_argument("--strides", type=_numbers, metavar="N,N,...", help="in elements (default: packed)")
    layout.add_argument(
        "--offset",
        type=_number,
        default=0,
        metavar="BYTES",
        help="where the tensor begins in its buffer (default: 0)",
    )
    layout.add_argument(
        "--beside",
        action="append",
        type=_beside,
        default=[],
        metavar="[NAME=]TYPE:SIZES[:STRIDES][@OFFSET]",
        help="another tensor in the same buffer; bytes that both use are marked",
    )
    layout.add_argument(
        "--around", type=_number, metavar="BYTE", help="draw the elements around this byte, too"
    )
    layout.add_argument("--svg", type=Path, metavar="FILE", help="write an SVG picture instead")
    layout.set_defaults(run=_layout)


def _layout(parsed: Namespace) -> int:
    name = "tensor" if parsed.beside else ""
    first = BufferTensorDesc(parsed.type, parsed.sizes, parsed.strides).layout(name, parsed.offset)
    picture = reduce(Layout.beside, parsed.beside, first)
    if parsed.around is not None:
        picture = picture.around(parsed.around)
    if parsed.svg is not None:
        write_file(parsed.svg, picture.svg())
    else:
        print(picture.text(colour=_has_colour()))
    return 0


def _has_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _type(text: str) -> TensorDataType:
    names = [each.name for each in TensorDataType if each is not TensorDataType.UNKNOWN]
    if text.upper() not in names:
        raise ArgumentTypeError(f"'{text}' is not a data type; expected one of {', '.join(names)}")
    return TensorDataType[text.upper()]


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**64:
        raise ArgumentTypeError(f"'{text}' is not a number of bytes")
    return int(text)


def _numbers(text: str) -> list[int]:
    numbers = text.split(",")
    if not all(each.isdecimal() and int(each) < 2**32 for each in numbers):
        raise ArgumentTypeError(f"'{text}' is not a list of numbers below 4294967296 such as 1,3,4,4")
    if len(numbers) > TENSOR_DIMENSION_COUNT_MAX1:
        raise ArgumentTypeError(f"'{text}' has {len(numbers)} dimensions; expected 1 to 8")
    return [int(each) for each in numbers]


def _beside(text: str) -> Layout:
    found = _FORM.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"'{text}' does not have the form [NAME=]TYPE:SIZES[:STRIDES][@OFFSET]")
    name, kind, sizes, strides, offset = found.groups()
    desc = _desc(_type(kind), _numbers(sizes), None if strides is None else _numbers(strides))
    return desc.layout(name or "other", _number(offset or "0"))


def _desc(kind: TensorDataType, sizes: list[int], strides: list[int] | None) -> BufferTensorDesc:
    if strides is not None and len(strides) != len(sizes):
        raise ArgumentTypeError(f"{len(strides)} strides for {len(sizes)} sizes")
    return BufferTensorDesc(kind, sizes, strides)
