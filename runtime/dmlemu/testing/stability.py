"""``dmlemu.testing.stable``: a program's result must not depend on what the documentation leaves open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dmlemu_hw.chaos import Chaos, Mode, chaos

from ..diagnostics.rule import report_of
from ..errors import Error, HResult, caller
from ..reporting import defaults, on_created
from .rows import VAL_UNSTABLE

__all__ = ["stable"]

Array = np.ndarray[Any, np.dtype[Any]]
_Result = TypeVar("_Result")

_MEANING = {
    Mode.ORDER: "commands that no barrier, fence or queue puts in order run in any order, and a scatter "
    "writes its updates in any order",
    Mode.POISON: "memory holds any bytes until something defines them",
    Mode.PLACEMENT: "addresses are aligned no better than they must be, with any distance between them",
    Mode.WEIGHTS: "the persistent resource holds weights in a layout of its own",
    Mode.VISIBILITY: "CPU and GPU see what the other wrote no earlier than the documents say",
    Mode.PADDING: "bytes after the last element of an output, up to TotalTensorSizeInBytes, are overwritten",
    Mode.WAVES: "waves of a shader have any size that it allows, and denormal numbers are kept or 0",
}


def stable(
    program: Callable[[], _Result],
    seeds: Iterable[int] = range(5),
    *,
    modes: Iterable[Mode | str] | None = None,
) -> _Result:
    """Runs a program as usual, then under ``dmlemu.chaos`` with each seed; returns the usual result.

    ``program`` creates its device itself, on an adapter without a policy, or calls ``dmlemu.evaluate``.
    It returns arrays, bytes or numbers, or lists and dicts of them, which are compared bit by bit.
    ``modes``: the modes of chaos, by default all.

    Raises :class:`dmlemu.Error` (VAL_UNSTABLE, E_FAIL) when a seed changes the result, or makes the
    program fail: names the smallest set of modes that does it, and the first bytes that differ.
    ValueError: no device ran under chaos, or results differ without it.  What the program raises without
    chaos is raised as it is.
    """
    all_modes = chaos(0, modes).modes
    result, _ = _run(program, None)
    expected = _Outcome.of(result)
    for seed in seeds:
        found = _try(program, chaos(seed, all_modes))
        difference = found.difference(expected)
        if difference is None:
            continue
        if _Outcome.of(_run(program, None)[0]).difference(expected) is not None:
            raise ValueError("The program gives another result each time, without chaos too.")
        few = _smallest_cause(program, seed, all_modes, expected) or (chaos(seed, all_modes), difference)
        raise _error(program, *few) from found.error
    return result


def repeated(program: Callable[[], Any]) -> str:
    """Runs a program twice as usual; in words, how the second result differs.  ``""``: it does not."""
    first, second = (_Outcome.of(_run(program, None)[0]) for _ in range(2))
    found = second.difference(first)
    return (
        ""
        if found is None
        else f"{found.what}{found.where}: {found.given}, before {found.expected}".lstrip(": ")
    )


_FAILS = "exception"


class _Difference(NamedTuple):
    """The first difference of two results: which part, where in it, and both values in words."""

    what: str
    where: str
    given: str
    expected: str


@dataclass
class _Outcome:
    """The outcome of a run: values by their place in the result, or the exception."""

    values: dict[str, Any]
    error: Exception | None = None

    @staticmethod
    def of(result: Any) -> _Outcome:
        return _Outcome(dict(_leaves(result, "")))

    def difference(self, expected: _Outcome) -> _Difference | None:
        """The first difference from the expected outcome."""
        if self.error is not None:
            sentence = _sentence(self.error)
            return _Difference(_FAILS, "", sentence, "no exception")
        if self.values.keys() != expected.values.keys():
            return _Difference("", "", f"parts {list(self.values)}", f"parts {list(expected.values)}")
        for path, value in self.values.items():
            found = _compare(path, value, expected.values[path])
            if found is not None:
                return found
        return None


def _run(program: Callable[[], _Result], policy: Chaos | None) -> tuple[_Result, int]:
    """The result under a policy, and how many devices were created under it."""
    devices: list[Any] = []
    before, defaults.policy = defaults.policy, policy
    on_created.append(devices.append)
    try:
        result = program()
    finally:
        on_created.remove(devices.append)
        defaults.policy = before
    return result, sum(device.context.gpu.chaos is policy for device in devices)


def _try(program: Callable[[], Any], policy: Chaos) -> _Outcome:
    try:
        result, devices = _run(program, policy)
    except Exception as error:
        return _Outcome({}, error)
    if not devices:
        raise ValueError(
            "The program ran on no device under chaos: it must create one, on an adapter without a policy."
        )
    return _Outcome.of(result)


def _smallest_cause(
    program: Callable[[], Any], seed: int, modes: frozenset[Mode], expected: _Outcome
) -> tuple[Chaos, _Difference] | None:
    """The smallest set of modes that causes it with this seed, and what they do; None: not reproducible."""

    def tried(chosen: list[Mode]) -> _Difference | None:
        return _try(program, chaos(seed, chosen)).difference(expected)

    ordered = [mode for mode in Mode if mode in modes]
    for mode in ordered:
        found = tried([mode])
        if found is not None:
            return chaos(seed, [mode]), found
    needed, difference = ordered, tried(ordered)
    for mode in ordered:
        fewer = [each for each in needed if each is not mode]
        found = tried(fewer)
        if found is not None:
            needed, difference = fewer, found
    return None if difference is None else (chaos(seed, needed), difference)


def _error(program: Callable[[], Any], policy: Chaos, difference: _Difference) -> Error:
    modes = [mode for mode in Mode if mode in policy.modes]
    names = " and ".join(f"'{mode.value}'" for mode in modes)
    plural = "s" * (len(modes) > 1)
    changes = f"changes part {difference.what} of its result" if difference.what else "changes its result"
    name = getattr(program, "__name__", type(program).__name__)
    report = report_of(
        VAL_UNSTABLE,
        f"Program '{name}' {'fails' if difference.what == _FAILS else changes} under chaos mode{plural} "
        f"{names}, seed {policy.seed}.",
        operation="stable",
        given=difference.given,
        expected=difference.expected,
        ranges=(difference.where,) if difference.where else (),
        context=(
            *(f"Mode '{mode.value}': {_MEANING[mode]}" for mode in modes),
            f"To repeat it: d3d12.Adapter(policy=dmlemu.{policy})",
            f"Run by dmlemu.testing.stable at {caller()}",
        ),
        rule="on request: dmlemu.testing.stable",
    )
    return Error(HResult.E_FAIL, report)


def _sentence(error: Exception) -> str:
    if isinstance(error, Error):
        return f"{error.report.id}: {error.report.message}"
    return f"{type(error).__name__}: {error}"


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            yield from _leaves(each, f"{path}[{i}]")
    elif isinstance(value, bytes | bytearray | memoryview):
        yield path, np.frombuffer(bytes(value), np.uint8)
    else:
        yield path, value.copy() if isinstance(value, np.ndarray) else value


def _compare(path: str, value: Any, expected: Any) -> _Difference | None:
    if not isinstance(value, np.ndarray) or not isinstance(expected, np.ndarray):
        same = type(value) is type(expected) and (
            value == expected or (value != value and expected != expected)
        )
        return None if same else _Difference(path, "", repr(value), repr(expected))
    if (value.dtype, value.shape) != (expected.dtype, expected.shape):
        given, wanted = (f"{each.dtype}{list(each.shape)}" for each in (value, expected))
        return _Difference(path, "", given, wanted)
    differs = np.flatnonzero(_bytes(value) != _bytes(expected))
    if not differs.size:
        return None
    byte = int(differs[0])
    index = np.unravel_index(byte // value.itemsize, value.shape)
    place = f"({', '.join(map(str, index))})" if value.ndim else "()"
    elements = np.unique(differs // value.itemsize).size
    where = (
        f"first at element {place}, byte {byte}; {elements} of {value.size} elements and {differs.size} of "
        f"{value.nbytes} bytes differ"
    )
    return _Difference(path, where, _spell(value[index]), _spell(expected[index]))


def _bytes(array: Array) -> Array:
    return np.frombuffer(array.tobytes(), np.uint8)


def _spell(element: Any) -> str:
    """``1.5 (00 00 c0 3f)``: a value and its bytes in memory."""
    return f"{element} ({element.tobytes().hex(' ')})"
