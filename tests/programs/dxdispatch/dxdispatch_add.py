"""A small valid model and a way to break it."""

from __future__ import annotations

from typing import Any

ADD = {
    "resources": {
        "A": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3]},
        "B": {"initialValuesDataType": "FLOAT32", "initialValues": [5, 8, -5]},
        "Out": {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 3, "value": 0}},
    },
    "dispatchables": {
        "add": {
            "type": "DML_OPERATOR_ELEMENT_WISE_ADD",
            "desc": {
                "ATensor": {"DataType": "FLOAT32", "Sizes": [3]},
                "BTensor": {"DataType": "FLOAT32", "Sizes": [3]},
                "OutputTensor": {"DataType": "FLOAT32", "Sizes": [3]},
            },
        }
    },
    "commands": [
        {
            "type": "dispatch",
            "dispatchable": "add",
            "bindings": {"ATensor": "A", "BTensor": "B", "OutputTensor": "Out"},
        },
        {"type": "print", "resource": "Out"},
    ],
}


def put(model: Any, path: str, value: Any) -> None:
    """``put(model, "resources.A.initialValues.0", 7)``; ``...`` removes the member."""
    *way, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    for step in way:
        model = model[step]
    if value is ...:
        del model[last]
    else:
        model[last] = value


def json_path(place: str) -> str:
    """``resources.A.initialValues.0`` -> ``$.resources.A.initialValues[0]``."""
    return "$" + "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in place.split("."))
