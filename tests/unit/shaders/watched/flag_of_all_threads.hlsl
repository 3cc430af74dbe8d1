// All threads that find something write 1: the same value, but at the same time.
StructuredBuffer<float> x;
RWStructuredBuffer<uint> found;

[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (x[id.x] > 3) {
#if FIXED
        InterlockedOr(found[0], 1);
#else
        found[0] = 1;
#endif
    }
}
