"""Models that run: results, options, and mistakes that only the device finds."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dxdispatch_add import put

from dmlemu import d3d12
from dmlemu.cli import main
from dmlemu.dml import FeatureLevel
from dmlemu.errors import Error, Strictness
from dmlemu.frontends import dxdispatch
from dmlemu.frontends.dxdispatch import Model, ModelError, Options, read_model
from processes import started

MODELS = Path(__file__).parent / "models"


def run(model: Model, adapter: d3d12.Adapter | None = None, **options: Any) -> list[str]:
    """The printed lines, without those that start every run."""
    lines: list[str] = []
    dxdispatch.run_model(model, adapter or d3d12.Adapter(), Options(**options), lines.append)
    assert lines[0].startswith("Running on")
    return [line for line in lines[1:] if not line.startswith("Compil")]


def printed(lines: list[str]) -> dict[str, str]:
    return dict(re.findall(r"^Resource '(.*)': (.*)$", "\n".join(lines), re.MULTILINE))


# --- results ---


def test_descs() -> None:
    """Expected values from the definitions: ELU(x) = 0.5 (exp(x) - 1) for x < 0."""
    lines = printed(run(read_model(MODELS / "descs.json")))
    a = np.array([-4, -1, 0, 1, 4, 9], np.float32)
    b = np.array([1, 10, 100] * 2, np.float32)
    total = a + b
    elu = np.where(total < 0, 0.5 * np.expm1(np.minimum(total, 0)), total)
    assert np.allclose(numbers(lines["nested"]), elu, rtol=1e-5)
    assert numbers(lines["inline"]) == np.maximum(a + 1, 0).tolist()
    assert numbers(lines["transposed"]) == (2 * a.reshape(2, 3).T + 0.5).ravel().tolist()
    clipped = np.maximum(a, -2.5)
    assert numbers(lines["A"]) == clipped.tolist()
    assert numbers(lines["H"]) == [2, 2, 3, 4, 4]
    assert numbers(lines["owned"]) == total.tolist()  # from before A was clipped
    matrix = clipped.reshape(2, 3)
    assert numbers(lines["product"]) == (matrix @ matrix.T + 0.25).ravel().tolist()


def test_operators() -> None:
    lines = printed(run(read_model(MODELS / "operators.json")))
    assert lines["row sums"] == "1, 10"
    assert lines["largest"] == "0, 0"
    assert lines["last largest"] == "0, 2"
    assert lines["whole"] == "3, 0, -2, 5, 0, 5"
    assert lines["flipped"] == "255, 254, 252, 248, 240, 0, 85, 170"
    assert lines["bits"] == "0, 1, 2, 3, 4, 8, 4, 4"
    assert lines["count"] == "4"
    assert lines["coordinates"].startswith("0, 0, 0, 2, 1, 0, 1, 2")
    x = np.array([[0, 1, 3, 7], [15, 255, 170, 85]]) - 1
    assert numbers(lines["convolved"]) == [x[0, i] - x[0, i + 1] + 2 * x[1, i] for i in range(3)]


def test_graphs() -> None:
    """Without the last tensor, with it, alone, and with an absent tensor between two that are there."""
    lines = printed(run(read_model(MODELS / "graphs.json")))
    a, b = np.arange(1, 7).reshape(2, 3), np.arange(0.5, 6.5).reshape(3, 2)
    assert numbers(lines["product"]) == (2 * a @ b).ravel().tolist()
    assert numbers(lines["sum"]) == (2 * a @ b + 1).ravel().tolist()
    x = np.arange(1, 10).reshape(3, 3)
    assert numbers(lines["convolved"]) == [x[i : i + 2, j : j + 2].sum() for i in (0, 1) for j in (0, 1)]
    assert numbers(lines["plain"]) == (2 * a @ b).ravel().tolist()


def test_graphs_take_no_binding_for_an_absent_tensor(load: Callable[[Any], Model]) -> None:
    model = json.loads(re.sub(r"//.*", "", (MODELS / "graphs.json").read_text()))
    put(model, "commands.0.bindings.CTensor", "A")
    with pytest.raises(Error) as caught:
        run(load(model))
    assert caught.value.report.id == "BIND_COUNT"


def test_bindings() -> None:
    first, second = re.findall(r"'sum': (.*)", "\n".join(run(read_model(MODELS / "bindings.json"))))
    assert numbers(first) == [4 + 8, 5 + 9, 6 + 10]
    words = np.arange(108, 114, dtype=np.uint16).view(np.int32)
    assert numbers(second) == np.add(words, [1000, 2000, 3000]).tolist()


def test_files(tmp_path: Path) -> None:
    lines = run(read_model(MODELS / "files.json"), output_path=tmp_path)
    expected = np.array([11.5, 18, 33, 44, 55, 66], np.float32)
    assert np.array_equal(np.load(tmp_path / "out/shaped.npy"), expected.reshape(2, 3))
    assert np.array_equal(np.load(tmp_path / "out/flat.NPY"), expected)
    assert (tmp_path / "out/raw.dat").read_bytes() == expected.tobytes()
    assert np.load(tmp_path / "out/halves.npy").tolist() == [1, 2, 3, 4, 5]
    assert (tmp_path / "out/halves.bin").stat().st_size == 12  # the whole buffer
    assert sorted(os.listdir(tmp_path / "out")) == [
        "flat.NPY",
        "halves.bin",
        "halves.npy",
        "raw.dat",
        "shaped.npy",
    ]
    assert lines[-1] == f"Resource 'halves' written to '{tmp_path}/out/halves.bin'"


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(", ")]


# --- options ---


def test_accumulates_over_iterations_and_repeats(add: Any, load: Callable[[Any], Model]) -> None:
    """A + B -> A in place: each dispatch adds B once more."""
    put(add, "commands.0.bindings.OutputTensor", "A")
    put(add, "commands.1.resource", "A")
    lines = run(load(add), dispatch_iterations=3, dispatch_repeat=4)
    assert lines[0].startswith("Dispatch 'add': 3 iterations, ")
    assert lines[1] == "Resource 'A': 61, 98, -57"


@pytest.mark.dmlemu(expect=["HAZARD_*"])
@pytest.mark.parametrize("queue", [d3d12.CommandListType.DIRECT, d3d12.CommandListType.COMPUTE])
@pytest.mark.parametrize(("uav", "aliasing"), [(False, False), (True, False), (True, True)])
def test_queues_and_barriers(
    add: Any, load: Callable[[Any], Model], queue: d3d12.CommandListType, uav: bool, aliasing: bool
) -> None:
    options: dict[str, Any] = {
        "queue_type": queue,
        "uav_barrier": uav,
        "aliasing_barrier": aliasing,
        "dispatch_repeat": 2,
    }
    model = load(add)
    if not uav:  # which writes one buffer twice
        with pytest.raises(Error, match="HAZARD_WAW"):
            run(model, **options)
        options["strictness"] = Strictness.DEBUG
    assert run(model, **options)[-1] == "Resource 'Out': 6, 10, -2"


def test_gpu_times_come_from_the_device_and_repeat(add: Any, load: Callable[[Any], Model]) -> None:
    def gpu_time(**options: Any) -> float:
        [found] = re.findall(r"([\d.]+) ms median \(GPU\)", "\n".join(run(load(add), **options)))
        return float(found)

    once = gpu_time()
    assert once > 0
    assert [gpu_time() for _ in range(2)] == [once, once]
    assert gpu_time(dispatch_iterations=3) == once
    assert gpu_time(dispatch_repeat=100) <= once  # time per dispatch


def test_more_iterations_than_timestamps(add: Any, load: Callable[[Any], Model]) -> None:
    lines = run(load(add), dispatch_iterations=5, max_gpu_time_measurements=2, timing_verbosity=2)
    assert "GPU samples buffer has 3 samples overwritten." in lines
    assert ["(GPU)" in line for line in lines if line.startswith("iteration")] == [False] * 3 + [True] * 2


def test_time_limit_and_interval(add: Any, load: Callable[[Any], Model]) -> None:
    start = time.perf_counter()
    lines = run(load(add), dispatch_iterations=2**32 - 1, milliseconds_to_run=50, dispatch_interval=10)
    assert time.perf_counter() - start < 5
    count = int(re.findall(r"(\d+) iterations", lines[0])[0])
    assert 1 <= count <= 6


def test_feature_level(add: Any, load: Callable[[Any], Model]) -> None:
    assert run(load(add), dml_feature_level=FeatureLevel.LEVEL_6_4)[-1] == "Resource 'Out': 6, 10, -2"


def test_strict_run_gives_the_same(add: Any, load: Callable[[Any], Model]) -> None:
    assert run(load(add), debug=True)[-1] == "Resource 'Out': 6, 10, -2"


def test_nothing_outlives_the_run(add: Any, load: Callable[[Any], Model]) -> None:
    adapter = d3d12.Adapter()
    run(load(add), adapter, dispatch_iterations=3)
    assert adapter.query_memory_budget().current_usage == 0


# --- what only the device finds ---


def test_shape_error_has_the_path_of_the_model(add: Any, load: Callable[[Any], Model]) -> None:
    put(add, "dispatchables.add.desc.BTensor.Sizes", [1])
    with pytest.raises(ModelError) as caught:
        run(load(add))
    report = caught.value.report
    assert report.field == "$.dispatchables.add.desc.BTensor.Sizes[0]"
    assert (report.given, report.expected) == ("1", "3")
    assert "While creating dispatchable 'add'" in report.context


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("commands.0.bindings.ATensor", {"name": "A", "elementOffset": 1}),  # 4 is not a multiple of 16
        ("resources.A", {"initialValuesDataType": "FLOAT32", "initialValues": [1]}),  # too small
        ("resources.B", {"initialValuesDataType": "FLOAT16", "initialValues": [1] * 5, "sizeInBytes": 10}),
        ("commands.0.bindings", {"ATensor": "A", "BTensor": "B"}),  # no output
        ("commands.0.bindings", {"BTensor": "B", "OutputTensor": "Out"}),  # no input
    ],
)
def test_bad_bindings(add: Any, load: Callable[[Any], Model], place: str, value: Any) -> None:
    put(add, place, value)
    with pytest.raises(Error) as caught:
        run(load(add))
    assert "While binding resources to 'add' ($.commands[0])" in caught.value.report.context


def test_owned_tensor_without_its_buffer(add: Any, load: Callable[[Any], Model]) -> None:
    put(add, "dispatchables.add.desc.ATensor.Flags", "OWNED_BY_DML")
    with pytest.raises(Error) as caught:
        run(load(add))
    assert initialized_from(caught.value) == "$.dispatchables.add.bindings.ATensor"


def test_too_small_a_buffer_for_an_owned_tensor(add: Any, load: Callable[[Any], Model]) -> None:
    put(add, "dispatchables.add.desc.ATensor.Flags", "OWNED_BY_DML")
    put(add, "dispatchables.add.bindings", {"ATensor": {"name": "A"}})
    put(add, "resources.A", {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2]})
    with pytest.raises(Error) as caught:
        run(load(add))
    assert caught.value.report.id == "BIND_SIZE_SMALL"
    assert initialized_from(caught.value) == "$.dispatchables.add.bindings.ATensor"


def test_a_buffer_for_a_tensor_that_is_not_owned(add: Any, load: Callable[[Any], Model]) -> None:
    put(add, "dispatchables.add.bindings", {"BTensor": "B"})
    with pytest.raises(Error) as caught:
        run(load(add))
    assert initialized_from(caught.value) == "$.dispatchables.add.bindings.BTensor"


def initialized_from(error: Error) -> str:
    """The place of the model that an error at initialization names."""
    *_, binding, initializing = error.report.context
    assert initializing == "While initializing dispatchable 'add' ($.dispatchables.add)"
    return binding.removeprefix("While binding the tensors that DirectML owns (").removesuffix(")")


def test_out_of_memory(add: Any, load: Callable[[Any], Model]) -> None:
    put(add, "resources.Out.initialValues.valueCount", 2**32 - 1)
    with pytest.raises(Error, match=r"While creating resource 'Out' \(\$\.resources\.Out\)") as caught:
        run(load(add))
    assert caught.value.hresult.name == "E_OUTOFMEMORY"


def test_mixed_types_are_not_printed(load: Callable[[Any], Model]) -> None:
    mixed = {"initialValues": [{"type": "INT8", "value": 1}]}
    model = {"resources": {"M": mixed}, "dispatchables": {}, "commands": [{"type": "print", "resource": "M"}]}
    with pytest.raises(ModelError, match="cannot print 'M': its values have mixed types"):
        run(load(model))


def test_deferred_resources_are_refused_where_they_are_used(add: Any, load: Callable[[Any], Model]) -> None:
    put(add, "resources.Out", {"initialValues": "deferred"})
    with pytest.raises(ModelError, match=r"bindings\.OutputTensor uses 'Out', a deferred resource"):
        run(load(add))


@pytest.mark.parametrize("dimensions", [[4], [2, 2], [2**32 - 1] * 8])
def test_dimensions_larger_than_the_buffer(
    add: Any, load: Callable[[Any], Model], tmp_path: Path, dimensions: list[int]
) -> None:
    command = {"type": "writeFile", "resource": "Out", "targetPath": "o.npy", "dimensions": dimensions}
    put(add, "commands.1", command)
    with pytest.raises(ModelError, match="dimensions"):
        run(load(add), output_path=tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- the command ---


def test_exit_codes(add: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(add))
    assert main(["run", str(path)]) == 0
    path.write_text("[")
    assert main(["run", str(path)]) == 1
    printed = capsys.readouterr()
    assert "line 1, column 2 is not valid JSON" in printed.err
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-i", "-3"], "'-3' is not an integer from 0 to 4294967295"),
        (["-i", "many"], "'many' is not an integer from 0 to 4294967295"),
        (["-i", "4294967296"], "is not an integer"),
        (["-r", "0"], "0 dispatches cannot be measured"),
        (["-q", "copy"], "invalid choice: 'copy'"),
        (["-c", "gpu"], "--pix_capture_type: PIX captures are not supported"),
        (["-x"], "--enable_ort_extensions: these options of ONNX Runtime are not supported"),
        (["--present_separator"], "--present_separator: swap chains are not supported"),
        (["--xbox_allow_precompile"], "Xbox"),
        (["-S"], "--show_dependencies: DirectX components are not supported"),
        (["--dispatch"], "unrecognized arguments"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        main(["run", "model.json", *arguments])
    assert leave.value.code == 2
    assert message in capsys.readouterr().err


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    text = capsys.readouterr().out
    for option in ("-i", "-r", "-t", "-I", "-w", "-v", "-d", "-a", "-s", "-q", "--post_dispatch_barriers"):
        assert re.search(rf"^ +{option}\b", text, re.MULTILINE), option


def test_names_that_the_terminal_cannot_show(add: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    add["resources"]["größe \U0001f600"] = add["resources"].pop("A")
    put(add, "commands.0.bindings.ATensor", "größe \U0001f600")
    put(add, "commands.1.resource", "größe \U0001f600")
    path.write_text(json.dumps(add))
    result = dmlemu("run", str(path), env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert result.returncode == 0
    assert "Resource 'gr\\xf6\\xdfe \\U0001f600': 1, 2, 3" in result.stdout


def interrupt(process: subprocess.Popen[str]) -> str:
    """Ctrl-C until it ends, as a user would: Python drops one that arrives inside a finalizer."""
    for _ in range(20):
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=1)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("the program does not end")


def test_interrupted(add: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(add))
    command = [sys.executable, "-m", "dmlemu", "run", str(path), "-t", "60000"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Running on")
        errors = interrupt(process)
    assert process.returncode == 130
    assert "Traceback" not in errors or "Exception ignored" in errors


def test_closed_pipe(add: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    add["commands"] = [{"type": "print", "resource": "A"}] * 2000
    path.write_text(json.dumps(add))
    result = subprocess.run(
        f"{sys.executable} -m dmlemu run {path} | head -n 1", shell=True, capture_output=True, text=True
    )
    assert result.stdout.startswith("Running on")
    assert result.stderr == ""


def dmlemu(*arguments: str, env: Any = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dmlemu", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)


# --- the models of the DirectML repository ---

PUBLIC = {
    "hlsl_add_fp16": {"Out": "2, 7, 6, 11, 2, 7"},
    "hlsl_add_fp32": {"Out": "2, 7, 6, 11, 2, 7"},
    "dml_element_wise_add": {"Out": "6, 10, -2"},
    "dml_element_wise_add_npy": {"Out": None},
    "dml_element_wise_add1": {"Out": "6, 10, -0.432332"},
    "dml_element_wise_clip": {"A": "-2.5, -2.5, -2, -1, 0, 1, 2, 2.5, 2.5"},
    "dml_element_wise_identity": {"Out": "12, 14, 16"},
    "dml_reduce": {"input": "1, 2, 3, 4, 5, 6, 7, 8, 9", "output": "6, 15, 24"},
    "dml_gemm": {"output": "6, 7, 8, 10, 12, 14, 14, 17, 20"},
    "dml_gemm_graph": {"output": ", ".join(["32"] * 1024)},
    "dml_owned_tensors": {"Out": "6, 10, -2"},
    "dml_scalar_union_fp16": {"output": "2, 2, 3, 4, 4"},
    "dml_convolution_2d": {"output": "6, 8, 12, 14"},
    "dml_convolution_3d": {"output": "4, 4, 4, 4, 4, 4, 4, 4"},
    "dml_cumulative_product": {"Out": "2, 8, 64, 192"},
    "dmlSerializedGraph_matmul_add": {"model_output": "12.25, 12.25, 12.25, 12.25, 12.25"},
    "onnx_gemm": {"Out": "22, 28, 34, 40, 46, 60, 74, 88, 70, 92, 114, 136"},
    "onnx_dynamic_shapes": {  # the last of its prints
        "c": "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12",
        "deferredY": "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12",
    },
    "dml_fill_value_sequence": {"Out": "3.2, 4.7, 6.2, 7.7, 9.2"},
    "dml_join": {"Out": "1, 2, 3, 100, 115, 5, 6, 7, 8, 9"},
    "dml_slice": {"output": "7, 9, 12, 14, 17, 19"},
    "dml_split": {"Out1": "1, 2", "Out2": "3, 4", "Out3": "5, 6"},
    # The centres of the output's pixels lie a quarter before and after those of the input.
    "dml_rnn": {
        "output": "18, 34, 50, 66, 82, 43.6, 85.2, 126.8, 168.4, 210, 69.2, 136.4, "
        "203.6, 270.8, 338, 94.8, 187.6, 280.4, 373.2, 466, 120.4, 238.8, 357.2, 475.6, "
        "594, 146, 290, 434, 578, 722, 171.6, 341.2, 510.8, 680.4, 850, 197.2, "
        "392.4, 587.6, 782.8, 978, 98, 114, 130, 146, 162, 251.6, 293.2, 334.8, "
        "376.4, 418, 405.2, 472.4, 539.6, 606.8, 674, 558.8, 651.6, 744.4, 837.2, 930, "
        "712.4, 830.8, 949.2, 1067.6, 1186, 866, 1010, 1154, 1298, 1442, 1019.6, 1189.2, "
        "1358.8, 1528.4, 1698, 1173.2, 1368.4, 1563.6, 1758.8, 1954"
    },
    "dml_upsample_2d": {
        "output": "1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4"
    },
}
FOLDER = os.environ.get("DMLEMU_DIRECTML_MODELS", "")


@pytest.mark.skipif(not FOLDER, reason="DMLEMU_DIRECTML_MODELS does not name DxDispatch/models")
@pytest.mark.parametrize("name", PUBLIC)
def test_public_models(name: str, tmp_path: Path) -> None:
    lines = printed(run(read_model(Path(FOLDER) / f"{name}.json"), output_path=tmp_path))
    if name == "dml_element_wise_add_npy":
        inputs = [np.load(Path(FOLDER) / "dml_element_wise_add_input.npy").ravel()]
        inputs.append(np.fromfile(Path(FOLDER) / "dml_element_wise_add_input.dat", np.float32))
        assert np.array_equal(np.load(tmp_path / "dml_element_wise_add_output.npy"), sum(inputs))
        assert np.array_equal(
            np.fromfile(tmp_path / "dml_element_wise_add_output.dat", np.float32), sum(inputs)
        )
        assert np.allclose(numbers(lines["Out"]), sum(inputs))
    else:
        assert lines == PUBLIC[name]


@pytest.mark.skipif(not FOLDER, reason="DMLEMU_DIRECTML_MODELS does not name DxDispatch/models")
def test_other_public_models_are_refused_by_name() -> None:
    for path in sorted(Path(FOLDER).glob("*.json")):
        if path.stem not in PUBLIC and path.stem != "_schema":
            with pytest.raises(ModelError) as caught:
                run(read_model(path))
            assert path.stem.startswith("image_")
            assert caught.value.report.id == "MODEL_UNSUPPORTED", path
