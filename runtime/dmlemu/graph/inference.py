"""Sizes and data types of an operator's outputs, from its inputs and its other fields.

The definitions' rules say them.  Each output begins as the operator's first input; then its sizes and its
type are changed to what the rules ask for.  What they leave open is in ``OPEN``: the caller says it, or it is
chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import floor
from typing import Any, NamedTuple

from ..dml.declared import declared
from ..dml.declared.definition import definition_class
from ..dml.declared.places import DataType, Place, Rank, Size
from ..dml.declared.rules import Rule
from ..dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from ..dml.declared.validation import DescValidator
from ..dml.enums import ConvolutionDirection, FeatureLevel, OperatorType, TensorDataType
from ..dml.tensor_desc import BufferTensorDesc
from ..frozen import changed

__all__ = ["OPEN", "Open", "Said", "inferred", "output_names"]

Fields = Mapping[str, Any]
Sizes = Sequence[int]

_MOST_ROUNDS = 10
_MOST_CHANGES = 100


class Open(NamedTuple):
    """What an operator's rules leave open.

    ``output``: the output that it concerns; by default the first.  ``sizes``: whether the caller must
    (``REQUIRED``) or may (``OPTIONAL``) say its sizes; ``data_type``: the same for its type, or the type that
    it has if the caller does not say it.  ``chosen``: the sizes that follow from the other fields and from
    ``more``, parameters that the desc does not have; for an array of outputs the sizes of each.
    """

    output: str = ""
    sizes: str = ""
    data_type: str | TensorDataType = ""
    more: tuple[str, ...] = ()
    chosen: Callable[[Fields], Any] | None = None


REQUIRED, OPTIONAL = "required", "optional"


def _convolved(fields: Fields) -> Sizes | None:
    """A backward convolution: the elements that the windows cover less the padding, and OutputPadding."""
    if fields["direction"] is not ConvolutionDirection.BACKWARD:
        return None
    x, w = fields["input_tensor"].sizes, fields["filter_tensor"].sizes
    arrays = (
        fields[name] for name in ("strides", "dilations", "start_padding", "end_padding", "output_padding")
    )
    spatial = [
        (size - 1) * stride + (taps - 1) * dilation + 1 - start - end + more
        for size, taps, stride, dilation, start, end, more in zip(x[2:], w[2:], *arrays, strict=True)
    ]
    return [x[0], w[1] * fields["group_count"], *(max(1, size) for size in spatial)]


def _along_axis(fields: Fields) -> list[Sizes]:
    sizes, axis = list(fields["input_tensor"].sizes), fields["axis"]
    return [[*sizes[:axis], size, *sizes[axis + 1 :]] for size in fields["output_axis_sizes"]]


def _one_hot(fields: Fields) -> Sizes:
    sizes, axis = list(fields["indices_tensor"].sizes), fields["axis"]
    return [*sizes[:axis], fields["output_length"], *sizes[axis + 1 :]]


def _sliced(fields: Fields) -> Sizes:
    windows = zip(fields["input_window_sizes"], fields["input_window_strides"], strict=True)
    return [(size - 1) // abs(stride) + 1 if stride else 1 for size, stride in windows]


def _resampled(fields: Fields) -> Sizes:
    scales = zip(fields["input_tensor"].sizes, fields["scales"], strict=True)
    return [max(1, floor(size * scale)) for size, scale in scales]


def _regions(fields: Fields) -> Sizes:
    count, channels = fields["roi_tensor"].sizes[-2], fields["input_tensor"].sizes[1]
    return [count, channels, fields["output_height"], fields["output_width"]]


_COORDINATES = "output_coordinates_tensor"


def _coordinates(fields: Fields) -> Sizes:
    x = fields["input_tensor"]
    return [*(1,) * (x.rank - 2), x.element_count, x.rank]


_U8, _U32 = TensorDataType.UINT8, TensorDataType.UINT32
_SIZED, _MAY_BE_SIZED = Open(sizes=REQUIRED), Open(sizes=OPTIONAL)
_ROI = Open(more=("output_height", "output_width"), chosen=_regions)

OPEN: Mapping[str, Open] = {
    **dict.fromkeys(
        (
            *("ELEMENT_WISE_LOGICAL_EQUALS", "ELEMENT_WISE_IS_NAN", "ELEMENT_WISE_IS_INFINITY"),
            *("ELEMENT_WISE_LOGICAL_GREATER_THAN", "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL"),
            *("ELEMENT_WISE_LOGICAL_LESS_THAN", "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL"),
            *("ELEMENT_WISE_BIT_COUNT", "ELEMENT_WISE_QUANTIZE_LINEAR", "DYNAMIC_QUANTIZE_LINEAR"),
            "QUANTIZE",
        ),
        Open(data_type=_U8),
    ),
    "CAST": Open(data_type=REQUIRED),
    **dict.fromkeys(("ARGMAX", "ARGMIN", "REDUCE"), Open(data_type=_U32)),
    **dict.fromkeys(("TOP_K", "TOP_K1"), Open("output_index_tensor", data_type=_U32)),
    **dict.fromkeys(
        ("QUANTIZED_LINEAR_MATRIX_MULTIPLY", "ELEMENT_WISE_QUANTIZED_LINEAR_ADD"), Open(data_type=OPTIONAL)
    ),
    "CONVOLUTION": Open(sizes=OPTIONAL, chosen=_convolved),
    "CONVOLUTION_INTEGER": _MAY_BE_SIZED,
    "QUANTIZED_LINEAR_CONVOLUTION": Open(sizes=OPTIONAL, data_type=OPTIONAL),
    **dict.fromkeys(("AVERAGE_POOLING", "AVERAGE_POOLING1", "LP_POOLING", "LP_POOLING1"), _MAY_BE_SIZED),
    **dict.fromkeys(("MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"), _MAY_BE_SIZED),
    "QUANTIZED_LINEAR_AVERAGE_POOLING": Open(sizes=OPTIONAL, data_type=OPTIONAL),
    **dict.fromkeys(("AVERAGE_POOLING_GRAD", "MAX_UNPOOLING", "FOLD", "SLICE_GRAD"), _SIZED),
    **dict.fromkeys(("RESAMPLE_GRAD", "RESAMPLE_GRAD1"), _SIZED),
    **dict.fromkeys(("FILL_VALUE_CONSTANT", "FILL_VALUE_SEQUENCE", "RANDOM_GENERATOR"), _SIZED),
    "DIAGONAL_MATRIX": Open(sizes=REQUIRED, data_type=TensorDataType.FLOAT32),
    "DIAGONAL_MATRIX1": _MAY_BE_SIZED,
    "SPLIT": Open(more=("output_axis_sizes",), chosen=_along_axis),
    "ONE_HOT": Open(more=("output_length",), chosen=_one_hot),
    "SLICE1": Open(sizes=OPTIONAL, chosen=_sliced),
    **dict.fromkeys(("GATHER_ND", "GATHER_ND1"), _MAY_BE_SIZED),  # as many dimensions as the caller likes
    **dict.fromkeys(
        ("RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3"), Open(sizes=OPTIONAL, chosen=_resampled)
    ),
    "ROI_ALIGN": _ROI,
    "ROI_ALIGN1": _ROI,
    "ROI_ALIGN_GRAD": _MAY_BE_SIZED,
    "NONZERO_COORDINATES": Open(_COORDINATES, sizes=OPTIONAL, chosen=_coordinates),
}


_NOTHING: Fields = {}


class Said(NamedTuple):
    """What the caller says: of the open output, and which optional outputs there are."""

    sizes: Sizes | None = None
    data_type: TensorDataType | None = None
    more: Fields = _NOTHING
    absent: frozenset[str] = frozenset()


@cache
def output_names(type: OperatorType) -> tuple[str, ...]:
    """The fields of an operator's outputs."""
    fields = operator_fields(declared()[type])
    return tuple(item.name for item in fields if item.kind is FieldKind.OUTPUT_TENSOR)


