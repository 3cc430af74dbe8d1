"""The commands of a list that dispatch compute shaders, and that set what these need."""

from __future__ import annotations

from collections.abc import Sequence

from dmlemu_hw.packets import Opcode

from ...errors import Severity
from ..core.recording import SETTING
from ..descriptors.descriptor_heap import DescriptorHeap
from ..memory.resource import Resource
from ..pipelines.command_signature import CommandSignature
from ..pipelines.pipeline_state import PipelineState
from ..pipelines.root_signature import RootSignature
from ..types.enums import DescriptorHeapType, RootParameterType
from . import compute_validation as rules
from .compute_state import ComputeState
from .list_recorder import ListRecorder
from .recording_method import records

__all__ = ["ComputeCommands"]

_CBV, _SRV, _UAV = RootParameterType.CBV, RootParameterType.SRV, RootParameterType.UAV


class ComputeCommands(ListRecorder):
    """Base of the command list: dispatches of shaders."""

    def begin_with(self, pipeline: PipelineState | None) -> None:
        """Only this pipeline state is set."""
        self.compute = ComputeState(pipeline)
        if pipeline is not None:
            self.need(pipeline)

    def check_pipeline(self, pipeline: PipelineState | None, operation: str, field: str) -> None:
        """The initial pipeline state, if any, is one of this device."""
        if pipeline is not None:
            self.context.check_child(pipeline, PipelineState, operation, field)

    def lose_compute_state(self, to: str) -> None:
        """A command that is not of Direct3D 12 has set a pipeline state, a root signature and arguments.

        ``to``: the command, as the end of a sentence.
        """
        if self.compute.pipeline is not None or self.compute.root_signature is not None:
            self.compute = ComputeState(lost=to)

    def change_heaps(self, heaps: dict[DescriptorHeapType, DescriptorHeap]) -> None:
        """Sets the descriptor heaps; tables of another heap than before are not set any more."""
        kind = DescriptorHeapType.CBV_SRV_UAV
        before, self.descriptor_heaps = self.descriptor_heaps.get(kind), heaps
        signature = self.compute.root_signature
        if signature is None or heaps.get(kind) is before:
            return
        for parameter in signature.parameters:
            if parameter.type is RootParameterType.DESCRIPTOR_TABLE:
                self.compute.forget(parameter, f"SetDescriptorHeaps has replaced {before or 'no heap'} since")

    # --- what is set ---

    @records("SetPipelineState", SETTING)
    def set_pipeline_state(self, pipeline_state: PipelineState) -> None:
        """Sets the shader of the dispatches that follow; root signature and arguments stay.

        Mirrors ``ID3D12GraphicsCommandList::SetPipelineState``
        (nf-d3d12-id3d12graphicscommandlist-setpipelinestate).  Raises if none is given (SC1).
        """
        rules.check_given(pipeline_state, PipelineState, "SetPipelineState", "pPipelineState", self)
        self.need(pipeline_state)
        self.compute.pipeline = pipeline_state

    @records("SetComputeRootSignature", SETTING)
    def set_compute_root_signature(self, root_signature: RootSignature) -> None:
        """Sets the root signature; unless it is equal to the one before, no argument is set then.

        Mirrors ``ID3D12GraphicsCommandList::SetComputeRootSignature``
        (nf-d3d12-id3d12graphicscommandlist-setcomputerootsignature).  Raises if none is given, and for one
        with CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED before SetDescriptorHeaps (SC1).
        """
        rules.check_given(root_signature, RootSignature, "SetComputeRootSignature", "pRootSignature", self)
        rules.check_indexed_heap(self, root_signature)
        self.need(root_signature)
        self.compute.use(root_signature)

    @records("SetComputeRootDescriptorTable", SETTING)
    def set_compute_root_descriptor_table(self, root_parameter_index: int, base_descriptor: int) -> None:
        """Sets a descriptor table to the descriptors from a GPU handle on, of the heap that is set.

        The descriptors are read when the GPU executes the dispatch.  Mirrors
        ``ID3D12GraphicsCommandList::SetComputeRootDescriptorTable``
        (nf-d3d12-id3d12graphicscommandlist-setcomputerootdescriptortable).  Raises for a parameter that is no
        table (SC2), and a handle of another heap than the one that is set (SC3).
        """
        operation = "SetComputeRootDescriptorTable"
        kind = RootParameterType.DESCRIPTOR_TABLE
        parameter = rules.parameter_of(self, operation, root_parameter_index, kind)
        rules.check_handle(self, operation, base_descriptor)
        self.compute.set_address(parameter, base_descriptor)

    @records("SetComputeRoot32BitConstant", SETTING)
    def set_compute_root_32bit_constant(
        self, root_parameter_index: int, src_data: int | float, dest_offset_in_32bit_values: int = 0
    ) -> None:
        """Sets one constant; an int is 32 bits, signed or unsigned, a float becomes FLOAT32.

        Mirrors ``ID3D12GraphicsCommandList::SetComputeRoot32BitConstant``
        (nf-d3d12-id3d12graphicscommandlist-setcomputeroot32bitconstant).  Raises for a parameter that has no
        constants (SC2), and for one past its last constant or a number of more than 32 bits (SC4).
        """
        operation = "SetComputeRoot32BitConstant"
        self._set_constants(operation, root_parameter_index, [src_data], dest_offset_in_32bit_values)

    @records("SetComputeRoot32BitConstants", SETTING)
    def set_compute_root_32bit_constants(
        self,
        root_parameter_index: int,
        src_data: Sequence[int | float] | bytes,
        dest_offset_in_32bit_values: int = 0,
    ) -> None:
        """Sets several constants: numbers as in :meth:`set_compute_root_32bit_constant`, or bytes or an
        array, 4 bytes each.

        Mirrors ``ID3D12GraphicsCommandList::SetComputeRoot32BitConstants``
        (nf-d3d12-id3d12graphicscommandlist-setcomputeroot32bitconstants), and raises as that one.
        """
        operation = "SetComputeRoot32BitConstants"
        self._set_constants(operation, root_parameter_index, src_data, dest_offset_in_32bit_values)

    def _set_constants(
        self, operation: str, index: int, values: Sequence[int | float] | bytes, offset: int
    ) -> None:
        kind = RootParameterType.TYPE_32BIT_CONSTANTS
        parameter = rules.parameter_of(self, operation, index, kind)
        data = rules.check_constants(self, operation, parameter, values, offset)
        self.compute.set(parameter.word + offset, data)

    @records("SetComputeRootConstantBufferView", SETTING)
    def set_compute_root_constant_buffer_view(self, root_parameter_index: int, buffer_location: int) -> None:
        """Sets a constant buffer: its address, a multiple of 256.

        Mirrors ``ID3D12GraphicsCommandList::SetComputeRootConstantBufferView``
        (nf-d3d12-id3d12graphicscommandlist-setcomputerootconstantbufferview).  Raises for a parameter of
        another type (SC2), and for an address that is misaligned or in no buffer (SC5).
        """
        self._set_descriptor("SetComputeRootConstantBufferView", root_parameter_index, buffer_location, _CBV)

    @records("SetComputeRootShaderResourceView", SETTING)
    def set_compute_root_shader_resource_view(self, root_parameter_index: int, buffer_location: int) -> None:
        """Sets a raw or structured buffer that is read: its address, a multiple of 4.

        Nothing bounds it: a shader that reads past the end of the resource removes the device.  Mirrors
        ``ID3D12GraphicsCommandList::SetComputeRootShaderResourceView``
        (nf-d3d12-id3d12graphicscommandlist-setcomputerootshaderresourceview).  Raises as
        :meth:`set_compute_root_constant_buffer_view`.
        """
        self._set_descriptor("SetComputeRootShaderResourceView", root_parameter_index, buffer_location, _SRV)

    @records("SetComputeRootUnorderedAccessView", SETTING)
    def set_compute_root_unordered_access_view(self, root_parameter_index: int, buffer_location: int) -> None:
        """Sets a raw or structured buffer that is read and written, as
        :meth:`set_compute_root_shader_resource_view`.

        Mirrors ``ID3D12GraphicsCommandList::SetComputeRootUnorderedAccessView``
        (nf-d3d12-id3d12graphicscommandlist-setcomputerootunorderedaccessview).
        """
        self._set_descriptor("SetComputeRootUnorderedAccessView", root_parameter_index, buffer_location, _UAV)

    def _set_descriptor(self, operation: str, index: int, address: int, kind: RootParameterType) -> None:
        parameter = rules.parameter_of(self, operation, index, kind)
        resource = rules.check_address(self, operation, address, kind)
        self.need(resource)
        self.compute.set_address(parameter, address)

    # --- dispatches ---

    @records("Dispatch", SETTING)
    def dispatch(
        self, thread_group_count_x: int, thread_group_count_y: int = 1, thread_group_count_z: int = 1
    ) -> None:
        """Runs groups of the shader that is set, at most 65535 along each dimension; 0: none.

        Mirrors ``ID3D12GraphicsCommandList::Dispatch`` (nf-d3d12-id3d12graphicscommandlist-dispatch).

        Raises for more groups, and where a pipeline state, its root signature or an argument that the shader
        uses is not set (CM3), and for a buffer that is not in the state of its view: UNORDERED_ACCESS,
        NON_PIXEL_SHADER_RESOURCE or VERTEX_AND_CONSTANT_BUFFER (ST1, ST3, ST6).  The buffers are those that
        the descriptors have at this moment.
        """
        groups = rules.check_groups(self, (thread_group_count_x, thread_group_count_y, thread_group_count_z))
        pipeline = rules.check_ready(self, "Dispatch")
        views = rules.views_of(self, pipeline)
        rules.check_states(self, "Dispatch", views)
        if 0 in groups:
            self.context.inform(rules.empty(self, groups), Severity.WARNING)
            return
        label = f"Dispatch of {pipeline.title()}"
        self.use_all("Dispatch", *(view.use for view in views), user=f"the dispatch of {pipeline.title()}")
        self.need(pipeline, *self.descriptor_heaps.values())
        arguments = self.compute.arguments
        self.writer.dispatch_shader(pipeline.program.serial, self._heap(), groups, arguments)
        self.announce(Opcode.DISPATCH_SHADER, label, pipeline.program.operands)
        rules.note_descriptors(self, pipeline, arguments)

    def _heap(self) -> int:
        """Where the heap that is set begins; 0: none is."""
        heap = self.descriptor_heaps.get(DescriptorHeapType.CBV_SRV_UAV)
        return 0 if heap is None else heap.hardware.gpu_start

    @records("ExecuteIndirect", SETTING)
    def execute_indirect(
        self,
        command_signature: CommandSignature,
        max_command_count: int,
        argument_buffer: Resource,
        argument_buffer_offset: int = 0,
        count_buffer: Resource | None = None,
        count_buffer_offset: int = 0,
    ) -> None:
        """Dispatches as many times as a buffer says, with groups and root arguments from another.

        At most ``max_command_count`` commands, from ``argument_buffer_offset`` on, as the command signature
        describes them; without ``count_buffer`` so many.  Both buffers are in state INDIRECT_ARGUMENT;
        offsets are multiples of 4.  Root arguments that the commands set are not set afterwards.  Mirrors
        ``ID3D12GraphicsCommandList::ExecuteIndirect`` (nf-d3d12-id3d12graphicscommandlist-executeindirect).

        Raises for buffers that do not contain the commands, and a command signature of another root signature
        (CM6), and as :meth:`dispatch`.
        """
        rules.check_given(command_signature, CommandSignature, "ExecuteIndirect", "pCommandSignature", self)
        place = rules.check_indirect(
            self,
            command_signature,
            max_command_count,
            (argument_buffer, argument_buffer_offset),
            (count_buffer, count_buffer_offset),
        )
        pipeline = rules.check_ready(self, "ExecuteIndirect", command_signature)
        views = rules.views_of(self, pipeline, command_signature.steps)
        rules.check_states(self, "ExecuteIndirect", views)
        if max_command_count == 0:
            self.context.inform(rules.no_commands(self), Severity.WARNING)
            return
        uses = [*(view.use for view in views), *place.uses]
        label = f"ExecuteIndirect of {pipeline.title()}"
        self.use_all("ExecuteIndirect", *uses, user=label)
        self.need(pipeline, command_signature, *self.descriptor_heaps.values())
        commands = (place.first, place.number, command_signature.desc.byte_stride, max_command_count)
        arguments, steps = self.compute.arguments, command_signature.steps
        self.writer.execute_indirect(pipeline.program.serial, self._heap(), commands, steps, arguments)
        self.announce(Opcode.EXECUTE_INDIRECT, label, pipeline.program.operands)
        rules.note_descriptors(self, pipeline, arguments)
        for parameter in command_signature.parameters:
            self.compute.forget(parameter, "ExecuteIndirect has unset it")
