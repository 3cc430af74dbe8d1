// The last thread reads one element past the tile.
StructuredBuffer<float> x;
RWStructuredBuffer<float> y;
#if FIXED
groupshared float tile[33];
#else
groupshared float tile[32];
#endif

[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
    tile[i] = x[id.x];
#if FIXED
    if (i == 31) {
        tile[32] = x[min(id.x + 1, 63)];
    }
#endif
    GroupMemoryBarrierWithGroupSync();
    y[id.x] = tile[i] + tile[i + 1];
}
