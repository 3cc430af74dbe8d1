#!/usr/bin/env bash
# ONNX Runtime: its quantizer makes a model that ONNX Runtime refuses.
#
# Expected: quantize_static with one scale for each channel of a model of operator set 12 either raises the operator set to 13,
# from which DequantizeLinear has the attribute axis, or says that it cannot; as it does for 16-bit types.
# Seen: it writes the attribute and keeps operator set 12; loading the file fails ("Unrecognized attribute: axis").
# Who meets it: whoever quantizes an older network, such as those of PaddleOCR. The way out is onnx.version_converter before.
#
# Usage: onnxruntime-quantizer-axis-before-opset-13.sh [PYTHON]
# Exits with 1 if what is seen changes.
set -euo pipefail
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --only-binary :all: onnx==1.23.2 onnxruntime==1.32.0 \
    2>"$work/pip.log" || { cat "$work/pip.log"; exit 2; }
cat >"$work/program.py" <<'PROGRAM'
import numpy as np
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static

graph = helper.make_graph(
    [helper.make_node("Conv", ["x", "w"], ["y"])],
    "graph",
    [helper.make_tensor_value_info("x", 1, [1, 2, 4, 4])],
    [helper.make_tensor_value_info("y", 1, [1, 3, 4, 4])],
    [numpy_helper.from_array(np.ones((3, 2, 1, 1), np.float32), "w")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)


class Samples(CalibrationDataReader):
    rest = [{"x": np.ones((1, 2, 4, 4), np.float32)}]

    def get_next(self):
        return self.rest.pop() if self.rest else None


quantize_static(model, "quantized.onnx", Samples(), per_channel=True)
try:
    onnxruntime.InferenceSession("quantized.onnx")
    print("loads")
except Exception as error:
    print(str(error)[-64:].strip())
PROGRAM
found=$(cd "$work" && "$work/venv/bin/python" program.py 2>"$work/log") || { cat "$work/log"; exit 2; }
echo "$found"
expected='Error Unrecognized attribute: axis for operator DequantizeLinear'
[ "$found" = "$expected" ] || { echo "  expected to see: $expected"; exit 1; }
