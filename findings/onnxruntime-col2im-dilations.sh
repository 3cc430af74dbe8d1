#!/usr/bin/env bash
# ONNX Runtime: Col2Im of signals or volumes (one spatial dimension, or three) takes other columns if there are dilations.
#
# Expected: Col2Im adds column l, row c * 2 + k of channels with a window of 2 to element l + k * dilation of channel c.
# Seen: with a dilation of 2 onnxruntime 1.32.0 counts columns as if there were none: it finds more of them than there are, and
# takes the next rows for them, and behind the last row what lies there.  With a dilation of 1, or an image of two dimensions,
# it is right; onnx 1.23.2's ReferenceEvaluator is right in all of these cases.
# (Reported in 2023 for volumes, https://github.com/microsoft/onnxruntime/issues/18156, and closed.)
# Who meets it: models that fold signals or volumes, such as the inverse of an unfold with dilations.
#
# Usage: onnxruntime-col2im-dilations.sh [PYTHON]
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


def fold(columns, image, window, dilations):
    """What onnx.reference and ONNX Runtime make of them."""
    spatial = len(image)
    graph = helper.make_graph(
        [helper.make_node("Col2Im", ["x", "image", "window"], ["y"], dilations=dilations)],
        "graph",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, columns.shape),
            helper.make_tensor_value_info("image", TensorProto.INT64, [spatial]),
            helper.make_tensor_value_info("window", TensorProto.INT64, [spatial]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * (2 + spatial))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    checker.check_model(model, full_check=True)
    feeds = {"x": columns, "image": np.array(image), "window": np.array(window)}
    (reference,) = ReferenceEvaluator(model).run(None, feeds)
    (runtime,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    return reference, runtime


def case(image, window, dilation, channels):
    columns = int(np.prod([n - (k - 1) * dilation for n, k in zip(image, window)]))
    count = channels * int(np.prod(window))
    x = np.arange(1, count * columns + 1, dtype=np.float32).reshape(1, count, columns)
    reference, runtime = fold(x, image, window, [dilation] * len(image))
    print(f"{image}, dilation {dilation}: {'equal' if (reference == runtime).all() else 'different'}")


for image, window, channels in (([5], [2], 2), ([5, 5], [2, 2], 2), ([5, 5, 5], [3, 3, 3], 1)):
    case(image, window, 1, channels)
    case(image, window, 2, channels)
PROGRAM
found=$(cd "$work" && "$work/venv/bin/python" program.py 2>"$work/log") || { cat "$work/log"; exit 2; }
echo "$found"
expected='[5], dilation 1: equal
[5], dilation 2: different
[5, 5], dilation 1: equal
[5, 5], dilation 2: equal
[5, 5, 5], dilation 1: equal
[5, 5, 5], dilation 2: different'
[ "$found" = "$expected" ] || { echo "  expected to see: $expected"; exit 1; }
