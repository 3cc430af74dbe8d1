"""The enums of ``d3d12.h`` that buffers, queues and compute need: members without prefix, numbers unchanged.

A member that would start with a digit starts with the last word of its prefix (``TIER_2``, ``LEVEL_12_0``).
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

from ...diagnostics.message_id import MessageId as MessageId


class HeapType(IntEnum):
    """Mirrors ``D3D12_HEAP_TYPE``."""

    DEFAULT = 1
    UPLOAD = 2
    READBACK = 3
    CUSTOM = 4
    GPU_UPLOAD = 5


class CpuPageProperty(IntEnum):
    """Mirrors ``D3D12_CPU_PAGE_PROPERTY``."""

    UNKNOWN = 0
    NOT_AVAILABLE = 1
    WRITE_COMBINE = 2
    WRITE_BACK = 3


class MemoryPool(IntEnum):
    """Mirrors ``D3D12_MEMORY_POOL``."""

    UNKNOWN = 0
    L0 = 1
    L1 = 2


class HeapFlags(IntFlag):
    """Mirrors ``D3D12_HEAP_FLAGS``."""

    NONE = 0
    SHARED = 1
    DENY_BUFFERS = 4
    ALLOW_DISPLAY = 8
    SHARED_CROSS_ADAPTER = 0x20
    DENY_RT_DS_TEXTURES = 0x40
    DENY_NON_RT_DS_TEXTURES = 0x80
    HARDWARE_PROTECTED = 0x100
    ALLOW_WRITE_WATCH = 0x200
    ALLOW_SHADER_ATOMICS = 0x400
    CREATE_NOT_RESIDENT = 0x800
    CREATE_NOT_ZEROED = 0x1000
    TOOLS_USE_MANUAL_WRITE_TRACKING = 0x2000
    ALLOW_ALL_BUFFERS_AND_TEXTURES = 0
    ALLOW_ONLY_BUFFERS = 0xC0
    ALLOW_ONLY_NON_RT_DS_TEXTURES = 0x44
    ALLOW_ONLY_RT_DS_TEXTURES = 0x84


class ResourceDimension(IntEnum):
    """Mirrors ``D3D12_RESOURCE_DIMENSION``."""

    UNKNOWN = 0
    BUFFER = 1
    TEXTURE1D = 2
    TEXTURE2D = 3
    TEXTURE3D = 4


class TextureLayout(IntEnum):
    """Mirrors ``D3D12_TEXTURE_LAYOUT``."""

    UNKNOWN = 0
    ROW_MAJOR = 1
    LAYOUT_64KB_UNDEFINED_SWIZZLE = 2
    LAYOUT_64KB_STANDARD_SWIZZLE = 3


class ResourceFlags(IntFlag):
    """Mirrors ``D3D12_RESOURCE_FLAGS``."""

    NONE = 0
    ALLOW_RENDER_TARGET = 1
    ALLOW_DEPTH_STENCIL = 2
    ALLOW_UNORDERED_ACCESS = 4
    DENY_SHADER_RESOURCE = 8
    ALLOW_CROSS_ADAPTER = 0x10
    ALLOW_SIMULTANEOUS_ACCESS = 0x20
    VIDEO_DECODE_REFERENCE_ONLY = 0x40
    VIDEO_ENCODE_REFERENCE_ONLY = 0x80
    RAYTRACING_ACCELERATION_STRUCTURE = 0x100
    USE_TIGHT_ALIGNMENT = 0x400


class ResourceStates(IntFlag):
    """Mirrors ``D3D12_RESOURCE_STATES``."""

    COMMON = 0
    VERTEX_AND_CONSTANT_BUFFER = 1
    INDEX_BUFFER = 2
    RENDER_TARGET = 4
    UNORDERED_ACCESS = 8
    DEPTH_WRITE = 0x10
    DEPTH_READ = 0x20
    NON_PIXEL_SHADER_RESOURCE = 0x40
    PIXEL_SHADER_RESOURCE = 0x80
    STREAM_OUT = 0x100
    INDIRECT_ARGUMENT = 0x200
    COPY_DEST = 0x400
    COPY_SOURCE = 0x800
    RESOLVE_DEST = 0x1000
    RESOLVE_SOURCE = 0x2000
    RAYTRACING_ACCELERATION_STRUCTURE = 0x400000
    SHADING_RATE_SOURCE = 0x1000000
    GENERIC_READ = 0xAC3
    ALL_SHADER_RESOURCE = 0xC0
    PRESENT = 0
    PREDICATION = 0x200
    VIDEO_DECODE_READ = 0x10000
    VIDEO_DECODE_WRITE = 0x20000
    VIDEO_PROCESS_READ = 0x40000
    VIDEO_PROCESS_WRITE = 0x80000
    VIDEO_ENCODE_READ = 0x200000
    VIDEO_ENCODE_WRITE = 0x800000


class ResourceBarrierType(IntEnum):
    """Mirrors ``D3D12_RESOURCE_BARRIER_TYPE``."""

    TRANSITION = 0
    ALIASING = 1
    UAV = 2


class ResourceBarrierFlags(IntFlag):
    """Mirrors ``D3D12_RESOURCE_BARRIER_FLAGS``."""

    NONE = 0
    BEGIN_ONLY = 1
    END_ONLY = 2


class CommandListType(IntEnum):
    """Mirrors ``D3D12_COMMAND_LIST_TYPE``."""

    DIRECT = 0
    BUNDLE = 1
    COMPUTE = 2
    COPY = 3
    VIDEO_DECODE = 4
    VIDEO_PROCESS = 5
    VIDEO_ENCODE = 6
    NONE = -1


class CommandListFlags(IntFlag):
    """Mirrors ``D3D12_COMMAND_LIST_FLAGS``."""

    NONE = 0


class CommandListSupportFlags(IntFlag):
    """Mirrors ``D3D12_COMMAND_LIST_SUPPORT_FLAGS``."""

    NONE = 0
    DIRECT = 1
    BUNDLE = 2
    COMPUTE = 4
    COPY = 8
    VIDEO_DECODE = 0x10
    VIDEO_PROCESS = 0x20
    VIDEO_ENCODE = 0x40


class CommandQueueFlags(IntFlag):
    """Mirrors ``D3D12_COMMAND_QUEUE_FLAGS``."""

    NONE = 0
    DISABLE_GPU_TIMEOUT = 1
    ALLOW_DYNAMIC_PRIORITY = 2


class CommandQueuePriority(IntEnum):
    """Mirrors ``D3D12_COMMAND_QUEUE_PRIORITY``."""

    NORMAL = 0
    HIGH = 100
    GLOBAL_REALTIME = 10000


class FenceFlags(IntFlag):
    """Mirrors ``D3D12_FENCE_FLAGS``."""

    NONE = 0
    SHARED = 1
    SHARED_CROSS_ADAPTER = 2
    NON_MONITORED = 4


class MultipleFenceWaitFlags(IntFlag):
    """Mirrors ``D3D12_MULTIPLE_FENCE_WAIT_FLAGS``."""

    NONE = 0
    ANY = 1
    ALL = 0


class ResidencyFlags(IntFlag):
    """Mirrors ``D3D12_RESIDENCY_FLAGS``."""

    NONE = 0
    DENY_OVERBUDGET = 1


class BackgroundProcessingMode(IntEnum):
    """Mirrors ``D3D12_BACKGROUND_PROCESSING_MODE``."""

    ALLOWED = 0
    ALLOW_INTRUSIVE_MEASUREMENTS = 1
    DISABLE_BACKGROUND_WORK = 2
    DISABLE_PROFILING_BY_SYSTEM = 3


class MeasurementsAction(IntEnum):
    """Mirrors ``D3D12_MEASUREMENTS_ACTION``."""

    KEEP_ALL = 0
    COMMIT_RESULTS = 1
    COMMIT_RESULTS_HIGH_PRIORITY = 2
    DISCARD_PREVIOUS = 3


class ShaderCacheKindFlags(IntFlag):
    """Mirrors ``D3D12_SHADER_CACHE_KIND_FLAGS``."""

    IMPLICIT_D3D_CACHE_FOR_DRIVER = 1
    IMPLICIT_D3D_CONVERSIONS = 2
    IMPLICIT_DRIVER_MANAGED = 4
    APPLICATION_MANAGED = 8


class ShaderCacheControlFlags(IntFlag):
    """Mirrors ``D3D12_SHADER_CACHE_CONTROL_FLAGS``."""

    DISABLE = 1
    ENABLE = 2
    CLEAR = 4


class ShaderCacheSupportFlags(IntFlag):
    """Mirrors ``D3D12_SHADER_CACHE_SUPPORT_FLAGS``."""

    NONE = 0
    SINGLE_PSO = 1
    LIBRARY = 2
    AUTOMATIC_INPROC_CACHE = 4
    AUTOMATIC_DISK_CACHE = 8
    DRIVER_MANAGED_CACHE = 0x10
    SHADER_CONTROL_CLEAR = 0x20
    SHADER_SESSION_DELETE = 0x40


class SegmentGroup(IntEnum):
    """Mirrors ``DXCoreSegmentGroup``: the adapter's own memory, or the system's."""

    LOCAL = 0
    NON_LOCAL = 1


class DeviceFlags(IntFlag):
    """Mirrors ``D3D12_DEVICE_FLAGS``, as far as devices here have them."""

    NONE = 0
    DEBUG_LAYER_ENABLED = 0x1
    GPU_BASED_VALIDATION_ENABLED = 0x2


class DescriptorHeapType(IntEnum):
    """Mirrors ``D3D12_DESCRIPTOR_HEAP_TYPE``."""

    CBV_SRV_UAV = 0
    SAMPLER = 1
    RTV = 2
    DSV = 3


class DescriptorHeapFlags(IntFlag):
    """Mirrors ``D3D12_DESCRIPTOR_HEAP_FLAGS``."""

    NONE = 0
    SHADER_VISIBLE = 1


class BufferUavFlags(IntFlag):
    """Mirrors ``D3D12_BUFFER_UAV_FLAGS``."""

    NONE = 0
    RAW = 1


class BufferSrvFlags(IntFlag):
    """Mirrors ``D3D12_BUFFER_SRV_FLAGS``."""

    NONE = 0
    RAW = 1


class UavDimension(IntEnum):
    """Mirrors ``D3D12_UAV_DIMENSION``."""

    UNKNOWN = 0
    BUFFER = 1
    TEXTURE1D = 2
    TEXTURE1DARRAY = 3
    TEXTURE2D = 4
    TEXTURE2DARRAY = 5
    TEXTURE2DMS = 6
    TEXTURE2DMSARRAY = 7
    TEXTURE3D = 8
    BUFFER_BYTE_OFFSET = 9


class SrvDimension(IntEnum):
    """Mirrors ``D3D12_SRV_DIMENSION``."""

    UNKNOWN = 0
    BUFFER = 1
    TEXTURE1D = 2
    TEXTURE1DARRAY = 3
    TEXTURE2D = 4
    TEXTURE2DARRAY = 5
    TEXTURE2DMS = 6
    TEXTURE2DMSARRAY = 7
    TEXTURE3D = 8
    TEXTURECUBE = 9
    TEXTURECUBEARRAY = 10
    RAYTRACING_ACCELERATION_STRUCTURE = 11
    BUFFER_BYTE_OFFSET = 12


class QueryHeapFlags(IntFlag):
    """Mirrors ``D3D12_QUERY_HEAP_FLAGS``."""

    NONE = 0
    CPU_RESOLVE = 1


class QueryHeapType(IntEnum):
    """Mirrors ``D3D12_QUERY_HEAP_TYPE``."""

    OCCLUSION = 0
    TIMESTAMP = 1
    PIPELINE_STATISTICS = 2
    SO_STATISTICS = 3
    VIDEO_DECODE_STATISTICS = 4
    COPY_QUEUE_TIMESTAMP = 5
    PIPELINE_STATISTICS1 = 7


class QueryType(IntEnum):
    """Mirrors ``D3D12_QUERY_TYPE``."""

    OCCLUSION = 0
    BINARY_OCCLUSION = 1
    TIMESTAMP = 2
    PIPELINE_STATISTICS = 3
    SO_STATISTICS_STREAM0 = 4
    SO_STATISTICS_STREAM1 = 5
    SO_STATISTICS_STREAM2 = 6
    SO_STATISTICS_STREAM3 = 7
    VIDEO_DECODE_STATISTICS = 8
    PIPELINE_STATISTICS1 = 10


class TileRangeFlags(IntFlag):
    """Mirrors ``D3D12_TILE_RANGE_FLAGS``."""

    NONE = 0
    NULL = 1
    SKIP = 2
    REUSE_SINGLE_TILE = 4


class TileMappingFlags(IntFlag):
    """Mirrors ``D3D12_TILE_MAPPING_FLAGS``."""

    NONE = 0
    NO_HAZARD = 1


class WriteBufferImmediateMode(IntEnum):
    """Mirrors ``D3D12_WRITEBUFFERIMMEDIATE_MODE``."""

    DEFAULT = 0
    MARKER_IN = 1
    MARKER_OUT = 2


class Feature(IntEnum):
    """Mirrors ``D3D12_FEATURE``."""

    D3D12_OPTIONS = 0
    ARCHITECTURE = 1
    FEATURE_LEVELS = 2
    FORMAT_SUPPORT = 3
    MULTISAMPLE_QUALITY_LEVELS = 4
    FORMAT_INFO = 5
    GPU_VIRTUAL_ADDRESS_SUPPORT = 6
    SHADER_MODEL = 7
    D3D12_OPTIONS1 = 8
    PROTECTED_RESOURCE_SESSION_SUPPORT = 10
    ROOT_SIGNATURE = 12
    ARCHITECTURE1 = 16
    D3D12_OPTIONS2 = 18
    SHADER_CACHE = 19
    COMMAND_QUEUE_PRIORITY = 20
    D3D12_OPTIONS3 = 21
    EXISTING_HEAPS = 22
    D3D12_OPTIONS4 = 23
    SERIALIZATION = 24
    CROSS_NODE = 25
    D3D12_OPTIONS5 = 27
    DISPLAYABLE = 28
    D3D12_OPTIONS6 = 30
    QUERY_META_COMMAND = 31
    D3D12_OPTIONS7 = 32
    PROTECTED_RESOURCE_SESSION_TYPE_COUNT = 33
    PROTECTED_RESOURCE_SESSION_TYPES = 34
    D3D12_OPTIONS8 = 36
    D3D12_OPTIONS9 = 37
    D3D12_OPTIONS10 = 39
    D3D12_OPTIONS11 = 40
    D3D12_OPTIONS12 = 41
    D3D12_OPTIONS13 = 42
    D3D12_OPTIONS14 = 43
    D3D12_OPTIONS15 = 44
    D3D12_OPTIONS16 = 45
    D3D12_OPTIONS17 = 46
    D3D12_OPTIONS18 = 47
    D3D12_OPTIONS19 = 48
    D3D12_OPTIONS20 = 49
    PREDICATION = 50
    PLACED_RESOURCE_SUPPORT_INFO = 51
    HARDWARE_COPY = 52
    D3D12_OPTIONS21 = 53
    D3D12_TIGHT_ALIGNMENT = 54
    APPLICATION_SPECIFIC_DRIVER_STATE = 56
    BYTECODE_BYPASS_HASH_SUPPORTED = 57
    SHADER_CACHE_ABI_SUPPORT = 61
    BARRIER_LAYOUT = 64
    D3D12_OPTIONS22 = 65


class ShaderMinPrecisionSupport(IntFlag):
    """Mirrors ``D3D12_SHADER_MIN_PRECISION_SUPPORT``."""

    NONE = 0
    PRECISION_10_BIT = 1
    PRECISION_16_BIT = 2


class TiledResourcesTier(IntEnum):
    """Mirrors ``D3D12_TILED_RESOURCES_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1 = 1
    TIER_2 = 2
    TIER_3 = 3
    TIER_4 = 4


