// Lane 63 is there in waves of 64 lanes only.
StructuredBuffer<float> x;
RWStructuredBuffer<float> y;

[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
#if FIXED
    y[id.x] = WaveReadLaneAt(x[id.x], WaveGetLaneCount() - 1);
#else
    y[id.x] = WaveReadLaneAt(x[id.x], 63);
#endif
}
