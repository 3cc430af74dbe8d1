"""One operator on arrays, in one call: for people, for tests and for a first look."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from dmlemu_hw.chaos import Mode as ChaosMode
from dmlemu_hw.memory import POISON_BYTE

from . import d3d12, dml
from .d3d12.arguments import instance, integer, outside
from .dml.lowering.compile import TensorField
from .dml.lowering.dispatchable import CompiledOperator, OperatorInitializer
from .dml.object import failure, not_implemented
from .dml.operators.schema import OperatorDesc
from .dml.tensor_desc import MINIMUM_BUFFER_TENSOR_ALIGNMENT, PERSISTENT_BUFFER_ALIGNMENT
from .errors import Error
from .reporting import defaults

__all__ = ["evaluate", "pack_tensor", "unpack_tensor"]

Array = np.ndarray[Any, np.dtype[Any]]
Results = dict[str, Any]

_LARGE = 1 << 26  # bytes
_GAPS = 16  # multiples of the alignment that may lie between two tensors, under chaos


def evaluate(
    desc: OperatorDesc,
    *,
    device: dml.Device | None = None,
    feature_level: dml.FeatureLevel | None = None,
    execution_flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE,
    offset: int = 0,
    **arrays: Array | Sequence[Array | None] | None,
) -> Results:
    """Runs one operator on arrays: create, compile, initialise, upload, bind, dispatch, read back.

    ``arrays`` are the inputs by the desc's field names: arrays of the tensor's ``Sizes`` and type, a
    list of them for an array field.  Each is laid out in memory as its tensor desc says (strides,
    total size), ``offset`` bytes into its range; bytes between elements are poison.  Returns the
    outputs by field name, in their logical shapes.

    It runs on a private device of the highest feature level (or of ``feature_level``), which is kept
    for the next call, or on ``device``.

    Raises :class:`dmlemu.Error` as the DirectML calls do, and besides: E_INVALIDARG when an array
    does not fit its tensor or ``offset`` is negative; E_OUTOFMEMORY when not all tensors fit into the
    device's memory, of which three buffers are made (to upload, to work in, to read back);
    E_NOTIMPL for 4-bit tensors, which NumPy has no type for.  TypeError: an array is missing, one too
    many, or an argument is of another Python type.
    """
    if device is not None and feature_level is not None:
        raise TypeError("device and feature_level are given; a device has its level already")
    if integer(offset, "offset") < 0:
        raise outside(offset, "offset", "at least 0", "is negative")
    session = _session(device, feature_level)
    with session.lock:
        try:
            return session.run(desc, execution_flags, offset, arrays)
        except BaseException:
            session.discard()
            raise


def pack_tensor(tensor: dml.BufferTensorDesc, array: Array, name: str = "array") -> Array:
    """``array`` as the bytes of a tensor: TotalTensorSizeInBytes of uint8, poison between elements.

    Raises :class:`dmlemu.Error`: E_INVALIDARG for another shape or type, and where elements that share
    a place differ; E_NOTIMPL for the 4-bit types.
    """
    _check_array(tensor, array, name)
    memory = np.empty(tensor.size_in_bytes, np.uint8)
    _pack(tensor, array, memory, name)
    return memory


def _check_array(tensor: dml.BufferTensorDesc, array: object, name: str) -> None:
    """The array has the tensor's type and sizes."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array, not {type(array).__name__}.")
    dtype = _element_type(tensor, name)
    if array.dtype != dtype:
        raise _misfit("TENSOR_DTYPE", name, "has dtype", array.dtype, dtype)
    if array.shape != tuple(tensor.sizes):
        raise _misfit("OP_SHAPE", name, "has shape", array.shape, tuple(tensor.sizes))


def _element_type(tensor: dml.BufferTensorDesc, name: str) -> np.dtype[Any]:
    try:
        return tensor.dtype
    except NotImplementedError as reason:
        raise not_implemented("evaluate", f"{name} as an array", hint=str(reason)) from None


