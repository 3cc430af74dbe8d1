// Two elements have the same destination: the last one remains, whichever that is.
StructuredBuffer<uint> places;
RWStructuredBuffer<uint> result;

[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
#if FIXED
    InterlockedMax(result[places[id.x]], id.x);
#else
    result[places[id.x]] = id.x;
#endif
}
