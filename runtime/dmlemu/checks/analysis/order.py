"""Barrier order: which commands of an ExecuteCommandLists call have ended before another one begins.

A barrier makes whole commands wait: each command behind it that accesses the named resource begins when every
command before it that accesses the resource has ended.  A command that begins behind another one thus also
begins behind everything that one waited for: order is transitive, whatever resources the barriers name.
"""

from __future__ import annotations

__all__ = ["ALIASING", "TRANSITION", "UAV_BARRIER", "Done", "Order", "holds", "union", "with_one"]

TRANSITION, ALIASING, UAV_BARRIER = 0, 1, 2  # D3D12_RESOURCE_BARRIER_TYPE

Done = tuple[int, int]
"""A set of commands, which count from 0 in each call: all below the first number, and bit ``i`` of the second
stands for that number + ``i``."""

_NONE: Done = (0, 0)


def union(a: Done, b: Done) -> Done:
    """The union of two sets."""
    if a[0] < b[0]:
        a, b = b, a
    low, bits = a
    more = b[1] >> (low - b[0])
    return a if not more else _trim(low, bits | more)


def with_one(done: Done, command: int) -> Done:
    """The set with one command added."""
    low, bits = done
    if not bits and command == low:
        return low + 1, 0
    return done if command < low else _trim(low, bits | 1 << (command - low))


def holds(done: Done, command: int) -> bool:
    """Whether the set contains the command."""
    low, bits = done
    return command < low or bool(bits >> (command - low) & 1)


def _trim(low: int, bits: int) -> Done:
    ones = (bits ^ (bits + 1)).bit_length() - 1
    return low + ones, bits >> ones


class Order:
    """Tracks the commands and barriers of a call.

    Address 0 stands for any resource; it is among the ``addresses`` of every command.
    """

    def __init__(self) -> None:
        self._start: Done = _NONE
        # Commands that an access to a resource begins behind: any access, and accesses by view.
        self._before: dict[int, Done] = {}
        self._before_views: dict[int, Done] = {}
        # Commands that have accessed a resource, with all that these began behind.
        self._views: dict[int, Done] = {}
        self._copies: dict[int, Done] = {}

    def reset(self, commands: int = 0) -> None:
        """The first ``commands`` commands have ended before anything that follows."""
        self._start = commands, 0
        for each in (self._before, self._before_views, self._views, self._copies):
            each.clear()

    def copy(self) -> Order:
        """An independent copy."""
        made = Order()
        made._start = self._start
        made._before, made._before_views = self._before.copy(), self._before_views.copy()
        made._views, made._copies = self._views.copy(), self._copies.copy()
        return made

    def begin(self, by_view: bool, addresses: tuple[int, ...]) -> Done:
        """Commands that have ended when one begins that accesses these resources, by views or copies."""
        done = self._start
        for known in (self._before, self._before_views) if by_view else (self._before,):
            if known:
                for address in addresses:
                    more = known.get(address)
                    if more is not None and (more[1] or more[0] > done[0]):
                        done = union(done, more) if more[1] or done[1] else more
        return done

    def end(self, by_view: bool, addresses: tuple[int, ...], done: Done) -> None:
        """Ends the next command; ``done`` contains it and all that it began behind."""
        touched = self._views if by_view else self._copies
        for address in addresses:
            known = touched.get(address)
            if known is None or (not known[1] and known[0] <= done[0]):
                touched[address] = done
            else:
                touched[address] = union(done, known)

    def pass_barrier(self, kind: int, first: int, then: int, commands: int) -> None:
        """Passes a barrier behind ``commands`` commands; a barrier on one resource names it twice."""
        if kind == UAV_BARRIER:
            self._before_views[first] = self.viewed(first)  # which includes the former value
            return
        if first == then == 0:
            self.reset(commands)
            return
        done = union(self._views.get(first, _NONE), self._copies.get(first, _NONE))
        self._before[then] = union(done, self._before.get(then, _NONE))

    def viewed(self, address: int) -> Done:
        """Commands that a UAV barrier on the resource would wait for."""
        return self._views.get(address, _NONE)

    def join(self, address: int, done: Done) -> None:
        """Commands with views of the resource begin behind these from now on."""
        self._before_views[address] = union(done, self._before_views.get(address, _NONE))
