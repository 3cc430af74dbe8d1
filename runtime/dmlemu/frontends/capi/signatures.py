"""Methods by their signatures: what C passes becomes the arguments of a method of the Python API.

A method that only calls the one of the same name of the Python API, with the arguments in the same order, has
no code here: its row in ``runtime/capi_c/interfaces.txt``, which the extension contains, says how each of its
arguments is read, and what becomes of the result.  For a row such as ::

    void CopyResource(ID3D12Resource *pDstResource, ID3D12Resource *pSrcResource)

this module writes the method that one would write by hand ::

    def CopyResource(self, pDstResource, pSrcResource):
        self.thing.copy_resource(
            thing(pDstResource, d3d12.Resource, "pDstResource", "CopyResource"),
            thing(pSrcResource, d3d12.Resource, "pSrcResource", "CopyResource"),
        )
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from inspect import CO_VARARGS
from itertools import takewhile
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from ... import d3d12, dml
from ...d3d12.core.c_memory import pack, read, read_array, read_blob
from ...dml.c_descs import DescReader
from ...frozen import Frozen
from ._capi import ffi, lib
from .objects import Interface, guid, invalid, thing, things
from .values import by_value, create, give, luid_number, write_out

__all__ = ["MethodsByName", "desc_reader", "methods"]


class MethodsByName(Interface):
    """An interface whose methods are those of a class of the Python API, but for those that are written here.

    The class is ``of``, or ``target`` where its objects are reached through another one: by ``PATH``.
    """

    PATH: ClassVar[str] = "self.thing"

    def __init_subclass__(cls, *, of: type | None = None, target: type | None = None, **more: Any) -> None:
        super().__init_subclass__(of=of, **more)
        if of or target:
            for name, method in methods(cls, of or target).items():
                setattr(cls, name, method)


def desc_reader(operation: str, kind: Any) -> DescReader:
    """A reader of DirectML's descs in which interface pointers are objects of one kind."""
    return DescReader(operation, partial(thing, kind=kind, field="", operation=operation))


# --- the table ---

_TABLE: dict[str, tuple[str, str]] = {
    name: (base, rows)
    for name, base, rows in re.findall(
        r"^interface (\w+)(?: : (\w+))? \S+\n((?:  .*\n)*)",
        ffi.string(lib.capi_table).decode(),
        re.MULTILINE,
    )
}  # of each interface its base and its methods
_ROW = re.compile(r"  (\w+) (\w+)\((.*)\)")


def methods(cls: type[MethodsByName], target: Any) -> dict[str, _Late]:
    """The methods of the interface that ``cls`` does not have, but ``target`` does."""
    known = {name.replace("_", ""): name for name in dir(target) if not name.startswith("_")}
    found: dict[str, _Late] = {}
    interface = cls.NAME
    while interface != "IUnknown":  # whose methods are not those of the objects
        interface, rows = _TABLE[interface]
        for result, name, parameters in _ROW.findall(rows):
            method = known.get(name.lower())
            if method and not hasattr(cls, name) and not _always_refuses(getattr(target, method)):
                text = _Text(name, result, parameters, f"{cls.PATH}.{method}")
                if text.is_plain:
                    found[name] = _Late(cls, text)
    return found


def _always_refuses(method: Any) -> bool:
    """A method that is not emulated takes any arguments."""
    code = getattr(getattr(method, "__wrapped__", method), "__code__", None)
    return code is not None and bool(code.co_flags & CO_VARARGS)


class _Late:
    """A method that is compiled when it is first used: programs use few of them."""

    def __init__(self, owner: type, text: _Text) -> None:
        self.owner, self.text = owner, text

    def __get__(self, instance: object, owner: type) -> Any:
        made = self.text.compiled(f"{self.owner.__qualname__}.{self.text.operation}")
        setattr(self.owner, self.text.operation, made)
        return made.__get__(instance, owner)


# --- types ---

