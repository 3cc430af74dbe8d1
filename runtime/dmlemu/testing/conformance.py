"""An operator on the emulated device beside its NumPy reference: inputs, allowed errors, the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

import dmlemu
from dmlemu_hw.kernel_sanitizer import Checker, checked
from dmlemu_hw.memory import POISON_BYTE

from ..dml import FeatureLevel, TensorDataType
from ..dml import OperatorType as O
from ..dml.declared.definition import definition_of, ulps_of
from ..dml.declared.schema import OperatorDesc
from ..dml.lowering.fields import tensor_fields
from ..evaluation import pack_tensor, unpack_tensor

__all__ = [
    "WRITES_BY_INDEX",
    "Mismatch",
    "compare",
    "defined_outputs",
    "in_array",
    "kind_of",
    "small_inputs",
]

Array = np.ndarray[Any, np.dtype[Any]]

# States and averages, of sums in FLOAT32 that may nearly cancel.  Other sums are compared by ``scale``.
PARTS_OF_LARGEST = {O.RNN, O.LSTM, O.GRU, O.MULTIHEAD_ATTENTION, O.MULTIHEAD_ATTENTION1}
RECURRENT = {O.RNN, O.LSTM, O.GRU}

# Another term of a gradient takes a number away from one that is rounded: what is left is only as exact as
# both were.  So it is with fused activations, some of which have a tail that is steep for its height.
CANCELLING_GRADIENTS = {O.BATCH_NORMALIZATION_GRAD, O.BATCH_NORMALIZATION_TRAINING_GRAD}

# Random indices name some elements twice; which update of them is the last one is left open.
WRITES_BY_INDEX = {O.SCATTER_ELEMENTS, O.SCATTER_ND, O.MAX_UNPOOLING}

_FEW_ULPS = 64
_TAKEN = 4  # about as large as what is taken away: parameters of drawn descs are smaller


class Mismatch(AssertionError):
    """The device did not compute what the reference says, or its kernels did what they must not.

    ``output``: the field of the desc; ``kind``: in words, what is wrong with the first wrong element.
    """

    def __init__(self, message: str, output: str, kind: str) -> None:
        super().__init__(message)
        self.output, self.kind = output, kind


def compare(
    desc: OperatorDesc,
    inputs: Mapping[str, Any],
    *,
    bits: bool = False,
    scale: Array | None = None,
    offset: int = 0,
    level: FeatureLevel | None = None,
) -> dict[str, Any]:
    """Runs ``desc`` on ``inputs`` and compares with the reference; returns what the device computed.

    Every load and store of the kernels is tested on the way, and that both builds of them agree.
    ``bits``: NaN payloads and the sign of zero must agree too.  ``scale``: for sums, per element of the
    output the sum of the absolute values of what is added.  Raises :class:`Mismatch`.
    """
    with checked() as checker:
        found: dict[str, Any] = dmlemu.evaluate(desc, offset=offset, feature_level=level, **inputs)
    expected, definition = desc.reference(inputs), definition_of(desc)
    if desc.TYPE is O.LOCAL_RESPONSE_NORMALIZATION_GRAD:
        scale = _absolute_terms(definition, inputs)
    if found.keys() != expected.keys():
        raise Mismatch(f"outputs {list(found)}, expected {list(expected)}", "", "other outputs")
    for name, got, want in defined_outputs(desc, found, expected):
        if (got.dtype, got.shape) != (want.dtype, want.shape):
            given, wanted = (f"{each.dtype}{list(each.shape)}" for each in (got, want))
            raise Mismatch(f"{name} is {given}, expected {wanted}", name, "another type or shape")
        if not definition.KEEPS_NANS and want.dtype.kind == "f":
            _check_one_nan(name, got)
        allowed = np.zeros(want.shape)
        if bits:
            unsigned = np.dtype(f"u{want.itemsize}")
            wrong = got.view(unsigned) != want.view(unsigned)
        elif want.dtype.kind != "f":
            wrong = got != want
        else:
            largest = None
            if desc.TYPE in PARTS_OF_LARGEST:
                largest = np.max(np.abs(want), initial=1).astype(np.float64)
                if not largest < 1e30:  # or NaN: a state beyond FLOAT32 spoils all states behind it
                    continue
            error = definition.LARGEST_ERROR
            if largest is None:
                error = definition.SUM_ERROR or definition.LARGEST_ERROR
            ulps = ulps_of(definition, TensorDataType[want.dtype.name.upper()])
            around = want if not _may_cancel(desc) else np.abs(want) + want.dtype.type(_TAKEN)
            allowed = allowed_error(around, ulps, error, scale if largest is None else largest)
            wrong = far(got, want, allowed)
        if wrong.any():
            raise _mismatch(name, got, want, wrong, allowed)
    assert_checked(checker)  # last: a wrong result says more
    return found


def assert_checked(checker: Checker) -> None:
    """Dispatches were checked, and nothing was found."""
    if not checker.dispatches:
        raise AssertionError("no dispatch was checked")
    if checker.findings:
        raise Mismatch("; ".join(map(str, checker.findings)), "", checker.findings[0].kind)


def defined_outputs(
    desc: OperatorDesc, found: Mapping[str, Any], expected: Mapping[str, Any]
) -> Iterator[tuple[str, Array, Array]]:
    """What is defined of each output that was found: given and wanted."""
    for name in (each for each in expected if each in found):
        for got, want in zip(in_array(found[name]), in_array(expected[name]), strict=True):
            if name.startswith("output_present") and is_in_place(desc):
                continue  # behind the new keys there is what was there before
            if name == "output_coordinates_tensor":  # rows at and past the count are undefined
                rows = int(expected["output_count_tensor"].ravel()[0])
                yield name, got.reshape(-1, got.shape[-1])[:rows], want.reshape(-1, want.shape[-1])[:rows]
            else:
                yield name, got, want


def in_array(value: Any) -> list[Array]:
    """The tensors of an array field, or the one tensor of another."""
    return value if isinstance(value, list) else [value]


def is_in_place(desc: Any) -> bool:
    """Attention that adds keys to the present tensors."""
    return getattr(desc, "past_sequence_lengths_tensor", None) is not None and desc.past_key_tensor is None


def _may_cancel(desc: OperatorDesc) -> bool:
    return desc.TYPE in CANCELLING_GRADIENTS or getattr(desc, "fused_activation", None) is not None


def _absolute_terms(definition: Any, inputs: Mapping[str, Any]) -> Array:
    """What the terms of a gradient would add up to if they did not cancel each other."""
    x, g = (np.abs(inputs[name]).astype(np.float64) for name in ("input_tensor", "input_gradient_tensor"))
    with np.errstate(all="ignore"):
        own, others = definition.terms(x, g)
        terms: Array = np.nan_to_num(np.abs(own) + np.abs(others))
        return terms


def _check_one_nan(name: str, got: Array) -> None:
    """Of all NaNs there is only the quiet one without sign and payload, which is NumPy's."""
    unsigned = np.dtype(f"u{got.itemsize}")
    nans = got[np.isnan(got)].view(unsigned)
    if not (nans == np.array(np.nan, got.dtype).view(unsigned)).all():
        raise Mismatch(f"{name}: NaNs {[hex(nan) for nan in nans[:5]]}", name, "another NaN")


