"""The contents of memory over time: pages of 4 KiB, equal ones kept once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from dmlemu_hw.memory_spans import Span

from .versions import Versions

__all__ = ["PAGE", "Pages", "pieces"]

PAGE = 4096
"""Bytes of a page."""

_FIRST = -1  # before the first moment


class Pages:
    """Versions of pages, by their number.  ``size``: bytes that are kept."""

    def __init__(self) -> None:
        self.size = 0
        self._contents: dict[bytes, bytes] = {}
        self._versions: Versions[int, bytes] = Versions()
        self._changed: dict[int, list[int]] = {}

    def __contains__(self, page: object) -> bool:
        return page in self._versions

    def differs(self, page: int, data: memoryview) -> bool:
        """Whether a known page holds something else than its latest version."""
        latest = self._versions.last(page)
        return latest is not None and latest != _key(data)

    def put(self, page: int, moment: int, data: memoryview) -> None:
        """The page as it is after ``moment``; a page that is new has always been like this."""
        key, latest = _key(data), self._versions.last(page)
        if key == latest:
            return
        if key not in self._contents:
            self._contents[key] = bytes(data)
            self.size += len(self._contents[key])
        self._versions.set(_FIRST if latest is None else moment, page, key)
        if latest is not None:
            self._changed.setdefault(moment, []).append(page)

    def get(self, page: int, moment: int) -> bytes | None:
        """The page after ``moment``; None: it was never seen."""
        key = self._versions.get(moment, page)
        return None if key is None else self._contents[key]

    def changed(self, moment: int) -> list[int]:
        """The pages that this moment changed."""
        return sorted(set(self._changed.get(moment, ())))


def _key(data: memoryview) -> bytes:
    return blake2b(data, digest_size=16).digest()


def pieces(spans: Iterable[Span], begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The pages under bytes [begin, end) of a buffer: page, first byte in it and in the buffer, bytes."""
    for span in spans:
        at, last = max(begin, span.start), min(end, span.start + span.size)
        while at < last:
            page, first = divmod(span.heap + span.offset + at - span.start, PAGE)
            size = min(PAGE - first, last - at)
            yield page, first, at, size
            at += size
