"""A sum in groupshared memory: each step reads what others wrote in the step before."""

from dmlemu.testing.stage import Stage

CHECK = "SHADER_RACE_SHARED"

SHADER = """
StructuredBuffer<float> values;
RWStructuredBuffer<float> sums;
groupshared float part[64];

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
    part[i] = values[id.x];
    GroupMemoryBarrierWithGroupSync();
    for (uint step = 32; step > 0; step /= 2) {
        if (i < step) {
            part[i] += part[i + step];
        }
        BARRIER
    }
    if (i == 0) {
        sums[id.x / 64] = part[0];
    }
}
"""


def run(stage: Stage, fixed: bool) -> None:
    barrier = "GroupMemoryBarrierWithGroupSync();" if fixed else ""
    pipeline = stage.shader("sum", SHADER.replace("BARRIER", barrier))
    stage.run_shader(pipeline, 2, stage.filled("values", 512), stage.buffer("sums"))
