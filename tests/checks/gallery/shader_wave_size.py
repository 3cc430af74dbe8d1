"""The last lane of a wave of 64 lanes, which this GPU does not have."""

from dmlemu.testing.stage import Stage

CHECK = "SHADER_WAVE_SIZE"

SHADER = """
StructuredBuffer<float> values;
RWStructuredBuffer<float> last;

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(64, 1, 1)]
void main(uint i : SV_GroupIndex) {
    last[i] = WaveReadLaneAt(values[i], LANE);
}
"""


def run(stage: Stage, fixed: bool) -> None:
    lane = "WaveGetLaneCount() - 1" if fixed else "63"
    pipeline = stage.shader("last lane", SHADER.replace("LANE", lane))
    stage.run_shader(pipeline, 1, stage.filled("values"), stage.buffer("last"))
