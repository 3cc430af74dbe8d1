"""Footprints are what kernels touch: every byte of them, and no other one.

What a kernel reads is found with its checked build, which tells of bytes that nobody has written; what it
writes, by running it over two fillings of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest
from byte_sets import Layout
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlemu_hw import kernels, packets
from dmlemu_hw.descriptors import DESCRIPTOR_RAW, DESCRIPTOR_SIZE, Descriptor, DescriptorKind
from dmlemu_hw.kernels import ffi, lib
from dmlemu_hw.packets import ABSENT_TENSOR, READ, WRITE

FLOAT32, FLOAT16, UINT32, UINT8, INT32, INT8, UINT64 = 1, 2, 3, 5, 6, 8, 10
BITS = {FLOAT32: 32, FLOAT16: 16, UINT32: 32, UINT8: 8, INT32: 32, INT8: 8, UINT64: 64}
TABLE, TENSORS, APART = 1 << 12, 1 << 20, 1 << 16
REDUCTIONS = [kernels.name(i) for i in range(kernels.count()) if kernels.family(kernels.name(i)) == "reduce"]
ROOM = 1200  # footprints: more than any test has


@dataclass(frozen=True)
class Tensor:
    """A tensor and where the test puts it."""

    access: int
    type: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def at(self, address: int) -> Layout:
        return Layout(address, BITS[self.type], self.sizes, self.strides)

    @property
    def byte_size(self) -> int:
        return -(-self.at(0).end // 4) * 4


@dataclass
class Dispatch:
    """One dispatch of a kernel on memory of its own; None is an absent tensor."""

    kernel: str
    tensors: list[Tensor | None]
    constants: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.tensors)
        self.table = ffi.new("uint64_t[]", DESCRIPTOR_SIZE // 8 * count)
        self.memory = [
            ffi.new("uint64_t[]", (0 if t is None else t.byte_size // 8) + 1) for t in self.tensors
        ]
        self.segments = ffi.new("dmlk_segment[]", count + 1)
        self.segments[0] = (TABLE, ffi.sizeof(self.table), ffi.cast("uint8_t *", self.table))
        written = []
        for i, tensor in enumerate(self.tensors):
            size = ffi.sizeof(self.memory[i])
            self.segments[i + 1] = (self.address(i), size, ffi.cast("uint8_t *", self.memory[i]))
            view = Descriptor(DescriptorKind.UAV, DESCRIPTOR_RAW, 0, 39, self.address(i), size)
            ffi.buffer(self.table)[DESCRIPTOR_SIZE * i : DESCRIPTOR_SIZE * (i + 1)] = view.encode()
            written.append(
                ABSENT_TENSOR
                if tensor is None
                else packets.tensor(
                    i, tensor.access, tensor.type, tensor.sizes, tensor.strides, tensor.byte_size
                )
            )
        writer = packets.PacketWriter()
        constants = kernels.pack(self.kernel, **self.constants)
        writer.dispatch(kernels.number(self.kernel), TABLE, written, constants, 0)
        self.packet = writer.bytes()

    @staticmethod
    def address(operand: int) -> int:
        return TENSORS + APART * operand

    def run(self) -> Any:
        """Its fault, with the part of an output that it defined."""
        fault = ffi.new("dmlk_fault *")
        data = ffi.from_buffer("uint8_t[]", self.packet)
        assert lib.dmlk_dispatch(data, len(self.packet), self.segments, len(self.tensors) + 1, fault) == 0
        return fault

    def footprints(self, room: int = ROOM, *, planned: bool = False) -> list[Any]:
        """The structs, as many as the C code says that there are."""
        out, data = ffi.new("dmlk_footprint[]", max(room, 1)), ffi.from_buffer("uint8_t[]", self.packet)
        segments, count = self.segments, len(self.tensors) + 1
        count = lib.dmlk_footprints(data, len(self.packet), segments, count, planned, out, room)
        assert 0 <= count <= room
        self.keep = out
        return [out[i] for i in range(count)]

    def claimed(self, access: int, room: int = ROOM) -> dict[int, set[int]]:
        """The bytes of each tensor that is accessed so."""
        found: dict[int, set[int]] = {i: set() for i, t in enumerate(self.tensors) if t and t.access & access}
        for each in self.footprints(room):
            if each.access & access:
                found[each.operand] = found.get(each.operand, set()) | bytes_of(each)
        return found

    def whole(self, access: int) -> dict[int, set[int]]:
        """All elements of each tensor."""
        return {
            i: t.at(self.address(i)).bytes() for i, t in enumerate(self.tensors) if t and t.access & access
        }

    def is_read(self, unwritten: set[int]) -> bool:
        """Does the kernel read any of these bytes?"""

        @ffi.callback("void(void *, uint64_t, uint64_t, uint8_t *)")
        def written(_: object, address: int, size: int, bits: Any) -> None:
            for i in range(size):
                if address + i not in unwritten:
                    bits[i // 8] |= 1 << i % 8

        checker = ffi.new("dmlk_checker *")
        checker.written = written
        before = lib.dmlk_set_checker(checker)
        try:
            self.run()
        finally:
            lib.dmlk_set_checker(before)
        return bool(checker.findings[lib.DMLK_MEM_UNINIT_READ].count)

    def written(self) -> dict[int, set[int]]:
        """The bytes of its outputs that are the same whatever was there before."""
        outputs = {i: t for i, t in enumerate(self.tensors) if t and t.access & WRITE}
        seen = []
        for filling in (b"\x00", b"\xff"):
            for i in outputs:
                buffer = ffi.buffer(self.memory[i])
                buffer[:] = filling * len(buffer)
            self.run()
            seen.append({i: bytes(ffi.buffer(self.memory[i])) for i in outputs})
        return {
            i: {
                self.address(i) + at
                for at, pair in enumerate(zip(seen[0][i], seen[1][i], strict=True))
                if pair[0] == pair[1]
            }
            for i in outputs
        }


def bytes_of(struct: Any) -> set[int]:
    layout = Layout(
        struct.address,
        struct.bits,
        tuple(struct.sizes[0 : struct.rank]),
        tuple(struct.strides[0 : struct.rank]),
    )
    assert layout.end == struct.end
    return layout.bytes()


def assert_reads(dispatch: Dispatch) -> None:
    """What the footprints say is read, and that byte by byte."""
    claimed = dispatch.claimed(READ)
    all_claimed = set().union(*claimed.values())
    others = set().union(*dispatch.whole(READ).values()) - all_claimed

    assert not dispatch.is_read(others), "the kernel reads more than its footprints"
    for byte in sorted(all_claimed):
        assert dispatch.is_read({byte}), f"the kernel does not read {byte:#x}"


def assert_coordinates(dispatch: Dispatch) -> None:
    """Every byte of a footprint is that of the tensor's element of which it tells."""
    index = ffi.new("uint64_t[8]")
    for each in dispatch.footprints():
        tensor = dispatch.tensors[each.operand]
        assert tensor is not None
        for byte in bytes_of(each):
            assert lib.dmlk_footprint_index(ffi.addressof(each), byte, index) == 1
            here = index[0 : len(tensor.sizes)]
            assert all(i < size for i, size in zip(here, tensor.sizes, strict=True))
            element = sum(i * stride for i, stride in zip(here, tensor.strides, strict=True))
            width = BITS[tensor.type] // 8
            assert 0 <= byte - dispatch.address(each.operand) - element * width < width


