"""The second of two placed buffers begins before the first one ends: what is copied there is overwritten."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "HEAP_OVERLAP"


def run(stage: Stage, fixed: bool) -> None:
    size = 100_000  # takes 131072 bytes
    heap = stage.device.create_heap(d3d12.HeapDesc(1 << 18))
    heap.set_name("scratch")
    desc = d3d12.ResourceDesc.buffer(size, UAV)
    buffers = []
    for i in range(2):
        offset = i * (131072 if fixed else 65536)
        buffers.append(
            stage.device.create_placed_resource(heap, offset, desc, States.COMMON)
        )
        buffers[i].set_name("ab"[i])
    source = stage.filled("source", 1024)
    for buffer in buffers:
        stage.list.copy_buffer_region(buffer, 0, source, 0, 1024)
    stage.run()
