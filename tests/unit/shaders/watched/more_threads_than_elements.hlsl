// 100 elements, and two groups of 64 threads.
StructuredBuffer<float> x;
RWStructuredBuffer<float> y;

[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
#if FIXED
    if (id.x >= 100) {
        return;
    }
#endif
    y[id.x] = 2 * x[id.x];
}
