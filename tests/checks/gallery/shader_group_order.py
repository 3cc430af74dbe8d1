"""The index of the last number above 10: that of the group that comes last."""

import numpy as np

from dmlemu.testing.stage import Stage

CHECK = "SHADER_GROUP_ORDER"

SHADER = """
StructuredBuffer<float> values;
RWStructuredBuffer<uint> last;

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(8, 1, 1)]
void main(uint3 at : SV_DispatchThreadID) {
    uint before;
    if (values[at.x] > 10) {
        KEEP;
    }
}
"""


def run(stage: Stage, fixed: bool) -> None:
    keep = "InterlockedExchange(last[0], at.x, before)"
    if fixed:
        keep = "InterlockedMax(last[0], at.x)"
    shader = stage.shader("last", SHADER.replace("KEEP", keep))
    last = stage.upload("last", np.uint32([0]))
    stage.run_shader(shader, 8, stage.filled("values"), last)
