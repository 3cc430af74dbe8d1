// Both halves of the group wait, at two different barriers.
StructuredBuffer<float> x;
RWStructuredBuffer<float> y;
groupshared float tile[64];

[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
#if FIXED
    tile[i] = i < 32 ? x[id.x] : -x[id.x];
    GroupMemoryBarrierWithGroupSync();
#else
    if (i < 32) {
        tile[i] = x[id.x];
        GroupMemoryBarrierWithGroupSync();
    } else {
        tile[i] = -x[id.x];
        GroupMemoryBarrierWithGroupSync();
    }
#endif
    y[id.x] = tile[63 - i];
}
