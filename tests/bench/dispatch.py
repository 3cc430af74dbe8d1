"""One compiled operator with everything bound, ready to be executed again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmlemu import d3d12, dml
from dmlemu.dml.declared.schema import OperatorDesc
from dmlemu.dml.lowering.fields import tensor_fields

UAV = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS


class PreparedDispatch:
    """``run()`` submits a command list with ``count`` dispatches and waits for the fence.

    ``contents`` are the physical elements of each input tensor, as they stand in memory: of an array field a
    list.
    """

    def __init__(
        self,
        device: d3d12.Device,
        desc: OperatorDesc,
        contents: Mapping[str, Any],
        count: int = 1,
    ) -> None:
        self.device = device
        self.queue = device.create_command_queue(d3d12.CommandQueueDesc(type=d3d12.CommandListType.COMPUTE))
        self.allocator = device.create_command_allocator(d3d12.CommandListType.COMPUTE)
        self.list = device.create_command_list(0, d3d12.CommandListType.COMPUTE, self.allocator)
        self.fence = device.create_fence()
        self.fence_value = 0
        self.kept: list[Any] = []

        dml_device = dml.create_device(device)
        compiled = dml_device.compile_operator(dml_device.create_operator(desc))
        initializer = dml_device.create_operator_initializer([compiled])
        self.recorder = dml_device.create_command_recorder()
        self.compiled = compiled

        properties = compiled.get_binding_properties()
        setup = initializer.get_binding_properties()
        self.slots = max(properties.required_descriptor_count, setup.required_descriptor_count)
        self.heap = device.create_descriptor_heap(
            d3d12.DescriptorHeapDesc(
                type=d3d12.DescriptorHeapType.CBV_SRV_UAV,
                num_descriptors=self.slots,
                flags=d3d12.DescriptorHeapFlags.SHADER_VISIBLE,
            )
        )
        self.dml_device = dml_device
        self.list.close()
        inputs, outputs = self._buffers(desc, contents)
        owned = [each is not None and each.owned_by_dml for each in _inputs(desc)]
        weights = [each if is_owned else None for each, is_owned in zip(inputs, owned, strict=True)]
        inputs = [dml.BindingDesc.none() if own else each for each, own in zip(inputs, owned, strict=True)]
        persistent = self._scratch(max(properties.persistent_resource_size, 4))
        self._initialize(initializer, weights if any(owned) else None, persistent)
        self.table = dml_device.create_binding_table(self._table_desc(compiled))
        self.table.bind_inputs(inputs)
        self.table.bind_outputs(outputs)
        if properties.temporary_resource_size:
            self.table.bind_temporary_resource(self._scratch(properties.temporary_resource_size))
        if properties.persistent_resource_size:
            self.table.bind_persistent_resource(persistent)
        self.list.reset(self.allocator)
        self.record(count)

    def record(self, count: int) -> None:
        """Records ``count`` dispatches into the open list and closes it."""
        self.list.set_descriptor_heaps([self.heap])
        for _ in range(count):
            self.recorder.record_dispatch(self.list, self.compiled, self.table)
            self.list.resource_barrier([d3d12.ResourceBarrier.uav(None)])
        self.list.close()

    def run(self) -> None:
        self.queue.execute_command_lists([self.list])
        self.fence_value += 1
        self.queue.signal(self.fence, self.fence_value)
        self.fence.wait(self.fence_value)

    def _initialize(self, initializer: Any, weights: list[Any] | None, persistent: dml.BindingDesc) -> None:
        table = self.dml_device.create_binding_table(self._table_desc(initializer))
        if weights is not None:
            table.bind_inputs([dml.BufferArrayBinding([each and each.desc for each in weights])])
            table.bind_outputs([persistent])
        self.list.reset(self.allocator)
        self.list.set_descriptor_heaps([self.heap])
        self.recorder.record_dispatch(self.list, initializer, table)
        self.list.close()
        self.run()

    def _table_desc(self, dispatchable: Any) -> dml.BindingTableDesc:
        return dml.BindingTableDesc(
            dispatchable=dispatchable,
            cpu_descriptor_handle=self.heap.get_cpu_descriptor_handle_for_heap_start(),
            gpu_descriptor_handle=self.heap.get_gpu_descriptor_handle_for_heap_start(),
            size_in_descriptors=self.slots,
        )

    def _buffer(self, size: int, heap: d3d12.HeapType, flags: d3d12.ResourceFlags) -> d3d12.Resource:
        state = {
            d3d12.HeapType.UPLOAD: d3d12.ResourceStates.GENERIC_READ,
            d3d12.HeapType.DEFAULT: d3d12.ResourceStates.COMMON,
        }[heap]
        buffer = self.device.create_committed_resource(
            d3d12.HeapProperties(type=heap),
            d3d12.HeapFlags.NONE,
            d3d12.ResourceDesc.buffer(size, flags=flags),
            state,
        )
        self.kept.append(buffer)
        return buffer

    def _scratch(self, size: int) -> dml.BindingDesc:
        buffer = self._buffer(size, d3d12.HeapType.DEFAULT, UAV)
        return dml.BindingDesc.buffer(buffer, 0, size)

    def _buffers(self, desc: OperatorDesc, contents: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
        """Default-heap buffers for every tensor of ``desc``, the inputs uploaded."""
        inputs, outputs = [], []
        for field in tensor_fields(desc):
            bound = outputs if field.output else inputs
            if field.desc is None:
                bound.append(dml.BindingDesc.none())
                continue
            size = field.desc.size_in_bytes
            buffer = self._buffer(size, d3d12.HeapType.DEFAULT, UAV)
            if not field.output:
                content = contents[field.name]
                self._upload(buffer, content if field.index is None else content[field.index])
            bound.append(dml.BindingDesc.buffer(buffer, 0, size))
        return inputs, outputs

    def _upload(self, buffer: d3d12.Resource, content: np.ndarray[Any, Any]) -> None:
        flat = content.reshape(-1).view(np.uint8)
        upload = self._buffer(len(flat), d3d12.HeapType.UPLOAD, d3d12.ResourceFlags.NONE)
        np.asarray(upload.map())[: len(flat)] = flat
        upload.unmap()
        self.list.reset(self.allocator)
        self.list.copy_buffer_region(buffer, 0, upload, 0, len(flat))
        self.list.close()
        self.run()


def _inputs(desc: OperatorDesc) -> list[Any]:
    return [field.desc for field in tensor_fields(desc) if not field.output]
