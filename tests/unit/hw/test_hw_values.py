"""What is told of the values of tensors, beside NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlemu_hw import kernels
from dmlemu_hw.values import Classes, Source, Values, View, element, find_born, scan

TYPES = {
    f"{kind.upper()}{bits}": np.dtype(f"{kind}{bits}")
    for kind in ("float", "int", "uint")
    for bits in (8, 16, 32, 64)
    if (kind, bits) != ("float", 8)
}
NAN_OR_INFINITY = Classes.NAN | Classes.INFINITY

types = st.sampled_from(list(TYPES))
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def view_of(array: np.ndarray, type_name: str) -> View:
    """The array, with the strides that it has."""
    strides = tuple(stride // array.itemsize for stride in array.strides)
    last = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
    start = kernels.ffi.cast("char *", array.ctypes.data)
    data = kernels.ffi.buffer(start, last + array.itemsize)
    return View(data, kernels.constant(f"DMLK_{type_name}"), array.shape, strides)


def array_of(data: st.DataObject, type_name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Elements of which many are limits, in any order of axes and now and then with gaps."""
    dtype = TYPES[type_name]
    order = data.draw(st.permutations(range(len(shape))))
    gap = data.draw(st.integers(1, 2))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    physical = [shape[d] for d in order]
    physical[-1] *= gap
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        pool = np.array([0, -0.0, np.nan, np.inf, -np.inf, limits.min, limits.max, 1, -2.5], dtype)
    else:
        info = np.iinfo(dtype)
        pool = np.array([0, 1, info.min, info.max, info.max - 1], dtype)
    rare = generator.random(physical) < data.draw(st.sampled_from([0.0, 0.1, 1.0]))
    memory = np.where(rare, generator.choice(pool, physical), dtype.type(3))
    return memory[..., ::gap].transpose(np.argsort(order))


def defined(array: np.ndarray) -> Values:
    flat = array.ravel()
    is_float = array.dtype.kind == "f"
    limits = np.finfo(array.dtype) if is_float else np.iinfo(array.dtype)
    finite = flat[np.isfinite(flat)]
    masks = [np.isnan(flat), np.isinf(flat), flat == 0, flat == limits.min, flat == limits.max]
    firsts = [int(mask.argmax()) if mask.any() else None for mask in masks]
    extremes = (finite.min().item(), finite.max().item()) if finite.size else (None, None)
    return Values(flat.size, *(int(mask.sum()) for mask in masks), *firsts, *extremes)


@given(st.data(), types, shapes)
def test_any_type_and_layout(data: st.DataObject, type_name: str, shape: tuple[int, ...]) -> None:
    array = array_of(data, type_name, shape)
    view = view_of(array, type_name)

    assert scan(view) == defined(array)
    for number, expected in enumerate(array.ravel().tolist()):
        found = element(view, number)
        assert found == expected or (math.isnan(found) and math.isnan(expected))
        assert type(found) is type(expected)


@given(st.data(), shapes)
def test_born_of_finite_elements(data: st.DataObject, shape: tuple[int, ...]) -> None:
    """Element-wise, with an input that is repeated along an axis."""
    out, a, b = (array_of(data, "FLOAT32", shape) for _ in range(3))
    b = np.broadcast_to(b[:1], shape)
    sources = [Source(view_of(a, "FLOAT32")), Source(view_of(b, "FLOAT32"))]

    born = (~np.isfinite(out) & np.isfinite(a) & np.isfinite(b)).ravel()
    found, start = [], find_born(view_of(out, "FLOAT32"), NAN_OR_INFINITY, sources)
    while start is not None:
        found.append(start)
        start = find_born(view_of(out, "FLOAT32"), NAN_OR_INFINITY, sources, start + 1)
    assert found == np.flatnonzero(born).tolist()


def test_born_of_rows() -> None:
    """out[i, j] is made from row i of a and column j of b."""
    a = np.zeros((2, 3), np.float16)
    b = np.zeros((3, 4), np.float16)
    out = np.zeros((2, 4), np.float16)
    out[1, 2], out[1, 3] = np.nan, np.inf
    b[2, 2] = np.inf
    data_type = kernels.constant("DMLK_FLOAT16")
    sources = [
        Source(View(a, data_type, (2, 4), (3, 0)), (3,), (1,)),
        Source(View(b, data_type, (2, 4), (0, 1)), (3,), (4,)),
    ]

    assert find_born(view_of(out, "FLOAT16"), NAN_OR_INFINITY, sources) == 7
    assert find_born(view_of(out, "FLOAT16"), Classes.NAN, sources) is None
    b[2, 2] = 0
    assert find_born(view_of(out, "FLOAT16"), Classes.NAN, sources) == 6


def test_what_makes_no_sense_is_refused() -> None:
    array = np.zeros(4, np.float32)
    single = kernels.constant("DMLK_FLOAT32")
    with pytest.raises(ValueError, match=r"sizes \(5,\) and strides \(1,\) .*: its elements leave its data"):
        scan(View(array, single, (5,), (1,)))
    with pytest.raises(ValueError, match="its data are not aligned"):
        scan(View(array.view(np.uint8)[1:], single, (1,), (1,)))
    with pytest.raises(ValueError, match="make no sense"):
        scan(View(array, single, (0,), (1,)))
    with pytest.raises(ValueError, match="2 sizes and 1 strides"):
        scan(View(array, single, (1, 1), (1,)))
    with pytest.raises(NotImplementedError, match="Elements of INT4"):
        scan(View(array, kernels.constant("DMLK_INT4"), (4,), (1,)))
    with pytest.raises(IndexError, match="element 4 of 4"):
        element(View(array, single, (4,), (1,)), 4)
    with pytest.raises(ValueError, match="do not fit those of another"):
        outer = View(array, single, (3,), (1,))
        find_born(View(array, single, (4,), (1,)), Classes.NAN, [Source(outer)])
