"""Feature support: the structs of ``ID3D12Device::CheckFeatureSupport``.

The default of every output field is the device's answer.  No shader code runs on the device yet, so it
reports no optional shader instruction as supported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..diagnostics import ids
from ..frozen import Frozen
from .arguments import Struct, integer
from .enums import (
    CommandListSupportFlags,
    CommandListType,
    CommandQueuePriority,
    ConservativeRasterizationTier,
    CrossNodeSharingTier,
    Feature,
    FeatureLevel,
    Format,
    ResourceBindingTier,
    ResourceHeapTier,
    RootSignatureVersion,
    ShaderMinPrecisionSupport,
    ShaderModel,
    SharedResourceCompatibilityTier,
    TightAlignmentTier,
    TiledResourcesTier,
    TriState,
    ViewInstancingTier,
)
from .formats import TYPED
from .info_queue import not_implemented, refusal, spell

MAX_FEATURE_LEVEL = FeatureLevel.LEVEL_12_0
MAX_SHADER_MODEL = ShaderModel.MODEL_6_2
VIRTUAL_ADDRESS_BITS = 47


class FeatureDataD3D12Options(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS``."""

    double_precision_float_shader_ops: bool = False
    output_merger_logic_op: bool = False
    min_precision_support: ShaderMinPrecisionSupport = ShaderMinPrecisionSupport.NONE
    tiled_resources_tier: TiledResourcesTier = TiledResourcesTier.TIER_2
    resource_binding_tier: ResourceBindingTier = ResourceBindingTier.TIER_3
    ps_specified_stencil_ref_supported: bool = False
    typed_uav_load_additional_formats: bool = True
    rovs_supported: bool = False
    conservative_rasterization_tier: ConservativeRasterizationTier = (
        ConservativeRasterizationTier.NOT_SUPPORTED
    )
    max_gpu_virtual_address_bits_per_resource: int = VIRTUAL_ADDRESS_BITS
    standard_swizzle_64kb_supported: bool = False
    cross_node_sharing_tier: CrossNodeSharingTier = CrossNodeSharingTier.NOT_SUPPORTED
    cross_adapter_row_major_texture_supported: bool = False
    vp_and_rt_array_index_from_any_shader_feeding_rasterizer_supported_without_gs_emulation: bool = False
    resource_heap_tier: ResourceHeapTier = ResourceHeapTier.TIER_2


class FeatureDataArchitecture(Struct):
    """``D3D12_FEATURE_DATA_ARCHITECTURE``: a discrete adapter with dedicated memory."""

    node_index: int = 0
    tile_based_renderer: bool = False
    uma: bool = False
    cache_coherent_uma: bool = False


class FeatureDataArchitecture1(Struct):
    """``D3D12_FEATURE_DATA_ARCHITECTURE1``."""

    node_index: int = 0
    tile_based_renderer: bool = False
    uma: bool = False
    cache_coherent_uma: bool = False
    isolated_mmu: bool = True


class FeatureDataFeatureLevels(Frozen):
    """``D3D12_FEATURE_DATA_FEATURE_LEVELS``: in: the levels queried; out: the highest supported one."""

    feature_levels_requested: tuple[FeatureLevel, ...] = ()
    max_supported_feature_level: FeatureLevel | None = None


class FeatureDataFormatSupport(Struct):
    """``D3D12_FEATURE_DATA_FORMAT_SUPPORT``: numbers of ``D3D12_FORMAT_SUPPORT1`` and ``2``."""

    format: Format = Format.UNKNOWN
    support1: int = 0
    support2: int = 0


class FeatureDataGpuVirtualAddressSupport(Frozen):
    """``D3D12_FEATURE_DATA_GPU_VIRTUAL_ADDRESS_SUPPORT``."""

    max_gpu_virtual_address_bits_per_resource: int = VIRTUAL_ADDRESS_BITS
    max_gpu_virtual_address_bits_per_process: int = VIRTUAL_ADDRESS_BITS


class FeatureDataShaderModel(Struct):
    """``D3D12_FEATURE_DATA_SHADER_MODEL``: in, the program's highest; out, the highest of both."""

    highest_shader_model: ShaderModel = ShaderModel.NONE


class FeatureDataRootSignature(Struct):
    """``D3D12_FEATURE_DATA_ROOT_SIGNATURE``: in, the program's highest; out, the highest of both."""

    highest_version: RootSignatureVersion = RootSignatureVersion.VERSION_1_1


class FeatureDataCommandQueuePriority(Struct):
    """``D3D12_FEATURE_DATA_COMMAND_QUEUE_PRIORITY``."""

    command_list_type: CommandListType = CommandListType.DIRECT
    priority: int = CommandQueuePriority.NORMAL
    priority_for_type_is_supported: bool = False


