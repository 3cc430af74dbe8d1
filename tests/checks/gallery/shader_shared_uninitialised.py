"""Bins in groupshared memory are counted up before anybody has set them to 0."""

from dmlemu.testing.stage import Stage

CHECK = "SHADER_SHARED_UNINITIALISED"

SHADER = """
StructuredBuffer<float> values;
RWStructuredBuffer<uint> bins;
groupshared uint counts[4];

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(64, 1, 1)]
void main(uint i : SV_GroupIndex) {
    if (CLEARS && i < 4) {
        counts[i] = 0;
    }
    GroupMemoryBarrierWithGroupSync();
    InterlockedAdd(counts[(uint)values[i] % 4], 1);
    GroupMemoryBarrierWithGroupSync();
    if (i < 4) {
        bins[i] = counts[i];
    }
}
"""


def run(stage: Stage, fixed: bool) -> None:
    shader = SHADER.replace("CLEARS", "true" if fixed else "false")
    pipeline = stage.shader("histogram", shader)
    stage.run_shader(pipeline, 1, stage.filled("values"), stage.buffer("bins"))
