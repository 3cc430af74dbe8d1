"""A barrier in a branch that some threads of a wave do not take."""

from dmlemu.testing.stage import Stage

CHECK = "SHADER_BARRIER_DIVERGENT"

SHADER = """
StructuredBuffer<float> values;
RWStructuredBuffer<float> kept;
groupshared float tile[32];

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(32, 1, 1)]
void main(uint i : SV_GroupIndex) {
    tile[i] = values[i];
    OUTSIDE
    if (values[i] > 10) {
        INSIDE
        kept[i] = tile[31 - i];
    }
}
"""


def run(stage: Stage, fixed: bool) -> None:
    barrier = "GroupMemoryBarrierWithGroupSync();"
    shader = SHADER.replace("OUTSIDE" if fixed else "INSIDE", barrier)
    for name in ("OUTSIDE", "INSIDE"):
        shader = shader.replace(name, "")
    pipeline = stage.shader("keep", shader)
    stage.run_shader(pipeline, 1, stage.filled("values"), stage.buffer("kept"))