# --- CONVOLUTION_INTEGER ---


@dataclass(frozen=True)
class Axis:
    """A spatial axis."""

    size: int
    window: int
    stride: int
    dilation: int
    start: int
    end: int

    @property
    def output(self) -> int:
        return (self.size + self.start + self.end - (self.window - 1) * self.dilation - 1) // self.stride + 1

    def places(self) -> list[int]:
        """By the definition."""
        covered = product(range(self.output), range(self.window))
        all_places = {i * self.stride + k * self.dilation - self.start for i, k in covered}
        return sorted(all_places & set(range(self.size)))


@st.composite
def axes(draw: st.DrawFn, longest: int = 14, step: int = 7) -> Axis:
    size, window = draw(st.integers(1, longest)), draw(st.integers(1, 5))
    dilation, stride = draw(st.integers(1, step)), draw(st.integers(1, step))
    start, end = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    missing = (window - 1) * dilation + 1 - size - start - end
    return Axis(size + max(0, missing), window, stride, dilation, start, end)


@st.composite
def layouts(draw: st.DrawFn, sizes: tuple[int, ...], *, output: bool = False) -> tuple[int, ...]:
    """Strides: axes in any order, gaps between; those of inputs may be 0."""
    strides, extent = [0] * len(sizes), 1
    for axis in draw(st.permutations(range(len(sizes)))):
        if output or draw(st.integers(0, 9)):
            strides[axis] = extent + draw(st.sampled_from([0, 0, 0, 1, 2]))
            extent = strides[axis] * (sizes[axis] - 1) + extent
    return tuple(strides)


