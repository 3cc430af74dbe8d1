// A barrier waits for the threads of one group: another group's sum may not be there.  The last group that has
// counted itself may read all.
StructuredBuffer<uint> x;
globallycoherent RWStructuredBuffer<uint> sums;
globallycoherent RWStructuredBuffer<uint> done;
RWStructuredBuffer<uint> total;
groupshared uint sum;
groupshared uint order;

[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint3 group : SV_GroupID, uint i : SV_GroupIndex) {
    if (i == 0) {
        sum = 0;
    }
    GroupMemoryBarrierWithGroupSync();
    InterlockedAdd(sum, x[id.x]);
    GroupMemoryBarrierWithGroupSync();
    if (i == 0) {
        sums[group.x] = sum;
        DeviceMemoryBarrier();
#if FIXED
        InterlockedAdd(done[0], 1, order);
#else
        order = group.x;
#endif
    }
    AllMemoryBarrierWithGroupSync();
    if (order == 3 && i < 4) {
        InterlockedAdd(total[0], sums[i]);
    }
}
