"""What a resource holds at the start: the six initialisers of a DxDispatch buffer.

Reading the model only finds out type and size; the bytes are made when the buffer exists, straight
into mapped upload memory, so that a model with absurd counts costs nothing before it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dmlemu.diagnostics import ids
from dmlemu.dml.enums import TensorDataType
from dmlemu.errors import shorten
from dmlemu_hw.frozen import Frozen

from .errors import model_error
from .files import File, Folders
from .node import Node
from .npy import open_npy

__all__ = ["InitialValues", "dtype_of", "read_initial_values"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_DTYPES = {
    kind: np.dtype(kind.name.lower())
    for kind in TensorDataType
    if kind.name not in ("UNKNOWN", "INT4", "UINT4")
}
_IMAGES = (".jpg", ".png")


class InitialValues(Frozen):
    """``size`` bytes of ``data_type`` (UNKNOWN for a list of mixed types) that ``write`` makes.

    ``write`` fills an array of ``size`` bytes; it may raise :class:`ModelError` if a file changed.
    """

    data_type: TensorDataType
    size: int
    write: Callable[[Bytes], None]


def dtype_of(data_type: TensorDataType) -> np.dtype[Any]:
    """The NumPy dtype; KeyError for UNKNOWN and the 4-bit types."""
    return _DTYPES[data_type]


def read_initial_values(resource: Node, base: Path, folders: Folders) -> InitialValues:
    """The initialiser of ``resource``; ``base`` is where relative file names start.

    Files have to lie in ``folders``.
    """
    type_node = resource.get("initialValuesDataType")
    data_type = TensorDataType.UNKNOWN if type_node is None else type_node.enum(TensorDataType)
    values = resource["initialValues"]
    if isinstance(values.value, list):
        mixed = data_type is TensorDataType.UNKNOWN
        result = _mixed_list(values) if mixed else _typed_list(values, _dtype(resource, data_type), data_type)
    elif isinstance(values.value, dict):
        result = _generated(resource, values, data_type, base, folders)
    else:
        values.refuse('an array, an object or "deferred"')
    if not result.size:
        values.fail(ids.MODEL_VALUE, "makes no values", "0 bytes", "at least one value")
    return result


def _generated(
    resource: Node, values: Node, data_type: TensorDataType, base: Path, folders: Folders
) -> InitialValues:
    makers = [name for name in ("value", "valueStart", "sourcePath") if name in values.value]
    if not makers or (makers[0] == "value" and len(makers) > 1):
        given = " and ".join(makers) or ", ".join(map(shorten, list(values.value)[:12])) or "no members"
        expected = "one of value, valueStart, sourcePath"
        values.fail(ids.MODEL_VALUE, f"does not say how to make the values ({given})", given, expected)
    if makers[0] == "sourcePath":
        return _file(resource, values["sourcePath"], data_type, base, folders)
    make = _constant if makers[0] == "value" else _sequence
    return make(values, _dtype(resource, data_type), data_type)


def _dtype(resource: Node, data_type: TensorDataType) -> np.dtype[Any]:
    known = _DTYPES.get(data_type)
    if known is None:
        if data_type is TensorDataType.UNKNOWN:
            raise resource.missing("initialValuesDataType")
        _no_numbers(resource["initialValuesDataType"], data_type)
    return known


def _no_numbers(node: Node, data_type: TensorDataType) -> NoReturn:
    node.fail(ids.MODEL_VALUE, f"({data_type.name}) is no type of initial values", data_type.name, _names())


def _names() -> str:
    return ", ".join(kind.name for kind in _DTYPES)


# --- lists ---


def _typed_list(values: Node, dtype: np.dtype[Any], data_type: TensorDataType) -> InitialValues:
    return _stored(data_type, _typed_array(values, dtype).view(np.uint8))


def _typed_array(values: Node, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    numbers = values.as_array()
    kinds = set(map(type, numbers))
    if numbers and dtype.kind in "iu" and kinds == {int}:
        limits = np.iinfo(dtype)
        if limits.min <= min(numbers) and max(numbers) <= limits.max:
            return np.array(numbers, dtype)
    elif numbers and dtype.kind == "f" and kinds <= {int, float}:
        return _floats(numbers, dtype)
    # words, or something wrong: one by one, for its place
    read = [_scalar(element, dtype) for element in values.elements()]
    return _floats(read, dtype) if dtype.kind == "f" else np.array(read, dtype)


def _mixed_list(values: Node) -> InitialValues:
    parts = []
    for element in values.elements():
        data_type = element["type"].enum(TensorDataType)
        dtype = _DTYPES.get(data_type)
        if dtype is None:
            _no_numbers(element["type"], data_type)
        parts.append(_constant_of(element["value"], dtype).tobytes())
    return _stored(TensorDataType.UNKNOWN, np.frombuffer(b"".join(parts), np.uint8))


def _stored(data_type: TensorDataType, data: Bytes) -> InitialValues:
    def write(target: Bytes) -> None:
        target[:] = data

    return InitialValues(data_type, data.size, write)


# --- generators ---


def _constant(values: Node, dtype: np.dtype[Any], data_type: TensorDataType) -> InitialValues:
    count = values["valueCount"].uint32()
    value = _constant_of(values["value"], dtype)

    def write(target: Bytes) -> None:
        target.view(dtype)[:] = value

    return InitialValues(data_type, count * dtype.itemsize, write)


def _sequence(values: Node, dtype: np.dtype[Any], data_type: TensorDataType) -> InitialValues:
    """A running sum in the type itself: integers wrap, every floating-point step rounds."""
    count = values["valueCount"].uint32()
    start = _constant_of(values["valueStart"], dtype)
    delta = _constant_of(values["valueDelta"], dtype)

    def write(target: Bytes) -> None:
        numbers = target.view(dtype)
        numbers[:] = delta
        numbers[0] = start
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.accumulate(numbers, out=numbers, dtype=dtype)

    return InitialValues(data_type, count * dtype.itemsize, write)


def _constant_of(node: Node, dtype: np.dtype[Any]) -> Any:
    value = _scalar(node, dtype)
    return _floats([value], dtype)[0] if dtype.kind == "f" else dtype.type(value)


def _scalar(node: Node, dtype: np.dtype[Any]) -> int | float:
    if dtype.kind == "f":
        return node.number()
    limits = np.iinfo(dtype)
    return node.integer(int(limits.min), int(limits.max))


def _floats(numbers: list[int | float] | list[float], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Nearest, to infinity when too large; FLOAT16 by way of FLOAT32, as in DxDispatch."""
    with np.errstate(over="ignore"):
        array = np.array(numbers, np.float64)
        return array.astype(np.float32).astype(dtype) if dtype.itemsize == 2 else array.astype(dtype)


