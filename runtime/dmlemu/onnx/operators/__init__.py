"""The lowerings of ONNX's operators, by family.

Importing this package fills :data:`dmlemu.onnx.calls.LOWERINGS`.
"""

from . import (
    contrib,
    einsum,
    element_wise,
    fused,
    indexing,
    movement,
    normalization,
    products,
    quantization,
    recurrent,
    reductions,
    resampling,
    sampling,
    spectra,
    windows,
)

__all__ = [
    "contrib",
    "einsum",
    "element_wise",
    "fused",
    "indexing",
    "movement",
    "normalization",
    "products",
    "quantization",
    "recurrent",
    "reductions",
    "resampling",
    "sampling",
    "spectra",
    "windows",
]
