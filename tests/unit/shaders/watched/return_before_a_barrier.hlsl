// The threads without an element end, and the others wait for them.
StructuredBuffer<float> x;
RWStructuredBuffer<float> y;
groupshared float tile[64];

[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
    bool inside = id.x < 96;
#if !FIXED
    if (!inside) {
        return;
    }
#endif
    tile[i] = inside ? x[id.x] : 0;
    GroupMemoryBarrierWithGroupSync();
    if (inside) {
        y[id.x] = tile[i ^ 1];
    }
}
