"""Strategies for activations with parameters."""

from __future__ import annotations

from typing import Any

from examples import example
from hypothesis import strategies as st

from dmlemu.dml import OperatorType
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import definition_class, emulated
from dmlemu.dml.declared.schema import FieldKind, operator_fields

ACTIVATIONS = sorted(kind for kind in emulated() if definition_class(kind).FUSABLE)  # type: ignore[union-attr]

PARAMETERS = st.sampled_from([1.0, 0.5, 2.0, -0.75, 0.1, 3.0, 0.0])
STEEPNESS = st.sampled_from([1.0, 1.5, 10.0])


@st.composite
def activation(draw: st.DrawFn, kind: OperatorType, **tensors: Any) -> Any:
    """The activation with random parameters; without tensors it can be fused."""
    parameters = {}
    for item in operator_fields(declared()[kind]):
        if item.kind is FieldKind.FLOAT:
            special = {"steepness": STEEPNESS, "threshold": PARAMETERS.map(abs)}
            parameters[item.name] = draw(special.get(item.name, PARAMETERS))
            if kind is OperatorType.ACTIVATION_CELU and not parameters[item.name]:
                parameters[item.name] = 1.0  # alpha divides
    none = {"input_tensor": None, "output_tensor": None}
    return example(kind, **{**none, **tensors}, **parameters)
