"""The rules of an operator's fields as data, which a definition lists in ``RULES``.

A rule yields demands on a desc, each a place and the values allowed there.  Everything else is derived from
them: validation and its messages, the sentence in the reference, the hypothesis strategies for legal descs
(:mod:`dmlemu.testing.operator_strategies`) and the descs that violate only this rule, for tests.

Ranks, data types and missing tensors are checked first, by the declaration's table.  Fields have their
Python names; an absent optional tensor satisfies every rule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from ...diagnostics.declaration import Declaration
from ..enums import TensorFlags
from ..rows import OP_NO_BROADCAST, OP_WINDOW_COUNT
from ..structs import Size2D
from ..tensor_desc import BufferTensorDesc, element_bits
from .places import (
    GIVEN,
    Attribute,
    Count,
    DataType,
    Element,
    Flags,
    Member,
    Place,
    Presence,
    Rank,
    Size,
    element_of,
    field_of,
    has_field,
)
from .schema import ARRAYS, FieldKind, OperatorDesc, level_name
from .values import Among, Between, Exactly, Except, Multiple, OneOf, Positive, Values

if TYPE_CHECKING:
    from ..enums import FeatureLevel

__all__ = [
    "AboveZero",
    "AtLeast",
    "Axis",
    "Below",
    "Demand",
    "Divisible",
    "EachAtLeast1",
    "Given",
    "HasCount",
    "Length",
    "Nonzero",
    "NotEmpty",
    "NotOwned",
    "Ones",
    "Rule",
    "SameRank",
    "SameSizes",
    "SameType",
    "Sizes",
    "Unless",
    "Window",
    "Without",
]


class Demand(NamedTuple):
    """The values allowed at one place of a desc.

    The message is "{path} ({value}) {clause}."; ``clause`` defaults to the refusal of ``allowed`` and
    ``why``.  ``id`` defaults to the place's id; ``given`` and ``expected`` default to the value and the
    allowed values.
    """

    place: Place
    allowed: Values
    why: str = ""
    clause: str = ""
    check: Declaration | None = None
    given: Any = None
    expected: str = ""
    rule: str = ""
    hint: str = ""

    def message(self, desc: OperatorDesc) -> str:
        """The sentence about a desc that violates it."""
        clause = self.clause or self.allowed.refusal + (f", {self.why}" if self.why else "")
        return f"{self.place.path(desc)} ({self.value(desc)}) {clause}."

    def value(self, desc: OperatorDesc) -> str:
        return self.allowed.spelled(self.place.value(desc))


class Rule:
    """One rule of an operator; a subclass implements its demands and its sentence in the reference."""

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        """The demands in reporting order; a value that others compute with comes first."""
        raise NotImplementedError

    def holds(self, desc: OperatorDesc) -> bool:
        """A fast path for most legal descs; False: every demand must be checked."""
        return False

    def toward(self, results: Collection[str]) -> Rule:
        """The rule with its demands on the fields ``results`` where it does not say which field follows from
        which: for computing some fields from the others."""
        return self

    def sentence(self, cls: type[OperatorDesc]) -> str:
        """The rule's sentence in the reference, in Markdown."""
        raise NotImplementedError


# --- tensors that agree ---


class _Same(Rule):
    """A property that is equal for all ``names``, and for each tensor of an array; the first present one
    sets it."""

    WHAT = ""

    def __init__(self, *names: str) -> None:
        self.names = names

    def toward(self, results: Collection[str]) -> Rule:
        turned = copy(self)
        turned.names = tuple(sorted(self.names, key=lambda name: name in results))
        return turned

    def compared(self, field: Any) -> object:
        """The place in a present field that must be equal."""
        raise NotImplementedError

    def holds(self, desc: OperatorDesc) -> bool:
        compared = None
        for name in self.names:
            field = getattr(desc, name)
            for each in field if isinstance(field, tuple) else (field,):
                if each is not None:
                    found = self.compared(each)
                    if compared is not None and found != compared:
                        return False
                    compared = found
        return True

    def _present(self, desc: OperatorDesc) -> Iterator[str]:
        for name in self.names:
            field = getattr(desc, name)
            if isinstance(field, tuple):
                yield from (f"{name}[{i}]" for i in range(len(field)))
            elif field is not None:
                yield name

    def others(self, desc: OperatorDesc) -> tuple[str, list[str]]:
        """The field that sets the value, and the fields compared with it."""
        first, *others = list(self._present(desc)) or [""]
        return first, others

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"{self.all_of(cls)} have the same {self.WHAT}."

    def all_of(self, cls: type[OperatorDesc]) -> str:
        fields = [field_of(cls, name) for name in self.names]
        return _listed(
            f"{'each of ' * item.array}`{item.c_name}`{' (if given)' * item.optional}" for item in fields
        )


