"""What people see and type at the prompt: short reprs, the version, descs of arrays, JSON for programs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import dmlemu
from dmlemu import d3d12, dml
from dmlemu.cli import main
from dmlemu.session import Session

FLOAT32 = dml.TensorDataType.FLOAT32


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"dmlemu {dmlemu.__version__}\n"
    assert "__version__" in dir(dmlemu)


def test_reprs_are_short_and_can_be_typed() -> None:
    desc = dml.BufferTensorDesc(FLOAT32, [1, 2])
    text = "BufferTensorDesc(data_type=TensorDataType.FLOAT32, sizes=(1, 2), total_tensor_size_in_bytes=8)"
    assert repr(desc) == text
    assert eval(text, vars(dml).copy()) == desc
    flags = d3d12.HeapFlags.DENY_BUFFERS | d3d12.HeapFlags.CREATE_NOT_ZEROED
    found = d3d12.HeapDesc(1, d3d12.HeapProperties(d3d12.HeapType.UPLOAD), 0, flags)
    assert eval(repr(found), vars(d3d12).copy()) == found
    with Session() as session:
        assert repr(session).startswith("<Session on device #")
        buffer = session.upload_buffer("weights", np.zeros(4, np.float32))
        mapped = buffer.map()
        assert repr(mapped) == "<16 mapped bytes of buffer 'weights'>"
        buffer.unmap()
        assert repr(mapped) == "<memory of buffer 'weights', unmapped>"


def test_mapped_memory_is_shared_by_dlpack() -> None:
    with Session() as session:
        buffer = session.upload_buffer("x", np.arange(4, dtype=np.uint8))
        with buffer.map() as mapped:
            shared = np.from_dlpack(mapped)
            assert shared.tolist() == [0, 1, 2, 3]
            mapped.view()[1] = 7
            assert shared.tolist() == [0, 7, 2, 3]


def test_a_desc_of_an_array_has_its_strides() -> None:
    array = np.arange(24, dtype=np.float16).reshape(2, 3, 4)
    assert dml.BufferTensorDesc.from_array(array) == dml.BufferTensorDesc(
        dml.TensorDataType.FLOAT16, [2, 3, 4]
    )
    for view in (
        array.transpose(2, 0, 1),
        array[:, ::2],
        array[:, :, 1:3],
        np.broadcast_to(array, (5, 2, 3, 4)),
    ):
        desc = dml.BufferTensorDesc.from_array(view)
        memory = np.frombuffer(array.tobytes(), np.float16)[(view.ctypes.data - array.ctypes.data) // 2 :]
        for index in np.ndindex(*view.shape):
            assert memory[np.dot(index, desc.effective_strides)] == view[index]
    assert dml.BufferTensorDesc.from_array(np.zeros(3, bool)).data_type is dml.TensorDataType.UINT8


def test_arrays_that_no_desc_describes() -> None:
    with pytest.raises(TypeError, match="An array of complex64 has no DML_TENSOR_DATA_TYPE"):
        dml.BufferTensorDesc.from_array(np.zeros(3, np.complex64))
    with pytest.raises(ValueError, match=r"\(-4,\) bytes\) are no multiples >= 0 of the 4"):
        dml.BufferTensorDesc.from_array(np.zeros(3, np.float32)[::-1])
    record = np.zeros(3, [("a", "u1"), ("b", "<f4")])
    with pytest.raises(ValueError, match="ascontiguousarray"):
        dml.BufferTensorDesc.from_array(record["b"])


def _json(capsys: pytest.CaptureFixture[str], *arguments: str):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_catalogues_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    (adapter,) = _json(capsys, "adapters")
    assert adapter["is_hardware"] is d3d12.create_adapter_list()[0].is_hardware
    operators = _json(capsys, "explain")
    assert len(operators) == 177
    assert {each["name"] for each in operators} == {each.name for each in dml.OperatorType if each}
    gemm = _json(capsys, "explain", "gemm")
    assert [each["name"] for each in gemm["fields"]][:4] == ["ATensor", "BTensor", "CTensor", "OutputTensor"]
    assert any(row["field"] == "ATensor" and "FLOAT32" in row["data_types"] for row in gemm["tables"])
    check = _json(capsys, "explain", "HAZARD_RAW")
    assert check == _json(capsys, "checks", "hazard_raw")
    assert check in _json(capsys, "checks", "HAZARD_*")
    assert check["severity"] == "ERROR"


def test_explain_knows_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "hazard_raw"]) == 0
    text = capsys.readouterr().out
    assert main(["checks", "HAZARD_RAW"]) == 0
    assert capsys.readouterr().out == text


def test_a_shell_is_told_how_the_line_may_go_on(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    line = "dmlemu explain ELEMENT_WISE_BIT_C"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    environment = {**os.environ, **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    subprocess.run([sys.executable, "-m", "dmlemu"], env=environment, check=True)
    assert answer.read_text().strip() == "ELEMENT_WISE_BIT_COUNT"


def test_explain_is_in_colour_on_a_terminal() -> None:
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "dmlemu", "explain", "GEMM"]
    with subprocess.Popen(command, stdout=child, env=environment):
        os.close(child)
        parts = []
        with suppress(OSError):  # the other end is closed
            while part := os.read(parent, 65536):
                parts.append(part)
    os.close(parent)
    text = b"".join(parts).decode()
    assert "\x1b[" in text and "## Fields" not in text and "Fields" in text
