"""Calls as a C++ program makes them, without one: COM objects are called through their vtables.

:class:`Com` has the methods of the Python API, with its names and its arguments: they are laid out in memory
as the C signature in interfaces.txt has them, and the slot is called.  So one function can make the same
calls in both ways.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dmlemu import d3d12, dml
from dmlemu.d3d12.core.c_memory import pack
from dmlemu.errors import HResult
from dmlemu.frontends.capi import calls, objects, startup
from dmlemu.frontends.capi._capi import ffi, lib
from dmlemu.frontends.capi.exports import Exports
from dmlemu.frontends.capi.objects import Interface
from dmlemu.frozen import Frozen

sys.path.append(str(Path(__file__).parents[1] / "dml"))
from c_program import CProgram

TABLE = (Path(__file__).parents[3] / "runtime/capi_c/interfaces.txt").read_text(encoding="utf-8")
IUNKNOWN = bytes(8) + bytes.fromhex("c000000000000046")
SCALARS = {"UINT": "I", "UINT64": "Q", "FLOAT": "f", "D3D12_CPU_DESCRIPTOR_HANDLE": "Q"}


class Method(NamedTuple):
    """A slot: its number, the symbol of its function, whether it returns an HRESULT, its parameters."""

    slot: int
    symbol: str
    is_hresult: bool
    parameters: list[str]


def _methods() -> dict[str, dict[str, Method]]:
    """The methods of each interface, by their names in the Python API without underscores."""
    found: dict[str, dict[str, Method]] = {}
    for name, base, rows in re.findall(
        r"^interface (\w+)(?: : (\w+))? .*\n((?:  .*\n)*)", TABLE, re.MULTILINE
    ):
        own = dict(found.get(base, {}))
        for row in rows.splitlines():
            result, method, parameters = re.fullmatch(r"  ([\w *]+) (\w+)\((.*)\)", row).groups()  # type: ignore[union-attr]
            symbol = f"{name}_{method}"
            each = [text for text in parameters.split(", ") if text]
            own[method.lower()] = Method(len(own), symbol, result == "HRESULT", each)
        found[name] = own
    return found


METHODS = _methods()


def attach() -> None:
    """Gives the vtables their functions."""
    calls.attach([Interface, *startup._subclasses(Interface), Exports])


class Failed(Exception):
    """A method has returned a failing HRESULT."""

    def __init__(self, hresult: int) -> None:
        super().__init__(hex(hresult))
        self.hresult = HResult(hresult)


class Client:
    """Keeps the references that a program got, and the memory of its arguments."""

    def __init__(self) -> None:
        self.pointers: list[int] = []
        self.c = CProgram()
        self.c.interface = _address  # type: ignore[method-assign]

    def object(self, thing: Any) -> Com:
        """An object of the Python API as a COM object."""
        return self.found(objects.interface_of(thing).address, add=True)

    def found(self, address: int, *, add: bool = False) -> Com:
        if add:
            lib.capi_hold(address, lib.CAPI_OF_CLIENT)
        self.pointers.append(address)
        return Com(self, address)

    def end(self) -> None:
        for address in reversed(self.pointers):
            function(address, METHODS["IUnknown"]["release"])(address)


def function(address: int, method: Method) -> Callable[..., Any]:
    """The function in the vtable of the object at an address."""
    slots = ffi.cast("uintptr_t **", address)[0]
    kind = "uint32_t(*)(uintptr_t)" if method.symbol == "IUnknown_Release" else None
    return ffi.cast(kind or ffi.typeof(getattr(lib, method.symbol)), slots[method.slot])  # type: ignore[no-any-return]


class Com:
    """An interface pointer."""

    def __init__(self, client: Client, address: int) -> None:
        self.client, self.address = client, address
        self.methods = METHODS[objects.find(address).NAME]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = self.methods[name.replace("_", "")]
        return lambda *arguments: self.call(method, list(arguments))

    def call(self, method: Method, given: list[Any]) -> Any:
        out = ffi.new("uint64_t *", 0x1234)
        arguments = Arguments(self.client, given, out)  # owns their memory
        result = function(self.address, method)(self.address, *arguments.made(method.parameters))
        creates = any(each.startswith("REFIID") for each in method.parameters)
        if method.is_hresult and result & 0x8000_0000:
            assert not creates or out[0] == 0, f"{method.symbol} leaves its out pointer"
            raise Failed(result)
        return self.client.found(out[0]) if creates else result


class Arguments:
    """The arguments of one call, from those of the Python API."""

    def __init__(self, client: Client, given: list[Any], out: Any) -> None:
        self.client, self.given, self.out = client, given, out
        self.kept: list[Any] = []

    def made(self, parameters: list[str]) -> Iterator[Any]:
        given, last = iter(self.given), None
        for i, parameter in enumerate(parameters):
            kind, name = re.fullmatch(r"(.*?)(\w+)(?:\[ \d+ \])?", parameter).groups()  # type: ignore[union-attr]
            if kind.strip() in ("REFIID", "REFGUID"):
                yield self.memory(IUNKNOWN)
            elif kind.strip() == "void **":
                yield int(ffi.cast("uintptr_t", self.out))
            elif kind.strip() == "SIZE_T" and isinstance(last, bytes):
                yield len(last)
            elif name == "FeatureSupportDataSize":
                yield len(self.kept[-1]) - 1 if self.kept else 0
            elif self.is_count(kind, name, parameters[i + 1 : i + 2]):
                yield self.count(parameters, i)
            else:
                last = next(given, 0)
                yield self.value(last, re.sub(r"\bconst\b|[ *]", "", kind))

    @staticmethod
    def is_count(kind: str, name: str, after: list[str]) -> bool:
        counts = re.fullmatch(r"[Nn]um\w+|\w*[cC]ount", name) and kind.strip() in ("UINT", "UINT32")
        array = after and ("*" in after[0] or "[" in after[0]) and not re.match(r"ID\w+ \*\w", after[0])
        return bool(counts and array)

    def count(self, parameters: list[str], at: int) -> int:
        """The length of the array behind it."""
        counts = [
            i
            for i, each in enumerate(parameters)
            if self.is_count(*each.rsplit(" ", 1), parameters[i + 1 : i + 2])  # type: ignore[arg-type]
        ]
        before = sum(1 for i in counts if i < at)
        value = self.given[at - before]
        return 1 if isinstance(value, d3d12.ResourceBarrier) else len(value) if value else 0

    def memory(self, data: bytes) -> int:
        self.kept.append(ffi.new("char[]", data))
        return int(ffi.cast("uintptr_t", self.kept[-1]))

    def value(self, value: Any, kind: str) -> Any:
        if value is None:
            return 0
        if isinstance(value, Com):
            return value.address
        if isinstance(value, dml.OperatorDesc):
            return self.client.c.put(self.client.c.operator(value))
        if isinstance(value, dml.GraphDesc):
            return self.client.c.graph(value)
        if kind == "DML_BINDING_DESC" and not isinstance(value, list | tuple):
            return self.memory(self.binding(value))
        if isinstance(value, d3d12.ResourceBarrier):
            value = [value]
        if kind == "D3D12_PIPELINE_STATE_STREAM_DESC":
            return self.memory(self.stream(value))
        if isinstance(value, bytes):
            return self.memory(value)
        if isinstance(value, list | tuple):
            return self.memory(b"".join(self.element(each, kind) for each in value)) if value else 0
        if isinstance(value, Frozen):
            return self.memory(self.packed(value))
        return value

    def element(self, value: Any, kind: str) -> bytes:
        if kind == "DML_BINDING_DESC":
            return self.binding(value)
        if value is None or isinstance(value, Com):
            return _numbers("Q", 0 if value is None else value.address)
        if isinstance(value, Frozen):
            return self.packed(value)
        return _numbers(SCALARS.get(kind, "I"), value)

    def packed(self, value: Any) -> bytes:
        if isinstance(value, d3d12.ResourceBarrier):
            leaves = [getattr(value.barrier, name) for name in value.barrier.__dataclass_fields__]
            code = "QIII0Q" if len(leaves) == 4 else "Q" * len(leaves)
            data = _numbers("II", value.type, value.flags) + _numbers(code, *map(_address, leaves))
            return data.ljust(32, b"\0")
        if isinstance(value, dml.BindingTableDesc):
            fields = (getattr(value, name) for name in value.__dataclass_fields__)
            return _numbers("QQQI0Q", *map(_address, fields))
        if isinstance(value, d3d12.ComputePipelineStateDesc):
            root, cached = _address(value.root_signature), self.bytes(value.cached_pso)
            fields = root, *self.bytes(value.cs), value.node_mask, *cached, value.flags
            return _numbers("QQQIQQI0Q", *fields)
        if isinstance(value, d3d12.CommandSignatureDesc):
            rows = b"".join(pack(each) for each in value.argument_descs)
            count = len(value.argument_descs)
            at = self.memory(rows) if rows else 0
            return _numbers("IIQI0Q", value.byte_stride, count, at, value.node_mask)
        return pack(value)

    def bytes(self, value: Any) -> tuple[int, int]:
        """The address and the size."""
        return (0, 0) if value is None else (self.memory(value), len(value))

    def stream(self, rows: Any) -> bytes:
        """A ``D3D12_PIPELINE_STATE_STREAM_DESC``."""
        data = b""
        for kind, value in rows:
            if isinstance(value, int):
                data += _numbers("II", kind, value)
            elif isinstance(value, bytes):
                data += _numbers("IQQ", kind, *self.bytes(value))
            else:
                data += _numbers("IQ", kind, _address(value))
        return _numbers("QQ", len(data), self.memory(data) if data else 0)

    def binding(self, value: Any) -> bytes:
        """A ``DML_BINDING_DESC``."""
        if value is None:
            return _numbers("IQ", 0, 0)
        if isinstance(value, dml.BufferArrayBinding):
            rows = b"".join(map(self.buffer, value.bindings))
            array = _numbers("IQ", len(value.bindings), self.memory(rows) if rows else 0)
            return _numbers("IQ", 2, self.memory(array))
        return _numbers("IQ", 1, self.memory(self.buffer(value)))

    @staticmethod
    def buffer(value: Any) -> bytes:
        if value is None:
            return bytes(24)
        return _numbers("QQQ", _address(value.buffer), value.offset, value.size_in_bytes)


def _address(value: Any) -> int:
    return value.address if isinstance(value, Com) else int(value or 0)


def _numbers(code: str, *values: int) -> bytes:
    return struct.pack(f"@{code}", *values)
