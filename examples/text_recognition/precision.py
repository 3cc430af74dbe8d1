"""Models of floats as models of bytes and of half floats, by ONNX Runtime's converters.

pip install onnxruntime
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx.version_converter

__all__ = ["PRECISIONS", "converted"]

PRECISIONS = ("float32", "float16", "int8", "int8-operators", "int8-dynamic")

Feeds = Mapping[str, Any]


def converted(model: onnx.ModelProto, precision: str, samples: Iterable[Feeds]) -> onnx.ModelProto:
    """The model in one of ``PRECISIONS``; ``samples``: inputs in which the ranges of tensors are measured.

    ``int8``: QuantizeLinear and DequantizeLinear around the operators; ``int8-operators``: QLinearConv and
    its kind; both have a scale for each output channel of weights.  ``int8-dynamic``: ConvInteger and
    MatMulInteger, with ranges that each run measures anew.  ``float16``: inputs and outputs, too.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision ({precision!r}) must be one of {', '.join(PRECISIONS)}.")
    if precision == "float32":
        return model
    if precision == "float16":
        from onnxruntime.transformers.float16 import convert_float_to_float16

        return convert_float_to_float16(with_initialisers(model))  # type: ignore[no-any-return]
    return _quantized(with_initialisers(model), precision, samples)


def with_initialisers(model: onnx.ModelProto) -> onnx.ModelProto:
    """Constant nodes become initialisers: for QLinearConv the quantiser takes no other weights."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.ir_version = max(made.ir_version, 4)  # from then on they need not be inputs
    kept = []
    for node in made.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            made.graph.initializer.append(node.attribute[0].t)
            made.graph.initializer[-1].name = node.output[0]
        else:
            kept.append(node)
    del made.graph.node[:]
    made.graph.node.extend(kept)
    return made


def _quantized(model: onnx.ModelProto, precision: str, samples: Iterable[Feeds]) -> onnx.ModelProto:
    from onnxruntime import quantization

    class Samples(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rest: Iterator[Feeds] = iter(samples)

        def get_next(self) -> Feeds | None:
            return next(self.rest, None)

    has_axes = precision == "int8"
    if has_axes and max(each.version for each in model.opset_import if not each.domain) < 13:
        model = onnx.version_converter.convert_version(model, 13)  # DequantizeLinear has no axis before
    logging.getLogger().setLevel(logging.ERROR)  # it warns of a preparation that changes nothing here
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        if precision == "int8-dynamic":
            quantization.quantize_dynamic(model, path)
        else:
            quantization.quantize_static(
                model,
                path,
                Samples(),
                quant_format=quantization.QuantFormat["QDQ" if has_axes else "QOperator"],
                per_channel=True,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
            )
        return onnx.load(path)
