// Each thread writes its own half number, and reads the one beside it.
StructuredBuffer<half> x;
RWStructuredBuffer<half> y;

[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    y[id.x] = x[id.x] * (half)2;
#if FIXED
    DeviceMemoryBarrierWithGroupSync();
#endif
    half other = y[id.x ^ 1];
    DeviceMemoryBarrierWithGroupSync();
    y[id.x] = other;
}