def inferred(cls: type[OperatorDesc], fields: Fields, said: Said, level: FeatureLevel) -> OperatorDesc:
    """The desc with packed outputs; ``fields`` are all others.

    Rules that the inputs and the other fields violate are left to CreateOperator.  Raises
    :class:`dmlemu.Error` as it does, for fields of a wrong kind.
    """
    outputs = output_names(cls.TYPE)
    operation = f"CreateOperator(DML_OPERATOR_{cls.TYPE.name})"
    bare = cls(**fields, **dict.fromkeys(outputs))
    check = DescValidator(bare, level, operation)
    check.feature_level()
    check.attributes()
    desc = changed(bare, **_first_guess(bare, said, level))
    DescValidator(desc, level, operation).tensors()
    desc, sound = _solved(desc, level, _said_places(cls.TYPE, said))
    open_ = OPEN.get(cls.TYPE.name, Open())
    if sound and open_.chosen is not None and said.sizes is None:
        sizes = open_.chosen({**bare.__dict__, **said.more})
        name = open_.output or outputs[0]
        if sizes is not None and not isinstance(getattr(desc, name), tuple):
            sized = BufferTensorDesc(getattr(desc, name).data_type, sizes)
            desc, sound = _solved(replace(desc, **{name: sized}), level, {(name, "sizes")})
    return desc


