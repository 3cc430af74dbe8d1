"""Base of all Direct3D objects: name, private data, the line that created it, release."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from ...errors import CallSite, HResult, call_site, shorten, spell_site
from ..types.arguments import buffer, instance, integer, text
from ..types.arguments import callback as check_callback
from .rows import OB1, DestructionCallback

_Self = TypeVar("_Self", bound="Object")

WKPDID_D3D_DEBUG_OBJECT_NAME = UUID("429b8c22-9188-4b0c-8742-acb0bf85c200")
WKPDID_D3D_DEBUG_OBJECT_NAME_W = UUID("4cca5fd8-921f-42c8-8566-70caf2a9b741")


class LateName:
    """What ``str`` of an object was when this was made, formatted when it is shown; keeps no object alive."""

    __slots__ = ("_created", "_detail", "_kind", "_name", "_serial")

    def __init__(self, thing: Object) -> None:
        self._kind, self._serial, self._name = thing.kind, thing.serial, thing.name
        self._detail, self._created = thing._detail, thing._created

    def __str__(self) -> str:
        details = [self._detail] if self._detail else []
        if self._created is not None and not self._name:
            details.append(f"created at {self._created.innermost}")
        title = _title(self._kind, self._serial, self._name)
        return title + (f" ({', '.join(details)})" if details else "")

    def with_line(self) -> str:
        """The same with the line that created it, which is missing where it has a name."""
        made = f", created at {self._created.innermost}" if self._name and self._created is not None else ""
        return f"{self}{made}"


def _title(kind: str, serial: int, name: str) -> str:
    return f"{kind} '{shorten(name)}'" if name else f"{kind} #{serial}"


class _Destruction:
    """The destruction callbacks of one object."""

    def __init__(self, thing: Object) -> None:
        self.callbacks: dict[int, tuple[Callable[[Any], object], Any]] = {}
        self._next = 1
        self.call = weakref.finalize(thing, _call_all, self.callbacks)  # at most once
        self.call.atexit = False

    def register(self, callback: Callable[[Any], object], data: Any) -> int:
        number, self._next = self._next, self._next + 1
        self.callbacks[number] = callback, data
        return number


def _call_all(callbacks: dict[int, tuple[Callable[[Any], object], Any]]) -> None:
    while callbacks:
        callback, data = callbacks.pop(next(iter(callbacks)))
        callback(data)


class Object:
    """Base of all Direct3D objects; mirrors ``ID3D12Object``.

    An object is its own context manager: leaving the block releases it.  Otherwise it is
    released with the last reference to it.  ``serial`` counts the device's objects of one kind.
    """

    kind = "object"
    _hardware: tuple[Any, ...] = ()  # hardware objects with the same name, released with this object
    _notes_release: ClassVar[bool] = True  # messages may say where an object of this class was released

    def __init__(self) -> None:
        self.serial = 0
        self._created = call_site()
        self._private_data: dict[UUID, object] = {}
        self._destruction: _Destruction | None = None
        self.released = False
        self.released_at: CallSite | None = None

    @property
    def created_at(self) -> str:
        """The ``file:line`` that created the object; empty when it was not created by a program."""
        return self._created.innermost if self._created is not None else ""

    # --- names and private data ---

    def set_name(self, name: str) -> None:
        """Names the object in messages.

        The name is also private data under ``WKPDID_D3DDebugObjectNameW``, in UTF-32 with its
        terminator, as on Linux.  Mirrors ``ID3D12Object::SetName``
        (nf-d3d12-id3d12object-setname).
        """
        raw = text(name, "Name").encode("utf-32-le", "surrogatepass")
        self._private_data[WKPDID_D3D_DEBUG_OBJECT_NAME_W] = raw + bytes(4)
        self._renamed()

    @property
    def name(self) -> str:
        """The name set by :meth:`set_name` or as private data; empty if there is none."""
        if not self._private_data:
            return ""
        wide = self._private_data.get(WKPDID_D3D_DEBUG_OBJECT_NAME_W)
        if isinstance(wide, bytes):
            return wide.decode("utf-32-le", "replace").rstrip("\0")
        narrow = self._private_data.get(WKPDID_D3D_DEBUG_OBJECT_NAME)
        if isinstance(narrow, bytes):
            return narrow.decode("utf-8", "replace").rstrip("\0")
        return ""

    def get_private_data(self, guid: UUID) -> bytes:
        """The bytes stored under ``guid``.

        Mirrors ``ID3D12Object::GetPrivateData`` (nf-d3d12-id3d12object-getprivatedata).  Raises
        DXGI_ERROR_NOT_FOUND when nothing is stored; an object stored by
        :meth:`set_private_data_interface` reads as its address, None as 0.
        """
        if instance(guid, UUID, "guid") not in self._private_data:
            raise OB1.guid(self, given=str(guid))
        value = self._private_data[guid]
        return value if isinstance(value, bytes) else struct.pack("<Q", 0 if value is None else id(value))

    def set_private_data(self, guid: UUID, data: bytes | None) -> HResult:
        """Stores a copy of ``data``, any buffer, under ``guid``; None removes it.

        Returns S_OK, or S_FALSE when there was nothing to remove.  Mirrors
        ``ID3D12Object::SetPrivateData`` (nf-d3d12-id3d12object-setprivatedata).
        """
        instance(guid, UUID, "guid")
        if data is None:
            found = guid in self._private_data
            self._private_data.pop(guid, None)
            self._renamed()
            return HResult.S_OK if found else HResult.S_FALSE
        self._private_data[guid] = buffer(data, "data")
        self._renamed()
        return HResult.S_OK

    def set_private_data_interface(self, guid: UUID, data: object | None) -> HResult:
        """Stores a reference to an object, which keeps it alive; None is a null pointer.

        A null pointer is stored like any other; :meth:`set_private_data` with None removes it.
        Mirrors ``ID3D12Object::SetPrivateDataInterface``.
        """
        self._private_data[instance(guid, UUID, "guid")] = data
        self._renamed()
        return HResult.S_OK

    # --- destruction ---

    def register_destruction_callback(self, callback: Callable[[Any], object], data: Any = None) -> int:
        """Calls ``callback(data)`` once when the object is released or garbage collected; returns an id.

        Several are called in the order of their registration.  They must not use the object.  Mirrors
        ``ID3DDestructionNotifier::RegisterDestructionCallback``.
        """
        check_callback(callback, "callbackFn")
        if self._destruction is None:
            self._destruction = _Destruction(self)
        return self._destruction.register(callback, data)

    def unregister_destruction_callback(self, callback_id: int) -> None:
        """E_INVALIDARG: no callback has that id, or it was called.

        Mirrors ``ID3DDestructionNotifier::UnregisterDestructionCallback``.
        """
        known = {} if self._destruction is None else self._destruction.callbacks
        number = integer(callback_id, "callbackID")
        if known.pop(number, None) is None:
            raise DestructionCallback.callback_id(self, given=number)

    # --- messages ---

    def __str__(self) -> str:
        """The title, followed in parentheses by its details and, if unnamed, the line that created it."""
        return str(LateName(self))

    @property
    def _detail(self) -> str:
        return ""

    def title(self) -> str:
        """The short name, for sentences that follow one with the full name."""
        return _title(self.kind, self.serial, self.name)

    def _renamed(self) -> None:
        label = str(self)
        for thing in self._hardware:
            thing.label = label

    def __repr__(self) -> str:
        return f"<{self}{' (released)' if self.released else ''}>"

    # --- lifetime ---

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The copy would share the hardware: releasing it would free the original's memory."""
        raise TypeError(
            f"{self.title()} cannot be copied or pickled: it belongs to a device of this process."
        )

    def release(self) -> None:
        """Releases the object (``IUnknown::Release`` of the last reference); repeating it has no effect."""
        self._end(emit=True)

    def close(self) -> None:
        """The same as :meth:`release`."""
        self.release()

    def discard(self) -> None:
        """:meth:`release` after an exception: not the program's own call, so checks ignore it."""
        self._end(emit=False)

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(emit=kind is None)  # work interrupted by an exception is not an error of the program

    def _end(self, *, emit: bool) -> None:
        try:
            self._release(emit=emit)
        finally:
            if self.released and self._destruction is not None:
                self._destruction.call()

    def _release(self, *, emit: bool) -> None:
        """:meth:`release`; ``emit``: the program called it, so an event is emitted for the checks."""
        self.released = True
        if self._notes_release:
            self.released_at = call_site()


def released_at(thing: Object) -> tuple[str, ...]:
    """The line that released the object, for the context of a report."""
    return (f"It was released at {spell_site(thing.released_at)}",) if thing.released_at else ()