def convolution(
    axes: list[Axis], batch: int = 1, groups: int = 1, depth: int = 1, filters: int = 1, **strides: Any
) -> Dispatch:
    """``strides`` by operand: input, filter, output; packed where not given."""

    def tensor(name: str, access: int, type: int, *sizes: int) -> Tensor:
        packed = [1]
        for size in reversed(sizes[1:]):
            packed.insert(0, packed[0] * size)
        return Tensor(access, type, sizes, strides.get(name) or tuple(packed))

    return Dispatch(
        "convolution_integer",
        [
            tensor("input", READ, UINT8, batch, groups * depth, *(each.size for each in axes)),
            None,
            tensor("filter", READ, INT8, groups * filters, depth, *(each.window for each in axes)),
            Tensor(READ, INT8, (groups * filters,), (1,)),
            None,
            tensor("output", WRITE, INT32, batch, groups * filters, *(each.output for each in axes)),
        ],
        {
            "spatial": len(axes),
            "groups": groups,
            "strides": [each.stride for each in axes],
            "dilations": [each.dilation for each in axes],
            "start_padding": [each.start for each in axes],
        },
    )


def expected_input(dispatch: Dispatch, axes: list[Axis]) -> set[int]:
    tensor = dispatch.tensors[0]
    assert tensor is not None
    places = [*map(range, tensor.sizes[:2]), *(each.places() for each in axes)]
    start = dispatch.address(0)
    return {
        start + sum(i * stride for i, stride in zip(index, tensor.strides, strict=True))
        for index in product(*places)
    }


# --- poolings ---


@given(st.data())
@settings(max_examples=60)
def test_poolings_read_their_footprints(data: st.DataObject) -> None:
    """Padding and strides wider than the window leave elements unread; further outputs read no others."""
    spatial = data.draw(st.lists(axes(longest=6), min_size=1, max_size=data.draw(st.integers(1, 3))))
    more = data.draw(st.sampled_from([0, 0, 1, 3]))
    batch, channels = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    sizes = batch, channels, *(each.size for each in spatial)
    out = batch, channels, *(each.output + more for each in spatial)
    dispatch = Dispatch(
        "average_pooling",
        [
            Tensor(READ, FLOAT16, sizes, data.draw(layouts(sizes))),
            Tensor(WRITE, FLOAT16, out, data.draw(layouts(out, output=True))),
        ],
        {
            "spatial": len(spatial),
            "window": [each.window for each in spatial],
            "strides": [each.stride for each in spatial],
            "dilations": [each.dilation for each in spatial],
            "start_padding": [each.start for each in spatial],
            "end_padding": [each.end for each in spatial],
        },
    )

    assert_reads(dispatch)
    assert_coordinates(dispatch)
    assert dispatch.written() == dispatch.whole(WRITE) == dispatch.claimed(WRITE)


