"""The first number above 10: that of the group that comes first."""

import numpy as np

from dmlemu.testing.stage import Stage

CHECK = "SHADER_GROUP_ORDER"

SHADER = """
StructuredBuffer<float> values;
RWStructuredBuffer<uint> first;
static const uint NONE = 0xFFFFFFFF;

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(8, 1, 1)]
void main(uint3 at : SV_DispatchThreadID) {
    if (values[at.x] > 10) {
        KEEP;
    }
}
"""


def run(stage: Stage, fixed: bool) -> None:
    keep = "InterlockedCompareStore(first[0], NONE, at.x)"
    if fixed:
        keep = "InterlockedMin(first[0], at.x)"
    shader = stage.shader("first", SHADER.replace("KEEP", keep))
    first = stage.upload("first", np.uint32([0xFFFFFFFF]))
    stage.run_shader(shader, 8, stage.filled("values"), first)
