// The number of matches is read while other threads still count.
StructuredBuffer<float> x;
RWStructuredBuffer<uint> matches;
RWStructuredBuffer<float> share;

[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (x[id.x] > 3) {
        InterlockedAdd(matches[0], 1);
    }
#if FIXED
    DeviceMemoryBarrierWithGroupSync();
#endif
    share[id.x] = matches[0] / 64.0;
}
