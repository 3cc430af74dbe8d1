"""The tiles of a reserved address range, and the heap tiles that they map to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from weakref import WeakSet

from .host import HostRange, MappingPromise
from .storage import TILE_SIZE, Mapped, Storage


class Run:
    """Consecutive tiles of a reserved range that map to consecutive tiles of one heap (or NULL)."""

    def __init__(self, first: int, count: int, storage: Storage | None, heap_tile: int) -> None:
        self.first = first
        self.count = count
        self.storage = storage
        self.heap_tile = heap_tile

    @property
    def end(self) -> int:
        return self.first + self.count

    def part(self, first: int, end: int) -> Run:
        """The tiles of the run in [first, end)."""
        first, end = max(first, self.first), min(end, self.end)
        return Run(first, end - first, self.storage, self.heap_tile + (first - self.first))


def split_runs(tile: int, count: int, storage: Storage | None, heap_tile: int, reuse: bool) -> Iterator[Run]:
    if reuse and storage is not None:
        for i in range(count):
            yield Run(tile + i, 1, storage, heap_tile)
    else:
        yield Run(tile, count, storage, heap_tile)


class Reservation(Mapped):
    """The host addresses of a reserved allocation and their mappings, as contiguous runs.

    Until an interrupted :meth:`map` is repeated, the host may have mapped one run that is not in ``runs``.
    """

    def __init__(self, tiles: int) -> None:
        self.tiles = tiles
        self.runs = [Run(0, tiles, None, 0)]
        super().__init__(HostRange(tiles * TILE_SIZE))
        self._null_ranges: list[tuple[int, int]] | None = None
        self._promises: WeakSet[MappingPromise] = WeakSet()

    def promise(self, edges: set[int]) -> MappingPromise:
        """Keeps free what mapping tiles later may need, which begins and ends runs at these tiles.

        Runs that begin there now need no more, but another mapping that is queued may remove them before:
        they are counted on only when no other one is queued, and all together would be refused.
        OSError: the host has not so many mappings.
        """
        edges = edges - {0, self.tiles}
        try:
            promise = MappingPromise(len(edges))
        except OSError:
            if any(True for _ in self._promises):
                raise
            promise = MappingPromise(len(edges - {run.first for run in self.runs}))
        self._promises.add(promise)
        return promise

    def map(self, runs: Iterable[Run]) -> None:
        """Replaces the mappings of the tiles of each run.

        OSError: the host refuses; the runs before that one are mapped.
        """
        try:
            for run in runs:
                self._replace(run)
        finally:
            self._null_ranges = None

    def _replace(self, run: Run) -> None:
        start = bisect_right(self.runs, run.first, key=_first) - 1
        end = bisect_left(self.runs, run.end, key=_first)
        replaced, replacing = self.runs[start:end], [run]
        if replaced[0].first < run.first:
            replacing.insert(0, replaced[0].part(0, run.first))
        if replaced[-1].end > run.end:
            replacing.append(replaced[-1].part(run.end, self.tiles))
        self._map(run, len(self.runs) + len(replacing) - len(replaced))
        self.runs[start:end] = replacing

    def _map(self, run: Run, runs: int) -> None:
        first, size = run.first * TILE_SIZE, run.count * TILE_SIZE
        if run.storage is None:
            self.range.put(first, size, -1, 0, runs)
        else:
            offset = run.storage.file_offset + run.heap_tile * TILE_SIZE
            self.range.put(first, size, run.storage.file.fd, offset, runs)

    def null_ranges(self) -> list[tuple[int, int]]:
        """Start and size in bytes of the ranges of NULL tiles."""
        ranges = self._null_ranges
        if ranges is None:
            ranges = [
                (run.first * TILE_SIZE, run.count * TILE_SIZE) for run in self.runs if run.storage is None
            ]
            self._null_ranges = ranges
        return ranges


def _first(run: Run) -> int:
    return run.first
