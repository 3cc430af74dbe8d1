"""Dispatchables of type ``onnx``: what is bound to the tensors of an ONNX model, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from dxdispatch_add import put
from test_dxdispatch_run import MODELS, printed, run

from dmlemu import d3d12
from dmlemu.cli import main
from dmlemu.frontends.dxdispatch import Model, ModelError, OnnxInputs, read_model

LAYER = (
    "layer (float[n, 2] x, float[2, 3] w) => (float[n, 3] y, int64[2, m] where) <float[3] b = {0, 1, 2}> "
    "{p = MatMul(x, w) s = Add(p, b) y = Relu(s) where = NonZero(y)}"
)
ADAPTER = d3d12.Adapter()


def onnx_model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}')


def floats(*values: float) -> dict[str, Any]:
    return {"initialValuesDataType": "FLOAT32", "initialValues": list(values)}


@pytest.fixture
def layer(tmp_path: Path) -> Any:
    """A JSON model that dispatches LAYER, to be changed."""
    onnx.save(onnx_model(LAYER), tmp_path / "layer.onnx")
    return {
        "resources": {
            "x": floats(1, 2, 3, 4),
            "w": floats(1, 0, -1, 0, 1, -1),
            "y": floats(*[-1] * 6),
            "later": {"initialValues": "deferred"},
        },
        "dispatchables": {"layer": {"type": "onnx", "sourcePath": "layer.onnx"}},
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "layer",
                "bindings": {"x": {"name": "x", "shape": [2, 2]}, "w": "w", "y": "later"},
            },
            {"type": "print", "resource": "later"},
        ],
    }


def test_the_model_of_this_folder_is_the_layer() -> None:
    """``python -m pytest`` compares; the file was written by onnx.save of this model."""
    saved = onnx.load(MODELS / "layer.onnx")
    assert saved.graph == onnx_model(LAYER).graph


def test_shapes_of_bindings_and_of_dimensions() -> None:
    lines = run(read_model(MODELS / "onnx.json"))
    x = np.float32([[1, 2], [3, 4]])
    rows = np.maximum(x @ np.float32([[1, 0, -1], [0, 1, -1]]) + np.float32([0, 1, 2]), 0)
    of_y = [line for line in lines if line.startswith("Resource 'y'")]
    assert of_y[0] == "Resource 'y': 1, 3, 0, -1, -1, -1"  # one row; what lies behind it is kept
    assert of_y[1] == "Resource 'y': " + ", ".join(f"{each:g}" for each in rows.ravel())
    assert printed(lines)["where"] == "0, 0, 0, 1"
    assert any(line.startswith("host: NonZero where: ") for line in lines)


def test_a_deferred_resource_is_what_the_output_was(layer: Any, load: Callable[[Any], Model]) -> None:
    """Printed, written to a file of its shape, and bound to an input; then made anew by another dispatch."""
    layer["commands"] += [
        {"type": "writeFile", "resource": "later", "targetPath": "later.npy"},
        {"type": "dispatch", "dispatchable": "layer", "bindings": {"w": "later", "y": "later"}},
        {"type": "print", "resource": "later"},
    ]
    model = load(layer)
    lines = run(model, output_path=model.folder)
    found = [line for line in lines if line.startswith("Resource 'later': ")]
    assert found[0] == "Resource 'later': 1, 3, 0, 3, 5, 0"
    assert np.load(model.folder / "later.npy").tolist() == [[1, 3, 0], [3, 5, 0]]
    x = np.random.default_rng(0).uniform(-1, 1, (1, 2)).astype(np.float32)  # made by rule: n is 1
    expected = np.maximum(x @ np.float32([[1, 3, 0], [3, 5, 0]]) + np.float32([0, 1, 2]), 0)
    assert np.allclose([float(each) for each in found[1].split(": ")[1].split(",")], expected, rtol=1e-4)


def test_an_output_without_elements(layer: Any, load: Callable[[Any], Model], tmp_path: Path) -> None:
    layer["resources"]["w"] = floats(*[0] * 6)
    put(layer, "dispatchables.layer.sourcePath", "empty.onnx")
    layer["commands"][0]["bindings"] = {"x": "w", "y": "later"}
    onnx.save(onnx_model("g (float[6] x) => (int64[1, m] y) {y = NonZero(x)}"), tmp_path / "empty.onnx")
    assert printed(run(load(layer)))["later"] == ""


@pytest.mark.parametrize(
    "type", ["uint8", "int8", "uint16", "int16", "float16", "int32", "uint64", "double", "bool"]
)
def test_types(layer: Any, load: Callable[[Any], Model], type: str, tmp_path: Path) -> None:
    name = {"double": "FLOAT64", "bool": "UINT8"}.get(type, type.upper())
    onnx.save(onnx_model(f"g ({type}[3] x) => ({type}[3] y) {{y = Identity(x)}}"), tmp_path / "layer.onnx")
    layer["resources"] = {
        "x": {"initialValuesDataType": name, "initialValues": [0, 1, 1]},
        "y": {"initialValuesDataType": name, "initialValues": [9, 9, 9]},
        "later": {"initialValues": "deferred"},
    }
    layer["commands"][0]["bindings"] = {"x": "x", "y": "later"}
    layer["commands"] += [
        {"type": "dispatch", "dispatchable": "layer", "bindings": {"x": "x", "y": "y"}},
        {"type": "print", "resource": "y"},
    ]
    assert printed(run(load(layer))) == {"later": "0, 1, 1", "y": "0, 1, 1"}


def test_scalars(layer: Any, load: Callable[[Any], Model], tmp_path: Path) -> None:
    outputs = "float y, float s, float[0] z"
    text = f"g (float x, float[0] w) => ({outputs}) {{y = Neg(x) s = Identity(y) z = Identity(w)}}"
    onnx.save(onnx_model(text), tmp_path / "layer.onnx")
    layer["resources"]["z"] = {"initialValues": "deferred"}
    layer["commands"][0]["bindings"] = {"x": "x", "w": "w", "y": "later", "s": "y", "z": "z"}
    layer["commands"] += [
        {"type": "print", "resource": "y"},
        {"type": "print", "resource": "z"},
        {"type": "writeFile", "resource": "later", "targetPath": "scalar.npy"},
    ]
    found = printed(run(load(layer), output_path=tmp_path))
    assert (found["later"], found["y"], found["z"]) == ("-1", "-1, -1, -1, -1, -1, -1", "")
    assert np.load(tmp_path / "scalar.npy").shape == ()


def test_what_is_repeated_reads_what_was_written(
    layer: Any, load: Callable[[Any], Model], tmp_path: Path
) -> None:
    onnx.save(onnx_model("g (float[4] x) => (float[4] y) {y = Add(x, x)}"), tmp_path / "layer.onnx")
    layer["commands"] = [
        {"type": "dispatch", "dispatchable": "layer", "bindings": {"x": "x", "y": "x"}},
        {"type": "print", "resource": "x"},
    ]
    lines = run(load(layer), dispatch_repeat=2, dispatch_iterations=2)
    assert printed(lines)["x"] == "16, 32, 48, 64"
    assert "ms median (GPU)" in lines[0]
    assert "GPU" not in run(load(layer), max_gpu_time_measurements=0)[0]


def test_options_hold_where_json_says_something_else(layer: Any, load: Callable[[Any], Model]) -> None:
    put(layer, "dispatchables.layer.freeDimensionNameOverrides", {"n": 1})
    layer["commands"][0]["bindings"]["x"] = "x"
    assert printed(run(load(layer)))["later"] == "1, 3, 0"
    assert (
        printed(run(load(layer), onnx_inputs=OnnxInputs(dimensions=("n:2",))))["later"] == "1, 3, 0, 3, 5, 0"
    )
    put(layer, "dispatchables.layer.freeDimensionNameOverrides", {})
    layer["commands"][0]["bindings"]["x"] = {"name": "x", "shape": [2, 2]}
    assert printed(run(load(layer), onnx_inputs=OnnxInputs(("x:1,2",))))["later"] == "1, 3, 0"


def test_a_name_has_the_size_that_a_binding_gives_it(
    layer: Any, load: Callable[[Any], Model], tmp_path: Path
) -> None:
    text = "g (float[n, 2] x, float[n, k] w) => (float[a, b] y) {y = Add(x, w)}"
    onnx.save(onnx_model(text), tmp_path / "layer.onnx")
    del layer["commands"][0]["bindings"]["w"]
    assert printed(run(load(layer)))["later"].count(",") == 3


def test_denotations(layer: Any, load: Callable[[Any], Model], tmp_path: Path) -> None:
    model = onnx_model(
        "g (float[n, k] x, float[?, 2] w) => (float[a, b] y, float[c, 2] z) {y = Abs(x) z = Abs(w)}"
    )
    for value, dim in ((0, 0), (1, 0)):
        model.graph.input[value].type.tensor_type.shape.dim[dim].denotation = "DATA_BATCH"
    model.graph.input[0].type.tensor_type.shape.dim[1].denotation = "DATA_CHANNEL"
    onnx.save(model, tmp_path / "layer.onnx")
    sizes = {"DATA_BATCH": 1, "DATA_CHANNEL": 3}
    put(layer, "dispatchables.layer.freeDimensionDenotationOverrides", sizes)
    layer["commands"][0]["bindings"] = {"x": "y", "y": "later", "z": "y"}
    layer["commands"].append({"type": "print", "resource": "y"})
    found = printed(run(load(layer)))
    assert found["later"] == "1, 1, 1" and found["y"].endswith("-1, -1, -1, -1")
    assert (
        printed(run(load(layer), onnx_inputs=OnnxInputs(denotations=("DATA_BATCH:2",))))["later"]
        == "1, 1, 1, 1, 1, 1"
    )


def test_bindings_are_listed_as_dxdispatch_does(layer: Any, load: Callable[[Any], Model]) -> None:
    layer["commands"][0]["bindings"]["y"] = {"name": "y", "shape": [2, 3]}
    del layer["commands"][0]["bindings"]["w"], layer["commands"][1]
    text = "\n".join(run(load(layer), print_onnx_bindings=True, dispatch_iterations=2))
    assert (
        "Input Tensor 'x':\n  Resource  = explicit (DirectX)\n  Data Type = FLOAT\n  Shape     = [2,2]\n\n"
        "Input Tensor 'w':\n  Resource  = implicit (DirectX)\n  Data Type = FLOAT\n  Shape     = [2,3]\n\n"
        "Output Tensor 'y':\n  Resource  = explicit (DirectX)\n  Data Type = FLOAT\n  Shape     = [2,3]\n\n"
        "Output Tensor 'where':\n  Resource  = deferred (DirectX)\n  Data Type = INT64\n"
        "  Shape     = [2,-1]\n\n"
    ) in text
    assert text.count("Input Tensor") == 2


def test_records_of_it_are_replayed(tmp_path: Path) -> None:
    """In processes of their own: here other tests may hold the adapter's device, which is not recorded."""
    files = ["--report", "r.jsonl", "--trace", "t.json", "--html", "h.html", "--record", "r.dmlrec"]
    model = str(MODELS / "onnx.json")
    for command, ending in (
        (["run", model, *files], "Resource 'y': 1, 3, 0, 3, 5, 0\n"),
        (["replay", "r.dmlrec"], "2 dispatches were run again: no output differs.\n"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "dmlemu", *command],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout.endswith(ending) and not done.stderr
    assert json.loads((tmp_path / "t.json").read_text()) and (tmp_path / "r.jsonl").exists()


# --- what is refused ---

X, Y = "commands.0.bindings.x", "commands.0.bindings.y"
OVER = "dispatchables.layer"


@pytest.mark.parametrize(
    ("place", "value", "id", "field", "given", "expected"),
    [
        (f"{OVER}.sourcePath", ..., "MODEL_MISSING", "", "type", "sourcePath"),
        (f"{OVER}.sourcePath", "no.onnx", "MODEL_FILE", "", "no.onnx", "readable"),
        (f"{OVER}.sourcePath", "/etc/passwd", "MODEL_PATH", "", "/etc/passwd", "a file in"),
        (f"{OVER}.sourcePath", "model.json", "MODEL_ONNX", "", "model.json", ""),
        (f"{OVER}.freeDimensionNameOverrides", {"k": 2}, "MODEL_NAME", ".k", "'k'", "'m', 'n'"),
        (f"{OVER}.freeDimensionNameOverrides", {"n": 0}, "MODEL_VALUE", ".n", "0", ">= 1"),
        (f"{OVER}.freeDimensionNameOverrides", {"n": "2"}, "MODEL_TYPE", ".n", '"2"', "an integer"),
        (f"{OVER}.freeDimensionNameOverrides", [1], "MODEL_TYPE", "", "an array of 1", "an object"),
        (f"{OVER}.freeDimensionDenotationOverrides", {"A": 1}, "MODEL_NAME", ".A", "'A'", "no denotation"),
        (f"{OVER}.freeDimensionNameOverride", {"n": 2}, "MODEL_VALUE", "", "", "freeDimensionNameOverrides"),
        (f"{OVER}.graphOptimizationLevel", 3, "MODEL_VALUE", "", "3", "0, 1, 2, 99"),
        (f"{OVER}.loggingLevel", "0", "MODEL_TYPE", "", '"0"', "an integer"),
        (f"{OVER}.sessionOptionsConfigEntries", {"a": "1"}, "MODEL_UNSUPPORTED", ".a", "a", "no entries"),
        (X, "z", "MODEL_NAME", "", "'z'", "'x', 'w'"),
        (X, ["x", "w"], "MODEL_VALUE", "", "2", "1"),
        (X, {"name": "x", "elementOffset": 1}, "MODEL_UNSUPPORTED", ".elementOffset", "1", ""),
        (X, {"name": "x", "counter": "w"}, "MODEL_UNSUPPORTED", ".counter", "w", ""),
        (X, {"name": "x", "shape": [-1, 2]}, "MODEL_TYPE", ".shape[0]", "-1", "0 to"),
        (X, {"name": "x", "shape": [2, 3]}, "MODEL_VALUE", ".shape", "[2,3]", "[n,2]"),
        (X, {"name": "x", "shape": [2]}, "MODEL_VALUE", ".shape", "[2]", "[n,2]"),
        (X, {"name": "x", "shape": [3, 2]}, "MODEL_VALUE", "", "16 bytes", ">= 24 bytes"),
        (X, "later", "MODEL_UNSUPPORTED", "", "deferred", "initial values"),
        ("commands.0.bindings.q", "x", "MODEL_NAME", "", "'q'", "'x', 'w', 'y', 'where'"),
        (Y, "y", "MODEL_VALUE", "", "[n,3]", "a shape"),
        (Y, {"name": "y", "shape": [3, 3]}, "MODEL_VALUE", "", "24 bytes", ">= 36 bytes"),
        (Y, {"name": "y", "shape": [1, 3]}, "MODEL_VALUE", "", "[1,3]", "[2,3]"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_place(
    layer: Any,
    load: Callable[[Any], Model],
    place: str,
    value: Any,
    id: str,
    field: str,
    given: str,
    expected: str,
) -> None:
    put(layer, place, value)
    with pytest.raises(ModelError) as caught:
        run(load(layer), ADAPTER)
    report = caught.value.report
    assert report.id == id
    assert report.field == f"$.{place.replace('.0', '[0]')}{field}"
    assert given in report.given and expected in report.expected


@pytest.mark.parametrize(
    ("text", "id", "message"),
    [
        ("g (seq(float) x) => (float y) {y = ConcatFromSequence <axis = 0>(x)}", "MODEL_UNSUPPORTED", "seq"),
        ("g (string[3] x) => (string[3] y) {y = Identity(x)}", "MODEL_UNSUPPORTED", "STRING"),
        ("g (float[2, 2] x) => (string[2, 2] y) {y = Cast <to = 8>(x)}", "MODEL_UNSUPPORTED", "STRING"),
        ("g (float[2, 2] x) => (float[2, 2] y) {y = Nothing(x)}", "MODEL_ONNX", "Nothing"),
        ("g (float[n, m] x, float[3] w) => (float[a, b] y) {y = Add(x, w)}", "MODEL_ONNX", "Add"),
        ("g (float[2, 2] x, float[5000000000] w) => (float[2, 2] y) {y = Abs(x)}", "MODEL_VALUE", "large"),
    ],
)  # fmt: skip
def test_models_that_cannot_run(
    layer: Any, load: Callable[[Any], Model], tmp_path: Path, text: str, id: str, message: str
) -> None:
    onnx.save(onnx_model(text), tmp_path / "layer.onnx")
    layer["commands"][0]["bindings"] = {"x": {"name": "x", "shape": [2, 2]}, "y": "later"}
    with pytest.raises(ModelError) as caught:
        run(load(layer), ADAPTER)
    assert caught.value.report.id == id and message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-b", "q=1"], "-b q: no ONNX model of the JSON model has it; there is x, w, y, where"),
        (["-b", "x=x.npy"], "-b x=x.npy: expected a shape"),
        (["-b", "x=2,3"], "-b x=[2,3]: the model's shape is [n,2]"),
        (["-f", "k=1"], "-f k: no ONNX model of the JSON model has it; there is"),
        (["-F", "A=1"], "-F A: no ONNX model of the JSON model has it; there is none"),
        (["-F", "A=0"], "-F A=0: expected a size of at least 1"),
    ],
)
def test_options_that_name_nothing(
    layer: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    (tmp_path / "model.json").write_text(json.dumps(layer))
    assert main(["run", str(tmp_path / "model.json"), *options]) == 1
    assert message in capsys.readouterr().err


def test_without_the_onnx_package(
    layer: Any, load: Callable[[Any], Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("dmlemu.onnx")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModelError) as caught:
        load(layer)
    assert caught.value.report.field == "$.dispatchables.layer.sourcePath"
    assert "need the package onnx" in str(caught.value)


def test_external_data_stays_in_the_folder_of_the_model(
    layer: Any, load: Callable[[Any], Model], tmp_path: Path
) -> None:
    model = onnx_model(LAYER)
    outside = tmp_path.parent / f"{tmp_path.name}-outside.bin"
    outside.write_bytes(bytes(12))
    initialiser = model.graph.initializer[0]
    initialiser.raw_data = bytes(12)
    onnx.external_data_helper.set_external_data(initialiser, "link.bin", 0, 12)
    initialiser.ClearField("float_data")
    initialiser.ClearField("raw_data")
    initialiser.data_location = onnx.TensorProto.EXTERNAL
    (tmp_path / "layer.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "link.bin").symlink_to(outside)
    with pytest.raises(ModelError) as caught:
        load(layer)
    assert caught.value.report.id == "MODEL_ONNX" and "link.bin" in str(caught.value)
