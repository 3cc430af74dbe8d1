"""The device: rules DEV1 to DEV11, RM1 to RM3 (removal), RD1 and RD2 (residency), OB1 to OB3 (objects)."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import dmlemu
from dmlemu import Error, HResult, Report, Severity, Strictness, d3d12
from dmlemu.d3d12 import (
    Adapter,
    CommandListType,
    DescriptorHeapDesc,
    Feature,
    FeatureLevel,
    HeapDesc,
    HeapFlags,
    HeapProperties,
    HeapType,
    QueryHeapDesc,
    ResourceDesc,
    create_adapter_list,
    create_device,
)

from .stage import DIRECT, INVALID, REMOVED, STATE, Stage, fails, remarks

LEVEL = FeatureLevel


# --- adapters ---


def test_DEV1_the_default_adapter() -> None:
    (adapter,) = create_adapter_list()

    assert create_adapter_list()[0] is adapter
    device = create_device()
    assert device.get_adapter_luid() == adapter.instance_luid
    device.release()


def test_DEV1_adapter_properties() -> None:
    adapter = Adapter("GPU under test", 123 << 20)

    assert adapter.driver_description == "GPU under test"
    assert adapter.is_hardware and not adapter.is_integrated and adapter.is_valid()
    assert (adapter.hardware_id.vendor_id, adapter.hardware_id.device_id) != (0x1414, 0x8C)
    assert adapter.dedicated_adapter_memory == 123 << 20
    assert adapter.driver_version > 0
    assert adapter.instance_luid != Adapter().instance_luid


def test_DEV1_memory_budget() -> None:
    stage = Stage(memory=10 << 20)
    budget = stage.adapter.query_memory_budget()
    assert budget.budget == 10 << 20
    with stage.buffer(1 << 20):
        assert stage.adapter.query_memory_budget().current_usage == budget.current_usage + (1 << 20)
    assert stage.adapter.query_memory_budget() == budget
    assert Adapter().query_memory_budget().current_usage == 0


@pytest.mark.parametrize(
    "level", [0, 0xFFFFFFFF, LEVEL.LEVEL_9_1, LEVEL.LEVEL_10_0, LEVEL.LEVEL_10_1, 0xB050]
)
def test_DEV3_levels_that_are_none(level: FeatureLevel) -> None:
    with fails("DEV3"):
        create_device(Adapter(), level)


@pytest.mark.parametrize("level", [LEVEL.LEVEL_12_1, LEVEL.LEVEL_12_2])
def test_DEV4_levels_out_of_reach(level: FeatureLevel) -> None:
    with fails("DEV4", HResult.DXGI_ERROR_UNSUPPORTED):
        create_device(Adapter(), level)


@pytest.mark.parametrize(
    "level",
    [LEVEL.LEVEL_1_0_CORE, LEVEL.LEVEL_1_0_GENERIC, LEVEL.LEVEL_11_0, LEVEL.LEVEL_11_1, LEVEL.LEVEL_12_0],
)
def test_DEV4_levels_within_reach(level: FeatureLevel) -> None:
    adapter = Adapter()

    assert adapter.is_feature_level_supported(level)
    create_device(adapter, level)


def test_DEV5_one_device_per_adapter() -> None:
    adapter = Adapter()
    device = create_device(adapter)

    assert create_device(adapter, strictness=Strictness.STRICT) is device
    assert create_device(Adapter()) is not device


def test_DEV5_the_last_release_ends_it() -> None:
    adapter = Adapter()
    device = create_device(adapter)
    again = create_device(adapter)
    again.release()
    assert create_device(adapter) is device
    device.release()
    device.release()
    device.release()
    with pytest.raises(Error, match="has been released"):
        device.create_fence()
    assert create_device(adapter) is not device


def test_DEV5_children_keep_it_alive() -> None:
    adapter = Adapter()
    with create_device(adapter) as device:
        fence = device.create_fence(3)
    assert fence.get_completed_value() == 3
    assert create_device(adapter) is device
    device.release()
    fence.release()
    assert create_device(adapter) is not device


def test_DEV5_garbage_ends_it_too() -> None:
    adapter = Adapter()
    device = create_device(adapter)
    fence = device.create_fence()
    serial = id(device)
    del device
    assert id(create_device(adapter)) == serial
    del fence
    gc.collect()
    assert adapter.device is None


def test_DEV6_a_core_device_is_a_full_device() -> None:
    device = create_device(Adapter(), LEVEL.LEVEL_1_0_CORE)

    device.create_command_allocator(DIRECT)
    device.create_reserved_resource(ResourceDesc.buffer(65536), STATE.COMMON)


@pytest.mark.parametrize("first", [None, True, False])
def test_DEV7_what_follows_is_the_living_devices(first: bool | None) -> None:
    adapter = Adapter()
    device = create_device(adapter, raises=first)
    assert create_device(adapter) is device
    assert create_device(adapter, raises=first is not False) is device
    with fails("DEV7"):
        create_device(adapter, raises=first is False)


def test_DEV7_strictness_of_a_living_device() -> None:
    adapter = Adapter()
    device = create_device(adapter, strictness=Strictness.DEBUG)

    with fails("DEV7"):
        create_device(adapter, strictness=Strictness.STRICT)
    assert create_device(adapter) is device
    assert device.get_device_removed_reason() is HResult.S_OK


# --- features ---


def test_DEV8_struct_of_another_feature(stage: Stage) -> None:
    with fails("DEV8"):
        stage.device.check_feature_support(Feature.D3D12_OPTIONS, d3d12.FeatureDataArchitecture())
    with fails("DEV8"):
        stage.device.check_feature_support(Feature.FEATURE_LEVELS, b"")


@pytest.mark.parametrize("version", [0, 4])
def test_DEV8_root_signature_versions_that_are_none(stage: Stage, version: int) -> None:
    def highest(version: Any) -> Any:
        data = d3d12.FeatureDataRootSignature(version)
        return stage.device.check_feature_support(Feature.ROOT_SIGNATURE, data).highest_version

    with fails("DEV8"):
        highest(version)
    assert highest(d3d12.RootSignatureVersion.VERSION_1_0) == d3d12.RootSignatureVersion.VERSION_1_0


def test_DEV9_number_of_protected_session_types(stage: Stage) -> None:
    feature, data = Feature.PROTECTED_RESOURCE_SESSION_TYPES, d3d12.FeatureDataProtectedResourceSessionTypes

    with fails("DEV9"):
        stage.device.check_feature_support(feature, data(count=1))
    assert stage.device.check_feature_support(feature, data()).count == 0


def test_DEV9_inputs(stage: Stage) -> None:
    query = stage.device.check_feature_support

    with fails("DEV9"):
        query(Feature.FEATURE_LEVELS)
    with fails("DEV9"):
        query(Feature.ARCHITECTURE, d3d12.FeatureDataArchitecture(1))
    with fails("DEV9"):
        query(Feature.ARCHITECTURE1, d3d12.FeatureDataArchitecture1(1))


def test_DEV10_highest_listed_level(stage: Stage) -> None:
    def highest(*levels: FeatureLevel) -> Any:
        data = d3d12.FeatureDataFeatureLevels(levels)
        return stage.device.check_feature_support(Feature.FEATURE_LEVELS, data).max_supported_feature_level

    assert highest(LEVEL.LEVEL_11_0, LEVEL.LEVEL_12_2, LEVEL.LEVEL_11_1) == LEVEL.LEVEL_11_1
    assert highest(LEVEL.LEVEL_1_0_CORE) == LEVEL.LEVEL_1_0_CORE
    with fails("DEV10"):
        highest(LEVEL.LEVEL_12_2)


@pytest.mark.parametrize("feature", [9, 999, -1])
def test_DEV11_unknown_features(stage: Stage, feature: Feature) -> None:
    with fails("DEV11"):
        stage.device.check_feature_support(feature)


def test_DEV11_features_not_emulated(stage: Stage) -> None:
    with pytest.raises(Error, match="HARDWARE_COPY is not emulated"):
        stage.device.check_feature_support(Feature.HARDWARE_COPY)


def test_caps_that_clients_branch_on(stage: Stage) -> None:
    query = stage.device.check_feature_support
    options = query(Feature.D3D12_OPTIONS)

    assert options.tiled_resources_tier == d3d12.TiledResourcesTier.TIER_2
    assert options.resource_heap_tier == d3d12.ResourceHeapTier.TIER_2
    assert options.resource_binding_tier == d3d12.ResourceBindingTier.TIER_3
    assert not query(Feature.ARCHITECTURE).cache_coherent_uma
    assert query(Feature.ARCHITECTURE1).isolated_mmu
    assert query(Feature.GPU_VIRTUAL_ADDRESS_SUPPORT).max_gpu_virtual_address_bits_per_process == 47
    assert not query(Feature.D3D12_OPTIONS12).enhanced_barriers_supported
    assert query(Feature.D3D12_OPTIONS16).gpu_upload_heap_supported
    assert query(Feature.D3D12_OPTIONS3).copy_queue_timestamp_queries_supported
    for feature in (Feature.D3D12_OPTIONS1, Feature.D3D12_OPTIONS2, Feature.D3D12_OPTIONS4):
        query(feature)
    assert not query(Feature.EXISTING_HEAPS).supported
    assert query(Feature.D3D12_TIGHT_ALIGNMENT).support_tier == 0


def test_caps_with_inputs(stage: Stage) -> None:
    query = stage.device.check_feature_support
    shader = d3d12.FeatureDataShaderModel(d3d12.ShaderModel.MODEL_6_9)

    assert query(Feature.SHADER_MODEL, shader).highest_shader_model == d3d12.ShaderModel.MODEL_6_6
    shader = d3d12.FeatureDataShaderModel(d3d12.ShaderModel.MODEL_5_1)
    assert query(Feature.SHADER_MODEL, shader).highest_shader_model == d3d12.ShaderModel.MODEL_5_1
    with fails("DEV8"):
        query(Feature.SHADER_MODEL, d3d12.FeatureDataShaderModel(0x33))  # type: ignore[arg-type]
    root = d3d12.FeatureDataRootSignature(d3d12.RootSignatureVersion.VERSION_1_2)
    assert query(Feature.ROOT_SIGNATURE, root).highest_version == d3d12.RootSignatureVersion.VERSION_1_1
    priority = d3d12.FeatureDataCommandQueuePriority(DIRECT, 100)
    assert query(Feature.COMMAND_QUEUE_PRIORITY, priority).priority_for_type_is_supported
    assert query(Feature.FORMAT_SUPPORT, d3d12.FeatureDataFormatSupport(d3d12.Format.R32_UINT)).support1 & 1
    assert not query(Feature.FORMAT_SUPPORT, d3d12.FeatureDataFormatSupport(d3d12.Format.BC1_UNORM)).support1
    unknown = query(Feature.FORMAT_SUPPORT, d3d12.FeatureDataFormatSupport())
    assert (unknown.support1, unknown.support2) == (1, 0)


def test_feature_outputs_do_not_come_from_the_caller(stage: Stage) -> None:
    data = d3d12.FeatureDataArchitecture(0, True, True, True)

    assert not stage.device.check_feature_support(Feature.ARCHITECTURE, data).uma


# --- removal ---

CREATIONS: dict[str, Callable[[Stage], Any]] = {
    "CreateCommandQueue": lambda s: s.device.create_command_queue(),
    "CreateCommandAllocator": lambda s: s.device.create_command_allocator(DIRECT),
    "CreateCommandList": lambda s: s.device.create_command_list(0, DIRECT, None),  # type: ignore[arg-type]
    "CreateCommandList1": lambda s: s.device.create_command_list1(0, DIRECT),
    "CreateFence": lambda s: s.device.create_fence(),
    "CreateHeap": lambda s: s.device.create_heap(HeapDesc(65536)),
    "CreateCommittedResource": lambda s: s.buffer(),
    "CreatePlacedResource": lambda s: s.device.create_placed_resource(
        None,  # type: ignore[arg-type]
        0,
        ResourceDesc.buffer(4),
        STATE.COMMON,
    ),
    "CreateReservedResource": lambda s: s.device.create_reserved_resource(
        ResourceDesc.buffer(4), STATE.COMMON
    ),
    "CreateDescriptorHeap": lambda s: s.device.create_descriptor_heap(DescriptorHeapDesc()),
    "CreateQueryHeap": lambda s: s.device.create_query_heap(QueryHeapDesc()),
    "MakeResident": lambda s: s.device.make_resident([]),
    "Evict": lambda s: s.device.evict([]),
}


def test_RM1_remove_device(stage: Stage) -> None:
    assert stage.device.get_device_removed_reason() is HResult.S_OK
    stage.device.remove_device()
    stage.device.remove_device()

    assert stage.device.get_device_removed_reason() is REMOVED


@pytest.mark.parametrize("operation", list(CREATIONS))
@pytest.mark.parametrize("strictness", list(Strictness))
def test_RM2_creation_after_removal(operation: str, strictness: Strictness) -> None:
    stage = Stage(strictness)
    stage.device.remove_device()

    with fails("RM2", REMOVED, 232):
        CREATIONS[operation](stage)


@pytest.mark.parametrize("strictness", list(Strictness))
def test_RM2_what_lives_on(strictness: Strictness) -> None:
    stage = Stage(strictness)
    commands, allocator = stage.record()
    closed, _ = stage.record()
    closed.close()
    upload, buffer = stage.buffer(heap=HeapType.UPLOAD), stage.buffer()
    memory, heap = upload.map(), stage.heap()
    slot = heap.get_cpu_descriptor_handle_for_heap_start()
    stage.device.remove_device()

    for call in (
        lambda: commands.close(),
        lambda: closed.reset(allocator),
        lambda: allocator.reset(),
        lambda: upload.map(),
        lambda: stage.fence.signal(1),
        lambda: stage.queue.signal(stage.fence, 1) if stage._queues else stage.fence.signal(1),
    ):
        with fails("RM2", REMOVED):
            call()
    # Void methods do nothing.
    commands.copy_resource(buffer, upload)
    commands.copy_buffer_region(buffer, 999, upload, 0, 1)
    commands.resource_barrier([])
    stage.device.create_constant_buffer_view(None, slot + 1)
    stage.device.copy_descriptors_simple(9, slot, slot, heap.get_desc().type)
    # Reading works.
    assert stage.fence.get_completed_value() == 2**64 - 1
    assert buffer.get_desc().width == 256 and memory[0] == 0
    upload.unmap()


def test_RM2_queue_methods(stage: Stage) -> None:
    queue = stage.queue
    commands, _ = stage.record()
    commands.close()
    stage.device.remove_device()

    queue.execute_command_lists([commands])
    queue.update_tile_mappings(stage.fence)  # type: ignore[arg-type]
    with fails("RM2", REMOVED):
        queue.wait(stage.fence, 1)


def test_RM2_says_why(stage: Stage) -> None:
    stage.device.remove_device()

    with pytest.raises(
        Error, match=r"Removed with DXGI_ERROR_DEVICE_REMOVED: Device #0 .* was removed by RemoveDevice"
    ):
        stage.device.create_fence()


@pytest.mark.dmlemu(expect=["OBJECT_*"])
@pytest.mark.parametrize("strictness", list(Strictness))
def test_RM3_a_gpu_fault_removes_the_device(strictness: Strictness) -> None:
    stage = Stage(strictness)
    source = stage.buffer()
    commands, _ = stage.record()
    commands.copy_resource(stage.buffer(), source)
    stage.submit(commands)

    if strictness is Strictness.RUNTIME:
        source.close()
        stage.finish()  # all fences read 2**64 - 1
    else:
        with fails("CL9", HResult.DXGI_ERROR_INVALID_CALL, 921):
            source.close()
        with fails("RM3", HResult.DXGI_ERROR_DEVICE_HUNG, 921):
            stage.finish()
    assert stage.device.get_device_removed_reason() is HResult.DXGI_ERROR_DEVICE_HUNG
    assert stage.fence.get_completed_value() == 2**64 - 1


def test_RM3_a_removed_adapter_gets_a_new_device() -> None:
    stage = Stage()
    adapter = stage.adapter
    stage.device.remove_device()
    assert create_device(adapter) is stage.device
    stage.device.release()
    stage.device.release()
    stage.fence.release()

    assert create_device(adapter).get_device_removed_reason() is HResult.S_OK


# --- residency ---


def test_RD1_residency_is_counted(stage: Stage) -> None:
    heap, buffer = stage.device.create_heap(HeapDesc(65536)), stage.buffer()
    things = [heap, buffer, stage.heap(), stage.device.create_query_heap(QueryHeapDesc())]
    stage.device.make_resident(things)
    stage.device.evict(things)
    stage.device.evict(things)

    with fails("RD1", INVALID, 1136):
        stage.device.evict([buffer])
    stage.device.make_resident(things)


def test_RD1_an_object_that_stands_twice_counts_twice(stage: Stage) -> None:
    buffer = stage.buffer()
    stage.device.make_resident([buffer])
    with fails("RD1", INVALID, 1136):
        stage.device.evict([buffer] * 3)
    stage.device.evict([buffer] * 2)
    with fails("RD1", INVALID, 1136):
        stage.device.evict([buffer])


def test_RD1_arguments(stage: Stage) -> None:
    with fails("RD1", INVALID, 703):
        stage.device.make_resident(None)  # type: ignore[arg-type]
    with fails("RD1", INVALID, 705):
        stage.device.evict(None)  # type: ignore[arg-type]
    with fails("OB3"):
        stage.device.evict([Stage().buffer()])
    stage.device.evict([stage.fence])  # others are accepted and nothing happens
    stage.device.evict([stage.fence])


def test_RD2_evicted_buffers_must_not_be_used(stage: Stage) -> None:
    buffer = stage.filled(np.full(256, 7, np.uint8))
    stage.device.evict([buffer])
    commands, _ = stage.record()
    commands.copy_resource(stage.buffer(), buffer)

    with fails("RD2", HResult.DXGI_ERROR_INVALID_CALL, 608):
        stage.submit(commands)
    stage.device.make_resident([buffer])
    stage.run(commands)
    assert stage.read(buffer)[0] == 7


def test_RD2_created_not_resident(stage: Stage) -> None:
    buffer = stage.device.create_committed_resource(
        HeapProperties(), HeapFlags.CREATE_NOT_RESIDENT, ResourceDesc.buffer(256), STATE.COMMON
    )
    commands, _ = stage.record()
    commands.copy_resource(stage.buffer(), buffer)

    with fails("RD2", HResult.DXGI_ERROR_INVALID_CALL, 608):
        stage.submit(commands)
    stage.device.make_resident([buffer])
    stage.run(commands)


# --- objects ---

GUID = UUID("00000000-1111-2222-3333-444444444444")


def test_OB1_private_data(stage: Stage) -> None:
    buffer = stage.buffer()

    with fails("OB1", HResult.DXGI_ERROR_NOT_FOUND):
        buffer.get_private_data(GUID)
    assert buffer.set_private_data(GUID, None) is HResult.S_FALSE
    assert buffer.set_private_data(GUID, b"abc") is HResult.S_OK
    assert buffer.get_private_data(GUID) == b"abc"
    assert buffer.set_private_data(GUID, None) is HResult.S_OK
    with fails("OB1", HResult.DXGI_ERROR_NOT_FOUND):
        buffer.get_private_data(GUID)


def test_OB1_interfaces_live_as_long_as_they_are_stored(stage: Stage) -> None:
    fence = stage.device.create_fence()
    buffer = stage.buffer()
    buffer.set_private_data_interface(GUID, fence)
    address = int.from_bytes(buffer.get_private_data(GUID), "little")

    assert address == id(fence)
    assert buffer.set_private_data_interface(GUID, None) is HResult.S_OK


@pytest.mark.parametrize("strictness", list(Strictness))
def test_OB1_a_null_interface_is_stored(strictness: Strictness) -> None:
    buffer = Stage(strictness).buffer()
    for _ in range(2):
        assert buffer.set_private_data_interface(GUID, None) is HResult.S_OK
        assert buffer.get_private_data(GUID) == bytes(8)
    assert buffer.set_private_data(GUID, None) is HResult.S_OK
    assert buffer.set_private_data(GUID, None) is HResult.S_FALSE
    with fails("OB1", HResult.DXGI_ERROR_NOT_FOUND):
        buffer.get_private_data(GUID)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: s.device,
        lambda s: s.queue,
        lambda s: s.record()[0],
        lambda s: s.record()[1],
        lambda s: s.fence,
        lambda s: s.buffer(),
        lambda s: s.heap(),
        lambda s: s.device.create_heap(HeapDesc(65536)),
        lambda s: s.device.create_query_heap(QueryHeapDesc()),
    ],
)
def test_OB2_names(stage: Stage, make: Callable[[Stage], Any]) -> None:
    thing = make(stage)
    assert (thing.name == "" and "created at stage.py:" in str(thing)) or "test_device.py:" in str(thing)
    thing.set_name("Größe")

    assert thing.name == "Größe" and str(thing) == f"{thing.kind} 'Größe'"
    data = thing.get_private_data(d3d12.WKPDID_D3D_DEBUG_OBJECT_NAME_W)
    assert data == "Größe\0".encode("utf-32-le") and len(data) == 6 * 4
    thing.set_private_data(d3d12.WKPDID_D3D_DEBUG_OBJECT_NAME_W, None)
    thing.set_private_data(d3d12.WKPDID_D3D_DEBUG_OBJECT_NAME, b"narrow\0")
    assert thing.name == "narrow"


def test_OB2_names_in_messages_of_the_hardware(stage: Stage) -> None:
    fence = stage.device.create_fence()

    def waiting() -> str:
        with pytest.raises(Error) as caught:
            fence.wait(1)
        return caught.value.report.message.partition(" to reach")[0]

    unnamed = waiting()
    assert re.fullmatch(r"Waiting for fence #\d+ \(created at test_device\.py:\d+\)", unnamed)
    fence.set_name("frames")
    assert waiting() == "Waiting for fence 'frames'"
    fence.set_private_data(d3d12.WKPDID_D3D_DEBUG_OBJECT_NAME_W, None)
    fence.set_private_data(d3d12.WKPDID_D3D_DEBUG_OBJECT_NAME, b"narrow\0")
    assert waiting() == "Waiting for fence 'narrow'"
    fence.set_name("")
    assert waiting() == unnamed


def test_OB2_refused_objects_are_not_counted(stage: Stage) -> None:
    device: Any = stage.device
    refused = [
        lambda: device.create_heap(HeapDesc(0)),
        lambda: device.create_descriptor_heap(DescriptorHeapDesc(num_descriptors=2**40)),
        lambda: device.create_query_heap(QueryHeapDesc(count=0)),
        lambda: device.create_command_list(0, DIRECT, None),
        lambda: device.create_fence(-1),
    ]
    for create in refused:
        with pytest.raises(Error):
            create()
    fresh = [device.create_heap(HeapDesc(65536)), stage.heap(), device.create_query_heap(QueryHeapDesc())]
    assert [thing.serial for thing in fresh] == [1, 1, 1]
    assert stage.record()[0].serial == 1 and device.create_fence().serial == stage.fence.serial + 1


def test_OB3_objects_of_another_device(stage: Stage) -> None:
    other = Stage()
    commands, _ = stage.record()
    heap = stage.heap()

    with fails("OB3"):
        slot = heap.get_cpu_descriptor_handle_for_heap_start()
        stage.device.create_unordered_access_view(other.buffer(), None, None, slot)
    with fails("OB3"):
        commands.set_descriptor_heaps([other.heap(visible=True)])
    with fails("OB3"):
        stage.device.create_placed_resource(
            other.device.create_heap(HeapDesc(65536)), 0, ResourceDesc.buffer(4), STATE.COMMON
        )


def test_OB3_get_device(stage: Stage) -> None:
    for thing in (stage.queue, stage.fence, stage.buffer(), stage.heap(), *stage.record()):
        assert thing.get_device() is stage.device


def test_live_objects_are_reported(stage: Stage) -> None:
    buffer = stage.buffer()
    with stage.device.create_fence() as fence:
        assert stage.device.report_live_device_objects() == [stage.fence, buffer, fence]
    fence.close()
    assert stage.device.report_live_device_objects() == [stage.fence, buffer]


def test_serials_count_per_kind(stage: Stage) -> None:
    assert [stage.buffer().serial for _ in range(3)] == [1, 2, 3]
    assert stage.device.create_fence().serial == 2  # the stage has one


def test_node_count(stage: Stage) -> None:
    assert stage.device.get_node_count() == 1


@pytest.mark.parametrize(
    "method",
    [
        "create_shared_handle",
        "open_shared_handle",
    ],
)
def test_what_is_not_emulated_says_so(stage: Stage, method: str) -> None:
    with pytest.raises(Error, match="is not emulated") as caught:
        getattr(stage.device, method)()
    assert caught.value.hresult is HResult.E_NOTIMPL


# --- the info queue ---


@pytest.mark.dmlemu(expect=["FENCE_ZERO_WAIT"])
def test_info_queue_counts_and_calls_back(stage: Stage) -> None:
    queue, seen = stage.device.info_queue, list[Report]()
    cookie = queue.register_message_callback(seen.append)
    for _ in range(3):
        stage.queue.wait(stage.fence, 0)
    assert remarks(stage) == [1424] and queue.get_count(0) == 3
    assert [report.id for report in seen] == [report.id for report in queue] == ["FENCE_ZERO_WAIT"]
    queue.unregister_message_callback(cookie)
    queue.clear_stored_messages()
    assert queue and not list(queue)
    stage.queue.wait(stage.fence, 0)
    assert queue.get_num_stored_messages() == 1 and len(seen) == 1


def test_info_queue_is_silent_at_runtime() -> None:
    stage = Stage(Strictness.RUNTIME)
    stage.buffer(state=STATE.COPY_DEST)
    stage.queue.wait(stage.fence, 0)

    assert remarks(stage) == []


@pytest.mark.dmlemu(expect=["RES_STATE_IGNORED"])
def test_info_queue_keeps_the_newest(stage: Stage) -> None:
    queue = stage.device.info_queue
    assert queue.get_message_count_limit() == 1024
    queue.set_message_count_limit(3)
    for _ in range(8):
        stage.buffer(4, state=STATE.COPY_DEST)

    assert queue.get_num_stored_messages() == 3
    assert queue.get_num_messages_discarded_by_message_count_limit() == 5
    assert queue.get_num_messages_allowed_by_storage_filter() == 8
    assert "buffer #6 " in queue.get_message(0).text()
    queue.set_message_count_limit(1)
    assert "buffer #8 " in queue.get_message(0).text() and len(list(queue)) == 1
    queue.set_message_count_limit(-1)
    assert queue.get_message_count_limit() == queue.UNLIMITED == 2**64 - 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda queue: queue.unregister_message_callback(7), "No callback"),
        (lambda queue: queue.set_message_count_limit(-2), r"MessageCountLimit \(-2\) is out of range"),
        (lambda queue: queue.get_message(0), r"Message index \(0\)"),
        (lambda queue: queue.add_message(11, Severity.INFO, 0, ""), r"Category \(11\) is not known"),
        (lambda queue: queue.add_application_message(5, ""), r"Severity \(5\) is not known"),
    ],
)
def test_info_queue_arguments(stage: Stage, call: Callable[[d3d12.InfoQueue], None], message: str) -> None:
    with pytest.raises(Error, match=message):
        call(stage.device.info_queue)
    assert remarks(stage) == []


def test_messages_of_the_program(stage: Stage) -> None:
    """They have their category, pass the filters, and are no reports."""
    queue, seen = stage.device.info_queue, list[Report]()
    queue.register_message_callback(seen.append)
    queue.add_application_message(Severity.ERROR, "half")
    queue.add_message(d3d12.MessageCategory.SHADER, Severity.INFO, d3d12.MessageId.LIVE_DEVICE, "more")
    queue.add_application_message(Severity.ERROR, "half")
    assert [(each.text(), each.severity, each.d3d12_id) for each in queue] == [
        ("half", Severity.ERROR, 1),
        ("more", Severity.INFO, 274),
    ]
    assert [each.category for each in queue if isinstance(each, d3d12.ApplicationMessage)] == [
        d3d12.MessageCategory.APPLICATION_DEFINED,
        d3d12.MessageCategory.SHADER,
    ]
    assert queue.get_count(0) == 2 and len(seen) == 2 and list(stage.device.reports) == []
    queue.push_storage_filter(
        d3d12.InfoQueueFilter(deny_list=d3d12.InfoQueueFilterDesc(severity_list=[Severity.INFO]))
    )
    queue.add_application_message(Severity.INFO, "dropped")
    assert len(list(queue)) == 2 and queue.get_num_messages_denied_by_storage_filter() == 1


@pytest.mark.dmlemu(expect=["FENCE_ZERO_WAIT", "RES_STATE_IGNORED"])
def test_retrieval_filters_select_what_an_index_counts(stage: Stage) -> None:
    queue = stage.device.info_queue
    stage.buffer(4, state=STATE.COPY_DEST)
    stage.queue.wait(stage.fence, 0)
    category = d3d12.MessageCategory
    execution = d3d12.InfoQueueFilter(
        allow_list=d3d12.InfoQueueFilterDesc(category_list=[category.EXECUTION])
    )
    queue.push_retrieval_filter(execution)
    assert queue.get_message(0).id == "FENCE_ZERO_WAIT" and queue.get_retrieval_filter() == execution
    assert queue.get_num_stored_messages_allowed_by_retrieval_filter() == 1
    with pytest.raises(Error, match=r"Message index \(1\)"):
        queue.get_message(1)
    queue.push_copy_of_retrieval_filter()
    queue.add_retrieval_filter_entries(
        d3d12.InfoQueueFilter(deny_list=d3d12.InfoQueueFilterDesc(category_list=[category.EXECUTION]))
    )
    assert queue.get_num_stored_messages_allowed_by_retrieval_filter() == 0
    queue.clear_retrieval_filter()
    assert queue.get_num_stored_messages_allowed_by_retrieval_filter() == 2
    queue.push_empty_retrieval_filter()
    assert queue.get_retrieval_filter_stack_size() == 3
    for _ in range(4):
        queue.pop_retrieval_filter()
    assert queue.get_retrieval_filter_stack_size() == 0
    assert queue.get_num_stored_messages_allowed_by_retrieval_filter() == queue.get_num_stored_messages() == 2


@pytest.mark.dmlemu(expect=["FENCE_ZERO_WAIT", "RES_STATE_*"])
def test_a_callback_may_ignore_the_filters(stage: Stage) -> None:
    queue, filtered, all_of_them = stage.device.info_queue, list[Report](), list[Report]()
    queue.register_message_callback(filtered.append)
    queue.register_message_callback(all_of_them.append, d3d12.MessageCallbackFlags.IGNORE_FILTERS)
    queue.push_storage_filter(
        d3d12.InfoQueueFilter(deny_list=d3d12.InfoQueueFilterDesc(id_list=[d3d12.MessageId(1328)]))
    )
    stage.buffer(4, state=STATE.COPY_DEST)
    stage.queue.wait(stage.fence, 0)
    assert [report.id for report in filtered] == ["FENCE_ZERO_WAIT"]
    assert [report.id for report in all_of_them] == ["RES_STATE_IGNORED", "FENCE_ZERO_WAIT"]
    with pytest.raises(Error, match=r"CallbackFilterFlags \(2\) is not known"):
        queue.register_message_callback(print, 2)  # type: ignore[arg-type]


def test_unregistering_waits_for_a_callback_of_another_thread(stage: Stage) -> None:
    queue, order = stage.device.info_queue, list[str]()
    is_in, may_leave = threading.Event(), threading.Event()

    def on_message(report: Report) -> None:
        is_in.set()
        may_leave.wait(10)
        order.append("left")

    def unregister() -> None:
        queue.unregister_message_callback(cookie)
        order.append("unregistered")

    cookie = queue.register_message_callback(on_message)
    reporting = threading.Thread(target=queue.add_application_message, args=(Severity.INFO, "here"))
    reporting.start()
    assert is_in.wait(10)
    removing = threading.Thread(target=unregister)
    removing.start()
    removing.join(0.1)
    may_leave.set()
    for thread in (reporting, removing):
        thread.join(10)
    assert order == ["left", "unregistered"]


def test_a_callback_may_unregister_itself(stage: Stage) -> None:
    queue, seen = stage.device.info_queue, list[str]()

    def once(report: Report) -> None:
        seen.append(report.message)
        queue.unregister_message_callback(cookie)

    cookie = queue.register_message_callback(once)
    queue.add_application_message(Severity.INFO, "first")
    queue.add_application_message(Severity.INFO, "second")
    assert seen == ["first"]


def test_enums_have_the_headers_numbers() -> None:
    assert CommandListType.COPY == 3 and CommandListType.NONE == -1
    assert STATE.GENERIC_READ == 0xAC3 and STATE.UNORDERED_ACCESS == 8
    assert d3d12.HeapFlags.ALLOW_ONLY_BUFFERS == 0xC0
    assert d3d12.Format.R32_TYPELESS == 39 and d3d12.Format.R16_FLOAT == 54
    assert Feature.D3D12_OPTIONS12 == 41 and LEVEL.LEVEL_11_0 == 0xB000
    assert d3d12.MessageId.COMMAND_LIST_CLOSED == 547
    assert dmlemu.d3d12 is d3d12


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_objects_are_neither_copied_nor_pickled(how: Callable[[Any], object]) -> None:
    """The end of a copy would end the memory of the original."""
    stage = Stage()
    buffer = stage.upload(np.arange(4, dtype=np.float32))
    for thing in (stage.device, stage.fence, buffer, stage.queue):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            how(thing)
    gc.collect()
    assert stage.read(buffer).view(np.float32)[:4].tolist() == [0, 1, 2, 3]
