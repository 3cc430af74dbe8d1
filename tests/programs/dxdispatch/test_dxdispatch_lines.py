"""Numbers and timing lines, as DxDispatch formats them."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from dmlemu.frontends.dxdispatch.printing import format_bytes, format_values, format_values_verbose
from dmlemu.frontends.dxdispatch.timing import Samples, dispatch_lines


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1 / 3, "0.333333"),
        (123456.0, "123456"),
        (1234567.0, "1.23457e+06"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (3.4e38, "3.4e+38"),
        (float("nan"), "nan"),
        (-float("nan"), "-nan"),
        (float("inf"), "inf"),
        (-float("inf"), "-inf"),
    ],
)
def test_floats_have_six_significant_digits(value: float, text: str) -> None:
    assert format_values(np.array([value], np.float32)) == text
    assert format_values(np.array([value, value], np.float64)) == f"{text}, {text}"


def test_integers() -> None:
    assert format_values(np.array([-128, 0, 65], np.int8)) == "-128, 0, 65"
    assert format_values(np.array([2**64 - 1], np.uint64)) == "18446744073709551615"
    assert format_values(np.array([], np.uint8)) == ""


def test_verbose() -> None:
    values = np.array([1.0] + [0.0] * 8 + [-2.0], np.float32)
    lines = format_values_verbose(values).split("\n")
    assert lines[0] == "[ 0] 1 (0x3F800000)"
    assert lines[1] == "[ 1] 0 (0x       0)"  # blanks, not zeros
    assert lines[9:] == ["[ 9] -2 (0xC0000000)", ""]
    assert format_values_verbose(np.array([-1], np.int8)) == "[0] -1 (0xFF)\n"
    half = struct.unpack("<e", b"\x01\x00")[0]
    assert format_values_verbose(np.array([half], np.float16)) == "[0] 5.96046e-08 (0x   1)\n"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1024, "1024 bytes"), (1025, "1.00 KB"), (128 << 20, "128.00 MB"), (8 << 30, "8.00 GB")],
)
def test_bytes(size: int, text: str) -> None:
    assert format_bytes(size) == text


# --- timing ---


@pytest.mark.parametrize(
    ("count", "warmup", "cold", "hot"),
    [(0, 2, 0, 0), (1, 2, 0, 1), (2, 2, 1, 1), (3, 2, 2, 1), (4, 2, 2, 2), (5, 2, 2, 3), (5, 0, 0, 5)],
)
def test_cold_and_hot(count: int, warmup: int, cold: int, hot: int) -> None:
    parts = Samples(list(range(count))).split(warmup)
    assert (len(parts[0]), len(parts[1])) == (cold, hot)


def test_lost_samples_were_the_cold_ones() -> None:
    assert Samples([3.0, 4.0], lost=1).split(2) == ([3.0], [4.0])
    assert Samples([3.0, 4.0], lost=5).split(2) == ([], [3.0, 4.0])


CPU = Samples([9.0, 1.0, 4.0, 2.0, 3.0])
GPU = Samples([0.5, 0.25, 0.125], lost=2)


def test_one_line_with_the_median_of_the_hot_samples() -> None:
    assert dispatch_lines("op", CPU, GPU, 1, 0) == [
        "Dispatch 'op': 5 iterations, 3.0000 ms median (CPU), 0.250000 ms median (GPU)"
    ]
    assert dispatch_lines("op", CPU, Samples([]), 1, 0) == [
        "Dispatch 'op': 5 iterations, 3.0000 ms median (CPU)"
    ]


def test_statistics_and_iterations() -> None:
    statistics = "ms average, {:.4f} ms min, {:.4f} ms median, {:.4f} ms max"
    expected = [
        "Dispatch 'op': 5 iterations",
        "CPU Timings (Cold) : 1 samples, 9.0000 " + statistics.format(9, 9, 9),
        "CPU Timings (Hot)  : 4 samples, 2.5000 " + statistics.format(1, 3, 4),
        "GPU Timings (Hot)  : 3 samples, 0.2917 " + statistics.format(0.125, 0.25, 0.5),
        "GPU samples buffer has 2 samples overwritten.",
    ]
    assert dispatch_lines("op", CPU, GPU, 1, 1) == expected
    assert dispatch_lines("op", CPU, GPU, 1, 2) == [
        *expected,
        "The timings of each iteration: ",
        "iteration 0: 9.0000 ms (CPU)",
        "iteration 1: 1.0000 ms (CPU)",
        "iteration 2: 4.0000 ms (CPU), 0.5000 ms (GPU)",
        "iteration 3: 2.0000 ms (CPU), 0.2500 ms (GPU)",
        "iteration 4: 3.0000 ms (CPU), 0.1250 ms (GPU)",
    ]
