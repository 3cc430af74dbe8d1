"""ID3D12Device, up to ID3D12Device15, and ID3D12DeviceConfiguration."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

from ... import d3d12
from ...d3d12.core.c_memory import c_size, pack, read, read_array, read_bytes, write
from ...d3d12.core.features import struct_of
from ...d3d12.core.rows import API_SIZE
from ...errors import HResult, Strictness
from ._capi import lib
from .d3d12_objects import D3D12Object, ID3DDestructionNotifier
from .debug import ID3D12DebugDevice, ID3D12DebugDevice1, ID3D12InfoQueue
from .objects import Interface, invalid, push_reason, refuses, thing
from .pipelines import read_command_signature_desc, read_compute_desc, read_stream
from .reports import no_effect
from .root_signatures import create_versioned_deserializer, serialize_versioned
from .values import by_value, create, write_numbers, write_out

__all__ = ["ID3D12Device"]

_LEVELS = struct.Struct("@IQIxxxx")  # D3D12_FEATURE_DATA_FEATURE_LEVELS


class ID3D12DeviceConfiguration(Interface, name="ID3D12DeviceConfiguration1"):
    thing: d3d12.Device

    def GetDesc(self) -> Any:
        return by_value(pack(self.thing.get_configuration_desc()))

    def GetEnabledExperimentalFeatures(self, guids: int, count: int) -> None:
        enabled = self.thing.get_configuration_desc().num_enabled_experimental_features
        if count > enabled:
            expected = f"at most {enabled}, as GetDesc says"
            raise invalid("NumGuids", count, expected, "GetEnabledExperimentalFeatures")

    def SerializeVersionedRootSignature(self, desc: int, result: int, error: int) -> None:
        serialize_versioned(desc, result, error, "SerializeVersionedRootSignature", "pDesc", "ppResult")

    def CreateVersionedRootSignatureDeserializer(self, data: int, size: int, riid: int, out: int) -> HResult:
        return create_versioned_deserializer(data, size, riid, out)


class ID3D12Device(D3D12Object, of=d3d12.Device, name="ID3D12Device15"):
    OTHERS = (
        ID3D12InfoQueue,
        ID3D12DebugDevice,
        ID3D12DebugDevice1,
        ID3D12DeviceConfiguration,
        ID3DDestructionNotifier,
    )
    thing: d3d12.Device

    def __init__(self, thing: d3d12.Device, owner: Interface | None = None) -> None:
        super().__init__(thing, owner)
        push_reason(self, thing)

    def offers(self, kind: type[Interface]) -> bool:
        of_layer = kind not in (ID3D12DeviceConfiguration, ID3DDestructionNotifier)
        return not of_layer or self.thing.context.strictness is not Strictness.RUNTIME

    def GetResourceAllocationInfo3(
        self, mask: int, count: int, descs: int, format_counts: int, formats: int, infos: int
    ) -> Any:
        rows = read_array(d3d12.ResourceDesc1, descs, count, "pResourceDescs", "GetResourceAllocationInfo3")
        found, each = self.thing.get_resource_allocation_info3(mask, rows)
        write_out([each], (infos, ""))
        return by_value(pack(found))

    def GetResourceTiling(
        self, resource: int, total: int, packed: int, shape: int, count: int, first: int, tilings: int
    ) -> None:
        found: Any = thing(resource, d3d12.Resource, "pTiledResource", "GetResourceTiling")
        room = int.from_bytes(read_bytes(count, 4), "little") if count else 0
        answer = self.thing.get_resource_tiling(found, first, room)
        write_out(answer, (total, "I"), (packed, ""), (shape, ""), (tilings, ""))
        write_numbers(count, "I", len(answer.subresource_tilings))

    @refuses
    def ResolveQueryData(self, heap: int, type: Any, start: int, count: int, out: int) -> None:
        self.thing.resolve_query_data()

    def CheckFeatureSupport(self, feature: Any, data: int, size: int) -> None:
        if not data:
            raise invalid("pFeatureSupportData", None, "the address of a struct", "CheckFeatureSupport")
        kind, operation = struct_of(feature), "CheckFeatureSupport"
        of_levels = kind is d3d12.FeatureDataFeatureLevels  # has a pointer to its inputs
        wanted = _LEVELS.size if of_levels else c_size(kind)
        if size != wanted:
            rule = f"ID3D12Device::{operation}: FeatureSupportDataSize"
            raise invalid("FeatureSupportDataSize", size, str(wanted), operation, API_SIZE, rule=rule)
        if of_levels:
            count, levels, _ = _LEVELS.unpack(read_bytes(data, size))
            asked = read_array("I", levels, count, "pFeatureLevelsRequested", operation)
            answer = self.thing.check_feature_support(feature, d3d12.FeatureDataFeatureLevels(tuple(asked)))
            write(data, _LEVELS.pack(count, levels, answer.max_supported_feature_level))
        else:
            write(data, pack(self.thing.check_feature_support(feature, read(kind, data))))

    def CreateComputePipelineState(self, desc: int, riid: int, out: int) -> HResult:
        return create(riid, out, lambda: self.thing.create_compute_pipeline_state(read_compute_desc(desc)))

    def CreatePipelineState(self, desc: int, riid: int, out: int) -> HResult:
        return create(riid, out, lambda: self.thing.create_pipeline_state(read_stream(desc)))

    def CreateCommandSignature(self, desc: int, root_signature: int, riid: int, out: int) -> HResult:
        def make() -> d3d12.CommandSignature:
            operation = "CreateCommandSignature"
            root = thing(root_signature, d3d12.RootSignature, "pRootSignature", operation)
            return self.thing.create_command_signature(read_command_signature_desc(desc), root)

        return create(riid, out, make)

    def RegisterTrimNotificationCallback(self, data: int) -> None:
        operation = "RegisterTrimNotificationCallback"
        if not data:
            raise invalid("pData", None, "the address of a D3D12_REGISTER_TRIM_NOTIFICATION", operation)
        function = int.from_bytes(read_bytes(data, 8), "little")
        if not function:
            raise invalid("pData.pfnCallback", None, "the address of a function", operation)
        never_called = partial(lib.capi_notify, function)
        write_numbers(data + 16, "I", self.thing.register_trim_notification_callback(never_called))
        no_effect(operation, "memory of the emulated GPU is not trimmed")

    def SetBackgroundProcessingMode(self, mode: Any, action: Any, event: int, further: int) -> None:
        wanted = self.thing.set_background_processing_mode(mode, action, event or None)
        write_numbers(further, "I", wanted)
        no_effect("SetBackgroundProcessingMode", "there is no background processing")

    def ShaderCacheControl(self, kinds: Any, control: Any) -> None:
        self.thing.shader_cache_control(kinds, control)
        no_effect("ShaderCacheControl", "there is no shader cache")
