// Groupshared memory holds anything when a group begins.
ByteAddressBuffer values;
RWByteAddressBuffer bins;
groupshared uint counts[4];

[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
#if FIXED
    if (i < 4) {
        counts[i] = 0;
    }
#endif
    GroupMemoryBarrierWithGroupSync();
    InterlockedAdd(counts[values.Load(4 * id.x) % 4], 1);
    GroupMemoryBarrierWithGroupSync();
    if (i < 4) {
        bins.InterlockedAdd(4 * i, counts[i]);
    }
}