class SameType(_Same):
    """Tensors of one data type; also fields that are a data type (MinMaxDataType)."""

    WHAT = "data type"

    def compared(self, field: Any) -> object:
        return field.data_type if isinstance(field, BufferTensorDesc) else field

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        first, others = self.others(desc)
        for name in others:
            measure = DataType(first)
            wanted = measure.value(desc)
            clause = f"differs from {measure.path(desc)} ({wanted.name}), but both need one type"
            yield Demand(DataType(name), Exactly(wanted), clause=clause)


class SameRank(_Same):
    """Tensors of one DimensionCount."""

    WHAT = "DimensionCount"

    def compared(self, field: Any) -> object:
        return len(field.sizes)

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        first, others = self.others(desc)
        for name in others:
            measure = Rank(first)
            rank = measure.value(desc)
            yield Demand(Rank(name), Exactly(rank), clause=f"differs from {measure.path(desc)} ({rank})")


class SameSizes(_Same):
    """Tensors of one DimensionCount and equal sizes: all, those of a slice (``only=slice(0, 2)``: batch and
    channel), or all but the one along an axis field (``but="axis"``).

    ``hint``: of the desc, and the names of two fields that differ, what to do; empty: the usual hints."""

    def __init__(
        self,
        *names: str,
        only: slice = slice(None),
        but: str = "",
        hint: Callable[[Any, str, str], str] = lambda desc, first, name: "",
    ) -> None:
        super().__init__(*names)
        self.only = only
        self.but = but
        self.hint = hint

    def compared(self, field: Any) -> object:
        return len(field.sizes), field.sizes[self.only]

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        first, others = self.others(desc)
        for demand in SameRank(*self.names).demands(desc, level):
            name = demand.place.name
            differs = demand.place.value(desc) != Rank(first).value(desc)
            yield demand._replace(hint=self.hint(desc, first, name)) if differs else demand
        for name in others:
            wanted, sizes = element_of(desc, first).sizes, element_of(desc, name).sizes
            if len(wanted) == len(sizes):
                for i in range(len(sizes))[self.only]:
                    if not self.but or i != getattr(desc, self.but):
                        yield self._size(desc, Size(first, i), Size(name, i))

    def _size(self, desc: OperatorDesc, measure: Size, place: Size) -> Demand:
        size, wanted = place.value(desc), measure.value(desc)
        if size == wanted:
            return Demand(place, Exactly(wanted))
        clause = f"differs from {measure.path(desc)} ({wanted})"
        hint = self.hint(desc, measure.name, place.name) or _hint_on_nibbles(desc, measure, place)
        if hint:
            return Demand(place, Exactly(wanted), clause=clause, hint=hint)
        broadcast = place if size == 1 else measure if wanted == 1 else None
        if broadcast is None or field_of(type(desc), broadcast.name).kind is FieldKind.OUTPUT_TENSOR:
            return Demand(place, Exactly(wanted), clause=clause)
        hint = "operators do not broadcast by size: give the full size and stride 0"
        return Demand(place, Exactly(wanted), clause=clause, check=OP_NO_BROADCAST, hint=hint)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        same = f"{self.all_of(cls)} have the same DimensionCount"
        if self.but:
            return f"{same}, and the same Sizes except along {_code(cls, self.but)}."
        if self.only == slice(None):
            return f"{same} and Sizes (broadcast with a stride of 0)."
        if self.only.stop < 0:
            return f"{same}, and the same Sizes except in the last {-self.only.stop} dimensions."
        dimensions = range(self.only.start or 0, self.only.stop)
        return f"{same}, and the same Sizes in dimensions {_listed(map(str, dimensions))}."


def _hint_on_nibbles(desc: OperatorDesc, *places: Size) -> str:
    """For a tensor of 4-bit elements with half the size of another tensor: its bytes were counted."""
    for one, other in (places, reversed(places)):
        tensor, beside = element_of(desc, one.name), element_of(desc, other.name)
        if element_bits(tensor.data_type) == 4 < element_bits(beside.data_type):
            size, wanted = one.value(desc), other.value(desc)
            if wanted > 1 and size == (wanted + 1) // 2:
                return (
                    f"Sizes count elements, not bytes: two elements of {tensor.data_type.name} lie in a byte"
                )
    return ""


