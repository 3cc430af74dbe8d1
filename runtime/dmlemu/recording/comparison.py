"""Diff: the first dispatch of a record whose output is not what another record, or an array, has."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..dml.declared.schema import OperatorDesc
from ..errors import elide, shorten
from ..ulps import ulp_distance
from .file import RecordError, open_file, read
from .model import Array, Dispatch, Record, RecordedTensor, ShaderWork
from .tolerance import Tolerance, pick, recorded_inputs, tolerance_of

__all__ = ["Comparison", "Difference", "compare_arrays", "diff"]

_LINES = 12  # of a lineage
_MOST_ARRAYS = 1 << 34  # bytes, of an .npz file

Source = Record | str | os.PathLike[str]


@dataclass(frozen=True)
class Difference:
    """An output that differs: the tensor ``path`` of ``dispatch``, worst at element ``index``.

    ``given`` and ``expected`` are the two values there (None: the difference is not of elements), ``ulps``
    how many numbers of their type they are apart (None: a NaN, or not floats); ``count`` elements differ.
    ``inputs`` says what the dispatch read, ``lineage`` where that comes from, as far as the record knows.
    """

    dispatch: Dispatch
    path: str
    message: str
    index: tuple[int, ...] | None = None
    given: float | int | None = None
    expected: float | int | None = None
    ulps: int | None = None
    count: int = 0
    inputs: str = ""
    lineage: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Difference of {self.path}: {elide(self.message, 120)}>"

    def __str__(self) -> str:
        lines = [self.message]
        if self.dispatch.site:
            lines.append(f"  It was recorded at {self.dispatch.site}.")
        if self.inputs:
            lines.append(f"  {self.inputs}")
        if self.lineage:
            lines += ["  It computed from (last dispatch first)", *(f"    {each}" for each in self.lineage)]
        return "\n".join(lines)


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison; true when nothing differs.

    ``difference``: the first one, or None.  ``compared``: how many dispatches were.  ``notes``: what was not
    compared.
    """

    difference: Difference | None
    compared: int
    notes: list[str] = field(default_factory=list)
    how: str = "compared"

    def __bool__(self) -> bool:
        return self.difference is None

    def __repr__(self) -> str:
        found = "nothing differs" if self.difference is None else f"{self.difference.path} differs"
        return f"<Comparison of {self.compared} dispatches: {found}>"

    def __str__(self) -> str:
        plural = "dispatch was" if self.compared == 1 else "dispatches were"
        first = f"{self.compared} {plural} {self.how}: no output differs."
        if self.difference is not None:
            first = str(self.difference)
        return "\n".join([first, *self.notes])


def diff(a: Source, b: Source | Mapping[str, Any] | None = None, *, reference: bool = False) -> Comparison:
    """Compares the outputs of the record ``a``, or of its file, in the order in which they were computed.

    With ``b``: another record, or expected arrays by name, also as an ``.npz`` file: the name of an operator
    with one output, or ``name.OutputMeanTensor``.  With ``reference``: the operators' references in NumPy,
    computed from the recorded inputs.  Dispatches of two records belong together when they are of the same
    name, and as often repeated.

    An output may be as far away as the operator's tolerance allows; integers must be equal.

    Raises :class:`RecordError` for a file that is not what it should be, names that no dispatch has, and
    arrays of another shape or type.
    """
    if (b is None) is not reference:
        raise TypeError("diff() takes a second record, expected arrays, or reference=True.")
    first = a if isinstance(a, Record) else read(a)
    if b is None:
        return _Diff(first, _References(first)).run()
    if not isinstance(b, (Record, Mapping)):
        b = _npz(b) if Path(b).suffix == ".npz" else read(b)
    other: Any = _Others(b) if isinstance(b, Record) else _Expected(first, b)
    return _Diff(first, other).run()