_CLASSES = {"ID3D12Pageable": "d3d12.DeviceChild", "IDMLPageable": "dml.Dispatchable"}
_CLASSES |= {f"d3d12{name}".lower(): f"d3d12.{name}" for name in d3d12.__all__}
_CLASSES |= {f"dml{name}".lower(): f"dml.{name}" for name in dml.__all__}
_FORMATS = {  # of numbers in memory; those of enumerations are "I"
    "UINT": "I",
    "UINT64": "Q",
    "FLOAT": "f",
    "D3D12_CPU_DESCRIPTOR_HANDLE": "Q",
    "D3D12_RESIDENCY_PRIORITY": "I",
}
_NUMBERS = ("UINT", "INT", "DWORD", "SIZE_T", "FLOAT", "D3D12_", "DML_", "DXGI_")  # how their types begin
# Flags that objects keep and show; other numbers stay as they are.
_FLAGS = {"D3D12_HEAP_FLAGS", "D3D12_RESOURCE_STATES", "D3D12_FENCE_FLAGS", "D3D12_TILE_MAPPING_FLAGS"}
# What stands for a parameter of these types; 0: its name, 1 and 2: its name and the method's, for messages.
_WRITTEN = {
    "BOOL": "bool({0})",
    "HANDLE": "{0} or None",
    "REFIID": "guid({0}, {2})",
    "ID3D12ProtectedResourceSession*": "nothing({0}, {1}, {2})",
}
# The readers of DirectML's descs, and the objects in them.
_DESCS: dict[str, tuple[str, Any]] = {
    "DML_OPERATOR_DESC": ("operator", dml.Operator),
    "DML_GRAPH_DESC": ("graph", dml.Operator),
    "DML_BINDING_DESC": ("binding", d3d12.Resource),
}
_HELD = {"ID3D12Heap": "heap"}  # what a created object keeps, by its role
# Arrays that may be NULL where their count is not 0.
_MAY_BE_NULL = {
    "pModes",
    "pDestDescriptorRangeSizes",
    "pSrcDescriptorRangeSizes",
    "pResourceRegionStartCoordinates",
    "pResourceRegionSizes",
    "pRangeFlags",
    "pHeapRangeStartOffsets",
    "pRangeTileCounts",
}


@cache
def _class(kind: str) -> str:
    """The class of a C type in the Python API: ``d3d12.HeapDesc`` of ``D3D12_HEAP_DESC``; "": it has none."""
    plain = kind.replace("DXGI_", "D3D12_").replace("_", "").lower()
    return _CLASSES.get(kind) or _CLASSES.get(plain.removeprefix("i"), "")


@cache
def _struct(kind: str) -> str:
    """:func:`_class` of a struct."""
    module, _, name = _class(kind).partition(".")
    is_struct = bool(name) and issubclass(getattr(_NAMES[module], name), Frozen)
    return _class(kind) if is_struct else ""


@cache
def _format(kind: str) -> str:
    """The format of a number in memory; "": it is none that is known."""
    is_enum = _class(kind) and not _struct(kind) and not kind.startswith("I")
    return _FORMATS.get(kind, "I" if is_enum else "")


def nothing(pointer: int, field: str, operation: str) -> None:
    """For a parameter that must be NULL."""
    if pointer:
        raise invalid(field, f"0x{pointer:X}", "NULL", operation)


_NAMES: dict[str, Any] = {
    each.__name__: each
    for each in (
        read, read_array, read_blob, pack, thing, things, guid, nothing,
        create, give, by_value, luid_number, write_out,
    )
}  # fmt: skip
_NAMES |= {"d3d12": d3d12, "dml": dml, "__name__": __name__}  # the name: call sites are outside of it


# --- a method ---


class _Parameter(NamedTuple):
    const: str
    kind: str
    stars: str
    name: str
    length: str  # of an array in C

    @property
    def is_count(self) -> bool:
        """Whether it says how many elements arrays have."""
        is_number = self.kind in ("UINT", "UINT32") and not self.stars
        return is_number and (self.name[:3].lower() == "num" or self.name[-5:].lower() == "count")

    @property
    def is_array(self) -> bool:
        """Whether there may be several, whose count is another parameter."""
        is_data = bool(self.const) and self.kind != "void" and self.stars == "*"
        return is_data or self.stars == "* const *"

    @property
    def is_result(self) -> bool:
        """Whether a getter writes it: a number or a struct, or several of them."""
        is_known = bool(_struct(self.kind) or _format(self.kind))
        return not self.const and self.stars == "*" and is_known


_PARAMETER = re.compile(r"(const )?(\w+) ?(\*|\*\*|\* const \*|)(\w+)(?:\[ (\d) \])?")


def _counts(parameters: list[_Parameter]) -> Iterator[tuple[str, str]]:
    """Each array with its count, which stands before the arrays that it counts, else behind them."""
    for i, each in enumerate(parameters):
        if (each.name == "Size" or each.kind == "SIZE_T") and i and parameters[i - 1].kind == "void":
            yield parameters[i - 1].name, each.name
        if each.is_count:
            behind = takewhile(attrgetter("is_array"), parameters[i + 1 :])
            before = takewhile(attrgetter("is_array"), reversed(parameters[:i]))
            yield from ((array.name, each.name) for array in list(behind) or before)