# --- tensors that are given or not ---


class Given(Rule):
    """At least one of some optional tensors is given; with ``once``, of these no second one."""

    def __init__(self, *names: str, once: Sequence[str] = ()) -> None:
        self.names = names
        self.once = once

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        cls = type(desc)
        others = [field_of(cls, name).c_name for name in self.names[1:]]
        clause = f"and {' and '.join(others)} are not given, but one of them is required"
        yield Demand(Presence(*self.names), OneOf(GIVEN), clause=clause, expected=GIVEN)
        first, *_ = [name for name in self.once if getattr(desc, name) is not None] or [""]
        for name in self.once:
            if first and name != first:
                clause = f"is given beside {field_of(cls, first).c_name}, but both hold the same elements"
                yield Demand(Presence(name), OneOf(None), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        names = _listed(_code(cls, name) for name in self.names)
        once = _listed(_code(cls, name) for name in self.once) if self.once else ""
        return f"At least one of {names} is given{f', and at most one of {once}' * bool(once)}."


class NotOwned(Rule):
    """Inputs that cannot be OWNED_BY_DML."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        for name in self.names:
            if getattr(desc, name) is not None:
                yield Demand(Flags(name), OneOf(TensorFlags.NONE))

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "No input has the flag OWNED_BY_DML."


# --- sizes that follow from other fields ---


class Sizes(Rule):
    """Sizes of a tensor that follow from other fields.

    ``follow`` returns for a desc the dimension, the size (or the set of allowed sizes) and the reason, a
    clause that ends "... is not 4, {why}."
    """

    def __init__(
        self,
        name: str,
        follow: Callable[[Any], Iterable[tuple[int, int | Values, str]]],
        sentence: str,
    ) -> None:
        self.name = name
        self.follow = follow
        self.words = sentence

    def holds(self, desc: OperatorDesc) -> bool:
        tensor = getattr(desc, self.name)
        return tensor is None or all(
            tensor.sizes[dimension] == size for dimension, size, _ in self.follow(desc)
        )

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        tensor = getattr(desc, self.name)
        if tensor is not None:
            for dimension, size, why in self.follow(desc):
                allowed = size if isinstance(size, Values) else Exactly(size)
                yield Demand(Size(self.name, dimension % tensor.rank), allowed, why)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return self.words


class Ones(Rule):
    """All sizes of a tensor are 1, except the last ``but_last``; ``why``: "since ..."."""

    def __init__(self, name: str, why: str, but_last: int = 0) -> None:
        self.name = name
        self.why = why
        self.but_last = but_last

    def holds(self, desc: OperatorDesc) -> bool:
        tensor: BufferTensorDesc | None = getattr(desc, self.name)
        return tensor is None or not any(size > 1 for size in tensor.sizes[: tensor.rank - self.but_last])

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        tensor: BufferTensorDesc | None = getattr(desc, self.name)
        for dimension in range(0 if tensor is None else tensor.rank - self.but_last):
            yield Demand(Size(self.name, dimension), Exactly(1), self.why)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        which = f"All sizes except the last {self.but_last}" if self.but_last else "All sizes"
        return f"{which} of {_code(cls, self.name)} are 1, {self.why}."


class Divisible(Rule):
    """A size that is a multiple of a field."""

    def __init__(self, name: str, dimension: int, by: str) -> None:
        self.name = name
        self.dimension = dimension
        self.by = by

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        by, place = getattr(desc, self.by), Size(self.name, self.dimension)
        clause = f"is not a multiple of {field_of(type(desc), self.by).c_name} ({by})"
        yield Demand(place, Multiple(by), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        name = field_of(cls, self.name).c_name
        return f"`{name}.Sizes[{self.dimension}]` is a multiple of {_code(cls, self.by)}."


class Window(Rule):
    """Strides, WindowSize (or a filter tensor), Dilations if there are any, StartPadding and EndPadding: the
    output has one element for each position of the window in the padded input.

    ``window`` is the array or the tensor that gives the window's sizes.  ``rounded_up``: the quotient may be
    rounded up, so that the last window extends past the end of the padding.
    """

    def __init__(self, source: str, target: str, window: str, *, rounded_up: bool = False) -> None:
        self.source = source
        self.target = target
        self.window = window
        self.rounded_up = rounded_up

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        """Computed with Python integers, as the paddings may add up to more than 32 bits."""
        source = getattr(desc, self.source)
        for i in range(source.rank - 2):
            padded = source.sizes[2 + i] + desc.start_padding[i] + desc.end_padding[i]
            place = self._place(desc, i)
            dilation, dilated = 1, ""
            if has_field(type(desc), "dilations"):
                dilation, dilated = desc.dilations[i], f"with Dilations[{i}] ({desc.dilations[i]}) "
            span = (place.value(desc) - 1) * dilation + 1
            yield Demand(
                place,
                Between(None, (padded - 1) // dilation + 1),
                clause=f"{dilated}spans {span} elements, but the padded input has {padded}",
                check=OP_WINDOW_COUNT,
                given=span,
                expected=f"at most {padded}",
            )
            if span <= padded:
                stride = desc.strides[i]
                why = f"the positions of a window of {span} moved by {stride} over {padded} elements"
                size = (padded - span) // stride + 1
                most = (padded - span - 1) // stride + 2 if self.rounded_up else size
                yield Demand(Size(self.target, 2 + i), Between(size, most), why, check=OP_WINDOW_COUNT)

    def _place(self, desc: OperatorDesc, i: int) -> Place:
        if field_of(type(desc), self.window).is_tensor:
            return Size(self.window, 2 + i)
        return Element(self.window, i)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        item = field_of(cls, self.window)
        source, target = field_of(cls, self.source).c_name, field_of(cls, self.target).c_name
        window = f"{item.c_name}.Sizes[2 + i]" if item.is_tensor else f"{item.c_name}[i]"
        dilated = has_field(cls, "dilations")
        span = f"({window} - 1) * Dilations[i] + 1" if dilated else window
        return (
            f"`{target}.Sizes[2 + i]` is the number of window positions, "
            f"`(Padded - Span) / Strides[i] + 1` rounded down{' or up' * self.rounded_up}: Padded is "
            f"`{source}.Sizes[2 + i] + StartPadding[i] + EndPadding[i]`, Span is `{span}` and at most Padded."
        )


# --- fields that are not tensors ---


class AtLeast(Rule):
    """A number, or each number of an array or of a Size2D, is at least ``least``."""

    def __init__(self, name: str, least: int) -> None:
        self.name = name
        self.least = least

    def holds(self, desc: OperatorDesc) -> bool:
        value = getattr(desc, self.name)
        if isinstance(value, Size2D):
            return min(value.width, value.height) >= self.least
        return all(each >= self.least for each in (value if isinstance(value, tuple) else (value,)))

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        for place in _numbers(desc, self.name):
            yield Demand(place, Between(self.least, None))

    def sentence(self, cls: type[OperatorDesc]) -> str:
        each = "Each of " if field_of(cls, self.name).kind in (*ARRAYS, FieldKind.SIZE_2D) else ""
        return f"{each}{_code(cls, self.name)} is at least {self.least}."


class EachAtLeast1(Rule):
    """All numbers of the arrays that the operator has; numbered variants may lack some."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def _present(self, cls: type[OperatorDesc]) -> list[str]:
        return [name for name in self.names if has_field(cls, name)]

    def holds(self, desc: OperatorDesc) -> bool:
        return all(number >= 1 for name in self._present(type(desc)) for number in getattr(desc, name))

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        for name in self._present(type(desc)):
            for place in _numbers(desc, name):
                yield Demand(place, Between(1, None))

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"Each of {_listed(_code(cls, name) for name in self._present(cls))} is at least 1."


class AboveZero(Rule):
    """Each number of an array is more than 0; it may be a fraction."""

    def __init__(self, name: str) -> None:
        self.name = name

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        for place in _numbers(desc, self.name):
            yield Demand(place, Positive())

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"Each of {_code(cls, self.name)} is more than 0."


class Nonzero(Rule):
    """No number of an array is 0."""

    def __init__(self, name: str) -> None:
        self.name = name

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        for place in _numbers(desc, self.name):
            yield Demand(place, Except((0,)), clause="is 0", expected="not 0")

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"None of {_code(cls, self.name)} is 0."


class NotEmpty(Rule):
    """An array of tensors has at least one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        yield Demand(Count(self.name), Between(1, None))

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"`{field_of(cls, self.name).count}` is at least 1."


class Without(Rule):
    """An enum field is not one of some members."""

    def __init__(self, name: str, *members: IntEnum) -> None:
        self.name = name
        self.members = members

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        place = Attribute(self.name)
        allowed = [each for each in field_of(type(desc), self.name).enum or () if each not in self.members]
        yield Demand(place, Among(allowed))

    def sentence(self, cls: type[OperatorDesc]) -> str:
        names = " or ".join(each.name for each in self.members)
        return f"{_code(cls, self.name)} is not {names}."


class Axis(Rule):
    """An axis, or each axis of an array, is a dimension of a tensor; no axis is repeated."""

    def __init__(self, name: str, of: str) -> None:
        self.name = name
        self.of = of

    def holds(self, desc: OperatorDesc) -> bool:
        value, rank = getattr(desc, self.name), getattr(desc, self.of).rank
        axes = value if isinstance(value, tuple) else (value,)
        return all(axis < rank for axis in axes) and len(set(axes)) == len(axes)

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        c_name, rank = field_of(type(desc), self.name).c_name, Rank(self.of)
        dimensions = rank.value(desc)
        before: list[int] = []
        for place in _numbers(desc, self.name):
            clause = f"is not below {rank.path(desc)} ({dimensions})"
            yield Demand(place, Between(0, dimensions - 1), clause=clause)
            if isinstance(place, Element):
                given, clause = list(getattr(desc, self.name)), f"occurs in {c_name} twice"
                yield Demand(
                    place, Except(tuple(before)), clause=clause, given=given, expected="each axis once"
                )
                before.append(place.value(desc))

    def sentence(self, cls: type[OperatorDesc]) -> str:
        below = f"below `{field_of(cls, self.of).c_name}.DimensionCount`"
        if field_of(cls, self.name).kind in ARRAYS:
            return f"Each of {_code(cls, self.name)} is {below}; none is listed twice."
        return f"{_code(cls, self.name)} is {below}."


class Length(Rule):
    """An array has a number for each dimension of a tensor, or with ``spatial`` for each except two."""

    def __init__(self, name: str, of: str, *, spatial: bool = False) -> None:
        self.name = name
        self.of = of
        self.spatial = spatial

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        tensor = field_of(type(desc), self.of).c_name
        length = Rank(self.of).value(desc) - 2 * self.spatial
        what = f"the number of {'spatial ' * self.spatial}dimensions of {tensor}"
        yield Demand(Count(self.name), Exactly(length), clause=f"is not {what} ({length})")

    def sentence(self, cls: type[OperatorDesc]) -> str:
        count, tensor = field_of(cls, self.name).count, field_of(cls, self.of).c_name
        less = " - 2, the number of spatial dimensions" if self.spatial else ""
        return f"`{count}` is `{tensor}.DimensionCount`{less}."


class HasCount(Rule):
    """An array has one of some lengths."""

    def __init__(self, name: str, allowed: Values) -> None:
        self.name = name
        self.allowed = allowed

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        yield Demand(Count(self.name), self.allowed)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"`{field_of(cls, self.name).count}` is {self.allowed.expected}."


# --- rules under a condition ---


class Below(Rule):
    """A rule that a feature level lifted."""

    def __init__(self, level: FeatureLevel, rule: Rule) -> None:
        self.level = level
        self.rule = rule

    def toward(self, results: Collection[str]) -> Rule:
        return Below(self.level, self.rule.toward(results))

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        if level < self.level:
            hint = f"feature level {level_name(self.level)} allows it"
            for demand in self.rule.demands(desc, level):
                yield demand._replace(hint=hint)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"Below feature level {level_name(self.level)}: {self.rule.sentence(cls)}"


class Unless(Rule):
    """A rule that does not hold where a field is one of ``members``."""

    def __init__(self, name: str, members: Collection[Enum], rule: Rule) -> None:
        self.name = name
        self.members = members
        self.rule = rule

    def toward(self, results: Collection[str]) -> Rule:
        return Unless(self.name, self.members, self.rule.toward(results))

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        if getattr(desc, self.name) not in self.members:
            yield from self.rule.demands(desc, level)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        names = " or ".join(each.name for each in self.members)
        return f"Unless {_code(cls, self.name)} is {names}: {self.rule.sentence(cls)}"


def _numbers(desc: OperatorDesc, name: str) -> Sequence[Place]:
    item = field_of(type(desc), name)
    if item.kind in ARRAYS:
        return [Element(name, i) for i in range(len(getattr(desc, name)))]
    if item.kind is FieldKind.SIZE_2D:
        return [Member(name, "width"), Member(name, "height")]
    return [Attribute(name)]


def _code(cls: type[OperatorDesc], name: str) -> str:
    return f"`{field_of(cls, name).c_name}`"


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
