#!/usr/bin/env bash
# onnx.reference: MaxPool takes the pads of two dimensions in another order.
#
# Expected: pads are the beginnings of all dimensions, then their ends: 0, 1, 0, 1 adds a column on either side of an image
# of 4 x 6, whose maxima over 2 x 3 are 3 x 6.
# Seen: onnx 1.23.2's ReferenceEvaluator returns 4 x 5, as if each dimension had its beginning and end side by side; ONNX
# Runtime 1.32.0 returns 3 x 6.
# Who meets it: whoever takes the reference implementation as an oracle for padding that is not the same everywhere.
#
# Usage: onnx-reference-max-pool-pads.sh [PYTHON]
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
from onnx import TensorProto, checker, helper
from onnx.reference import ReferenceEvaluator

graph = helper.make_graph(
    [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 3], pads=[0, 1, 0, 1])],
    "graph",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 6])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 3, 6])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
checker.check_model(model, full_check=True)
feeds = {"x": np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6)}
(reference,) = ReferenceEvaluator(model).run(None, feeds)
(runtime,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
print(f"reference {reference.shape}, ONNX Runtime {runtime.shape}")
PROGRAM
found=$(cd "$work" && "$work/venv/bin/python" program.py 2>"$work/log") || { cat "$work/log"; exit 2; }
echo "$found"
expected='reference (1, 1, 4, 5), ONNX Runtime (1, 1, 3, 6)'
[ "$found" = "$expected" ] || { echo "  expected to see: $expected"; exit 1; }
