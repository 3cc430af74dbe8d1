"""The bytes that a page holds: of small buffers all, of large ones the parts that it shows."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from dmlemu_hw.memory_spans import Span

from .. import Run
from ..pages import pieces

__all__ = ["BLOCK", "Memory"]

BLOCK = 256  # bytes, a power of two
_WHOLE = 4096  # buffers of so many bytes are kept whole
_AROUND = 1024  # bytes at both ends of what a command accesses
_MOST = 8 << 20  # bytes of contents and changes in a page


class Memory:
    """Chooses blocks of buffers, then gives their contents at the end and what each moment changed."""

    def __init__(self, run: Run, count: int) -> None:
        self.notes: list[str] = []
        self._run, self._count = run, count
        self._blocks: list[set[int]] = [set() for _ in run.buffers]
        for blocks, buffer in zip(self._blocks, run.buffers, strict=True):
            if buffer.size <= _WHOLE:
                blocks.update(range(0, buffer.size, BLOCK))
            else:
                blocks.update(range(0, _AROUND, BLOCK))

    def show(self, buffer: int, begin: int, end: int, grids: list[Any]) -> None:
        """The page shows bytes [begin, end) of a buffer, and the elements of ``grids``."""
        blocks, size = self._blocks[buffer], self._run.buffers[buffer].size
        for first, last in ((begin, min(end, begin + _AROUND)), (max(begin, end - _AROUND), end)):
            blocks.update(range(first - first % BLOCK, min(last, size), BLOCK))
        for grid in grids:
            for row in [] if grid is None else grid["rows"]:
                for cell in row or ():
                    if cell is not None and cell[0] < size:
                        blocks.update((cell[0] // BLOCK * BLOCK, min(cell[0] + 7, size - 1) // BLOCK * BLOCK))

    def buffers(self) -> list[dict[str, Any]]:
        """The buffers with their contents, in the order of ``Run.buffers``."""
        deltas = self._deltas()
        found: list[dict[str, Any]] = []
        left, left_out = _MOST, 0
        for number in range(len(self._blocks)):
            blocks = sorted(self._blocks[number])
            cost = len(blocks) * BLOCK + sum(len(delta.flips) for delta in deltas[number])
            if cost > left:
                blocks, deltas[number] = [], []
                left_out += 1
            else:
                left -= cost
            found.append(self._buffer(number, blocks, deltas[number]))
        if left_out:
            self.notes.append(
                f"The bytes of {left_out} buffers are left out: a page holds {_MOST >> 20} MiB."
            )
        return found

    def _deltas(self) -> list[list[_Delta]]:
        """What each moment changed of the chosen blocks of each buffer, through whichever buffer."""
        found: list[list[_Delta]] = [[] for _ in self._blocks]
        places = [_Places() for _ in self._blocks]
        for moment in range(self._count):
            pages = self._run.pages.changed(moment)
            for number in range(len(self._blocks)):
                spans = self._run.spans.get(moment, number) or ()
                if spans is not places[number].spans:  # tiles are mapped elsewhere
                    places[number] = _Places(spans, self._blocks[number])
                    pieces = places[number].all()
                else:
                    pieces = places[number].of_pages(pages)
                for begin, end in pieces:
                    found[number] += self._flips(number, moment, begin, end)
        return found

    def _flips(self, number: int, moment: int, begin: int, end: int) -> Iterator[_Delta]:
        before = self._run.content(number, moment - 1, begin, end).data
        after = self._run.content(number, moment, begin, end).data
        if before != after:
            flips = int.from_bytes(before, "little") ^ int.from_bytes(after, "little")
            yield _Delta(moment, begin, flips.to_bytes(end - begin, "little"))

    def _buffer(self, number: int, blocks: list[int], deltas: list[_Delta]) -> dict[str, Any]:
        buffer = self._run.buffers[number]
        end = self._count if buffer.released is None else min(buffer.released, self._count)
        data, unknown = bytearray(), []
        for block in blocks:
            found = self._run.content(number, end - 1, block, min(block + BLOCK, buffer.size))
            data += found.data.ljust(BLOCK, b"\0")
            unknown += [(block + first, block + last) for first, last in found.unknown]
        place = {block: i * BLOCK for i, block in enumerate(blocks)}
        return {
            "name": buffer.name,
            "size": buffer.size,
            "heap": buffer.heap_type,
            "created": buffer.created,
            "released": buffer.released,
            "blocks": blocks,
            "bytes": _text(data),
            "unknown": unknown,
            "deltas": [
                (each.moment, place[each.begin - each.begin % BLOCK] + each.begin % BLOCK, _text(each.flips))
                for each in deltas
            ],
        }


class _Places:
    """The pages under the chosen blocks of a buffer."""

    def __init__(self, spans: tuple[Span, ...] = (), blocks: Iterable[int] = ()) -> None:
        self.spans = spans
        self._pieces: dict[int, list[tuple[int, int]]] = {}  # bytes [begin, end) by page
        for block in blocks:
            for page, _, begin, size in pieces(spans, block, block + BLOCK):
                self._pieces.setdefault(page, []).append((begin, begin + size))

    def all(self) -> Iterator[tuple[int, int]]:
        return chain.from_iterable(self._pieces.values())

    def of_pages(self, pages: Iterable[int]) -> Iterator[tuple[int, int]]:
        return chain.from_iterable(self._pieces.get(page, ()) for page in pages)


class _Delta(NamedTuple):
    """Bytes from ``begin`` that a moment changed: the exclusive or of before and after."""

    moment: int
    begin: int
    flips: bytes


def _text(data: bytes | bytearray) -> str:
    return b64encode(data).decode("ascii")
