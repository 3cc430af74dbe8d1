"""Fields that a caller may leave out: DirectMLX's defaults, and fields that follow from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from ..dml.declared.schema import OperatorDesc, operator_fields
from ..dml.enums import (
    AxisDirection,
    ConvolutionDirection,
    ConvolutionMode,
    DepthSpaceOrder,
    IsInfinityMode,
    MatrixTransform,
    RandomGeneratorType,
    RoundingMode,
)
from ..dml.tensor_desc import BufferTensorDesc

__all__ = ["DEFAULTS", "PRESENT", "completed", "follows"]

Fields = Mapping[str, Any]

DEFAULTS: Mapping[str, Any] = {
    "group_count": 1,
    "trans_a": MatrixTransform.NONE,
    "trans_b": MatrixTransform.NONE,
    "rounding_mode": RoundingMode.HALVES_TO_NEAREST_EVEN,
    "infinity_mode": IsInfinityMode.EITHER,
    "order": DepthSpaceOrder.DEPTH_COLUMN_ROW,
    "rounding_direction": AxisDirection.INCREASING,
    "antialiased": False,
    "ACTIVATION_CELU.alpha": 1.0,
    "ACTIVATION_ELU.alpha": 1.0,
    "ACTIVATION_HARD_SIGMOID.alpha": 0.2,
    "ACTIVATION_HARD_SIGMOID.beta": 0.5,
    "ACTIVATION_LEAKY_RELU.alpha": 0.01,
    "ACTIVATION_SCALED_ELU.alpha": 1.67326319217681884765625,
    "ACTIVATION_SCALED_ELU.gamma": 1.05070102214813232421875,
    "ACTIVATION_SCALED_TANH.alpha": 1.0,
    "ACTIVATION_SCALED_TANH.beta": 0.5,
    "ACTIVATION_SHRINK.bias": 0.0,
    "ACTIVATION_SHRINK.threshold": 0.5,
    "ACTIVATION_SOFTPLUS.steepness": 1.0,
    "ACTIVATION_THRESHOLDED_RELU.alpha": 1.0,
    "ARGMAX.axis_direction": AxisDirection.INCREASING,
    "ARGMIN.axis_direction": AxisDirection.INCREASING,
    "CONVOLUTION.direction": ConvolutionDirection.FORWARD,
    "CONVOLUTION.mode": ConvolutionMode.CROSS_CORRELATION,
    "GEMM.alpha": 1.0,
    "GEMM.beta": 1.0,
    "RANDOM_GENERATOR.type": RandomGeneratorType.PHILOX_4X32_10,
}
"""By the names of fields; those of one operator stand behind its name."""

PRESENT = {"RNN": 1, "GRU": 1, "LSTM": 1, "ROI_ALIGN_GRAD": 1, "RANDOM_GENERATOR": 1}
"""How many of an operator's optional outputs there are by default; others have none."""


def _in_each(value: int) -> Callable[[Fields], Sequence[int]]:
    """One for each dimension of a window: as many as another array has, or the filter."""

    def follow(fields: Fields) -> Sequence[int]:
        arrays = (fields.get(name) for name in ("window_size", "window_sizes", *_OF_WINDOWS))
        given = [each for each in arrays if isinstance(each, Sequence)]
        return (value,) * len(given[0] if given else fields["filter_tensor"].sizes[2:])

    return follow


def _scales(fields: Fields) -> Sequence[float]:
    """The quotients of the sizes that were asked for, and those of the input."""
    return _quotients(fields["output_sizes"], fields["input_tensor"].sizes, _first(fields).rank)


def _gradient_scales(fields: Fields) -> Sequence[float]:
    gradient = fields["input_gradient_tensor"]
    return _quotients(gradient.sizes, fields["output_sizes"], gradient.rank)


def _quotients(new: Any, old: Any, rank: int) -> Sequence[float]:
    """Of what are no sizes of such a tensor, ones: CreateOperator refuses the sizes themselves."""
    try:
        return tuple(a / b for a, b in zip(new, old, strict=True))
    except (TypeError, ValueError, ZeroDivisionError):
        return (1.0,) * rank


def _of_each_dimension(value: float) -> Callable[[Fields], Sequence[float]]:
    return lambda fields: (value,) * _first(fields).rank


def _first(fields: Fields) -> BufferTensorDesc:
    return next(each for each in fields.values() if isinstance(each, BufferTensorDesc))


def _type_of_input(fields: Fields) -> Any:
    return fields["input_tensor"].data_type


_ONES, _ZEROS = _in_each(1), _in_each(0)

_OF_WINDOWS: Mapping[str, Callable[[Fields], Any]] = {
    "strides": _ONES,
    "dilations": _ONES,
    "start_padding": _ZEROS,
    "end_padding": _ZEROS,
    "output_padding": _ZEROS,
}
_FOLLOWING: Mapping[str, Callable[[Fields], Any]] = {
    "scales": _scales,
    "input_pixel_offsets": _of_each_dimension(0.5),
    "output_pixel_offsets": _of_each_dimension(-0.5),
    "min_max_data_type": _type_of_input,
    "padding_value_data_type": _type_of_input,
    "REDUCE.axes": lambda fields: tuple(range(fields["input_tensor"].rank)),
    "RESAMPLE_GRAD.scales": _gradient_scales,
    "RESAMPLE_GRAD1.scales": _gradient_scales,
}


def follows(cls: type[OperatorDesc], name: str) -> Callable[[Fields], Any] | None:
    """How a field follows from the others, and from ``output_sizes``, if it is left out."""
    if name in _OF_WINDOWS:
        windows = {"window_size", "window_sizes", "filter_tensor"}
        has_window = any(item.name in windows for item in operator_fields(cls))
        return _OF_WINDOWS[name] if has_window else None
    return _FOLLOWING.get(f"{cls.TYPE.name}.{name}", _FOLLOWING.get(name))


@cache
def _all_follow(cls: type[OperatorDesc]) -> dict[str, Callable[[Fields], Any]]:
    """The fields of a desc that follow from others."""
    found = {item.name: follows(cls, item.name) for item in operator_fields(cls)}
    return {name: follow for name, follow in found.items() if follow is not None}


def completed(cls: type[OperatorDesc], fields: dict[str, Any], sizes: Sequence[int] | None) -> None:
    """Puts in what was left out and follows; ``sizes``: those that were asked for."""
    for name, follow in _all_follow(cls).items():  # type: ignore[arg-type]
        if fields[name] is None:
            if name == "scales" and sizes is None:
                raise TypeError(f"{cls.TYPE.name.lower()}(): scales or output_sizes must be given.")
            fields[name] = follow({**fields, "output_sizes": sizes})
