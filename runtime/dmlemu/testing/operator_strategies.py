"""Strategies of operator descs, for every declared operator, built from its declaration.

A desc is drawn field by field, with ranks and types from the operator's table.  Then its rules
(:mod:`dmlemu.dml.declared.rules`) are solved: a value that a rule refuses is replaced by an allowed one,
until no rule refuses the desc.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from ..dml import BufferTensorDesc, FeatureLevel, OperatorDesc, OperatorType, ScalarUnion, ScaleBias, Size2D
from ..dml import TensorDataType as T
from ..dml.declared import declared
from ..dml.declared.definition import definition_class, definition_of, emulated, example_of
from ..dml.declared.places import field_of
from ..dml.declared.rules import Axis, Length, NotOwned
from ..dml.declared.schema import Allowed, Field, FieldKind, operator_fields
from ..dml.enums import TensorFlags
from ..errors import quote
from .rule_solver import solved
from .strategies import LayoutKind, chosen_kinds, layouts_of, shapes

__all__ = ["activations", "operator_descs"]

_NEWEST = max(FeatureLevel)
_MOST_ELEMENTS = 400
_TOO_MANY_ELEMENTS = 4 * _MOST_ELEMENTS  # of a tensor whose sizes follow from others
_MOST_TENSORS = 4  # of an array

_Given = Mapping[str, tuple[T, int]]  # data type and rank of the tensors of some fields

_JUMPS = {OperatorType.ACTIVATION_SHRINK, OperatorType.ACTIVATION_THRESHOLDED_RELU}
_floats = st.sampled_from([1.0, 0.5, 2.0, -0.75, 0.1, 3.0, 0.0])


def operator_descs(
    operator: OperatorType | type[OperatorDesc] | None = None,
    *,
    feature_level: FeatureLevel = _NEWEST,
    kinds: Collection[LayoutKind] | None = None,
    tensors: Mapping[str, tuple[T, int]] | None = None,
) -> st.SearchStrategy[OperatorDesc]:
    """Legal descs of ``operator``, or of any emulated one, for a device of ``feature_level``.

    Ranks, data types, sizes and fields are any that the operator allows, with few elements; optional
    tensors may be absent; each tensor has any legal layout (``kinds``, see :func:`layouts_of`).
    ``tensors`` gives the data types and ranks of some: ``{"a_tensor": (TensorDataType.FLOAT16, 4)}``.

    Raises TypeError for what is no operator, ValueError for one that is not emulated, or newer than the
    feature level.
    """
    for output in (False, True):
        chosen_kinds(kinds, output=output)
    if operator is None:
        known = st.sampled_from(_emulated(feature_level))
        return known.flatmap(lambda cls: _laid_out(cls, feature_level, kinds, {}))
    cls = declared().get(operator) if isinstance(operator, OperatorType) else operator
    if cls is not None and not (isinstance(cls, type) and issubclass(cls, OperatorDesc)):
        raise TypeError(f"operator must be an OperatorType or a class of descs, not {quote(operator)}")
    if cls is None or definition_class(cls.TYPE) is None:
        raise ValueError(f"{operator!r} is not emulated; see 'dmlemu explain'")
    if feature_level < cls.INTRODUCED:
        raise ValueError(f"DML_OPERATOR_{cls.TYPE.name} is newer than {feature_level.name}")
    return _laid_out(cls, feature_level, kinds, tensors or {})


def _emulated(level: FeatureLevel) -> list[type[OperatorDesc]]:
    """The descs of the operators that a device of the level supports."""
    known = (declared()[operator] for operator in sorted(emulated()))
    return [cls for cls in known if level >= cls.INTRODUCED]


@st.composite
def _laid_out(
    draw: st.DrawFn,
    cls: type[OperatorDesc],
    level: FeatureLevel,
    kinds: Collection[LayoutKind] | None,
    given: _Given,
) -> OperatorDesc:
    desc: Any = draw(_packed(cls, level, given))
    changes = {}
    rules = definition_of(desc).RULES
    not_owned = {name for rule in rules if isinstance(rule, NotOwned) for name in rule.names}
    for item in _tensor_fields(cls):
        of_field = getattr(desc, item.name)
        output = item.kind is FieldKind.OUTPUT_TENSOR
        laid = [
            each and draw(layouts_of(each.sizes, each.data_type, kinds=kinds, output=output))
            for each in (of_field if item.array else [of_field])
        ]
        if item.name in not_owned:
            laid = [each and replace(each, flags=TensorFlags.NONE) for each in laid]
        changes[item.name] = laid if item.array else laid[0]
    laid_out: OperatorDesc = replace(desc, **changes)
    return laid_out


@st.composite
def _packed(draw: st.DrawFn, cls: type[OperatorDesc], level: FeatureLevel, given: _Given) -> OperatorDesc:
    """A legal desc whose tensors are packed."""
    numbers: dict[str, Any] = {
        item.name: draw(_attribute(item, level) | _usual(item, cls))
        for item in operator_fields(cls)
        if not item.is_tensor
    }
    if getattr(numbers.get("fused_activation"), "TYPE", None) in _JUMPS and not _is_exact(cls, numbers):
        numbers["fused_activation"] = None  # a rounding before the jump would be a large error behind it
    none: dict[str, Any] = {item.name: () if item.array else None for item in _tensor_fields(cls)}
    table = cls(**numbers, **none).allowed(level)  # may depend on the other fields
    if any(not _allows(table[name], *each) for name, each in given.items()):
        reject()
    tensors = draw(_tensors(cls, table, given))
    rank = max((len(tensor.sizes) for tensor in _each(tensors.values())), default=1)
    rules = definition_of(cls(**numbers, **none)).RULES
    axes = {rule.name for rule in rules if isinstance(rule, Axis)}
    spatial = {field_of(cls, rule.name).count: rule.spatial for rule in rules if isinstance(rule, Length)}
    for item in operator_fields(cls):
        if item.kind in (FieldKind.UINT_ARRAY, FieldKind.INT_ARRAY):
            count = rank - 2 * spatial.get(item.count, True)
            numbers[item.name] = draw(_axes(rank) if item.name in axes else _numbers(item.kind, count))
    usual = not draw(_now_and_then)
    try:
        desc = solved(
            cls(**numbers, **tensors), level, lambda low, high: draw(st.integers(low, high)), usual=usual
        )
    except LookupError:
        reject()
    if any(tensor.element_count > _TOO_MANY_ELEMENTS for tensor in _each(_fields(desc))):
        reject()
    if not all(getattr(desc, name) for name in given):
        reject()
    for item in _tensor_fields(cls):
        for tensor in _each([getattr(desc, item.name)]):
            found = tensor.data_type, tensor.rank
            if found != given.get(item.name, found) or not _allows(table[item.name], *found):
                reject()
    return draw(_with_scalars(desc))


def _fields(desc: OperatorDesc) -> Iterator[Any]:
    return (getattr(desc, item.name) for item in _tensor_fields(type(desc)))


def _each(fields: Iterable[Any]) -> Iterator[BufferTensorDesc]:
    """The tensors of tensor fields, with those in arrays."""
    for given in fields:
        yield from given if isinstance(given, tuple) else () if given is None else (given,)


def _tensor_fields(cls: type[OperatorDesc]) -> list[Field]:
    return [item for item in operator_fields(cls) if item.is_tensor]


# --- fields ---


@st.composite
def _tensors(
    draw: st.DrawFn, cls: type[OperatorDesc], table: Mapping[str, Allowed], given: _Given
) -> dict[str, Any]:
    """Most operators need equal sizes and types, so those of the first tensor are tried for all; the first
    ones are those of which something is given."""
    tensors: dict[str, Any] = {}
    first: BufferTensorDesc | None = None
    for item in sorted(_tensor_fields(cls), key=lambda item: item.name not in given):
        of_field: list[Any] = []
        for _ in range(draw(st.integers(1, _MOST_TENSORS)) if item.array else 1):
            if item.name in given:
                data_type, rank = given[item.name]
                of_field.append(BufferTensorDesc(data_type, draw(shapes(rank, rank, _MOST_ELEMENTS))))
            else:
                of_field.append(draw(_tensor(item, table[item.name], first)))
            first = first or of_field[-1]
        tensors[item.name] = tuple(of_field) if item.array else of_field[0]
    return tensors


@st.composite
def _tensor(
    draw: st.DrawFn, item: Field, allowed: Allowed, first: BufferTensorDesc | None
) -> BufferTensorDesc | None:
    if item.optional and not draw(st.booleans()):
        return None
    if first is None or draw(_now_and_then):
        sizes = draw(shapes(allowed.min_rank, allowed.max_rank, _MOST_ELEMENTS))
        return BufferTensorDesc(draw(st.sampled_from(sorted(allowed.data_types))), sizes)
    return BufferTensorDesc(_near(first.data_type, allowed), first.sizes)


_now_and_then = st.integers(0, 2).map(lambda n: n == 2)


def _allows(allowed: Allowed, data_type: T, rank: int) -> bool:
    return data_type in allowed.data_types and allowed.min_rank <= rank <= allowed.max_rank


def _near(data_type: T, allowed: Allowed) -> T:
    return data_type if data_type in allowed.data_types else min(allowed.data_types)


def _attribute(item: Field, level: FeatureLevel) -> st.SearchStrategy[Any]:
    """Values of a field that is no tensor; arrays and scalars of a type that is not known yet are filled in
    later."""
    if item.kind is FieldKind.UINT:
        return st.integers(1, 3)
    if item.kind is FieldKind.INT:
        return st.integers(-3, 3)
    if item.kind is FieldKind.SIZE_2D:
        return st.builds(Size2D, st.integers(1, 3), st.integers(1, 3))
    if item.kind is FieldKind.BOOL:
        return st.booleans()
    if item.kind is FieldKind.FLOAT:
        return _floats
    if item.kind is FieldKind.ENUM and item.enum is not None:
        return st.sampled_from(sorted(item.enum))
    if item.kind in (FieldKind.UINT_ARRAY, FieldKind.INT_ARRAY):
        return st.just(())
    if item.kind is FieldKind.FLOAT_ARRAY:
        return st.lists(_floats, max_size=3)
    if item.kind is FieldKind.SCALE_BIAS:
        return st.none() | st.builds(ScaleBias, _floats, _floats)
    if item.kind is FieldKind.SCALAR_UNION:
        return st.just(ScalarUnion())
    if item.kind is FieldKind.OPERATOR_DESC and item.array:
        return st.lists(activations(feature_level=level), min_size=1, max_size=3)
    if item.kind is FieldKind.OPERATOR_DESC:
        return st.none() | activations(feature_level=level)
    raise NotImplementedError(f"fields of type {item.kind.value} ({item.c_name})")


def _usual(item: Field, cls: type[OperatorDesc]) -> st.SearchStrategy[Any]:
    """The value of the operator's example, if it has one, where few of all values are what programs use."""
    is_array_of_descs = item.kind is FieldKind.OPERATOR_DESC and item.array
    if not is_array_of_descs and item.kind not in (FieldKind.FLOAT, FieldKind.FLOAT_ARRAY):
        return st.nothing()
    try:
        return st.just(getattr(example_of(cls), item.name))
    except NotImplementedError:
        return st.nothing()


