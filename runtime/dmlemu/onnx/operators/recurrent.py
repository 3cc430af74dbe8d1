"""RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dml
from ... import graph as g
from ...dml.enums import RecurrentNetworkDirection, TensorDataType
from ...graph import Expression, transpose
from ..calls import Call, Made, NotOnDevice, lowers
from ..tensors import fitted

_DIRECTIONS = {
    "forward": RecurrentNetworkDirection.FORWARD,
    "reverse": RecurrentNetworkDirection.BACKWARD,
    "bidirectional": RecurrentNetworkDirection.BIDIRECTIONAL,
}
_ACTIVATIONS: dict[str, tuple[str, dict[str, float]]] = {
    "Relu": ("ActivationReluOperatorDesc", {}),
    "Tanh": ("ActivationTanhOperatorDesc", {}),
    "Sigmoid": ("ActivationSigmoidOperatorDesc", {}),
    "Softsign": ("ActivationSoftsignOperatorDesc", {}),
    "Softplus": ("ActivationSoftplusOperatorDesc", {"steepness": 1.0}),
    "Affine": ("ActivationLinearOperatorDesc", {"alpha": 1.0, "beta": 0.0}),
    "LeakyRelu": ("ActivationLeakyReluOperatorDesc", {"alpha": 0.01}),
    "ThresholdedRelu": ("ActivationThresholdedReluOperatorDesc", {"alpha": 1.0}),
    "ScaledTanh": ("ActivationScaledTanhOperatorDesc", {"alpha": 1.0, "beta": 1.0}),
    "HardSigmoid": ("ActivationHardSigmoidOperatorDesc", {"alpha": 0.2, "beta": 0.5}),
    "Elu": ("ActivationEluOperatorDesc", {"alpha": 1.0}),
}


def _activations(c: Call, default: Sequence[str], directions: int) -> list[Any]:
    names = [each.decode() if isinstance(each, bytes) else each for each in c.attribute("activations", [])]
    names = names or list(default) * directions
    alphas, betas = iter(c.attribute("activation_alpha", [])), iter(c.attribute("activation_beta", []))
    descs = []
    for name in names:
        found = {key.lower(): value for key, value in _ACTIVATIONS.items()}.get(name.lower())
        if found is None:
            raise NotOnDevice(f"the activation {name}")
        fields = dict(found[1])
        if "alpha" in fields:
            fields["alpha"] = next(alphas, fields["alpha"])
        if "beta" in fields:
            fields["beta"] = next(betas, fields["beta"])
        descs.append(getattr(dml, found[0])(**fields))
    return descs


@lowers("RNN", "GRU", "LSTM")
def _recurrent(c: Call) -> list[Made | None]:
    batch_first = bool(c.attribute("layout", 0))
    x = c.x(0)
    x = transpose(x, [1, 0, 2]) if batch_first else x
    steps, batch, size = x.sizes
    directions, gates, hidden = c.shape(2)
    direction = _DIRECTIONS[c.attribute("direction", "forward")]
    arguments: dict[str, Any] = {
        "activation_descs": _activations(c, _DEFAULTS[c.op], directions),
        "direction": direction,
        "output_sequence_tensor": c.wants(0),
        "output_single_tensor": c.wants(1),
    }
    inputs = [
        g.element_wise_identity(fitted(x, (1, steps, batch, size)))
        if batch_first
        else fitted(x, (1, steps, batch, size)),
        fitted(c.x(1), (1, directions, gates, size)),
        fitted(c.x(2), (1, directions, gates, hidden)),
        fitted(c.x(3), (1, 1, directions, 2 * gates)) if c.has(3) else None,
    ]

    def state(number: int) -> Expression | None:
        if not c.has(number):
            return None
        found = c.x(number)
        found = transpose(found, [1, 0, 2]) if batch_first else found
        return fitted(found, (1, directions, batch, hidden))

    inputs.append(state(5))
    lengths = None
    if c.has(4):
        lengths = fitted(g.cast(c.x(4), output_data_type=TensorDataType.UINT32), (1, 1, 1, batch))
    if c.op == "LSTM":
        inputs += [state(6), lengths, fitted(c.x(7), (1, 1, directions, 3 * hidden)) if c.has(7) else None]
        clip = c.attribute("clip")
        arguments.update(
            use_clip_threshold=clip is not None,
            clip_threshold=0.0 if clip is None else clip,
            couple_input_forget=bool(c.attribute("input_forget", 0)),
            output_cell_single_tensor=c.wants(2),
        )
    else:
        inputs.append(lengths)
        if c.attribute("clip") is not None:
            raise NotOnDevice(f"{c.op} of DirectML has no clip")
    if c.op == "GRU":
        arguments["linear_before_reset"] = bool(c.attribute("linear_before_reset", 0))
    made = g.FUNCTIONS[c.op.lower()](*inputs, **arguments)
    made = list(made) if isinstance(made, tuple) else [made]
    if len(made) < sum(map(c.wants, range(3))):
        raise AssertionError(f"{c.op} has fewer outputs than the model reads")
    present = iter([each for each in made if each is not None])
    results: list[Made | None] = []
    for number in range(len(c.node.output)):
        if not c.wants(number):
            results.append(None)
            continue
        each = next(present)
        shape: tuple[int, ...] = (directions, batch, hidden)
        shape = (steps, *shape) if number == 0 else shape
        each = fitted(each, shape)
        if batch_first:
            order = [2, 0, 1, 3] if number == 0 else [1, 0, 2]
            each, shape = transpose(each, order), tuple(shape[i] for i in order)
        results.append(Made(each, shape))
    return results


_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
