"""All threads that find something write 1 to one flag."""

from dmlemu.testing.stage import Stage

CHECK = "SHADER_RACE_SAME_VALUE"

SHADER = """
StructuredBuffer<float> values;
RWStructuredBuffer<uint> found;

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (values[id.x] > 3) {
        TELL
    }
}
"""


def run(stage: Stage, fixed: bool) -> None:
    tell = "InterlockedOr(found[0], 1);" if fixed else "found[0] = 1;"
    pipeline = stage.shader("find", SHADER.replace("TELL", tell))
    stage.run_shader(pipeline, 1, stage.filled("values"), stage.filled("found"))