# --- what windows cover ---


@given(st.data())
@settings(max_examples=400)
def test_the_places_that_windows_cover(data: st.DataObject) -> None:
    """Footprint and definition, for larger tensors than the kernel need run on."""
    spatial = data.draw(st.lists(axes(longest=40, step=12), min_size=1, max_size=2))
    dispatch = convolution(spatial)
    expected = expected_input(dispatch, spatial)

    assert dispatch.claimed(READ)[0] == expected
    less_room = dispatch.claimed(READ | lib.DMLK_MAYBE_READ, room=5)[0]
    assert less_room >= expected, "with less room there are fewer, of more"
    pieces = [bytes_of(each) for each in dispatch.footprints() if each.operand == 0]
    assert sum(map(len, pieces)) == len(expected), "no byte is in two of them"


@given(st.data())
@settings(max_examples=60)
def test_convolutions_read_their_footprints(data: st.DataObject) -> None:
    small = st.integers(1, 2)
    spatial = data.draw(st.lists(axes(longest=6), min_size=1, max_size=data.draw(small)))
    batch, groups, depth, filters = (data.draw(small) for _ in range(4))
    shapes = {
        "input": (batch, groups * depth, *(each.size for each in spatial)),
        "filter": (groups * filters, depth, *(each.window for each in spatial)),
    }
    strides = {name: data.draw(layouts(sizes)) for name, sizes in shapes.items()}
    dispatch = convolution(spatial, batch, groups, depth, filters, **strides)

    assert dispatch.claimed(READ)[0] == expected_input(dispatch, spatial)
    assert_reads(dispatch)
    assert_coordinates(dispatch)
    assert dispatch.written() == dispatch.whole(WRITE) == dispatch.claimed(WRITE)


def pieces_of(*axes: Axis) -> list[tuple[int, ...]]:
    """First coordinate, count and step of each piece, axis by axis."""
    found = [each for each in convolution(list(axes)).footprints() if each.operand == 0]
    return [
        tuple(n for d in range(2, each.rank) for n in (each.first[d], each.sizes[d], each.skipped[d] + 1))
        for each in found
    ]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        pytest.param(Axis(8, 3, 1, 1, 1, 1), [(0, 8, 1)], id="usual"),
        pytest.param(Axis(9, 3, 2, 1, 1, 1), [(0, 9, 1)], id="stride 2"),
        pytest.param(Axis(10, 3, 2, 1, 0, 0), [(0, 9, 1)], id="one left at the end"),
        pytest.param(Axis(9, 1, 2, 1, 0, 0), [(0, 5, 2)], id="one of two"),
        pytest.param(Axis(9, 3, 2, 2, 0, 0), [(0, 5, 2)], id="stride and dilation share a factor"),
        pytest.param(Axis(9, 3, 2, 2, 1, 1), [(1, 4, 2)], id="the same behind padding"),
        pytest.param(Axis(4, 1, 5, 1, 3, 3), [(2, 1, 5)], id="one place"),
        pytest.param(Axis(3, 1, 9, 1, 2, 8), [], id="nothing but padding"),
        pytest.param(Axis(7, 2, 5, 1, 0, 0), [(0, 2, 5), (1, 2, 5)], id="gaps"),
        pytest.param(Axis(8, 2, 4, 1, 1, 0), [(3, 1, 4), (0, 2, 4)], id="gaps behind padding"),
        pytest.param(
            Axis(8, 4, 6, 1, 0, 2), [(0, 4, 1), (6, 2, 1)], id="windows are fewer than their places"
        ),
    ],
)
def test_pieces_along_an_axis(axis: Axis, expected: list[tuple[int, ...]]) -> None:
    assert sorted(pieces_of(axis)) == sorted(expected)


