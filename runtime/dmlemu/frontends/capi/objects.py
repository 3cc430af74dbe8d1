"""Live COM objects: one for each object of the Python API that the program holds.

The C object has the vtable and the reference count; it is found by its address.  The Python side
(:class:`Interface`) is kept while the count is positive, and so keeps the object of the Python API.
"""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from ... import d3d12, dml
from ...d3d12.core.c_memory import MEMORY, read_array, read_bytes
from ...d3d12.core.object import LateName, Object
from ...d3d12.core.rows import API_NULL_POINTER, OBJECT_DELETED_IN_USE
from ...diagnostics.declaration import Declaration
from ...diagnostics.rows import ARGUMENT_RANGE
from ...diagnostics.rule import error_of
from ...errors import CallSite, Error, HResult, Report, call_site
from ...reporting import Reporter
from . import reports
from ._capi import ffi, lib
from .rows import API_FOREIGN_POINTER, API_WRONG_OBJECT
from .sites import spell_text

__all__ = [
    "Interface",
    "guid",
    "hand_out",
    "interface_of",
    "invalid",
    "is_known",
    "leave_alive",
    "list_among",
    "lock",
    "publish",
    "push_reason",
    "refuses",
    "reject",
    "reporter",
    "stale",
    "thing",
    "things",
    "write_pointer",
]

_Kind = TypeVar("_Kind")
_Method = TypeVar("_Method", bound=Callable[..., Any])

_OF_OURS = int(lib.CAPI_OF_OURS)  # a reference
_POINTER = struct.Struct("@Q")
_MOST_RELEASED = int(lib.CAPI_RELEASED)  # whose memory C keeps, so that a call on them does not crash
_NUMBERS = {ffi.string(name).decode(): i for i, name in enumerate(lib.capi_names)}

lock = threading.RLock()  # of the tables, and of the last reference of each object
_live: dict[int, Interface] = {}  # by address
_of_things: dict[int, Interface] = {}  # by id of the object
# What a released object was, and where it was released, by its address.
_released: OrderedDict[int, tuple[object, CallSite | None]] = OrderedDict()

REFUSING: set[str] = set()  # qualified names of methods that always refuse
_lasting = ffi.new_allocator(lib.malloc)  # of memory that outlives Python: C reads it at the very end

find = _live.__getitem__  # of the object at an address; KeyError: there is none
classes: dict[type, type[Interface]] = {}  # the interface of each class of the Python API
# Of several of them.
bases = {
    d3d12.DeviceChild: "ID3D12Pageable",
    dml.Dispatchable: "IDMLDispatchable",
    Object: "ID3D12Object or IDMLObject",
}


