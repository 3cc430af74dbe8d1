"""Dispatches of a record's shaders, made ready to run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import d3d12
from ..d3d12 import BufferSrv, BufferSrvFlags, BufferUav, BufferUavFlags, IndirectArgumentDesc
from ..d3d12.pipelines.pipeline_state import Chosen, PipelineState, create_compute_pipeline_state
from ..d3d12.types.formats import TYPED
from ..session import Session
from .file import RecordError
from .model import Array, Place, ShaderView, ShaderWork, Span, Work

__all__ = [
    "PreparedShader",
    "element_bytes",
    "elements_of",
    "extents",
    "indirect_arguments",
    "is_constants",
    "pipeline_of",
    "read_only",
    "root_view",
    "view_desc",
    "view_steps",
]

_RAW_BYTES = 4  # of an element of a raw view
_CONSTANT = d3d12.RootParameterType.TYPE_32BIT_CONSTANTS
_ROOT_VIEWS = {
    d3d12.RootParameterType.CBV: "constant_buffer_view",
    d3d12.RootParameterType.SRV: "shader_resource_view",
}
_HEAP = d3d12.DescriptorHeapType.CBV_SRV_UAV


# --- what a work says of its tensors ---


def is_constants(work: Work, position: int) -> bool:
    """Whether a tensor is root constants, which lie in no buffer."""
    return isinstance(work.desc, ShaderWork) and any(at == position for _, at in work.desc.constants)


def view_steps(work: Work) -> Iterator[tuple[int, int, int]]:
    """For each view of a shader its tensor, the byte in it where the view begins, the bytes of an element.

    FirstElement of a view is a whole number.
    """
    if isinstance(work.desc, ShaderWork):
        for view in work.desc.descriptors:
            if view.span is not None:
                yield view.span.tensor, view.span.offset, element_bytes(view)


def read_only(work: Work) -> Iterator[int]:
    """The tensors of a shader that need the state of something that is read alone."""
    written = {tensor.path for tensor in work.tensors if tensor.output}
    for i, tensor in enumerate(work.tensors):
        if work.is_shader and tensor.path not in written and not is_constants(work, i):
            yield i


def element_bytes(view: ShaderView) -> int:
    """Of what FirstElement of a view counts."""
    if view.kind == "CBV":
        return 1
    if view.raw:
        return _RAW_BYTES
    found = TYPED.get(view.format)
    return max(1, view.stride) if found is None else found.size


def elements_of(view: ShaderView, offset: int) -> tuple[int, int]:
    """FirstElement and NumElements of a view that begins ``offset`` bytes into a buffer.  RecordError."""
    step = element_bytes(view)
    if offset % step:
        raise RecordError(
            f"A view begins {offset} bytes into its buffer, which is no multiple of the {step} of an element."
        )
    return offset // step, view.size // step


def view_desc(
    view: ShaderView, offset: int, counter_offset: int
) -> d3d12.ShaderResourceViewDesc | d3d12.UnorderedAccessViewDesc:
    """Of an SRV or a UAV that begins ``offset`` bytes into its buffer; a null descriptor at 0."""
    first, count = elements_of(view, offset)
    format: Any = view.format  # any number is one of C's enum; the call that takes the desc checks it
    if view.kind == "SRV":
        srv_flags = BufferSrvFlags.RAW if view.raw else BufferSrvFlags.NONE
        srv = BufferSrv(first, count, view.stride, srv_flags)
        return d3d12.ShaderResourceViewDesc(format, buffer=srv)
    uav_flags = BufferUavFlags.RAW if view.raw else BufferUavFlags.NONE
    uav = BufferUav(first, count, view.stride, counter_offset, uav_flags)
    return d3d12.UnorderedAccessViewDesc(format, buffer=uav)


def pipeline_of(
    device: d3d12.Device,
    work: Work,
    array: Callable[[str], Array],
    own: Callable[[Any], Any],
    *,
    is_chosen: bool,
) -> PipelineState:
    """The pipeline state of a shader; see :class:`PreparedShader` for ``own`` and ``is_chosen``."""
    assert isinstance(work.desc, ShaderWork)
    signature = own(device.create_root_signature(0, array(work.desc.root_signature).tobytes()))
    desc = d3d12.ComputePipelineStateDesc(signature, array(work.desc.code).tobytes())
    chosen = Chosen(work.desc.wave, work.desc.flush) if is_chosen else None
    made: PipelineState = own(create_compute_pipeline_state(device.context, desc, chosen=chosen))
    made.set_name(work.name)
    return made


def extents(work: ShaderWork, pipeline: PipelineState) -> tuple[int, dict[int, int]]:
    """The number of descriptors that need a heap: those that the shader finds by their place in it, and then,
    for each parameter, the place of its table."""
    free = max((place + 1 for place, _ in work.heap), default=0)
    parameters = {each.word: each.index for each in pipeline.root_signature.parameters}
    needed = {parameter: max((place + 1 for place, _ in rows), default=1) for parameter, rows in work.tables}
    for each in pipeline.program.ranges:
        parameter = parameters.get(each.word, -1)
        if parameter in needed:
            needed[parameter] = max(needed[parameter], each.first + max(1, each.count))
    firsts = {}
    for parameter, count in needed.items():
        firsts[parameter] = free
        free += count
    return free, firsts


def root_view(kind: Any) -> str:
    """How the API's methods call a root descriptor of a type of parameters."""
    return _ROOT_VIEWS.get(kind, "unordered_access_view")