class ResourceBindingTier(IntEnum):
    """Mirrors ``D3D12_RESOURCE_BINDING_TIER``."""

    TIER_1 = 1
    TIER_2 = 2
    TIER_3 = 3


class ConservativeRasterizationTier(IntEnum):
    """Mirrors ``D3D12_CONSERVATIVE_RASTERIZATION_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1 = 1
    TIER_2 = 2
    TIER_3 = 3


class CrossNodeSharingTier(IntEnum):
    """Mirrors ``D3D12_CROSS_NODE_SHARING_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1_EMULATED = 1
    TIER_1 = 2
    TIER_2 = 3
    TIER_3 = 4


class ResourceHeapTier(IntEnum):
    """Mirrors ``D3D12_RESOURCE_HEAP_TIER``."""

    TIER_1 = 1
    TIER_2 = 2


class SharedResourceCompatibilityTier(IntEnum):
    """Mirrors ``D3D12_SHARED_RESOURCE_COMPATIBILITY_TIER``."""

    TIER_0 = 0
    TIER_1 = 1
    TIER_2 = 2


class ViewInstancingTier(IntEnum):
    """Mirrors ``D3D12_VIEW_INSTANCING_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1 = 1
    TIER_2 = 2
    TIER_3 = 3


class ProtectedResourceSessionSupportFlags(IntFlag):
    """Mirrors ``D3D12_PROTECTED_RESOURCE_SESSION_SUPPORT_FLAGS``."""

    NONE = 0
    SUPPORTED = 1


class HeapSerializationTier(IntEnum):
    """Mirrors ``D3D12_HEAP_SERIALIZATION_TIER``."""

    TIER_0 = 0
    TIER_10 = 10


class RenderPassTier(IntEnum):
    """Mirrors ``D3D12_RENDER_PASS_TIER``."""

    TIER_0 = 0
    TIER_1 = 1
    TIER_2 = 2


class RaytracingTier(IntEnum):
    """Mirrors ``D3D12_RAYTRACING_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1_0 = 10
    TIER_1_1 = 11
    TIER_1_2 = 12


