"""A device with everything a dispatch needs, and short ways to build the cases of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
import pytest

from dmlemu import d3d12, dml
from dmlemu.errors import Error, HResult, Report, Strictness

F32 = dml.TensorDataType.FLOAT32
OWNED = dml.TensorFlags.OWNED_BY_DML
Levels = dml.FeatureLevel
UAV = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
States = d3d12.ResourceStates


def tensor(*sizes: int, **fields: Any) -> dml.BufferTensorDesc:
    """A FLOAT32 tensor of rank 4: ``tensor(2, 3)`` has the sizes 1, 1, 2, 3."""
    return dml.BufferTensorDesc(F32, (1,) * (4 - len(sizes)) + sizes, **fields)


def identity(**fields: Any) -> dml.OperatorDesc:
    """16 bytes in, 16 bytes out; may work in place."""
    return dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor(4, **fields), output_tensor=tensor(4))


def add(**a: Any) -> dml.OperatorDesc:
    return dml.ElementWiseAddOperatorDesc(
        a_tensor=tensor(4, **a), b_tensor=tensor(4), output_tensor=tensor(4)
    )


def gemm(c: bool = False, **b: Any) -> dml.OperatorDesc:
    """2x3 times 3x4; an optional C; not in place."""
    return dml.GemmOperatorDesc(
        a_tensor=tensor(2, 3),
        b_tensor=tensor(3, 4, **b),
        c_tensor=tensor(2, 4) if c else None,
        output_tensor=tensor(2, 4),
        trans_a=dml.MatrixTransform.NONE,
        trans_b=dml.MatrixTransform.NONE,
        alpha=1.0,
        beta=1.0,
    )


def half_gemm() -> dml.OperatorDesc:
    """Its fused activation needs a temporary resource."""

    def half(*sizes: int) -> dml.BufferTensorDesc:
        return dml.BufferTensorDesc(dml.TensorDataType.FLOAT16, (1, 1, *sizes))

    return dml.GemmOperatorDesc(
        a_tensor=half(2, 3),
        b_tensor=half(3, 4),
        output_tensor=half(2, 4),
        trans_a=dml.MatrixTransform.NONE,
        trans_b=dml.MatrixTransform.NONE,
        alpha=1.0,
        beta=0.0,
        fused_activation=dml.ActivationReluOperatorDesc(),
    )


class World:
    """One Direct3D device, one DirectML device, a queue, an open list and a descriptor heap."""

    def __init__(
        self,
        strictness: Strictness = Strictness.STRICT,
        level: dml.FeatureLevel = Levels.LEVEL_6_4,
        flags: dml.CreateDeviceFlags = dml.CreateDeviceFlags.NONE,
    ) -> None:
        self.d3d12 = d3d12.create_device(d3d12.Adapter(name="test"), strictness=strictness)
        self.dml = dml.create_device(self.d3d12, flags, feature_level=level)
        kind = d3d12.CommandListType.COMPUTE
        self.queue = self.d3d12.create_command_queue(d3d12.CommandQueueDesc(kind))
        self.allocator = self.d3d12.create_command_allocator(kind)
        self.list = self.d3d12.create_command_list(0, kind, self.allocator)
        self.fence = self.d3d12.create_fence(0)
        self.done = 0
        self.heap = self.descriptors(64)
        self.list.set_descriptor_heaps([self.heap])
        self.recorder = self.dml.create_command_recorder()

    # --- making things ---

    def descriptors(self, count: int, visible: bool = True) -> d3d12.DescriptorHeap:
        flags = d3d12.DescriptorHeapFlags.SHADER_VISIBLE if visible else d3d12.DescriptorHeapFlags.NONE
        desc = d3d12.DescriptorHeapDesc(d3d12.DescriptorHeapType.CBV_SRV_UAV, count, flags)
        return self.d3d12.create_descriptor_heap(desc)

    def buffer(
        self,
        size: int = 4096,
        name: str = "",
        heap: d3d12.HeapType | d3d12.HeapProperties = d3d12.HeapType.DEFAULT,
        flags: d3d12.ResourceFlags | None = None,
    ) -> d3d12.Resource:
        properties = heap if isinstance(heap, d3d12.HeapProperties) else d3d12.HeapProperties(heap)
        state = {
            d3d12.HeapType.UPLOAD: States.GENERIC_READ,
            d3d12.HeapType.READBACK: States.COPY_DEST,
        }.get(properties.type, States.COMMON)
        if flags is None:
            flags = UAV if state == States.COMMON else d3d12.ResourceFlags.NONE
        desc = d3d12.ResourceDesc.buffer(size, flags)
        made = self.d3d12.create_committed_resource(properties, d3d12.HeapFlags.NONE, desc, state)
        if name:
            made.set_name(name)
        return made

    def compile(
        self, desc: dml.OperatorDesc, flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE, name: str = "op"
    ) -> dml.CompiledOperator:
        compiled = self.dml.compile_operator(self.dml.create_operator(desc), flags)
        compiled.set_name(name)
        return compiled

    def table_desc(self, dispatchable: Any, first: int = 0, size: int | None = None) -> dml.BindingTableDesc:
        step = self.d3d12.get_descriptor_handle_increment_size(d3d12.DescriptorHeapType.CBV_SRV_UAV)
        return dml.BindingTableDesc(
            dispatchable,
            self.heap.get_cpu_descriptor_handle_for_heap_start() + first * step,
            self.heap.get_gpu_descriptor_handle_for_heap_start() + first * step,
            dispatchable.get_binding_properties().required_descriptor_count if size is None else size,
        )

    def table(self, dispatchable: Any, first: int = 0) -> dml.BindingTable:
        return self.dml.create_binding_table(self.table_desc(dispatchable, first))

    # --- doing things ---

    def initialize(
        self,
        compiled: dml.CompiledOperator,
        inputs: Sequence[dml.BufferBinding | None] | None = None,
        persistent: dml.BufferBinding | None = None,
        first: int = 32,
    ) -> dml.OperatorInitializer:
        """Records the initializer and a UAV barrier."""
        initializer = self.dml.create_operator_initializer([compiled])
        table = self.table(initializer, first)
        table.bind_inputs(None if inputs is None else [dml.BufferArrayBinding(inputs)])
        table.bind_outputs(None if persistent is None else [persistent])
        self.recorder.record_dispatch(self.list, initializer, table)
        self.list.resource_barrier([d3d12.ResourceBarrier.uav(None)])
        return initializer

    def bound(
        self, compiled: dml.CompiledOperator, inputs: Sequence[Any], outputs: Sequence[Any], first: int = 0
    ) -> dml.BindingTable:
        table = self.table(compiled, first)
        table.bind_inputs(list(inputs))
        table.bind_outputs(list(outputs))
        return table

    def execute(self) -> None:
        """Closes the list, runs it to its end and opens it again."""
        self.list.close()
        self.queue.execute_command_lists([self.list])
        self.done += 1
        self.queue.signal(self.fence, self.done)
        self.fence.wait(self.done)
        self.allocator.reset()
        self.list.reset(self.allocator)
        self.list.set_descriptor_heaps([self.heap])

    def write(self, buffer: d3d12.Resource, data: np.ndarray[Any, Any], offset: int = 0) -> None:
        """Puts an array's bytes into a buffer of a default heap."""
        bytes_ = np.frombuffer(data.tobytes(), np.uint8)
        upload = self.buffer(len(bytes_), heap=d3d12.HeapType.UPLOAD)
        with upload.map() as memory:
            np.asarray(memory)[:] = bytes_
        self.list.copy_buffer_region(buffer, offset, upload, 0, len(bytes_))
        self.execute()

    def read(self, buffer: d3d12.Resource, dtype: Any = np.float32, count: int = 4, offset: int = 0) -> Any:
        """``count`` elements out of a buffer of a default heap, as a list."""
        size = count * np.dtype(dtype).itemsize
        readback = self.buffer(size, heap=d3d12.HeapType.READBACK)
        self.list.copy_buffer_region(readback, 0, buffer, offset, size)
        self.execute()
        with readback.map() as memory:
            return np.asarray(memory).view(dtype).tolist()

    def works(self) -> bool:
        """The device still runs an operator from end to end."""
        compiled = self.compile(identity(), name="probe")
        source, target = self.buffer(name="probe in"), self.buffer(name="probe out")
        self.write(source, np.arange(4, dtype=np.float32))
        self.initialize(compiled, first=60)
        table = self.bound(compiled, [dml.BufferBinding(source)], [dml.BufferBinding(target)], first=62)
        self.recorder.record_dispatch(self.list, compiled, table)
        self.execute()
        return bool(self.read(target) == [0, 1, 2, 3])


class refused:
    """``with refused("BIND_COUNT", "BT5", "BindingCount"):`` - the call inside breaks just that rule."""

    def __init__(self, id: str, rule: str, field: str, hresult: HResult = HResult.E_INVALIDARG) -> None:
        self.expected = (id, rule, field, hresult)
        self.report: Report
        self._awaited = pytest.raises(Error)

    def __enter__(self) -> refused:
        self._awaited.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not self._awaited.__exit__(kind, error, traceback):
            return False
        assert isinstance(error, Error)
        self.report = error.report
        rule, _, page = self.report.rule.partition(": ")
        assert page or not rule[-1:].isdigit(), f"rule {rule} does not say where it is written"
        assert (self.report.id, rule, self.report.field, error.hresult) == self.expected
        assert self.report.message.endswith(".")
        return True
