"""The structs of ``d3d12.h``: frozen dataclasses with the fields of the C struct in its order.

Defaults are the values for buffers, so that most fields can be left out.  A field of a wrong Python type
raises TypeError; whether a number is legal is checked by the call that takes the struct.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...frozen import Frozen
from .arguments import Struct
from .c_types import FLOAT, INT, UINT8, UINT16, UINT64
from .enums import (
    BufferSrvFlags,
    BufferUavFlags,
    CommandListType,
    CommandQueueFlags,
    CpuPageProperty,
    DescriptorHeapFlags,
    DescriptorHeapType,
    DeviceFlags,
    Format,
    HeapFlags,
    HeapType,
    MemoryPool,
    QueryHeapType,
    ResourceDimension,
    ResourceFlags,
    SrvDimension,
    TextureLayout,
    UavDimension,
)
from .formats import TYPED

if TYPE_CHECKING:
    from ...pictures import Layout

DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT = 65536
DEFAULT_MSAA_RESOURCE_PLACEMENT_ALIGNMENT = 4194304
TILED_RESOURCE_TILE_SIZE_IN_BYTES = 65536
CONSTANT_BUFFER_DATA_PLACEMENT_ALIGNMENT = 256
TEXTURE_DATA_PITCH_ALIGNMENT = 256
TEXTURE_DATA_PLACEMENT_ALIGNMENT = 512
RAW_UAV_SRV_BYTE_ALIGNMENT = 16
RESOURCE_BARRIER_ALL_SUBRESOURCES = 0xFFFFFFFF
DEFAULT_SHADER_4_COMPONENT_MAPPING = 5768
SDK_VERSION = 619
"""``D3D12_SDK_VERSION`` of the headers whose interfaces are known: the first with ``ID3D12Device15``."""
UINT64_MAX = 0xFFFF_FFFF_FFFF_FFFF
BARRIER_LAYOUT_UNDEFINED = 0xFFFF_FFFF
"""Of ``D3D12_BARRIER_LAYOUT``: the only one that buffers have."""


class Luid(Struct):
    """``LUID``: names an adapter for as long as the process lives."""

    low_part: int
    high_part: INT = 0


class HeapProperties(Struct):
    """``D3D12_HEAP_PROPERTIES``."""

    type: HeapType = HeapType.DEFAULT
    cpu_page_property: CpuPageProperty = CpuPageProperty.UNKNOWN
    memory_pool_preference: MemoryPool = MemoryPool.UNKNOWN
    creation_node_mask: int = 0
    visible_node_mask: int = 0


class HeapDesc(Struct):
    """``D3D12_HEAP_DESC``; sizes in bytes, alignment 0 means 65536."""

    size_in_bytes: UINT64
    properties: HeapProperties = HeapProperties()
    alignment: UINT64 = 0
    flags: HeapFlags = HeapFlags.NONE


class SampleDesc(Struct):
    """``DXGI_SAMPLE_DESC``."""

    count: int = 1
    quality: int = 0


class ResourceDesc(Struct):
    """``D3D12_RESOURCE_DESC``.  Only buffers are emulated: see :meth:`buffer`."""

    dimension: ResourceDimension
    alignment: UINT64 = 0
    width: UINT64 = 0
    height: int = 1
    depth_or_array_size: UINT16 = 1
    mip_levels: UINT16 = 1
    format: Format = Format.UNKNOWN
    sample_desc: SampleDesc = SampleDesc()
    layout: TextureLayout = TextureLayout.UNKNOWN
    flags: ResourceFlags = ResourceFlags.NONE

    @classmethod
    def buffer(
        cls, width: int, flags: ResourceFlags = ResourceFlags.NONE, alignment: int = 0
    ) -> ResourceDesc:
        """A buffer of ``width`` bytes, as ``CD3DX12_RESOURCE_DESC::Buffer`` describes it."""
        return cls(ResourceDimension.BUFFER, alignment, width, layout=TextureLayout.ROW_MAJOR, flags=flags)


class MipRegion(Struct):
    """``D3D12_MIP_REGION``."""

    width: int = 0
    height: int = 0
    depth: int = 0


class ResourceDesc1(ResourceDesc):
    """``D3D12_RESOURCE_DESC1``; a buffer has no sampler feedback region: all its numbers are 0."""

    sampler_feedback_mip_region: MipRegion = MipRegion()


class ClearValue(Frozen):
    """``D3D12_CLEAR_VALUE``: not allowed for buffers (must be left out)."""

    format: Format
    color: tuple[FLOAT, FLOAT, FLOAT, FLOAT] = (0.0, 0.0, 0.0, 0.0)


class Range(Struct):
    """``D3D12_RANGE``: bytes ``[begin, end)``; empty when ``end <= begin``."""

    begin: UINT64 = 0
    end: UINT64 = 0


class ResourceAllocationInfo(Frozen):
    """``D3D12_RESOURCE_ALLOCATION_INFO``; ``size_in_bytes`` is 2**64 - 1 for an invalid desc."""

    size_in_bytes: UINT64
    alignment: UINT64


class ResourceAllocationInfo1(Frozen):
    """``D3D12_RESOURCE_ALLOCATION_INFO1``: where one of several resources lies, in bytes."""

    offset: UINT64
    alignment: UINT64
    size_in_bytes: UINT64


class SubresourceFootprint(Frozen):
    """``D3D12_SUBRESOURCE_FOOTPRINT``."""

    format: Format
    width: int
    height: int
    depth: int
    row_pitch: int


class PlacedSubresourceFootprint(Frozen):
    """``D3D12_PLACED_SUBRESOURCE_FOOTPRINT``."""

    offset: UINT64
    footprint: SubresourceFootprint


class CopyableFootprints(Frozen):
    """The outputs of ``ID3D12Device::GetCopyableFootprints``."""

    layouts: tuple[PlacedSubresourceFootprint, ...]
    num_rows: tuple[int, ...]
    row_size_in_bytes: tuple[int, ...]
    total_bytes: int


class CommandQueueDesc(Struct):
    """``D3D12_COMMAND_QUEUE_DESC``."""

    type: CommandListType = CommandListType.DIRECT
    priority: INT = 0
    flags: CommandQueueFlags = CommandQueueFlags.NONE
    node_mask: int = 0


class DescriptorHeapDesc(Struct):
    """``D3D12_DESCRIPTOR_HEAP_DESC``."""

    type: DescriptorHeapType = DescriptorHeapType.CBV_SRV_UAV
    num_descriptors: int = 1
    flags: DescriptorHeapFlags = DescriptorHeapFlags.NONE
    node_mask: int = 0


class ConstantBufferViewDesc(Struct):
    """``D3D12_CONSTANT_BUFFER_VIEW_DESC``: a GPU virtual address and a size, both multiples of 256.

    It has no ``layout()``, as other views have: its contents have no elements that the view describes.
    """

    buffer_location: UINT64
    size_in_bytes: int


class BufferUav(Struct):
    """``D3D12_BUFFER_UAV``; ``first_element`` and ``num_elements`` count elements, not bytes."""

    first_element: UINT64 = 0
    num_elements: int = 0
    structure_byte_stride: int = 0
    counter_offset_in_bytes: UINT64 = 0
    flags: BufferUavFlags = BufferUavFlags.NONE


class UnorderedAccessViewDesc(Struct):
    """``D3D12_UNORDERED_ACCESS_VIEW_DESC`` with its buffer member."""

    format: Format = Format.UNKNOWN
    view_dimension: UavDimension = UavDimension.BUFFER
    buffer: BufferUav = BufferUav()

    def layout(self, name: str = "") -> Layout:
        """A picture of where the view's elements lie in its buffer, as that of a tensor desc.

        ValueError: the view has no elements, or no size of one (neither Format nor StructureByteStride).
        """
        return _layout(self, name, raw=bool(self.buffer.flags & BufferUavFlags.RAW))


class BufferSrv(Struct):
    """``D3D12_BUFFER_SRV``; ``first_element`` and ``num_elements`` count elements, not bytes."""

    first_element: UINT64 = 0
    num_elements: int = 0
    structure_byte_stride: int = 0
    flags: BufferSrvFlags = BufferSrvFlags.NONE


class ShaderResourceViewDesc(Struct):
    """``D3D12_SHADER_RESOURCE_VIEW_DESC`` with its buffer member."""

    format: Format = Format.UNKNOWN
    view_dimension: SrvDimension = SrvDimension.BUFFER
    shader_4_component_mapping: int = DEFAULT_SHADER_4_COMPONENT_MAPPING
    buffer: BufferSrv = BufferSrv()

    def layout(self, name: str = "") -> Layout:
        """As :meth:`UnorderedAccessViewDesc.layout`."""
        return _layout(self, name, raw=bool(self.buffer.flags & BufferSrvFlags.RAW))


def _layout(view: UnorderedAccessViewDesc | ShaderResourceViewDesc, name: str, *, raw: bool) -> Layout:
    from ...pictures import Layout, Tensor

    found, stride = TYPED.get(int(view.format)), view.buffer.structure_byte_stride
    size = 4 if raw else stride or (found.size if found is not None else 0)
    first, count = view.buffer.first_element, view.buffer.num_elements
    if size <= 0 or count <= 0 or first < 0:
        raise ValueError(
            f"{type(view).__name__} has no elements to draw: Format {view.format!r}, StructureByteStride "
            f"{stride}, FirstElement {first}, NumElements {count}."
        )
    kind = f"structures of {stride} bytes" if stride else Format(view.format).name
    return Layout([Tensor(name, kind, size * 8, (count,), (1,), first * size, count * size)])


class QueryHeapDesc(Struct):
    """``D3D12_QUERY_HEAP_DESC``."""

    type: QueryHeapType = QueryHeapType.TIMESTAMP
    count: int = 1
    node_mask: int = 0


class TiledResourceCoordinate(Struct):
    """``D3D12_TILED_RESOURCE_COORDINATE``: a tile of 64 KiB; a buffer's tiles are one row, indexed by x."""

    x: int = 0
    y: int = 0
    z: int = 0
    subresource: int = 0


