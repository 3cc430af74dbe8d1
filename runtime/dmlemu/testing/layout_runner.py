"""Runs a layout test, compares results, and describes differences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import hypothesis
import numpy as np

from dmlemu_hw.memory import POISON_BYTE

from .. import dml
from ..diagnostics.declaration import Declaration
from ..diagnostics.rule import report_of
from ..dml.tensor_desc import element_bits
from ..frozen import Frozen
from .explanation import LayoutError, describe, picture, replay_call, spell_value
from .layout_spec import Case, Shape, results_of, values_of
from .memory import Array, Memory, Placed, halves
from .rows import LAYOUT_INPUT, LAYOUT_PADDING, LAYOUT_REFERENCE, LAYOUT_RESULT, LAYOUT_UNWRITTEN
from .run import Run
from .session import Stage
from .strategies import packed_strides

__all__ = ["Trial"]

_OTHER_FILL = 0x35
_POISON = halves(np.array([POISON_BYTE], np.uint8))
_PACKED = "all tensors packed"


class Trial:
    """A user's test; ``rtol`` and ``atol`` as for ``numpy.isclose``, both 0: equal bits.

    ``reference``: computes the expected outputs, if given.
    """

    def __init__(
        self,
        test: Callable[..., Any],
        shape: Shape,
        stage: Callable[[], Stage],
        rtol: float,
        atol: float,
        reference: Callable[..., Any] | None,
    ) -> None:
        self.test, self.shape, self.stage = test, shape, stage
        self.rtol, self.atol, self.reference = rtol, atol, reference

    def check(self, case: Case, arguments: Mapping[str, Any], explain: bool) -> None:
        """Raises for the first difference between ``case`` and the same values packed.

        ``arguments``: the test's other arguments, by name.  ``explain``: looks for strides that would give
        the same wrong result, which takes more runs.
        """
        __tracebackhide__ = True
        attempt = _Attempt(self, case, arguments)
        wanted = attempt.run(case.packed)
        error = attempt.silence(wanted) or attempt.damage(wanted) or attempt.deviation(wanted)
        if error is None and case.descs != case.packed.descs:
            found = attempt.run(case)
            error = attempt.difference(found, wanted, explain) or attempt.damage(found)
        if error is not None:
            raise error

    def differs(self, got: Array, want: Array) -> Array:
        """Which elements differ."""
        if self.rtol or self.atol:
            return ~np.isclose(got, want, self.rtol, self.atol, equal_nan=True)
        bits = np.dtype(f"u{want.itemsize}")
        different: Array = got.view(bits) != want.view(bits)
        return different

    def deviates(self, got: Array, right: Array) -> Array:
        """Which elements differ from the reference; zeros and NaNs may have other bits."""
        if self.rtol or self.atol:
            return self.differs(got, right)
        different: Array = (got != right) & ((got == got) | (right == right))
        return different


class _Outcome(Frozen):
    """A run: its tensors, and all bytes of their buffer before and after."""

    case: Case
    memory: Memory
    before: Array
    after: Array

    @property
    def outputs(self) -> list[Placed]:
        return [placed for placed in self.memory.tensors.values() if placed.output]

    def result(self, name: str) -> Array:
        return self.memory.tensors[name].read(self.after)


class _Attempt:
    """One case of a trial."""

    def __init__(self, trial: Trial, case: Case, arguments: Mapping[str, Any]) -> None:
        self.trial, self.case, self.arguments = trial, case, arguments
        self.values = values_of(trial.shape, case)

    def run(self, case: Case, values: Mapping[str, Array] | None = None, fill: int = POISON_BYTE) -> _Outcome:
        """Runs the test on tensors in the layouts of ``case``."""
        __tracebackhide__ = True
        outputs = [name for name, tensor in self.trial.shape.tensors.items() if tensor.output]
        memory = Memory(case.descs, outputs)
        stage = self.trial.stage()
        stage.tensors(memory.size)  # a case too large for the device is refused before anything is created
        before = memory.image(self.values if values is None else values, fill)
        run = Run(stage, memory, before)
        try:
            self.trial.test(run=run, **case.descs, **self.arguments)
        except Exception as error:
            how = _PACKED if case is self.case.packed else "these layouts"
            _add_note(
                error, "\n".join([f"The test raised this with {how}:", *self._tensors_before(memory, before)])
            )
            raise
        return _Outcome(case, memory, before, run._bytes())

    # --- findings: each returns the error or None ---

    def silence(self, packed: _Outcome) -> LayoutError | None:
        """An output without a written byte: such a test could not fail."""
        for placed in packed.outputs:
            part = slice(placed.offset, placed.end)
            if (packed.after[part] != packed.before[part]).any():
                continue
            unwritten = self._unwritten(packed)
            if unwritten[2 * placed.offset : 2 * placed.end].all():
                message = f"The test wrote nothing to output '{placed.name}'."
                return self._error(packed, LAYOUT_UNWRITTEN, message, placed, None, unwritten=unwritten)
        return None

    def damage(self, outcome: _Outcome) -> LayoutError | None:
        """A changed byte that is not part of a result."""
        allowed = np.zeros(2 * outcome.memory.size, bool)
        for placed in outcome.outputs:
            allowed[placed.after_last : 2 * placed.end] = True  # the rest of the total size is undefined
            allowed[placed.halves] = True
        changed = np.flatnonzero((halves(outcome.before) != halves(outcome.after)) & ~allowed)
        if not len(changed):
            return None
        half = int(changed[0])
        at = half // 2
        placed = min(
            outcome.memory.tensors.values(), key=lambda each: max(each.offset - at, at - each.end + 1, 0)
        )
        byte, is_part = at - placed.offset, bool(allowed[half ^ 1])
        place, digits = (_where(placed, byte), "02X") if not is_part else (_half(placed, byte, half), "X")
        after, before = (
            halves(each)[half] if is_part else each[at] for each in (outcome.after, outcome.before)
        )
        return self._error(
            outcome,
            LAYOUT_INPUT if not placed.output and placed.offset <= at < placed.end else LAYOUT_PADDING,
            f"{place} was changed.",
            placed,
            None,
            byte,
            given=f"0x{after:{digits}}",
            expected=f"0x{before:{digits}}",
        )

    def deviation(self, packed: _Outcome) -> LayoutError | None:
        """An element that differs from the reference."""
        if self.trial.reference is None:
            return None
        outputs = {placed.name: placed.desc for placed in packed.outputs}
        right = results_of(self.trial.reference, self.values, outputs)
        for placed in packed.outputs:
            got, want = packed.result(placed.name), right[placed.name]
            wrong = np.argwhere(self.trial.deviates(got, want))
            if not len(wrong):
                continue
            at = tuple(int(i) for i in wrong[0])
            byte, value, wanted = placed.byte(at), spell_value(got[at]), spell_value(want[at])
            return self._error(
                packed,
                LAYOUT_REFERENCE,
                f"Element {_spell_index(at)} of '{placed.name}' (byte {byte}) is {value} with {_PACKED}; "
                f"by the reference it is {wanted}.",
                placed,
                at,
                byte,
                given=value,
                expected=wanted,
                right=want,
            )
        return None

    def difference(self, found: _Outcome, wanted: _Outcome, explain: bool) -> LayoutError | None:
        """An element of an output that differs from the packed run."""
        for placed in found.outputs:
            got, want = found.result(placed.name), wanted.result(placed.name)
            wrong = np.argwhere(self.trial.differs(got, want))
            if not len(wrong):
                continue
            at = tuple(int(i) for i in wrong[0])
            byte, right = placed.byte(at), spell_value(want[at])
            mine = placed.halves[np.ravel_multi_index(at, placed.desc.sizes)]
            unwritten = self._unwritten(found) if explain else np.zeros(2 * found.memory.size, bool)
            is_unwritten, value = bool(unwritten[mine[0]]), spell_value(got[at])
            what = f"is {value}"
            if is_unwritten:
                what, value = "is never written", "nothing"
            elif (halves(found.after)[mine] == _POISON[mine % 2]).all():
                what = f"is {value}, the poison of padding,"
            return self._error(
                found,
                LAYOUT_RESULT,
                f"Element {_spell_index(at)} of '{placed.name}' (byte {byte}) {what} in these layouts; "
                f"with {_PACKED} it is {right}.",
                placed,
                at,
                byte,
                given=value,
                expected=right,
                hint=self._hint(found, wanted, is_unwritten) if explain else "",
                right=want,
                unwritten=unwritten,
            )
        return None

    def _unwritten(self, found: _Outcome) -> Array:
        """The half bytes that keep what they held before the run, whatever that is.

        A result may equal what was there before, but not two different fillings.
        """
        again = self.run(found.case, fill=_OTHER_FILL)
        unwritten: Array = np.ones(2 * found.memory.size, bool)
        for run in (found, again):
            unwritten &= halves(run.after) == halves(run.before)
        return unwritten

    # --- descriptions ---

    def _error(
        self,
        outcome: _Outcome,
        id: Declaration,
        message: str,
        placed: Placed,
        element: tuple[int, ...] | None,
        byte: int = 0,
        *,
        right: Array | None = None,
        unwritten: Array | None = None,
        given: str = "",
        expected: str = "",
        hint: str = "",
    ) -> LayoutError:
        name = self.trial.test.__name__
        field = placed.name + (f"[{', '.join(map(str, element))}]" if element else "")
        report = report_of(
            id,
            message,
            operation=name,
            field=field,
            context=tuple(self._tensors(outcome, placed, byte, right, unwritten)),
            given=given,
            expected=expected,
            hint=hint,
            rule="",
        )
        return LayoutError(report, self._replay(), outcome.case.descs, placed.name, element)

    def _tensors(
        self, outcome: _Outcome, focus: Placed, byte: int, right: Array | None, unwritten: Array | None
    ) -> Iterator[str]:
        """A paragraph for each tensor; that of ``focus`` shows actual and expected contents."""
        for placed in outcome.memory.tensors.values():
            rows = {"": outcome.after}
            if placed is focus and right is not None:
                expected = outcome.before.copy()
                placed.write(expected, right)
                rows = {"is": outcome.after, "expected": expected}
            elif placed is focus and (outcome.before != outcome.after)[placed.offset : placed.end].any():
                rows = {"before": outcome.before, "after": outcome.after}
            mine = byte if placed is focus else 0
            untouched = unwritten if placed.output else None
            lines = picture(placed, outcome.before, rows, focus=mine, unwritten=untouched)
            yield "\n      ".join([describe(placed), *lines])

    def _tensors_before(self, memory: Memory, image: Array) -> Iterator[str]:
        """The tensors before a run that raised."""
        for placed in memory.tensors.values():
            lines = [] if placed.output else picture(placed, image, {"": image})
            yield "\n      ".join([f"  - {describe(placed)}", *lines])
        yield f"  replay: {self._replay()}"

    def _replay(self) -> str:
        plain = (bool, int, float, str, type(None))  # fixtures and the like have no spelling
        more = {
            name: repr(value) if isinstance(value, plain) else "..." for name, value in self.arguments.items()
        }
        if any(tensor.values is not None for tensor in self.trial.shape.tensors.values()):
            more["dims"] = repr(dict(self.case.dims))
        return replay_call(self.trial.test.__name__, self.case.descs, more)

    # --- hints: strides that explain the result ---

    def _hint(self, found: _Outcome, wanted: _Outcome, is_unwritten: bool) -> str:
        """Other strides that explain the result; for one tensor, the commonest mistake first."""
        hints = []
        for placed in found.outputs:
            fits = [
                f"{list(other.desc.effective_strides)}, {why}"
                for other, why in _misreadings(found.memory, placed.name)
                if _same(other.read(found.after), wanted.result(placed.name))
            ]
            if fits:
                hints.append(f"'{placed.name}' holds the right result if read with Strides {_either(fits)}")
        for name in [] if is_unwritten else self.values:
            fits = list(self._read_otherwise(found, name))
            if fits:
                hints.append(f"this is the result of reading '{name}' with Strides {_either(fits)}")
        return "; ".join(hints)

    def _read_otherwise(self, found: _Outcome, name: str) -> Iterator[str]:
        """Strides with which an input's bytes give exactly the wrong result."""
        for other, why in _misreadings(found.memory, name):
            try:
                again = self.run(self.case.packed, {**self.values, name: other.read(found.before)})
            except Exception:  # raised by the user's code: this reading explains nothing
                continue
            if all(_same(again.result(each.name), found.result(each.name)) for each in found.outputs):
                yield f"{list(other.desc.effective_strides)}, {why}"


