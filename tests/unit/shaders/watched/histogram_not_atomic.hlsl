// Threads count into the same bins.
ByteAddressBuffer values;
RWByteAddressBuffer bins;

[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint bin = values.Load(4 * id.x) % 4;
#if FIXED
    bins.InterlockedAdd(4 * bin, 1);
#else
    bins.Store(4 * bin, bins.Load(4 * bin) + 1);
#endif
}
