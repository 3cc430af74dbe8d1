"""Threads without an element return, and the others of their group wait for them."""

from dmlemu.testing.stage import Stage

CHECK = "SHADER_BARRIER_DIVERGENT"

SHADER = """
StructuredBuffer<float> values;
RWStructuredBuffer<float> turned;
groupshared float tile[64];

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(64, 1, 1)]
void main(uint i : SV_GroupIndex) {
    bool inside = i < 48;
    if (RETURNS && !inside) {
        return;
    }
    tile[i] = inside ? values[i] : 0;
    GroupMemoryBarrierWithGroupSync();
    if (inside) {
        turned[i] = tile[47 - i];
    }
}
"""


def run(stage: Stage, fixed: bool) -> None:
    shader = SHADER.replace("RETURNS", "false" if fixed else "true")
    pipeline = stage.shader("turn", shader)
    stage.run_shader(pipeline, 1, stage.filled("values"), stage.buffer("turned"))
