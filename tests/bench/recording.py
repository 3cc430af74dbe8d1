"""What recording costs, through the Python API and through the C ABI.

An operator is recorded as the TensorFlow plugin does it: GetBindingProperties, both descriptor handles,
GetDesc, CreateBindingTable, four Bind calls, RecordDispatch, ResourceBarrier and the last Release of the table;
64 of them in a list.  Times are CPU times, the least of many lists.  ``python tests/bench/recording.py`` prints a
table; `make bench` has the same rows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dmlemu import Strictness, d3d12, dml

HERE = Path(__file__).parent
COUNT = 64
DMLEMU = [sys.executable, "-m", "dmlemu"]


class Recording:
    """A device, an addition of four floats, and a list to record it into."""

    def __init__(self, strictness: Strictness) -> None:
        self.device = d3d12.create_device(d3d12.Adapter(), strictness=strictness)
        self.dml = dml.create_device(self.device)
        self.queue = self.device.create_command_queue(d3d12.CommandQueueDesc())
        self.allocator = self.device.create_command_allocator(d3d12.CommandListType.DIRECT)
        self.list = self.device.create_command_list(0, d3d12.CommandListType.DIRECT, self.allocator)
        self.fence = self.device.create_fence()
        self.value = 0
        self.recorder = self.dml.create_command_recorder()
        self.heap = self.device.create_descriptor_heap(
            d3d12.DescriptorHeapDesc(
                d3d12.DescriptorHeapType.CBV_SRV_UAV, 65536, d3d12.DescriptorHeapFlags.SHADER_VISIBLE
            )
        )
        self.step = self.device.get_descriptor_handle_increment_size(d3d12.DescriptorHeapType.CBV_SRV_UAV)
        operand = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 1, 1, 4])
        desc = dml.ElementWiseAddOperatorDesc(a_tensor=operand, b_tensor=operand, output_tensor=operand)
        self.compiled = self.dml.compile_operator(self.dml.create_operator(desc))
        self.buffers = [self._buffer() for _ in range(3)]
        self._initialize()

    def _buffer(self) -> d3d12.Resource:
        return self.device.create_committed_resource(
            d3d12.HeapProperties(d3d12.HeapType.DEFAULT),
            d3d12.HeapFlags.NONE,
            d3d12.ResourceDesc.buffer(256, flags=d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS),
            d3d12.ResourceStates.UNORDERED_ACCESS,
        )

    def _initialize(self) -> None:
        """Records and runs the initializer, and writes all buffers."""
        initializer = self.dml.create_operator_initializer([self.compiled])
        table = self.dml.create_binding_table(dml.BindingTableDesc(initializer, 0, 0, 0))
        self.list.set_descriptor_heaps([self.heap])
        self.recorder.record_dispatch(self.list, initializer, table)
        upload = self.device.create_committed_resource(
            d3d12.HeapProperties(d3d12.HeapType.UPLOAD),
            d3d12.HeapFlags.NONE,
            d3d12.ResourceDesc.buffer(256),
            d3d12.ResourceStates.GENERIC_READ,
        )
        memory = upload.map()
        memory[:] = bytes(256)
        upload.unmap()
        before, after = d3d12.ResourceStates.COPY_DEST, d3d12.ResourceStates.UNORDERED_ACCESS
        for each in self.buffers:
            self.list.resource_barrier(d3d12.ResourceBarrier.transition(each, after, before))
            self.list.copy_buffer_region(each, 0, upload, 0, 256)
            self.list.resource_barrier(d3d12.ResourceBarrier.transition(each, before, after))
        self._run()

    def _run(self) -> None:
        self.list.close()
        self.queue.execute_command_lists([self.list])
        self.value += 1
        self.queue.signal(self.fence, self.value)
        self.fence.set_event_on_completion(self.value, None)
        self.allocator.reset()
        self.list.reset(self.allocator)

    def record(self, at: int) -> None:
        """One operator, with descriptors of its own."""
        properties = self.compiled.get_binding_properties()
        count = properties.required_descriptor_count
        first = at * count * self.step
        cpu = self.heap.get_cpu_descriptor_handle_for_heap_start()
        gpu = self.heap.get_gpu_descriptor_handle_for_heap_start()
        self.buffers[0].get_desc()
        desc = dml.BindingTableDesc(self.compiled, cpu + first, gpu + first, count)
        table = self.dml.create_binding_table(desc)
        table.bind_temporary_resource(dml.BindingDesc.none())
        table.bind_persistent_resource(dml.BindingDesc.none())
        a, b, output = (dml.BindingDesc.buffer(each, 0, 256) for each in self.buffers)
        table.bind_inputs([a, b])
        table.bind_outputs([output])
        self.recorder.record_dispatch(self.list, self.compiled, table)
        self.list.resource_barrier(
            [d3d12.ResourceBarrier.uav(None), d3d12.ResourceBarrier.aliasing(None, None)]
        )
        table.release()

    def run(self) -> float:
        """Seconds of CPU time to record an operator."""
        self.list.set_descriptor_heaps([self.heap])
        start = time.process_time()
        for at in range(COUNT):
            self.record(at)
        seconds = (time.process_time() - start) / COUNT
        self._run()
        return seconds


def build(folder: str) -> Path | None:
    """The program that measures the C ABI; None where it cannot be built."""
    if shutil.which("g++") is None or not Path("/usr/include/directx/d3d12.h").exists():
        return None
    flags, libraries = (_capi(option) for option in ("--cflags", "--libs"))
    program = Path(folder) / "recording"
    source, common = HERE / "recording.cpp", HERE.parent / "programs/native"
    options = ["-std=c++17", "-O2", "-Wno-ignored-attributes", f"-I{common}", *flags]
    subprocess.run(["g++", *options, str(source), "-o", str(program), *libraries], check=True)
    return program


def _capi(option: str) -> list[str]:
    return subprocess.run(
        [*DMLEMU, "capi", option], capture_output=True, text=True, check=True
    ).stdout.split()


def native(program: Path, strictness: Strictness) -> dict[str, float]:
    """What recording.cpp prints: microseconds by name."""
    command = [*DMLEMU, "exec", "--strictness", strictness.value, str(program), str(COUNT)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: float(value) for name, value in (line.rsplit(maxsplit=1) for line in text.splitlines())}


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else 60
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        for strictness in (Strictness.RUNTIME, Strictness.DEBUG, Strictness.STRICT):
            recording = Recording(strictness)
            ours = 1e6 * min(recording.run() for _ in range(rounds))
            print(f"{strictness.value:8} Python API{ours:9.1f} us")
            for name, value in ({} if program is None else native(program, strictness)).items():
                print(f"{strictness.value:8} {name:40}{value:9.3f} us")


if __name__ == "__main__":
    main()