class FeatureDataD3D12Options1(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS1``."""

    wave_ops: bool = False
    wave_lane_count_min: int = 0
    wave_lane_count_max: int = 0
    total_lane_count: int = 0
    expanded_compute_resource_states: bool = True
    int64_shader_ops: bool = False


class FeatureDataD3D12Options2(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS2``."""

    depth_bounds_test_supported: bool = False
    programmable_sample_positions_tier: int = 0


class FeatureDataD3D12Options3(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS3``."""

    copy_queue_timestamp_queries_supported: bool = True
    casting_fully_typed_format_supported: bool = False
    write_buffer_immediate_support_flags: CommandListSupportFlags = (
        CommandListSupportFlags.DIRECT | CommandListSupportFlags.COMPUTE | CommandListSupportFlags.COPY
    )
    view_instancing_tier: ViewInstancingTier = ViewInstancingTier.NOT_SUPPORTED
    barycentrics_supported: bool = False


class FeatureDataD3D12Options4(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS4``."""

    msaa_64kb_aligned_texture_supported: bool = False
    shared_resource_compatibility_tier: SharedResourceCompatibilityTier = (
        SharedResourceCompatibilityTier.TIER_0
    )
    native_16bit_shader_ops_supported: bool = False


class FeatureDataD3D12Options12(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS12``."""

    ms_primitives_pipeline_statistic_includes_culled_primitives: TriState = TriState.UNKNOWN
    enhanced_barriers_supported: bool = False
    relaxed_format_casting_supported: bool = False


class FeatureDataD3D12Options16(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS16``."""

    dynamic_depth_bias_supported: bool = False
    gpu_upload_heap_supported: bool = True


class FeatureDataExistingHeaps(Frozen):
    """``D3D12_FEATURE_DATA_EXISTING_HEAPS``."""

    supported: bool = False


class FeatureDataPredication(Frozen):
    """``D3D12_FEATURE_DATA_PREDICATION``."""

    supported: bool = False


class FeatureDataTightAlignment(Frozen):
    """``D3D12_FEATURE_DATA_TIGHT_ALIGNMENT``."""

    support_tier: TightAlignmentTier = TightAlignmentTier.NOT_SUPPORTED


# D3D12_FORMAT_SUPPORT1_BUFFER, _TYPED_UNORDERED_ACCESS_VIEW; D3D12_FORMAT_SUPPORT2_UAV_TYPED_LOAD, _STORE
_BUFFER = 0x1
_SUPPORT1 = _BUFFER | 0x2000000
_SUPPORT2 = 0x40 | 0x80


def _architecture(data: Any) -> Any:
    if data.node_index != 0:
        raise refusal(
            ids.FEATURE_DATA,
            "NodeIndex ({given}) cannot be queried.",
            field="FeatureSupportData.NodeIndex",
            given=data.node_index,
            expected="0: the device has one node",
            operation="CheckFeatureSupport",
            rule="DEV9: ID3D12Device::CheckFeatureSupport",
        )
    return type(data)()


def _feature_levels(data: FeatureDataFeatureLevels) -> FeatureDataFeatureLevels:
    if not data.feature_levels_requested:
        raise refusal(
            ids.FEATURE_DATA,
            "NumFeatureLevels ({given}) cannot be queried.",
            field="FeatureSupportData.NumFeatureLevels",
            given=0,
            expected="at least 1",
            operation="CheckFeatureSupport",
            rule="DEV9: ID3D12Device::CheckFeatureSupport",
        )
    supported = [level for level in data.feature_levels_requested if level <= MAX_FEATURE_LEVEL]
    if not supported:
        levels = " ".join(
            spell(level) if isinstance(level, FeatureLevel) else f"0x{level:X}"
            for level in data.feature_levels_requested
        )
        raise refusal(
            ids.FEATURE_DATA,
            "pFeatureLevelsRequested ({given}) cannot be queried.",
            field="FeatureSupportData.pFeatureLevelsRequested",
            given=levels,
            expected=f"one up to {MAX_FEATURE_LEVEL.name}",
            operation="CheckFeatureSupport",
            rule="DEV10: ID3D12Device::CheckFeatureSupport",
        )
    return replace(data, max_supported_feature_level=max(supported))


def _shader_model(data: FeatureDataShaderModel) -> FeatureDataShaderModel:
    if data.highest_shader_model not in list(ShaderModel)[1:]:
        raise refusal(
            ids.FEATURE_DATA,
            "HighestShaderModel ({given}) cannot be queried.",
            field="FeatureSupportData.HighestShaderModel",
            given=data.highest_shader_model,
            expected="a shader model of D3D_SHADER_MODEL",
            operation="CheckFeatureSupport",
            rule="DEV8: ID3D12Device::CheckFeatureSupport",
        )
    return FeatureDataShaderModel(min(data.highest_shader_model, MAX_SHADER_MODEL))


def _root_signature(data: FeatureDataRootSignature) -> FeatureDataRootSignature:
    if data.highest_version not in list(RootSignatureVersion):
        raise refusal(
            ids.FEATURE_DATA,
            "HighestVersion ({given}) cannot be queried.",
            field="FeatureSupportData.HighestVersion",
            given=data.highest_version,
            expected="a version of D3D_ROOT_SIGNATURE_VERSION",
            operation="CheckFeatureSupport",
            rule="DEV8: ID3D12Device::CheckFeatureSupport",
        )
    return FeatureDataRootSignature(min(data.highest_version, RootSignatureVersion.VERSION_1_1))


def _format_support(data: FeatureDataFormatSupport) -> FeatureDataFormatSupport:
    if data.format == Format.UNKNOWN:  # the format of buffers and of structured views
        return replace(data, support1=_BUFFER, support2=0)
    if int(data.format) in TYPED:
        return replace(data, support1=_SUPPORT1, support2=_SUPPORT2)
    return replace(data, support1=0, support2=0)


def _queue_priority(data: FeatureDataCommandQueuePriority) -> FeatureDataCommandQueuePriority:
    known = data.priority in (CommandQueuePriority.NORMAL, CommandQueuePriority.HIGH)
    return replace(data, priority_for_type_is_supported=known)


# The struct of each feature and the function that fills it in; structs without inputs are the answer.
_ANSWERS: dict[int, tuple[type, Callable[[Any], Any]]] = {
    Feature.D3D12_OPTIONS: (FeatureDataD3D12Options, lambda _: FeatureDataD3D12Options()),
    Feature.ARCHITECTURE: (FeatureDataArchitecture, _architecture),
    Feature.FEATURE_LEVELS: (FeatureDataFeatureLevels, _feature_levels),
    Feature.FORMAT_SUPPORT: (FeatureDataFormatSupport, _format_support),
    Feature.GPU_VIRTUAL_ADDRESS_SUPPORT: (
        FeatureDataGpuVirtualAddressSupport,
        lambda _: FeatureDataGpuVirtualAddressSupport(),
    ),
    Feature.SHADER_MODEL: (FeatureDataShaderModel, _shader_model),
    Feature.D3D12_OPTIONS1: (FeatureDataD3D12Options1, lambda _: FeatureDataD3D12Options1()),
    Feature.ROOT_SIGNATURE: (FeatureDataRootSignature, _root_signature),
    Feature.ARCHITECTURE1: (FeatureDataArchitecture1, _architecture),
    Feature.D3D12_OPTIONS2: (FeatureDataD3D12Options2, lambda _: FeatureDataD3D12Options2()),
    Feature.COMMAND_QUEUE_PRIORITY: (FeatureDataCommandQueuePriority, _queue_priority),
    Feature.D3D12_OPTIONS3: (FeatureDataD3D12Options3, lambda _: FeatureDataD3D12Options3()),
    Feature.EXISTING_HEAPS: (FeatureDataExistingHeaps, lambda _: FeatureDataExistingHeaps()),
    Feature.D3D12_OPTIONS4: (FeatureDataD3D12Options4, lambda _: FeatureDataD3D12Options4()),
    Feature.D3D12_OPTIONS12: (FeatureDataD3D12Options12, lambda _: FeatureDataD3D12Options12()),
    Feature.D3D12_OPTIONS16: (FeatureDataD3D12Options16, lambda _: FeatureDataD3D12Options16()),
    Feature.PREDICATION: (FeatureDataPredication, lambda _: FeatureDataPredication()),
    Feature.D3D12_TIGHT_ALIGNMENT: (FeatureDataTightAlignment, lambda _: FeatureDataTightAlignment()),
}


NO_INPUTS: Any = object()  # the inputs, if there are any, have their defaults


def answer(feature: Feature, data: Any = NO_INPUTS) -> Any:
    """The struct of ``feature`` with the device's answers; ``data`` holds the inputs, if there are any."""
    number = integer(feature, "feature")
    if number not in list(Feature):
        raise refusal(
            ids.FEATURE_DATA,
            "Feature ({given}) is not a D3D12_FEATURE.",
            operation="CheckFeatureSupport",
            rule="DEV11: ID3D12Device::CheckFeatureSupport",
            field="Feature",
            given=feature,
            expected="a member of D3D12_FEATURE",
        )
    feature = Feature(number)
    if feature not in _ANSWERS:
        raise not_implemented("CheckFeatureSupport", f"The query of feature {spell(feature)}")
    kind, respond = _ANSWERS[feature]
    if data is NO_INPUTS:
        data = kind()
    if type(data) is not kind:
        raise refusal(
            ids.FEATURE_DATA,
            f"The data of feature {spell(feature)} is not its struct.",
            operation="CheckFeatureSupport",
            rule="DEV8: ID3D12Device::CheckFeatureSupport",
            field="pFeatureSupportData",
            given=type(data).__name__,
            expected=kind.__name__,
        )
    return respond(data)