class TileRegionSize(Struct):
    """``D3D12_TILE_REGION_SIZE``; with ``use_box`` width * height * depth equals ``num_tiles``."""

    num_tiles: int
    use_box: bool = False
    width: int = 0
    height: UINT16 = 0
    depth: UINT16 = 0


class WriteBufferImmediateParameter(Struct):
    """``D3D12_WRITEBUFFERIMMEDIATE_PARAMETER``: a GPU virtual address (multiple of 4) and a 32-bit value."""

    dest: UINT64
    value: int


class Rect(Struct):
    """``D3D12_RECT``; a buffer's clear uses only ``left`` and ``right``, in elements."""

    left: INT
    top: INT
    right: INT
    bottom: INT


class ClockCalibration(Frozen):
    """The outputs of ``ID3D12CommandQueue::GetClockCalibration``: both clocks read at the same moment."""

    gpu_timestamp: int
    cpu_timestamp: int


class MemoryBudget(Frozen):
    """The output of DXCore's ``AdapterMemoryBudget`` state, in bytes."""

    budget: UINT64
    current_usage: UINT64
    available_for_reservation: UINT64 = 0
    current_reservation: UINT64 = 0


class HardwareId(Frozen):
    """``DXCoreHardwareID``."""

    vendor_id: int
    device_id: int
    sub_sys_id: int
    revision: int


