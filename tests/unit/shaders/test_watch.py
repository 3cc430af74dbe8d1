"""What is told of wrong shaders, and nothing of right ones."""

from __future__ import annotations

import numpy as np
import pytest

from dmlemu_hw.shader_watch import Finding, Pattern, Watch

from .watched_shaders import PAIRS, container
from .watching import run

pytest.importorskip("llvmlite")


def told(findings: list[Finding]) -> list[tuple[str, int, int]]:
    return sorted((each.kind, each.later.line, each.earlier.line) for each in findings)


@pytest.mark.parametrize("name", PAIRS)
def test_the_wrong_shader_is_told(name: str) -> None:
    pair = PAIRS[name]
    found = run(container(name, fixed=False), pair.buffers(), pair.groups)
    assert told(found.findings) == sorted(pair.expected)
    for each in found.findings:
        if "RACE" in each.kind:
            same_group = each.later.group == each.earlier.group
            assert not (same_group and each.later.thread == each.earlier.thread)
            assert each.later.access != "read" or each.earlier.access != "read"


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("wave", [4, 16, 64])
def test_the_right_shader_is_silent(name: str, wave: int) -> None:
    """And it computes what it should."""
    pair = PAIRS[name]
    arrays = pair.buffers()
    found = run(container(name, fixed=True), arrays, pair.groups, wave=wave)
    assert found.findings == []
    for each, expected in pair.result().items() if wave == 16 else ():
        np.testing.assert_array_equal(arrays[each], expected)


@pytest.mark.parametrize("name", [name for name, pair in PAIRS.items() if pair.groups != (1, 1, 1)])
@pytest.mark.parametrize("order", [1, 12345 << 20 | 99])
def test_the_order_of_groups_changes_nothing(name: str, order: int) -> None:
    """But which groups are named, and in a race who comes first."""
    pair = PAIRS[name]
    wrong = run(container(name, fixed=False), pair.buffers(), pair.groups, order=order)
    assert {each.kind for each in wrong.findings} == {kind for kind, *_ in pair.expected}
    right = run(container(name, fixed=True), pair.buffers(), pair.groups, order=order)
    assert right.findings == []


def test_footprints() -> None:
    arrays = PAIRS["more_threads_than_elements"].buffers()
    found = run(container("more_threads_than_elements", fixed=True), arrays, (1, 1, 1))
    assert found.watch is not None
    x, y = arrays["x"].ctypes.data, arrays["y"].ctypes.data
    assert found.watch.written(y, 400) == [Pattern(0, 256, 256, 1)]
    assert found.watch.read(x, 400) == [Pattern(0, 256, 256, 1)]
    assert found.watch.read(y, 400) == found.watch.written(x, 400) == []


def test_a_watch_says_what_it_does_not_take() -> None:
    with pytest.raises(MemoryError, match="No watch of 2000 threads in waves of 16"):
        Watch(2000, 16, 0)