class VariableShadingRateTier(IntEnum):
    """Mirrors ``D3D12_VARIABLE_SHADING_RATE_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1 = 1
    TIER_2 = 2


class MeshShaderTier(IntEnum):
    """Mirrors ``D3D12_MESH_SHADER_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1 = 10


class SamplerFeedbackTier(IntEnum):
    """Mirrors ``D3D12_SAMPLER_FEEDBACK_TIER``."""

    NOT_SUPPORTED = 0
    TIER_0_9 = 90
    TIER_1_0 = 100


class WaveMmaTier(IntEnum):
    """Mirrors ``D3D12_WAVE_MMA_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1_0 = 10


class RecreateAtTier(IntEnum):
    """Mirrors ``D3D12_RECREATE_AT_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1 = 1


class WorkGraphsTier(IntEnum):
    """Mirrors ``D3D12_WORK_GRAPHS_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1_0 = 10


class ExecuteIndirectTier(IntEnum):
    """Mirrors ``D3D12_EXECUTE_INDIRECT_TIER``."""

    TIER_1_0 = 10
    TIER_1_1 = 11


class TightAlignmentTier(IntEnum):
    """Mirrors ``D3D12_TIGHT_ALIGNMENT_TIER``."""

    NOT_SUPPORTED = 0
    TIER_1 = 1


class TriState(IntEnum):
    """Mirrors ``D3D12_TRI_STATE``."""

    UNKNOWN = -1
    FALSE = 0
    TRUE = 1


class FeatureLevel(IntEnum):
    """Mirrors ``D3D_FEATURE_LEVEL``."""

    LEVEL_1_0_GENERIC = 0x100
    LEVEL_1_0_CORE = 0x1000
    LEVEL_9_1 = 0x9100
    LEVEL_9_2 = 0x9200
    LEVEL_9_3 = 0x9300
    LEVEL_10_0 = 0xA000
    LEVEL_10_1 = 0xA100
    LEVEL_11_0 = 0xB000
    LEVEL_11_1 = 0xB100
    LEVEL_12_0 = 0xC000
    LEVEL_12_1 = 0xC100
    LEVEL_12_2 = 0xC200


class ShaderModel(IntEnum):
    """Mirrors ``D3D_SHADER_MODEL``."""

    NONE = 0
    MODEL_5_1 = 0x51
    MODEL_6_0 = 0x60
    MODEL_6_1 = 0x61
    MODEL_6_2 = 0x62
    MODEL_6_3 = 0x63
    MODEL_6_4 = 0x64
    MODEL_6_5 = 0x65
    MODEL_6_6 = 0x66
    MODEL_6_7 = 0x67
    MODEL_6_8 = 0x68
    MODEL_6_9 = 0x69
    MODEL_6_10 = 0x6A


class RootSignatureVersion(IntEnum):
    """Mirrors ``D3D_ROOT_SIGNATURE_VERSION``."""

    VERSION_1_0 = 1
    VERSION_1_1 = 2
    VERSION_1_2 = 3


class RootSignatureFlags(IntFlag):
    """Mirrors ``D3D12_ROOT_SIGNATURE_FLAGS``."""

    NONE = 0
    ALLOW_INPUT_ASSEMBLER_INPUT_LAYOUT = 1
    DENY_VERTEX_SHADER_ROOT_ACCESS = 2
    DENY_HULL_SHADER_ROOT_ACCESS = 4
    DENY_DOMAIN_SHADER_ROOT_ACCESS = 8
    DENY_GEOMETRY_SHADER_ROOT_ACCESS = 0x10
    DENY_PIXEL_SHADER_ROOT_ACCESS = 0x20
    ALLOW_STREAM_OUTPUT = 0x40
    LOCAL_ROOT_SIGNATURE = 0x80
    DENY_AMPLIFICATION_SHADER_ROOT_ACCESS = 0x100
    DENY_MESH_SHADER_ROOT_ACCESS = 0x200
    CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED = 0x400
    SAMPLER_HEAP_DIRECTLY_INDEXED = 0x800


class RootParameterType(IntEnum):
    """Mirrors ``D3D12_ROOT_PARAMETER_TYPE``."""

    DESCRIPTOR_TABLE = 0
    TYPE_32BIT_CONSTANTS = 1
    CBV = 2
    SRV = 3
    UAV = 4


class RootDescriptorFlags(IntFlag):
    """Mirrors ``D3D12_ROOT_DESCRIPTOR_FLAGS``."""

    NONE = 0
    DATA_VOLATILE = 2
    DATA_STATIC_WHILE_SET_AT_EXECUTE = 4
    DATA_STATIC = 8


class DescriptorRangeType(IntEnum):
    """Mirrors ``D3D12_DESCRIPTOR_RANGE_TYPE``."""

    SRV = 0
    UAV = 1
    CBV = 2
    SAMPLER = 3


class DescriptorRangeFlags(IntFlag):
    """Mirrors ``D3D12_DESCRIPTOR_RANGE_FLAGS``."""

    NONE = 0
    DESCRIPTORS_VOLATILE = 1
    DATA_VOLATILE = 2
    DATA_STATIC_WHILE_SET_AT_EXECUTE = 4
    DATA_STATIC = 8
    DESCRIPTORS_STATIC_KEEPING_BUFFER_BOUNDS_CHECKS = 0x10000


class ShaderVisibility(IntEnum):
    """Mirrors ``D3D12_SHADER_VISIBILITY``; a compute shader sees only what is visible to ALL."""

    ALL = 0
    VERTEX = 1
    HULL = 2
    DOMAIN = 3
    GEOMETRY = 4
    PIXEL = 5
    AMPLIFICATION = 6
    MESH = 7


class Filter(IntEnum):
    """Mirrors ``D3D12_FILTER``."""

    MIN_MAG_MIP_POINT = 0
    MIN_MAG_POINT_MIP_LINEAR = 1
    MIN_POINT_MAG_LINEAR_MIP_POINT = 4
    MIN_POINT_MAG_MIP_LINEAR = 5
    MIN_LINEAR_MAG_MIP_POINT = 0x10
    MIN_LINEAR_MAG_POINT_MIP_LINEAR = 0x11
    MIN_MAG_LINEAR_MIP_POINT = 0x14
    MIN_MAG_MIP_LINEAR = 0x15
    ANISOTROPIC = 0x55
    COMPARISON_MIN_MAG_MIP_POINT = 0x80
    COMPARISON_MIN_MAG_POINT_MIP_LINEAR = 0x81
    COMPARISON_MIN_POINT_MAG_LINEAR_MIP_POINT = 0x84
    COMPARISON_MIN_POINT_MAG_MIP_LINEAR = 0x85
    COMPARISON_MIN_LINEAR_MAG_MIP_POINT = 0x90
    COMPARISON_MIN_LINEAR_MAG_POINT_MIP_LINEAR = 0x91
    COMPARISON_MIN_MAG_LINEAR_MIP_POINT = 0x94
    COMPARISON_MIN_MAG_MIP_LINEAR = 0x95
    COMPARISON_ANISOTROPIC = 0xD5
    MINIMUM_MIN_MAG_MIP_POINT = 0x100
    MINIMUM_MIN_MAG_POINT_MIP_LINEAR = 0x101
    MINIMUM_MIN_POINT_MAG_LINEAR_MIP_POINT = 0x104
    MINIMUM_MIN_POINT_MAG_MIP_LINEAR = 0x105
    MINIMUM_MIN_LINEAR_MAG_MIP_POINT = 0x110
    MINIMUM_MIN_LINEAR_MAG_POINT_MIP_LINEAR = 0x111
    MINIMUM_MIN_MAG_LINEAR_MIP_POINT = 0x114
    MINIMUM_MIN_MAG_MIP_LINEAR = 0x115
    MINIMUM_ANISOTROPIC = 0x155
    MAXIMUM_MIN_MAG_MIP_POINT = 0x180
    MAXIMUM_MIN_MAG_POINT_MIP_LINEAR = 0x181
    MAXIMUM_MIN_POINT_MAG_LINEAR_MIP_POINT = 0x184
    MAXIMUM_MIN_POINT_MAG_MIP_LINEAR = 0x185
    MAXIMUM_MIN_LINEAR_MAG_MIP_POINT = 0x190
    MAXIMUM_MIN_LINEAR_MAG_POINT_MIP_LINEAR = 0x191
    MAXIMUM_MIN_MAG_LINEAR_MIP_POINT = 0x194
    MAXIMUM_MIN_MAG_MIP_LINEAR = 0x195
    MAXIMUM_ANISOTROPIC = 0x1D5


class TextureAddressMode(IntEnum):
    """Mirrors ``D3D12_TEXTURE_ADDRESS_MODE``."""

    WRAP = 1
    MIRROR = 2
    CLAMP = 3
    BORDER = 4
    MIRROR_ONCE = 5


class ComparisonFunc(IntEnum):
    """Mirrors ``D3D12_COMPARISON_FUNC``."""

    NONE = 0
    NEVER = 1
    LESS = 2
    EQUAL = 3
    LESS_EQUAL = 4
    GREATER = 5
    NOT_EQUAL = 6
    GREATER_EQUAL = 7
    ALWAYS = 8


class StaticBorderColor(IntEnum):
    """Mirrors ``D3D12_STATIC_BORDER_COLOR``."""

    TRANSPARENT_BLACK = 0
    OPAQUE_BLACK = 1
    OPAQUE_WHITE = 2
    OPAQUE_BLACK_UINT = 3
    OPAQUE_WHITE_UINT = 4


class Format(IntEnum):
    """Mirrors ``DXGI_FORMAT``."""

    UNKNOWN = 0
    R32G32B32A32_TYPELESS = 1
    R32G32B32A32_FLOAT = 2
    R32G32B32A32_UINT = 3
    R32G32B32A32_SINT = 4
    R32G32B32_TYPELESS = 5
    R32G32B32_FLOAT = 6
    R32G32B32_UINT = 7
    R32G32B32_SINT = 8
    R16G16B16A16_TYPELESS = 9
    R16G16B16A16_FLOAT = 10
    R16G16B16A16_UNORM = 11
    R16G16B16A16_UINT = 12
    R16G16B16A16_SNORM = 13
    R16G16B16A16_SINT = 14
    R32G32_TYPELESS = 15
    R32G32_FLOAT = 16
    R32G32_UINT = 17
    R32G32_SINT = 18
    R32G8X24_TYPELESS = 19
    D32_FLOAT_S8X24_UINT = 20
    R32_FLOAT_X8X24_TYPELESS = 21
    X32_TYPELESS_G8X24_UINT = 22
    R10G10B10A2_TYPELESS = 23
    R10G10B10A2_UNORM = 24
    R10G10B10A2_UINT = 25
    R11G11B10_FLOAT = 26
    R8G8B8A8_TYPELESS = 27
    R8G8B8A8_UNORM = 28
    R8G8B8A8_UNORM_SRGB = 29
    R8G8B8A8_UINT = 30
    R8G8B8A8_SNORM = 31
    R8G8B8A8_SINT = 32
    R16G16_TYPELESS = 33
    R16G16_FLOAT = 34
    R16G16_UNORM = 35
    R16G16_UINT = 36
    R16G16_SNORM = 37
    R16G16_SINT = 38
    R32_TYPELESS = 39
    D32_FLOAT = 40
    R32_FLOAT = 41
    R32_UINT = 42
    R32_SINT = 43
    R24G8_TYPELESS = 44
    D24_UNORM_S8_UINT = 45
    R24_UNORM_X8_TYPELESS = 46
    X24_TYPELESS_G8_UINT = 47
    R8G8_TYPELESS = 48
    R8G8_UNORM = 49
    R8G8_UINT = 50
    R8G8_SNORM = 51
    R8G8_SINT = 52
    R16_TYPELESS = 53
    R16_FLOAT = 54
    D16_UNORM = 55
    R16_UNORM = 56
    R16_UINT = 57
    R16_SNORM = 58
    R16_SINT = 59
    R8_TYPELESS = 60
    R8_UNORM = 61
    R8_UINT = 62
    R8_SNORM = 63
    R8_SINT = 64
    A8_UNORM = 65
    R1_UNORM = 66
    R9G9B9E5_SHAREDEXP = 67
    R8G8_B8G8_UNORM = 68
    G8R8_G8B8_UNORM = 69
    BC1_TYPELESS = 70
    BC1_UNORM = 71
    BC1_UNORM_SRGB = 72
    BC2_TYPELESS = 73
    BC2_UNORM = 74
    BC2_UNORM_SRGB = 75
    BC3_TYPELESS = 76
    BC3_UNORM = 77
    BC3_UNORM_SRGB = 78
    BC4_TYPELESS = 79
    BC4_UNORM = 80
    BC4_SNORM = 81
    BC5_TYPELESS = 82
    BC5_UNORM = 83
    BC5_SNORM = 84
    B5G6R5_UNORM = 85
    B5G5R5A1_UNORM = 86
    B8G8R8A8_UNORM = 87
    B8G8R8X8_UNORM = 88
    R10G10B10_XR_BIAS_A2_UNORM = 89
    B8G8R8A8_TYPELESS = 90
    B8G8R8A8_UNORM_SRGB = 91
    B8G8R8X8_TYPELESS = 92
    B8G8R8X8_UNORM_SRGB = 93
    BC6H_TYPELESS = 94
    BC6H_UF16 = 95
    BC6H_SF16 = 96
    BC7_TYPELESS = 97
    BC7_UNORM = 98
    BC7_UNORM_SRGB = 99
    AYUV = 100
    Y410 = 101
    Y416 = 102
    NV12 = 103
    P010 = 104
    P016 = 105
    TIER_420_OPAQUE = 106
    YUY2 = 107
    Y210 = 108
    Y216 = 109
    NV11 = 110
    AI44 = 111
    IA44 = 112
    P8 = 113
    A8P8 = 114
    B4G4R4A4_UNORM = 115
    P208 = 130
    V208 = 131
    V408 = 132
    SAMPLER_FEEDBACK_MIN_MIP_OPAQUE = 189
    SAMPLER_FEEDBACK_MIP_REGION_USED_OPAQUE = 190
    A4B4G4R4_UNORM = 191
    FORCE_UINT = 0