class DeviceConfigurationDesc(Struct):
    """``D3D12_DEVICE_CONFIGURATION_DESC``."""

    flags: DeviceFlags
    gpu_based_validation_flags: int
    sdk_version: int
    num_enabled_experimental_features: int


class PackedMipInfo(Struct):
    """``D3D12_PACKED_MIP_INFO``: all 0 for buffers."""

    num_standard_mips: UINT8 = 0
    num_packed_mips: UINT8 = 0
    num_tiles_for_packed_mips: int = 0
    start_tile_index_in_overall_resource: int = 0


class TileShape(Struct):
    """``D3D12_TILE_SHAPE``: of a buffer, 65536 texels, which are bytes, in a row."""

    width_in_texels: int = 0
    height_in_texels: int = 0
    depth_in_texels: int = 0


class SubresourceTiling(Struct):
    """``D3D12_SUBRESOURCE_TILING``."""

    width_in_tiles: int = 0
    height_in_tiles: UINT16 = 0
    depth_in_tiles: UINT16 = 0
    start_tile_index_in_overall_resource: int = 0


class ResourceTiling(Struct):
    """The results of ``GetResourceTiling``."""

    num_tiles_for_entire_resource: int
    packed_mip_desc: PackedMipInfo
    standard_tile_shape_for_non_packed_mips: TileShape
    subresource_tilings: tuple[SubresourceTiling, ...]
