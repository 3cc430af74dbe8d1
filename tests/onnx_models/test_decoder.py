"""A small language model as exporters write it, with weights of four bits and a cache of keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from models import Array
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from dmlemu.onnx import InferenceSession

ort = pytest.importorskip("onnxruntime")

LAYERS, WIDTH, INNER, WORDS = 2, 32, 48, 40
HEADS, GROUPS, SIZE, BLOCK, LONGEST = 4, 2, 16, 16, 12

OWN = ("GroupQueryAttention", "MatMulNBits", "SkipSimplifiedLayerNormalization")


class Builder:
    """Nodes and weights of a decoder."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def add(self, op: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        domain = "com.microsoft" if op in OWN else ""
        names = outputs or (f"{op}{len(self.nodes)}",)
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0]

    def weight(self, array: Array) -> str:
        name = f"weight{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def norm(self) -> str:
        return self.weight(self.rng.uniform(0.5, 1.5, WIDTH).astype(np.float32))

    def linear(self, x: str, k: int, n: int) -> str:
        packed = self.rng.integers(0, 256, (n, k // BLOCK, BLOCK // 2)).astype(np.uint8)
        scales = self.rng.uniform(0.02, 0.06, (n, k // BLOCK)).astype(np.float32)
        attributes = {"K": k, "N": n, "bits": 4, "block_size": BLOCK}
        return self.add("MatMulNBits", [x, self.weight(packed), self.weight(scales)], **attributes)

    def layer(self, number: int, x: str, skip: str, lengths: list[str]) -> tuple[str, str]:
        """What the layer adds, and the sum before it."""
        qkv = self.linear(x, WIDTH, (HEADS + 2 * GROUPS) * SIZE)
        past = [f"past_{kind}_{number}" for kind in ("key", "value")]
        present = [f"present_{kind}_{number}" for kind in ("key", "value")]
        attended = self.add(
            "GroupQueryAttention",
            [qkv, "", "", *past, *lengths, "cos", "sin"],
            *(f"attended_{number}", *present),
            num_heads=HEADS,
            kv_num_heads=GROUPS,
            do_rotary=1,
        )
        y = self.linear(attended, HEADS * SIZE, WIDTH)
        names = [f"norm_{number}", "", "", f"sum_{number}"]
        y = self.add("SkipSimplifiedLayerNormalization", [skip, y, self.norm()], *names, epsilon=1e-5)
        gate, up = self.linear(y, WIDTH, INNER), self.linear(y, WIDTH, INNER)
        silu = self.add("Mul", [gate, self.add("Sigmoid", [gate])])
        return self.linear(self.add("Mul", [silu, up]), INNER, WIDTH), names[3]


def decoder() -> onnx.ModelProto:
    b = Builder()
    b.weights.append(
        numpy_helper.from_array(b.rng.standard_normal((WORDS, WIDTH)).astype(np.float32), "words")
    )
    angles = np.arange(LONGEST)[:, None] / 100 ** (np.arange(SIZE // 2) / (SIZE // 2))
    for name, function in (("cos", np.cos), ("sin", np.sin)):
        b.weights.append(numpy_helper.from_array(function(angles).astype(np.float32), name))
    for name, value in (("one", 1), ("axis", [1])):
        b.weights.append(numpy_helper.from_array(np.array(value, np.int64), name))
    count = b.add("ReduceSum", ["mask", "axis"], keepdims=0)
    last = b.add("Cast", [b.add("Sub", [count, "one"])], to=T.INT32)
    total = b.add("Cast", [b.add("Gather", [b.add("Shape", ["mask"]), "one"])], to=T.INT32)
    skip = b.add("Gather", ["words", "ids"])
    x = b.add("SimplifiedLayerNormalization", [skip, b.norm()], axis=-1, epsilon=1e-5)
    for number in range(LAYERS):
        y, before = b.layer(number, x, skip, [last, total])
        names = [f"input_{number + 1}", "", "", f"skip_{number + 1}"]
        x = b.add("SkipSimplifiedLayerNormalization", [before, y, b.norm()], *names, epsilon=1e-5)
        skip = names[3]
    b.add("Identity", [b.linear(x, WIDTH, WORDS)], "logits")
    cache = ["batch", GROUPS, "past", SIZE]
    new = ["batch", GROUPS, "total", SIZE]
    kinds = [f"{kind}_{number}" for number in range(LAYERS) for kind in ("key", "value")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        b.nodes,
        "decoder",
        [
            value("ids", T.INT64, ["batch", "length"]),
            value("mask", T.INT64, ["batch", "known"]),
            *(value(f"past_{kind}", T.FLOAT, cache) for kind in kinds),
        ],
        [
            value("logits", T.FLOAT, ["batch", "length", WORDS]),
            *(value(f"present_{kind}", T.FLOAT, new) for kind in kinds),
        ],
        b.weights,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.mark.parametrize("room", [0, LONGEST])
def test_a_decoder_writes_the_same_words(room: int) -> None:
    """From a prompt on, a word at a time; ``room``: of the cache, 0 lets it grow."""
    model = decoder()
    ours = InferenceSession(model, host="error")
    other = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [each.name for each in ours.get_outputs()]
    empty = np.zeros((1, GROUPS, room, SIZE), np.float32)
    ids, known = np.array([[3, 17, 5, 8]]), 4
    caches = [{name.replace("present", "past"): empty for name in names[1:]} for _ in range(2)]
    for _ in range(3):
        mask = np.ones((1, known), np.int64)
        results = [
            session.run(names, {"ids": ids, "mask": mask, **cache})
            for session, cache in zip((ours, other), caches, strict=True)
        ]
        for got, want in zip(*results, strict=True):
            np.testing.assert_allclose(got, want, 1e-3, 1e-3)
        ids = results[0][0][:, -1:].argmax(-1)
        known += 1
        for cache, result in zip(caches, results, strict=True):
            cache.update(zip(cache, result[1:], strict=True))
    assert len({each.where for each in ours.placed} - {"folded"}) == 1
