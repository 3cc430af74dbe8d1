"""The GPU handle of a heap that only the CPU sees."""

from dmlemu.testing.stage import Stage, descriptor_heap

CHECK = "DESC_HEAP_NOT_VISIBLE"


def run(stage: Stage, fixed: bool) -> None:
    heap = descriptor_heap(stage, 8, visible=fixed)
    heap.set_name("views")
    heap.get_gpu_descriptor_handle_for_heap_start()
