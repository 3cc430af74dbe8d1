"""Descriptor heaps and views: rules DH1 to DH9, VW1 to VW9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dmlemu import Error, HResult, Strictness
from dmlemu.d3d12 import (
    BufferSrv,
    BufferSrvFlags,
    BufferUav,
    BufferUavFlags,
    ConstantBufferViewDesc,
    DescriptorHeapDesc,
    DescriptorHeapFlags,
    DescriptorHeapType,
    Device,
    Format,
    HeapType,
    Resource,
    ResourceFlags,
    ShaderResourceViewDesc,
    SrvDimension,
    UavDimension,
    UnorderedAccessViewDesc,
)
from dmlemu_hw.descriptors import Descriptor, DescriptorKind

from .stage import INVALID, INVALID_CALL, Stage, fails

VIEWS = DescriptorHeapType.CBV_SRV_UAV
VISIBLE = DescriptorHeapFlags.SHADER_VISIBLE
RAW = BufferUavFlags.RAW


@pytest.mark.parametrize(
    "desc",
    [
        DescriptorHeapDesc(VIEWS, 0),
        DescriptorHeapDesc(VIEWS, -1),
        DescriptorHeapDesc(VIEWS, 2**32),
        DescriptorHeapDesc(4, 1),  # type: ignore[arg-type]
        DescriptorHeapDesc(VIEWS, 1, 2),  # type: ignore[arg-type]
        DescriptorHeapDesc(DescriptorHeapType.RTV, 1, VISIBLE),
        DescriptorHeapDesc(DescriptorHeapType.DSV, 1, VISIBLE),
        DescriptorHeapDesc(VIEWS, 1, VISIBLE, 2),
    ],
)
def test_DH1_description(stage: Stage, desc: DescriptorHeapDesc) -> None:
    with fails("DH1", INVALID, 645):
        stage.device.create_descriptor_heap(desc)


@pytest.mark.parametrize("type", list(DescriptorHeapType))
def test_DH1_all_types(stage: Stage, type: DescriptorHeapType) -> None:
    desc = stage.heap(3, type=type).get_desc()

    assert (desc.type, desc.num_descriptors, desc.node_mask) == (type, 3, 1)


@pytest.mark.parametrize("type, limit", [(VIEWS, 1_000_000), (DescriptorHeapType.SAMPLER, 2048)])
def test_DH2_limits(stage: Stage, type: DescriptorHeapType, limit: int) -> None:
    stage.heap(limit, visible=True, type=type)
    with fails("DH2", INVALID, 1013):
        stage.heap(limit + 1, visible=True, type=type)
    stage.heap(limit + 1, type=type)


def test_DH2_out_of_memory() -> None:
    with fails("DH2", HResult.E_OUTOFMEMORY):
        Stage(memory=1 << 20).heap(1 << 20)


@pytest.mark.layer("DESC_HEAP_NOT_VISIBLE")
def test_DH3_gpu_handle_of_a_heap_that_is_not_visible(stage: Stage, runtime: Stage) -> None:
    heap = stage.heap()

    with fails("DH3", INVALID, 1315):
        heap.get_gpu_descriptor_handle_for_heap_start()
    assert stage.heap(visible=True).get_gpu_descriptor_handle_for_heap_start()
    runtime = runtime.heap()
    assert runtime.get_gpu_descriptor_handle_for_heap_start() == 0


def test_DH4_increment(stage: Stage) -> None:
    sizes = {stage.device.get_descriptor_handle_increment_size(type) for type in DescriptorHeapType}

    assert sizes == {32}


@pytest.mark.parametrize("wrong", [lambda start: start + 1, lambda start: start + 4 * 32, lambda start: 0])
def test_DH4_handles(stage: Stage, wrong: Callable[[int], int]) -> None:
    heap = stage.heap(4)
    start = heap.get_cpu_descriptor_handle_for_heap_start()

    with fails("DH4", INVALID, 646):
        stage.device.create_constant_buffer_view(None, wrong(start))
    stage.device.create_constant_buffer_view(None, start + 3 * 32)


def test_DH4_views_go_into_view_heaps(stage: Stage) -> None:
    heap = stage.heap(type=DescriptorHeapType.SAMPLER)

    with fails("DH4", INVALID, 646):
        stage.device.create_constant_buffer_view(None, heap.get_cpu_descriptor_handle_for_heap_start())


# --- copies ---


class Copies:
    """A CPU heap with numbered null views and a shader-visible one."""

    def __init__(self, stage: Stage) -> None:
        self.device = stage.device
        self.source_heap = stage.heap(8)
        self.target_heap = stage.heap(8, visible=True)
        self.source = self.source_heap.get_cpu_descriptor_handle_for_heap_start()
        self.target = self.target_heap.get_cpu_descriptor_handle_for_heap_start()
        self.buffer = stage.buffer(1024)
        for i in range(8):
            view = UnorderedAccessViewDesc(Format.R32_UINT, buffer=BufferUav(i, 1))
            self.device.create_unordered_access_view(self.buffer, None, view, self.source + 32 * i)

    def seen(self) -> list[int | None]:
        """The number of the source view in each slot of the target."""
        rows = []
        for i in range(8):
            view = self.device.context.gpu.descriptors.read(self.target + 32 * i)
            written = view.kind is not DescriptorKind.UNWRITTEN
            rows.append((view.address - self.buffer.get_gpu_virtual_address()) // 4 if written else None)
        return rows


@pytest.fixture
def copies(stage: Stage) -> Copies:
    return Copies(stage)


def test_DH5_shader_visible_heaps_are_write_only(copies: Copies) -> None:
    with fails("DH5", INVALID, 654):
        copies.device.copy_descriptors_simple(1, copies.source, copies.target, VIEWS)
    with fails("DH5", INVALID, 654):
        copies.device.copy_descriptors([copies.source], None, [copies.target], None, VIEWS)
    copies.device.copy_descriptors_simple(1, copies.target, copies.source, VIEWS)


def test_DH6_simple_copy(copies: Copies) -> None:
    copies.device.copy_descriptors_simple(3, copies.target + 32, copies.source + 64, VIEWS)
    copies.device.copy_descriptors_simple(0, copies.target, copies.source, VIEWS)

    assert copies.seen() == [None, 2, 3, 4, None, None, None, None]


def test_DH6_ranges_of_different_lengths(copies: Copies) -> None:
    target, source = copies.target, copies.source
    copies.device.copy_descriptors(
        [target + 32 * 5, target], [3, 2], [source + 32, source + 32 * 4], [1, 4], VIEWS
    )

    assert copies.seen() == [6, 7, None, None, None, 1, 4, 5]


def test_DH6_no_sizes_means_one_each(copies: Copies) -> None:
    target, source = copies.target, copies.source
    copies.device.copy_descriptors([target, target + 96], None, [source + 32 * 6], [2], VIEWS)

    assert copies.seen() == [6, None, None, 7, None, None, None, None]


@pytest.mark.parametrize(
    "change",
    [
        {"dest_descriptor_range_sizes": [2]},  # 2 into 3
        {"src_descriptor_range_sizes": [2, 1]},  # two sizes, one start
        {"src_descriptor_range_sizes": [9], "dest_descriptor_range_sizes": [9]},  # past the heap
        {"src_descriptor_range_sizes": [-1], "dest_descriptor_range_sizes": [-1]},
        {"descriptor_heaps_type": DescriptorHeapType.SAMPLER},
    ],
)
def test_DH6_bad_ranges(copies: Copies, change: dict[str, Any]) -> None:
    good = {
        "dest_descriptor_range_starts": [copies.target],
        "dest_descriptor_range_sizes": [3],
        "src_descriptor_range_starts": [copies.source],
        "src_descriptor_range_sizes": [3],
        "descriptor_heaps_type": VIEWS,
    }
    with fails("DH6", INVALID, 653):
        copies.device.copy_descriptors(**{**good, **change})
    assert copies.seen() == [None] * 8
    copies.device.copy_descriptors(**good)


def test_DH6_ranges_must_not_overlap(copies: Copies) -> None:
    source = copies.source

    with fails("DH6", INVALID, 653):
        copies.device.copy_descriptors_simple(2, source + 32, source, VIEWS)
    with fails("DH6", INVALID, 653):
        copies.device.copy_descriptors(
            [copies.target, copies.target + 32], [2, 1], [source, source + 64], [2, 1], VIEWS
        )
    copies.device.copy_descriptors_simple(2, source + 64, source, VIEWS)
    # The same source twice is legal.
    copies.device.copy_descriptors([copies.target], [4], [source, source], [2, 2], VIEWS)


@pytest.mark.layer("DESC_HEAP_KIND")
def test_DH6_at_runtime_the_device_goes(runtime: Stage) -> None:
    copies = Copies(runtime)
    copies.device.copy_descriptors_simple(1, copies.source, copies.target, VIEWS)

    assert copies.device.get_device_removed_reason() is INVALID_CALL
    copies.device.copy_descriptors_simple(1, copies.source, copies.target, VIEWS)


@pytest.mark.dmlemu(expect=["DESC_UNINIT"])
def test_DH7_an_unwritten_descriptor_faults_when_used(stage: Stage) -> None:
    visible, host, buffer = stage.heap(visible=True), stage.heap(), stage.buffer()
    view = UnorderedAccessViewDesc(Format.R32_UINT, buffer=BufferUav(0, 4))
    cpu = host.get_cpu_descriptor_handle_for_heap_start()
    stage.device.create_unordered_access_view(buffer, None, view, cpu)
    commands, _ = stage.record()
    commands.set_descriptor_heaps([visible])
    gpu = visible.get_gpu_descriptor_handle_for_heap_start()
    commands.clear_unordered_access_view_uint(gpu, cpu, buffer, (1, 1, 1, 1))

    with pytest.raises(Error) as caught:
        stage.run(commands)
    assert caught.value.report.id == "DESC_UNINIT"


def test_DH8_set_descriptor_heaps(stage: Stage) -> None:
    views, others = stage.heap(visible=True), stage.heap(visible=True)
    samplers = stage.heap(visible=True, type=DescriptorHeapType.SAMPLER)
    hidden = stage.heap()
    commands, _ = stage.record()

    for heaps in ([hidden], [views, others], [views, None]):
        with fails("DH8", INVALID, 554):
            commands.set_descriptor_heaps(heaps)  # type: ignore[arg-type]
    commands.set_descriptor_heaps([views, samplers])
    commands.set_descriptor_heaps([])
    stage.run(commands)


def test_DH9_creation_is_immediate(stage: Stage) -> None:
    """A descriptor written after recording, before submission, is the one used."""
    visible, host, buffer = stage.heap(visible=True), stage.heap(), stage.buffer(64)
    cpu, gpu = (
        host.get_cpu_descriptor_handle_for_heap_start(),
        visible.get_gpu_descriptor_handle_for_heap_start(),
    )
    view = UnorderedAccessViewDesc(Format.R32_UINT, buffer=BufferUav(4, 2))
    stage.device.create_unordered_access_view(buffer, None, view, cpu)
    commands, _ = stage.record()
    commands.set_descriptor_heaps([visible])
    commands.clear_unordered_access_view_uint(gpu, cpu, buffer, (9, 0, 0, 0))
    commands.close()
    start = visible.get_cpu_descriptor_handle_for_heap_start()
    stage.device.copy_descriptors_simple(1, start, cpu, VIEWS)
    stage.run(commands)

    assert stage.read(buffer).view("u4").tolist() == [0] * 4 + [9, 9] + [0] * 10


# --- views ---


def uav(
    format: Format, first: int, count: int, stride: int = 0, flags: BufferUavFlags = BufferUavFlags.NONE
) -> UnorderedAccessViewDesc:
    return UnorderedAccessViewDesc(format, buffer=BufferUav(first, count, stride, 0, flags))


def srv(
    format: Format, first: int, count: int, stride: int = 0, flags: BufferUavFlags = BufferUavFlags.NONE
) -> ShaderResourceViewDesc:
    return ShaderResourceViewDesc(format, buffer=BufferSrv(first, count, stride, BufferSrvFlags(int(flags))))


class Views:
    """Creates both kinds of view into one slot and reads it back."""

    def __init__(self, stage: Stage) -> None:
        self.device: Device = stage.device
        self.buffer = stage.buffer(4096)
        self.heap = stage.heap()
        self.slot = self.heap.get_cpu_descriptor_handle_for_heap_start()

    def make(self, kind: str, *view: Any, resource: Resource | None = None) -> Descriptor:
        resource = resource or self.buffer
        if kind == "uav":
            self.device.create_unordered_access_view(resource, None, uav(*view), self.slot)
        else:
            self.device.create_shader_resource_view(resource, srv(*view), self.slot)
        return self.device.context.gpu.descriptors.read(self.slot)


@pytest.fixture
def views(stage: Stage) -> Views:
    return Views(stage)


KINDS = pytest.mark.parametrize("kind", ["uav", "srv"])
UNKNOWN, TYPELESS, UINT32 = Format.UNKNOWN, Format.R32_TYPELESS, Format.R32_UINT


@pytest.mark.parametrize(
    "address, size, message_id",
    [
        (1, 256, 650),
        (128, 256, 650),
        (0, 100, 650),
        (0, 65536 + 256, 650),
        (0, -256, 650),
        (4096, 256, 649),
        (3840, 512, 649),
    ],
)
def test_VW1_constant_buffers(views: Views, address: int, size: int, message_id: int) -> None:
    base = views.buffer.get_gpu_virtual_address()

    with fails("VW1", INVALID, message_id):
        views.device.create_constant_buffer_view(ConstantBufferViewDesc(base + address, size), views.slot)
    views.device.create_constant_buffer_view(ConstantBufferViewDesc(base + 256, 512), views.slot)
    view = views.device.context.gpu.descriptors.read(views.slot)
    assert (view.kind, view.address, view.size) == (DescriptorKind.CBV, base + 256, 512)


def test_VW1_null_constant_buffer(views: Views) -> None:
    for desc in (None, ConstantBufferViewDesc(12345, 0)):
        views.device.create_constant_buffer_view(desc, views.slot)
        assert views.device.context.gpu.descriptors.read(views.slot).address == 0


@KINDS
@pytest.mark.parametrize(
    "view, message_ids",
    [
        ((UINT32, 0, 4, 0, RAW), (342, 28)),
        ((UNKNOWN, 0, 4, 0, RAW), (342, 28)),
        ((TYPELESS, 0, 4, 4, RAW), (341, 27)),
        ((TYPELESS, 1, 4, 0, RAW), (345, 31)),
        ((TYPELESS, 6, 4, 0, RAW), (345, 31)),
        ((TYPELESS, 0, 4, 0, 2), (354, 27)),
    ],
)
def test_VW2_raw(views: Views, kind: str, view: tuple[Any, ...], message_ids: tuple[int, int]) -> None:
    with fails("VW2", INVALID, message_ids[kind == "srv"]):
        views.make(kind, *view)
    made = views.make(kind, TYPELESS, 8, 16, 0, RAW)
    assert (made.address - views.buffer.get_gpu_virtual_address(), made.size, made.flags) == (32, 64, 1)


@KINDS
@pytest.mark.parametrize("stride", [0, 1, 7, 2050, -4])
def test_VW3_structured(views: Views, kind: str, stride: int) -> None:
    with fails("VW3", INVALID, 341 if kind == "uav" else 27):
        views.make(kind, UNKNOWN, 0, 1, stride)
    assert views.make(kind, UNKNOWN, 0, 3, 6).size == 18  # half3
    made = views.make(kind, UNKNOWN, 3, 5, 12)
    assert (made.address - views.buffer.get_gpu_virtual_address(), made.size, made.stride) == (36, 60, 12)


@KINDS
@pytest.mark.parametrize("format", [TYPELESS, Format.D32_FLOAT, Format.BC1_UNORM, Format.NV12, 250])
def test_VW4_formats_of_typed_views(views: Views, kind: str, format: Format) -> None:
    with fails("VW4", INVALID, 342 if kind == "uav" else 28):
        views.make(kind, format, 0, 1)


@KINDS
@pytest.mark.parametrize(
    "format, size",
    [
        (Format.R32_UINT, 4),
        (Format.R16_FLOAT, 2),
        (Format.R8_SINT, 1),
        (Format.R32G32B32A32_FLOAT, 16),
        (Format.R8G8B8A8_UNORM, 4),
        (Format.R10G10B10A2_UINT, 4),
    ],
)
def test_VW4_typed(views: Views, kind: str, format: Format, size: int) -> None:
    with fails("VW4", INVALID, 341 if kind == "uav" else 27):
        views.make(kind, format, 0, 1, 4)
    made = views.make(kind, format, 3, 5)
    start = made.address - views.buffer.get_gpu_virtual_address()
    assert (start, made.size, made.format) == (3 * size, 5 * size, format)


def test_VW5_uav_needs_the_flag(stage: Stage, views: Views) -> None:
    plain = stage.buffer(flags=ResourceFlags.NONE)

    with fails("VW5", INVALID, 340):
        views.make("uav", UINT32, 0, 1, resource=plain)
    views.make("srv", UINT32, 0, 1, resource=plain)
    views.make("srv", UINT32, 0, 1, resource=stage.buffer(heap=HeapType.UPLOAD))


@KINDS
@pytest.mark.parametrize("view", [(UINT32, 0, 1025), (UINT32, 1024, 1), (UINT32, 0, 0), (UINT32, -1, 2)])
def test_VW6_extent(views: Views, kind: str, view: tuple[Any, ...]) -> None:
    with fails("VW6", INVALID, 345 if kind == "uav" else 31):
        views.make(kind, *view)
    views.make(kind, UINT32, 1023, 1)


def test_VW7_no_description(views: Views) -> None:
    device, slot = views.device, views.slot
    for resource in (None, views.buffer):
        with fails("VW7", INVALID, 341):
            device.create_unordered_access_view(resource, None, None, slot)
        with fails("VW7", INVALID, 27):
            device.create_shader_resource_view(resource, None, slot)


def test_VW7_dimension(views: Views) -> None:
    device, slot = views.device, views.slot
    with fails("VW7", INVALID, 341):
        bad = UnorderedAccessViewDesc(UINT32, UavDimension.UNKNOWN, BufferUav(0, 1))
        device.create_unordered_access_view(views.buffer, None, bad, slot)
    with fails("VW7", INVALID, 27):
        device.create_shader_resource_view(
            views.buffer, ShaderResourceViewDesc(UINT32, SrvDimension.UNKNOWN, buffer=BufferSrv(0, 1)), slot
        )
    with pytest.raises(Error, match="TEXTURE2D is not emulated"):
        texture = UnorderedAccessViewDesc(UINT32, UavDimension.TEXTURE2D)
        device.create_unordered_access_view(None, None, texture, slot)


@pytest.mark.parametrize(
    "buffer",
    [
        BufferUav(0, 1, 0, 0, RAW),
        BufferUav(0, 1, 4, 2),
        BufferUav(0, 1, 4, 256),
        BufferUav(0, 1, 4, -4),
    ],
)
def test_VW8_counters(stage: Stage, views: Views, buffer: BufferUav) -> None:
    counter = stage.buffer(256)
    format = TYPELESS if buffer.flags else UNKNOWN

    with fails("VW8", INVALID, 652):
        views.device.create_unordered_access_view(
            views.buffer, counter, UnorderedAccessViewDesc(format, buffer=buffer), views.slot
        )
    good = UnorderedAccessViewDesc(UNKNOWN, buffer=BufferUav(0, 1, 4, 128))
    views.device.create_unordered_access_view(views.buffer, counter, good, views.slot)
    made = views.device.context.gpu.descriptors.read(views.slot)
    assert made.counter_address == counter.get_gpu_virtual_address() + 128


def test_VW8_offset_without_counter(views: Views) -> None:
    with fails("VW8", INVALID, 652):
        view = UnorderedAccessViewDesc(UNKNOWN, buffer=BufferUav(0, 1, 4, 4))
        views.device.create_unordered_access_view(views.buffer, None, view, views.slot)


@KINDS
def test_VW9_null_views(views: Views, kind: str) -> None:
    if kind == "uav":
        views.device.create_unordered_access_view(None, None, uav(UINT32, 0, 4), views.slot)
    else:
        views.device.create_shader_resource_view(None, srv(UINT32, 0, 4), views.slot)
    made = views.device.context.gpu.descriptors.read(views.slot)

    assert made.address == 0 and made.kind.name == kind.upper()


@pytest.mark.parametrize("strictness", [Strictness.DEBUG, Strictness.STRICT])
def test_VW_bad_views_raise_and_change_nothing(strictness: Strictness) -> None:
    views = Views(Stage(strictness))
    before = views.make("uav", UINT32, 0, 4)
    with fails("VW6", INVALID, 345):
        views.make("uav", UINT32, 0, 9999)

    assert views.device.context.gpu.descriptors.read(views.slot) == before
    assert views.device.get_device_removed_reason() is HResult.S_OK


@pytest.mark.layer("RES_VIEW")
def test_VW_bad_views_remove_a_runtime_device(runtime: Stage) -> None:
    views = Views(runtime)
    views.make("uav", UINT32, 0, 9999)

    assert views.device.get_device_removed_reason() is INVALID_CALL
    before = views.device.context.gpu.descriptors.read(views.slot)
    views.make("uav", UINT32, 0, 4)  # a void method on a removed device does nothing
    assert views.device.context.gpu.descriptors.read(views.slot) == before
