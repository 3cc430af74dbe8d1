"""A sum of floats, to which each group adds its own: every order rounds in another way."""

import numpy as np

from dmlemu.testing.stage import Stage

CHECK = "SHADER_GROUP_ORDER"

SHADER = """
StructuredBuffer<float> values;
RWByteAddressBuffer total;

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(1, 1, 1)]
void main(uint3 group : SV_GroupID) {
    uint seen = 0, before;
    total.InterlockedCompareExchange(0, 0, 0, seen);
    do {
        before = seen;
        uint sum = asuint(asfloat(before) + 1 / values[group.x]);
        total.InterlockedCompareExchange(0, before, sum, seen);
    } while (seen != before);
}
"""

IN_ORDER = """
StructuredBuffer<float> values;
RWByteAddressBuffer total;

[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(1, 1, 1)]
void main() {
    float sum = 0;
    for (uint i = 0; i < 64; i++) {
        sum += 1 / values[i];
    }
    total.Store(0, asuint(sum));
}
"""


def run(stage: Stage, fixed: bool) -> None:
    values, total = stage.filled("values"), stage.upload("total", np.float32([0]))
    if fixed:
        stage.run_shader(stage.shader("sum", IN_ORDER), 1, values, total)
    else:
        stage.run_shader(stage.shader("sum", SHADER), 64, values, total)
