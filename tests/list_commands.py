"""Commands that lists record: for which types of lists, and with arguments that are valid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from dmlemu.d3d12 import (
    BufferUav,
    CommandList,
    CommandListType,
    CommandSignatureDesc,
    DescriptorHeapDesc,
    DescriptorHeapFlags,
    DescriptorHeapType,
    DescriptorRange1,
    DescriptorRangeType,
    Device,
    Format,
    HeapFlags,
    HeapProperties,
    HeapType,
    IndirectArgumentDesc,
    PipelineState,
    QueryHeapDesc,
    QueryType,
    Rect,
    Resource,
    ResourceBarrier,
    ResourceDesc,
    ResourceFlags,
    ResourceStates,
    RootParameter1,
    RootSignature,
    RootSignatureDesc1,
    RootSignatureVersion,
    UnorderedAccessViewDesc,
    VersionedRootSignatureDesc,
    WriteBufferImmediateParameter,
    serialize_versioned_root_signature,
)
from dmlemu.shaders import read_container
from shader_programs import SCALE, shader

# A shader with the same bindings as the program by hand: the one that a watched dispatch runs.
_CONTAINER = read_container((Path(__file__).parent / "unit/shaders/containers/saxpy.dxil").read_bytes())

DIRECT, COMPUTE, COPY, BUNDLE = (
    CommandListType.DIRECT,
    CommandListType.COMPUTE,
    CommandListType.COPY,
    CommandListType.BUNDLE,
)


class Objects:
    """What commands need: two buffers, queries, and the view of a buffer in a visible heap and in another."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.buffer, self.other = self._buffer(), self._buffer()
        self.queries = device.create_query_heap(QueryHeapDesc(count=4))
        self.visible, self.hidden = (
            device.create_descriptor_heap(
                DescriptorHeapDesc(DescriptorHeapType.CBV_SRV_UAV, 8, DescriptorHeapFlags(visible))
            )
            for visible in (True, False)
        )
        self.cpu = self.hidden.get_cpu_descriptor_handle_for_heap_start()
        self.target = self.visible.get_cpu_descriptor_handle_for_heap_start()
        self.gpu = self.visible.get_gpu_descriptor_handle_for_heap_start()
        self.view = UnorderedAccessViewDesc(Format.R32_UINT, buffer=BufferUav(0, 4))
        for slot in (self.cpu, self.target):
            device.create_unordered_access_view(self.buffer, None, self.view, slot)
        self.root_signature, self.pipeline = self._pipeline()
        self.signature = device.create_command_signature(
            CommandSignatureDesc(12, [IndirectArgumentDesc.dispatch()])
        )

    def _pipeline(self) -> tuple[RootSignature, PipelineState]:
        """A shader by hand, as a pipeline state; its parameters are one of each kind."""
        parameters = (
            RootParameter1.constant_buffer_view(0),
            RootParameter1.shader_resource_view(0),
            RootParameter1.unordered_access_view(0),
            RootParameter1.constants(2, 1),
            RootParameter1.descriptor_table([DescriptorRange1(DescriptorRangeType.SRV, 1, 1)]),
        )
        desc = VersionedRootSignatureDesc(RootSignatureVersion.VERSION_1_1, RootSignatureDesc1(parameters))
        signature = self.device.create_root_signature(0, serialize_versioned_root_signature(desc))
        program = shader("scale", SCALE)
        return signature, PipelineState(self.device.context, signature, program, _CONTAINER, b"blob")

    def prepare(self, commands: CommandList) -> None:
        """Sets on a list what its commands need."""
        commands.set_descriptor_heaps([self.visible])
        commands.set_pipeline_state(self.pipeline)
        commands.set_compute_root_signature(self.root_signature)
        commands.set_compute_root_constant_buffer_view(0, self.other.get_gpu_virtual_address())
        commands.set_compute_root_shader_resource_view(1, self.other.get_gpu_virtual_address())
        commands.set_compute_root_unordered_access_view(2, self.buffer.get_gpu_virtual_address())

    def _buffer(self) -> Resource:
        desc = ResourceDesc.buffer(256, ResourceFlags.ALLOW_UNORDERED_ACCESS)
        heap = HeapProperties(HeapType.DEFAULT)
        return self.device.create_committed_resource(heap, HeapFlags.NONE, desc, ResourceStates.COMMON)


class Row(NamedTuple):
    """``types``: of the lists that may record it.  ``takes``: arguments of a call on the objects."""

    types: set[CommandListType]
    takes: Callable[[Objects], list[Any]]


ALL, TRANSFER = {DIRECT, COMPUTE, COPY, BUNDLE}, {DIRECT, COMPUTE, COPY}
SHADING, SETTING = {DIRECT, COMPUTE}, {DIRECT, COMPUTE, BUNDLE}
TIMESTAMP = QueryType.TIMESTAMP

COMMANDS = {
    "begin_event": Row(ALL, lambda w: [1, "x"]),
    "clear_state": Row(SETTING, lambda w: []),
    "clear_unordered_access_view_float": Row(
        SHADING, lambda w: [w.gpu, w.cpu, w.buffer, (1.0, 2, 3, 4), [Rect(0, 0, 1, 1)]]
    ),
    "clear_unordered_access_view_uint": Row(SHADING, lambda w: [w.gpu, w.cpu, w.buffer, (1, 2, 3, 4), ()]),
    "copy_buffer_region": Row(TRANSFER, lambda w: [w.buffer, 0, w.other, 0, 4]),
    "copy_resource": Row(TRANSFER, lambda w: [w.buffer, w.other]),
    "dispatch": Row(SETTING, lambda w: [1, 1, 1]),
    "end_event": Row(ALL, lambda w: []),
    "end_query": Row(TRANSFER, lambda w: [w.queries, TIMESTAMP, 0]),
    "execute_indirect": Row(SETTING, lambda w: [w.signature, 1, w.other, 0, w.other, 0]),
    "resolve_query_data": Row(TRANSFER, lambda w: [w.queries, TIMESTAMP, 0, 1, w.other, 0]),
    "resource_barrier": Row(TRANSFER, lambda w: [ResourceBarrier.uav(None)]),
    "set_compute_root_32bit_constant": Row(SETTING, lambda w: [3, 7, 1]),
    "set_compute_root_32bit_constants": Row(SETTING, lambda w: [3, [1, 2], 0]),
    "set_compute_root_constant_buffer_view": Row(SETTING, lambda w: [0, w.other.get_gpu_virtual_address()]),
    "set_compute_root_descriptor_table": Row(SETTING, lambda w: [4, w.gpu]),
    "set_compute_root_shader_resource_view": Row(SETTING, lambda w: [1, w.other.get_gpu_virtual_address()]),
    "set_compute_root_signature": Row(SETTING, lambda w: [w.root_signature]),
    "set_compute_root_unordered_access_view": Row(SETTING, lambda w: [2, w.buffer.get_gpu_virtual_address()]),
    "set_descriptor_heaps": Row(SETTING, lambda w: [[w.visible]]),
    "set_pipeline_state": Row(SETTING, lambda w: [w.pipeline]),
    "set_marker": Row(ALL, lambda w: [0, "text"]),
    "write_buffer_immediate": Row(
        ALL, lambda w: [[WriteBufferImmediateParameter(w.other.get_gpu_virtual_address(), 1)], None]
    ),
}
"""By method; those that every list refuses are not here."""
