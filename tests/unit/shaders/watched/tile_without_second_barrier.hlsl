// A tiled matrix product: the next tile must not be loaded before all have read the last one.
StructuredBuffer<float> a;
StructuredBuffer<float> b;
RWStructuredBuffer<float> c;
groupshared float rows[8][8];
groupshared float columns[8][8];
static const uint SIZE = 16;

[numthreads(8, 8, 1)]
void main(uint3 id : SV_DispatchThreadID, uint3 at : SV_GroupThreadID) {
    float sum = 0;
    for (uint tile = 0; tile < SIZE; tile += 8) {
        rows[at.y][at.x] = a[id.y * SIZE + tile + at.x];
        columns[at.y][at.x] = b[(tile + at.y) * SIZE + id.x];
        GroupMemoryBarrierWithGroupSync();
        for (uint k = 0; k < 8; k++) {
            sum += rows[at.y][k] * columns[k][at.x];
        }
#if FIXED
        GroupMemoryBarrierWithGroupSync();
#endif
    }
    c[id.y * SIZE + id.x] = sum;
}