def _npz(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The arrays of a file."""
    name = shorten(os.fspath(path))
    try:
        with open_file(path, "an .npz file") as source, np.load(source, allow_pickle=False) as file:
            size = sum(each.file_size for each in file.zip.infolist())
            if size > _MOST_ARRAYS:
                raise ValueError(f"it has {size} bytes of arrays, more than {_MOST_ARRAYS}")
            return {key: file[key] for key in file.files}
    except (OSError, RecordError):
        raise
    except Exception as error:  # the parsers of zip and .npy raise all sorts of things
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise RecordError(f"{name} is not an .npz file of arrays: {reason}.") from None


# --- what outputs are compared with ---


class _Other(NamedTuple):
    """The array that an output is compared with; ``undefined``: its elements that are not."""

    array: Array
    undefined: Array | None = None


class _Others:
    """Another record."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._dispatches = dict(zip(_occurrences(record.dispatches), record.dispatches, strict=True))
        self._last: Dispatch | None = None

    def other_layout(self, position: int, tensor: RecordedTensor) -> str:
        """How the last dispatch asked for reads the tensor, if through other strides."""
        assert self._last is not None
        own, other = (
            list(each.desc.effective_strides) for each in (tensor, self._last.work.tensors[position])
        )
        return "" if own == other else f" (strides {own}, in the other record {other})"

    def other_call(self, dispatch: Dispatch) -> list[str]:
        """What else differs of the last dispatch asked for, if it is one of a shader."""
        assert self._last is not None
        own, other = dispatch.work.desc, self._last.work.desc
        if not isinstance(own, ShaderWork) or not isinstance(other, ShaderWork):
            return []
        found = ["its code"] if own.code != other.code else []
        found += ["its root signature"] if own.root_signature != other.root_signature else []
        if own.wave != other.wave:
            found.append(f"its waves (of {own.wave} lanes, in the other record {other.wave})")
        if own.groups != other.groups:
            found.append(f"its groups ({own.spelled_groups}, in the other record {other.spelled_groups})")
        return found

    def outputs(self, key: tuple[str, int], dispatch: Dispatch) -> dict[int, _Other] | str:
        """By the position of the tensor; or why the dispatch itself differs."""
        other = self._dispatches.pop(key, None)
        if other is None:
            return "is not in the other record"
        self._last = other
        kinds = [
            (
                each.work.type,
                [(t.path, t.output, tuple(t.desc.sizes), t.desc.data_type) for t in each.work.tensors],
            )
            for each in (dispatch, other)
        ]
        if dispatch.work.type != other.work.type:
            return f"is {other.work.type} in the other record"
        if kinds[0] != kinds[1]:
            return f"has the tensors {_spell(dispatch)}; in the other record they are {_spell(other)}"
        return {
            i: _Other(self._record.array(key), _array(self._record, other.undefined[i]))
            for i, key in enumerate(other.contents)
            if key is not None
        }

    def rest(self) -> list[str]:
        """What was not reached."""
        count = len(self._dispatches)
        plural = "dispatch" if count == 1 else "dispatches"
        return [f"The other record has {count} more {plural}."] if count else []


class _Expected:
    """Arrays by name."""

    def __init__(self, record: Record, arrays: Mapping[str, Any]) -> None:
        self._arrays = {name: np.asarray(each) for name, each in arrays.items()}
        known: dict[str, None] = {}
        for dispatch in record.dispatches:
            outputs = [tensor.path for _, tensor in dispatch.tensors(output=True)]
            known.update((f"{dispatch.work.name}.{path}", None) for path in outputs)
            if len(outputs) == 1:
                known[dispatch.work.name] = None
        for name in self._arrays:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"; did you mean '{shorten(near[0])}'?" if near else ""
                raise RecordError(f"No dispatch of the record has an output called '{shorten(name)}'{hint}")

    def outputs(self, key: tuple[str, int], dispatch: Dispatch) -> dict[int, _Other] | str:
        """By the position of the tensor."""
        found: dict[int, _Other] = {}
        outputs = list(dispatch.tensors(output=True))
        for i, tensor in outputs:
            names = [f"{dispatch.work.name}.{tensor.path}"]
            names += [dispatch.work.name] if len(outputs) == 1 else []
            for name in names:
                if name in self._arrays:
                    found[i] = _Other(self._fitting(name, self._arrays[name], tensor.desc))
        return found

    @staticmethod
    def _fitting(name: str, array: Array, desc: Any) -> Array:
        """In the type and shape of the tensor: dimensions of size 1 may be left out."""
        sizes = tuple(desc.sizes)
        if [size for size in array.shape if size != 1] != [size for size in sizes if size != 1]:
            raise RecordError(f"'{shorten(name)}' has the shape {list(array.shape)}; expected {list(sizes)}.")
        if array.dtype.kind != desc.dtype.kind and not (
            array.dtype.kind in "iub" and desc.dtype.kind in "iu"
        ):
            raise RecordError(f"'{shorten(name)}' has the type {array.dtype}; expected {desc.dtype}.")
        with np.errstate(over="ignore"):
            return array.astype(desc.dtype).reshape(sizes)

    def rest(self) -> list[str]:
        return []


class _References:
    """The operators' references, from the recorded inputs."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._without: Counter[str] = Counter()

    def outputs(self, key: tuple[str, int], dispatch: Dispatch) -> dict[int, _Other] | str:
        """By the position of the tensor."""
        desc = dispatch.work.desc
        if not isinstance(desc, OperatorDesc) or not dispatch.is_complete:
            without = "a graph" if dispatch.work.descs else "not completely recorded"
            self._without["a compute shader" if dispatch.work.is_shader else without] += 1
            return {}
        found = desc.reference(recorded_inputs(self._record, dispatch, desc))
        return {
            i: _Other(np.asarray(pick(found, desc, tensor.path)))
            for i, tensor in dispatch.tensors(output=True)
        }

    def rest(self) -> list[str]:
        return [f"{count} not compared with a reference: {why}." for why, count in self._without.items()]


def _array(record: Record, key: str | None) -> Array | None:
    return None if key is None else record.array(key)


def _spell(dispatch: Dispatch) -> str:
    tensors = (
        f"{each.path} {each.desc.data_type.name} {list(each.desc.sizes)}" for each in dispatch.work.tensors
    )
    return ", ".join(tensors)


def _occurrences(dispatches: Iterable[Dispatch]) -> list[tuple[str, int]]:
    """For each dispatch its name, or type, and how many of that name were before it."""
    seen: Counter[str] = Counter()
    keys = []
    for each in dispatches:
        name = each.work.name or each.work.type
        keys.append((name, seen[name]))
        seen[name] += 1
    return keys


# --- the comparison ---


class _Diff:
    def __init__(self, record: Record, others: Any) -> None:
        self._record, self._others = record, others

    def run(self) -> Comparison:
        compared, without = 0, 0
        dispatches = self._record.dispatches
        for key, dispatch in zip(_occurrences(dispatches), dispatches, strict=True):
            found = self._others.outputs(key, dispatch)
            if isinstance(found, str):
                message = f"{_title(dispatch)} {found}."
                return Comparison(Difference(dispatch, "", message), compared)
            outputs = [i for i, _ in dispatch.tensors(output=True) if i in found and dispatch.contents[i]]
            compared += bool(outputs)
            without += not outputs
            difference = self._compare(dispatch, outputs, found)
            if difference is not None:
                return Comparison(difference, compared)
        notes = list(self._others.rest())
        if without and not isinstance(self._others, _References):  # which have said why
            plural = "dispatch has" if without == 1 else "dispatches have"
            notes.append(f"{without} {plural} nothing to be compared with.")
        if not compared:
            raise RecordError(" ".join(["No dispatch can be compared.", *notes]))
        return Comparison(None, compared, notes)

    def _compare(
        self, dispatch: Dispatch, outputs: Sequence[int], others: Mapping[int, _Other]
    ) -> Difference | None:
        for i in outputs:
            other = others[i]
            given = self._record.array(dispatch.contents[i] or "")
            masks = [
                each
                for each in (_array(self._record, dispatch.undefined[i]), other.undefined)
                if each is not None
            ]
            undefined = np.logical_or.reduce(masks) if masks else None
            tolerance = partial(tolerance_of, self._record, dispatch, dispatch.work.tensors[i].path)
            difference = compare_arrays(dispatch, i, other.array, given, tolerance, undefined)
            if difference is not None:
                return self._explained(difference, others)
        return None

    def _explained(self, difference: Difference, others: Mapping[int, _Other]) -> Difference:
        """With what its dispatch read, and where that comes from."""
        dispatch, inputs = difference.dispatch, ""
        if isinstance(self._others, _Others):
            differ = [
                f"{tensor.path}{self._others.other_layout(i, tensor)}"
                for i, tensor in dispatch.tensors(output=False)
                if i in others
                and dispatch.contents[i] is not None
                and not _same_bits(self._record.array(dispatch.contents[i] or ""), others[i].array)
            ]
            inputs = "Its inputs are equal in both records."
            if differ:
                inputs = f"Of its inputs these differ, too: {', '.join(differ)}."
            others_of_call = self._others.other_call(dispatch)
            if others_of_call:
                inputs += f"  Of the dispatch these differ: {', '.join(others_of_call)}."
        return Difference(
            **{**vars(difference), "inputs": inputs, "lineage": tuple(_lineage(self._record, dispatch))}
        )


def compare_arrays(
    dispatch: Dispatch,
    position: int,
    expected: Array,
    given: Array,
    tolerance: Callable[[Array], Tolerance] | None,
    undefined: Array | None,
) -> Difference | None:
    """The difference of one output.  ``tolerance`` None: the bits must be equal."""
    path = dispatch.work.tensors[position].path
    if (given.dtype, given.shape) != (expected.dtype, expected.shape):
        message = (
            f"{_title(dispatch)} gives {path} as {given.dtype} {list(given.shape)}; "
            f"expected {expected.dtype} {list(expected.shape)}."
        )
        return Difference(dispatch, path, message)
    wrong = _differing_bits(given, expected)
    allowed = ""
    if tolerance is not None and wrong.any():
        allowance = tolerance(expected)
        allowed = f" ({allowance})" if expected.dtype.kind == "f" else ""
        wrong &= ~allowance.holds(given, expected)
    if undefined is not None:
        wrong &= ~undefined
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    index = _worst(given, expected, wrong)
    a, b = given[index], expected[index]
    ulps = ulp_distance(a, b)
    apart = f", {ulps} ULP apart" if ulps is not None else ""
    message = (
        f"{_title(dispatch)} gives {path}[{', '.join(map(str, index))}] = {_number(a)}; "
        f"expected {_number(b)}{apart}{allowed}.  "
        f"{count} of {given.size} elements differ; this one is the worst."
    )
    return Difference(dispatch, path, message, index, a.item(), b.item(), ulps, count)


def _title(dispatch: Dispatch) -> str:
    work = dispatch.work
    return f"Dispatch {dispatch.number}, {work.title}, command {dispatch.command} of {dispatch.list},"


def _number(value: Any) -> str:
    """All digits that distinguish it from its neighbours."""
    return str(value)


def _differing_bits(a: Array, b: Array) -> Any:
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    return np.ascontiguousarray(a).view(unsigned) != np.ascontiguousarray(b).view(unsigned)


def _same_bits(a: Array, b: Array) -> bool:
    return (a.dtype, a.shape) == (b.dtype, b.shape) and not _differing_bits(a, b).any()


def _worst(given: Array, expected: Array, wrong: Any) -> tuple[int, ...]:
    """A NaN or infinity on one side, else the largest difference; the first of equal ones."""
    with np.errstate(all="ignore"):
        distance = np.abs(given.astype(np.float64) - expected.astype(np.float64))
    distance = np.where(np.isnan(distance), np.inf, distance)
    distance = np.where(wrong, distance, -1.0)
    return tuple(int(each) for each in np.unravel_index(int(np.argmax(distance)), given.shape))


# --- lineage ---


_Writer = tuple[Dispatch, int]  # and the position of its output


def _lineage(record: Record, dispatch: Dispatch) -> list[str]:
    """The dispatches that the inputs come from, a line each."""
    written: list[_Writer] = []  # those that have not been overwritten
    before: dict[tuple[int, int], list[_Writer]] = {}  # by reader and position
    for each in record.dispatches[: dispatch.number + 1]:
        for i, _ in each.tensors(output=False):
            before[each.number, i] = [writer for writer in written if _overlap(writer, (each, i))]
        for i, _ in each.tensors(output=True):
            written = [writer for writer in written if not _covers((each, i), writer)]
            written.append((each, i))
    queue = [dispatch]
    lines: list[str] = []
    for reader in queue:
        if len(lines) == _LINES:
            return [*lines, "... and more"]
        origins = []
        for i, tensor in reader.tensors(output=False):
            writers = before[reader.number, i]
            origins.append(f"{tensor.path} from {_origin(reader, i, writers)}")
            queue += [source for source, _ in reversed(writers) if source not in queue]
        lines.append(f"dispatch {reader.number}, {reader.work.title}: {'; '.join(origins) or 'no inputs'}")
    return lines


def _span(tensor: _Writer) -> tuple[int, int, int] | None:
    """The buffer, the first byte and the byte after the last one."""
    dispatch, i = tensor
    place = dispatch.where[i]
    if place is None:
        return None
    return place.buffer, place.offset, place.offset + dispatch.work.tensors[i].desc.extent_in_bytes


def _overlap(a: _Writer, b: _Writer) -> bool:
    one, other = _span(a), _span(b)
    return bool(one and other and one[0] == other[0] and one[1] < other[2] and other[1] < one[2])


def _covers(a: _Writer, b: _Writer) -> bool:
    one, other = _span(a), _span(b)
    return bool(one and other and one[0] == other[0] and one[1] <= other[1] and other[2] <= one[2])


def _origin(reader: Dispatch, i: int, writers: Sequence[_Writer]) -> str:
    """The outputs that lay there, or the place, if no recorded dispatch wrote there."""
    if not writers:
        return reader.places[i] or "memory that DirectML owns"
    sources = [f"{source.work.tensors[j].path} of dispatch {source.number}" for source, j in writers]
    source, j = writers[0]
    is_same = (
        len(writers) == 1
        and source.where[j] == reader.where[i]
        and source.contents[j] == reader.contents[i] is not None
    )
    how = "" if is_same or len(writers) > 1 else ", with other elements or sizes than were written"
    return f"{' and '.join(sources)}{how}"