def allowed_error(want: Array, ulps: int, sum_error: float, scale: Any) -> Array:
    """How far each element may be from the wanted one."""
    limit = np.finfo(want.dtype).max
    with np.errstate(all="ignore"):
        allowed: Array = ulps * np.abs(np.spacing(np.clip(want, -limit, limit)).astype(np.float64))
        return allowed if scale is None else allowed + sum_error * scale


def far(got: Array, want: Array, allowed: Array) -> Array:
    """Which elements are neither equal (a NaN to any NaN, 0 to -0) nor as near as allowed."""
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        # A result next to the largest number may be infinity.
        limit = np.finfo(want.dtype).max
        got64, want64 = (np.clip(each.astype(np.float64), -limit, limit) for each in (got, want))
        wrong: Array = ~(same | (np.abs(got64 - want64) <= allowed))
        return wrong


def _mismatch(name: str, got: Array, want: Array, wrong: Array, allowed: Array) -> Mismatch:
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Mismatch(
        f"{int(wrong.sum())} of {wrong.size} elements of {name} differ, first at {list(at)}: "
        f"got {got[at]!r}, expected {want[at]!r}, allowed {np.broadcast_to(allowed, want.shape)[at]:.3g}",
        name,
        kind_of(got[at], want[at]),
    )


