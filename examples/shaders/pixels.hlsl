// Two shaders beside DirectML: pixels to a tensor, and the largest channel of each place.
// dxc -T cs_6_0 -E to_tensor -Zi -Qembed_debug pixels.hlsl -Fo to_tensor.dxil

cbuffer Image : register(b0)
{
    uint width, height;
};

Buffer<unorm float4> pixels : register(t0); // R8G8B8A8_UNORM, row by row
RWStructuredBuffer<float> tensor : register(u0); // {1, 3, height, width}

[RootSignature("RootConstants(num32BitConstants=2, b0), DescriptorTable(SRV(t0), UAV(u0))")]
[numthreads(8, 8, 1)]
void to_tensor(uint3 at : SV_DispatchThreadID)
{
    if (at.x >= width || at.y >= height)
        return;
    const uint pixel = at.y * width + at.x;
    const float4 color = pixels[pixel];
    for (uint channel = 0; channel < 3; channel++)
        tensor[channel * width * height + pixel] = color[channel];
}

static const uint Classes = 4;
StructuredBuffer<float> scores : register(t1); // {1, Classes, height, width}
RWStructuredBuffer<uint> classes : register(u1); // {height, width}

[RootSignature("RootConstants(num32BitConstants=2, b0), SRV(t1), UAV(u1)")]
[numthreads(64, 1, 1)]
void arg_max(uint3 at : SV_DispatchThreadID)
{
    const uint count = width * height;
    if (at.x >= count)
        return;
    uint best = 0;
    for (uint each = 1; each < Classes; each++)
        if (scores[each * count + at.x] > scores[best * count + at.x])
            best = each;
    classes[at.x] = best;
}