def test_pieces_of_two_axes_are_all_pairs() -> None:
    gaps, usual = Axis(12, 2, 5, 1, 0, 0), Axis(8, 3, 1, 1, 1, 1)

    assert len(pieces_of(gaps, gaps)) == 4
    assert len(pieces_of(gaps, usual)) == 2
    assert len(pieces_of(usual, usual)) == 1


def test_more_pieces_than_fit_are_covered_by_fewer() -> None:
    """Room is kept for one footprint of each tensor to come.  Rows 12 and 13 are left out anyway."""
    gaps = Axis(14, 2, 5, 1, 0, 0)
    dispatch = convolution([gaps, gaps])
    rows, covered = gaps.places(), range(12)
    assert rows == [0, 1, 5, 6, 10, 11]

    def places(ys: Sequence[int], xs: Sequence[int]) -> set[int]:
        return {TENSORS + 14 * y + x for y in ys for x in xs}

    for room, access, input_places in [
        (9, READ, places(rows, rows)),
        (8, lib.DMLK_MAYBE_READ, places(rows, covered)),
        (7, lib.DMLK_MAYBE_READ, places(rows, covered)),
        (6, lib.DMLK_MAYBE_READ, places(covered, covered)),
    ]:
        expected = {**dispatch.whole(READ), 0: input_places}
        assert dispatch.claimed(READ | lib.DMLK_MAYBE_READ, room) == expected
        assert dispatch.claimed(access, room)[0] == input_places


def test_a_window_with_more_gaps_than_pieces_may_read_the_whole_axis() -> None:
    for window, access in ((32, READ), (33, lib.DMLK_MAYBE_READ)):
        axis = Axis(34 * 40, window, 34, 1, 0, 0)
        assert axis.output == 40
        expected = axis.places() if access == READ else range(axis.size)
        assert convolution([axis]).claimed(access)[0] == {TENSORS + place for place in expected}


# --- all other kernels ---


@st.composite
def shapes(draw: st.DrawFn, most: int = 3) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=most)))


def same(draw: st.DrawFn, kernel: str, inputs: list[int], output: int, **constants: Any) -> Dispatch:
    """All tensors have the same sizes."""
    sizes = draw(shapes())
    tensors: list[Tensor | None] = [Tensor(READ, type, sizes, draw(layouts(sizes))) for type in inputs]
    tensors.append(Tensor(WRITE, output, sizes, draw(layouts(sizes, output=True))))
    return Dispatch(kernel, tensors, constants)


def reduce(draw: st.DrawFn) -> Dispatch:
    sizes = draw(shapes())
    mask = draw(st.integers(0, 2 ** len(sizes) - 1))
    kept = tuple(1 if mask >> d & 1 else size for d, size in enumerate(sizes))
    kernel = draw(st.sampled_from(REDUCTIONS))
    result = UINT32 if kernel.startswith("reduce_arg") else FLOAT32
    tensors = [Tensor(READ, FLOAT32, sizes, draw(layouts(sizes)))]
    tensors.append(Tensor(WRITE, result, kept, draw(layouts(kept, output=True))))
    return Dispatch(kernel, [*tensors], {"axes_mask": mask, "last_index": draw(st.integers(0, 1))})


def gemm(draw: st.DrawFn) -> Dispatch:
    m, n, k, batch = (draw(st.integers(1, 3)) for _ in range(4))
    beta, swaps = draw(st.sampled_from([0.0, -0.0, 1.0])), (draw(st.integers(0, 1)), draw(st.integers(0, 1)))
    a = (batch, k, m) if swaps[0] else (batch, m, k)
    b = (batch, n, k) if swaps[1] else (batch, k, n)
    tensors: list[Tensor | None] = [Tensor(READ, FLOAT32, s, draw(layouts(s))) for s in (a, b, (batch, m, n))]
    if not draw(st.integers(0, 3)):
        tensors[2] = None
    tensors.append(Tensor(WRITE, FLOAT32, (batch, m, n), draw(layouts((batch, m, n), output=True))))
    return Dispatch("gemm", tensors, {"trans_a": swaps[0], "trans_b": swaps[1], "alpha": 0.0, "beta": beta})


