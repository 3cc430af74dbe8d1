"""Commands: rules CM1 to CM5 (copies, clears, writes) and QY1 to QY5 (timestamps)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dmlemu import Error, HResult, Strictness
from dmlemu.d3d12 import (
    BufferUav,
    BufferUavFlags,
    CommandQueueDesc,
    Feature,
    FeatureDataFormatSupport,
    Format,
    HeapType,
    QueryHeap,
    QueryHeapDesc,
    QueryHeapType,
    QueryType,
    Rect,
    ResourceBarrier,
    UnorderedAccessViewDesc,
    WriteBufferImmediateMode,
    WriteBufferImmediateParameter,
)
from dmlemu_hw.events import Recorded

from .stage import COMPUTE, COPY, DIRECT, INVALID, INVALID_CALL, STATE, Stage, fails, remarks

TIMESTAMP = QueryType.TIMESTAMP


# --- copies ---


@pytest.mark.parametrize(
    "dst, src, size, message_id",
    [
        (250, 0, 10, 841),
        (0, 250, 10, 844),
        (-1, 0, 4, 841),
        (0, -1, 4, 844),
        (0, 0, 257, 841),
        (0, 0, -1, 841),
        (257, 0, 0, 841),
    ],
)
def test_CM1_ranges(stage: Stage, dst: int, src: int, size: int, message_id: int) -> None:
    commands, _ = stage.record()

    with fails("CM1", INVALID, message_id):
        commands.copy_buffer_region(stage.buffer(), dst, stage.buffer(), src, size)
    stage.run(commands)


def test_CM1_operands(stage: Stage) -> None:
    commands, _ = stage.record()
    buffer: Any = stage.buffer()

    with fails("CM1", INVALID, 839):
        commands.copy_buffer_region(None, 0, buffer, 0, 4)  # type: ignore[arg-type]
    with fails("CM1", INVALID, 842):
        commands.copy_buffer_region(buffer, 0, None, 0, 4)  # type: ignore[arg-type]
    with fails("CM1", INVALID, 998):
        commands.copy_buffer_region(buffer, 0, buffer, 128, 4)
    with fails("OB3"):
        commands.copy_buffer_region(buffer, 0, Stage().buffer(), 0, 4)


def test_CM1_the_runtime_copies_within_one_buffer() -> None:
    stage = Stage(Strictness.RUNTIME)
    data = np.arange(64, dtype=np.uint8)
    buffer = stage.filled(data)
    commands, _ = stage.record()
    commands.copy_buffer_region(buffer, 32, buffer, 0, 16)
    commands.copy_buffer_region(buffer, 4, buffer, 0, 8)  # overlapping: as if by way of another buffer
    stage.run(commands)
    expected = data.copy()
    expected[32:48] = data[:16]
    expected[4:12] = data[:8]
    assert stage.read(buffer).tolist() == expected.tolist()
    assert stage.device.get_device_removed_reason() is HResult.S_OK


@pytest.mark.dmlemu(expect=["COPY_SAME", "STATE_*"])
@pytest.mark.parametrize("strictness", [Strictness.DEBUG, Strictness.STRICT])
def test_CM1_the_layer_reports_a_copy_within_one_buffer_that_is_made(strictness: Strictness) -> None:
    """As a C++ program gets it: nothing is raised."""
    stage = Stage(strictness, raises=False)
    buffer = stage.filled(np.arange(64, dtype=np.uint8))
    commands, _ = stage.record()
    commands.copy_buffer_region(buffer, 32, buffer, 0, 16)
    stage.run(commands)
    assert stage.read(buffer)[32:48].tolist() == list(range(16))
    assert 998 in remarks(stage)


@pytest.mark.parametrize("dst, src, size", [(3, 5, 7), (0, 255, 1), (256, 0, 0), (0, 0, 256)])
def test_CM1_any_byte_offset(stage: Stage, dst: int, src: int, size: int) -> None:
    data = np.arange(256, dtype=np.uint8)
    buffer = stage.filled(np.zeros(256, np.uint8))
    commands, _ = stage.record()
    commands.copy_buffer_region(buffer, dst, stage.upload(data), src, size)
    stage.run(commands)

    expected = np.zeros(256, np.uint8)
    expected[dst : dst + size] = data[src : src + size]
    np.testing.assert_array_equal(stage.read(buffer), expected)


def test_CM2_copy_resource(stage: Stage) -> None:
    commands, _ = stage.record()
    buffer: Any = stage.buffer()

    with fails("CM2", INVALID, 943):
        commands.copy_resource(None, buffer)  # type: ignore[arg-type]
    with fails("CM2", INVALID, 945):
        commands.copy_resource(buffer, None)  # type: ignore[arg-type]
    with fails("CM2", INVALID, 946):
        commands.copy_resource(buffer, buffer)
    with fails("CM2", INVALID, 946):
        commands.copy_resource(buffer, stage.buffer(128))
    commands.copy_resource(buffer, stage.buffer())
    stage.run(commands)


# --- clears ---


class Clears:
    """A buffer of 16 dwords with a view in a CPU heap and in a shader-visible one."""

    def __init__(self, stage: Stage, view: UnorderedAccessViewDesc) -> None:
        self.stage = stage
        self.buffer = stage.filled(np.full(64, 0xEE, np.uint8))
        self.host, self.visible = stage.heap(), stage.heap(visible=True)
        self.cpu = self.host.get_cpu_descriptor_handle_for_heap_start()
        self.gpu = self.visible.get_gpu_descriptor_handle_for_heap_start()
        for heap in (self.host, self.visible):
            stage.device.create_unordered_access_view(
                self.buffer, None, view, heap.get_cpu_descriptor_handle_for_heap_start()
            )
        self.list, _ = stage.record()
        self.list.set_descriptor_heaps([self.visible])

    def result(self, dtype: str = "u4") -> list[float]:
        self.stage.run(self.list)
        return self.stage.read(self.buffer).view(dtype).tolist()


RAW = UnorderedAccessViewDesc(Format.R32_TYPELESS, buffer=BufferUav(4, 8, flags=BufferUavFlags.RAW))
OLD = 0xEEEEEEEE


def test_CM4_raw_views_take_the_first_value(stage: Stage) -> None:
    clears = Clears(stage, RAW)
    clears.list.clear_unordered_access_view_uint(clears.gpu, clears.cpu, clears.buffer, (7, 8, 9, 10))

    assert clears.result() == [OLD] * 4 + [7] * 8 + [OLD] * 4


def test_CM4_typed_views_take_a_value_per_component(stage: Stage) -> None:
    clears = Clears(stage, UnorderedAccessViewDesc(Format.R16G16_UINT, buffer=BufferUav(1, 2)))
    clears.list.clear_unordered_access_view_uint(clears.gpu, clears.cpu, clears.buffer, (0x10001, 2, 3, 4))

    assert clears.result("u2")[:8] == [0xEEEE, 0xEEEE, 1, 2, 1, 2, 0xEEEE, 0xEEEE]


def test_CM4_float_values_are_converted(stage: Stage) -> None:
    clears = Clears(stage, UnorderedAccessViewDesc(Format.R16_FLOAT, buffer=BufferUav(0, 32)))
    clears.list.clear_unordered_access_view_float(clears.gpu, clears.cpu, clears.buffer, (0.5, 0, 0, 0))

    assert clears.result("f2") == [0.5] * 32


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("value", "format", "dtype"), [(1e300, "R32_FLOAT", "f4"), (1e10, "R16_FLOAT", "f2")]
)
def test_CM4_float_values_too_large_become_infinite(
    stage: Stage, value: float, format: str, dtype: str
) -> None:
    count = 64 // np.dtype(dtype).itemsize
    clears = Clears(stage, UnorderedAccessViewDesc(Format[format], buffer=BufferUav(0, count)))
    clears.list.clear_unordered_access_view_float(clears.gpu, clears.cpu, clears.buffer, (-value, 0, 0, 0))

    assert clears.result(dtype) == [-np.inf] * count


def test_CM4_rects_are_element_ranges(stage: Stage) -> None:
    clears = Clears(stage, RAW)
    rects = [Rect(0, 0, 2, 1), Rect(5, 0, 6, 1), Rect(3, 0, 3, 1)]
    clears.list.clear_unordered_access_view_uint(clears.gpu, clears.cpu, clears.buffer, (1, 0, 0, 0), rects)

    assert clears.result()[4:12] == [1, 1, OLD, OLD, OLD, 1, OLD, OLD]


@pytest.mark.parametrize("rect", [Rect(0, 0, 9, 1), Rect(3, 0, 2, 1), Rect(-1, 0, 2, 1)])
def test_CM4_rects_outside(stage: Stage, rect: Rect) -> None:
    clears = Clears(stage, RAW)

    with fails("CM4"):
        clears.list.clear_unordered_access_view_uint(clears.gpu, clears.cpu, clears.buffer, (1,) * 4, [rect])
    assert clears.result() == [OLD] * 16


@pytest.mark.parametrize("values", [(1, 2, 3), (1, 2, 3, -1), (2**32, 0, 0, 0), ()])
def test_CM4_values(stage: Stage, values: tuple[int, ...]) -> None:
    clears = Clears(stage, RAW)

    with fails("CM4"):
        clears.list.clear_unordered_access_view_uint(clears.gpu, clears.cpu, clears.buffer, values)


def test_CM4_values_are_named(stage: Stage) -> None:
    clears = Clears(stage, RAW)
    with pytest.raises(Error) as raised:
        clears.list.clear_unordered_access_view_uint(clears.gpu, clears.cpu, clears.buffer, (1, 2, -3, 4))
    report = raised.value.report

    assert (report.field, report.given) == ("Values[2]", "-3")
    assert report.message == "Values[2] (-3) is not an unsigned 32-bit number."


def test_CM4_float_values(stage: Stage) -> None:
    clears = Clears(stage, RAW)

    with fails("CM4"):
        clears.list.clear_unordered_access_view_float(clears.gpu, clears.cpu, clears.buffer, (1.0, 2.0))


def test_CM4_gpu_handle_of_the_heap_that_is_set(stage: Stage) -> None:
    clears = Clears(stage, RAW)
    clear = clears.list.clear_unordered_access_view_uint
    other = stage.heap(visible=True)

    for handle in (
        0,
        clears.gpu + 4 * 32,
        clears.gpu + 1,
        other.get_gpu_descriptor_handle_for_heap_start(),
        clears.cpu,
    ):
        with fails("CM4", INVALID, 1314):
            clear(handle, clears.cpu, clears.buffer, (0,) * 4)
    clears.list.set_descriptor_heaps([])
    with fails("CM4", INVALID, 1314):
        clear(clears.gpu, clears.cpu, clears.buffer, (0,) * 4)


@pytest.mark.parametrize("is_float", [False, True])
@pytest.mark.parametrize("heaps", ["none", "forgotten", "another"])
@pytest.mark.layer("DESC_HEAP_NOT_SET")
def test_CM4_the_runtime_does_not_look_at_the_heap_that_is_set(
    heaps: str, is_float: bool, runtime: Stage
) -> None:
    stage = runtime
    clears = Clears(stage, RAW)
    other = stage.heap(visible=True)
    clears.list, _ = stage.record()
    if heaps != "none":
        clears.list.set_descriptor_heaps([clears.visible])
        clears.list.set_descriptor_heaps([] if heaps == "forgotten" else [other])
    name = "clear_unordered_access_view_" + ("float" if is_float else "uint")
    getattr(clears.list, name)(clears.gpu, clears.cpu, clears.buffer, (1, 0, 0, 0))

    assert clears.result()[4:12] == [0x3F800000 if is_float else 1] * 8
    assert stage.device.get_device_removed_reason() is HResult.S_OK


@pytest.mark.layer("DESC_HEAP_NOT_SET")
def test_CM4_a_handle_of_no_visible_heap_fails_at_close_of_the_runtime(runtime: Stage) -> None:
    clears = Clears(runtime, RAW)
    clears.list.clear_unordered_access_view_uint(clears.cpu, clears.cpu, clears.buffer, (1, 0, 0, 0))

    with fails("CM4", INVALID, 1314):
        clears.list.close()


def test_CM4_cpu_handle(stage: Stage) -> None:
    clears = Clears(stage, RAW)
    clear = clears.list.clear_unordered_access_view_uint

    with fails("DH5", INVALID, 1314):
        clear(clears.gpu, clears.visible.get_cpu_descriptor_handle_for_heap_start(), clears.buffer, (0,) * 4)
    with fails("DH4", INVALID, 646):
        clear(clears.gpu, 12345, clears.buffer, (0,) * 4)
    with fails("CM4", INVALID, 1314):  # never written
        clear(clears.gpu, clears.cpu + 32, clears.buffer, (0,) * 4)
    stage.device.create_constant_buffer_view(None, clears.cpu + 32)
    with fails("CM4", INVALID, 1314):  # no UAV
        clear(clears.gpu, clears.cpu + 32, clears.buffer, (0,) * 4)


def test_CM4_resource(stage: Stage) -> None:
    clears = Clears(stage, RAW)

    for resource in (None, stage.buffer()):
        with fails("CM4", INVALID, 1215):
            clears.list.clear_unordered_access_view_uint(
                clears.gpu,
                clears.cpu,
                resource,  # type: ignore[arg-type]
                (0,) * 4,
            )


def test_CM4_structured_views(stage: Stage) -> None:
    clears = Clears(stage, UnorderedAccessViewDesc(Format.UNKNOWN, buffer=BufferUav(0, 4, 8)))

    with fails("CM4", INVALID, 1156):
        clears.list.clear_unordered_access_view_uint(clears.gpu, clears.cpu, clears.buffer, (0,) * 4)


def test_CM4_needs_uav_state(stage: Stage) -> None:
    clears = Clears(stage, RAW)
    clears.list.resource_barrier(
        ResourceBarrier.transition(clears.buffer, STATE.COMMON, STATE.NON_PIXEL_SHADER_RESOURCE)
    )

    with fails("ST1", INVALID, 538):
        clears.list.clear_unordered_access_view_uint(clears.gpu, clears.cpu, clears.buffer, (0,) * 4)


def components(format: Format) -> list[tuple[str, int, str]]:
    """Channel, bits and kind of each component, lowest bits first, as the name gives them."""
    names, kind = format.name.rsplit("_", 1)
    return [(name, int(bits), kind) for name, bits in re.findall(r"([RGBA])(\d+)", names)]


def cleared_formats(stage: Stage) -> list[Format]:
    """The formats with UAV_TYPED_STORE support; exactly these can be cleared."""
    typed_store, found = 0x80, []
    for format in Format:
        asked = FeatureDataFormatSupport(format)
        if stage.device.check_feature_support(Feature.FORMAT_SUPPORT, asked).support2 & typed_store:
            found.append(format)
    return found


def element(format: Format, numbers: dict[str, int]) -> int:
    """The components of one element joined."""
    joined, shift = 0, 0
    for channel, bits, _ in components(format):
        joined |= (numbers[channel] & (2**bits - 1)) << shift
        shift += bits
    return joined


def cleared_element(stage: Stage, format: Format, values: Sequence[float], *, is_float: bool) -> int:
    """Clears 3 of 5 elements, asserts that the others are unchanged, and returns the 3."""
    width = sum(bits for _, bits, _ in components(format)) // 8
    clears = Clears(stage, UnorderedAccessViewDesc(format, buffer=BufferUav(0, 4)))
    name = "clear_unordered_access_view_" + ("float" if is_float else "uint")
    getattr(clears.list, name)(clears.gpu, clears.cpu, clears.buffer, values, [Rect(1, 0, 4, 1)])
    data = bytes(np.array(clears.result("u1"), np.uint8))
    assert data[:width] + data[4 * width :] == b"\xee" * (64 - 3 * width)
    assert data[width : 2 * width] == data[2 * width : 3 * width] == data[3 * width : 4 * width]
    return int.from_bytes(data[width : 2 * width], "little")


def test_CM4_a_uint_clear_takes_the_low_bits_in_every_format(stage: Stage) -> None:
    values = dict(zip("RGBA", (0x89ABCDEF, 0x12345678, 0xDEADBEEF, 0x10203045), strict=True))
    formats = cleared_formats(stage)
    assert len(formats) == 48 and Format.R11G11B10_FLOAT in formats
    for format in formats:
        got = cleared_element(stage, format, list(values.values()), is_float=False)
        assert got == element(format, values), format.name


def converted(value: float, bits: int, kind: str) -> int:
    """By the data conversion rules of Direct3D; the value is neither NaN nor infinite."""
    exact = Fraction(value)
    if kind == "UNORM":
        return math.floor(min(max(exact, Fraction(0)), Fraction(1)) * (2**bits - 1) + Fraction(1, 2))
    if kind == "SNORM":
        scaled = min(max(exact, Fraction(-1)), Fraction(1)) * (2 ** (bits - 1) - 1)
        return math.floor(abs(scaled) + Fraction(1, 2)) * (-1 if scaled < 0 else 1)
    if kind in ("UINT", "SINT"):
        low, high = (0, 2**bits - 1) if kind == "UINT" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return min(max(int(value), low), high)
    if bits >= 16:
        with np.errstate(over="ignore"):
            return int(np.array(value).astype(f"f{bits // 8}").view(f"u{bits // 8}"))
    # A half without sign and with fewer mantissa bits: the rest is truncated.
    half = int(np.array(max(value, 0.0), "f2").view("u2"))
    assert half & ((1 << (15 - bits)) - 1) == 0, "choose a number that the small format holds"
    return half >> (15 - bits)


@pytest.mark.parametrize(
    "values",
    [
        (0.0, 1.0, 0.5, 0.25),
        (-1.0, 2.0, -0.5, 1.0),
        (0.50000762951, 0.5004887585532747, 0.3, 0.7),
        (3.0, 260.0, -70000.0, 1e9),
        (-1e-3, 126.5, -126.5, -0.1),
    ],
)
def test_CM4_a_float_clear_converts_to_every_format(stage: Stage, values: tuple[float, ...]) -> None:
    given = dict(zip("RGBA", np.array(values, np.float32).tolist(), strict=True))
    for format in cleared_formats(stage):
        if format == Format.R11G11B10_FLOAT and values[0] not in (0.0, -1.0):
            continue  # tested separately
        expected = {
            channel: converted(given[channel], bits, kind) for channel, bits, kind in components(format)
        }
        got = cleared_element(stage, format, list(given.values()), is_float=True)
        assert got == element(format, expected), format.name


@pytest.mark.parametrize(
    ("format", "values", "expected"),
    [
        ("R16G16_UINT", (0x10000, 0, 0, 0), 0),
        ("R16G16_UNORM", (0x1234, 0xABCD, 0, 0), 0xABCD1234),
        ("R16G16_UNORM", (0.50000762951, 1.0, 0.0, 0.0), 0xFFFF8000),
        ("R16G16_UNORM", (2.0, 0.0, 0.0, 0.0), 0xFFFF),
        ("R16G16_UNORM", (-1.0, 0.0, 1.0, 1.0), 0),
        ("R16G16_FLOAT", (0x1234, 0xABCD, 0, 0), 0xABCD1234),
        ("R16G16_FLOAT", (0.5, 1.0, 0.0, 0.0), 0x3C003800),
        ("R8G8B8A8_UINT", (0x100, 0, 0, 0), 0),
        ("R11G11B10_FLOAT", (0x7FF, 0, 0x3FF, 0), 0xFFC007FF),
        ("R11G11B10_FLOAT", (0.5, 1.0, 2.0, 0.0), 0x801E0380),
        ("R11G11B10_FLOAT", (0.5, 0.0, -1.0, 1.0), 0x380),
        ("R10G10B10A2_UINT", (0x1010, 0x1020, 0x1030, 0x41), 0x43008010),
        ("R10G10B10A2_UNORM", (0x1010, 0x1020, 0x1030, 0x41), 0x43008010),
        ("R10G10B10A2_UNORM", (0.5004887585532747, 1.0, 0.0, 1.0), 0xC00FFE00),
        # NaN converts to 0 in formats without NaN; -128 is a second encoding of -1, never produced.
        ("R8G8B8A8_UNORM", (np.nan, np.inf, -np.inf, 1.0), 0xFF00FF00),
        ("R8G8B8A8_SNORM", (np.nan, np.inf, -np.inf, -1.0), 0x81817F00),
        ("R8G8B8A8_SINT", (np.nan, np.inf, -np.inf, -1.9), 0xFF807F00),
        # The largest numbers are 65024 and 64512; values in between round toward 0.
        ("R11G11B10_FLOAT", (65023.0, 1e30, 65000.0, 0.0), 0x7BE | 0x7BF << 11 | 0x3DF << 22),
        ("R11G11B10_FLOAT", (np.nan, np.inf, -np.inf, 0.0), 0x7E0 | 0x7C0 << 11),
        # Denormals: steps of 2**-20 and of 2**-19.
        ("R11G11B10_FLOAT", (2.9e-6, 2**-14 - 2**-20, 2**-19, 0.0), 3 | 63 << 11 | 1 << 22),
    ],
)
def test_CM4_known_clears(stage: Stage, format: str, values: tuple[float, ...], expected: int) -> None:
    is_float = isinstance(values[0], float)
    assert cleared_element(stage, Format[format], values, is_float=is_float) == expected


# --- immediate writes ---


def test_CM5_write_buffer_immediate(stage: Stage) -> None:
    buffer, other = stage.buffer(16), stage.buffer(16)
    at, elsewhere = buffer.get_gpu_virtual_address(), other.get_gpu_virtual_address()
    commands, _ = stage.record()
    commands.write_buffer_immediate(
        [
            WriteBufferImmediateParameter(at + 4, 7),
            WriteBufferImmediateParameter(at + 12, 2**32 - 1),
            WriteBufferImmediateParameter(elsewhere, 3),
        ],
        [
            WriteBufferImmediateMode.DEFAULT,
            WriteBufferImmediateMode.MARKER_IN,
            WriteBufferImmediateMode.MARKER_OUT,
        ],
    )
    commands.write_buffer_immediate([])
    stage.run(commands)

    assert stage.read(buffer).view("u4").tolist() == [0, 7, 0, 2**32 - 1]
    assert stage.read(other).view("u4").tolist() == [3, 0, 0, 0]


@pytest.mark.parametrize(
    "offset, value, modes",
    [
        (2, 0, None),
        (16, 0, None),
        (-4, 0, None),
        (0, 2**32, None),
        (0, -1, None),
        (0, 0, [3]),
        (0, 0, []),
    ],
)
def test_CM5_arguments(stage: Stage, offset: int, value: int, modes: Any) -> None:
    buffer = stage.buffer(16)
    commands, _ = stage.record()
    param = WriteBufferImmediateParameter(buffer.get_gpu_virtual_address() + offset, value)

    with fails("CM5"):
        commands.write_buffer_immediate([param], modes)
    stage.run(commands)


def test_CM5_needs_copy_dest_state(stage: Stage) -> None:
    buffer = stage.buffer(heap=HeapType.UPLOAD)
    commands, _ = stage.record()

    with fails("ST6", INVALID, 538):
        commands.write_buffer_immediate([WriteBufferImmediateParameter(buffer.get_gpu_virtual_address(), 1)])


# --- timestamps ---


def queries(stage: Stage, count: int = 4, type: QueryHeapType = QueryHeapType.TIMESTAMP) -> QueryHeap:
    return stage.device.create_query_heap(QueryHeapDesc(type, count))


@pytest.mark.parametrize(
    "desc", [QueryHeapDesc(count=0), QueryHeapDesc(count=-1), QueryHeapDesc(6), QueryHeapDesc(node_mask=2)]
)
def test_QY1_description(stage: Stage, desc: QueryHeapDesc) -> None:
    with fails("QY1", INVALID, 729):
        stage.device.create_query_heap(desc)


def test_QY1_other_queries_are_not_emulated(stage: Stage) -> None:
    with pytest.raises(Error, match="OCCLUSION is not emulated"):
        queries(stage, type=QueryHeapType.OCCLUSION)


def test_QY2_end_query(stage: Stage) -> None:
    heap = queries(stage)
    commands, _ = stage.record()

    with fails("QY2", INVALID, 731):
        commands.begin_query(heap, TIMESTAMP, 0)
    with fails("QY2", INVALID, 731):
        commands.end_query(None, TIMESTAMP, 0)  # type: ignore[arg-type]
    with fails("QY2", INVALID, 731):
        commands.end_query(heap, QueryType.OCCLUSION, 0)
    for index in (-1, 4):
        with fails("QY2", INVALID, 731):
            commands.end_query(heap, TIMESTAMP, index)
    with fails("QY2", INVALID, 731):
        commands.end_query(queries(stage, type=QueryHeapType.COPY_QUEUE_TIMESTAMP), TIMESTAMP, 0)
    commands.end_query(heap, TIMESTAMP, 3)
    stage.run(commands)


@pytest.mark.parametrize(
    "start, count, width, offset",
    [
        (0, 5, 256, 0),
        (3, 2, 256, 0),
        (-1, 1, 256, 0),
        (0, 1, 256, 4),
        (0, 1, 256, 256),
        (0, 4, 24, 0),
        (0, 1, 8, -8),
    ],
)
def test_QY3_resolve(stage: Stage, start: int, count: int, width: int, offset: int) -> None:
    heap, commands = queries(stage), stage.record()[0]

    with fails("QY3", INVALID, 733):
        commands.resolve_query_data(heap, TIMESTAMP, start, count, stage.buffer(width), offset)
    with fails("QY3", INVALID, 733):
        commands.resolve_query_data(heap, TIMESTAMP, 0, 1, None, 0)  # type: ignore[arg-type]
    stage.run(commands)


def test_QY3_the_heap_fits_the_list(stage: Stage) -> None:
    heap, target = queries(stage, type=QueryHeapType.COPY_QUEUE_TIMESTAMP), stage.buffer(8)
    commands, copying = stage.record()[0], stage.record(COPY)[0]

    with fails("QY3", INVALID, 733):
        commands.resolve_query_data(heap, TIMESTAMP, 0, 1, target, 0)
    copying.end_query(heap, TIMESTAMP, 0)
    copying.resolve_query_data(heap, TIMESTAMP, 0, 1, target, 0)
    stage.run(copying)


@pytest.mark.dmlemu(expect=["QUERY_NOT_ENDED"])
def test_QY3_unresolved_slots_give_0(stage: Stage) -> None:
    heap, target = queries(stage), stage.buffer(40, HeapType.READBACK)
    commands, _ = stage.record()
    commands.end_query(heap, TIMESTAMP, 1)
    commands.resolve_query_data(heap, TIMESTAMP, 0, 4, target, 8)
    commands.resolve_query_data(heap, TIMESTAMP, 0, 0, target, 0)
    stage.run(commands)

    times = target.map().view(np.uint64)
    assert times[[0, 1, 3, 4]].tolist() == [0, 0, 0, 0] and times[2] > 0


@pytest.mark.dmlemu(expect=["QUERY_NOT_ENDED"])
def test_QY5_queries_that_were_never_ended(stage: Stage) -> None:
    heap, target = queries(stage), stage.buffer(32, HeapType.READBACK)
    first, _ = stage.record()
    first.end_query(heap, TIMESTAMP, 1)
    first.resolve_query_data(heap, TIMESTAMP, 1, 1, target, 0)
    stage.run(first)
    second, _ = stage.record()
    second.resolve_query_data(heap, TIMESTAMP, 1, 2, target, 0)
    second.end_query(heap, TIMESTAMP, 2)
    assert remarks(stage) == []
    stage.run(second)
    assert remarks(stage) == [1319]
    assert stage.device.info_queue.get_message(0).expected == "ended queries: 2 is not"
    third, _ = stage.record()
    third.resolve_query_data(heap, TIMESTAMP, 1, 2, target, 0)
    stage.run(third)
    assert len(remarks(stage)) == 1


def test_QY5_a_list_that_is_not_executed_ends_nothing(stage: Stage) -> None:
    heap = queries(stage)
    commands, _ = stage.record()
    commands.end_query(heap, TIMESTAMP, 0)
    with fails("Q2", INVALID_CALL):
        stage.queue.execute_command_lists([commands])  # is open
    assert not heap.ended
    stage.run(commands)
    assert heap.ended == {0}


@pytest.mark.parametrize(
    "type, heap_type",
    [
        (DIRECT, QueryHeapType.TIMESTAMP),
        (COMPUTE, QueryHeapType.TIMESTAMP),
        (COPY, QueryHeapType.COPY_QUEUE_TIMESTAMP),
    ],
)
def test_QY4_timestamps_grow_with_work(stage: Stage, type: Any, heap_type: QueryHeapType) -> None:
    heap = queries(stage, 3, heap_type)
    results = stage.buffer(24, HeapType.READBACK)
    small, large = stage.buffer(256), stage.buffer(1 << 20)
    commands, _ = stage.record(type)
    commands.end_query(heap, TIMESTAMP, 0)
    commands.copy_resource(small, stage.buffer(256))
    commands.end_query(heap, TIMESTAMP, 1)
    commands.copy_resource(large, stage.buffer(1 << 20))
    commands.end_query(heap, TIMESTAMP, 2)
    commands.resolve_query_data(heap, TIMESTAMP, 0, 3, results, 0)
    stage.run(commands)

    first, second, third = results.map().view(np.uint64).tolist()
    assert first < second < third and third - second > second - first


def test_QY4_clocks(stage: Stage) -> None:
    queue = stage.queue
    before = queue.get_clock_calibration()
    stage.filled(np.zeros(16, np.uint8))
    after = queue.get_clock_calibration()

    assert queue.get_timestamp_frequency() == 1_000_000_000
    assert after.gpu_timestamp > before.gpu_timestamp
    assert after.cpu_timestamp >= before.cpu_timestamp
    copies = stage.device.create_command_queue(CommandQueueDesc(COPY))
    assert copies.get_timestamp_frequency() == queue.get_timestamp_frequency()


# --- events ---


def test_commands_are_announced(stage: Stage) -> None:
    seen: list[Recorded] = []
    heap, buffer = stage.heap(visible=True), stage.buffer()
    commands, _ = stage.record()
    subscription = stage.device.context.gpu.events.subscribe(
        lambda event: seen.append(event) if isinstance(event, Recorded) else None
    )
    commands.set_descriptor_heaps([heap])
    commands.copy_resource(buffer, stage.buffer())
    commands.resource_barrier([ResourceBarrier.uav(None), ResourceBarrier.uav(buffer)])
    commands.set_marker(1, "here")
    subscription.close()
    commands.set_marker(1, "there")

    assert [event.command for event in seen] == [0, 1, 2, 3, 4]
    assert [event.opcode for event in seen] == [9, 2, 4, 4, 8]


@pytest.mark.dmlemu(expect=["OBJECT_DELETED_IN_USE"])
def test_faults_name_the_command_and_the_list(stage: Stage) -> None:
    source = stage.buffer()
    source.set_name("source")
    commands, _ = stage.record()
    commands.set_name("upload pass")
    commands.set_marker(1, "first")
    commands.copy_resource(stage.buffer(), source)
    stage.queue.set_name("main queue")
    stage.submit(commands)
    with pytest.raises(Error, match="released"):
        source.release()

    with pytest.raises(Error) as caught:
        stage.finish()
    report, text = caught.value.report, str(caught.value)
    assert caught.value.hresult is HResult.DXGI_ERROR_DEVICE_HUNG
    assert report.operation == "CopyResource"
    assert "command 1 of command list 'upload pass'" in text
    assert "queue 'main queue'" in text and "'source'" in text
    assert stage.device.get_device_removed_reason() is HResult.DXGI_ERROR_DEVICE_HUNG
