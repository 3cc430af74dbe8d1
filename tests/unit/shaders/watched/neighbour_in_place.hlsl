// Each thread adds its right neighbour, in the buffer that the neighbour overwrites.
RWStructuredBuffer<float> values;
RWStructuredBuffer<float> sums;

[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (id.x + 1 < 64) {
#if FIXED
        sums[id.x] = values[id.x] + values[id.x + 1];
#else
        values[id.x] = values[id.x] + values[id.x + 1];
        sums[id.x] = 0;
#endif
    }
}
