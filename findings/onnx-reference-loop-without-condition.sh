#!/usr/bin/env bash
# onnx.reference: a Loop whose condition is left out runs no turn at all.
#
# Expected: the specification says that a Loop with a trip count and without a condition runs that many turns; two turns
# that double 1 give 4.
# Seen: onnx 1.23.2's ReferenceEvaluator returns the first state, 1, without an error; ONNX Runtime 1.32.0 returns 4.
# Who meets it: whoever takes the reference implementation as an oracle, or runs what a device cannot run with it.
# The way out is to give the condition, a constant true.
#
# Usage: onnx-reference-loop-without-condition.sh [PYTHON]
# Exits with 1 if what is seen changes.
set -euo pipefail
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --only-binary :all: onnx==1.23.2 onnxruntime==1.32.0 \
    2>"$work/pip.log" || { cat "$work/pip.log"; exit 2; }
cat >"$work/loop.py" <<'PROGRAM'
import numpy as np
import onnxruntime
from onnx import TensorProto, checker, helper
from onnx.reference import ReferenceEvaluator

def value(name, element_type, shape):
    return helper.make_tensor_value_info(name, element_type, shape)

body = helper.make_graph(
    [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["state", "state"], ["twice"])],
    "body",
    [value("turn", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("state", TensorProto.FLOAT, [1])],
    [value("on", TensorProto.BOOL, []), value("twice", TensorProto.FLOAT, [1])],
)
graph = helper.make_graph(
    [helper.make_node("Loop", ["turns", "", "first"], ["last"], body=body)],
    "graph",
    [value("turns", TensorProto.INT64, []), value("first", TensorProto.FLOAT, [1])],
    [value("last", TensorProto.FLOAT, [1])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
checker.check_model(model)
feeds = {"turns": np.array(2), "first": np.ones(1, np.float32)}
(reference,) = ReferenceEvaluator(model).run(None, feeds)
(runtime,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
print(f"reference {reference.tolist()}, ONNX Runtime {runtime.tolist()}")
PROGRAM
found=$("$work/venv/bin/python" "$work/loop.py")
echo "$found"
[ "$found" = 'reference [1.0], ONNX Runtime [4.0]' ] || { echo "  expected to see: reference [1.0], ONNX Runtime [4.0]"; exit 1; }
