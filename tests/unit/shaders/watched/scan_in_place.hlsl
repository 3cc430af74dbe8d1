// Prefix sums: a thread reads a number that another one overwrites in the same step.
StructuredBuffer<uint> x;
RWStructuredBuffer<uint> y;
groupshared uint sums[64];

[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
    sums[i] = x[id.x];
    GroupMemoryBarrierWithGroupSync();
    for (uint step = 1; step < 64; step *= 2) {
        uint before = i >= step ? sums[i - step] : 0;
#if FIXED
        GroupMemoryBarrierWithGroupSync();
#endif
        sums[i] += before;
        GroupMemoryBarrierWithGroupSync();
    }
    y[id.x] = sums[i];
}