def indirect_arguments(work: ShaderWork, types: dict[int, Any]) -> list[IndirectArgumentDesc]:
    """The commands of an ExecuteIndirect; ``types``: of the root parameters."""
    assert work.indirect is not None
    found = []
    for parameter, first, count in work.indirect.arguments:
        kind = types.get(parameter)
        if kind is _CONSTANT:
            found.append(IndirectArgumentDesc.constant(parameter, first, count))
        else:
            found.append(getattr(IndirectArgumentDesc, root_view(kind))(parameter))
    return [*found, IndirectArgumentDesc.dispatch()]


# --- running it ---


class _At(NamedTuple):
    """A byte of a buffer."""

    buffer: d3d12.Resource
    offset: int

    @property
    def address(self) -> int:
        return self.buffer.get_gpu_virtual_address() + self.offset


class PreparedShader:
    """A dispatch of a shader on ``buffers``: its pipeline state, its descriptors, its root arguments.

    ``places``: where its tensors lie in the buffers; ``arrays``: root constants are those of their tensor.
    ``own`` is called with what must be released.  ``is_chosen``: waves and denormal numbers are as recorded;
    else as the device chooses them.
    """

    def __init__(
        self,
        session: Session,
        work: Work,
        array: Callable[[str], Array],
        places: Sequence[Place | None],
        arrays: Sequence[Array | None],
        buffers: Sequence[d3d12.Resource],
        own: Callable[[Any], Any],
        *,
        is_chosen: bool = True,
    ) -> None:
        assert isinstance(work.desc, ShaderWork)
        self._session, self._work, self._own = session, work.desc, own
        self._places, self._arrays, self._buffers = places, arrays, buffers
        self._pipeline = pipeline_of(session.device, work, array, own, is_chosen=is_chosen)
        signature = self._pipeline.root_signature
        self._types = {each.index: each.type for each in signature.parameters}
        self._commands = None if work.desc.indirect is None else self._command_signature(signature)
        self._count, self._firsts = extents(work.desc, self._pipeline)
        self._heap = self._descriptor_heap() if self._count else None

    def dispatch(self) -> None:
        """Runs it, alone in a list: there the buffers are in no state yet, and each view can have its own."""
        session, work = self._session, self._work
        self._write_addresses()
        session.run()
        commands = session.list
        if self._heap is not None:
            commands.set_descriptor_heaps([self._heap])
        commands.set_pipeline_state(self._pipeline)
        commands.set_compute_root_signature(self._pipeline.root_signature)
        for parameter, position in work.constants:
            words = self._arrays[position]
            commands.set_compute_root_32bit_constants(parameter, b"" if words is None else words.tobytes())
        for parameter, span in work.roots:
            set_root = getattr(commands, f"set_compute_root_{root_view(self._types.get(parameter))}")
            set_root(parameter, self._at(span).address)
        for parameter, first in self._firsts.items():
            commands.set_compute_root_descriptor_table(parameter, self._handle(first, gpu=True))
        if work.groups is not None:
            commands.dispatch(*work.groups)
        elif work.indirect is not None:
            self._execute_indirect(commands)
        session.run()

    def _at(self, span: Span) -> _At:
        place = self._places[span.tensor]
        if place is None:
            raise RecordError("A view of the shader lies in no buffer.")
        return _At(self._buffers[place.buffer], place.offset + span.offset)

    # --- ExecuteIndirect ---

    def _command_signature(self, signature: d3d12.RootSignature) -> d3d12.CommandSignature:
        assert self._work.indirect is not None
        arguments = indirect_arguments(self._work, self._types)
        desc = d3d12.CommandSignatureDesc(self._work.indirect.stride, tuple(arguments))
        root_signature = signature if len(arguments) > 1 else None
        made: d3d12.CommandSignature = self._own(
            self._session.device.create_command_signature(desc, root_signature)
        )
        return made

    def _write_addresses(self) -> None:
        """The buffers lie elsewhere than when the commands were recorded."""
        indirect = self._work.indirect
        for at, span in () if indirect is None else indirect.addresses:
            assert indirect is not None
            commands = self._at(indirect.commands)
            address = np.array([self._at(span).address], np.uint64)
            self._session.run()
            self._session.write(commands.buffer, address, commands.offset + at)

    def _execute_indirect(self, commands: d3d12.CommandList) -> None:
        indirect = self._work.indirect
        assert indirect is not None and self._commands is not None
        at = self._at(indirect.commands)
        if indirect.number is None:
            commands.execute_indirect(self._commands, indirect.most, *at)
        else:
            commands.execute_indirect(self._commands, indirect.most, *at, *self._at(indirect.number))

    # --- descriptors ---

    def _descriptor_heap(self) -> d3d12.DescriptorHeap:
        desc = d3d12.DescriptorHeapDesc(_HEAP, self._count, d3d12.DescriptorHeapFlags.SHADER_VISIBLE)
        self._heap = self._own(self._session.device.create_descriptor_heap(desc))
        for parameter, rows in self._work.tables:
            for place, view in rows:
                self._write(view, self._firsts[parameter] + place)
        for place, view in self._work.heap:
            self._write(view, place)
        return self._heap

    def _handle(self, index: int, *, gpu: bool) -> int:
        assert self._heap is not None
        step = self._session.device.get_descriptor_handle_increment_size(_HEAP)
        heap = self._heap
        start = (
            heap.get_gpu_descriptor_handle_for_heap_start()
            if gpu
            else heap.get_cpu_descriptor_handle_for_heap_start()
        )
        return start + index * step

    def _write(self, view: ShaderView, index: int) -> None:
        device, place = self._session.device, self._handle(index, gpu=False)
        at = None if view.span is None else self._at(view.span)
        counter = None if view.counter is None else self._at(view.counter)
        if view.kind == "CBV":
            desc = None if at is None else d3d12.ConstantBufferViewDesc(at.address, view.size)
            device.create_constant_buffer_view(desc, place)
            return
        resource, offset = (None, 0) if at is None else at
        made = view_desc(view, offset, 0 if counter is None else counter.offset)
        if isinstance(made, d3d12.ShaderResourceViewDesc):
            device.create_shader_resource_view(resource, made, place)
        else:
            resource_counter = None if counter is None else counter.buffer
            device.create_unordered_access_view(resource, resource_counter, made, place)
