"""Dispatches of shaders as text: lines of a Python program, dispatchables of a DxDispatch model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from dmlemu_hw.programs import Kind, ProgramRange, Source

from .. import d3d12, shaders
from ..d3d12.pipelines.pipeline_state import PipelineState
from ..errors import Error
from .expressions import call_text, expression, quoted
from .model import Place, ShaderView, ShaderWork, Span
from .program import Call, Program
from .shader_calls import (
    element_bytes,
    elements_of,
    extents,
    indirect_arguments,
    pipeline_of,
    root_view,
    view_desc,
)

__all__ = ["HlslCall", "PythonShader", "container_files", "drawn_notes", "root_signature_text"]

_CBV_BYTES = 256


def _shader_calls(program: Program) -> Iterator[tuple[Call, ShaderWork]]:
    for call in program.calls:
        if isinstance(call.work.desc, ShaderWork):
            yield call, call.work.desc


def container_files(program: Program) -> dict[str, str]:
    """For the key of each container the name of a file beside the program, which is that of no other one."""
    files: dict[str, str] = {}
    for call, work in _shader_calls(program):
        plain = "".join(each if each.isascii() and each.isalnum() else "_" for each in call.work.name[:40])
        files.setdefault(work.code, f"{plain or 'shader'}.{work.code[:12]}.dxil")
    return files


def drawn_notes(program: Program) -> list[str]:
    """What chaos drew for shaders when they were recorded, which no text can ask for."""
    notes: dict[str, None] = {}
    for call, work in _shader_calls(program):
        usual = shaders.compile_shader(shaders.read_container(program.array(work.code).tobytes()))
        flushes = usual.denormals == "ftz"
        if (usual.wave, flushes) != (work.wave, work.flush):
            drawn = work.flush and not flushes
            flush, keeps = (" and denormal numbers as 0", " and keep these") if drawn else ("", "")
            notes[
                f"{call.work.title} was recorded with waves of {work.wave} lanes{flush}; the Python program "
                f"and the DxDispatch model run it with waves of {usual.wave}{keeps}."
            ] = None
    return list(notes)


# --- Python ---


def root_signature_text(desc: d3d12.RootSignatureDesc1) -> str:
    """An expression for its serialized bytes; a line for each parameter."""
    parameters = "".join(f"            {expression(each)},\n" for each in desc.parameters)
    return (
        "d3d12.serialize_versioned_root_signature(\n"
        "    d3d12.VersionedRootSignatureDesc(\n"
        "        d3d12.RootSignatureVersion.VERSION_1_1,\n"
        f"        d3d12.RootSignatureDesc1([\n{parameters}        ], [], {expression(desc.flags)}),\n"
        "    )\n"
        ")"
    )


class PythonShader:
    """The lines that make a pipeline state and its descriptors, and those that dispatch it."""

    def __init__(
        self,
        program: Program,
        call: Call,
        name_of: Callable[[str], str],
        buffers: Sequence[str],
        file: str,
        device: d3d12.Device,
    ) -> None:
        """``name_of`` gives free identifiers; ``file``: of the container."""
        assert isinstance(call.work.desc, ShaderWork)
        self._call, self._work, self._name = call, call.work.desc, name_of(call.work.name)
        self._heap, self._step, self._signature, self._commands = (
            name_of(f"{self._name}_{each}") for each in ("heap", "step", "signature", "commands")
        )
        self._buffers, self._file = buffers, file
        with ExitStack() as stack:
            pipeline = pipeline_of(device, call.work, program.array, stack.enter_context, is_chosen=False)
            self._desc = pipeline.root_signature.desc
            self._types = {each.index: each.type for each in pipeline.root_signature.parameters}
            self._count, self._firsts = extents(self._work, pipeline)
            self._is_own = _is_own(device, program.array(self._work.code).tobytes(), pipeline)

    def prepare(self) -> list[str]:
        """Creates the pipeline state, and a heap with the descriptors."""
        name, file = self._name, f"Path(__file__).with_name({quoted(self._file)})"
        lines, arguments = [], [f"cs={file}"]
        if not self._is_own:
            signature = call_text("device.create_root_signature", ["0", root_signature_text(self._desc)])
            lines.append(f"{self._signature} = session.keep({signature})")
            arguments = [self._signature, file]
        desc = call_text("d3d12.ComputePipelineStateDesc", arguments)
        pipeline = call_text("device.create_compute_pipeline_state", [desc])
        lines += [f"{name} = session.keep({pipeline})", f"{name}.set_name({quoted(self._call.work.name)})"]
        return [*lines, *self._command_signature(), *self._descriptors()]

    def dispatch(self) -> str:
        """Runs it alone in a list: there the buffers are in no state yet."""
        name, work = self._name, self._work
        lines = [*self._addresses(), "session.run()"]
        if self._count:
            lines.append(f"session.list.set_descriptor_heaps([{self._heap}])")
        lines.append(f"session.list.set_pipeline_state({name})")
        lines.append(f"session.list.set_compute_root_signature({name}.root_signature)")
        for parameter, position in work.constants:
            words = self._call.arrays[position]
            values = [] if words is None else words.reshape(-1).tolist()
            lines.append(f"session.list.set_compute_root_32bit_constants({parameter}, {values})")
        for parameter, span in work.roots:
            view, address = root_view(self._types[parameter]), self._address(span)
            lines.append(f"session.list.set_compute_root_{view}({parameter}, {address})")
        for parameter, first in self._firsts.items():
            handle = f"{self._heap}.get_gpu_descriptor_handle_for_heap_start(){_plus(first, self._step)}"
            lines.append(f"session.list.set_compute_root_descriptor_table({parameter}, {handle})")
        if work.groups is not None:
            lines.append(f"session.list.dispatch({', '.join(map(str, work.groups))})")
        elif work.indirect is not None:
            count = "" if work.indirect.number is None else f", {self._at(work.indirect.number)}"
            arguments = f"{self._commands}, {work.indirect.most}, {self._at(work.indirect.commands)}{count}"
            lines.append(f"session.list.execute_indirect({arguments})")
        return "\n".join([*lines, "session.run()"])

    def _place(self, span: Span) -> Place:
        place = self._call.places[span.tensor]
        assert place is not None  # the program has run
        return place._replace(offset=place.offset + span.offset)

    def _at(self, span: Span) -> str:
        """A buffer and an offset, as two arguments."""
        place = self._place(span)
        return f"{self._buffers[place.buffer]}, {place.offset}"

    def _address(self, span: Span) -> str:
        place = self._place(span)
        return f"{self._buffers[place.buffer]}.get_gpu_virtual_address(){_plus(place.offset)}"

    # --- what is prepared ---

    def _command_signature(self) -> Iterator[str]:
        if self._work.indirect is None:
            return
        arguments = indirect_arguments(self._work, self._types)
        rows = expression(arguments)
        desc = f"d3d12.CommandSignatureDesc({self._work.indirect.stride}, {rows})"
        signature = f"{self._name}.root_signature" if len(arguments) > 1 else "None"
        made = call_text("device.create_command_signature", [desc, signature])
        yield f"{self._commands} = session.keep({made})"

    def _addresses(self) -> Iterator[str]:
        """The commands of an ExecuteIndirect have addresses."""
        indirect = self._work.indirect
        for at, span in () if indirect is None else indirect.addresses:
            assert indirect is not None
            place = self._place(indirect.commands)
            address = f"np.array([{self._address(span)}], np.uint64)"
            yield "session.run()"
            yield f"session.write({self._buffers[place.buffer]}, {address}, {place.offset + at})"

    def _descriptors(self) -> Iterator[str]:
        if not self._count:
            return
        kind = "d3d12.DescriptorHeapType.CBV_SRV_UAV"
        arguments = [kind, str(self._count), "d3d12.DescriptorHeapFlags.SHADER_VISIBLE"]
        heap = call_text("device.create_descriptor_heap", [call_text("d3d12.DescriptorHeapDesc", arguments)])
        yield f"{self._heap} = session.keep({heap})"
        yield f"{self._step} = device.get_descriptor_handle_increment_size({kind})"
        rows = list(self._work.heap)
        for each, some in self._work.tables:
            rows += [(self._firsts[each] + place, view) for place, view in some]
        for place, view in rows:
            handle = f"{self._heap}.get_cpu_descriptor_handle_for_heap_start(){_plus(place, self._step)}"
            yield self._view(view, handle)

    def _view(self, view: ShaderView, handle: str) -> str:
        if view.kind == "CBV":
            desc = "None"
            if view.span is not None:
                desc = f"d3d12.ConstantBufferViewDesc({self._address(view.span)}, {view.size})"
            return call_text("device.create_constant_buffer_view", [desc, handle])
        buffer, offset, counter, counter_offset = "None", 0, "None", 0
        if view.span is not None:
            place = self._place(view.span)
            buffer, offset = self._buffers[place.buffer], place.offset
        if view.counter is not None:
            place = self._place(view.counter)
            counter, counter_offset = self._buffers[place.buffer], place.offset
        desc = expression(view_desc(view, offset, counter_offset))
        if view.kind == "SRV":
            return call_text("device.create_shader_resource_view", [buffer, desc, handle])
        return call_text("device.create_unordered_access_view", [buffer, counter, desc, handle])


def _plus(offset: int, step: str = "") -> str:
    if not offset:
        return ""
    return f" + {offset} * {step}" if step else f" + {offset}"


def _is_own(device: d3d12.Device, code: bytes, pipeline: PipelineState) -> bool:
    """Whether the container itself has that root signature."""
    if shaders.read_container(code).root_signature is None:
        return False
    try:
        with device.create_root_signature(0, code) as found:
            same: bool = found.matches(pipeline.root_signature)
            return same
    except Error:
        return False


# --- DxDispatch ---


class HlslCall:
    """A dispatch of a shader as a model has it: each resource by the name that it has in the shader."""

    def __init__(self, program: Program, call: Call, device: d3d12.Device) -> None:
        assert isinstance(call.work.desc, ShaderWork)
        self._program, self._call, self._work = program, call, call.work.desc
        with ExitStack() as stack:
            pipeline = pipeline_of(device, call.work, program.array, stack.enter_context, is_chosen=False)
            self._parameters = {each.word: each.index for each in pipeline.root_signature.parameters}
            self._ranges = pipeline.program.ranges
            self._names = [each.name for each in pipeline.shader.ranges]

    def problems(self) -> Iterator[str]:
        """What a model cannot say, as ends of a sentence."""
        title = self._call.work.title
        if self._work.indirect is not None:
            yield f"{title} is an ExecuteIndirect, and a model has the numbers of groups"
            return
        if self._work.heap:
            yield f"{title} reads ResourceDescriptorHeap, to which a model binds nothing"
        if "" in self._names or len(set(self._names)) < len(self._names):
            yield f"{title} has no names of its resources, by which a model binds them"
        for each in self._ranges:
            if each.source is not Source.CONSTANTS and each.count != 1:
                yield f"{title} declares '{each.name}' as an array, to which a model binds nothing"
            elif each.kind is Kind.CBUFFER and self._is_written(each):
                yield f"the constants '{each.name}' of {title} are written by a dispatch"

    def _is_written(self, each: ProgramRange) -> bool:
        """A model has a resource for each constant buffer; here a dispatch writes into it."""
        span = self._span(each)
        place = None if span is None else self._call.places[span.tensor]
        if place is None:
            return False
        for call in self._program.calls:
            for tensor, at, _ in call.bound():
                end = at.offset + tensor.desc.extent_in_bytes
                if tensor.output and at.buffer == place.buffer and at.offset <= place.offset < end:
                    return True
        return False

    def _view(self, each: ProgramRange) -> ShaderView | None:
        """That of a table."""
        rows = dict(self._work.tables).get(self._parameters[each.word], ())
        return dict(rows).get(each.first)

    def _span(self, each: ProgramRange) -> Span | None:
        """Where the view of a range begins."""
        parameter = self._parameters[each.word]
        if each.source is Source.CONSTANTS:
            position = dict(self._work.constants).get(parameter)
            return None if position is None else Span(position, 0)
        if each.source is Source.ROOT:
            return dict(self._work.roots).get(parameter)
        view = self._view(each)
        return None if view is None else view.span

    def dispatchable(self, file: str) -> dict[str, Any]:
        """``file``: of the container, beside the model."""
        return {"type": "hlsl", "sourcePath": file, "compiler": "dxc", "compilerArgs": []}

    @property
    def groups(self) -> list[int]:
        return list(self._work.groups or ())

    def bindings(self, name: str, own_resource: Callable[[str, Any], str]) -> dict[str, Any]:
        """``own_resource`` adds a resource of that name with such bytes, and returns its name.

        ``name``: of the dispatchable.
        """
        found: dict[str, Any] = {}
        for each in self._ranges:
            span = self._span(each)
            if span is None:
                continue  # a null descriptor
            if each.kind is Kind.CBUFFER:
                found[each.name] = own_resource(f"{name} {each.name}", self._constants(span))
            else:
                found[each.name] = self._binding(each, span)
        return found

    def _constants(self, span: Span) -> Any:
        """The bytes of a constant buffer, as many as a view may have."""
        array = self._call.arrays[span.tensor]
        data = b"" if array is None else array.tobytes()[span.offset :]
        return np.frombuffer(data + bytes(-len(data) % _CBV_BYTES), np.uint8)

    def _binding(self, each: ProgramRange, span: Span) -> dict[str, Any]:
        view = self._view(each) if each.source is Source.TABLE else None
        if view is None:  # a root descriptor
            size = self._call.work.tensors[span.tensor].desc.extent_in_bytes - span.offset
            kind = "UAV" if each.writes else "SRV"
            view = ShaderView(kind, 0, each.stride, each.kind is Kind.RAW, span, size, None)
        place = self._call.places[span.tensor]
        assert place is not None  # the program has run
        first, count = elements_of(view, place.offset + span.offset)
        buffers = self._program.buffers
        binding: dict[str, Any] = {"name": buffers[place.buffer]}
        if first:
            binding["elementOffset"] = first
        binding |= {"elementCount": count, "elementSizeInBytes": element_bytes(view)}
        if each.kind is Kind.TYPED:
            binding["format"] = d3d12.Format(view.format).name
        counter = view.counter
        at = None if counter is None else self._call.places[counter.tensor]
        if counter is not None and at is not None:
            binding["counter"] = buffers[at.buffer]
            binding["counterOffsetBytes"] = at.offset + counter.offset
        return binding
