"""The lowerings of ONNX Runtime's own operators, those of the domain ``com.microsoft``, by family.

They are those that its DirectML provider has, and a few more that its quantiser and its optimiser write.
"""

from . import (
    activations,
    attention,
    blocks,
    convolutions,
    group_query,
    normalization,
    products,
    quantized,
    rotation,
)

__all__ = [
    "activations",
    "attention",
    "blocks",
    "convolutions",
    "group_query",
    "normalization",
    "products",
    "quantized",
    "rotation",
]