def _first_guess(bare: OperatorDesc, said: Said, level: FeatureLevel) -> dict[str, Any]:
    """The open output as said or chosen; each other one like the first input, as far as its table allows."""
    open_ = OPEN.get(bare.TYPE.name, Open())
    names = output_names(bare.TYPE)
    table, first = bare.allowed(level), _first_input(bare)
    guess: dict[str, Any] = {}
    for item in operator_fields(type(bare)):
        name = item.name
        if name not in names or name in said.absent:
            continue
        allowed, sizes, data_type = table[name], None, None
        if name == (open_.output or names[0]):
            sizes, data_type = said.sizes, said.data_type
            if item.array and open_.chosen is not None:
                sizes = open_.chosen({**bare.__dict__, **said.more})
            if data_type is None and isinstance(open_.data_type, TensorDataType):
                data_type = open_.data_type if open_.data_type in allowed.data_types else None
        if sizes is None:
            found = (1,) if first is None else first.sizes
            rank = min(max(len(found), allowed.min_rank), allowed.max_rank)
            sizes = ((1,) * rank + tuple(found))[-rank:]
        if data_type is None:
            data_type = None if first is None else first.data_type
            if data_type not in allowed.data_types:
                data_type = min(allowed.data_types)
        each: Sequence[Any] = sizes if item.array else [sizes]
        made = tuple(BufferTensorDesc(data_type, one) for one in each)
        guess[name] = made if item.array else made[0]
    return guess


def _first_input(desc: OperatorDesc) -> BufferTensorDesc | None:
    for item in operator_fields(type(desc)):
        if item.kind is FieldKind.INPUT_TENSOR:
            for tensor in getattr(desc, item.name) or () if item.array else (getattr(desc, item.name),):
                if isinstance(tensor, BufferTensorDesc):
                    return tensor
    return None


def _said_places(type: OperatorType, said: Said) -> set[tuple[str, str]]:
    """What stays as the caller said it, even if a rule refuses it."""
    names = output_names(type)
    name = OPEN.get(type.name, Open()).output or names[0]
    given = {"sizes": said.sizes is not None, "data_type": said.data_type is not None}
    return {(name, what) for what, is_given in given.items() if is_given}


def _solved(desc: OperatorDesc, level: FeatureLevel, said: set[tuple[str, str]]) -> tuple[OperatorDesc, bool]:
    """The desc with outputs that the rules allow; False: rules compute with another field that is wrong."""
    for _ in range(_MOST_ROUNDS):
        before = desc
        for rule, binding in _rules(desc.TYPE):
            desc, sound = _kept(rule, desc, level, said)
            if binding and not sound:
                return desc, False
        if desc is before:
            break
    return desc, True


@cache
def _rules(type: OperatorType) -> tuple[tuple[Rule, bool], ...]:
    """The rules, with their demands on outputs; and whether a desc must keep them, or usually does."""
    definition = definition_class(type)
    assert definition is not None  # every operator has one
    outputs = output_names(type)
    both = ((definition.RULES, True), (definition.USUAL, False))
    return tuple((rule.toward(outputs), binding) for rules, binding in both for rule in rules)


def _kept(
    rule: Rule, desc: OperatorDesc, level: FeatureLevel, said: set[tuple[str, str]]
) -> tuple[OperatorDesc, bool]:
    """The desc with outputs that one rule allows."""
    outputs = output_names(desc.TYPE)
    for _ in range(_MOST_CHANGES):
        change = None
        for demand in () if rule.holds(desc) else rule.demands(desc, level):
            place = demand.place
            if place.value(desc) in demand.allowed:
                continue
            what = _output_place(place, outputs)
            if what is not None and what not in said:
                change = demand
                break
            if place.first:
                return desc, False
        if change is None:
            return desc, True
        try:
            value = change.allowed.pick(_least, change.place.domain(desc, level))
        except LookupError:  # what the rule asks for, the operator's table does not allow
            return desc, False
        desc = change.place.put(desc, value)
    return desc, False


def _output_place(place: Place, outputs: Iterable[str]) -> tuple[str, str] | None:
    """The output whose sizes or type are there, and which of both."""
    name = place.name.partition("[")[0]
    if name not in outputs or not isinstance(place, (Size, Rank, DataType)):
        return None
    return name, "data_type" if isinstance(place, DataType) else "sizes"


def _least(low: int, high: int) -> int:
    return low
