"""A barrier waits for one group: another group's sum may not be there yet."""

from dmlemu.testing.stage import Stage

CHECK = "SHADER_RACE"

SHADER = """
RWByteAddressBuffer sums;

[RootSignature("UAV(u0)")]
[numthreads(16, 1, 1)]
void main(uint3 group : SV_GroupID, uint i : SV_GroupIndex) {
    if (i == 0) {
        sums.Store(4 * group.x, group.x + 1);
    }
    DeviceMemoryBarrierWithGroupSync();
    if (READS && i == 0) {
        uint total = 0;
        for (uint each = 0; each < 4; each++) {
            total += sums.Load(4 * each);
        }
        sums.Store(16, total);
    }
}
"""

TOTAL = """
RWByteAddressBuffer sums;

[RootSignature("UAV(u0)")]
[numthreads(1, 1, 1)]
void main() {
    uint total = 0;
    for (uint each = 0; each < 4; each++) {
        total += sums.Load(4 * each);
    }
    sums.Store(16, total);
}
"""


def run(stage: Stage, fixed: bool) -> None:
    sums = stage.buffer("sums")
    if fixed:  # in a dispatch of its own, of one group
        stage.run_shader(
            stage.shader("sums", SHADER.replace("READS", "false")), 4, sums
        )
        stage.run_shader(stage.shader("total", TOTAL), 1, sums)
    else:
        shader = SHADER.replace("READS", "group.x == 3")
        stage.run_shader(stage.shader("sums", shader), 4, sums)
