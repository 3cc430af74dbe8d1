"""The worked examples of Microsoft's pages, as DxDispatch descs: ``documented/<stem>.json``.

Each file names the page and holds examples with a ``type``, a ``desc`` as in a DxDispatch model (packed
tensors), ``inputs`` and ``outputs`` by field, perhaps a relative ``tolerance``, how many elements of an
output are ``defined``, and the ids of what it ``reports``.  ``variants`` are other operators whose pages
print the same examples: their ``type``, and what their ``desc`` holds besides.  Each example runs packed,
with every tensor permuted and padded, and as a model on the command line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import compare
from strategies import Array, dtype_of

from dmlemu.cli import main
from dmlemu.dml import BufferTensorDesc
from dmlemu.dml.declared import find_operator
from dmlemu.dml.declared.definition import emulated
from dmlemu.dml.declared.schema import Field, OperatorDesc, camel, operator_fields
from dmlemu.frontends.dxdispatch.node import Node
from dmlemu.frontends.dxdispatch.operator_desc import read_operator_desc

FOLDER = Path(__file__).parent / "documented"
Example = dict[str, Any]


def examples() -> Iterator[Any]:
    """Marked with what they report."""
    done = set(emulated())
    for path in sorted(FOLDER.glob("*.json")):
        for name, example in read(path).items():
            if find_operator(example["type"]).TYPE in done:
                marks = [pytest.mark.dmlemu(expect=example["reports"])] if "reports" in example else []
                yield pytest.param(example, id=name, marks=marks)


def read(path: Path) -> dict[str, Example]:
    """The examples of a file and of its variants, by name."""
    file = json.loads(path.read_text())
    found = {f"{path.stem}: {name}": example for name, example in file["examples"].items()}
    for stem, variant in file.get("variants", {}).items():
        for name, example in file["examples"].items():
            desc = example["desc"] | variant["desc"]
            found[f"{stem}: {name}"] = example | {"type": variant["type"], "desc": desc}
    return found


def arrays(desc: OperatorDesc, numbers: dict[str, Any]) -> dict[str, Any]:
    """The numbers of each field, in the shape and type of its tensor."""

    def shaped(tensor: BufferTensorDesc, values: Any) -> Array:
        return (
            np.array(values, np.float64 if dtype_of(tensor.data_type).kind == "f" else object)
            .astype(dtype_of(tensor.data_type))
            .reshape(tensor.sizes)
        )

    found: dict[str, Any] = {}
    for item in fields(desc, numbers):
        tensor, values = getattr(desc, item.name), numbers[item.c_name]
        found[item.name] = (
            [shaped(*each) for each in zip(tensor, values, strict=True)]
            if item.array
            else shaped(tensor, values)
        )
    return found


def fields(desc: OperatorDesc, numbers: dict[str, Any]) -> list[Field]:
    found = [item for item in operator_fields(type(desc)) if item.c_name in numbers]
    assert {item.c_name for item in found} == numbers.keys(), "a field that the operator does not have"
    return found


def spread(tensor: BufferTensorDesc) -> BufferTensorDesc:
    """The same sizes, with the dimensions in reverse order in memory and one element between neighbours."""
    strides, step = [], 2
    for size in tensor.sizes:
        strides.append(step)
        step *= size + 1
    return BufferTensorDesc(tensor.data_type, tensor.sizes, strides)


def with_spread_tensors(desc: OperatorDesc) -> OperatorDesc:
    changes = {}
    for item in operator_fields(type(desc)):
        value = getattr(desc, item.name)
        if item.is_tensor and value is not None:
            changes[item.name] = [spread(each) for each in value] if item.array else spread(value)
    return replace(desc, **changes)  # type: ignore[type-var]


def listed(value: Any) -> list[Any]:
    """The arrays of a field, which holds one or several."""
    return value if isinstance(value, list) else [value]


def assert_agree(found: Mapping[str, Any], expected: Mapping[str, Any], example: Example) -> None:
    tolerance = example.get("tolerance", 1e-6)
    for name, want in expected.items():
        for got, each in zip(listed(found[name]), listed(want), strict=True):
            count = example.get("defined", {}).get(camel(name), each.size)  # a file is rounded up to 4 bytes
            got, each = (array.astype(float).ravel()[:count] for array in (got, each))
            np.testing.assert_allclose(got, each, tolerance, err_msg=name)


def model_of(example: Example, desc: OperatorDesc) -> dict[str, Any]:
    """A DxDispatch model that runs the example and writes each output to a file."""
    resources: dict[str, Any] = {}
    bindings: dict[str, Any] = {}
    files: list[Any] = []
    for part in ("inputs", "outputs"):
        for item in fields(desc, example[part]):
            tensors = getattr(desc, item.name)
            values = example[part][item.c_name] if item.array else [example[part][item.c_name]]
            bindings[item.c_name] = [f"{item.name}{place}" for place in range(len(values))]
            for name, tensor, numbers in zip(
                bindings[item.c_name], tensors if item.array else [tensors], values, strict=True
            ):
                flat = np.ravel(numbers).tolist()
                resources[name] = {
                    "initialValuesDataType": tensor.data_type.name,
                    "initialValues": flat if part == "inputs" else {"valueCount": len(flat), "value": 0},
                    "sizeInBytes": tensor.total_tensor_size_in_bytes,
                }
                if part == "outputs":
                    files.append({"type": "writeFile", "resource": name, "targetPath": f"{name}.npy"})
    return {
        "resources": resources,
        "dispatchables": {"it": {"type": example["type"], "desc": example["desc"]}},
        "commands": [{"type": "dispatch", "dispatchable": "it", "bindings": bindings}, *files],
    }


@pytest.mark.parametrize("example", list(examples()))
def test_the_device_computes_what_the_page_prints(example: Example) -> None:
    desc = read_operator_desc(Node(example, "$"))
    inputs, outputs = arrays(desc, example["inputs"]), arrays(desc, example["outputs"])

    for each in (desc, with_spread_tensors(desc)):
        assert_agree(compare(each, inputs), outputs, example)


@pytest.mark.parametrize("example", list(examples()))
def test_it_runs_as_a_model(example: Example, tmp_path: Path) -> None:
    desc = read_operator_desc(Node(example, "$"))
    outputs = arrays(desc, example["outputs"])
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model_of(example, desc)))

    assert main(["run", str(path), "--output-dir", str(tmp_path)]) == 0

    found = {
        name: [np.load(tmp_path / f"{name}{place}.npy") for place in range(len(listed(want)))]
        for name, want in outputs.items()
    }
    assert_agree(found, outputs, example)
