"""Footprints as sets: which bytes two of them share, against sets of bytes made by the definition."""

import pytest
from byte_sets import Layout, layouts
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlemu_hw.kernels import ffi, lib
from thorough import part_of

READ, WRITE, UNDEFINE = lib.DMLK_READ, lib.DMLK_WRITE, lib.DMLK_UNDEFINE
ANYWHERE = (0, 2**64 - 1)


def meet(a: Layout, b: Layout, shift: int = 0, low: int = 0, high: int = 2**64 - 1) -> int | None:
    """The lowest shared byte."""
    byte = ffi.new("uint64_t *", 2**64 - 1)
    status = lib.dmlk_footprints_meet(a.struct(), b.struct(), shift, low, high, byte)
    assert status in (0, 1)
    return byte[0] if status else None


def lowest_shared(a: Layout, b: Layout, shift: int, low: int, high: int) -> int | None:
    shared = a.bytes() & {byte + shift for byte in b.bytes()}
    return min((byte for byte in shared if low <= byte < high), default=None)


def index_of(layout: Layout, address: int) -> tuple[int, ...] | None:
    index = ffi.new("uint64_t[8]", [77] * 8)
    status = lib.dmlk_footprint_index(layout.struct(), address, index)
    assert status in (0, 1)
    return tuple(index)[: len(layout.sizes)] if status else None


@st.composite
def crowded(draw) -> Layout:
    """So many elements in so few places that no search over them ends soon."""
    unit = draw(st.sampled_from([2, 3, 6]))
    strides = tuple(unit * draw(st.integers(1, 40)) + draw(st.sampled_from([0, 0, 0, 1])) for _ in range(4))
    sizes = tuple(draw(st.integers(3, 7)) for _ in range(4))
    return Layout(draw(st.integers(1000, 1100)), draw(st.sampled_from([4, 8])), sizes, strides)


class TestMeet:
    @settings(max_examples=part_of(1500), deadline=None)
    @given(layouts(), layouts(), st.integers(-40, 40), st.integers(990, 1100), st.integers(0, 200))
    def test_any_two_layouts(self, a, b, shift, low, length):
        assert meet(a, b, shift) == lowest_shared(a, b, shift, *ANYWHERE)
        assert meet(a, b, shift, low, low + length) == lowest_shared(a, b, shift, low, low + length)

    @settings(max_examples=part_of(300), deadline=None)
    @given(crowded(), crowded(), st.integers(-40, 40), st.integers(1000, 1600), st.integers(0, 400))
    def test_layouts_that_overlap_themselves(self, a, b, shift, low, length):
        assert meet(a, b, shift) == lowest_shared(a, b, shift, *ANYWHERE)
        assert meet(a, b, shift, low, low + length) == lowest_shared(a, b, shift, low, low + length)

    @settings(max_examples=part_of(300), deadline=None)
    @given(
        layouts(farthest=1500, most=200, longest=7),
        layouts(farthest=1500, most=200, longest=7),
    )
    def test_long_rows(self, a, b):
        assert meet(a, b) == lowest_shared(a, b, 0, *ANYWHERE)

    def test_two_half_bytes_of_one_byte_meet(self):
        low, high = (Layout(64, 4, (3,), (2,)), Layout(64, 4, (6,), (1,)))
        assert meet(low, high) == 64
        odd = Layout(64, 4, (2, 2), (7, 1))  # half bytes 0, 1, 7 and 8: bytes 64, 67 and 68
        assert [meet(odd, Layout(64 + i, 8)) for i in range(6)] == [64, None, None, 67, 68, None]

    def test_interleaved_columns_do_not_meet(self):
        left, right = (Layout(4096 + 4 * i, 32, (10**6, 1), (2, 1)) for i in range(2))
        assert meet(left, right) is None
        assert meet(left, right, shift=-4) == 4096
        assert meet(left, right, shift=-7) == 4096
        assert meet(left, right, shift=1) == 4096 + 8

    def test_rows_of_many_images_do_not_meet(self):
        above, below = (Layout(4096 + 50 * i * 400, 32, (10**6, 50, 100), (12345, 100, 1)) for i in (0, 1))
        assert meet(above, below) is None
        assert meet(above, below, shift=-4 * (50 * 100)) == 4096

    def test_a_shift_beyond_all_addresses(self):
        layout = Layout(4096, 8, (8,), (1,))
        assert meets(layout, layout, -4097) == -1
        assert meets(layout, layout, 2**63 - 1) == 0
        top = Layout(2**64 - 9, 8, (8,), (1,))
        assert meets(top, top, 1) == -1


def meets(a: Layout, b: Layout, shift: int = 0) -> int:
    return lib.dmlk_footprints_meet(a.struct(), b.struct(), shift, *ANYWHERE, ffi.new("uint64_t *"))


