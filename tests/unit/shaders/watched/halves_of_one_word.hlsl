// Two threads put their half into one word, by reading and writing all of it.
StructuredBuffer<uint> x;
RWStructuredBuffer<uint> packed;

[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
#if FIXED
    InterlockedOr(packed[id.x / 2], x[id.x] << 16 * (id.x & 1));
#else
    packed[id.x / 2] |= x[id.x] << 16 * (id.x & 1);
#endif
}
