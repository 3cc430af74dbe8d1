"""Recording: a subscriber of devices' event streams that keeps what each dispatch reads and writes."""

from __future__ import annotations

import os
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor
from dmlemu_hw.events import WRITE, Executed, Executing, LeftUndefined, Subscription
from dmlemu_hw.faults import GpuFault
from dmlemu_hw.packets import DispatchShaderPacket, ExecuteIndirectPacket, Opcode, decode_one
from dmlemu_hw.reservation import Reservation
from dmlemu_hw.storage import TILE_SIZE, Storage

from .. import d3d12, dml
from ..checks.framework.names import Names
from ..dml.events import DispatchRecorded, GraphCompiled
from ..dml.lowering.dispatchable import CompiledOperator, OperatorInitializer, Slot
from ..dml.tensor_desc import BufferTensorDesc, element_bits
from ..errors import spell_site
from ..evaluation import unpack_tensor
from ..files import Output, as_output
from ..frontends.dxdispatch.desc_writer import write_operator_desc
from ..watching import Watching
from .file import write_to
from .model import (
    Array,
    Dispatch,
    GraphWork,
    Place,
    Record,
    RecordedTensor,
    RecordWarning,
    ShaderWork,
    Work,
    Written,
    content_key,
)
from .shaders import ShaderDispatch, describe

__all__ = ["LIMIT", "Recording", "record"]

LIMIT = 1 << 30
"""Bytes of contents that are kept by default."""

_DISPATCH = int(Opcode.DISPATCH)
_SHADERS = (int(Opcode.DISPATCH_SHADER), int(Opcode.EXECUTE_INDIRECT))
_LISTS = 2048  # whose dispatches are remembered, before those that are gone are forgotten


def record(
    device: d3d12.Device | dml.Device | None = None,
    path: str | os.PathLike[str] | Output | None = None,
    *,
    limit: int = LIMIT,
    only: str | Callable[[str], bool] = "*",
) -> Recording:
    """Records what ``device`` dispatches while the ``with`` block runs, or what every device does that is
    created in it (None).

    For each executed dispatch: its operator desc or graph, the layouts of its tensors, and their elements
    before (inputs) and after (outputs) the run; of a shader its container, root signature and root arguments,
    and the bytes of its views, by the names in the shader.  ``as`` gives the :class:`Record`.  ``path``: the
    file that is written at the end, a ``.dmlrec``.  ``only``: names of operators and pipeline states, as a
    pattern (``conv*``) or a function.  ``limit``: bytes of contents that are kept; equal contents count once.
    A :class:`RecordWarning` when the block ends, and ``notes``, list what was left out.

    Dispatches count from when both the list is recorded and executed inside of the block.
    """
    return Recording(device, path, limit=limit, only=only)


@dataclass(eq=False)
class _Entry:
    """A recorded dispatch: its packets in the list, and its table."""

    event: DispatchRecorded
    packets: range
    site: str


@dataclass(eq=False)
class _Running:
    """A dispatch of which some packets have not run yet."""

    entry: _Entry
    left: int
    addresses: list[int] = field(default_factory=list)
    where: list[Place | None] = field(default_factory=list)
    arrays: list[Array | None] = field(default_factory=list)
    undefined: list[Any] = field(default_factory=list)  # footprints


class _RunningShader(NamedTuple):
    """A dispatch of a shader that has begun."""

    found: ShaderDispatch
    pipeline: d3d12.PipelineState
    where: list[Place | None]
    arrays: list[Array | None]


