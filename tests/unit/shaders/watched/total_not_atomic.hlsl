// All groups add to one number.
StructuredBuffer<uint> values;
RWStructuredBuffer<uint> total;

[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
#if FIXED
    InterlockedAdd(total[0], values[id.x]);
#else
    total[0] += values[id.x];
#endif
}