def _misfit(check: str, name: str, what: str, given: object, expected: object) -> Error:
    return failure(
        check,
        f"{name} {what} {given}; expected {expected}.",
        operation="evaluate",
        rule="DML_BUFFER_TENSOR_DESC",
        field=name,
        given=str(given),
        expected=str(expected),
    )


def _pack(tensor: dml.BufferTensorDesc, array: Array, memory: Array, name: str) -> None:
    """Writes all bytes of the tensor."""
    memory.fill(POISON_BYTE)
    view = _view(tensor, memory)
    # A dimension that both repeat is as good as its first element.
    once = tuple(
        slice(None if stride or step else 1)
        for stride, step in zip(tensor.effective_strides, array.strides, strict=True)
    )
    view, array = view[once], array[once]
    view[...] = array
    if tensor.strides is not None and not _same_bits(view, array):
        what = "has different values for elements that share a place: strides"
        raise _misfit("OP_SHAPE", name, what, tensor.strides, "one value for each place")


def unpack_tensor(tensor: dml.BufferTensorDesc, memory: Array) -> Array:
    """The elements of a tensor, in a new array of its sizes, from its bytes."""
    elements: Array = _view(tensor, memory).copy()
    return elements


def _view(tensor: dml.BufferTensorDesc, memory: Array) -> Array:
    dtype = tensor.dtype
    strides = [stride * dtype.itemsize for stride in tensor.effective_strides]
    view: Array = np.ndarray(tuple(tensor.sizes), dtype, memory.data, 0, strides)
    return view


def _same_bits(a: Array, b: Array) -> bool:
    """Compared a piece at a time: the arrays may be as large as all memory."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    pieces = np.nditer([a.view(bits), b.view(bits)], flags=["external_loop", "buffered"], buffersize=1 << 16)
    return all(np.array_equal(x, y) for x, y in pieces)


# --- devices that are kept between calls ---

_private: dict[dml.FeatureLevel, _Session] = {}
_private_lock = threading.Lock()
_inherited: list[dict[dml.FeatureLevel, _Session]] = []  # of the parent process; never given up here


def _start_anew() -> None:
    """A forked process shares its parent's GPU memory, fences too: it needs devices of its own."""
    global _private, _private_lock
    _inherited.append(_private)
    _private, _private_lock = {}, threading.Lock()  # another thread may have held the old one


os.register_at_fork(after_in_child=_start_anew)


def _session(device: dml.Device | None, feature_level: dml.FeatureLevel | None) -> _Session:
    if device is not None:
        if instance(device, dml.Device, "device").context.evaluator is None:
            device.context.evaluator = _Session(device)
        session: _Session = device.context.evaluator
        return session
    level = max(dml.FeatureLevel) if feature_level is None else feature_level
    integer(level, "feature_level")
    with _private_lock:
        found = _private.get(level)
        if found is None or found.policy is not defaults.policy or found.is_removed:
            parent = d3d12.create_device(d3d12.Adapter(name="dmlemu.evaluate"))
            found = _private[level] = _Session(dml.create_device(parent, feature_level=level))
            found.policy = defaults.policy
        return found


class _Buffers:
    """Three buffers of one size: for uploading, for the GPU, for reading back."""

    def __init__(self, device: d3d12.Device, size: int) -> None:
        self.size = size
        self.made: list[d3d12.Resource] = []
        try:
            self.upload = self._make(device, d3d12.HeapType.UPLOAD, d3d12.ResourceStates.GENERIC_READ)
            self.gpu = self._make(device, d3d12.HeapType.DEFAULT, d3d12.ResourceStates.COMMON)
            self.readback = self._make(device, d3d12.HeapType.READBACK, d3d12.ResourceStates.COPY_DEST)
        except Error:
            self.close()  # not when the error is forgotten
            raise

    def _make(
        self, device: d3d12.Device, kind: d3d12.HeapType, state: d3d12.ResourceStates
    ) -> d3d12.Resource:
        buffer = _buffer(device, kind, self.size, state)
        self.made.append(buffer)
        return buffer

    def close(self) -> None:
        for buffer in self.made:
            buffer.release()


