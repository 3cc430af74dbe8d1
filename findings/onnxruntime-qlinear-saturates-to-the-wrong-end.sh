#!/usr/bin/env bash
# ONNX Runtime's CPU provider: QLinearAdd and QLinearMul (com.microsoft) give the least number of their type, where the
# scaled result exceeds 2 to the power of 31.
#
# Expected: 255 for uint8 inputs of 255, scales of 1 and zero points of 0, whatever the small output scale is: the
# quotient is far above 255, and quantization saturates.
# Seen: onnxruntime 1.32.0 gives 255 for an output scale of 3.1e-05, and 0 for 3e-05 (65025 / 3e-05 is above 2147483648).
# Who meets it: differential tests with extreme scales.  DirectML's ELEMENT_WISE_QUANTIZED_LINEAR_ADD saturates.
#
# Usage: onnxruntime-qlinear-saturates-to-the-wrong-end.sh [PYTHON]
# Exits with 1 if what is seen changes.
set -euo pipefail
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --only-binary :all: onnx==1.23.2 onnxruntime==1.32.0 \
    2>"$work/pip.log" || { cat "$work/pip.log"; exit 2; }
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime

TEXT = """
<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (uint8[1] x, float s, uint8 z, float c) => (uint8[1] sum, uint8[1] product) {
    sum = com.microsoft.QLinearAdd(x, s, z, x, s, z, c, z)
    product = com.microsoft.QLinearMul(x, s, z, x, s, z, c, z)
}"""
session = onnxruntime.InferenceSession(onnx.parser.parse_model(TEXT).SerializeToString())
seen = {}
for scale, by in ((1, 3.1e-05), (1, 3e-05), (1e4, 3e-05)):
    feeds = {"x": np.uint8([255]), "z": np.array(0, np.uint8)}
    feeds |= {"s": np.array(scale, np.float32), "c": np.array(by, np.float32)}
    seen[scale, by] = [int(each[0]) for each in session.run(["sum", "product"], feeds)]
    print(f"input scales {scale}, output scale {by}: sum, product = {seen[scale, by]}")
expected = {(1, 3.1e-05): [255, 255], (1, 3e-05): [255, 0], (1e4, 3e-05): [0, 0]}
raise SystemExit(seen != expected)
PYTHON
