"""Interruptions at any moment: Ctrl-C, a fork, an unusable event."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from dmlemu import Error, HResult
from dmlemu.d3d12 import Adapter, HeapDesc, ResourceDesc, create_adapter_list, create_device
from processes import started

from .stage import INVALID, STATE, Stage, fails

LONG_PRODUCT = """
import sys
from dmlemu import Error, d3d12, dml
from tests.unit.d3d12.stage import Stage

H, n, depth = dml.TensorDataType.FLOAT32, 8192, 2**18
stage = Stage(memory=1 << 30)
device = dml.create_device(stage.device)
a = dml.BufferTensorDesc(H, [1, 1, n, depth], [0, 0, 0, 0])
b = dml.BufferTensorDesc(H, [1, 1, depth, n], [0, 0, 0, 0])
c = dml.BufferTensorDesc(H, [1, 1, n, n])
none = dml.MatrixTransform.NONE
operator = dml.GemmOperatorDesc(
    a_tensor=a, b_tensor=b, output_tensor=c, trans_a=none, trans_b=none, alpha=1.0, beta=0.0
)
compiled = device.compile_operator(device.create_operator(operator))
count = compiled.get_binding_properties().required_descriptor_count
heap = stage.heap(count, visible=True)
table = device.create_binding_table(
    dml.BindingTableDesc(
        compiled,
        heap.get_cpu_descriptor_handle_for_heap_start(),
        heap.get_gpu_descriptor_handle_for_heap_start(),
        count,
    )
)
small, large = stage.buffer(), stage.buffer(n * n * 4)
table.bind_inputs([dml.BufferBinding(small, 0, 4), dml.BufferBinding(small, 16, 4), None])
table.bind_outputs([dml.BufferBinding(large)])
initializer = device.create_operator_initializer([compiled])
commands, _ = stage.record()
commands.set_descriptor_heaps([heap])
recorder = device.create_command_recorder()
recorder.record_dispatch(
    commands, initializer, device.create_binding_table(dml.BindingTableDesc(initializer, 0, 0, 0))
)
commands.resource_barrier([d3d12.ResourceBarrier.uav(None)])
recorder.record_dispatch(commands, compiled, table)
print("runs", flush=True)
try:
    stage.run(commands)
except KeyboardInterrupt:
    print("interrupted", stage.device.get_device_removed_reason().name)
    try:
        stage.buffer()
    except Error as error:
        print(error)
    raise
