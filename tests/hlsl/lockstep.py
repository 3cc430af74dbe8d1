"""What statements of HLSL mean for all threads of a dispatch at once, in NumPy.

A value is an array with an element for each thread; a statement runs for the threads of a mask.  Threads that
have left a loop, a switch or a function wait at its end, which is where they meet the others again.  Where no
two threads race, this order of execution gives what every other order gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONTINUED",
    "LEFT",
    "OPERATIONS",
    "RETURNED",
    "TYPES",
    "Expression",
    "Mask",
    "Operation",
    "Statement",
    "Threads",
    "Type",
    "Values",
    "assign",
    "branch",
    "choice",
    "convert",
    "leave",
    "loop",
    "sequence",
]

Mask: TypeAlias = NDArray[np.bool_]
Values: TypeAlias = NDArray[Any]

CONTINUED, LEFT, RETURNED = 1, 2, 3


@dataclass(frozen=True)
class Type:
    name: str
    dtype: np.dtype[Any]

    @property
    def kind(self) -> str:
        """``f``, ``i``, ``u`` or ``b``, as NumPy says it."""
        return self.dtype.kind

    @property
    def bits(self) -> int:
        return self.dtype.itemsize * 8


TYPES = {
    name: Type(name, np.dtype(code))
    for name, code in {
        "float": "f4",
        "int": "i4",
        "uint": "u4",
        "bool": "?",
        "float16_t": "f2",
        "int16_t": "i2",
        "uint16_t": "u2",
        "double": "f8",
        "int64_t": "i8",
        "uint64_t": "u8",
    }.items()
}


class Threads:
    """The threads of a dispatch: where each is, and what its variables hold."""

    def __init__(self, groups: int, in_group: int, wave: int) -> None:
        self.count = groups * in_group
        self.id = np.arange(self.count, dtype=np.uint32)
        self.group = self.id // in_group
        self.index = self.id % in_group
        waves = -(-in_group // wave)
        self.lane = self.index % wave
        self.wave = self.group * waves + self.index // wave
        self.waves, self.lanes = groups * waves, wave
        self.variables: dict[str, Values] = {}
        self.away = np.zeros(self.count, np.uint8)
        """Why a thread waits: for the end of a round, of a loop or switch, or of a function."""
        self.mask = np.ones(self.count, bool)
        """The threads that run the statement at hand."""

    def set(self, name: str, values: Values, mask: Mask) -> None:
        old = self.variables.get(name)
        self.variables[name] = values.copy() if old is None else np.where(mask, values, old)

    def in_waves(self, values: Values, function: Callable[[Values], Any]) -> Values:
        """For each wave, what the function makes of the values of its threads that run."""
        result = np.zeros(self.count, values.dtype)
        for wave in range(self.waves):
            members = self.mask & (self.wave == wave)
            if members.any():
                result[members] = function(values[members])
        return result


@dataclass(frozen=True)
class Expression:
    type: Type
    text: str
    value: Callable[[Threads], Values]


class Statement:
    """``lines``: of HLSL, or a function that gives them; ``parts``: what may be left out, in a sequence."""

    def __init__(
        self,
        lines: Sequence[str] | Callable[[], Sequence[str]],
        run: Callable[[Threads, Mask], None],
        parts: list[Statement] | None = None,
    ) -> None:
        self._lines, self.run, self.parts = lines, run, parts

    @property
    def lines(self) -> Sequence[str]:
        return self._lines() if callable(self._lines) else self._lines


@dataclass(frozen=True)
class Operation:
    """``text``: with the arguments as ``{0}`` and so on.  ``types``: of the arguments; ``T``: the result's.

    ``kinds``: of results that it can give.  ``lavapipe``: lavapipe gives the same.
    """

    text: str
    types: str
    function: Callable[..., Any]
    kinds: str
    bits: tuple[int, ...] = (16, 32, 64)
    lavapipe: bool = True


# --- control flow ---


def sequence(statements: Sequence[Statement]) -> Statement:
    statements = list(statements)

    def run(threads: Threads, mask: Mask) -> None:
        for statement in statements:
            running = mask & (threads.away == 0)
            if not running.any():
                return
            threads.mask = running
            statement.run(threads, running)

    return Statement(lambda: [line for part in statements for line in part.lines], run, statements)


def indented(body: Statement) -> list[str]:
    return [f"    {line}" for line in body.lines]


def assign(name: str, made: Expression, declared: str = "") -> Statement:
    def run(threads: Threads, mask: Mask) -> None:
        threads.set(name, made.value(threads), mask)

    return Statement([f"{declared}{name} = {made.text};"], run)


def branch(condition: Expression, then: Statement, other: Statement | None, hint: str = "") -> Statement:
    def run(threads: Threads, mask: Mask) -> None:
        chosen = condition.value(threads)
        then.run(threads, mask & chosen)
        if other is not None:
            other.run(threads, mask & ~chosen)

    def lines() -> list[str]:
        made = [f"{hint}if ({condition.text}) {{", *indented(then)]
        if other is not None:
            made += ["} else {", *indented(other)]
        return [*made, "}"]

    return Statement(lines, run)


def leave(word: str, why: int) -> Statement:
    def run(threads: Threads, mask: Mask) -> None:
        threads.away[mask] = why

    return Statement([word], run)


def loop(name: str, limit: Expression, body: Statement, form: str, hint: str = "") -> Statement:
    """Runs the body with ``name`` from 0 to ``limit``, which is evaluated once."""

    def run(threads: Threads, mask: Mask) -> None:
        end = limit.value(threads).astype(np.uint32)
        number = np.zeros(threads.count, np.uint32)
        running = mask & (number < end)
        while running.any():
            threads.set(name, number, running)
            body.run(threads, running)
            threads.away[mask & (threads.away == CONTINUED)] = 0
            number = np.where(running, number + np.uint32(1), number)
            running = mask & (threads.away == 0) & (number < end)
        threads.away[mask & (threads.away == LEFT)] = 0

    end = f"end_{name}"
    before = f"uint {end} = {limit.text};"

    def lines() -> list[str]:
        if form == "for":
            head = f"{hint}for (uint {name} = 0; {name} < {end}; ++{name}) {{"
            return [before, head, *indented(body), "}"]
        made = [f"{{ {before} uint next_{name} = 0;", f"{hint}while (true) {{"]
        made += [f"    if (next_{name} >= {end}) break;", f"    uint {name} = next_{name}++;"]
        return [*made, *indented(body), "} }"]

    return Statement(lines, run)


def choice(
    selector: Expression, cases: Sequence[tuple[Sequence[int], Statement]], other: Statement
) -> Statement:
    """A switch; the bodies end with ``break`` on their own."""

    def run(threads: Threads, mask: Mask) -> None:
        selected = selector.value(threads)
        left = mask.copy()
        for labels, body in cases:
            chosen = mask & np.isin(selected, np.array(labels, selected.dtype))
            body.run(threads, chosen)
            left &= ~chosen
        other.run(threads, left)
        threads.away[mask & (threads.away == LEFT)] = 0

    def lines() -> list[str]:
        made = [f"switch ({selector.text}) {{"]
        for labels, body in cases:
            head = "".join(f"case {label}: " for label in labels)
            made += [head + "{", *indented(body), "    break;", "}"]
        return [*made, "default: {", *indented(other), "    break;", "} }"]

    return Statement(lines, run)


# --- numbers ---


def convert(values: Values, to: Type) -> Values:
    """As D3D converts: floats to integers towards zero, clamped, NaN to 0; others as C."""
    if to.kind == "b":
        return values != 0
    if values.dtype.kind != "f" or to.kind == "f":
        return values.astype(to.dtype)
    limits = np.iinfo(to.dtype)
    whole = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300))
    below, above = whole <= float(limits.min), whole >= float(limits.max)
    inside = np.where(below | above, 0, whole).astype(to.dtype)
    return np.where(below, limits.min, np.where(above, limits.max, inside)).astype(to.dtype)


def positive(values: Values) -> Values:
    """Zeros lose their sign: which of two zeros a minimum is, D3D leaves open."""
    return np.where(values == 0, values.dtype.type(0), values)


def _divide(a: Values, b: Values) -> Values:
    """Integers as D3D divides them: by zero gives all ones, the least number by -1 itself."""
    special = (b == 0) | _overflows(a, b)
    by = np.where(special, b.dtype.type(1), b)
    quotient = ((a - np.fmod(a, by)) // by).astype(a.dtype)
    return np.where(b == 0, ~np.zeros_like(a), np.where(special, a, quotient))


def _remainder(a: Values, b: Values) -> Values:
    special = (b == 0) | _overflows(a, b)
    rest = np.fmod(a, np.where(special, b.dtype.type(1), b))
    return np.where(b == 0, ~np.zeros_like(a), rest)


def _overflows(a: Values, b: Values) -> Mask:
    if a.dtype.kind == "u":
        return np.zeros(a.shape, bool)
    return (a == np.iinfo(a.dtype).min) & (b == -1)


def _shift(left: bool) -> Callable[[Values, Values], Values]:
    def shift(a: Values, b: Values) -> Values:
        count = b & b.dtype.type(a.dtype.itemsize * 8 - 1)
        return np.left_shift(a, count) if left else np.right_shift(a, count)

    return shift


def _count_bits(values: Values) -> Values:
    return np.array([int(value).bit_count() for value in values], np.uint32)


def _reverse_bits(values: Values) -> Values:
    return np.array([int(f"{int(value):032b}"[::-1], 2) for value in values], np.uint32)


def _first_bit_low(values: Values) -> Values:
    return np.array([(int(v) & -int(v)).bit_length() - 1 & 0xFFFFFFFF for v in values], np.uint32)


def _first_bit_high(values: Values) -> Values:
    """Of a negative number the highest bit that is 0."""
    numbers = [~int(value) if value < 0 else int(value) for value in values]
    return np.array([number.bit_length() - 1 & 0xFFFFFFFF for number in numbers], np.uint32)


def _saturate(x: Values) -> Values:
    one, zero = x.dtype.type(1), x.dtype.type(0)
    return positive(np.fmin(np.fmax(x, zero), one))


def _canonical_bits(x: Values) -> Values:
    return np.where(np.isnan(x), np.uint32(0x7FC00000), x.view(np.uint32))


def _guarded(function: Callable[[Values, Values], Values]) -> Callable[[Values, Values], Values]:
    return lambda a, b: function(a, (b & b.dtype.type(127)) + b.dtype.type(1))


OPERATIONS = [
    Operation("({0} + {1})", "T T", np.add, "fiu"),
    Operation("({0} - {1})", "T T", np.subtract, "fiu"),
    Operation("({0} * {1})", "T T", np.multiply, "fiu"),
    Operation("(-{0})", "T", np.negative, "fiu"),
    Operation("({0} ? {1} : {2})", "bool T T", np.where, "fiu"),
    Operation("({0} ? {1} : {2})", "bool T T", np.where, "fiu"),
    # floats
    Operation("({0} / {1})", "T T", np.divide, "f", lavapipe=False),
    Operation("abs({0})", "T", np.abs, "f", (16, 32)),
    Operation("sqrt({0})", "T", np.sqrt, "f", (32,)),
    Operation("floor({0})", "T", np.floor, "f", (32,)),
    Operation("ceil({0})", "T", np.ceil, "f", (32,)),
    Operation("trunc({0})", "T", np.trunc, "f", (32,)),
    Operation("round({0})", "T", np.rint, "f", (32,)),
    # frac of a constant is DXC's own (findings/dxc-folds-constants.sh).
    Operation("mad({0}, {1}, {2})", "T T T", lambda a, b, c: a * b + c, "f", (32,)),
    Operation("no_sign(min({0}, {1}))", "T T", lambda a, b: positive(np.fmin(a, b)), "f", (16, 32)),
    Operation("no_sign(max({0}, {1}))", "T T", lambda a, b: positive(np.fmax(a, b)), "f", (16, 32)),
    Operation("no_sign(saturate({0}))", "T", _saturate, "f", (32,)),
    Operation("lerp({0}, {1}, {2})", "T T T", lambda x, y, s: x + s * (y - x), "f", (32,), lavapipe=False),
    Operation("asfloat({0})", "uint", lambda x: x.view(np.float32), "f", (32,)),
    Operation("asfloat({0})", "int", lambda x: x.view(np.float32), "f", (32,)),
    Operation(
        "f16tof32({0})", "uint", lambda x: x.astype(np.uint16).view(np.float16).astype(np.float32), "f", (32,)
    ),
    # integers
    Operation("({0} & {1})", "T T", np.bitwise_and, "iu"),
    Operation("({0} | {1})", "T T", np.bitwise_or, "iu"),
    Operation("({0} ^ {1})", "T T", np.bitwise_xor, "iu"),
    Operation("(~{0})", "T", np.invert, "iu"),
    Operation("({0} << {1})", "T T", _shift(True), "iu"),
    Operation("({0} >> {1})", "T T", _shift(False), "iu"),
    Operation("min({0}, {1})", "T T", np.minimum, "iu"),
    Operation("max({0}, {1})", "T T", np.maximum, "iu"),
    # With bounds that are constants in the wrong order DXC, which computes it, takes one or the other.
    Operation(
        "clamp({0}, min({1}, {2}), max({1}, {2}))",
        "T T T",
        lambda x, a, b: np.minimum(np.maximum(x, np.minimum(a, b)), np.maximum(a, b)),
        "iu",
        lavapipe=False,
    ),
    Operation("abs({0})", "T", np.abs, "i"),
    # Without a guard DXC, like LLVM, takes x / x to be 1.
    Operation("({0} / (({1} & {T}(127)) + {T}(1)))", "T T", _guarded(_divide), "iu"),
    Operation("({0} % (({1} & {T}(127)) + {T}(1)))", "T T", _guarded(_remainder), "iu"),
    Operation("mad({0}, {1}, {2})", "T T T", lambda a, b, c: a * b + c, "iu", (32,)),
    Operation("countbits({0})", "uint", _count_bits, "u", (32,)),
    Operation("reversebits({0})", "uint", _reverse_bits, "u", (32,)),
    Operation("firstbitlow({0})", "uint", _first_bit_low, "u", (32,)),
    Operation("firstbithigh({0})", "uint", _first_bit_high, "u", (32,)),
    Operation("firstbithigh({0})", "int", _first_bit_high, "u", (32,)),
    Operation("bits({0})", "float", _canonical_bits, "u", (32,)),
]
