"""Tables of a FlatBuffer, read with every offset checked.

The format is https://flatbuffers.dev/internals: offsets into one buffer, little endian.  The FlatBuffers
package has no verifier for Python, and a file may be untrusted: here no offset leaves the buffer, and tables,
vectors and strings that share bytes cannot make a small file large (``spend``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NoReturn

from dmlemu.frontends.rows import MODEL_GRAPH

from .errors import model_error

__all__ = ["Table", "root_table"]

_OFFSET = struct.Struct("<I")
_BACK = struct.Struct("<i")
_SHORT = struct.Struct("<H")


_TABLE = 8  # bytes that a table takes at least: the offset to it, and its offset to the vtable


class _Buffer:
    """The bytes of the file; ``left``: how many bytes of tables, vectors and strings may still be read.

    Strings are often shared, so there may be more than the file has.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = 4 * len(data)

    def unpack(self, form: struct.Struct, at: int, path: str) -> tuple[Any, ...]:
        if not 0 <= at <= len(self.data) - form.size:
            self.fail(path, f"lies at byte {at}", f"a place in the file's {len(self.data)} bytes")
        return form.unpack_from(self.data, at)

    def offset(self, at: int, path: str) -> int:
        """The position that the unsigned offset at ``at`` points to."""
        return at + int(self.unpack(_OFFSET, at, path)[0])

    def spend(self, size: int, path: str) -> None:
        self.left -= size
        if self.left < 0:
            self.fail(path, f"needs {size} bytes", f"not more in all than {4 * len(self.data)}")

    def fail(self, path: str, what: str, expected: str) -> NoReturn:
        message = f"The serialized graph is damaged: {path} {what}."
        raise model_error(MODEL_GRAPH, path, message, given=what, expected=expected)


class Table:
    """A table of the file; ``path`` is its place in the schema (``nodes[2].desc``), for messages.

    Fields are given by their number in the schema, counted from 0, and their name.
    """

    def __init__(self, buffer: _Buffer, at: int, path: str) -> None:
        self._buffer, self._at, self.path = buffer, at, path
        buffer.spend(_TABLE, path)
        self._vtable = at - buffer.unpack(_BACK, at, path)[0]
        self._count = buffer.unpack(_SHORT, self._vtable, path)[0] // 2 - 2

    def place(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, number: int) -> bool:
        return self._field(number, "") is not None

    def scalar(self, number: int, name: str, form: str, default: int = 0) -> int:
        """A number in :mod:`struct`'s ``form``; ``default`` when it is not stored."""
        at = self._field(number, name)
        if at is None:
            return default
        return int(self._buffer.unpack(struct.Struct(f"<{form}"), at, self.place(name))[0])

    def string(self, number: int, name: str) -> str:
        """A string; empty when it is not stored."""
        at = self._pointer(number, name)
        return "" if at is None else self._text(at, self.place(name))

    def strings(self, number: int, name: str) -> list[str]:
        return [self._text(at, place) for at, place in self._offsets(number, name)]

    def tables(self, number: int, name: str) -> list[Table]:
        return [Table(self._buffer, at, place) for at, place in self._offsets(number, name)]

    def table(self, number: int, name: str) -> Table:
        """A table, or a union's member; it must be stored."""
        return Table(self._buffer, self._stored(number, name), self.place(name))

    def members(self, number: int, name: str, form: str) -> tuple[Any, ...]:
        """The members of a union's struct, in :mod:`struct`'s ``form``; it must be stored."""
        return self._buffer.unpack(struct.Struct(f"<{form}"), self._stored(number, name), self.place(name))

    def vector(self, number: int, name: str, form: str) -> tuple[Any, ...]:
        """A vector of numbers, each in ``form``; empty when it is not stored."""
        at = self._pointer(number, name)
        return () if at is None else self._elements(at, form, self.place(name))

    def data(self, number: int, name: str) -> bytes:
        """A vector of bytes; empty when it is not stored."""
        at = self._pointer(number, name)
        return b"" if at is None else self._bytes(at, self.place(name))

    def _stored(self, number: int, name: str) -> int:
        at = self._pointer(number, name)
        if at is None:
            self._buffer.fail(self.place(name), "is not stored", "a value")
        return at

    def _pointer(self, number: int, name: str) -> int | None:
        at = self._field(number, name)
        return None if at is None else self._buffer.offset(at, self.place(name))

    def _field(self, number: int, name: str) -> int | None:
        """The position of a field; None when it is not stored."""
        if number >= self._count:
            return None
        offset = self._buffer.unpack(_SHORT, self._vtable + 4 + 2 * number, self.place(name))[0]
        return self._at + offset if offset else None

    def _offsets(self, number: int, name: str) -> Iterator[tuple[int, str]]:
        at = self._pointer(number, name)
        if at is None:
            return
        for i, offset in enumerate(self._elements(at, "I", self.place(name))):
            yield at + 4 * (i + 1) + offset, f"{self.place(name)}[{i}]"

    def _elements(self, at: int, form: str, path: str) -> tuple[Any, ...]:
        count = self._buffer.unpack(_OFFSET, at, path)[0]
        self._buffer.spend(count * struct.calcsize(f"<{form}"), path)
        return self._buffer.unpack(struct.Struct(f"<{count}{form}"), at + 4, path)

    def _bytes(self, at: int, path: str) -> bytes:
        count = self._buffer.unpack(_OFFSET, at, path)[0]
        self._buffer.spend(count, path)
        (raw,) = self._buffer.unpack(struct.Struct(f"<{count}s"), at + 4, path)
        return bytes(raw)

    def _text(self, at: int, path: str) -> str:
        try:
            return self._bytes(at, path).decode()
        except UnicodeDecodeError:
            self._buffer.fail(path, "is not UTF-8", "UTF-8 text")


def root_table(data: bytes) -> Table:
    """The root table of a file; ModelError (MODEL_GRAPH) where an offset leads out of it."""
    buffer = _Buffer(data)
    return Table(buffer, buffer.offset(0, "the root table"), "")
