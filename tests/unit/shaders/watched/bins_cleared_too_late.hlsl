// Without a barrier a thread may count before another has cleared the bin.
ByteAddressBuffer values;
RWByteAddressBuffer bins;
groupshared uint counts[4];

[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
    if (i < 4) {
        counts[i] = 0;
    }
#if FIXED
    GroupMemoryBarrierWithGroupSync();
#endif
    InterlockedAdd(counts[values.Load(4 * id.x) % 4], 1);
    GroupMemoryBarrierWithGroupSync();
    if (i < 4) {
        bins.InterlockedAdd(4 * i, counts[i]);
    }
}
