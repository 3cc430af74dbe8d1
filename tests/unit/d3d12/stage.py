"""Test stage: a device with queues, and helpers to create buffers and run lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pytest

from dmlemu import Error, HResult, Strictness
from dmlemu.d3d12 import (
    Adapter,
    CommandAllocator,
    CommandList,
    CommandListType,
    CommandQueue,
    CommandQueueDesc,
    DescriptorHeap,
    DescriptorHeapDesc,
    DescriptorHeapFlags,
    DescriptorHeapType,
    Device,
    Fence,
    HeapFlags,
    HeapProperties,
    HeapType,
    Policy,
    Resource,
    ResourceBarrier,
    ResourceDesc,
    ResourceFlags,
    ResourceStates,
    create_device,
)

DIRECT, COMPUTE, COPY, BUNDLE = (
    CommandListType.DIRECT,
    CommandListType.COMPUTE,
    CommandListType.COPY,
    CommandListType.BUNDLE,
)
STATE = ResourceStates
UAV = ResourceFlags.ALLOW_UNORDERED_ACCESS
INVALID = HResult.E_INVALIDARG
REMOVED = HResult.DXGI_ERROR_DEVICE_REMOVED
INVALID_CALL = HResult.DXGI_ERROR_INVALID_CALL


class Stage:
    """A separate simulated GPU with a device and a queue of each type."""

    def __init__(
        self,
        strictness: Strictness = Strictness.STRICT,
        policy: Policy = Policy.LAZY,
        memory: int = 64 << 20,
        raises: bool = True,
    ) -> None:
        self.adapter = Adapter(dedicated_memory=memory, policy=policy)
        self.device: Device = create_device(self.adapter, strictness=strictness, raises=raises)
        self._queues: dict[CommandListType, CommandQueue] = {}
        self.fence: Fence = self.device.create_fence()
        self._value = 0

    @property
    def queue(self) -> CommandQueue:
        return self.queue_of(DIRECT)

    def queue_of(self, type: CommandListType) -> CommandQueue:
        if type not in self._queues:
            self._queues[type] = self.device.create_command_queue(CommandQueueDesc(type))
        return self._queues[type]

    # --- buffers ---

    def buffer(
        self,
        width: int = 256,
        heap: HeapType = HeapType.DEFAULT,
        flags: ResourceFlags | None = None,
        state: ResourceStates | None = None,
    ) -> Resource:
        """A committed buffer, by default with the UAV flag if its heap type allows it."""
        if flags is None:
            flags = UAV if heap == HeapType.DEFAULT else ResourceFlags.NONE
        if state is None:
            fixed = {HeapType.UPLOAD: STATE.GENERIC_READ, HeapType.READBACK: STATE.COPY_DEST}
            state = fixed.get(heap, STATE.COMMON)
        return self.device.create_committed_resource(
            HeapProperties(heap), HeapFlags.NONE, ResourceDesc.buffer(width, flags), state
        )

    def upload(self, data: npt.ArrayLike) -> Resource:
        array = np.ascontiguousarray(data)
        buffer = self.buffer(array.nbytes, HeapType.UPLOAD)
        with buffer.map() as memory:
            memory.view(array.dtype)[:] = array.ravel()
        return buffer

    def filled(self, data: npt.ArrayLike) -> Resource:
        """A DEFAULT buffer that holds the data."""
        source = self.upload(data)
        buffer = self.buffer(source.get_desc().width)
        commands, _ = self.record()
        commands.copy_resource(buffer, source)
        self.run(commands)
        return buffer

    def read(self, buffer: Resource) -> npt.NDArray[np.uint8]:
        """The bytes of a buffer, copied back by the GPU."""
        width = buffer.get_desc().width
        target = self.buffer(width, HeapType.READBACK)
        commands, _ = self.record()
        commands.copy_resource(target, buffer)
        self.run(commands)
        with target.map() as memory:
            return memory.view().copy()

    # --- lists ---

    def record(self, type: CommandListType = DIRECT) -> tuple[CommandList, CommandAllocator]:
        allocator = self.device.create_command_allocator(type)
        return self.device.create_command_list(0, type, allocator), allocator

    def submit(self, *lists: CommandList) -> None:
        """Closes the lists if they are open and executes them on the queue of their type."""
        for each in lists:
            if each.is_open:
                each.close()
        self.queue_of(lists[0].get_type()).execute_command_lists(list(lists))

    def run(self, *lists: CommandList) -> None:
        """:meth:`submit`, and waits until the GPU is done."""
        self.submit(*lists)
        self.finish(lists[0].get_type())

    def finish(self, type: CommandListType = DIRECT) -> None:
        self._value += 1
        self.queue_of(type).signal(self.fence, self._value)
        self.fence.wait(self._value)

    # --- descriptors ---

    def heap(
        self, count: int = 4, visible: bool = False, type: DescriptorHeapType = DescriptorHeapType.CBV_SRV_UAV
    ) -> DescriptorHeap:
        flags = DescriptorHeapFlags.SHADER_VISIBLE if visible else DescriptorHeapFlags.NONE
        return self.device.create_descriptor_heap(DescriptorHeapDesc(type, count, flags))


def transition(resource: Resource | None, before: ResourceStates, after: ResourceStates) -> ResourceBarrier:
    return ResourceBarrier.transition(resource, before, after)


@contextmanager
def fails(
    rule: str, hresult: HResult = INVALID, message_id: int | None = None
) -> Iterator[pytest.ExceptionInfo[Error]]:
    """Asserts that the block raises an Error with this rule, HRESULT and message id, and a good message."""
    with pytest.raises(Error) as raised:
        yield raised
    error, report = raised.value, raised.value.report
    assert report.rule.startswith(f"{rule}: "), report.text(error.hresult)
    assert error.hresult is hresult, report.text(error.hresult)
    if message_id is not None:
        assert report.d3d12_id == message_id, report.text(error.hresult)
    check_message(error)


def check_message(error: Error) -> None:
    """Asserts the requirements on every message."""
    report = error.report
    first_line = report.message.splitlines()[0]
    assert first_line.endswith("."), first_line
    assert report.id == report.id.upper() and report.operation
    assert bool(report.given) == bool(report.expected), report.text()
    assert not report.given or report.field, report.text()
    assert "0x7f" not in report.text(), "a Python object's address"


def remarks(stage: Stage) -> list[int]:
    """The message ids in the info queue."""
    queue = stage.device.info_queue
    return [queue.get_message(i).d3d12_id for i in range(queue.get_num_stored_messages())]