class TestHugeLayouts:
    """Nothing here could be answered element by element."""

    def test_broadcast_costs_nothing(self):
        everywhere = Layout(4096, 32, (2**32,) * 7 + (2,), (0,) * 7 + (3,))
        assert meet(everywhere, Layout(4096 + 12, 32)) == 4096 + 12
        assert meet(everywhere, Layout(4096 + 4, 64)) is None

    def test_odd_and_even_bytes(self):
        assert meet(*(Layout(4096 + i, 8, (2**32,), (2,)) for i in range(2))) is None
        assert meet(Layout(4096, 8, (2**32,), (2,)), Layout(4096 + 2**33 - 2, 8)) == 4096 + 2**33 - 2

    def test_windows_over_windows(self):
        """A convolution of a convolution: 8 dimensions that overlap, 2**48 elements."""
        sizes, strides = (64,) * 8, (1, 2, 3, 5, 1024, 2048, 3072, 5120)
        windows = Layout(4096, 16, sizes, strides)
        assert meet(windows, Layout(windows.end - 2, 16)) == windows.end - 2
        assert meet(windows, Layout(windows.end, 16)) is None

    def test_strides_without_common_divisor(self):
        a = Layout(4096, 8, (2**10,) * 6, (30030, 30031, 30059, 30071, 30089, 30091))
        b = Layout(4096 + 17, 8, (2**10,) * 6, (30030, 30031, 30059, 30071, 30089, 30091))
        assert meet(a, b) is not None

    def test_layouts_that_barely_miss(self):
        a = Layout(4096, 8, (2**8, 2**8, 2**8), (2 * 30030, 2 * 30031, 2 * 30059))
        b = Layout(4097, 8, (2**8, 2**8, 2**8), (2 * 40009, 2 * 40013, 2 * 40031))
        assert meet(a, b) is None
        rows = Layout(4096, 8, (2**16, 2**8, 2), (2**16 - 2, 2**7, 62))
        other = Layout(4096 + 1, 8, (2**16, 2**8, 2), (2**16 - 2, 2**7 + 2, 34))
        assert meet(rows, other) is None

    def test_more_than_memory_can_tell_is_said(self):
        """2**46 bytes: no bitmap of them is tried, and no search goes on for ever."""
        sizes = (2**20,) * 8
        a = Layout(4096, 4, sizes, tuple(2**26 + i for i in (1, 3, 9, 27, 81, 243, 729, 2187)))
        b = Layout(4096 + 2**40, 4, sizes, tuple(2**26 + i for i in (2, 5, 11, 31, 87, 247, 731, 2189)))
        assert meets(a, b) in (-1, 1)

    @pytest.mark.parametrize(
        "layout",
        [
            Layout(4096, 32, (2**32, 2**32), (2**32, 1)),
            Layout(4096, 64, (2**62,), (1,)),
            Layout(2**64 - 4, 64),
            Layout(4096, 0, (4,), (1,)),
            Layout(4096, 7, (4,), (1,)),
            Layout(4096, 8, (0,), (1,)),
            Layout(4096, 8, (2**63 + 1,), (2**63,)),
        ],
    )
    def test_footprints_without_meaning_are_refused(self, layout):
        struct = layout.struct_to(2**64 - 1)
        good, byte = Layout(4096, 8).struct(), ffi.new("uint64_t *")
        assert lib.dmlk_footprints_meet(struct, good, 0, *ANYWHERE, byte) == -1
        assert lib.dmlk_footprints_meet(good, struct, 0, *ANYWHERE, byte) == -1
        assert lib.dmlk_footprint_holds(struct, 4096) == -1
        assert lib.dmlk_footprint_index(struct, 4096, ffi.new("uint64_t[8]")) == -1
        assert lib.dmlk_footprints_find(struct, good, ffi.NULL, 0, 1, byte) == -1
        assert lib.dmlk_footprints_find(good, struct, ffi.NULL, 0, 1, byte) == -1

    def test_a_rank_above_8_is_refused(self):
        struct = Layout(4096, 8, (2,) * 8, (1,) * 8).struct()
        struct.rank = 9
        assert lib.dmlk_footprint_holds(struct, 4096) == -1


class TestHoldsAndIndex:
    @settings(max_examples=part_of(800), deadline=None)
    @given(layouts())
    def test_every_byte_and_its_first_element(self, layout):
        first: dict[int, tuple[int, ...]] = {}
        for index, covered in layout.elements():
            for byte in covered:
                first.setdefault(byte, index)
        struct = layout.struct()
        for address in range(layout.address - 2, layout.end + 2):
            assert lib.dmlk_footprint_holds(struct, address) == (address in first)
            assert index_of(layout, address) == first.get(address)

    @settings(max_examples=part_of(60), deadline=None)
    @given(crowded(), st.data())
    def test_of_layouts_that_overlap_themselves(self, layout, data):
        address = data.draw(st.integers(layout.address, layout.end))
        first = next((index for index, covered in layout.elements() if address in covered), None)
        assert index_of(layout, address) == first

    def test_of_a_transposed_matrix_too_large_to_walk(self):
        layout = Layout(4096, 32, (2**20, 2**20, 1, 2**30), (1, 2**20, 5, 0))
        row, column = 987_654, 123_456
        assert index_of(layout, 4096 + 4 * (row + column * 2**20) + 3) == (row, column, 0, 0)


class TestFind:
    @settings(max_examples=part_of(400), deadline=None)
    @given(
        layouts(),
        st.sampled_from([READ, WRITE, READ | WRITE, UNDEFINE]),
        st.lists(st.tuples(layouts(), st.sampled_from([READ, WRITE, UNDEFINE]), st.booleans()), max_size=5),
        st.integers(0, 3),
    )
    def test_the_first_conflict(self, layout, access, others, start):
        a = layout.struct()
        a.access = access
        entries = ffi.new("dmlk_footprint[]", max(1, len(others)))
        for entry, (other, its_access, _) in zip(entries, others, strict=False):
            ffi.memmove(ffi.addressof(entry), other.struct(), ffi.sizeof("dmlk_footprint"))
            entry.access = its_access
        skip = bytes(skipped for _, _, skipped in others)
        expected = next(
            (
                (i, min(layout.bytes() & other.bytes()))
                for i, (other, its_access, skipped) in enumerate(others)
                if i >= start
                and not skipped
                and (access | its_access) & ~READ
                and layout.bytes() & other.bytes()
            ),
            (-1, 0),
        )
        byte = ffi.new("uint64_t *")
        given_skip = ffi.from_buffer(skip) if any(skip) else ffi.NULL
        assert lib.dmlk_footprints_find(a, entries, given_skip, start, len(others), byte) == expected[0]
        assert byte[0] == expected[1]