def gather(draw: st.DrawFn) -> Dispatch:
    """Its indices are anything: some lie outside, and read the nearest element."""
    sizes = draw(shapes())
    axis = draw(st.integers(0, len(sizes) - 1))
    chosen = (*sizes[:axis], draw(st.integers(1, 4)), *sizes[axis + 1 :])
    type, indices = draw(st.sampled_from([UINT8, FLOAT16, UINT64])), draw(st.sampled_from([INT32, UINT32]))
    dispatch = Dispatch(
        "gather",
        [
            Tensor(READ, type, sizes, draw(layouts(sizes))),
            Tensor(READ, indices, chosen, draw(layouts(chosen))),
            Tensor(WRITE, type, chosen, draw(layouts(chosen, output=True))),
        ],
        {"axis": axis, "count": 1, "batch": axis, "own": 1, "trailing": len(sizes) - axis - 1},
    )
    return fill_indices(draw, dispatch)


def fill_indices(draw: st.DrawFn, dispatch: Dispatch) -> Dispatch:
    memory = ffi.cast("int32_t *", dispatch.memory[1])
    for i in range(ffi.sizeof(dispatch.memory[1]) // 4):
        memory[i] = draw(st.integers(-4, 4))
    return dispatch


def by_tuples(draw: st.DrawFn, kernel: str) -> Dispatch:
    """Tuples of two indices select rows; a scatter does not read those whose indices are outside."""
    table, count = tuple(draw(st.lists(st.integers(1, 4), min_size=3, max_size=3))), draw(st.integers(1, 5))
    type, indices = draw(st.sampled_from([UINT8, FLOAT16, UINT64])), draw(st.sampled_from([INT32, UINT32]))
    values = (count, table[2])

    def tensor(access: int, type: int, sizes: tuple[int, ...]) -> Tensor:
        return Tensor(access, type, sizes, draw(layouts(sizes, output=access == WRITE)))

    tensors = [tensor(READ, type, table), tensor(READ, indices, (count, 2))]
    if kernel == "scatter":
        tensors += [tensor(READ, type, values), tensor(WRITE, type, table)]
    else:
        tensors.append(tensor(WRITE, type, values))
    constants = {"axis": 0, "count": 2, "own": 1, "is_tuple": 1}
    return fill_indices(draw, Dispatch(kernel, tensors, constants))


def random_generator(draw: st.DrawFn) -> Dispatch:
    sizes, state = draw(shapes()), (1, 6)
    return Dispatch(
        "random_generator",
        [
            Tensor(READ, UINT32, state, draw(layouts(state))),
            Tensor(WRITE, UINT32, sizes, draw(layouts(sizes, output=True))),
            draw(st.sampled_from([None, Tensor(WRITE, UINT32, state, (6, 1))])),
        ],
    )


def take_slice(draw: st.DrawFn) -> Dispatch:
    """Any step along each axis; the first element follows from the number of elements."""
    sizes, steps = draw(shapes()), [draw(st.integers(-2, 2).filter(bool)) for _ in range(3)]
    whole, first = [], []
    for size, step in zip(sizes, steps, strict=False):
        before, behind = draw(st.integers(0, 1)), draw(st.integers(0, 1))
        span = (size - 1) * abs(step)
        whole.append(before + span + 1 + behind)
        first.append(before + (span if step < 0 else 0))
    tensors = [
        Tensor(READ, UINT8, tuple(whole), draw(layouts(tuple(whole)))),
        Tensor(WRITE, UINT8, sizes, draw(layouts(sizes, output=True))),
    ]
    return Dispatch("take_slice", [*tensors], {"first": first, "step": steps[: len(sizes)]})


def diagonal_matrix(draw: st.DrawFn) -> Dispatch:
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=3)))
    begin, end = sorted(draw(st.tuples(st.integers(-4, 4), st.integers(-4, 4))))
    tensors = [
        Tensor(READ, FLOAT16, sizes, draw(layouts(sizes))),
        Tensor(WRITE, FLOAT16, sizes, draw(layouts(sizes, output=True))),
    ]
    constants = {"begin": begin, "end": end, "outside": draw(st.integers(0, 1)), "value": 7}
    return Dispatch("diagonal_matrix", [*tensors], constants)


