"""Operators and graphs in any layout whose results NumPy knows to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st
from legal_memory import Array, Results

from dmlemu import dml
from dmlemu.testing import layouts_of, shapes

T = dml.TensorDataType
Desc = dml.BufferTensorDesc
_OWNED = dml.TensorFlags.OWNED_BY_DML
_INTEGERS = (T.UINT8, T.INT16, T.UINT32, T.INT32)
_BITS = (*_INTEGERS, T.UINT64, T.FLOAT16, T.FLOAT32)


@dataclass(frozen=True)
class Recipe:
    """``inputs`` and ``outputs`` in the order of their bindings; None: absent.

    ``owned``: which inputs belong to DirectML.  ``in_place``: the input where the output may stand.
    ``function`` takes all inputs that are there, owned ones too.
    """

    compile: Callable[[Any, Any], Any]
    inputs: tuple[Desc | None, ...]
    outputs: tuple[Desc, ...]
    function: Callable[[list[Array]], Results]
    in_place: int | None = None
    unsure: frozenset[int] = frozenset()

    @property
    def owned(self) -> list[int]:
        return [i for i, each in enumerate(self.inputs) if each is not None and each.flags & _OWNED]


def _is_plain(desc: Desc) -> bool:
    """No advice is due: strides that are right in bytes are legal, and rarely meant."""
    size = desc.dtype.itemsize
    packed = [prod(desc.sizes[i + 1 :]) for i in range(desc.rank)]
    return desc.strides is None or list(desc.strides) != [size * each for each in packed]


_INPUT = ("packed", "padded", "permuted", "reversed", "interleaved", "broadcast", "overlapping")
_MORE = ("size_1", "larger_total", "aligned")


def _layouts(sizes: Sequence[int], kind: T, *, output: bool = False) -> st.SearchStrategy[Desc]:
    kinds = [*(_INPUT[:5] if output else _INPUT), *_MORE]
    return layouts_of(sizes, kind, kinds=kinds, output=output).filter(_is_plain)


def _maybe_owned(desc: Desc, owned: bool) -> Desc:
    return replace(desc, flags=_OWNED) if owned else desc


def _single(desc: Any, *names: str, **more: Any) -> Recipe:
    """The recipe of one operator."""
    given = [name for name in names if getattr(desc, name) is not None]

    def compiled(device: Any, flags: Any) -> Any:
        return device.compile_operator(device.create_operator(desc), flags)

    def function(arrays: list[Array]) -> Results:
        return [(each, True) for each in desc.reference(dict(zip(given, arrays, strict=True))).values()]

    outputs = tuple(getattr(desc, field) for field in vars(desc) if field.startswith("output_"))
    more = {"function": function, **more}
    return Recipe(compiled, tuple(getattr(desc, name) for name in names), outputs, **more)


_SIZES = st.one_of(shapes(1, 3, 24), shapes(5, 6, 16))


@st.composite
def _identities(draw: st.DrawFn) -> Recipe:
    sizes, kind = draw(_SIZES), draw(st.sampled_from(_BITS))
    source, target = draw(_layouts(sizes, kind)), draw(_layouts(sizes, kind, output=True))
    in_place = draw(st.booleans())
    if in_place:
        source = target
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=source, output_tensor=target)
    return _single(desc, "input_tensor", in_place=0 if in_place else None)


@st.composite
def _xors(draw: st.DrawFn) -> Recipe:
    sizes, kind = draw(_SIZES), draw(st.sampled_from(_BITS))
    a, b, target = (draw(_layouts(sizes, kind, output=output)) for output in (False, False, True))
    how = draw(st.sampled_from(["plain", "a", "b", "owned"]))
    a, b = target if how == "a" else a, target if how == "b" else _maybe_owned(b, how == "owned")
    desc = dml.ElementWiseBitXorOperatorDesc(a_tensor=a, b_tensor=b, output_tensor=target)
    return _single(desc, "a_tensor", "b_tensor", in_place={"a": 0, "b": 1}.get(how))


@st.composite
def _casts(draw: st.DrawFn) -> Recipe:
    sizes, kinds = draw(_SIZES), draw(st.tuples(st.sampled_from(_INTEGERS), st.sampled_from(_INTEGERS)))
    source, target = draw(_layouts(sizes, kinds[0])), draw(_layouts(sizes, kinds[1], output=True))
    return _single(dml.CastOperatorDesc(input_tensor=source, output_tensor=target), "input_tensor")


@st.composite
def _reductions(draw: st.DrawFn) -> Recipe:
    sizes, kind = draw(_SIZES), draw(st.sampled_from([T.UINT32, T.INT32]))
    axes = draw(st.sets(st.integers(0, len(sizes) - 1)))
    left = [1 if i in axes else size for i, size in enumerate(sizes)]
    desc = dml.ReduceOperatorDesc(
        function=draw(st.sampled_from([dml.ReduceFunction.SUM, dml.ReduceFunction.MAX])),
        input_tensor=draw(_layouts(sizes, kind)),
        output_tensor=draw(_layouts(left, kind, output=True)),
        axes=sorted(axes),
    )
    return _single(desc, "input_tensor")


@st.composite
def _coordinates(draw: st.DrawFn) -> Recipe:
    """Rows at and past OutputCount are undefined."""
    sizes, kind = draw(shapes(1, 3, 12)), draw(st.sampled_from([T.UINT8, T.INT32]))
    rows = [prod(sizes), len(sizes)]
    desc = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=draw(_layouts(sizes, kind)),
        output_count_tensor=draw(_layouts([1], T.UINT32, output=True)),
        output_coordinates_tensor=draw(_layouts(rows, T.UINT32, output=True)),
    )

    def function(arrays: list[Array]) -> Results:
        count, coordinates = desc.reference({"input_tensor": arrays[0]}).values()
        return [(count, True), (coordinates, np.arange(rows[0])[:, None] < count.ravel()[0])]

    return _single(desc, "input_tensor", function=function, unsure=frozenset({1}))


@st.composite
def _convolutions(draw: st.DrawFn) -> Recipe:
    """With weights that may belong to DirectML, and zero points that may be absent."""
    channels, filters, width = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(2, 5))
    owned, zero = draw(st.booleans()), draw(st.booleans())
    weights = draw(_layouts([filters, channels, 2], T.INT8))
    desc = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=draw(_layouts([1, channels, width], T.UINT8)),
        input_zero_point_tensor=draw(_layouts([1, 1, 1], T.UINT8)) if zero else None,
        filter_tensor=_maybe_owned(weights, owned),
        filter_zero_point_tensor=None,
        output_tensor=draw(_layouts([1, filters, width - 1], T.INT32, output=True)),
        strides=[1],
        dilations=[1],
        start_padding=[0],
        end_padding=[0],
        group_count=1,
    )
    names = ("input_tensor", "input_zero_point_tensor", "filter_tensor", "filter_zero_point_tensor")
    return _single(desc, *names)


@st.composite
def _graphs(draw: st.DrawFn) -> Recipe:
    """input 0 -> identity -> xor with input 1 -> ... -> output 0, by way of temporaries in any layout."""
    sizes, kind, length = draw(_SIZES), draw(st.sampled_from(_INTEGERS)), draw(st.integers(1, 3))
    source, operand = draw(_layouts(sizes, kind)), draw(_layouts(sizes, kind))
    operand = _maybe_owned(operand, draw(st.booleans()))
    links = [draw(_layouts(sizes, kind, output=True)) for _ in range(length)]
    links = [replace(each, guaranteed_base_offset_alignment=0) for each in links]
    target = draw(_layouts(sizes, kind, output=True))
    descs: list[Any] = [dml.ElementWiseIdentityOperatorDesc(input_tensor=source, output_tensor=links[0])]
    for i in range(length):
        after = links[i + 1] if i + 1 < length else target
        descs.append(
            dml.ElementWiseBitXorOperatorDesc(a_tensor=links[i], b_tensor=operand, output_tensor=after)
        )

    def compiled(device: Any, flags: Any) -> Any:
        nodes = [dml.OperatorGraphNodeDesc(device.create_operator(each)) for each in descs]
        graph = dml.GraphDesc(
            input_count=2,
            output_count=1,
            nodes=nodes,
            input_edges=[
                dml.InputGraphEdgeDesc(0, 0, 0),
                *(dml.InputGraphEdgeDesc(1, i, 1) for i in range(1, length + 1)),
            ],
            intermediate_edges=[dml.IntermediateGraphEdgeDesc(i, 0, i + 1, 0) for i in range(length)],
            output_edges=[dml.OutputGraphEdgeDesc(length, 0, 0)],
        )
        return device.compile_graph(graph, flags)

    def function(arrays: list[Array]) -> Results:
        result = arrays[0].copy()
        for _ in range(length):
            result ^= arrays[1]
        return [(result, True)]

    return Recipe(compiled, (source, operand), (target,), function)


recipes: st.SearchStrategy[Recipe] = st.one_of(
    _identities(), _xors(), _casts(), _reductions(), _coordinates(), _convolutions(), _graphs(), _graphs()
)
