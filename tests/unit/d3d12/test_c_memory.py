"""Structs of C programs: layouts, round trips, arrays that cannot be there."""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlemu import Error, HResult, d3d12
from dmlemu.d3d12.core import features
from dmlemu.d3d12.core.c_memory import c_size, pack, read_array, read_blob, unpack
from dmlemu.d3d12.types import structs
from dmlemu.frozen import Frozen
from dmlemu_hw.kernels import ffi

_NOT_FLAT = {
    features.FeatureDataFeatureLevels,
    structs.CopyableFootprints,
    structs.ResourceTiling,
}  # an array, several out parameters
STRUCTS = [
    each
    for module in (structs, features)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Frozen) and each.__module__ == module.__name__
    if each not in _NOT_FLAT
]


def _values(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is Annotated:
        code = get_args(hint)[1]
        if code == "f":
            return st.floats(width=32, allow_nan=False)
        bits = 8 * struct.calcsize(code)
        return (
            st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            if code.islower()
            else st.integers(0, 2**bits - 1)
        )
    if get_origin(hint) is tuple:
        return st.tuples(*map(_values, get_args(hint)))
    if issubclass(hint, Frozen):
        return _structs(hint)
    if issubclass(hint, bool):
        return st.booleans()
    if issubclass(hint, IntEnum) and not issubclass(hint, IntFlag):
        return st.sampled_from(list(hint)) | st.integers(-(2**31), 2**31 - 1)
    return st.integers(0, 2**32 - 1)


def _structs(kind: type[Frozen]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind, include_extras=True)
    return st.tuples(*(_values(hints[name]) for name in kind.__dataclass_fields__)).map(
        lambda row: kind(*row)
    )


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_struct_comes_back(kind: type[Frozen], data: st.DataObject) -> None:
    value = data.draw(_structs(kind))
    raw = pack(value)
    assert len(raw) == c_size(kind)
    assert unpack(kind, raw) == value


@pytest.mark.parametrize(
    ("value", "size", "offset", "code", "expected"),
    [
        (d3d12.HeapDesc(1, flags=d3d12.HeapFlags(5)), 48, 40, "I", 5),
        (d3d12.HeapDesc(1, alignment=7), 48, 32, "Q", 7),
        (d3d12.ResourceDesc.buffer(9), 56, 16, "Q", 9),
        (d3d12.ResourceDesc.buffer(9, d3d12.ResourceFlags(4)), 56, 48, "I", 4),
        (d3d12.HeapProperties(), 20, 0, "I", 1),
        (d3d12.CommandQueueDesc(priority=-1), 16, 4, "i", -1),
        (d3d12.TileRegionSize(1, True, 2, 3, 4), 16, 14, "H", 4),
        (
            d3d12.UnorderedAccessViewDesc(buffer=d3d12.BufferUav(flags=d3d12.BufferUavFlags.RAW)),
            40,
            32,
            "I",
            1,
        ),
        (d3d12.ShaderResourceViewDesc(buffer=d3d12.BufferSrv(3)), 40, 16, "Q", 3),
    ],
)
def test_fields_lie_where_the_header_has_them(
    value: Any, size: int, offset: int, code: str, expected: int
) -> None:
    raw = pack(value)
    assert len(raw) == size
    assert struct.unpack_from(code, raw, offset) == (expected,)


def test_arrays_are_read_one_behind_the_other() -> None:
    ranges = [d3d12.Range(1, 2), d3d12.Range(3, 2**64 - 1)]
    memory = ffi.from_buffer(b"".join(map(pack, ranges)))
    address = int(ffi.cast("uintptr_t", memory))
    assert read_array(d3d12.Range, address, 2, "ranges", "Test") == ranges
    assert read_array("Q", address, 4, "numbers", "Test") == [1, 2, 3, 2**64 - 1]
    assert read_array("Q", 0, 0, "numbers", "Test") == []


@pytest.mark.parametrize(("address", "count"), [(0, 1), (0, 2**32 - 1), (4096, 2**32 - 1)])
def test_arrays_that_cannot_be_there_are_refused(address: int, count: int) -> None:
    with pytest.raises(Error) as caught:
        read_array("I", address, count, "pRectangles", "Test")
    assert caught.value.hresult is HResult.E_INVALIDARG
    assert caught.value.report.field == "pRectangles"


def test_bytes_that_cannot_be_there_are_refused() -> None:
    memory = ffi.from_buffer(b"abcd")
    address = int(ffi.cast("uintptr_t", memory))
    assert read_blob(address, 3, "pData", "Test") == b"abc"
    assert read_blob(0, 0, "pData", "Test") == b""
    for start, size in ((0, 1), (address, 2**32 - 1), (address, 2**63)):
        with pytest.raises(Error) as caught:
            read_blob(start, size, "pData", "Test")
        assert caught.value.hresult is HResult.E_INVALIDARG
        assert caught.value.report.field == "pData"