def columns(draw: st.DrawFn, kernel: str) -> Dispatch:
    """FOLD and UNFOLD: columns in the padding are not read, nor are elements under no window."""
    spatial = draw(st.integers(1, 2))
    number = st.integers(1, 2)
    window, strides, dilations = ([draw(number) for _ in range(spatial)] for _ in range(3))
    start, blocks = [draw(st.integers(0, 2)) for _ in range(spatial)], [draw(number) for _ in range(spatial)]
    image = [draw(number), draw(number), *(draw(st.integers(1, 4)) for _ in range(spatial))]
    places, count = 1, 1
    for d in range(spatial):
        places, count = places * window[d], count * blocks[d]
    both = [tuple(image), (image[0], image[1] * places, count)]
    if kernel == "fold":
        both.reverse()
    constants = {
        "spatial": spatial,
        "window": window,
        "strides": strides,
        "dilations": dilations,
        "start_padding": start,
        "blocks": blocks,
    }
    tensors = [
        Tensor(READ, FLOAT32, both[0], draw(layouts(both[0]))),
        Tensor(WRITE, FLOAT32, both[1], draw(layouts(both[1], output=True))),
    ]
    return Dispatch(kernel, [*tensors], constants)


def padding(draw: st.DrawFn) -> Dispatch:
    sizes, start = draw(shapes()), [draw(st.integers(0, 3)) for _ in range(3)]
    padded = tuple(size + 1 + before for size, before in zip(sizes, start, strict=False))
    tensors = [
        Tensor(READ, UINT8, sizes, draw(layouts(sizes))),
        Tensor(WRITE, UINT8, padded, draw(layouts(padded, output=True))),
    ]
    return Dispatch("padding", [*tensors], {"mode": draw(st.integers(0, 4)), "start": start[: len(sizes)]})


def dispatches() -> Iterator[tuple[str, Any]]:
    """Each kernel, but convolutions and NONZERO_COORDINATES, with random layouts."""
    yield "copy", lambda draw: same(draw, "copy", [FLOAT16], FLOAT16)
    yield "cast", lambda draw: same(draw, "cast", [UINT8], FLOAT32)
    yield "add", lambda draw: same(draw, "add", [INT32, INT32], INT32)
    yield "xor", lambda draw: same(draw, "bit_xor", [UINT8, UINT8], UINT8)
    yield "elu", lambda draw: same(draw, "elu", [FLOAT32], FLOAT32)
    yield "clip", lambda draw: same(draw, "clip", [FLOAT32], FLOAT32, has_scale_bias=draw(st.integers(0, 1)))
    yield "bit count", lambda draw: same(draw, "bit_count", [UINT64], UINT8)
    yield "reduce", reduce
    yield "gemm", gemm
    yield "gather", gather
    yield "gather by tuples", lambda draw: by_tuples(draw, "gather")
    yield "scatter by tuples", lambda draw: by_tuples(draw, "scatter")
    yield "random generator", random_generator
    yield "slice", take_slice
    yield "diagonals", diagonal_matrix
    yield "fold", lambda draw: columns(draw, "fold")
    yield "unfold", lambda draw: columns(draw, "unfold")
    yield "padding", padding