# --- files ---


def _file(
    resource: Node, source: Node, data_type: TensorDataType, base: Path, folders: Folders
) -> InitialValues:
    suffix = Path(source.string()).suffix.lower()
    if suffix in _IMAGES:
        source.fail(
            ids.MODEL_UNSUPPORTED,
            f"({source.shown()}) is an image, and images are not supported",
            suffix,
            ".npy, raw",
        )
    file = folders.source(source.string(), base, source.path)
    if suffix == ".npy":
        return _npy(resource, data_type, file)
    _dtype(resource, data_type)
    return _raw(data_type, file)


def _npy(resource: Node, data_type: TensorDataType, source: File) -> InitialValues:
    file = open_npy(source)
    if data_type not in (TensorDataType.UNKNOWN, file.data_type):
        node, where = resource["initialValuesDataType"], shorten(str(source.path))
        raise model_error(
            ids.MODEL_VALUE,
            node.path,
            f"{node.path} ({data_type.name}) differs from the type in {where} ({file.data_type.name}).",
            given=data_type.name,
            expected=file.data_type.name,
        )

    return InitialValues(file.data_type, file.size, file.read_into)


def _raw(data_type: TensorDataType, source: File) -> InitialValues:
    def write(target: Bytes) -> None:
        source.read_into(0, target)

    return InitialValues(data_type, source.size(), write)
