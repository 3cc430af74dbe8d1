// An image of 16 x 8 elements, whose threads compute the place with its height.
StructuredBuffer<float> image;
RWStructuredBuffer<float> result;

[numthreads(8, 8, 1)]
void main(uint3 id : SV_DispatchThreadID) {
#if FIXED
    uint place = id.y * 16 + id.x;
#else
    uint place = id.y * 8 + id.x;
#endif
    result[place] = image[id.y * 16 + id.x] * 0.5;
}
