"""Values that change, by the number of the moment that set them: any moment can be asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

__all__ = ["Versions"]

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Versions(Generic[_Key, _Value]):
    """A dictionary of which every earlier state can still be read."""

    def __init__(self) -> None:
        self._moments: dict[_Key, list[int]] = {}
        self._values: dict[_Key, list[_Value]] = {}
        self._keys: dict[int, dict[_Key, None]] = {}  # by the moment that set them

    def __contains__(self, key: object) -> bool:
        return key in self._moments

    def set(self, moment: int, key: _Key, value: _Value) -> None:
        """From ``moment`` on the value is this one; moments of a key never decrease."""
        moments, values = self._moments.setdefault(key, []), self._values.setdefault(key, [])
        if moments and moments[-1] == moment:
            values[-1] = value
        elif not values or values[-1] != value:
            moments.append(moment)
            values.append(value)
            self._keys.setdefault(moment, {})[key] = None

    def get(self, moment: int, key: _Key) -> _Value | None:
        """The value after ``moment``; None: it had none yet."""
        at = bisect_right(self._moments.get(key, ()), moment)
        return self._values[key][at - 1] if at else None

    def since(self, moment: int, key: _Key) -> int | None:
        """The moment that set the value after ``moment``; None: it had none yet."""
        moments = self._moments.get(key, ())
        at = bisect_right(moments, moment)
        return moments[at - 1] if at else None

    def changes(self, moment: int) -> dict[_Key, _Value]:
        """The values that ``moment`` set."""
        found = ((key, self.get(moment, key)) for key in self._keys.get(moment, ()))
        return {key: value for key, value in found if value is not None}

    def change(self, change: Callable[[_Value], _Value]) -> None:
        """Changes each value."""
        for values in self._values.values():
            values[:] = map(change, values)

    def last(self, key: _Key) -> _Value | None:
        """The latest value."""
        values = self._values.get(key)
        return values[-1] if values else None

    def items(self, moment: int) -> Iterator[tuple[_Key, _Value]]:
        """All keys that have a value after ``moment``."""
        for key in self._moments:
            value = self.get(moment, key)
            if value is not None:
                yield key, value
