// A sum of groupshared numbers: each step reads what other threads wrote in the step before.
StructuredBuffer<float> values;
RWStructuredBuffer<float> sums;
groupshared float part[64];

[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint3 group : SV_GroupID, uint i : SV_GroupIndex) {
    part[i] = values[id.x];
    GroupMemoryBarrierWithGroupSync();
    for (uint step = 32; step > 0; step /= 2) {
        if (i < step) {
            part[i] += part[i + step];
        }
#if FIXED
        GroupMemoryBarrierWithGroupSync();
#endif
    }
    if (i == 0) {
        sums[group.x] = part[0];
    }
}
