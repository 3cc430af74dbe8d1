// A group reverses its part of a buffer; the barrier orders groupshared memory only.
RWStructuredBuffer<uint> values;

[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint3 group : SV_GroupID, uint i : SV_GroupIndex) {
    values[id.x] = id.x * 3;
#if FIXED
    DeviceMemoryBarrierWithGroupSync();
#else
    GroupMemoryBarrierWithGroupSync();
#endif
    uint other = values[group.x * 64 + 63 - i];
    AllMemoryBarrierWithGroupSync();
    values[id.x] = other;
}
