#!/usr/bin/env bash
# ONNX Runtime: a product of floats with dequantized weights is one per cent off.
#
# Expected: x @ DequantizeLinear(w) in FLOAT32, whose result here is -5.7 and 97.4.
# Seen: with its default optimisations ONNX Runtime 1.32.0 replaces both nodes by MatMulNBits with accuracy_level 4, which
# quantizes x, too: -5.646 and 97.554. Without optimisations the result is exact.
# Who meets it: whoever compares a model that has only its weights quantized. The way out is the session option
# session.qdq_matmulnbits_accuracy_level, or ORT_ENABLE_BASIC.
#
# Usage: onnxruntime-matmul-of-dequantized-weights.sh [PYTHON]
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
from onnx import parser

model = parser.parse_model(
    """
    <ir_version: 10, opset_import: ["" : 21]>
    net (float[1, 3] x) => (float[1, 2] y)
    <int8[3, 2] w = {-56, 2, 13, 100, -7, 99}, float[2] s = {0.1, 0.2}, int8[2] z = {1, 2}> {
        f = DequantizeLinear <axis = 1> (w, s, z)
        y = MatMul (x, f)
    }
    """
).SerializeToString()
plain = onnxruntime.SessionOptions()
plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
feeds = {"x": np.float32([[1, 2, 3]])}
results = [onnxruntime.InferenceSession(model, each).run(None, feeds)[0] for each in (plain, None)]
print(" / ".join(" ".join(f"{number:.3f}" for number in each.ravel()) for each in results))
PROGRAM
found=$(cd "$work" && "$work/venv/bin/python" program.py 2>"$work/log") || { cat "$work/log"; exit 2; }
echo "$found"
expected='-5.700 97.400 / -5.646 97.554'
[ "$found" = "$expected" ] || { echo "  expected to see: $expected"; exit 1; }
