"""Feature support: the structs of ``ID3D12Device::CheckFeatureSupport``.

The default of every output field is the device's answer.  Compute shaders run, up to shader model 6.6 and
with buffers alone; textures, drawing, raytracing and protected memory are answered as by a device without
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...frozen import Frozen
from ..types.arguments import Struct, integer
from ..types.c_types import UINT64
from ..types.enums import (
    CommandListSupportFlags,
    CommandListType,
    CommandQueuePriority,
    ConservativeRasterizationTier,
    CrossNodeSharingTier,
    ExecuteIndirectTier,
    Feature,
    FeatureLevel,
    Format,
    HeapSerializationTier,
    MeshShaderTier,
    ProtectedResourceSessionSupportFlags,
    RaytracingTier,
    RecreateAtTier,
    RenderPassTier,
    ResourceBindingTier,
    ResourceHeapTier,
    RootSignatureVersion,
    SamplerFeedbackTier,
    ShaderCacheSupportFlags,
    ShaderMinPrecisionSupport,
    ShaderModel,
    SharedResourceCompatibilityTier,
    TightAlignmentTier,
    TiledResourcesTier,
    TriState,
    VariableShadingRateTier,
    ViewInstancingTier,
    WaveMmaTier,
    WorkGraphsTier,
)
from ..types.formats import TYPED
from .info_queue import not_implemented, spell
from .rows import DEV8, DEV9, DEV10, DEV11

MAX_FEATURE_LEVEL = FeatureLevel.LEVEL_12_0
MAX_SHADER_MODEL = ShaderModel.MODEL_6_6
MIN_WAVE, MAX_WAVE = 4, 64  # lanes; a shader without the attribute WaveSize gets 16 or 32
# Descriptors of shader-visible heaps (DH2).
MAX_VIEWS = 1_000_000
MAX_SAMPLERS = 2048
VIRTUAL_ADDRESS_BITS = 47
MAX_THREAD_GROUPS = 65535  # of a dispatch, in each dimension


class FeatureDataD3D12Options(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS``."""

    double_precision_float_shader_ops: bool = True
    output_merger_logic_op: bool = False
    min_precision_support: ShaderMinPrecisionSupport = ShaderMinPrecisionSupport.PRECISION_16_BIT
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
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS1``.

    ``total_lane_count`` is the same on every machine, whatever the threads that run the groups are.
    """

    wave_ops: bool = True
    wave_lane_count_min: int = MIN_WAVE
    wave_lane_count_max: int = MAX_WAVE
    total_lane_count: int = MAX_WAVE
    expanded_compute_resource_states: bool = True
    int64_shader_ops: bool = True


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
    native_16bit_shader_ops_supported: bool = True


class FeatureDataD3D12Options5(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS5``."""

    srv_only_tiled_resource_tier3: bool = False
    render_passes_tier: RenderPassTier = RenderPassTier.TIER_0
    raytracing_tier: RaytracingTier = RaytracingTier.NOT_SUPPORTED


