"""Two reserved buffers whose tiles are mapped to the same memory: only the GPU's page tables show it."""

from dmlemu import d3d12, dml
from dmlemu.testing.stage import UAV, Stage, States, product

CHECK = "BIND_ALIAS"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(), "layer")
    stage.initialize(layer)
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE))
    desc = d3d12.ResourceDesc.buffer(TILE, UAV)
    a, output = (
        stage.device.create_reserved_resource(desc, States.COMMON) for _ in range(2)
    )
    a.set_name("a")
    output.set_name("output")
    for tile, buffer in ((0, a), (1 if fixed else 0, output)):
        stage.queue.update_tile_mappings(
            buffer, heap=heap, heap_range_start_offsets=[tile], range_tile_counts=[1]
        )
    stage.list.copy_buffer_region(a, 0, stage.filled("image"), 0, 256)
    stage.run()
    stage.dispatch(layer, [dml.BufferBinding(a), stage.filled("b"), None], [output])
    stage.run()