class _Text:
    """The text of a method; not ``is_plain``: its signature does not say all."""

    def __init__(self, operation: str, result: str, parameters: str, call: str) -> None:
        self.operation, self.result, self.call = operation, result, call
        self.all = [_Parameter(*each) for each in _PARAMETER.findall(parameters)]
        hands_out = len(self.all) > 1 and self.all[-2].kind == "REFIID" and self.all[-1].stars == "**"
        self.object = self.all[-2:] if hands_out else []  # where the object goes that is handed out
        is_getter = operation.startswith("Get")
        self.results = [each for each in self.all if is_getter and each.is_result]
        self.given = [each for each in self.all if each not in self.object and each not in self.results]
        self.counts = dict(_counts(self.given))
        self.is_plain = all(self._argument(each) is not None for each in self.given)

    def compiled(self, name: str) -> Any:
        names = dict(_NAMES)
        for each in self.given:
            if each.kind in _DESCS:
                names["descs"] = desc_reader(self.operation, _DESCS[each.kind][1])
        exec(compile(self.written(), f"<{name}>", "exec"), names)
        made = names[self.operation]
        made.__qualname__ = name
        return made

    def written(self) -> str:
        """The method."""
        lines, arguments, held = [], [], {}
        for each in self.given:
            text = self._argument(each)
            if each.kind in _HELD and self.object:
                lines.append(f"{each.name} = {text}")
                text = held[_HELD[each.kind]] = each.name
            if text:
                arguments.append(text)
        names = ", ".join(["self", *(each.name for each in self.all)])
        lines += self._ending(f"{self.call}({', '.join(arguments)})", held)
        return "\n    ".join([f"def {self.operation}({names}):", *lines])

    def _ending(self, call: str, held: dict[str, str]) -> list[str]:
        """The lines that call the method of the Python API and hand its result on."""
        if self.object:
            out = ", ".join(each.name for each in self.object)
            if self.operation.startswith("Get"):
                return [f"return give({call}, {out})"]
            holds = "".join(f", {{{role!r}: {name}}}" for role, name in held.items())
            return [f"return create({out}, lambda: {call}{holds})"]
        if self.results:
            places = ", ".join(f"({each.name}, {_format(each.kind)!r})" for each in self.results)
            if _struct(self.result):
                return [
                    f"found, *more = {call}",
                    f"write_out(more, {places})",
                    "return by_value(pack(found))",
                ]
            return [f"write_out({call}, {places})"]
        if self.result == "void":
            return [call]
        if self.result == "LUID":
            return [f"return luid_number({call})"]
        return [f"return by_value(pack({call}))" if _struct(self.result) else f"return {call}"]

    def _argument(self, each: _Parameter) -> str | None:
        """What stands for a parameter; "": nothing, it is the count of another one; None: unknown."""
        name, kind, of = each.name, each.kind, _class(each.kind)
        where = f"{name!r}, {self.operation!r}"
        count = self.counts.get(name)
        if name in self.counts.values():
            return ""
        if kind + each.stars in _WRITTEN:
            return _WRITTEN[kind + each.stars].format(name, repr(name), repr(self.operation))
        if each.stars == "* const *":
            return f"things({name}, {count}, {of}, {where})" if of and count else None
        if each.stars == "*" and kind.startswith("I"):
            return f"thing({name}, {of}, {where})" if of else None
        if each.length:
            return f"read_array({_format(kind)!r}, {name}, {each.length}, {where})"
        if each.stars == "*" and each.const:
            return self._data(each, count, where)
        is_number = not each.stars and kind.startswith(_NUMBERS)
        return (f"{of}({name})" if kind in _FLAGS else name) if is_number else None

    def _data(self, each: _Parameter, count: str | None, where: str) -> str | None:
        """What stands for a pointer to a struct, or to an array of structs, numbers or bytes."""
        name, kind = each.name, each.kind
        if kind in _DESCS:
            read = f"descs.{_DESCS[kind][0]}"
            return f"{read}s({name}, {count}) if {count} else None" if count else f"{read}({name})"
        if kind == "void":
            return f"read_blob({name}, {count}, {where}) if {name} else b''" if count else None
        if not count:
            return f"read({_struct(kind)}, {name})" if _struct(kind) else None
        if not (_struct(kind) or _format(kind)):
            return None
        text = f"read_array({_struct(kind) or repr(_format(kind))}, {name}, {count}, {where})"
        return f"{text} if {name} else None" if name in _MAY_BE_NULL else text
