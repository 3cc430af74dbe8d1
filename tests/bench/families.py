"""Of each family of operators a few cases, by how their names begin: for where time is short."""

FAMILIES = {
    "element-wise": (
        "add 1e6 float32 packed",
        "bit count 1e6 uint32 packed",
        "clip 1e6 float32 every second",
        "exp 1e+06 float32 packed",
        "gelu 1e+06 float32 packed",
        "divide 1e+06 float32 packed",
    ),
    "copies and casts": (
        "copy f32 64x64x56x56 packed",
        "copy f32 64x64x56x56 NCHW > NHWC",
        "cast 1e6 float32 > float16 packed",
        "quantize 1e6 f32 > u8",
        "dequantize 1e6 u8 > f32",
    ),
    "data movement": (
        "slice: every second column packed",
        "padding: CONSTANT packed",
        "join channels packed",
        "space to depth 2 packed",
        "fill packed",
    ),
    "indices": (
        "nonzero coordinates 1e6 f32, 50 % packed",
        "gather 4096 rows of 256 f32 of 30000",
        "gather elements 1e6 f32 axis 1",
        "scatter elements 1e6 f32 axis 1",
    ),
    "reductions and sorting": (
        "reduce SUM f32 1000x1000",
        "argmax f32 1000x1000 axis 1",
        "top 10 f32 1000x1000 axis 1",
        "cumulative sum f32 1000x1000 axis 1",
    ),
    "normalization": (
        "softmax f32 1000x1000 axis 1",
        "layer normalization f32 4096x768",
        "batch normalization f32 1x64x56x56",
        "instance normalization f32 1x64x56x56",
    ),
    "resampling and pooling": (
        "resample linear 112 > 224",
        "pooling max 3x3 s2 64 112x112 f32",
        "pooling average of all 2048 7x7 f32",
    ),
    "8-bit convolutions": (
        "conv 3x3 64>64 56x56 u8*s8",
        "conv 3x3 256>256 14x14 u8*s8",
        "conv 1x1 512>2048 7x7 u8*s8",
    ),
    "convolutions of floats": (
        "conv 3x3 64>64 56x56 f32*f32",
        "conv 3x3 256>256 14x14 f32*f32",
        "conv 1x1 256>64 56x56 f32*f32",
    ),
    "depthwise convolutions": (
        "depthwise 3x3 384 14x14",
        "depthwise 3x3 96 112x112 f32*f32",
    ),
    "products": (
        "gemm 1024 cubed f32 NN",
        "gemm 100 cubed f32 NN",
        "gemm 128x768x3072 f32 NN",
        "integer product 1024x1024x1024 u8*s8",
    ),
    "attention and recurrence": (
        "attention 12 heads 128 x 64",
        "LSTM 128 steps 512 units batch 1",
        "LSTM 128 steps 512 units batch 8",
    ),
    "networks": ("ResNet-50 f32 one", "ResNet-50 u8*s8 one", "MobileNetV2 f32 one", "BERT of 6 layers"),
    "dispatches": ("1,000 tiny dispatches and barriers, one list",),
}
QUICK = tuple(name for family, names in FAMILIES.items() if family != "networks" for name in names)
ALL = tuple(name for names in FAMILIES.values() for name in names)