def _buffer(
    device: d3d12.Device, kind: d3d12.HeapType, size: int, state: d3d12.ResourceStates
) -> d3d12.Resource:
    gpu = kind is d3d12.HeapType.DEFAULT
    flags = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS if gpu else d3d12.ResourceFlags.NONE
    desc = d3d12.ResourceDesc.buffer(size, flags)
    buffer = device.create_committed_resource(d3d12.HeapProperties(kind), d3d12.HeapFlags.NONE, desc, state)
    buffer.set_name(f"evaluate {kind.name.lower()}")
    return buffer


class _Session:
    """What every call needs: a queue, a list, a fence, descriptors and buffers that only grow."""

    def __init__(self, device: dml.Device) -> None:
        self.device = device
        self.policy: Any = None  # of a private device
        self.lock = threading.RLock()
        self._parts: _Parts | None = None
        self._unfinished: _Parts | None = None

    @property
    def is_removed(self) -> bool:
        return self.device.get_device_removed_reason() != 0

    def discard(self) -> None:
        """After an exception nothing half-recorded is kept, unless the GPU is still to execute it."""
        parts, self._parts = self._parts, None
        if parts is not None and parts.is_pending:
            self._unfinished = parts
        elif parts is not None:
            parts.discard()

    def finish(self) -> None:
        """Has the GPU do what an exception has left to it."""
        parts = self._unfinished
        if parts is not None:
            parts.finish()
            self._unfinished = None
            parts.discard()

    def run(
        self, desc: OperatorDesc, flags: dml.ExecutionFlags, offset: int, arrays: Mapping[str, Any]
    ) -> Results:
        operator = self.device.create_operator(desc)
        compiled = self.device.compile_operator(operator, flags)
        gaps = self.device.get_parent_device().context.gpu.random(ChaosMode.PLACEMENT)
        plan = _Plan(compiled, arrays, offset, gaps)
        self.finish()
        parts = self._parts
        if parts is None:
            parts = self._parts = _Parts(self.device.get_parent_device())
        parts.reserve(plan.size, compiled.descriptor_count + len(plan.fields))
        self._execute(parts, compiled, plan)
        return plan.results(parts.buffers.readback)

    def _execute(self, parts: _Parts, compiled: CompiledOperator, plan: _Plan) -> None:
        device, commands, buffers = self.device, parts.commands, parts.buffers
        plan.upload(buffers.upload)
        parts.allocator.reset()
        commands.reset(parts.allocator)
        commands.set_descriptor_heaps([parts.descriptors])
        commands.copy_buffer_region(buffers.gpu, 0, buffers.upload, 0, plan.size)
        states = d3d12.ResourceStates
        transition = d3d12.ResourceBarrier.transition
        commands.resource_barrier([transition(buffers.gpu, states.COPY_DEST, states.UNORDERED_ACCESS)])
        recorder = device.create_command_recorder()
        initializer = device.create_operator_initializer([compiled])
        table = device.create_binding_table(parts.table(initializer, compiled.descriptor_count))
        plan.bind_initializer(table, initializer, buffers.gpu)
        recorder.record_dispatch(commands, initializer, table)
        if compiled.persistent.size:  # else the initializer writes nothing that the dispatch could read
            commands.resource_barrier([d3d12.ResourceBarrier.uav(None)])
        table.reset(parts.table(compiled, 0))
        plan.bind(table, buffers.gpu)
        recorder.record_dispatch(commands, compiled, table)
        commands.resource_barrier([transition(buffers.gpu, states.UNORDERED_ACCESS, states.COPY_SOURCE)])
        start, end = plan.outputs
        commands.copy_buffer_region(buffers.readback, start, buffers.gpu, start, end - start)
        commands.close()
        parts.execute()