"""


def test_RM3_ctrl_c_ends_a_kernel_that_takes_long() -> None:
    command = [sys.executable, "-c", LONG_PRODUCT]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)  # it would take hours
    assert "\nKeyboardInterrupt\n" in errors
    assert output.startswith("interrupted DXGI_ERROR_DEVICE_HUNG\n")
    assert "is called on a removed device" in output
    assert "The dispatch of kernel 'gemm' was interrupted by the host while it ran" in output


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that is what is tested
def test_DEV5_a_forked_process_cannot_use_its_parents_device(stage: Stage) -> None:
    commands, _ = stage.record()
    commands.close()
    buffer, value = stage.buffer(), stage.fence.get_completed_value()
    calls: tuple[Callable[[], object], ...] = (
        stage.buffer,
        stage.queue_of,
        lambda: stage.device.create_reserved_resource(ResourceDesc.buffer(65536), STATE.COMMON),
        lambda: stage.fence.signal(9),
        lambda: stage.fence.wait(9, 1),
        lambda: stage.fence.set_event_on_completion(9, threading.Event()),
        stage.fence.get_completed_value,
        lambda: stage.queue.signal(stage.fence, 9),
        lambda: stage.queue.execute_command_lists([commands]),
    )
    stage.queue  # noqa: B018 - made here, used there
    child = os.fork()
    if child == 0:
        refused = 0
        for call in calls[:1] + calls[2:]:
            try:
                call()
            except Error as error:
                told = str(os.getpid()), "Called at "
                refused += error.report.id == "DEVICE_FORKED" and all(each in str(error) for each in told)
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(calls) - 1
    assert stage.fence.get_completed_value() == value
    stage.read(buffer)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that is what is tested
@pytest.mark.parametrize("is_default", [True, False])
def test_DEV5_in_a_forked_process_an_adapter_has_a_new_device(is_default: bool) -> None:
    adapter = create_adapter_list()[0] if is_default else Adapter(dedicated_memory=1 << 20)
    device = create_device(adapter)
    heap = device.create_heap(HeapDesc(65536))
    with adapter.lock:  # another thread may hold it
        child = os.fork()
    if child == 0:
        try:
            own = create_device(None if is_default else adapter)
            assert own is not device
            assert create_device(adapter) is own
            own.create_heap(HeapDesc(65536)).release()
            assert adapter.query_memory_budget().current_usage == 0
            try:
                device.create_heap(HeapDesc(65536))
            except Error as error:
                assert error.report.id == "DEVICE_FORKED"
                del device, heap
                assert create_device(adapter) is own
                os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert create_device(adapter) is device
    assert adapter.query_memory_budget().current_usage == 65536
    heap.release()
    device.release()
    device.release()


@pytest.mark.parametrize("timeout", [float("nan"), -1, -0.5])
def test_wait_refuses_times_that_are_none(stage: Stage, timeout: float) -> None:
    with pytest.raises(Error, match="timeout") as caught:
        stage.fence.wait(1, timeout)
    assert (caught.value.hresult, caught.value.report.field) == (INVALID, "timeout")
    with pytest.raises(TypeError, match="timeout must be a number"):
        stage.fence.wait(1, "5")  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="no eventfd")
class TestEventFds:
    def test_FN8_a_full_one_is_set_already(self, stage: Stage) -> None:
        handle = os.eventfd(0, 0)
        try:
            os.eventfd_write(handle, 2**64 - 2)
            stage.fence.set_event_on_completion(1, handle)
            stage.fence.signal(1)
            assert os.eventfd_read(handle) == 2**64 - 2
        finally:
            os.close(handle)

    def test_FN8_its_number_may_be_closed_before(self, stage: Stage) -> None:
        handle = os.eventfd(0, 0)
        kept = os.dup(handle)
        stage.fence.set_event_on_completion(1, handle)
        os.close(handle)
        reader, writer = os.pipe()  # takes the number
        try:
            stage.fence.signal(1)
            assert os.eventfd_read(kept) == 1
            assert not select.select([reader], [], [], 0)[0]
        finally:
            for each in (kept, reader, writer):
                os.close(each)

    def test_FN8_one_that_cannot_be_kept(self, stage: Stage) -> None:
        handle = os.eventfd(0, 0)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = os.dup(handle)
        os.close(spare)  # the lowest number that is free
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (spare, before[1]))
            with fails("FN8", HResult.E_HANDLE):
                stage.fence.set_event_on_completion(1, handle)
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            stage.fence.set_event_on_completion(1, handle)
            stage.fence.signal(1)
            assert os.eventfd_read(handle) == 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            os.close(handle)

    def test_FN8_other_files_are_no_events(self, stage: Stage) -> None:
        reader, writer = os.pipe()
        try:
            for handle in (reader, writer):
                with fails("FN8", HResult.E_HANDLE):
                    stage.fence.set_event_on_completion(1, handle)
        finally:
            os.close(reader)
            os.close(writer)


@pytest.mark.parametrize("event", ["x", True, 1.5, threading.Event])
def test_FN4_what_is_no_event(stage: Stage, event: object) -> None:
    with pytest.raises(TypeError, match="event must have a method set"):
        stage.fence.set_event_on_completion(1, event)  # type: ignore[arg-type]
    stage.fence.signal(1)


def test_FN4_an_event_that_raises_keeps_none_from_being_set(stage: Stage) -> None:
    class Bad:
        def set(self) -> None:
            raise ZeroDivisionError

    good = threading.Event()
    stage.fence.set_event_on_completion(1, Bad())
    stage.fence.set_event_on_completion(1, good)
    with pytest.raises(ZeroDivisionError):
        stage.fence.signal(1)
    assert good.is_set()
    assert stage.fence.get_completed_value() == 1


def test_released_queues_are_forgotten(stage: Stage) -> None:
    stage.finish()
    count = len(stage.device.context.gpu.queues)
    for release in (True, False):
        queue = stage.device.create_command_queue()
        if release:
            queue.release()
        del queue
        stage.finish()
        assert len(stage.device.context.gpu.queues) == count