class Recording(Watching["_Watch"]):
    """The context manager of :func:`record`."""

    def __init__(
        self,
        device: d3d12.Device | dml.Device | None,
        path: str | os.PathLike[str] | Output | None,
        *,
        limit: int = LIMIT,
        only: str | Callable[[str], bool] = "*",
    ) -> None:
        super().__init__(device)
        self.record = Record()
        self._contents: dict[str, Array] = {}
        self.record.contents = self._contents
        self._path = path
        self._output: Output | None = None
        if limit < 0:
            raise ValueError(f"limit ({limit}) is negative.")
        self._limit, self._size = limit, 0
        self._wants = only if callable(only) else lambda name: fnmatchcase(name, only)
        self._left_out: Counter[str] = Counter()  # reasons
        self._buffers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def __enter__(self) -> Record:
        if self._path is not None:
            self._output = as_output(self._path)  # a file that cannot be written fails before the run
        self.start()
        return self.record

    def finish(self) -> None:
        used = {place.buffer for each in self.record.dispatches for place in each.where if place}
        self.record.written = [each for each in self.record.written if each.place.buffer in used]
        self.record.notes += [
            f"{count} dispatch{'es' if count > 1 else ''} {reason}."
            for reason, count in self._left_out.items()
        ]
        if self.device is None and not self.watches:
            self.record.notes.append("No device was created; those that existed before are not recorded.")
        for note in self.record.notes:
            warnings.warn(note, RecordWarning, stacklevel=3)
        if self._output is not None:
            write_to(self.record, self._output)

    def watch(self, device: d3d12.Device) -> _Watch:
        return _Watch(self, device)

    # --- used by the watches ---

    def wants(self, name: str) -> bool:
        """The filter."""
        if self._wants(name):
            return True
        self.leave_out("left out by the filter")
        return False

    def leave_out(self, reason: str) -> None:
        self._left_out[reason] += 1

    def place(self, memory: Any, name: str, offset: int) -> Place:
        """A byte of a buffer; ``memory``, its heap, identifies it and may go."""
        if memory not in self._buffers:
            self._buffers[memory] = len(self.record.buffers)
            self.record.buffers.append(name)
        return Place(self._buffers[memory], offset)

    def wrote(self, place: Place | None, size: int) -> None:
        """Something that is not recorded as a dispatch has written."""
        if place is not None:
            self.record.written.append(Written(len(self.record.dispatches), place, size))

    def keep(self, arrays: list[Array | None]) -> list[str | None]:
        """Stores contents; returns their keys.  None of them when they exceed the limit."""
        keys = [None if each is None else content_key(each) for each in arrays]
        new = {
            key: each for key, each in zip(keys, arrays, strict=True) if key is not None and each is not None
        }
        new = {key: each for key, each in new.items() if key not in self._contents}
        size = sum(each.nbytes for each in new.values())
        if self._size + size > self._limit:
            self.leave_out(f"without contents, which exceed the limit of {self._limit} bytes")
            return [None] * len(arrays)
        self._size += size
        self._contents.update(new)
        return keys