class _Parts:
    """The Direct3D objects of a session."""

    def __init__(self, device: d3d12.Device) -> None:
        self.device = device
        kind = d3d12.CommandListType.COMPUTE
        self.queue = device.create_command_queue(d3d12.CommandQueueDesc(kind))
        self.allocator = device.create_command_allocator(kind)
        self.commands = device.create_command_list(0, kind, self.allocator)
        self.commands.close()
        self.fence = device.create_fence(0)
        self.done = 0
        self.step = device.get_descriptor_handle_increment_size(d3d12.DescriptorHeapType.CBV_SRV_UAV)
        self.descriptors = self._descriptors(64)
        self.buffers = _Buffers(device, 1 << 16)

    def _descriptors(self, count: int) -> d3d12.DescriptorHeap:
        visible = d3d12.DescriptorHeapFlags.SHADER_VISIBLE
        kind = d3d12.DescriptorHeapType.CBV_SRV_UAV
        self.descriptor_count = count
        return self.device.create_descriptor_heap(d3d12.DescriptorHeapDesc(kind, count, visible))

    def reserve(self, size: int, descriptors: int) -> None:
        if size > self.buffers.size:
            self.buffers.close()
            # Small ones grow in steps, so that few calls make new ones; large ones must fit.
            large = size > _LARGE
            self.buffers = _Buffers(self.device, size if large else 1 << (size - 1).bit_length())
        if descriptors > self.descriptor_count:
            self.descriptors.release()
            self.descriptors = self._descriptors(2 * descriptors)

    def table(self, dispatchable: dml.Dispatchable, first: int) -> dml.BindingTableDesc:
        """A range of descriptors for ``dispatchable``, from descriptor ``first`` on."""
        heap, skip = self.descriptors, first * self.step
        cpu = heap.get_cpu_descriptor_handle_for_heap_start() + skip
        gpu = heap.get_gpu_descriptor_handle_for_heap_start() + skip
        return dml.BindingTableDesc(dispatchable, cpu, gpu, dispatchable.descriptor_count)

    def execute(self) -> None:
        self.queue.execute_command_lists([self.commands])
        self.finish()

    def finish(self) -> None:
        """Waits until the GPU has done all that it was given."""
        self.done += 1
        self.queue.signal(self.fence, self.done)
        self.fence.wait(self.done)

    @property
    def is_pending(self) -> bool:
        """Is the GPU still to do something with it?"""
        return bool(self.queue.hardware.pending)

    def discard(self) -> None:
        """Gives all of it up, after an exception: that is nobody's mistake."""
        buffers, parts = self.buffers.made, (self.descriptors, self.commands, self.allocator)
        for part in (*buffers, *parts, self.fence, self.queue):
            part.discard()


