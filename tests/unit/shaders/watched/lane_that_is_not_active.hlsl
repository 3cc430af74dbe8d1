// In the branch only the odd lanes are active, and lane 0 is not.
StructuredBuffer<float> x;
RWStructuredBuffer<float> y;

[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    float own = x[id.x];
    if (id.x & 1) {
#if FIXED
        y[id.x] = WaveReadLaneFirst(own);
#else
        y[id.x] = WaveReadLaneAt(own, 0);
#endif
    }
}
