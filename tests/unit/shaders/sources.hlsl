// The shaders of the containers in this folder; make_containers.py compiles each function with its arguments.

RWStructuredBuffer<float> y : register(u0);
StructuredBuffer<float> x : register(t0);
cbuffer Scale : register(b0) { float a; uint n; };

[numthreads(64, 1, 1)] void saxpy(uint3 id : SV_DispatchThreadID) {
    if (id.x < n) y[id.x] += a * x[id.x];
}

groupshared float partial[8][16];

[numthreads(16, 8, 1)] void sum(uint3 id : SV_DispatchThreadID, uint3 at : SV_GroupThreadID) {
    partial[at.y][at.x] = x[id.x + n * id.y];
    GroupMemoryBarrierWithGroupSync();
    float total = 0;
    for (uint row = 0; row < 8; ++row) total += partial[row][at.x];
    if (at.y == 0) y[id.x] = total + WaveActiveSum(total);
}

RWByteAddressBuffer bins : register(u1, space2);
Buffer<uint> values[4] : register(t1);

[numthreads(32, 1, 1)] void histogram(uint3 id : SV_DispatchThreadID) {
    uint value = values[id.x & 3][id.x];
    switch (value & 7) {
        case 1: value = value / n; break;
        case 2: value = value << 3; break;
        case 5: value = value ^ 0xff00ff00; break;
        default: value = countbits(value);
    }
    bins.InterlockedAdd(4 * (value & 63), 1);
}

static const float weights[4] = { 0.5, -1.25, 3, 1e30 };

[numthreads(4, 2, 2)] void local(uint3 id : SV_DispatchThreadID) {
    float kept[4] = { 1, 2, 3, 4 };
    for (uint i = 0; i < n; ++i) kept[(i * id.x) & 3] += weights[(i + id.y) & 3];
    y[id.x] = kept[id.z & 3];
}

RWStructuredBuffer<uint> quotient : register(u0);
StructuredBuffer<uint> given : register(t0);

[numthreads(20, 1, 1)] void graph(uint i : SV_GroupIndex, uint3 group : SV_GroupID) {
    quotient[i] = given[i + 1] / given[group.x];
}

RWStructuredBuffer<uint> elements : register(u0);
RWByteAddressBuffer bytes : register(u1);
RWBuffer<uint> numbers : register(u2);
RWByteAddressBuffer sums : register(u3);
groupshared uint kept[160];

[numthreads(20, 1, 1)] void memory(uint i : SV_GroupIndex, uint3 group : SV_GroupID) {
    uint at = given[i + 1], other = given[group.x];
    elements[i] = elements[at];
    bytes.Store(4 * i, bytes.Load(4 * at));
    numbers[i] = numbers[at];
    kept[i] = other;
    GroupMemoryBarrierWithGroupSync();
    sums.InterlockedAdd(4 * i, kept[at]);
}