class _Plan:
    """Where each tensor of one call lies in the buffers: inputs, outputs, temporary, persistent."""

    def __init__(
        self, compiled: CompiledOperator, arrays: Mapping[str, Any], offset: int, gaps: Random | None
    ) -> None:
        self.compiled = compiled
        self._gaps = gaps
        self.fields = compiled.fields
        self.size = 0
        self.places: dict[TensorField, int] = {}
        self.arrays = _values(self.fields, arrays)
        for field in self.fields:
            if field.desc is not None and not field.output:
                self._place(field, offset)
        start = self.size
        for field in self.fields:
            if field.desc is not None and field.output:
                _element_type(field.desc, field.path)
                self._place(field, offset)
        self.outputs = start, self.size
        properties = compiled.get_binding_properties()
        self.temporary = self._reserve(properties.temporary_resource_size)
        self.persistent = self._reserve(properties.persistent_resource_size)

    def _place(self, field: TensorField, offset: int) -> int:
        assert field.desc is not None
        usual = PERSISTENT_BUFFER_ALIGNMENT if self._gaps is None else MINIMUM_BUFFER_TENSOR_ALIGNMENT
        alignment = max(usual, field.desc.guaranteed_base_offset_alignment)
        place = self.places[field] = self._reserve(offset + field.desc.size_in_bytes, alignment) + offset
        return place

    def _reserve(self, size: int, alignment: int = PERSISTENT_BUFFER_ALIGNMENT) -> int:
        place = -(-self.size // alignment) * alignment
        if self._gaps is not None:
            place = place + self._gaps.randrange(_GAPS) * alignment | alignment  # aligned to no more
        self.size = place + -(-size // PERSISTENT_BUFFER_ALIGNMENT) * PERSISTENT_BUFFER_ALIGNMENT
        return place

    def upload(self, buffer: d3d12.Resource) -> None:
        with buffer.map(0, d3d12.Range(0, 0)) as memory:
            host = np.asarray(memory)
            for field, place in self.places.items():
                assert field.desc is not None
                target = host[place : place + field.desc.size_in_bytes]
                if field.output:
                    target.fill(POISON_BYTE)
                else:
                    _pack(field.desc, self.arrays[field], target, field.path)

    def bind_initializer(
        self, table: dml.BindingTable, initializer: OperatorInitializer, buffer: d3d12.Resource
    ) -> None:
        owned = self.compiled.persistent.size
        if owned:
            inputs = [
                self._binding(field, buffer) if field.desc is not None and field.desc.owned_by_dml else None
                for field in self.fields
                if not field.output
            ]
            table.bind_inputs([dml.BufferArrayBinding(inputs)])
            table.bind_outputs([dml.BufferBinding(buffer, self.persistent, owned)])

    def bind(self, table: dml.BindingTable, buffer: d3d12.Resource) -> None:
        for output, bind in ((False, table.bind_inputs), (True, table.bind_outputs)):
            bind([self._execution(field, buffer) for field in self.fields if field.output is output])
        properties = self.compiled.get_binding_properties()
        if properties.temporary_resource_size:
            size = properties.temporary_resource_size
            table.bind_temporary_resource(dml.BufferBinding(buffer, self.temporary, size))
        if properties.persistent_resource_size:
            size = properties.persistent_resource_size
            table.bind_persistent_resource(dml.BufferBinding(buffer, self.persistent, size))

    def _execution(self, field: TensorField, buffer: d3d12.Resource) -> dml.BufferBinding | None:
        if field.desc is None or field.desc.owned_by_dml:
            return None
        return self._binding(field, buffer)

    def _binding(self, field: TensorField, buffer: d3d12.Resource) -> dml.BufferBinding:
        assert field.desc is not None
        return dml.BufferBinding(buffer, self.places[field], field.desc.size_in_bytes)

    def results(self, buffer: d3d12.Resource) -> Results:
        found: Results = {}
        with buffer.map(0, d3d12.Range(*self.outputs)) as memory:
            host = np.asarray(memory)
            for field, place in self.places.items():
                if field.output and field.desc is not None:
                    value = unpack_tensor(field.desc, host[place : place + field.desc.size_in_bytes])
                    if field.index is None:
                        found[field.name] = value
                    else:
                        found.setdefault(field.name, []).append(value)
        return found


def _values(fields: Sequence[TensorField], arrays: Mapping[str, Any]) -> dict[TensorField, Any]:
    """The array of each input field, which fits; TypeError when one is missing or none is wanted."""
    inputs = [field for field in fields if not field.output]
    known = {field.name for field in inputs}
    for name in arrays:
        if name not in known:
            raise TypeError(
                f"evaluate() got {name!r}, which is no input of this operator ({', '.join(known)})"
            )
    values: dict[TensorField, Any] = {}
    for field in inputs:
        value = arrays.get(field.name)
        if field.index is not None:
            count = sum(other.name == field.name for other in inputs)
            if not isinstance(value, (list, tuple)) or len(value) != count:
                raise TypeError(f"{field.name} must be a list of {count} arrays.")
            value = value[field.index]
        if (value is None) != (field.desc is None):
            what = "is missing" if value is None else "is given, but its tensor is absent from the desc"
            raise TypeError(f"{field.name} {what}")
        if field.desc is not None:
            _check_array(field.desc, value, field.path)
        values[field] = value
    return values