def _is_exact(cls: type[OperatorDesc], numbers: Mapping[str, Any]) -> bool:
    """Whether sums of small inputs are, before a fused activation."""
    given = [each for each in numbers.values() if isinstance(each, float)]
    return "NORMALIZATION" not in cls.TYPE.name and all((64 * each).is_integer() for each in given)


def _axes(rank: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, rank - 1), unique=True)


def _numbers(kind: FieldKind, count: int) -> st.SearchStrategy[list[int]]:
    """A number for each dimension, or for each spatial one."""
    count = max(0, count)
    least = 0 if kind is FieldKind.UINT_ARRAY else -2
    return st.lists(st.integers(least, 2), min_size=count, max_size=count)


def activations(
    operator: OperatorType | None = None, *, feature_level: FeatureLevel = _NEWEST
) -> st.SearchStrategy[OperatorDesc]:
    """Descs of activations as FusedActivation: without tensors."""
    fusable = [cls for cls in _emulated(feature_level) if all(item.fusable for item in _tensor_fields(cls))]
    if operator is not None:
        fusable = [cls for cls in fusable if cls.TYPE is operator]
    return st.sampled_from(fusable).flatmap(lambda cls: _activation(cls, feature_level))


@st.composite
def _activation(draw: st.DrawFn, cls: type[OperatorDesc], level: FeatureLevel) -> OperatorDesc:
    fields = [item for item in operator_fields(cls) if not item.is_tensor]
    return cls(**{item.name: draw(_attribute(item, level)) for item in fields})


@st.composite
def _with_scalars(draw: st.DrawFn, desc: OperatorDesc) -> OperatorDesc:
    """The scalars whose type is given by another field."""
    changes: dict[str, Any] = {}
    for item in operator_fields(type(desc)):
        if item.kind is FieldKind.SCALAR_UNION:
            source = getattr(desc, item.type_from)
            data_type = source if isinstance(source, T) else source.data_type
            changes[item.name] = ScalarUnion.of(data_type, draw(st.integers(0, 5)))
    return replace(desc, **changes) if changes else desc