class FeatureDataD3D12Options6(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS6``."""

    additional_shading_rates_supported: bool = False
    per_primitive_shading_rate_supported_with_viewport_indexing: bool = False
    variable_shading_rate_tier: VariableShadingRateTier = VariableShadingRateTier.NOT_SUPPORTED
    shading_rate_image_tile_size: int = 0
    background_processing_supported: bool = False


class FeatureDataD3D12Options7(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS7``."""

    mesh_shader_tier: MeshShaderTier = MeshShaderTier.NOT_SUPPORTED
    sampler_feedback_tier: SamplerFeedbackTier = SamplerFeedbackTier.NOT_SUPPORTED


class FeatureDataD3D12Options8(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS8``."""

    unaligned_block_textures_supported: bool = False


class FeatureDataD3D12Options9(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS9``."""

    mesh_shader_pipeline_stats_supported: bool = False
    mesh_shader_supports_full_range_render_target_array_index: bool = False
    atomic_int64_on_typed_resource_supported: bool = True
    atomic_int64_on_group_shared_supported: bool = True
    derivatives_in_mesh_and_amplification_shaders_supported: bool = False
    wave_mma_tier: WaveMmaTier = WaveMmaTier.NOT_SUPPORTED


class FeatureDataD3D12Options10(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS10``."""

    variable_rate_shading_sum_combiner_supported: bool = False
    mesh_shader_per_primitive_shading_rate_supported: bool = False


class FeatureDataD3D12Options11(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS11``."""

    atomic_int64_on_descriptor_heap_resource_supported: bool = True


class FeatureDataD3D12Options12(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS12``."""

    ms_primitives_pipeline_statistic_includes_culled_primitives: TriState = TriState.UNKNOWN
    enhanced_barriers_supported: bool = False
    relaxed_format_casting_supported: bool = False


class FeatureDataD3D12Options13(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS13``."""

    unrestricted_buffer_texture_copy_pitch_supported: bool = False
    unrestricted_vertex_element_alignment_supported: bool = False
    inverted_viewport_height_flips_y_supported: bool = False
    inverted_viewport_depth_flips_z_supported: bool = False
    texture_copy_between_dimensions_supported: bool = False
    alpha_blend_factor_supported: bool = False


class FeatureDataD3D12Options14(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS14``."""

    advanced_texture_ops_supported: bool = False
    writeable_msaa_textures_supported: bool = False
    independent_front_and_back_stencil_ref_mask_supported: bool = False


class FeatureDataD3D12Options15(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS15``."""

    triangle_fan_supported: bool = False
    dynamic_index_buffer_strip_cut_supported: bool = False


class FeatureDataD3D12Options16(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS16``."""

    dynamic_depth_bias_supported: bool = False
    gpu_upload_heap_supported: bool = True


class FeatureDataD3D12Options17(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS17``."""

    non_normalized_coordinate_samplers_supported: bool = False
    manual_write_tracking_resource_supported: bool = False


class FeatureDataD3D12Options18(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS18``."""

    render_passes_valid: bool = False


class FeatureDataD3D12Options19(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS19``."""

    mismatching_output_dimensions_supported: bool = False
    supported_sample_counts_with_no_outputs: int = 1
    point_sampling_addresses_never_round_up: bool = False
    rasterizer_desc2_supported: bool = False
    narrow_quadrilateral_lines_supported: bool = False
    aniso_filter_with_point_mip_supported: bool = False
    max_sampler_descriptor_heap_size: int = MAX_SAMPLERS
    max_sampler_descriptor_heap_size_with_static_samplers: int = MAX_SAMPLERS
    max_view_descriptor_heap_size: int = MAX_VIEWS
    compute_only_custom_heap_supported: bool = False


class FeatureDataD3D12Options20(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS20``."""

    compute_only_write_watch_supported: bool = False
    recreate_at_tier: RecreateAtTier = RecreateAtTier.NOT_SUPPORTED


class FeatureDataD3D12Options21(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS21``."""

    work_graphs_tier: WorkGraphsTier = WorkGraphsTier.NOT_SUPPORTED
    execute_indirect_tier: ExecuteIndirectTier = ExecuteIndirectTier.TIER_1_0
    sample_cmp_gradient_and_bias_supported: bool = False
    extended_command_info_supported: bool = False


class FeatureDataD3D12Options22(Frozen):
    """``D3D12_FEATURE_DATA_D3D12_OPTIONS22``."""

    shader_execution_reordering_actually_reorders: bool = False
    create_byte_offset_views_supported: bool = False
    max_1d_dispatch_size: int = MAX_THREAD_GROUPS
    max_1d_dispatch_mesh_size: int = MAX_THREAD_GROUPS


class FeatureDataExistingHeaps(Frozen):
    """``D3D12_FEATURE_DATA_EXISTING_HEAPS``."""

    supported: bool = False


class FeatureDataMultisampleQualityLevels(Struct):
    """``D3D12_FEATURE_DATA_MULTISAMPLE_QUALITY_LEVELS``: one level of one sample, none of more samples."""

    format: Format = Format.UNKNOWN
    sample_count: int = 1
    flags: int = 0
    num_quality_levels: int = 0


class FeatureDataProtectedResourceSessionSupport(Struct):
    """``D3D12_FEATURE_DATA_PROTECTED_RESOURCE_SESSION_SUPPORT``."""

    node_index: int = 0
    support: ProtectedResourceSessionSupportFlags = ProtectedResourceSessionSupportFlags.NONE


class FeatureDataProtectedResourceSessionTypeCount(Struct):
    """``D3D12_FEATURE_DATA_PROTECTED_RESOURCE_SESSION_TYPE_COUNT``."""

    node_index: int = 0
    count: int = 0


class FeatureDataProtectedResourceSessionTypes(Struct):
    """``D3D12_FEATURE_DATA_PROTECTED_RESOURCE_SESSION_TYPES``.

    ``count`` must be 0, the answer of :class:`FeatureDataProtectedResourceSessionTypeCount`; nothing is
    written to the address ``types``.
    """

    node_index: int = 0
    count: int = 0
    types: UINT64 = 0


class FeatureDataSerialization(Struct):
    """``D3D12_FEATURE_DATA_SERIALIZATION``."""

    node_index: int = 0
    heap_serialization_tier: HeapSerializationTier = HeapSerializationTier.TIER_0


class FeatureDataShaderCache(Frozen):
    """``D3D12_FEATURE_DATA_SHADER_CACHE``."""

    support_flags: ShaderCacheSupportFlags = ShaderCacheSupportFlags.NONE


class FeatureDataCrossNode(Frozen):
    """``D3D12_FEATURE_DATA_CROSS_NODE``."""

    sharing_tier: CrossNodeSharingTier = CrossNodeSharingTier.NOT_SUPPORTED
    atomic_shader_instructions: bool = False


class FeatureDataDisplayable(Frozen):
    """``D3D12_FEATURE_DATA_DISPLAYABLE``."""

    displayable_texture: bool = False
    shared_resource_compatibility_tier: SharedResourceCompatibilityTier = (
        SharedResourceCompatibilityTier.TIER_0
    )


class FeatureDataTightAlignment(Frozen):
    """``D3D12_FEATURE_DATA_TIGHT_ALIGNMENT``."""

    support_tier: TightAlignmentTier = TightAlignmentTier.NOT_SUPPORTED


# D3D12_FORMAT_SUPPORT1_BUFFER, _SHADER_LOAD, _TYPED_UNORDERED_ACCESS_VIEW
_BUFFER = 0x1
_SUPPORT1 = _BUFFER | 0x100 | 0x2000000
_SUPPORT2 = 0x40 | 0x80  # D3D12_FORMAT_SUPPORT2_UAV_TYPED_LOAD, _STORE
# _UAV_ATOMIC_ADD, _BITWISE_OPS, _COMPARE_STORE_OR_COMPARE_EXCHANGE, _EXCHANGE, with _SIGNED_MIN_OR_MAX or
# _UNSIGNED_MIN_OR_MAX
_ATOMICS = {Format.R32_SINT: 0x1F, Format.R32_UINT: 0x2F}


def _own(data: Any) -> Any:
    """The device's answer for a struct that has no inputs, or a node only."""
    if getattr(data, "node_index", 0) != 0:
        raise DEV9.node_index(given=data.node_index)
    return type(data)()


def _feature_levels(data: FeatureDataFeatureLevels) -> FeatureDataFeatureLevels:
    if not data.feature_levels_requested:
        raise DEV9.num_feature_levels()
    supported = [level for level in data.feature_levels_requested if level <= MAX_FEATURE_LEVEL]
    if not supported:
        levels = " ".join(
            spell(level) if isinstance(level, FeatureLevel) else f"0x{level:X}"
            for level in data.feature_levels_requested
        )
        raise DEV10.p_feature_levels_requested(given=levels, expected=f"one up to {MAX_FEATURE_LEVEL.name}")
    return replace(data, max_supported_feature_level=max(supported))


def _shader_model(data: FeatureDataShaderModel) -> FeatureDataShaderModel:
    if data.highest_shader_model not in list(ShaderModel)[1:]:
        raise DEV8.highest_shader_model(given=data.highest_shader_model)
    return FeatureDataShaderModel(min(data.highest_shader_model, MAX_SHADER_MODEL))


def _root_signature(data: FeatureDataRootSignature) -> FeatureDataRootSignature:
    if data.highest_version not in list(RootSignatureVersion):
        raise DEV8.highest_version(given=data.highest_version)
    return FeatureDataRootSignature(min(data.highest_version, RootSignatureVersion.VERSION_1_1))


def _format_support(data: FeatureDataFormatSupport) -> FeatureDataFormatSupport:
    if data.format == Format.UNKNOWN:  # the format of buffers and of structured views
        return replace(data, support1=_BUFFER, support2=0)
    if int(data.format) in TYPED:
        atomics = _ATOMICS.get(Format(data.format), 0)
        return replace(data, support1=_SUPPORT1, support2=_SUPPORT2 | atomics)
    return replace(data, support1=0, support2=0)


def _queue_priority(data: FeatureDataCommandQueuePriority) -> FeatureDataCommandQueuePriority:
    known = data.priority in (CommandQueuePriority.NORMAL, CommandQueuePriority.HIGH)
    return replace(data, priority_for_type_is_supported=known)


def _multisample(data: FeatureDataMultisampleQualityLevels) -> FeatureDataMultisampleQualityLevels:
    return replace(data, num_quality_levels=int(data.sample_count == 1))


def _session_types(
    data: FeatureDataProtectedResourceSessionTypes,
) -> FeatureDataProtectedResourceSessionTypes:
    count = _own(FeatureDataProtectedResourceSessionTypeCount(data.node_index)).count
    if data.count != count:
        raise DEV9.count(
            given=data.count, expected=f"{count}, as PROTECTED_RESOURCE_SESSION_TYPE_COUNT answers"
        )
    return data


# The struct of each feature and the function that fills it in.
_ANSWERS: dict[int, tuple[type[Frozen], Callable[[Any], Any]]] = {
    Feature.D3D12_OPTIONS: (FeatureDataD3D12Options, _own),
    Feature.ARCHITECTURE: (FeatureDataArchitecture, _own),
    Feature.FEATURE_LEVELS: (FeatureDataFeatureLevels, _feature_levels),
    Feature.FORMAT_SUPPORT: (FeatureDataFormatSupport, _format_support),
    Feature.MULTISAMPLE_QUALITY_LEVELS: (FeatureDataMultisampleQualityLevels, _multisample),
    Feature.GPU_VIRTUAL_ADDRESS_SUPPORT: (FeatureDataGpuVirtualAddressSupport, _own),
    Feature.SHADER_MODEL: (FeatureDataShaderModel, _shader_model),
    Feature.D3D12_OPTIONS1: (FeatureDataD3D12Options1, _own),
    Feature.PROTECTED_RESOURCE_SESSION_SUPPORT: (FeatureDataProtectedResourceSessionSupport, _own),
    Feature.ROOT_SIGNATURE: (FeatureDataRootSignature, _root_signature),
    Feature.ARCHITECTURE1: (FeatureDataArchitecture1, _own),
    Feature.D3D12_OPTIONS2: (FeatureDataD3D12Options2, _own),
    Feature.COMMAND_QUEUE_PRIORITY: (FeatureDataCommandQueuePriority, _queue_priority),
    Feature.SHADER_CACHE: (FeatureDataShaderCache, _own),
    Feature.D3D12_OPTIONS3: (FeatureDataD3D12Options3, _own),
    Feature.EXISTING_HEAPS: (FeatureDataExistingHeaps, _own),
    Feature.D3D12_OPTIONS4: (FeatureDataD3D12Options4, _own),
    Feature.SERIALIZATION: (FeatureDataSerialization, _own),
    Feature.CROSS_NODE: (FeatureDataCrossNode, _own),
    Feature.D3D12_OPTIONS5: (FeatureDataD3D12Options5, _own),
    Feature.DISPLAYABLE: (FeatureDataDisplayable, _own),
    Feature.D3D12_OPTIONS6: (FeatureDataD3D12Options6, _own),
    Feature.D3D12_OPTIONS7: (FeatureDataD3D12Options7, _own),
    Feature.PROTECTED_RESOURCE_SESSION_TYPE_COUNT: (FeatureDataProtectedResourceSessionTypeCount, _own),
    Feature.PROTECTED_RESOURCE_SESSION_TYPES: (FeatureDataProtectedResourceSessionTypes, _session_types),
    Feature.D3D12_OPTIONS8: (FeatureDataD3D12Options8, _own),
    Feature.D3D12_OPTIONS9: (FeatureDataD3D12Options9, _own),
    Feature.D3D12_OPTIONS10: (FeatureDataD3D12Options10, _own),
    Feature.D3D12_OPTIONS11: (FeatureDataD3D12Options11, _own),
    Feature.D3D12_OPTIONS12: (FeatureDataD3D12Options12, _own),
    Feature.D3D12_OPTIONS13: (FeatureDataD3D12Options13, _own),
    Feature.D3D12_OPTIONS14: (FeatureDataD3D12Options14, _own),
    Feature.D3D12_OPTIONS15: (FeatureDataD3D12Options15, _own),
    Feature.D3D12_OPTIONS16: (FeatureDataD3D12Options16, _own),
    Feature.D3D12_OPTIONS17: (FeatureDataD3D12Options17, _own),
    Feature.D3D12_OPTIONS18: (FeatureDataD3D12Options18, _own),
    Feature.D3D12_OPTIONS19: (FeatureDataD3D12Options19, _own),
    Feature.D3D12_OPTIONS20: (FeatureDataD3D12Options20, _own),
    Feature.D3D12_OPTIONS21: (FeatureDataD3D12Options21, _own),
    Feature.D3D12_OPTIONS22: (FeatureDataD3D12Options22, _own),
    Feature.D3D12_TIGHT_ALIGNMENT: (FeatureDataTightAlignment, _own),
}


NO_INPUTS: Any = object()  # the inputs, if there are any, have their defaults


def struct_of(feature: Feature) -> type[Frozen]:
    """The struct of a feature.

    Raises :class:`dmlemu.Error`: E_INVALIDARG for no feature (DEV11), E_NOTIMPL for one that is not emulated.
    """
    number = integer(feature, "feature")
    if number not in list(Feature):
        raise DEV11.feature(given=feature)
    if number not in _ANSWERS:
        raise not_implemented("CheckFeatureSupport", f"The query of feature {spell(Feature(number))}")
    return _ANSWERS[number][0]


def answer(feature: Feature, data: Any = NO_INPUTS) -> Any:
    """The struct of ``feature`` with the device's answers; ``data`` holds the inputs, if there are any."""
    kind = struct_of(feature)
    if data is NO_INPUTS:
        data = kind()
    if type(data) is not kind:
        raise DEV8.feature_support_data(
            given=type(data).__name__, expected=kind.__name__, feature=spell(Feature(feature))
        )
    return _ANSWERS[integer(feature, "feature")][1](data)
