"""Each thread adds its right neighbour in place, which the neighbour overwrites meanwhile."""

from dmlemu.testing.stage import Stage

CHECK = "SHADER_RACE"

SHADER = """
StructuredBuffer<float> source;
RWStructuredBuffer<float> values;

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (id.x < 63) {
        values[id.x] = FROM[id.x] + FROM[id.x + 1] + 0 * source[0];
    }
}
"""


def run(stage: Stage, fixed: bool) -> None:
    read = "source" if fixed else "values"
    pipeline = stage.shader("add neighbour", SHADER.replace("FROM", read))
    source, values = stage.filled("source"), stage.filled("values")
    stage.run_shader(pipeline, 2, source, values)