def kind_of(got: Any, want: Any) -> str:
    """What is wrong with an element, in words: failures of one kind mostly have one cause."""
    if got.tobytes() == bytes([POISON_BYTE]) * got.itemsize:
        return "the poison of unwritten memory"
    if got.dtype.kind == "f":
        if np.isnan(got) or np.isnan(want):
            return "NaN" if np.isnan(got) else "no NaN"
        if np.isinf(got) or np.isinf(want):
            return "infinite" if np.isinf(got) else "not infinite"
        if abs(float(got) - float(want)) <= _FEW_ULPS * abs(float(np.spacing(want))):
            return "a few ULP"
        if got == -want:
            return "the other sign"
    return "zero" if not got else "another number"


# --- inputs ---


def small_inputs(desc: OperatorDesc, seed: int) -> dict[str, Any]:
    """0, 1 and 2 at random: their sums and products are exact in any order.  Elements that share a place are
    equal.  Those of recurrent networks are small enough for activations without a limit.

    What the documents leave open is in some of them only: scales of 0 for one seed in four, two updates of
    one element for every second seed.
    """
    random, arrays = np.random.default_rng(seed), dict[str, Any]()
    for field in tensor_fields(desc):
        if field.output:
            continue
        value: Array | None = None
        if field.desc is not None:
            number = field.desc.size_in_bytes // field.desc.dtype.itemsize + 1
            memory = random.integers(0, 3, number).astype(field.desc.dtype)
            value = unpack_tensor(field.desc, memory.view(np.uint8)[: field.desc.size_in_bytes])
        if field.index is None:
            arrays[field.name] = value
        else:
            arrays.setdefault(field.name, []).append(value)
    lengths = arrays.get("past_sequence_lengths_tensor")
    if lengths is not None and is_in_place(desc):
        lengths[...] = 0  # the present tensors are the past, and hold nothing before the dispatch
    if seed % 4:
        arrays |= {name: _not_zero(arrays[name]) for name in _scales(desc)}
    if seed % 2 and desc.TYPE in WRITES_BY_INDEX:
        arrays["indices_tensor"] = _different(desc, arrays["indices_tensor"], random)
    if desc.TYPE in RECURRENT:
        arrays |= {name: _damped(name, arrays[name]) for name in arrays if name != "input_tensor"}
    return arrays


def _scales(desc: OperatorDesc) -> list[str]:
    """The fields that are scales of small integers."""
    names = {field.name for field in tensor_fields(desc) if not field.output}
    if not any("zero_point" in name for name in names):
        return [*names & {"quantization_tensors"}]
    return [name for name in names if name.endswith("scale_tensor")]


def _not_zero(value: Any) -> Any:
    if isinstance(value, list):  # a scale, and perhaps a zero point
        return [_not_zero(value[0]), *value[1:]]
    return np.where(value == 0, value.dtype.type(1), value)


def _different(desc: Any, indices: Array, random: np.random.Generator) -> Array:
    """Indices of which no two are of one element; those that are given, if there are not enough, or if some
    share a place."""
    tensor, output = desc.indices_tensor, desc.output_tensor.sizes
    found = np.empty_like(indices)
    if desc.TYPE is O.SCATTER_ELEMENTS:
        order = random.random(
            (*indices.shape[: desc.axis], output[desc.axis], *indices.shape[desc.axis + 1 :])
        )
        places = np.argsort(order, axis=desc.axis)
        if places.shape[desc.axis] < indices.shape[desc.axis]:
            return indices
        found[...] = places.take(range(indices.shape[desc.axis]), desc.axis)
    else:
        by_tuples = desc.TYPE is O.SCATTER_ND
        length = indices.shape[-1] if by_tuples else 1
        table = output[-desc.input_dimension_count :][:length] if by_tuples else [prod(output)]
        if prod(table) < indices.size // length:
            return indices
        chosen = random.permutation(prod(table))[: indices.size // length]
        found[...] = np.stack(np.unravel_index(chosen, table), -1).reshape(indices.shape)
    try:
        pack_tensor(tensor, found)
    except dmlemu.Error:
        return indices
    return found


def _damped(name: str, value: Any) -> Any:
    """An input of a recurrent network, so small that the states stay near 1: a cell of an LSTM, which is
    multiplied by gates that it has part in, would exceed FLOAT32 within seven steps."""
    if value is None or value.dtype.kind != "f":
        return value
    terms = value.shape[-1] if name in ("weight_tensor", "recurrence_tensor") else 1
    return value * value.dtype.type(0.125 / (1 << (terms - 1).bit_length()))
