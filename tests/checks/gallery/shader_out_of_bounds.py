"""50 elements and a group of 64 threads: the last ones write outside of the view."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "SHADER_OUT_OF_BOUNDS"

SHADER = """
RWStructuredBuffer<float> values;

[RootSignature("DescriptorTable(UAV(u0))")]
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (id.x < COUNT) {
        values[id.x] = id.x;
    }
}
"""


def run(stage: Stage, fixed: bool) -> None:
    pipeline = stage.shader("count", SHADER.replace("COUNT", "50" if fixed else "64"))
    values = stage.buffer("values")
    view = d3d12.UnorderedAccessViewDesc(
        d3d12.Format.UNKNOWN, buffer=d3d12.BufferUav(0, 50, 4)
    )
    stage.device.create_unordered_access_view(
        values, None, view, stage.heap.get_cpu_descriptor_handle_for_heap_start()
    )
    stage.list.set_descriptor_heaps([stage.heap])
    stage.use_shader(pipeline)
    table = stage.heap.get_gpu_descriptor_handle_for_heap_start()
    stage.list.set_compute_root_descriptor_table(0, table)
    stage.list.dispatch(1, 1, 1)
    stage.run()
