// GroupMemoryBarrier() orders accesses, but waits for nobody.
StructuredBuffer<uint> values;
RWStructuredBuffer<uint> reversed;
groupshared uint tile[32];

[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
    tile[i] = values[id.x];
#if FIXED
    GroupMemoryBarrierWithGroupSync();
#else
    GroupMemoryBarrier();
#endif
    reversed[id.x] = tile[31 - i];
}