class Interface:
    """A COM object; a subclass has the methods of one interface, all its versions included.

    Methods take what C passes: pointers and handles are numbers.  What they return is the HRESULT (None:
    S_OK), or the value.  ``held``: objects that this one keeps, by what they are to it.
    """

    NAME: ClassVar[str] = ""  # the newest version
    OTHERS: ClassVar[tuple[type[Interface], ...]] = ()  # further interfaces of the object
    others: Sequence[Interface] = ()  # the COM objects of OTHERS, once one was asked for
    is_debug = False  # of a DirectML device: created with the flag DEBUG
    keeps_released: ClassVar[bool] = False  # by name; set at strictness debug and strict

    def __init__(self, thing: Any, owner: Interface | None = None) -> None:
        self.thing = thing
        self.address: int = lib.capi_new(_NUMBERS[self.NAME], 0 if owner is None else owner.address)
        if not self.address:
            raise MemoryError
        self.held: dict[str, Interface] = {}

    def __init_subclass__(cls, *, of: type | None = None, name: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.NAME = name or cls.__name__
        if of is not None:
            classes[of] = cls

    def hold(self, role: str, other: Any) -> None:
        """Keeps the COM object of ``other`` in place of what had the role."""
        with lock:  # else another thread may forget it in between
            found = interface_of(other)
            lib.capi_hold(found.address, _OF_OURS)
        before = self.held.pop(role, None)
        self.held[role] = found
        if before is not None:
            lib.capi_let_go(before.address)

    def let_go(self, role: str) -> None:
        """Does not keep any more what has the role."""
        other = self.held.pop(role, None)
        if other is not None:
            lib.capi_let_go(other.address)

    def let_go_all(self) -> None:
        """Does not keep anything any more."""
        while self.held:
            lib.capi_let_go(self.held.popitem()[1].address)

    def query(self, iid: int) -> Interface | None:
        """The COM object with an interface of the object; None: it has no such interface."""
        if lib.capi_supports_iid(self.address, iid):
            return self
        if not self.others:
            self.others = [kind(self.thing, self) for kind in self.OTHERS if self.offers(kind)]
            _live.update((each.address, each) for each in self.others)
        return next((each for each in self.others if lib.capi_supports_iid(each.address, iid)), None)

    def offers(self, kind: type[Interface]) -> bool:
        """Whether the object has one of :attr:`OTHERS` now."""
        return True

    def release(self) -> None:
        """The program has released its last reference."""
        self.thing.release()

    # --- IUnknown, as far as it is not C ---

    def AddRef(self) -> int:
        """The program has no reference."""
        raise self._without_reference("AddRef is called without a reference", "AddRef")

    def ReleasedTooOften(self) -> None:
        raise self._without_reference("Release is called once too often", "Release")

    def _without_reference(self, what: str, operation: str) -> Error:
        return _refused(
            OBJECT_DELETED_IN_USE,
            f"{what} on {self.thing}.",
            operation,
            str(self.thing),
            "an object that the program has a reference to",
        )

    def Released(self, reference: int) -> None:
        """Gives the last reference back; ``reference`` says whose it is."""
        with lock:
            is_last = is_live(self) and not lib.capi_drop(self.address, reference)
            if is_last:
                _forget(self)
        if is_last:
            try:
                self.release()
            finally:
                self.let_go_all()  # at last: the device outlives its child

    def QueryInterface(self, riid: int, out: int) -> HResult:
        """For interfaces that are not in the vtable."""
        return hand_out(self.thing, riid, out)


class _Reason:
    """Why a device was removed: a number that C reads, and a note for ``dmlemu exec``."""

    def __init__(self) -> None:
        self.number = ffi.new("uint32_t *")

    def __call__(self, reason: HResult, cause: Report) -> None:
        self.number[0] = self.number[0] or reason  # the first one stays
        reports.removed(reason, cause)


def interface_of(thing: Any) -> Interface:
    """The COM object of an object."""
    with lock:
        found = _of_things.get(id(thing))
        if found is None:
            found = classes[type(thing)](thing)
            parent = getattr(thing, "get_device", None) or getattr(thing, "get_parent_device", None)
            if parent is not None:
                device = found.held["device"] = interface_of(parent())
                lib.capi_hold(device.address, _OF_OURS)
            _of_things[id(thing)] = _live[found.address] = found
        return found


def refuses(method: _Method) -> _Method:
    """Declares that a method always returns E_NOTIMPL; the page of interfaces says so."""
    REFUSING.add(method.__qualname__)
    return method


def is_live(interface: Interface) -> bool:
    """Whether the COM object is not released."""
    return _live.get(interface.address) is interface


def is_known(thing: Any) -> bool:
    """Whether the object has a COM object."""
    return id(thing) in _of_things


def publish(address: int, methods: Any) -> None:
    """Makes ``methods`` what functions with this first argument are called on."""
    _live[address] = methods


def reporter(address: int) -> Reporter | None:
    """The reports of the device that the object at an address belongs to."""
    thing: Any = getattr(_live.get(address), "thing", None)
    while thing is not None and not isinstance(thing, d3d12.Device):
        parent = getattr(thing, "get_parent_device", None) or getattr(thing, "get_device", None)
        thing = parent() if parent is not None else None
    return None if thing is None else thing.reports


_reasons: WeakKeyDictionary[Any, _Reason] = WeakKeyDictionary()  # by device


def push_reason(of: Interface, device: Any) -> None:
    """GetDeviceRemovedReason of a device is C: it reads a number that is set when the device is removed."""
    reason = _reasons.get(device)
    if reason is None:
        reason = _reasons[device] = _Reason()
        device.context.on_removal(reason)
    lib.capi_push(of.address, int(ffi.cast("uintptr_t", reason.number)))


def reject(address: int, error: Error) -> None:
    """A method without a result got arguments that no Python call can be given: Close fails, or the device
    is removed, as for all others."""
    thing: Any = getattr(_live.get(address), "thing", None)
    reject = getattr(thing, "reject", None) or getattr(getattr(thing, "context", None), "reject", None)
    if reject is not None:
        reject(error)


def list_among(address: int, *arguments: int) -> int:
    """The address of the list that a call records into; that of its object, if it records into none."""
    for each in (address, *arguments):
        if isinstance(getattr(_live.get(each), "thing", None), d3d12.CommandList):
            return each
    return address


def leave_alive(*, all_listed: bool) -> None:
    """Leaves the objects that the program has not released, with the lines that made them, to C.

    Static objects of the program may release them after Python's end: what is left then is printed.  Packages
    of Python keep many to the end: if not ``all_listed``, those of a program that runs Python are counted.
    """
    with lock:  # other threads still run
        lib.capi_keep_memory()
        left = [each for each in _of_things.values() if lib.capi_count(each.address)]
    if not left:
        return
    index = {each.address: i for i, each in enumerate(left)}
    lines = [_with_line(each.thing) if hasattr(each.thing, "created_at") else "" for each in left]
    texts = spell_text("\0".join(lines)).split("\0")  # together, so that symbols are looked up once
    rows = _lasting("struct capi_left[]", len(left))
    names = [getattr(each.thing, "kind", "object") for each in left]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    kinds = _lasting("struct capi_kind[]", len(numbers))
    for kind, name in zip(kinds, numbers, strict=True):
        kind.name = _lasting("char[]", name.encode())
    for row, each, text, name in zip(rows, left, texts, names, strict=True):
        row.kind = kinds + numbers[name]
        held = [index[other.address] for other in list(each.held.values()) if other.address in index]
        row.object, row.hold_count = each.address, len(held)
        row.holds = _lasting("uint32_t[]", held)
        row.text = _lasting("char[]", text.encode()) if text else ffi.NULL
    is_counted = lib.capi_has_python() and not all_listed
    lib.capi_leave(rows, len(left), kinds if is_counted else ffi.NULL, len(kinds))


def _with_line(thing: Any) -> str:
    """An object with the line that made it, which its own text has only without a name."""
    text, made = str(thing), getattr(thing, "created_at", "")
    return text if not made or made in text else f"{text}, created at {made}"


def hand_out(thing: Any, riid: int, out: int, holds: dict[str, Any] | None = None) -> HResult:
    """Writes the object's interface ``riid`` with a reference; E_NOINTERFACE: it has no such interface.

    ``holds``: objects that it keeps, by their roles.
    """
    with lock:
        whole = interface_of(thing)
        found = whole.query(riid) if riid else None
        if found is None:
            if not lib.capi_count(whole.address):
                _forget(whole)
                whole.let_go_all()
            write_pointer(out, 0)
            return HResult.E_NOINTERFACE
        for role, other in (holds or {}).items():
            whole.hold(role, other)
        lib.capi_give(found.address, out)
    return HResult.S_OK


def _forget(whole: Interface) -> None:
    """Forgets a COM object that nobody holds.  Called with the lock."""
    del _of_things[id(whole.thing)]
    for each in (*whole.others, whole):  # freed in this order, too: the others name it
        del _live[each.address]
        if Interface.keeps_released:
            _keep_name(each)
        lib.capi_free(each.address)


def _keep_name(each: Interface) -> None:
    """For the message about a later call on the object."""
    name = LateName(each.thing) if isinstance(each.thing, Object) else str(each.thing)
    _released[each.address] = name, call_site()
    while len(_released) > _MOST_RELEASED:
        _released.popitem(last=False)


def _stale(address: int, operation: str) -> Error:
    """The error of a call on a released object, or on what was never one."""
    name, site = _released.get(address, ("", None))
    what = name.with_line() if isinstance(name, LateName) else str(name)
    operation = operation.removeprefix("Object::")
    operation = "Release" if operation.startswith("Released") else operation
    if what:
        return _refused(
            OBJECT_DELETED_IN_USE,
            f"{operation} is called on {what}, which is released.",
            operation,
            what,
            "an object that is not released",
            (f"It was released at {site}",) if site else (),
        )
    return _refused(
        API_FOREIGN_POINTER,
        f"{operation} gets a pointer (0x{address:X}) that is not to an object of dmlemu.",
        operation,
        f"0x{address:X}",
        "a pointer that dmlemu gave out",
    )


def _refused(
    id: Declaration, text: str, operation: str, given: str, expected: str, context: tuple[str, ...] = ()
) -> Error:
    return error_of(
        id,
        text,
        api="D3D12",
        operation=operation,
        rule="IUnknown",
        field="this",
        given=given,
        expected=expected,
        context=context,
    )


def stale(address: int, operation: str) -> Error | None:
    """The error of a method called on a released object; None: the object lives."""
    return None if address in _live else _stale(address, operation)


# --- arguments ---


def thing(pointer: int, kind: type[_Kind], field: str, operation: str = "") -> _Kind | None:
    """The object of an interface pointer; None for NULL.  E_INVALIDARG: it points to none of the kind."""
    found = _live.get(pointer)
    if found is not None and isinstance(found.thing, kind):
        return found.thing
    if not pointer:
        return None
    if found is None:
        raise _stale(pointer, operation or field)
    expected = f"an {bases.get(kind) or classes[kind].__name__}"
    raise invalid(field, str(found.thing), expected, operation, API_WRONG_OBJECT)


def things(address: int, count: int, kind: type[_Kind], field: str, operation: str) -> list[_Kind | None]:
    """The objects of an array of interface pointers."""
    pointers = read_array("Q", address, count, field, operation)
    return [thing(each, kind, f"{field}[{i}]", operation) for i, each in enumerate(pointers)]


def invalid(
    field: str,
    given: object,
    expected: str,
    operation: str,
    id: Declaration = ARGUMENT_RANGE,
    *,
    api: str = "D3D12",
    hresult: HResult = HResult.E_INVALIDARG,
    rule: str = "",
) -> Error:
    """An error for an argument of C that the Python API cannot be given; ``given`` None: it is NULL."""
    return error_of(
        API_NULL_POINTER if given is None else id,
        "{field} is NULL." if given is None else f"{{field}} ({{given}}) is not {expected}.",
        api=api,
        operation=operation,
        rule=rule,
        field=field,
        given="NULL" if given is None else given,
        expected=expected,
        hresult=hresult,
    )


def guid(address: int, operation: str) -> UUID:
    """The GUID at an address."""
    if not address:
        raise invalid("guid", None, "the address of a GUID", operation)
    return UUID(bytes_le=read_bytes(address, 16))


def write_pointer(out: int, value: int) -> None:
    """Stores an interface pointer, or NULL."""
    _POINTER.pack_into(MEMORY, out, value)
