"""Which cases are still to be run, and how many of them make a piece."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .model import Piece, PieceResult, Spec

__all__ = ["Schedule"]

_SECONDS = 1.0  # that a piece should take
_MOST_CASES = 100_000  # of a piece
_MOST_GROWTH = 8  # times as many cases as the last piece whose time is known
_WEIGHT = 0.3  # of a new piece in the mean


class Schedule:
    """The open ranges of each configuration.  Configurations take turns, so that a campaign which ends early
    has tried all of them.  ``seconds``: what a piece should take."""

    def __init__(self, spec: Spec, done: Iterable[Piece], seconds: float = _SECONDS) -> None:
        self.spec, self.seconds = spec, seconds
        self.left = spec.total
        self._open: list[deque[Piece]] = []
        self._taken = [0] * len(spec.configurations)
        self._each: list[float | None] = [None] * len(spec.configurations)  # seconds of a case
        self._size = [1] * len(spec.configurations)
        ranges = list(done)
        for number in range(len(spec.configurations)):
            begin, end = number * spec.cases, (number + 1) * spec.cases
            mine = [each for each in ranges if begin <= each.first < end]
            self._open.append(deque(_gaps(begin, end, mine)))
            done_here = sum(each.count for each in mine)
            self._taken[number] += done_here
            self.left -= done_here

    def take(self) -> Piece | None:
        """The next piece to be run; None: there is none."""
        ready = [number for number, gaps in enumerate(self._open) if gaps]
        if not ready:
            return None
        number = min(ready, key=self._taken.__getitem__)
        gap = self._open[number].popleft()
        piece = Piece(gap.first, min(gap.count, self._size[number]))
        if piece.count < gap.count:
            self._open[number].appendleft(Piece(piece.end, gap.count - piece.count))
        self._taken[number] += piece.count
        return piece

    def give_back(self, piece: Piece) -> None:
        """A piece that was not run: it is the next one."""
        number = piece.first // self.spec.cases
        self._open[number].appendleft(piece)
        self._taken[number] -= piece.count

    def done(self, result: PieceResult) -> None:
        """Learns how long a case takes."""
        piece = result.piece
        number = piece.first // self.spec.cases
        self.left -= piece.count
        each = max(result.seconds, 1e-6) / piece.count
        before = self._each[number]
        mean = self._each[number] = each if before is None else before + _WEIGHT * (each - before)
        wanted = int(self.seconds / mean)
        self._size[number] = max(1, min(wanted, _MOST_GROWTH * self._size[number], _MOST_CASES))


def _gaps(begin: int, end: int, done: Iterable[Piece]) -> Iterable[Piece]:
    """What lies between pieces that are done."""
    at = begin
    for each in sorted(done):
        if each.first > at:
            yield Piece(at, each.first - at)
        at = max(at, each.end)
    if at < end:
        yield Piece(at, end - at)