def _either(fits: list[str]) -> str:
    return ", or ".join(fits[:3])


def _same(a: Array, b: Array) -> bool:
    return a.tobytes() == b.tobytes()


def _misreadings(memory: Memory, name: str) -> Iterator[tuple[Placed, str]]:
    """The tensor with the strides of common mistakes, where they address other places in its memory."""
    placed = memory.tensors[name]
    tried: list[list[int]] = []
    for strides, why in _mistakes(placed.desc):
        if strides in tried or max(strides) * max(placed.desc.sizes) * placed.width > 2**32:
            continue
        tried.append(strides)
        desc = dml.BufferTensorDesc(placed.desc.data_type, placed.desc.sizes, strides)
        other = replace(placed, desc=desc)
        inside = other.after_last <= 2 * placed.end
        if inside and (other.elements != placed.elements).any():
            yield other, why


def _mistakes(desc: dml.BufferTensorDesc) -> Iterator[tuple[list[int], str]]:
    strides, bits = list(desc.effective_strides), element_bits(desc.data_type)
    yield packed_strides(desc.sizes), "as if it were packed"
    for i, j in combinations(range(desc.rank), 2):
        swapped = strides.copy()
        swapped[i], swapped[j] = strides[j], strides[i]
        yield swapped, f"those of dimensions {i} and {j} swapped"
    yield strides[::-1], "the given ones in reverse order"
    if bits != 8:
        yield [stride * bits // 8 for stride in strides], "the given ones in bytes instead of elements"
        yield [stride * 8 // bits for stride in strides], _scaled(8, bits)
    for i in range(desc.rank):
        yield [0 if d == i else stride for d, stride in enumerate(strides)], f"as if dimension {i} repeated"


def _scaled(number: int, by: int) -> str:
    return f"the given ones {f'times {number // by}' if number > by else f'divided by {by // number}'}"


def _where(placed: Placed, byte: int) -> str:
    """ "Byte 12 of output 'y', which is padding," """
    if byte < 0:
        return f"Byte {-byte} before '{placed.name}', where no tensor lies,"
    if byte >= placed.desc.size_in_bytes:
        after = byte - placed.desc.size_in_bytes
        return f"Byte {after} after the end of '{placed.name}', where no tensor lies,"
    if not placed.output:
        return f"Byte {byte} of input '{placed.name}', which the operator must not write,"
    return f"Byte {byte} of output '{placed.name}', which is padding,"


def _half(placed: Placed, byte: int, half: int) -> str:
    """ "The high half of byte 12 of output 'y', which is padding," """
    where = _where(placed, byte)
    return f"The {'high' if half % 2 else 'low'} half of {where[0].lower()}{where[1:]}"


def _spell_index(index: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, index))})"


def _add_note(error: Exception, text: str) -> None:
    """Python 3.11 prints notes with the exception; before, hypothesis prints them beside it."""
    if sys.version_info >= (3, 11):
        error.add_note(text)
    elif hypothesis.currently_in_test_context():
        hypothesis.note(text)
