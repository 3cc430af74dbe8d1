"""In the branch of the odd threads, lane 0 is not active."""

from dmlemu.testing.stage import Stage

CHECK = "SHADER_INACTIVE_LANE"

SHADER = """
StructuredBuffer<float> values;
RWStructuredBuffer<float> first;

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(32, 1, 1)]
void main(uint i : SV_GroupIndex) {
    float own = values[i];
    first[i] = own;
    if (i & 1) {
        first[i] = READ;
    }
}
"""


def run(stage: Stage, fixed: bool) -> None:
    read = "WaveReadLaneFirst(own)" if fixed else "WaveReadLaneAt(own, 0)"
    pipeline = stage.shader("first lane", SHADER.replace("READ", read))
    stage.run_shader(pipeline, 1, stage.filled("values"), stage.buffer("first"))
