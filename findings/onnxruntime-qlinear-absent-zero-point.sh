#!/usr/bin/env bash
# ONNX Runtime: a model whose QLinearAdd or QLinearMul (com.microsoft) leaves a zero point out is refused when it is loaded,
# unless the zero point is the last input.
#
# Expected: the operators' schemas call A_zero_point, B_zero_point and C_zero_point optional, 0 if they are not specified;
# an input of an empty name is one that is not specified.  QLinearSigmoid and QLinearLeakyRelu take it so.
# Seen: onnxruntime 1.32.0 fails with "[TypeInferenceError] Input data type does not match the expected data type".
# Who meets it: models that are written by hand.  The way out is to give a zero point of 0.
#
# Usage: onnxruntime-qlinear-absent-zero-point.sh [PYTHON]
# Exits with 1 if what is seen changes.
set -euo pipefail
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --only-binary :all: onnx==1.23.2 onnxruntime==1.32.0 \
    2>"$work/pip.log" || { cat "$work/pip.log"; exit 2; }
"$work/venv/bin/python" - <<'PYTHON'
import onnx
import onnxruntime

TEXT = """
<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (uint8[3] x, float s, uint8 z) => (uint8[3] y) {{y = com.microsoft.{}}}"""
seen = []
for call in (
    "QLinearAdd(x, s, z, x, s, z, s, z)",
    'QLinearAdd(x, s, z, x, s, z, s)',
    'QLinearAdd(x, s, "", x, s, z, s, z)',
    'QLinearMul(x, s, z, x, s, "", s, z)',
    'QLinearSigmoid(x, s, "", s, z)',
):
    model = onnx.parser.parse_model(TEXT.format(call))
    try:
        onnxruntime.InferenceSession(model.SerializeToString())
        seen.append("loads")
    except Exception as error:
        seen.append("is refused")
        print(error)
    print(f"{call}: {seen[-1]}")
raise SystemExit(seen != ["loads", "loads", "is refused", "is refused", "loads"])
PYTHON
