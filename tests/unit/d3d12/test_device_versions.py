"""The numbered forms of the device's methods, settings without effect, and NULL where C takes a pointer."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import numpy as np
import pytest

from dmlemu import Error, HResult, Strictness, d3d12
from dmlemu.d3d12 import (
    BARRIER_LAYOUT_UNDEFINED,
    BackgroundProcessingMode,
    CommandQueueDesc,
    Feature,
    FeatureLevel,
    HeapDesc,
    HeapFlags,
    HeapProperties,
    HeapType,
    MeasurementsAction,
    MipRegion,
    ResidencyFlags,
    Resource,
    ResourceDesc,
    ResourceDesc1,
    SegmentGroup,
    ShaderCacheControlFlags,
    ShaderCacheKindFlags,
)
from dmlemu.d3d12.memory.resource import HostAccessed
from dmlemu.testing import faults

from .stage import COMPUTE, INVALID, REMOVED, STATE, UAV, Stage, check_message, fails

PLAIN = ResourceDesc.buffer(65536, UAV)
NEWER = ResourceDesc1.buffer(65536, UAV)
WITH_REGION = ResourceDesc1(
    *(getattr(PLAIN, name) for name in PLAIN.__dataclass_fields__), MipRegion(4, 4, 1)
)
DEFAULT = HeapProperties(HeapType.DEFAULT)

Creator = Callable[[Stage], Resource]

CREATORS: dict[str, Creator] = {
    "committed1": lambda s: s.device.create_committed_resource1(DEFAULT, HeapFlags.NONE, PLAIN, STATE.COMMON),
    "committed2": lambda s: s.device.create_committed_resource2(DEFAULT, HeapFlags.NONE, NEWER, STATE.COMMON),
    "committed3": lambda s: s.device.create_committed_resource3(DEFAULT, HeapFlags.NONE, NEWER),
    "placed1": lambda s: s.device.create_placed_resource1(_heap(s), 0, NEWER, STATE.COMMON),
    "placed2": lambda s: s.device.create_placed_resource2(_heap(s), 0, NEWER),
    "reserved1": lambda s: s.device.create_reserved_resource1(PLAIN, STATE.COMMON),
    "reserved2": lambda s: s.device.create_reserved_resource2(PLAIN),
}


@contextmanager
def wrong_argument() -> Iterator[None]:
    with pytest.raises(Error) as raised:
        yield
    assert (raised.value.report.id, raised.value.hresult) == ("ARGUMENT_RANGE", HResult.E_INVALIDARG)
    check_message(raised.value)


def _heap(stage: Stage) -> d3d12.Heap:
    return stage.device.create_heap1(HeapDesc(65536))


@pytest.mark.parametrize("create", CREATORS.values(), ids=CREATORS)
def test_numbered_create_methods_make_what_the_plain_ones_make(stage: Stage, create: Creator) -> None:
    buffer = create(stage)
    plain = stage.device.create_committed_resource(DEFAULT, HeapFlags.NONE, PLAIN, STATE.COMMON).get_desc()
    assert buffer.get_desc() == plain and type(buffer.get_desc()) is ResourceDesc
    assert buffer.get_desc1().sampler_feedback_mip_region == MipRegion()
    assert buffer.get_desc1().width == 65536
    assert buffer.get_gpu_virtual_address()


@pytest.mark.dmlemu(expect=["RES_DESC"])
def test_RB1_a_buffer_has_no_sampler_feedback_region(stage: Stage) -> None:
    device = stage.device
    with fails("RB1"):
        device.create_committed_resource2(DEFAULT, HeapFlags.NONE, WITH_REGION, STATE.COMMON)
    with fails("RB1"):
        device.create_committed_resource3(DEFAULT, HeapFlags.NONE, WITH_REGION)
    with fails("RB1"):
        device.create_placed_resource1(_heap(stage), 0, WITH_REGION, STATE.COMMON)
    info, places = device.get_resource_allocation_info2(0, [NEWER, WITH_REGION])
    assert info.size_in_bytes == d3d12.UINT64_MAX and places == ()


def test_layouts_and_castable_formats_are_for_textures(stage: Stage) -> None:
    device = stage.device
    for layout, formats in ((0, ()), (BARRIER_LAYOUT_UNDEFINED, (d3d12.Format.R32_UINT,))):
        with wrong_argument():
            device.create_committed_resource3(
                DEFAULT, HeapFlags.NONE, NEWER, layout, castable_formats=formats
            )
        with wrong_argument():
            device.create_placed_resource2(_heap(stage), 0, NEWER, layout, castable_formats=formats)
        with wrong_argument():
            device.create_reserved_resource2(PLAIN, layout, castable_formats=formats)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: d.create_heap1(HeapDesc(65536), object()),
        lambda d: d.create_committed_resource1(
            DEFAULT, HeapFlags.NONE, PLAIN, STATE.COMMON, protected_session=1
        ),
        lambda d: d.create_committed_resource2(
            DEFAULT, HeapFlags.NONE, NEWER, STATE.COMMON, protected_session=1
        ),
        lambda d: d.create_reserved_resource1(PLAIN, STATE.COMMON, protected_session=1),
        lambda d: d.open_existing_heap_from_address(4096),
        lambda d: d.open_existing_heap_from_address1(4096, 65536),
        lambda d: d.open_existing_heap_from_file_mapping(3),
    ],
)
def test_protected_sessions_and_foreign_memory_are_refused_by_name(
    stage: Stage, call: Callable[[d3d12.Device], object]
) -> None:
    with pytest.raises(Error, match="is not emulated") as raised:
        call(stage.device)
    assert raised.value.hresult is HResult.E_NOTIMPL


def test_AI1_places_of_several_buffers(stage: Stage) -> None:
    small, large = ResourceDesc.buffer(5), ResourceDesc.buffer(65537)
    info, places = stage.device.get_resource_allocation_info1(0, [small, large, small])
    assert info == stage.device.get_resource_allocation_info(0, [small, large, small])
    assert [(each.offset, each.size_in_bytes) for each in places] == [
        (0, 65536),
        (65536, 131072),
        (196608, 65536),
    ]
    assert info.size_in_bytes == 262144
    newer = [ResourceDesc1.buffer(5), ResourceDesc1.buffer(65537), ResourceDesc1.buffer(5)]
    assert stage.device.get_resource_allocation_info3(0, newer, [(), (), ()]) == (info, places)


def test_CF1_of_a_newer_desc(stage: Stage) -> None:
    assert stage.device.get_copyable_footprints1(NEWER) == stage.device.get_copyable_footprints(PLAIN)


def test_CL_a_queue_with_a_creator(stage: Stage) -> None:
    queue = stage.device.create_command_queue1(CommandQueueDesc(COMPUTE), UUID(int=7))
    assert queue.get_desc().type == COMPUTE


# --- residency ---


def test_RD1_residency_priorities_change_nothing(stage: Stage) -> None:
    buffer = stage.buffer()
    stage.device.set_residency_priority(iter([buffer]), [0x28000000])  # type: ignore[arg-type]
    with wrong_argument():
        stage.device.set_residency_priority([buffer], [])
    with fails("OB3"):
        stage.device.set_residency_priority([Stage().buffer()], [0])


def test_RD1_enqueue_make_resident_signals(stage: Stage) -> None:
    heap = stage.device.create_heap(HeapDesc(65536, flags=HeapFlags.CREATE_NOT_RESIDENT))
    stage.device.enqueue_make_resident(ResidencyFlags.NONE, [heap], stage.fence, 5)
    assert stage.fence.get_completed_value() == 5
    stage.device.evict([heap])
    with wrong_argument():
        stage.device.enqueue_make_resident(4, [heap], stage.fence, 6)  # type: ignore[arg-type]
    with fails("OB3"):
        stage.device.enqueue_make_resident(ResidencyFlags.NONE, [heap], None, 6)  # type: ignore[arg-type]
    assert stage.fence.get_completed_value() == 5


# --- settings ---


def test_settings_without_effect(stage: Stage) -> None:
    device = stage.device
    device.set_stable_power_state(True)
    device.shader_cache_control(ShaderCacheKindFlags.IMPLICIT_DRIVER_MANAGED, ShaderCacheControlFlags.DISABLE)
    with wrong_argument():
        device.shader_cache_control(16, ShaderCacheControlFlags.CLEAR)  # type: ignore[arg-type]
    with wrong_argument():
        device.shader_cache_control(ShaderCacheKindFlags.APPLICATION_MANAGED, 3)  # type: ignore[arg-type]


def test_background_processing_sets_its_event(stage: Stage) -> None:
    mode, action = BackgroundProcessingMode.ALLOWED, MeasurementsAction.COMMIT_RESULTS
    event = threading.Event()
    assert stage.device.set_background_processing_mode(mode, action, event) is False
    assert event.is_set()
    descriptor = os.eventfd(0)
    stage.device.set_background_processing_mode(mode, action, descriptor)
    assert os.eventfd_read(descriptor) == 1
    os.close(descriptor)
    with fails("FN8", HResult.E_HANDLE):
        stage.device.set_background_processing_mode(mode, action, descriptor)
    with wrong_argument():
        stage.device.set_background_processing_mode(9, action)  # type: ignore[arg-type]


# --- NULL, where C takes a pointer ---


def test_ST10_no_array_of_barriers(stage: Stage) -> None:
    commands, _ = stage.record()
    with fails("ST10", message_id=520):
        commands.resource_barrier(None)  # type: ignore[arg-type]
    stage.run(commands)


def test_Q1_no_desc(stage: Stage) -> None:
    with fails("Q1"):
        stage.device.create_command_queue(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("feature", [Feature.ARCHITECTURE, Feature.D3D12_OPTIONS])
def test_DEV8_no_struct(stage: Stage, feature: Feature) -> None:
    with fails("DEV8"):
        stage.device.check_feature_support(feature, None)


def test_DEV10_levels_of_compute_devices(stage: Stage) -> None:
    """Clients that also run on compute-only adapters ask for these, too."""
    levels = (FeatureLevel.LEVEL_1_0_GENERIC, FeatureLevel.LEVEL_1_0_CORE)
    both = (*levels, FeatureLevel.LEVEL_11_0)
    ask = stage.device.check_feature_support
    for asked, highest in ((levels, levels[1]), (both, both[2])):
        answer = ask(Feature.FEATURE_LEVELS, d3d12.FeatureDataFeatureLevels(asked))
        assert answer.max_supported_feature_level == highest
    assert [int(each) for each in levels] == [0x100, 0x1000]


# --- memory ---


def test_MP4_the_address_of_mapped_memory(stage: Stage) -> None:
    buffer = stage.upload(np.arange(4, dtype=np.uint32))
    seen: list[object] = []
    with buffer.map() as mapped, stage.device.events.subscribe(seen.append, HostAccessed):
        numbers = (ctypes.c_uint32 * 4).from_address(mapped.address)
        assert seen == [HostAccessed(buffer, 0, 16, reads=True, writes=True)]  # the checks are told
        assert list(numbers) == [0, 1, 2, 3]
        numbers[0] = 9
    assert stage.read(buffer)[0] == 9
    with fails("MP4"):
        _ = mapped.address


def test_DEV1_memory_budget_by_segment_group() -> None:
    adapter = Stage(memory=10 << 20).adapter
    assert adapter.query_memory_budget(SegmentGroup.LOCAL) == adapter.query_memory_budget()
    outside = adapter.query_memory_budget(SegmentGroup.NON_LOCAL)
    assert (outside.budget, outside.current_usage) == (adapter.shared_system_memory, 0)
    with pytest.raises(Error, match="segmentGroup \\(2\\)"):
        adapter.query_memory_budget(2)  # type: ignore[arg-type]


# --- ID3D12Device15, ID3D12DeviceConfiguration, ID3DDestructionNotifier ---


@pytest.mark.parametrize("strictness", Strictness)
def test_VW_views_that_say_what_is_wrong(strictness: Strictness) -> None:
    """At every strictness, and the device stays."""
    stage = Stage(strictness, raises=False)
    device, heap, buffer = stage.device, stage.heap(), stage.buffer(1024)
    handle = heap.get_cpu_descriptor_handle_for_heap_start()
    wrong = d3d12.UnorderedAccessViewDesc(d3d12.Format.R32_UINT, buffer=d3d12.BufferUav(0, 999))
    with pytest.raises(Error) as refused:
        device.try_create_unordered_access_view(buffer, None, wrong, handle)
    assert refused.value.hresult is INVALID
    with pytest.raises(Error):
        device.try_create_constant_buffer_view(d3d12.ConstantBufferViewDesc(1, 256), handle)
    with pytest.raises(Error):
        device.try_create_shader_resource_view(None, None, handle)
    assert device.get_device_removed_reason() is HResult.S_OK
    right = d3d12.UnorderedAccessViewDesc(d3d12.Format.R32_UINT, buffer=d3d12.BufferUav(0, 4))
    device.try_create_unordered_access_view(buffer, None, right, handle)
    device.create_unordered_access_view(buffer, None, right, handle + 32)
    descriptors = device.context.gpu.descriptors
    assert descriptors.read(handle) == descriptors.read(handle + 32)


def test_RM_views_of_a_removed_device(stage: Stage) -> None:
    handle = stage.heap().get_cpu_descriptor_handle_for_heap_start()
    stage.device.remove_device()
    with pytest.raises(Error) as refused:
        stage.device.try_create_constant_buffer_view(None, handle)
    assert refused.value.hresult is REMOVED


def test_QY1_a_query_heap_with_flags(stage: Stage) -> None:
    desc, flags = d3d12.QueryHeapDesc(d3d12.QueryHeapType.TIMESTAMP, 2), d3d12.QueryHeapFlags
    assert isinstance(stage.device.create_query_heap1(desc, flags.NONE), d3d12.QueryHeap)
    with wrong_argument():
        stage.device.create_query_heap1(desc, 2)  # type: ignore[arg-type]
    for call in (
        lambda: stage.device.create_query_heap1(desc, flags.CPU_RESOLVE),
        lambda: stage.device.resolve_query_data(),
        lambda: stage.device.create_shared_handle(),
    ):
        with pytest.raises(Error) as refused:
            call()
        assert refused.value.hresult is HResult.E_NOTIMPL


def test_trim_notifications_have_cookies(stage: Stage) -> None:
    first, second = (stage.device.register_trim_notification_callback(print) for _ in range(2))
    assert first != second
    stage.device.unregister_trim_notification_callback(first)
    with wrong_argument():
        stage.device.unregister_trim_notification_callback(first)
    with pytest.raises(TypeError, match="pfnCallback"):
        stage.device.register_trim_notification_callback(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "strictness, flags", [(Strictness.RUNTIME, 0), (Strictness.DEBUG, 1), (Strictness.STRICT, 3)]
)
def test_DEV_how_a_device_was_made(strictness: Strictness, flags: int) -> None:
    desc = Stage(strictness).device.get_configuration_desc()
    assert desc == d3d12.DeviceConfigurationDesc(d3d12.DeviceFlags(flags), 0, d3d12.SDK_VERSION, 0)


def test_callbacks_of_a_released_object(stage: Stage) -> None:
    buffer, said = stage.buffer(), list[str]()
    buffer.register_destruction_callback(said.append, "first")
    second = buffer.register_destruction_callback(said.append, "second")
    buffer.register_destruction_callback(said.append, "third")
    buffer.unregister_destruction_callback(second)
    with wrong_argument():
        buffer.unregister_destruction_callback(second)
    assert said == []
    buffer.release()
    assert said == ["first", "third"]
    buffer.release()
    assert said == ["first", "third"]


def test_callbacks_of_an_object_that_is_collected() -> None:
    said = list[str]()
    stage = Stage()
    buffer = stage.buffer()
    buffer.register_destruction_callback(said.append, "buffer")
    stage.device.register_destruction_callback(said.append, "device")
    del buffer
    gc.collect()
    assert said == ["buffer"]
    del stage
    gc.collect()
    assert said == ["buffer", "device"]


def test_a_device_is_destroyed_with_its_last_reference() -> None:
    adapter, said = d3d12.Adapter(), list[str]()
    device = d3d12.create_device(adapter)
    assert d3d12.create_device(adapter) is device
    device.register_destruction_callback(said.append, "device")
    device.release()
    assert said == []
    device.release()
    assert said == ["device"]


def test_HP5_shared_heaps(stage: Stage) -> None:
    """They can be made; a handle of one is refused by name."""
    heap = stage.device.create_heap(d3d12.HeapDesc(65536, flags=HeapFlags.SHARED))
    assert heap.get_desc().flags == HeapFlags.SHARED
    buffer = stage.device.create_committed_resource(DEFAULT, HeapFlags.SHARED, PLAIN, STATE.COMMON)
    assert buffer.get_heap_properties()[1] == HeapFlags.SHARED
    with pytest.raises(Error, match="CreateSharedHandle is not emulated"):
        stage.device.create_shared_handle(buffer, None, 0, None)
    with pytest.raises(Error, match="SHARED_CROSS_ADAPTER is not emulated"):
        stage.device.create_heap(d3d12.HeapDesc(65536, flags=HeapFlags.SHARED_CROSS_ADAPTER))


def test_DEV1_events_of_budget_changes(stage: Stage) -> None:
    event, adapter = threading.Event(), stage.adapter
    register = adapter.register_video_memory_budget_change_notification_event
    cookie = register(event)
    assert not event.is_set()
    with faults.memory_budget(stage.device, 1 << 20):
        assert event.is_set() and adapter.query_memory_budget().budget == 1 << 20
        event.clear()
    assert event.is_set()
    event.clear()
    adapter.unregister_video_memory_budget_change_notification(cookie)
    with faults.memory_budget(stage.device, 1 << 20):
        assert not event.is_set()
    with pytest.raises(Error, match="dwCookie"):
        adapter.unregister_video_memory_budget_change_notification(cookie)
    with pytest.raises(Error) as refused:
        register(-1)
    assert refused.value.hresult is HResult.E_HANDLE
