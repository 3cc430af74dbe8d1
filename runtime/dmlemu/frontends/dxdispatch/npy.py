"""NumPy ``.npy`` files, read strictly: only plain number arrays, nothing is ever unpickled."""

from __future__ import annotations

import io
import os
import warnings
from math import prod
from typing import Any, BinaryIO

import numpy as np

from dmlemu.dml.enums import TensorDataType
from dmlemu.errors import shorten
from dmlemu.frontends.rows import MODEL_NPY

from ...frozen import Frozen
from .errors import ModelError, model_error
from .files import File

__all__ = ["NpyFile", "npy_header", "open_npy"]

_DTYPES = "f2 f4 f8 u1 u2 u4 u8 i1 i2 i4 i8"
_TYPES = {np.dtype(code): TensorDataType[np.dtype(code).name.upper()] for code in _DTYPES.split()}
_TYPES[np.dtype("?")] = TensorDataType.UINT8


class NpyFile(Frozen):
    """A ``.npy`` file whose header has been read and whose size fits it."""

    file: File
    data_type: TensorDataType
    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # of the file: its byte order, bool
    offset: int

    @property
    def size(self) -> int:
        """Bytes of the array."""
        return prod(self.shape) * self.dtype.itemsize

    def read_into(self, target: np.ndarray[Any, Any]) -> None:
        """Copies the elements, in C order and little-endian, into ``target`` (``size`` bytes)."""
        self.file.read_into(self.offset, target)
        if self.dtype.byteorder == ">":
            target.view(self.dtype).byteswap(inplace=True)


def open_npy(source: File) -> NpyFile:
    """Reads the header."""
    with source.open() as file:
        shape, fortran, dtype = _header(file, source)
        offset, size = file.tell(), os.fstat(file.fileno()).st_size
    data_type = _TYPES.get(dtype.newbyteorder("="))
    if data_type is None:
        kind = str(dtype) if len(str(dtype)) <= 60 else "a structured type"
        raise _bad(
            source, "the type of its elements is not a tensor data type", kind, ", ".join(map(str, _TYPES))
        )
    if fortran:
        raise _bad(source, "it is in Fortran order", "fortran_order True", "C order")
    result = NpyFile(source, data_type, shape, dtype, offset)
    if size - offset < result.size:
        raise _bad(source, "it ends early", f"{size - offset} bytes of data", f"{result.size} bytes")
    return result


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The bytes before the data of an array of ``shape`` in C order."""
    file = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def _header(file: BinaryIO, source: File) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """(shape, fortran order, dtype)."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"version {version[0]}.{version[1]} is unknown")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old files need a second look at their header
            # Version 3 differs from 2 only in the encoding of field names, which plain arrays lack.
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _read_header_2
            shape, fortran, dtype = read(file)
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError(f"the shape is {shape!r:.60}")
    except OSError:
        raise
    except Exception as error:  # the header is a Python literal: its parsers raise all sorts of things
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise _bad(source, f"its header is bad ({reason})", "a bad header", ".npy 1.0 to 3.0") from None
    return shape, fortran, dtype


def _read_header_2(file: BinaryIO) -> Any:
    return np.lib.format.read_array_header_2_0(file)


def _bad(source: File, reason: str, given: str, expected: str) -> ModelError:
    message = f"{shorten(str(source.path))} cannot be used: {reason}."
    return model_error(MODEL_NPY, source.field, message, given=given, expected=expected)
