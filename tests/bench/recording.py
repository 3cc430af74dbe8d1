"""What recording costs, through the Python API and through the C ABI.

An operator is recorded as the TensorFlow plugin does it: GetBindingProperties, both descriptor handles,
GetDesc, CreateBindingTable, four Bind calls, RecordDispatch, ResourceBarrier and the last Release of the
table; 64 of them in a list.  Times are CPU times, the least of many lists.  `make bench` runs it at its end.
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
NATIVE = HERE.parent / "programs/native"
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

    def record_list(self) -> None:
        """A list of operators, recorded and executed."""
        self.list.set_descriptor_heaps([self.heap])
        for at in range(COUNT):
            self.record(at)
        self._run()

    def measure(self) -> float:
        """Microseconds of CPU time to record an operator, without what a list costs."""
        self.list.set_descriptor_heaps([self.heap])
        start = time.process_time()
        for at in range(COUNT):
            self.record(at)
        seconds = time.process_time() - start
        self._run()
        return 1e6 * seconds / COUNT


def build(folder: str, name: str = "recording", sources: Path = HERE) -> Path | None:
    """A C++ program; None where it cannot be built."""
    if shutil.which("g++") is None or not Path("/usr/include/directx/d3d12.h").exists():
        return None
    program = Path(folder) / name
    options = ["-std=c++17", "-O2", "-Wno-ignored-attributes", f"-I{NATIVE}", *_capi("--cflags")]
    command = ["g++", *options, str(sources / f"{name}.cpp"), "-o", str(program), *_capi("--libs")]
    subprocess.run(command, check=True)
    return program


def _capi(option: str) -> list[str]:
    return subprocess.run(
        [*DMLEMU, "capi", option], capture_output=True, text=True, check=True
    ).stdout.split()


def execute(program: Path | None, strictness: Strictness) -> str:
    """What a program that is linked with the C ABI prints."""
    command = [*DMLEMU, "exec", "--strictness", strictness.value, str(program), str(COUNT)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def table(program: Path) -> str:
    """What recording.cpp measures: microseconds at each strictness."""
    rows: dict[str, list[str]] = {}
    for strictness in (Strictness.RUNTIME, Strictness.DEBUG, Strictness.STRICT):
        for line in execute(program, strictness).splitlines():
            name, value = line.rsplit(maxsplit=1)
            rows.setdefault(name, []).append(f"{float(value):9.3f}")
    return "\n".join(f"C ABI: {name:50} {' '.join(values)} us" for name, values in rows.items())


def start(program: Path) -> str:
    """Time from start to end, least of 20, and resident memory, of a program without ``dmlemu exec``."""
    environment = {**os.environ, "LD_LIBRARY_PATH": _capi("--libdir")[0]}
    times, busy, resident = [], [], 0
    for _ in range(20):
        begin = time.perf_counter()
        child = subprocess.Popen([str(program)], env=environment, stdout=subprocess.DEVNULL)
        _, _, usage = os.wait4(child.pid, 0)
        times.append(time.perf_counter() - begin)
        busy.append(usage.ru_utime + usage.ru_stime)
        resident = max(resident, usage.ru_maxrss)
    took, cpu = 1e3 * min(times), 1e3 * min(busy)
    return f"{program.name}: {took:.0f} ms, {cpu:.0f} ms of CPU time, {resident / 1024:.0f} MB resident"


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else 60
    for strictness in (Strictness.RUNTIME, Strictness.DEBUG, Strictness.STRICT):
        recording = Recording(strictness)
        microseconds = min(recording.measure() for _ in range(rounds))
        print(f"Python API, {strictness.value:8} {microseconds:9.1f} us")
    with tempfile.TemporaryDirectory() as folder:
        program, identity = build(folder), build(folder, "identity", NATIVE)
        if program is not None and identity is not None:
            print(table(program))
            print(start(identity))


if __name__ == "__main__":
    main()