class _Watch:
    """Records one device.  The methods that handle events are called one at a time."""

    def __init__(self, recording: Recording, device: d3d12.Device) -> None:
        self._recording = recording
        self._device = weakref.ref(device)
        self._names = Names(device)
        self._gpu = device.context.gpu
        self._recordings = device.context.recordings
        self._entries: dict[int, dict[int, _Entry]] = {}  # by list and packet
        self._running: dict[tuple[int, int, int, int], _Running] = {}
        self._shaders: dict[tuple[int, int, int, int], _RunningShader] = {}
        self._works: weakref.WeakKeyDictionary[CompiledOperator, Work] = weakref.WeakKeyDictionary()
        self._graphs: weakref.WeakKeyDictionary[CompiledOperator, GraphWork | str] = (
            weakref.WeakKeyDictionary()
        )
        self._owned: weakref.WeakKeyDictionary[CompiledOperator, dict[int, Array]] = (
            weakref.WeakKeyDictionary()
        )
        self._pipelines: weakref.WeakValueDictionary[int, d3d12.PipelineState] = weakref.WeakValueDictionary()
        stream = device.events
        self._subscriptions: list[Subscription] = []
        for callback, kind in (
            (self._compiled, GraphCompiled),
            (self._recorded, DispatchRecorded),
            (self._before, Executing),
            (self._undefined, LeftUndefined),
            (self._after, Executed),
        ):
            stream.subscribe(callback, kind, kept=self._subscriptions)

    def close(self) -> None:
        for each in self._subscriptions:
            each.close()
        for _ in (*self._running, *self._shaders):
            self._recording.leave_out("left out: the GPU did not complete them inside of the block")
        self._running.clear()
        self._shaders.clear()

    # --- events ---

    def _compiled(self, event: GraphCompiled) -> None:
        try:
            self._graphs[event.compiled] = self._graph(event.desc)
        except ValueError as error:
            self._graphs[event.compiled] = f"{error}"

    def _recorded(self, event: DispatchRecorded) -> None:
        recording = self._recordings.get(event.list_serial)
        if recording is None:
            return
        packets = range(event.first, len(recording.commands))
        entry = _Entry(event, packets, spell_site(event.site))
        self._entries.setdefault(event.list_serial, {}).update(dict.fromkeys(packets, entry))
        if len(self._entries) > _LISTS:
            for serial in [each for each in self._entries if self._recordings.get(each) is None]:
                del self._entries[serial]

    def _before(self, event: Executing) -> None:
        """The first packet: copies the inputs."""
        entry = self._entries.get(event.list_serial, {}).get(event.command)
        if entry is None and event.opcode in _SHADERS:
            self._before_shader(event)
            return
        if entry is None:
            if event.opcode == _DISPATCH and not event.joined:
                self._recording.leave_out("left out: their lists were recorded before the recording began")
            for access in event.accesses:
                if access.access & WRITE:
                    begin, end = access.footprint.byte_range
                    self._recording.wrote(self._place(begin, end - begin), end - begin)
            return
        key = (event.queue, event.ticket, event.list_serial, entry.packets.start)
        if key in self._running:
            return
        running = self._running[key] = _Running(entry, len(entry.packets))
        dispatchable = entry.event.dispatchable
        if isinstance(dispatchable, CompiledOperator):
            slots = self._slots(dispatchable)
            running.addresses = self._addresses(entry, [slot for _, slot in slots])
            tensors = self._work(dispatchable).tensors
            running.where = [
                self._place(address, each.desc.extent_in_bytes) if address else None
                for each, address in zip(tensors, running.addresses, strict=True)
            ]
            for (number, _), tensor, address in zip(slots, tensors, running.addresses, strict=True):
                array = None if tensor.output else self._input(dispatchable, number, tensor, address)
                running.arrays.append(array)
        elif isinstance(dispatchable, OperatorInitializer):
            self._initialize(entry, dispatchable)

    def _undefined(self, event: LeftUndefined) -> None:
        entry = self._entries.get(event.list_serial, {}).get(event.command)
        if entry is not None:
            running = self._running.get((event.queue, event.ticket, event.list_serial, entry.packets.start))
            if running is not None:
                running.undefined.append(event.access.footprint)

    def _after(self, event: Executed) -> None:
        """The last packet: copies the outputs."""
        entry = self._entries.get(event.list_serial, {}).get(event.command)
        if entry is None:
            self._after_shader(event)
            return
        key = (event.queue, event.ticket, event.list_serial, entry.packets.start)
        running = self._running.get(key)
        if running is None:
            return
        running.left -= 1
        if running.left:
            return
        del self._running[key]
        dispatchable = entry.event.dispatchable
        if not isinstance(dispatchable, CompiledOperator):
            return
        if self._recording.wants(dispatchable.name):
            self._complete(event, running, dispatchable)
            return
        for tensor, place in zip(self._work(dispatchable).tensors, running.where, strict=True):
            if tensor.output:
                self._recording.wrote(place, tensor.desc.extent_in_bytes)

    # --- shaders ---

    def _before_shader(self, event: Executing) -> None:
        """Copies what its views hold."""
        packet = decode_one(event.packet)
        assert isinstance(packet, DispatchShaderPacket | ExecuteIndirectPacket)
        pipeline = self._pipeline(packet.program)
        found = None if pipeline is None else describe(packet, self._gpu.memory, pipeline)
        if pipeline is None or found is None:
            self._recording.leave_out("left out: their views do not lie in memory")
            return
        tensors = found.work.tensors
        where = [
            self._place(address, tensor.desc.extent_in_bytes) if address else None
            for tensor, address in zip(tensors, found.addresses, strict=True)
        ]
        arrays = [
            None if tensor.output else words if words is not None else self._read(tensor.desc, address)
            for tensor, address, words in zip(tensors, found.addresses, found.constants, strict=True)
        ]
        key = (event.queue, event.ticket, event.list_serial, event.command)
        self._shaders[key] = _RunningShader(found, pipeline, where, arrays)

    def _after_shader(self, event: Executed) -> None:
        """Copies what its views hold now."""
        running = self._shaders.pop((event.queue, event.ticket, event.list_serial, event.command), None)
        if running is None:
            return
        found, arrays = running.found, running.arrays
        outputs = [i for i, tensor in enumerate(found.work.tensors) if tensor.output]
        if not self._recording.wants(found.work.name):
            for i in outputs:
                self._recording.wrote(running.where[i], found.work.tensors[i].desc.extent_in_bytes)
            return
        for i in outputs:
            arrays[i] = self._read(found.work.tensors[i].desc, found.addresses[i])
        keys = self._recording.keep(arrays)
        command = self._names.command(event)
        record, count = self._recording.record, len(arrays)
        record.dispatches.append(
            Dispatch(
                len(record.dispatches),
                self._with_code(found.work, running.pipeline),
                command.list,
                command.number,
                spell_site(command.command.site) if command.command.site else "",
                tuple(keys),
                (None,) * count,
                tuple(self._names.byte(each) if each else "root constants" for each in found.addresses),
                tuple(running.where),
            )
        )

    def _with_code(self, work: Work, pipeline: d3d12.PipelineState) -> Work:
        """With the keys of the container and of the root signature, which are kept."""
        if not isinstance(work.desc, ShaderWork):
            return work
        parts = pipeline.code, pipeline.root_signature.content
        code, signature = self._recording.keep([np.frombuffer(each, np.uint8) for each in parts])
        if code is None or signature is None:
            return work._replace(desc="its code exceeds the limit of the recording")
        return work._replace(desc=work.desc._replace(code=code, root_signature=signature))

    def _pipeline(self, program: int) -> d3d12.PipelineState | None:
        """The pipeline state that has a program; None: it has been released, as the GPU will find."""
        device = self._device()
        if program not in self._pipelines and device is not None:
            for each in device.context.live_children():
                if isinstance(each, d3d12.PipelineState):
                    self._pipelines[each.program.serial] = each
        return self._pipelines.get(program)

    # --- operators ---

    def _complete(self, event: Executed, running: _Running, compiled: CompiledOperator) -> None:
        work = self._work(compiled)
        undefined: list[Array | None] = []
        for i, (tensor, address) in enumerate(zip(work.tensors, running.addresses, strict=True)):
            mask = None
            if tensor.output:
                running.arrays[i] = self._read(tensor.desc, address)
                mask = _undefined_elements(tensor.desc, address, running.undefined)
            undefined.append(mask)
        keys = self._recording.keep([*running.arrays, *undefined])
        command = self._names.command(event)
        record, count = self._recording.record, len(work.tensors)
        record.dispatches.append(
            Dispatch(
                len(record.dispatches),
                work,
                command.list,
                command.number,
                running.entry.site,
                tuple(keys[:count]),
                tuple(keys[count:]),
                tuple(self._names.byte(each) if each else "" for each in running.addresses),
                tuple(running.where),
            )
        )

    # --- tensors ---

    @staticmethod
    def _slots(compiled: CompiledOperator) -> list[tuple[int, Slot]]:
        """The number and slot of each tensor that is present."""
        slots = [slot for group in compiled.inputs for slot in group] + list(compiled.outputs)
        return [
            (slot.descriptor, slot)
            for slot in slots
            if _desc(compiled, slot) is not None and slot.descriptor is not None
        ]

    def _addresses(self, entry: _Entry, slots: list[Slot]) -> list[int]:
        """Where the tensors of a dispatch are, from its descriptors; 0: unknown."""
        event = entry.event
        content = b""
        if event.table and event.dispatchable.descriptor_count:
            content = self._gpu.descriptors.content(event.table, event.dispatchable.descriptor_count)
        addresses = []
        for slot in slots:
            at = (slot.descriptor or 0) * DESCRIPTOR_SIZE
            is_bound = slot.descriptor is not None and not slot.absent and content
            addresses.append(Descriptor.decode(content[at : at + DESCRIPTOR_SIZE]).address if is_bound else 0)
        return addresses

    def _place(self, address: int, size: int) -> Place | None:
        """Bytes in their heap, or in a reserved buffer whose tiles are not one after the other in one."""
        buffer = self._names.buffer(address)
        if buffer is None:
            return None
        start = address - buffer.get_gpu_virtual_address()
        try:
            mapped = buffer.allocation.opened()
        except ValueError:  # it is being released
            return None
        if isinstance(mapped, Storage):
            return self._recording.place(mapped, buffer.name, buffer.allocation.offset + start)
        assert isinstance(mapped, Reservation)
        for run in mapped.runs:
            first = run.first * TILE_SIZE
            if run.storage and first <= start and start + size <= first + run.count * TILE_SIZE:
                return self._recording.place(
                    run.storage, buffer.name, run.heap_tile * TILE_SIZE + start - first
                )
        return self._recording.place(buffer, buffer.name, start)

    def _input(
        self, compiled: CompiledOperator, number: int, tensor: RecordedTensor, address: int
    ) -> Array | None:
        if not tensor.owned:
            return self._read(tensor.desc, address)
        kept = self._owned.get(compiled, {}).get(number)
        if kept is None:
            self._recording.leave_out(
                "without a tensor owned by DirectML: the operator was initialized before the recording began"
            )
        return kept

    def _read(self, desc: BufferTensorDesc, address: int) -> Array | None:
        """The elements of a tensor; None where there is no memory, as the GPU will find."""
        try:
            data = self._gpu.memory.view(address, desc.extent_in_bytes)
        except GpuFault:
            self._recording.leave_out("without a tensor that does not lie in memory")
            return None
        return unpack_tensor(desc, np.frombuffer(data, np.uint8))

    def _initialize(self, entry: _Entry, initializer: OperatorInitializer) -> None:
        """The tensors that operators will own."""
        for compiled, group in zip(initializer.operators, initializer.inputs, strict=True):
            slots = [(i, slot) for i, slot in enumerate(group) if slot.desc is not None]
            addresses = self._addresses(entry, [slot for _, slot in slots])
            owned = {
                number: self._read(slot.desc, address)
                for (number, slot), address in zip(slots, addresses, strict=True)
                if slot.desc is not None
            }
            if owned:
                self._owned[compiled] = {number: each for number, each in owned.items() if each is not None}

    # --- works ---

    def _work(self, compiled: CompiledOperator) -> Work:
        work = self._works.get(compiled)
        if work is None or work.name != compiled.name:
            work = self._works[compiled] = self._describe(compiled)
        return work

    def _describe(self, compiled: CompiledOperator) -> Work:
        tensors = []
        for number, slot in self._slots(compiled):
            tensor = _desc(compiled, slot)
            assert tensor is not None
            output = compiled.fields[number].output
            tensors.append(RecordedTensor(slot.path, output, number in compiled.owned, tensor))
        desc: Any = self._graphs.get(compiled, "it was compiled before the recording began")
        if compiled.operator is not None:
            desc = compiled.operator.desc
            try:
                write_operator_desc(desc)
            except ValueError as error:
                desc = f"{error}"
        return Work(
            compiled.name, compiled.type_name, compiled.flags, compiled.context.level, desc, tuple(tensors)
        )

    def _graph(self, desc: dml.GraphDesc) -> GraphWork:
        nodes: list[Any] = []
        for node in desc.nodes:
            if isinstance(node, dml.OperatorGraphNodeDesc):
                write_operator_desc(node.operator.desc)
                nodes.append(node.operator.desc)
            else:
                data = np.frombuffer(_bytes(node.data), np.uint8)
                [key] = self._recording.keep([data])
                if key is None:
                    raise ValueError("the constants of the graph exceed the limit of the recording")
                nodes.append(key)
        return GraphWork(
            tuple(nodes),
            tuple(node.name or "" for node in desc.nodes),
            desc.input_count,
            desc.output_count,
            tuple((e.graph_input_index, e.to_node_index, e.to_node_input_index) for e in desc.input_edges),
            tuple(
                (e.from_node_index, e.from_node_output_index, e.graph_output_index) for e in desc.output_edges
            ),
            tuple(
                (e.from_node_index, e.from_node_output_index, e.to_node_index, e.to_node_input_index)
                for e in desc.intermediate_edges
            ),
        )


def _bytes(data: Any) -> bytes:
    return memoryview(data).tobytes()


def _desc(compiled: CompiledOperator, slot: Slot) -> BufferTensorDesc | None:
    """The layout of a tensor, owned ones included."""
    return None if slot.descriptor is None else compiled.fields[slot.descriptor].desc


def _undefined_elements(desc: BufferTensorDesc, address: int, footprints: list[Any]) -> Array | None:
    """True for the elements that lie in one of the footprints; None if there are none."""
    bits = element_bits(desc.data_type)
    own = address * 8 + _places(desc.sizes, desc.effective_strides) * bits
    mask = np.zeros(own.shape, np.bool_)
    for each in footprints:
        other = each.address * 8 + _places(each.sizes, each.strides) * each.element_bits
        mask |= np.isin(own, other)
    return mask if mask.any() else None


def _places(sizes: Any, strides: Any) -> Any:
    """The offset of each element, in elements."""
    places = np.zeros((1,) * len(sizes), np.int64)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        shape = [1] * len(sizes)
        shape[axis] = size
        places = places + (np.arange(size, dtype=np.int64) * stride).reshape(shape)
    return places
