"""Session: the objects that every DirectML program needs, and methods from an array to its result.

Each method is one idiom of Direct3D 12 or DirectML, written with the public API alone.  A program
that needs more can copy and change these lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from . import d3d12, dml
from .d3d12.memory.resource import element_type
from .dml.tensor_desc import array_of, packed_desc

__all__ = ["Session"]

Array = np.ndarray[Any, np.dtype[Any]]
Bindings = Sequence[d3d12.Resource | dml.BufferBinding | None]

_Object = TypeVar("_Object", bound=d3d12.Object)
_Self = TypeVar("_Self", bound="Session")
_MANY = 64  # kept objects, before those that have been released are dropped
_CBV_SRV_UAV = d3d12.DescriptorHeapType.CBV_SRV_UAV
_INITIAL_STATE = {
    d3d12.HeapType.UPLOAD: d3d12.ResourceStates.GENERIC_READ,
    d3d12.HeapType.READBACK: d3d12.ResourceStates.COPY_DEST,
}


class Session:
    """A queue, an open command list, a fence and a descriptor heap on a DirectML device.

    Everything is reachable and may be used directly: ``device`` (Direct3D 12) and ``dml`` (DirectML),
    ``queue``, ``allocator``, ``list``, ``fence`` with the ``fence_value`` of the last submission,
    ``recorder``, and the heap ``descriptors`` with the count ``descriptors_used`` of those that binding
    tables have taken.

    :meth:`initialize`, :meth:`dispatch`, :meth:`barrier` and :meth:`transition` record into ``list``;
    :meth:`run` executes it and waits.  :meth:`upload` and :meth:`read` record a copy and run.  Which
    barriers a list needs is for the program to decide, as on every device.

    Buffers, compiled operators and what was given to :meth:`keep` live until the session is closed;
    leaving its ``with`` block does that.  Any of them can be released earlier.
    """

    def __init__(
        self,
        device: dml.Device | None = None,
        *,
        queue: d3d12.CommandQueueDesc | None = None,
        descriptors: int = 1024,
    ) -> None:
        """``device``: if omitted, the session creates devices of its own on the default adapter.

        ``queue``: for a type other than COMPUTE, or flags.  ``descriptors``: the size of the heap; 0 for
        none, when the program sets heaps of its own.
        """
        self._kept: list[d3d12.Object] = []  # first made first
        self._most_kept = _MANY
        if device is None:
            adapter = d3d12.create_adapter_list()[0]
            device = self.keep(dml.create_device(self.keep(d3d12.create_device(adapter))))
        self.dml = device
        self.device = device.get_parent_device()
        self.recorder = self.keep(self.dml.create_command_recorder())
        queue = queue or d3d12.CommandQueueDesc(d3d12.CommandListType.COMPUTE)
        self.queue = self.keep(self.device.create_command_queue(queue))
        self.fence = self.keep(self.device.create_fence(0))
        self.fence_value = 0
        self._descriptors = self._descriptor_heap(descriptors) if descriptors else None
        self.descriptors_used = 0
        self.new_list()

    def __repr__(self) -> str:
        return f"<Session on {self.device}>"

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """:meth:`close`; after an exception, releasing objects in use is not reported."""
        stack = ExitStack()
        for each in self._kept:
            stack.push(each)
        stack.__exit__(kind, value, traceback)
        self._kept.clear()

    def close(self) -> None:
        """Releases what the session created, last created first.  First :meth:`wait` for the GPU."""
        self.__exit__(None, None, None)

    def keep(self, made: _Object) -> _Object:
        """Makes the session release ``made`` when it is closed; returns it."""
        if len(self._kept) >= self._most_kept:
            self._kept = [each for each in self._kept if not each.released]
            self._most_kept = max(_MANY, 2 * len(self._kept))
        self._kept.append(made)
        return made

    @property
    def descriptors(self) -> d3d12.DescriptorHeap:
        """The heap whose descriptors binding tables use."""
        if self._descriptors is None:
            raise ValueError("The session has no descriptor heap: it was made with descriptors=0.")
        return self._descriptors

    # --- buffers ---

    def buffer(
        self,
        name: str,
        size: int,
        heap: d3d12.HeapType = d3d12.HeapType.DEFAULT,
        *,
        heap_flags: d3d12.HeapFlags = d3d12.HeapFlags.NONE,
    ) -> d3d12.Resource:
        """A committed buffer of ``size`` bytes; operators may use one in a DEFAULT heap."""
        return self.keep(self._buffer(name, size, heap, heap_flags))

    def upload_buffer(self, name: str, data: npt.ArrayLike) -> d3d12.Resource:
        """A buffer in an UPLOAD heap, which the GPU can copy from, with the elements of ``data``."""
        return self.keep(self._upload_buffer(name, _array(data)))

    def readback_buffer(self, name: str, size: int) -> d3d12.Resource:
        """A buffer in a READBACK heap, which the GPU can copy to and :meth:`read` can read."""
        return self.buffer(name, size, d3d12.HeapType.READBACK)

    def upload(self, name: str, data: npt.ArrayLike) -> d3d12.Resource:
        """A buffer that operators may use, with the elements of ``data``; runs and waits.

        ``data``: anything that NumPy can turn into an array, or that supports DLPack.  TypeError: a list of
        Python integers, whose type on the GPU is not known.  The size is a multiple of 4 bytes, as
        that of a tensor is.  Unless all elements are zeros, the checks know from now on what lies
        there: dtype and shape, see :meth:`d3d12.Resource.expect`.
        """
        array = _array(data)
        buffer = self.buffer(name, -(-array.nbytes // 4) * 4)
        self.write(buffer, array)
        return buffer

    def write(self, buffer: d3d12.Resource, data: npt.ArrayLike, offset: int = 0) -> None:
        """Copies the elements of ``data``, as in :meth:`upload`, into a buffer, from byte ``offset`` on; runs
        and waits."""
        array = _array(data)
        with self._upload_buffer(f"{buffer.name}, upload", array) as source:
            self.list.copy_buffer_region(buffer, offset, source, 0, array.nbytes)
            self.run()
        desc = packed_desc(array)
        if desc is not None and array.any():  # zeros have no layout: they clear
            buffer.expect(offset, desc, is_array=True)

    def read(
        self,
        buffer: d3d12.Resource,
        dtype: npt.DTypeLike,
        shape: Sequence[int] | int | None = None,
        offset: int = 0,
    ) -> Array:
        """A copy of the elements that a buffer holds from byte ``offset`` on; without ``shape`` all of them.

        What has been recorded runs first.  A buffer in a READBACK heap is read as it is: wait for the GPU
        before.
        """
        element = element_type(dtype)
        if shape is None:
            shape = (buffer.get_desc().width - offset) // element.itemsize
        count = int(np.prod(shape))
        if buffer.get_heap_properties()[0].type is d3d12.HeapType.READBACK:
            return self._read_mapped(buffer, element, count, offset).reshape(shape)
        self.run()  # the states of buffers decay to COMMON at its end, so that the copy may read this one
        size = count * element.itemsize
        with self._buffer(f"{buffer.name}, readback", size, d3d12.HeapType.READBACK) as target:
            self.list.copy_buffer_region(target, 0, buffer, offset, size)
            self.run()
            return self._read_mapped(target, element, count, 0).reshape(shape)

    @staticmethod
    def _read_mapped(buffer: d3d12.Resource, dtype: np.dtype[Any], count: int, offset: int) -> Array:
        data = buffer.map(0, d3d12.Range(offset, offset + count * dtype.itemsize))
        elements: Array = data.view(dtype, offset, count).copy()
        buffer.unmap(0, d3d12.Range(0, 0))  # the CPU has written nothing
        return elements

    def _upload_buffer(self, name: str, data: Array) -> d3d12.Resource:
        buffer = self._buffer(name, data.nbytes, d3d12.HeapType.UPLOAD)
        with buffer.map(0, d3d12.Range(0, 0)) as memory:  # the CPU will not read
            memory.view(data.dtype, count=data.size)[:] = data.reshape(-1)
        return buffer

    def _buffer(
        self,
        name: str,
        size: int,
        heap: d3d12.HeapType,
        heap_flags: d3d12.HeapFlags = d3d12.HeapFlags.NONE,
    ) -> d3d12.Resource:
        default = heap is d3d12.HeapType.DEFAULT
        flags = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS if default else d3d12.ResourceFlags.NONE
        buffer = self.device.create_committed_resource(
            d3d12.HeapProperties(heap),
            heap_flags,
            d3d12.ResourceDesc.buffer(size, flags),
            _INITIAL_STATE.get(heap, d3d12.ResourceStates.COMMON),
        )
        buffer.set_name(name)
        return buffer

    # --- operators ---

    def compile(
        self,
        desc: dml.OperatorDesc,
        name: str,
        flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE,
    ) -> dml.CompiledOperator:
        """Creates and compiles an operator.  It must be initialised before its first dispatch."""
        operator = self.dml.create_operator(desc)
        operator.set_name(name)
        compiled = self.keep(self.dml.compile_operator(operator, flags))
        compiled.set_name(name)
        return compiled

    def persistent_buffer(self, compiled: dml.CompiledOperator) -> d3d12.Resource | None:
        """The buffer for the operator's persistent resource; None if it needs none."""
        size = compiled.get_binding_properties().persistent_resource_size
        return self.buffer(f"{compiled.name}, persistent", size) if size else None

    def temporary_buffer(self, dispatchable: dml.Dispatchable) -> d3d12.Resource | None:
        """The buffer for the operator's temporary resource; None if it needs none."""
        size = dispatchable.get_binding_properties().temporary_resource_size
        return self.buffer(f"{dispatchable.name}, temporary", size) if size else None

    def use_descriptors(self, count: int) -> None:
        """Makes binding tables start again at the first descriptor, with room for ``count`` of them.

        Nothing may be recorded in the list or in flight.
        """
        if count > self.descriptors.get_desc().num_descriptors:
            self.list.close()  # the list still has the old heap set
            self.allocator.reset()
            self.descriptors.release()
            self._descriptors = self._descriptor_heap(count)
            self.open()
        self.descriptors_used = 0

    def _descriptor_heap(self, count: int) -> d3d12.DescriptorHeap:
        desc = d3d12.DescriptorHeapDesc(_CBV_SRV_UAV, count, d3d12.DescriptorHeapFlags.SHADER_VISIBLE)
        return self.keep(self.device.create_descriptor_heap(desc))

    def table_desc(self, dispatchable: dml.Dispatchable, first: int | None = None) -> dml.BindingTableDesc:
        """The next free descriptors for ``dispatchable``, or those from the descriptor ``first`` on."""
        count = dispatchable.get_binding_properties().required_descriptor_count
        if first is None:
            size = self.descriptors.get_desc().num_descriptors
            if self.descriptors_used + count > size:
                raise ValueError(
                    f"The session's heap has {size} descriptors, of which {self.descriptors_used} are used; "
                    f"{dispatchable} needs {count}.  Give Session a larger number of descriptors, or begin "
                    "anew with use_descriptors."
                )
            first = self.descriptors_used
            self.descriptors_used += count
        skip = first * self.device.get_descriptor_handle_increment_size(_CBV_SRV_UAV)
        cpu = self.descriptors.get_cpu_descriptor_handle_for_heap_start() + skip
        gpu = self.descriptors.get_gpu_descriptor_handle_for_heap_start() + skip
        return dml.BindingTableDesc(dispatchable, cpu, gpu, count)

    def table(self, dispatchable: dml.Dispatchable, first: int | None = None) -> dml.BindingTable:
        """A binding table over the descriptors of :meth:`table_desc`; nothing is bound yet."""
        return self.dml.create_binding_table(self.table_desc(dispatchable, first))

    def bind(
        self,
        compiled: dml.CompiledOperator,
        inputs: Bindings,
        outputs: Bindings,
        *,
        persistent: d3d12.Resource | dml.BufferBinding | None = None,
        temporary: d3d12.Resource | dml.BufferBinding | None = None,
        first: int | None = None,
    ) -> dml.BindingTable:
        """A binding table with one entry per tensor of the desc, in its order.

        An entry is a buffer, or a part of one as a :class:`dml.BufferBinding`; None where the optional
        tensor is absent or DirectML owns it.
        """
        table = self.table(compiled, first)
        table.bind_inputs([_binding(each) for each in inputs])
        table.bind_outputs([_binding(each) for each in outputs])
        if temporary is not None:
            table.bind_temporary_resource(_binding(temporary))
        if persistent is not None:
            table.bind_persistent_resource(_binding(persistent))
        return table

    def initialize(
        self,
        *operators: dml.CompiledOperator,
        inputs: Sequence[Bindings | None] | None = None,
        persistent: Bindings | None = None,
        first: int | None = None,
    ) -> dml.OperatorInitializer:
        """Records the initialisation of operators; put a :meth:`barrier` between it and their dispatches.

        ``inputs``: for each operator the buffers of the tensors flagged OWNED_BY_DML, as in :meth:`bind`
        and with None for the other tensors; or None, if it owns none.  ``persistent``: for each operator
        the buffer of :meth:`persistent_buffer`.
        """
        initializer = self.dml.create_operator_initializer(operators)
        table = self.table(initializer, first)
        if inputs is not None:
            rows = [None if each is None else [_binding(one) for one in each] for each in inputs]
            table.bind_inputs([None if row is None else dml.BufferArrayBinding(row) for row in rows])
        if persistent is not None:
            table.bind_outputs([_binding(each) for each in persistent])
        temporary = self.temporary_buffer(initializer)
        if temporary is not None:
            table.bind_temporary_resource(_binding(temporary))
        self.recorder.record_dispatch(self.list, initializer, table)
        return initializer

    def dispatch(
        self,
        compiled: dml.CompiledOperator,
        inputs: Bindings,
        outputs: Bindings,
        *,
        persistent: d3d12.Resource | dml.BufferBinding | None = None,
        temporary: d3d12.Resource | dml.BufferBinding | None = None,
    ) -> dml.BindingTable:
        """Binds as :meth:`bind` does and records the dispatch; returns the table."""
        table = self.bind(compiled, inputs, outputs, persistent=persistent, temporary=temporary)
        self.recorder.record_dispatch(self.list, compiled, table)
        return table

    # --- execution ---

    def barrier(self, *buffers: d3d12.Resource) -> None:
        """Records UAV barriers: earlier accesses to the buffers end before later ones begin.

        Without buffers it is one barrier for all resources.
        """
        self.list.resource_barrier([d3d12.ResourceBarrier.uav(each) for each in buffers or (None,)])

    def transition(
        self, before: d3d12.ResourceStates, after: d3d12.ResourceStates, *buffers: d3d12.Resource
    ) -> None:
        """Records transitions of the buffers from one state to the other."""
        self.list.resource_barrier(
            [d3d12.ResourceBarrier.transition(each, before, after) for each in buffers]
        )

    def submit(self) -> None:
        """Closes the list and executes it on the queue; the fence reaches ``fence_value`` when it is done."""
        self.list.close()
        self.queue.execute_command_lists([self.list])
        self.fence_value += 1
        self.queue.signal(self.fence, self.fence_value)

    def new_list(self) -> None:
        """Creates another allocator and an open list, for example after an error during recording."""
        kind = self.queue.get_desc().type
        self.allocator = self.keep(self.device.create_command_allocator(kind))
        self.list = self.keep(self.device.create_command_list(0, kind, self.allocator))
        self._set_descriptor_heap()

    def open(self) -> None:
        """Opens the list again after :meth:`submit`; submitted work may still be in flight."""
        self.list.reset(self.allocator)
        self._set_descriptor_heap()

    def _set_descriptor_heap(self) -> None:
        if self._descriptors is not None:
            self.list.set_descriptor_heaps([self._descriptors])

    def wait(self) -> None:
        """Waits until the GPU has executed what was submitted, and opens the list again."""
        self.fence.wait(self.fence_value)
        self.allocator.reset()
        self.open()

    def run(self) -> None:
        """Executes what has been recorded and waits for it: :meth:`submit` and :meth:`wait`."""
        self.submit()
        self.wait()


def _array(data: npt.ArrayLike) -> Array:
    """TypeError: of a list of Python integers NumPy makes INT64, which few tensors are."""
    array = array_of(data)
    first: Any = data
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if type(first) is int:
        raise TypeError(
            f"data consists of Python integers, which NumPy turns into {array.dtype}: say which type the "
            "tensor has, for instance np.array(data, np.int32) or np.array(data, np.float32)."
        )
    return array


def _binding(each: Any) -> Any:
    """A whole buffer as a binding; anything else unchanged, to be validated by DirectML."""
    return dml.BufferBinding(each) if isinstance(each, d3d12.Resource) else each
