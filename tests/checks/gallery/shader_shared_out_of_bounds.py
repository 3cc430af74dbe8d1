"""The last thread writes its right neighbour's place, which the tile does not have."""

from dmlemu.testing.stage import Stage

CHECK = "SHADER_SHARED_OUT_OF_BOUNDS"

SHADER = """
StructuredBuffer<float> values;
RWStructuredBuffer<float> moved;
groupshared float tile[SIZE];

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(32, 1, 1)]
void main(uint i : SV_GroupIndex) {
    tile[i + 1] = values[i];
    if (i == 0) {
        tile[0] = 0;
    }
    GroupMemoryBarrierWithGroupSync();
    moved[i] = tile[i];
}
"""


def run(stage: Stage, fixed: bool) -> None:
    pipeline = stage.shader("move", SHADER.replace("SIZE", "33" if fixed else "32"))
    stage.run_shader(pipeline, 1, stage.filled("values"), stage.buffer("moved"))
