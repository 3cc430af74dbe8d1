// A barrier waits for all threads of the group, of which only some come to it.
StructuredBuffer<float> x;
RWStructuredBuffer<float> y;
groupshared float tile[32];

[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
    tile[i] = x[id.x];
#if FIXED
    GroupMemoryBarrierWithGroupSync();
    if (x[id.x] > 10) {
#else
    if (x[id.x] > 10) {
        GroupMemoryBarrierWithGroupSync();
#endif
        y[id.x] = tile[i];
    }
}
