// Two threads read the same length, and write their elements to the same place.
StructuredBuffer<float> x;
RWStructuredBuffer<float> kept;
RWStructuredBuffer<uint> length;

[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (x[id.x] > 3) {
#if FIXED
        uint place;
        InterlockedAdd(length[0], 1, place);
#else
        uint place = length[0];
        length[0] = place + 1;
#endif
        kept[place] = x[id.x];
    }
}