@pytest.mark.parametrize(
    ("name", "make"), list(dispatches()), ids=lambda each: each if isinstance(each, str) else ""
)
@settings(max_examples=15)
@given(data=st.data())
def test_kernels_touch_their_footprints(name: str, make: Any, data: st.DataObject) -> None:
    dispatch = make(data.draw)

    assert_reads(dispatch)
    assert_coordinates(dispatch)
    assert dispatch.written() == dispatch.claimed(WRITE)


@pytest.mark.parametrize(("beta", "expected"), [(1.0, [0, 1, 2, 3]), (0.0, [0, 1, 3]), (-0.0, [0, 1, 3])])
def test_a_product_that_c_counts_nothing_in_does_not_read_it(beta: float, expected: list[int]) -> None:
    square = (2, 2), (2, 1)
    inputs = [Tensor(READ, FLOAT32, *square) for _ in range(3)]
    dispatch = Dispatch("gemm", [*inputs, Tensor(WRITE, FLOAT32, *square)], {"alpha": 1.0, "beta": beta})

    assert [each.operand for each in dispatch.footprints()] == expected


def test_what_is_chosen_by_data_is_not_known_before() -> None:
    """Then it is one footprint of the whole tensor, and no check reports that."""
    dispatch = Dispatch(
        "gather",
        [
            Tensor(READ, UINT8, (9,), (1,)),
            Tensor(READ, UINT32, (4,), (1,)),
            Tensor(WRITE, UINT8, (4,), (1,)),
        ],
        {"axis": 0, "count": 1, "own": 1},
    )
    ffi.cast("uint32_t *", dispatch.memory[1])[0:4] = [7, 0, 2, 7]

    assert dispatch.claimed(READ)[0] == {TENSORS + i for i in (0, 2, 7)}
    for planned, room in [(True, ROOM), (False, 3)]:
        found = dispatch.footprints(room, planned=planned)
        assert [each.access for each in found] == [lib.DMLK_MAYBE_READ, READ, WRITE]
        assert bytes_of(found[0]) == set(range(TENSORS, TENSORS + 9))


def test_a_list_of_coordinates_is_written_as_far_as_there_are_some() -> None:
    """How far is not known before; what is left is told then, and undefined."""
    dispatch = Dispatch(
        "nonzero_coordinates",
        [
            Tensor(READ, UINT8, (2, 3), (3, 1)),
            Tensor(WRITE, UINT32, (1,), (1,)),
            Tensor(WRITE, UINT32, (6, 2), (3, 1)),
        ],
        {"columns": 2},
    )
    ffi.buffer(dispatch.memory[0])[:3] = b"\x01\x00\x02"
    written, claimed, fault = dispatch.written(), dispatch.claimed(WRITE), dispatch.run()

    assert written[1] == claimed[1]
    start = dispatch.address(2)
    assert written[2] == Layout(start, 32, (2, 2), (3, 1)).bytes()
    assert (fault.partial_tensor, fault.partial_dimension, fault.partial_count) == (2, 0, 2)
    assert claimed[2] == written[2] | Layout(start + 24, 32, (4, 2), (3, 1)).bytes()
    assert_reads(dispatch)


def test_constants_fill_their_tensor() -> None:
    dispatch = Dispatch("copy", [Tensor(READ, UINT32, (2,), (1,)), Tensor(WRITE, UINT32, (2,), (1,))])
    data = bytes(range(1, 9))
    writer = packets.PacketWriter()
    output = packets.tensor(1, WRITE, UINT32, (2,), (1,), 8)
    writer.dispatch(kernels.number("constant_data"), TABLE, [output], data, 0)
    dispatch.packet = writer.bytes()
    dispatch.run()

    assert bytes(ffi.buffer(dispatch.memory[1]))[:8] == data
    [only] = dispatch.footprints()
    assert (only.access, bytes_of(only)) == (WRITE, set(range(dispatch.address(1), dispatch.address(1) + 8)))
