"""Strategies of operator descs, for every declared operator, built from its declaration.

A desc is drawn field by field, with ranks and types from the operator's table.  Then its rules
(:mod:`dmlemu.dml.operators.rules`) are solved: a value that a rule refuses is replaced by an allowed one,
until no rule refuses the desc.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from ..dml import BufferTensorDesc, FeatureLevel, OperatorDesc, OperatorType, ScalarUnion, ScaleBias
from ..dml import TensorDataType as T
from ..dml.operators import declared
from ..dml.operators.definition import definition_class, definition_of, emulated
from ..dml.operators.rules import Axis
from ..dml.operators.schema import Allowed, Field, FieldKind, operator_fields
from ..errors import quote
from .rule_solver import solved
from .strategies import LayoutKind, chosen_kinds, layouts_of, shapes

__all__ = ["activations", "operator_descs"]

_NEWEST = max(FeatureLevel)
_MOST_ELEMENTS = 400

_floats = st.sampled_from([1.0, 0.5, 2.0, -0.75, 0.1, 3.0, 0.0])


def operator_descs(
    operator: OperatorType | type[OperatorDesc] | None = None,
    *,
    feature_level: FeatureLevel = _NEWEST,
    kinds: Collection[LayoutKind] | None = None,
) -> st.SearchStrategy[OperatorDesc]:
    """Legal descs of ``operator``, or of any emulated one, for a device of ``feature_level``.

    Ranks, data types, sizes and fields are any that the operator allows, with few elements; optional
    tensors may be absent; each tensor has any legal layout (``kinds``, see :func:`layouts_of`).

    Raises TypeError for what is no operator, ValueError for one that is not emulated, or newer than the
    feature level.
    """
    for output in (False, True):
        chosen_kinds(kinds, output=output)
    if operator is None:
        known = st.sampled_from(_emulated(feature_level))
        return known.flatmap(lambda cls: _laid_out(cls, feature_level, kinds))
    cls = declared().get(operator) if isinstance(operator, OperatorType) else operator
    if cls is not None and not (isinstance(cls, type) and issubclass(cls, OperatorDesc)):
        raise TypeError(f"operator must be an OperatorType or a class of descs, not {quote(operator)}")
    if cls is None or definition_class(cls.TYPE) is None:
        raise ValueError(f"{operator!r} is not emulated; see 'dmlemu explain'")
    if feature_level < cls.INTRODUCED:
        raise ValueError(f"DML_OPERATOR_{cls.TYPE.name} is newer than {feature_level.name}")
    return _laid_out(cls, feature_level, kinds)


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
) -> OperatorDesc:
    desc: Any = draw(_packed(cls, level))
    changes = {}
    for item in _tensor_fields(cls):
        tensor = getattr(desc, item.name)
        if tensor is not None:
            output = item.kind is FieldKind.OUTPUT_TENSOR
            changes[item.name] = draw(layouts_of(tensor.sizes, tensor.data_type, kinds=kinds, output=output))
    laid_out: OperatorDesc = replace(desc, **changes)
    return laid_out


@st.composite
def _packed(draw: st.DrawFn, cls: type[OperatorDesc], level: FeatureLevel) -> OperatorDesc:
    """A legal desc whose tensors are packed."""
    numbers: dict[str, Any] = {
        item.name: draw(_attribute(item, level)) for item in operator_fields(cls) if not item.is_tensor
    }
    none = {item.name: None for item in _tensor_fields(cls)}
    table = cls(**numbers, **none).allowed(level)  # may depend on the other fields
    tensors = draw(_tensors(cls, table))
    rank = max((len(tensor.sizes) for tensor in tensors.values() if tensor is not None), default=1)
    axes = {rule.name for rule in definition_of(cls(**numbers, **none)).RULES if isinstance(rule, Axis)}
    for item in operator_fields(cls):
        if item.kind is FieldKind.UINT_ARRAY:
            numbers[item.name] = draw(_axes(rank) if item.name in axes else _per_dimension(rank))
    try:
        desc = solved(cls(**numbers, **tensors), level, lambda low, high: draw(st.integers(low, high)))
    except LookupError:
        reject()
    if any(size > _MOST_ELEMENTS**2 for size in _sizes(desc)):
        reject()
    return draw(_with_scalars(desc))


def _sizes(desc: OperatorDesc) -> Iterator[int]:
    for item in _tensor_fields(type(desc)):
        tensor = getattr(desc, item.name)
        yield from () if tensor is None else tensor.sizes


def _tensor_fields(cls: type[OperatorDesc]) -> list[Field]:
    return [item for item in operator_fields(cls) if item.is_tensor]


# --- fields ---


@st.composite
def _tensors(
    draw: st.DrawFn, cls: type[OperatorDesc], table: Mapping[str, Allowed]
) -> dict[str, BufferTensorDesc | None]:
    """Most operators need equal sizes and types, so those of the first tensor are tried for all."""
    tensors: dict[str, BufferTensorDesc | None] = {}
    first: BufferTensorDesc | None = None
    for item in _tensor_fields(cls):
        if item.array:
            raise NotImplementedError(f"{item.c_name} of DML_OPERATOR_{cls.TYPE.name} is an array of tensors")
        allowed = table[item.name]
        if item.optional and not draw(st.booleans()):
            tensors[item.name] = None
        elif first is None or draw(_now_and_then):
            sizes = draw(shapes(allowed.min_rank, allowed.max_rank, _MOST_ELEMENTS))
            tensors[item.name] = BufferTensorDesc(draw(st.sampled_from(sorted(allowed.data_types))), sizes)
        else:
            tensors[item.name] = BufferTensorDesc(_near(first.data_type, allowed), first.sizes)
        first = first or tensors[item.name]
    return tensors


_now_and_then = st.integers(0, 2).map(lambda n: n == 2)


def _near(data_type: T, allowed: Allowed) -> T:
    return data_type if data_type in allowed.data_types else min(allowed.data_types)


def _attribute(item: Field, level: FeatureLevel) -> st.SearchStrategy[Any]:
    """Values of a field that is no tensor; arrays and scalars of a type that is not known yet are filled in
    later."""
    if item.kind is FieldKind.UINT:
        return st.integers(1, 3)
    if item.kind is FieldKind.BOOL:
        return st.booleans()
    if item.kind is FieldKind.FLOAT:
        return _floats
    if item.kind is FieldKind.ENUM and item.enum is not None:
        return st.sampled_from(sorted(item.enum))
    if item.kind is FieldKind.UINT_ARRAY:
        return st.just(())
    if item.kind is FieldKind.FLOAT_ARRAY:
        return st.lists(_floats, max_size=3)
    if item.kind is FieldKind.SCALE_BIAS:
        return st.none() | st.builds(ScaleBias, _floats, _floats)
    if item.kind is FieldKind.SCALAR_UNION:
        return st.just(ScalarUnion())
    if item.kind is FieldKind.OPERATOR_DESC:
        return st.none() | activations(feature_level=level)
    raise NotImplementedError(f"fields of type {item.kind.value} ({item.c_name})")


def _axes(rank: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, rank - 1), unique=True)


def _per_dimension(rank: int) -> st.SearchStrategy[list[int]]:
    """A number for each spatial dimension; where there is one for each dimension the rules add the rest."""
    spatial = max(0, rank - 2)
    return st.lists(st.integers(0, 2), min_size=spatial, max_size=spatial)


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
