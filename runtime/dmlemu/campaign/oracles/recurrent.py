"""RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dml import enums
from .rows import Array, Node, row, wide

__all__: list[str] = []

_FUNCTIONS = {
    "ELU": ("Elu", ["alpha"]),
    "HARD_SIGMOID": ("HardSigmoid", ["alpha", "beta"]),
    "LEAKY_RELU": ("LeakyRelu", ["alpha"]),
    "LINEAR": ("Affine", ["alpha", "beta"]),
    "RELU": ("Relu", []),
    "SCALED_TANH": ("ScaledTanh", ["alpha", "beta"]),
    "SIGMOID": ("Sigmoid", []),
    "SOFTSIGN": ("Softsign", []),
    "TANH": ("Tanh", []),
    "THRESHOLDED_RELU": ("ThresholdedRelu", ["alpha"]),
}
"""Of ONNX, by activation: the name, and the fields that are its numbers."""

_USUAL = {"Rnn": ["TANH"], "Gru": ["SIGMOID", "TANH"], "Lstm": ["SIGMOID", "TANH", "TANH"]}
_DIRECTIONS = {"FORWARD": "forward", "BACKWARD": "reverse", "BIDIRECTIONAL": "bidirectional"}


def _names(o: Any) -> list[str]:
    return [each.TYPE.name.removeprefix("ACTIVATION_") for each in o.activation_descs]


def _is_usual(o: Any, kind: str) -> bool:
    """Whether the activations are those that ONNX has without attributes, and PyTorch at all."""
    usual = _USUAL[kind]
    return _names(o) == usual * (len(o.activation_descs) // len(usual))


def _without_batch(x: Any) -> Any:
    """Without the leading size of 1."""
    return None if x is None else wide(x.reshape(x.shape[1:]))


def _node(
    kind: str,
    o: Any,
    tensors: Sequence[Any],
    lengths: Array | None,
    more: dict[str, Any],
    by: Sequence[str] = ("onnxruntime", "onnx"),
) -> Node | None:
    """``tensors``: X, W, R, B, the initial state and what follows it; ``by``: who has all of ``more``."""
    if any(name not in _FUNCTIONS for name in _names(o)):
        return None
    x, w, r, b, *rest = map(_without_batch, tensors)
    attributes = {"hidden_size": r.shape[-1], "direction": _DIRECTIONS[o.direction.name], **more}
    if not _is_usual(o, kind.capitalize()):
        chosen = [(_FUNCTIONS[name], each) for name, each in zip(_names(o), o.activation_descs, strict=True)]
        attributes["activations"] = [function for (function, _), _ in chosen]
        for number in ("alpha", "beta"):
            values = [getattr(each, number) for (_, numbers), each in chosen if number in numbers]
            if values:
                attributes[f"activation_{number}"] = values
        by = ("onnxruntime",)  # onnx.reference computes another function
    if lengths is not None:
        lengths = np.minimum(lengths.ravel(), len(x)).astype(np.int32)
        if (lengths == 0).any():  # a sequence without steps: its state is 0 in ONNX Runtime
            return None
        by = ("onnxruntime",) if (lengths < len(x)).any() else by  # onnx.reference reads all steps
    b = None if b is None else b.reshape(b.shape[1:])
    states = ["output_single_tensor", "output_cell_single_tensor"][: 1 + (kind == "LSTM")]
    wanted = {"output_sequence_tensor": 0} | {name: 1 + i for i, name in enumerate(states)}
    given = {name: (place, getattr(o, name)) for name, place in wanted.items()}

    def finish(found: list[Array]) -> dict[str, Array]:
        return {
            name: found[i].reshape(tensor.sizes) for name, (i, tensor) in given.items() if tensor is not None
        }

    inputs = [x, w, r, b, lengths, *rest]
    return Node(kind, inputs, attributes, finish, 1 + len(states), by=by)


def _rnn(o: Any, x: Any, w: Any, r: Any, b: Any, h: Any, lengths: Any) -> Node | None:
    return _node("RNN", o, [x, w, r, b, h], lengths, {})


def _gru(o: Any, x: Any, w: Any, r: Any, b: Any, h: Any, lengths: Any) -> Node | None:
    return _node("GRU", o, [x, w, r, b, h], lengths, {"linear_before_reset": int(o.linear_before_reset)})


def _lstm(o: Any, x: Any, w: Any, r: Any, b: Any, h: Any, c: Any, lengths: Any, peephole: Any) -> Node | None:
    more: dict[str, Any] = {}
    if o.use_clip_threshold:
        if o.clip_threshold <= 0:  # no threshold in ONNX
            return None
        more["clip"] = o.clip_threshold
    if o.couple_input_forget:
        more["input_forget"] = 1
    peephole = None if peephole is None else peephole.reshape(peephole.shape[1:])  # {1, D, 3H}
    by = ("onnxruntime",) if more else ("onnxruntime", "onnx")  # onnx.reference reads none of them
    return _node("LSTM", o, [x, w, r, b, h, c, peephole], lengths, more, by)


# --- PyTorch ---


def _torch_network(
    t: Any, name: str, order: Sequence[int], o: Any, tensors: Sequence[Any], lengths: Any
) -> Any:
    """``order``: which gates of the operator are those of PyTorch."""
    given: list[Any] = [None if each is None else each.double() for each in tensors]
    x, w, r, b, h, c = given
    if not _is_usual(o, name.partition("_")[0].capitalize()):
        return None
    if lengths is not None and (lengths.ravel().long() < x.shape[1]).any():
        return None
    directions, units, cells = w.shape[1], r.shape[-1], c is not None or name == "lstm"
    is_both = directions == 2
    is_turned = o.direction is enums.RecurrentNetworkDirection.BACKWARD

    def ordered(each: Any) -> Any:
        return t.cat([each[gate * units : (gate + 1) * units] for gate in order])

    weights = []
    for d in range(directions):
        weights += [ordered(w[0, d]), ordered(r[0, d])]
        if b is not None:
            weights += [ordered(half) for half in b[0, 0, d].chunk(2)]
    none = t.zeros(directions, x.shape[2], units, dtype=x.dtype)
    states = [none if each is None else each[0] for each in ([h, c] if cells else [h])]
    sequence = x[0].flip(0) if is_turned else x[0]
    found, *last = getattr(t, name)(
        sequence, states if cells else states[0], weights, b is not None, 1, 0.0, False, is_both, False
    )
    found = found.flip(0) if is_turned else found
    steps, items = found.shape[:2]
    found = found.reshape(steps, items, directions, units).transpose(1, 2)
    named = dict(zip(("output_single_tensor", "output_cell_single_tensor"), last, strict=False))
    results = {"output_sequence_tensor": found, **{key: each[None] for key, each in named.items()}}
    return {key: each for key, each in results.items() if getattr(o, key) is not None}


def _torch_rnn(t: Any, o: Any, x: Any, w: Any, r: Any, b: Any, h: Any, lengths: Any) -> Any:
    return _torch_network(t, "rnn_tanh", [0], o, [x, w, r, b, h, None], lengths)


def _torch_gru(t: Any, o: Any, x: Any, w: Any, r: Any, b: Any, h: Any, lengths: Any) -> Any:
    if not o.linear_before_reset:
        return None
    return _torch_network(t, "gru", [1, 0, 2], o, [x, w, r, b, h, None], lengths)


def _torch_lstm(
    t: Any, o: Any, x: Any, w: Any, r: Any, b: Any, h: Any, c: Any, lengths: Any, peephole: Any
) -> Any:
    if peephole is not None or o.use_clip_threshold or o.couple_input_forget:
        return None
    return _torch_network(t, "lstm", [0, 2, 3, 1], o, [x, w, r, b, h, c], lengths)


_PASSES = (
    "activations that ONNX does not have here, sequences of length 0; onnx.reference and PyTorch: "
    "activations other than the usual ones, sequences of different lengths"
)
row("RNN", _rnn, _torch_rnn, passes=_PASSES)
row("GRU", _gru, _torch_gru, passes=f"{_PASSES}; PyTorch: without LinearBeforeReset")
row(
    "LSTM",
    _lstm,
    _torch_lstm,
    passes=f"{_PASSES}, coupled gates, a threshold; PyTorch: peepholes",
)
