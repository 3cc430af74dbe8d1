"""Running an operator on the emulated device, beside its reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import hypothesis
import measured
import numpy as np
from hypothesis import HealthCheck
from hypothesis import strategies as st
from strategies import Array

import dmlemu
from dmlemu.dml import FeatureLevel, OperatorType, TensorDataType
from dmlemu.dml.declared.definition import definition_of, ulps_of
from dmlemu.dml.declared.schema import OperatorDesc
from dmlemu_hw.kernel_sanitizer import Checker, checked
from thorough import part_of

O = OperatorType  # noqa: E741

# States and averages, of sums in FLOAT32 that may nearly cancel.  Other sums are compared by ``scale``.
PARTS_OF_LARGEST = {O.RNN, O.LSTM, O.GRU, O.MULTIHEAD_ATTENTION, O.MULTIHEAD_ATTENTION1}

offsets = st.sampled_from([0, 0, 16, 48, 272])


def given(strategy: st.SearchStrategy[Any], examples: int = 150) -> Callable[[Any], Any]:
    """Runs a test on examples of ``strategy``: the same ones every time; a part of them by default."""
    settings = hypothesis.settings(
        derandomize=True,
        deadline=None,
        max_examples=part_of(examples, 5),
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )

    def decorate(test: Any) -> Any:
        return settings(hypothesis.given(data=strategy)(test))

    return decorate


def compare(
    desc: OperatorDesc,
    inputs: Mapping[str, Array],
    *,
    bits: bool = False,
    scale: Array | None = None,
    offset: int = 0,
    level: FeatureLevel | None = None,
) -> dict[str, Array]:
    """Runs ``desc`` on ``inputs`` and compares with the reference; returns what the device computed.

    Every load and store of the kernels is tested on the way, and that both builds of them agree.
    ``bits``: NaN payloads and the sign of zero must agree too.  ``scale``: for sums, per element of the
    output the sum of the absolute values of what is added.
    """
    with checked() as checker:
        found: dict[str, Array] = dmlemu.evaluate(desc, offset=offset, feature_level=level, **inputs)
    assert_checked(checker)
    expected, definition = desc.reference(inputs), definition_of(desc)
    if desc.TYPE is O.LOCAL_RESPONSE_NORMALIZATION_GRAD:
        scale = absolute_terms(definition, inputs)

    assert found.keys() == expected.keys()
    each = (
        (name, got, want)
        for name in expected
        for got, want in zip(in_array(found[name]), in_array(expected[name]), strict=True)
    )
    for name, got, want in each:
        assert got.dtype == want.dtype and got.shape == want.shape, name
        if name.startswith("output_present") and is_in_place(desc):
            continue  # behind the new keys there is what was there before
        if name == "output_coordinates_tensor":  # rows at and past the count are undefined
            rows = int(expected["output_count_tensor"].ravel()[0])
            got, want = (each.reshape(-1, each.shape[-1])[:rows] for each in (got, want))
        if not definition.KEEPS_NANS and want.dtype.kind == "f":
            assert_one_nan(got)
        ulps = ulps_of(definition, TensorDataType[want.dtype.name.upper()])
        if bits:
            unsigned = np.dtype(f"u{want.itemsize}")
            np.testing.assert_array_equal(got.view(unsigned), want.view(unsigned), name)
        elif desc.TYPE in PARTS_OF_LARGEST:
            largest = np.max(np.abs(want), initial=1).astype(np.float64)
            if not largest < 1e30:  # or NaN: a state beyond FLOAT32 spoils all states behind it
                continue
            assert_close(got, want, ulps, definition.LARGEST_ERROR, largest)
        elif want.dtype.kind == "f":
            error = definition.SUM_ERROR or definition.LARGEST_ERROR
            assert_close(got, want, ulps, error, scale)
        else:
            np.testing.assert_array_equal(got, want, name)
    measured.record(desc, offset, level)
    return found


def assert_parts_have_the_same_bits(result: Callable[[Array, int], Array], x: Array) -> None:
    """Of ``result(x, axis)`` for 45,000 lines: with the lines along, across, and in the middle of memory."""
    some = [*range(20), *range(40_000, 40_021)]
    np.testing.assert_array_equal(result(x, 1)[some], result(x[some], 1))
    np.testing.assert_array_equal(result(x.T.copy(), 0)[:, some], result(x.T[:, some].copy(), 0))
    folded = x[:44_950].reshape(50, 899, 101)
    np.testing.assert_array_equal(result(folded, 1)[[3, 49]], result(folded[[3, 49]], 1))


def is_in_place(desc: Any) -> bool:
    """Attention that adds keys to the present tensors."""
    return getattr(desc, "past_sequence_lengths_tensor", None) is not None and desc.past_key_tensor is None


def absolute_terms(definition: Any, inputs: Mapping[str, Array]) -> Array:
    """What the terms of a gradient would add up to if they did not cancel each other."""
    x, g = (np.abs(inputs[name]).astype(np.float64) for name in ("input_tensor", "input_gradient_tensor"))
    with np.errstate(all="ignore"):
        own, others = definition.terms(x, g)
        return np.nan_to_num(np.abs(own) + np.abs(others))


def in_array(value: Any) -> list[Array]:
    """The tensors of an array field, or the one tensor of another."""
    return value if isinstance(value, list) else [value]


def assert_checked(checker: Checker) -> None:
    """Dispatches were checked, and nothing was found."""
    assert checker.dispatches > 0
    assert not checker.findings, "; ".join(map(str, checker.findings))


def assert_one_nan(got: Array) -> None:
    """Of all NaNs there is only the quiet one without sign and payload, which is NumPy's."""
    unsigned = np.dtype(f"u{got.itemsize}")
    nans = got[np.isnan(got)].view(unsigned)
    assert (nans == np.array(np.nan, got.dtype).view(unsigned)).all(), [hex(nan) for nan in nans[:5]]


def assert_close(got: Array, want: Array, ulps: int, sum_error: float, scale: Array | None) -> None:
    """Equal (a NaN to any NaN, 0 to -0), or no further away than allowed."""
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        # A result next to the largest number may be infinity.
        limit = np.finfo(want.dtype).max
        got64, want64 = (np.clip(each.astype(np.float64), -limit, limit) for each in (got, want))
        allowed = ulps * np.abs(np.spacing(np.clip(want, -limit, limit)).astype(np.float64))
        if scale is not None:
            allowed = allowed + sum_error * scale
        near = np.abs(got64 - want64) <= allowed
    wrong = ~(same | near)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{int(wrong.sum())} of {wrong.size} elements differ, first at {list(at)}: "
            f"got {got[at]!r}, expected {want[at]!r}, allowed {allowed[at]:.3g}"
        )
