"""The shaders of ``watched``: each is wrong, and right with ``FIXED`` defined as 1.

What they are given, and what is told of the wrong ones.

As a program: compiles them into ``watched/*.dxil``, where DXC is installed: extra hlsl.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).parent
FOLDER = HERE / "watched"


class Pair(NamedTuple):
    """``buffers`` makes the arrays by the names of their registers.  ``expected``: of each finding its kind,
    and the lines of ``later`` and ``earlier``.  ``result``: what the right shader computes, by name."""

    groups: tuple[int, int, int]
    buffers: Callable[[], dict[str, Any]]
    expected: tuple[tuple[str, int, int], ...]
    result: Callable[[], dict[str, Any]]
    target: str = "cs_6_0"
    arguments: tuple[str, ...] = ()


def _f(count: int, start: float = 0) -> np.ndarray:
    return np.arange(start, start + count, dtype=np.float32)


def _u(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint32)


def _zeros(count: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(count, dtype)


_MATRIX = _f(256).reshape(16, 16) % 7
_HALF = _f(64).astype(np.float16)

PAIRS: dict[str, Pair] = {
    "neighbour_in_place": Pair(
        (2, 1, 1),
        lambda: {"values": _f(64), "sums": _zeros(64)},
        (("RACE", 11, 11),),
        lambda: {"sums": np.append(_f(63) + _f(63, 1), np.float32(0))},
    ),
    "total_not_atomic": Pair(
        (4, 1, 1),
        lambda: {"values": _u(32), "total": _zeros(1, np.uint32)},
        (("RACE", 10, 10), ("RACE", 10, 10)),  # a read and a write, and two writes
        lambda: {"total": np.array([496], np.uint32)},
    ),
    "reduction_without_barrier": Pair(
        (2, 1, 1),
        lambda: {"values": _f(128), "sums": _zeros(2)},
        (("SHARED_RACE", 12, 12),),
        lambda: {"sums": np.array([2016, 6112], np.float32)},
    ),
    "tile_without_second_barrier": Pair(
        (2, 2, 1),
        lambda: {"a": _MATRIX.ravel().copy(), "b": _MATRIX.ravel().copy(), "c": _zeros(256)},
        (("SHARED_RACE", 13, 17), ("SHARED_RACE", 14, 17)),
        lambda: {"c": (_MATRIX @ _MATRIX).ravel()},
    ),
    "barrier_of_other_memory": Pair(
        (2, 1, 1),
        lambda: {"values": _zeros(128, np.uint32)},
        (("RACE", 12, 6),),
        lambda: {"values": (3 * _u(128)).reshape(2, 64)[:, ::-1].ravel()},
    ),
    "fence_without_sync": Pair(
        (2, 1, 1),
        lambda: {"values": _u(64), "reversed": _zeros(64, np.uint32)},
        (("SHARED_UNWRITTEN", 14, 0), ("SHARED_RACE", 8, 14)),
        lambda: {"reversed": _u(64).reshape(2, 32)[:, ::-1].ravel()},
    ),
    "histogram_not_atomic": Pair(
        (2, 1, 1),
        lambda: {"values": _u(32), "bins": _zeros(4, np.uint32)},
        (("RACE", 11, 11), ("RACE", 11, 11)),
        lambda: {"bins": np.full(4, 8, np.uint32)},
    ),
    "bins_not_cleared": Pair(
        (2, 1, 1),
        lambda: {"values": _u(32), "bins": _zeros(4, np.uint32)},
        (("SHARED_UNWRITTEN", 14, 0),),
        lambda: {"bins": np.full(4, 8, np.uint32)},
    ),
    "bins_cleared_too_late": Pair(
        (2, 1, 1),
        lambda: {"values": _u(64), "bins": _zeros(4, np.uint32)},
        (("SHARED_RACE", 14, 9),),
        lambda: {"bins": np.full(4, 16, np.uint32)},
    ),
    "more_threads_than_elements": Pair(
        (2, 1, 1),
        lambda: {"x": _f(100), "y": _zeros(100)},
        (("OUTSIDE", 12, 0), ("OUTSIDE", 12, 0)),
        lambda: {"y": 2 * _f(100)},
    ),
    "rows_and_columns_exchanged": Pair(
        (2, 1, 1),
        lambda: {"image": _f(128), "result": _zeros(128)},
        (("RACE", 12, 12),),
        lambda: {"result": _f(128) / 2},
    ),
    "barrier_in_a_branch": Pair(
        (2, 1, 1),
        lambda: {"x": _f(64), "y": _zeros(64)},
        (("WAIT_OF_SOME_LANES", 14, 0),),
        lambda: {"y": np.where(_f(64) > 10, _f(64), 0)},
    ),
    "return_before_a_barrier": Pair(
        (2, 1, 1),
        lambda: {"x": _f(96), "y": _zeros(96)},
        (("WAIT_IN_VAIN", 15, 0),),
        lambda: {"y": _f(96).reshape(48, 2)[:, ::-1].ravel()},
    ),
    "barriers_of_two_branches": Pair(
        (1, 1, 1),
        lambda: {"x": _f(64), "y": _zeros(64)},
        (("WAIT_ELSEWHERE", 17, 14),),
        lambda: {"y": np.append(_f(32), -_f(32, 32))[::-1]},
    ),
    "lane_of_a_larger_wave": Pair(
        (1, 1, 1),
        lambda: {"x": _f(64), "y": _zeros(64)},
        (("LANE_OUTSIDE", 10, 0),),
        lambda: {"y": np.repeat(_f(64)[15::16], 16)},
    ),
    "lane_that_is_not_active": Pair(
        (1, 1, 1),
        lambda: {"x": _f(16), "y": _zeros(16)},
        (("LANE_INACTIVE", 12, 0),),
        lambda: {"y": np.tile(np.array([0, 1], np.float32), 8)},
    ),
    "flag_of_all_threads": Pair(
        (1, 1, 1),
        lambda: {"x": _f(16), "found": _zeros(1, np.uint32)},
        (("RACE_SAME", 11, 11),),
        lambda: {"found": np.array([1], np.uint32)},
    ),
    "scatter_to_equal_places": Pair(
        (1, 1, 1),
        lambda: {"places": np.array([0, 1, 2, 3, 4, 2, 5, 6], np.uint32), "result": _zeros(8, np.uint32)},
        (("RACE", 10, 10),),
        lambda: {"result": np.array([0, 1, 5, 3, 4, 6, 7, 0], np.uint32)},
    ),
    "halves_of_one_word": Pair(
        (1, 1, 1),
        lambda: {"x": _u(16), "packed": _zeros(8, np.uint32)},
        (("RACE", 10, 10), ("RACE", 10, 10)),
        lambda: {"packed": _u(16)[::2] | _u(16)[1::2] << np.uint32(16)},
    ),
    "border_of_a_tile": Pair(
        (2, 1, 1),
        lambda: {"x": _f(64), "y": _zeros(64)},
        (("SHARED_OUTSIDE", 19, 0),),
        lambda: {"y": _f(64) + np.minimum(_f(64, 1), 63)},
    ),
    "append_by_hand": Pair(
        (1, 1, 1),
        lambda: {"x": _f(16), "kept": _zeros(16), "length": _zeros(1, np.uint32)},
        (("RACE", 14, 13), ("RACE", 16, 16)),
        lambda: {"length": np.array([12], np.uint32)},
    ),
    "groups_do_not_wait": Pair(
        (4, 1, 1),
        lambda: {
            "x": _u(64),
            "sums": _zeros(4, np.uint32),
            "done": _zeros(1, np.uint32),
            "total": _zeros(1, np.uint32),
        },
        (("RACE", 29, 19),),
        lambda: {"total": np.array([2016], np.uint32)},
    ),
    "scan_in_place": Pair(
        (1, 1, 1),
        lambda: {"x": _u(64), "y": _zeros(64, np.uint32)},
        (("SHARED_RACE", 15, 11),),
        lambda: {"y": np.cumsum(_u(64)).astype(np.uint32)},
    ),
    "counter_read_too_early": Pair(
        (1, 1, 1),
        lambda: {"x": _f(64), "matches": _zeros(1, np.uint32), "share": _zeros(64)},
        (("RACE", 14, 9),),
        lambda: {"share": np.full(64, 60 / 64, np.float32)},
    ),
    "sixteen_bit_neighbours": Pair(
        (2, 1, 1),
        lambda: {"x": _HALF.copy(), "y": _zeros(64, np.float16)},
        (("RACE", 11, 7),),
        lambda: {"y": 2 * _HALF.reshape(32, 2)[:, ::-1].ravel()},
        "cs_6_2",
        ("-enable-16bit-types",),
    ),
}


def container(name: str, fixed: bool) -> bytes:
    return (FOLDER / f"{name}_{'right' if fixed else 'wrong'}.dxil").read_bytes()


if __name__ == "__main__":
    from dmlemu.shaders.dxc import compile_hlsl

    for name, pair in PAIRS.items():
        for fixed in (False, True):
            words = [*pair.arguments, "-Zi", "-Qembed_debug", "-D", f"FIXED={int(fixed)}"]
            made = compile_hlsl((FOLDER / f"{name}.hlsl").read_text(), "main", pair.target, words)
            (FOLDER / f"{name}_{'right' if fixed else 'wrong'}.dxil").write_bytes(made)
