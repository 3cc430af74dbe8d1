"""Sets of values that a rule allows: their text in messages, a sample, and values just outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

__all__ = [
    "Among",
    "Between",
    "Choose",
    "Divisor",
    "Exactly",
    "Except",
    "Multiple",
    "OneOf",
    "Positive",
    "Values",
]

Choose = Callable[[int, int], int]
"""A whole number from the first to the second, both included."""


class Values:
    """A set of legal values."""

    __slots__ = ()

    @staticmethod
    def spelled(value: object) -> str:
        """A value as messages spell it."""
        return value.name if isinstance(value, Enum) else "none" if value is None else str(value)

    @property
    def expected(self) -> str:
        """``1 or more``."""
        raise NotImplementedError

    @property
    def refusal(self) -> str:
        """The clause for any other value: ``is less than 1``."""
        return f"is not {self.expected}"

    def __contains__(self, value: object) -> bool:
        raise NotImplementedError

    def pick(self, choose: Choose, domain: Values) -> Any:
        """A value of the set that is also in ``domain``, preferably small.  LookupError: there is none."""
        raise NotImplementedError

    def outside(self, domain: Values) -> Sequence[Any]:
        """Some values of ``domain`` that are not in the set, nearest first."""
        near = sorted(domain.members) if isinstance(domain, Among) else self.edges()
        return [value for value in near if value in domain and value not in self]

    def edges(self) -> Sequence[Any]:
        """Numbers just outside the set, or with a special meaning (a size of 1 looks like a broadcast)."""
        return ()


class Exactly(Values):
    """One value."""

    __slots__ = ("only",)

    def __init__(self, only: Any) -> None:
        self.only = only

    @property
    def expected(self) -> str:
        return self.spelled(self.only)

    def __contains__(self, value: object) -> bool:
        return bool(value == self.only)

    def pick(self, choose: Choose, domain: Values) -> Any:
        if self.only not in domain:
            raise LookupError
        return self.only

    def edges(self) -> Sequence[Any]:
        return (self.only + 1, self.only - 1, 1)


class Between(Values):
    """Numbers from ``low`` to ``high``, both included; None means no bound."""

    __slots__ = ("high", "low")

    def __init__(self, low: float | None, high: float | None) -> None:
        self.low = low
        self.high = high

    @property
    def expected(self) -> str:
        if self.low is None or self.low == self.high:
            return f"at most {self.high}" if self.low is None else str(self.low)
        return f"{self.low} or more" if self.high is None else f"{self.low} to {self.high}"

    @property
    def refusal(self) -> str:
        if self.high is None:
            return f"is less than {self.low}"
        if self.low is None:
            return f"is more than {self.high}"
        return f"is not {'in the range ' * (self.low < self.high)}{self.expected}"

    def __contains__(self, value: Any) -> bool:
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    def pick(self, choose: Choose, domain: Values) -> Any:
        assert isinstance(domain, Between)
        low = max(each.low for each in (self, domain) if each.low is not None)
        high = min(each.high for each in (self, domain) if each.high is not None)
        # Without an upper bound any number is legal: a small one makes a small tensor.
        high = min(high, low + 2) if self.high is None or self.low is None else high
        if low > high:
            raise LookupError
        return choose(int(low), int(high))

    def edges(self) -> Sequence[Any]:
        near = (None if self.low is None else self.low - 1, None if self.high is None else self.high + 1)
        return [each for each in near if each is not None]


class Multiple(Values):
    """1, 2, 3 ... times ``of``."""

    __slots__ = ("of",)

    def __init__(self, of: int) -> None:
        self.of = of

    @property
    def expected(self) -> str:
        return f"a multiple of {self.of}"

    def __contains__(self, value: Any) -> bool:
        return bool(value % self.of == 0)

    def pick(self, choose: Choose, domain: Values) -> Any:
        return self.of * choose(1, 3)

    def edges(self) -> Sequence[Any]:
        return (self.of + 1, self.of - 1)


class Divisor(Values):
    """Divisors of ``of``, which falls into so many equal parts, or into parts of that size."""

    __slots__ = ("of",)

    def __init__(self, of: int) -> None:
        self.of = of

    @property
    def expected(self) -> str:
        return f"a divisor of {self.of}"

    def __contains__(self, value: Any) -> bool:
        return bool(0 < value <= self.of and self.of % value == 0)

    def pick(self, choose: Choose, domain: Values) -> Any:
        few = [each for each in range(1, min(self.of, 12) + 1) if each in self]
        return few[choose(0, len(few) - 1)]

    def edges(self) -> Sequence[Any]:
        return (self.of + 1, self.of - 1)


class Positive(Values):
    """Numbers above 0, fractions included."""

    __slots__ = ()

    @property
    def expected(self) -> str:
        return "more than 0"

    def __contains__(self, value: Any) -> bool:
        return bool(value > 0)

    def pick(self, choose: Choose, domain: Values) -> Any:
        return choose(1, 12) / 4

    def edges(self) -> Sequence[Any]:
        return (0.0, -1.0)


class Among(Values):
    """Any of the listed members of an enum, or numbers."""

    __slots__ = ("members",)

    def __init__(self, members: Iterable[Any]) -> None:
        self.members = frozenset(members)

    @property
    def expected(self) -> str:
        return " or ".join(self.spelled(each) for each in sorted(self.members))

    def __contains__(self, value: object) -> bool:
        return value in self.members

    def pick(self, choose: Choose, domain: Values) -> Any:
        both = sorted(each for each in self.members if each in domain)
        if not both:
            raise LookupError
        return both[choose(0, len(both) - 1)]

    def edges(self) -> Sequence[Any]:
        numbers = sorted(self.members)
        return (numbers[0] - 1, numbers[-1] + 1)


class OneOf(Values):
    """Any of the listed values, which have no order."""

    __slots__ = ("members",)

    def __init__(self, *members: Any) -> None:
        self.members = members

    @property
    def expected(self) -> str:
        return " or ".join(map(self.spelled, self.members))

    def __contains__(self, value: object) -> bool:
        return value in self.members

    def pick(self, choose: Choose, domain: Values) -> Any:
        return next(each for each in self.members if each in domain)

    def outside(self, domain: Values) -> Sequence[Any]:
        assert isinstance(domain, OneOf)
        return [value for value in domain.members if value not in self]


class Except(Values):
    """Any value that is not taken."""

    __slots__ = ("taken",)

    def __init__(self, taken: Sequence[Any]) -> None:
        self.taken = taken

    @property
    def expected(self) -> str:
        return f"none of {', '.join(map(str, self.taken))}"

    def __contains__(self, value: object) -> bool:
        return value not in self.taken

    def pick(self, choose: Choose, domain: Values) -> Any:
        return next(each for each in range(len(self.taken) + 1) if each not in self.taken)

    def edges(self) -> Sequence[Any]:
        return self.taken
