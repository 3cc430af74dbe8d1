"""What people see and type at the prompt: short reprs, the version, descs of arrays, JSON for programs."""

from __future__ import annotations

import inspect
import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

import dmlemu
from dmlemu import Report, checks, d3d12, dml, pictures, recording, reporting, tracing
from dmlemu.cli import main
from dmlemu.frozen import Frozen
from dmlemu.recording.program import Program
from dmlemu.session import Session
from list_commands import Objects
from processes import started

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


class Foreign:
    """An array of another library, which speaks DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_arrays_of_other_libraries_go_in_and_out() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert dml.BufferTensorDesc.from_array(Foreign(array.T)).effective_strides == (1, 3)
    desc = dml.BufferTensorDesc(FLOAT32, [2, 3])
    relu = dml.ActivationReluOperatorDesc(input_tensor=desc, output_tensor=desc)
    (result,) = dmlemu.evaluate(relu, input_tensor=Foreign(array)).values()
    assert result.tolist() == array.tolist()
    with Session() as session:
        buffer = session.upload("x", Foreign(array))
        assert np.from_dlpack(session.read(buffer, np.float32, [2, 3])).tolist() == array.tolist()
        with session.upload_buffer("y", Foreign(array)).map() as mapped:
            assert np.asarray(mapped).view(np.float32).tolist() == array.reshape(-1).tolist()


def test_arrays_that_no_desc_describes() -> None:
    with pytest.raises(TypeError, match="An array of complex64 has no DML_TENSOR_DATA_TYPE"):
        dml.BufferTensorDesc.from_array(np.zeros(3, np.complex64))
    with pytest.raises(ValueError, match=r"\(-4,\) bytes\) are not multiples >= 0 of the 4"):
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
    program = next(each for each in check.pop("examples") if "reads what the one before" in each["about"])
    assert "stage.dispatch(activate, [act], [result])" in program["program"]
    assert program["report"].startswith("D3D12 ERROR HAZARD_RAW [")
    assert "\n+    stage.barrier(act)\n" in program["correction"]
    assert check in _json(capsys, "checks", "HAZARD_*")
    assert check["severity"] == "ERROR"


def test_explain_knows_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "hazard_raw"]) == 0
    text = capsys.readouterr().out
    assert "## A dispatch reads what the one before writes" in text and "+    stage.barrier(act)\n" in text
    assert main(["checks", "HAZARD_RAW"]) == 0
    assert capsys.readouterr().out == text


def test_explain_names_the_pages_of_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    base = "https://learn.microsoft.com/windows/win32/api"
    assert main(["explain", "FENCE_VALUE"]) == 0
    assert f"{base}/d3d12/nf-d3d12-id3d12device-createfence\n" in capsys.readouterr().out
    assert main(["explain", "TENSOR_TOTAL_SMALL"]) == 0
    assert f"{base}/directml/ns-directml-dml_buffer_tensor_desc\n" in capsys.readouterr().out


def test_a_shell_is_told_how_the_line_may_go_on(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    line = "dmlemu explain ELEMENT_WISE_BIT_C"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    environment = {**os.environ, **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    subprocess.run([sys.executable, "-m", "dmlemu"], env=environment, check=True)
    assert answer.read_text().strip() == "ELEMENT_WISE_BIT_COUNT"


def on_a_terminal(*command: str) -> str:
    """What a program writes to its terminal."""
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    with started([sys.executable, *command], stdout=child, stderr=child, env=environment):
        os.close(child)
        parts = []
        with suppress(OSError):  # the other end is closed
            while part := os.read(parent, 65536):
                parts.append(part)
    os.close(parent)
    return b"".join(parts).decode()


def test_explain_is_in_colour_on_a_terminal() -> None:
    check = on_a_terminal("-m", "dmlemu", "explain", "HAZARD_RAW")
    assert "\x1b[" in check and "Reported when a command" in check
    assert "stage" in check and "```" not in check
    text = on_a_terminal("-m", "dmlemu", "explain", "GEMM")
    assert "\x1b[" in text and "## Fields" not in text and "Fields" in text


def test_reports_are_in_colour_on_a_terminal() -> None:
    program = (
        "from dmlemu import Report; from dmlemu.reporting import Stored, print_reports\n"
        "print_reports([Stored(Report('X', 'It is [bold] :smile: at 12.', hint='bytes [0, 64)'))])"
    )
    text = on_a_terminal("-c", program)
    assert "\x1b[1;31mD3D12 ERROR X\x1b[0m" in text
    assert re.search("\x1b\\[[0-9;]+m12", text), "rich marks numbers"
    plain = re.sub("\x1b\\[[0-9;]*m", "", text)
    assert "It is [bold] :smile: at 12." in plain and "  hint: bytes [0, 64)" in plain


# --- every public object ---

MODULES = (dmlemu, d3d12, dml, reporting, recording, tracing, pictures, checks)


def public_classes() -> set[type]:
    """All but enums, structs and events, which are written as they are typed, and exceptions."""
    found = {
        value
        for module in MODULES
        for name in module.__all__
        if inspect.isclass(value := getattr(module, name))
    }
    return {each for each in found if not issubclass(each, (Enum, Frozen, tuple, BaseException))} | {Report}


def one_of_each(session: Session, folder: Path) -> list[object]:
    """Objects of all public classes."""
    device, list_type = session.device, d3d12.CommandListType.COMPUTE
    desc = dml.BufferTensorDesc(FLOAT32, [16])
    operator = session.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=desc, output_tensor=desc)
    )
    compiled = session.compile(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=desc, output_tensor=desc), "copy"
    )
    buffer, upload = session.buffer("act", 64), session.upload_buffer("up", np.zeros(16, np.float32))
    with recording.record(device, None) as record, dmlemu.watch_memory(device) as watch:
        initializer = session.initialize(compiled)
        session.barrier()
        table = session.dispatch(compiled, [session.buffer("x", 64)], [buffer])
    report = Report("HAZARD_RAW", "It is wrong, " * 100)
    shaders = Objects(device)
    difference = recording.Difference(None, "OutputTensor", "Far away. " * 100)  # type: ignore[arg-type]
    reduced = recording.Reduced("X", record, Program((), (), record.array), "", None, 1, 3, 3)
    return [
        *(device, session, session.dml, session.queue, session.fence, session.list, session.allocator),
        *(session.descriptors, session.recorder, operator, compiled, initializer, table, buffer, upload),
        *(upload.map(), device.create_heap(d3d12.HeapDesc(65536)), device.create_query_heap(QUERIES)),
        *(device.context.adapter, device.context.info_queue, device.reports, reporting.defaults, report),
        *(reporting.Stored(report), reporting.ReportFile(folder / "x.txt"), record, difference, reduced),
        *(recording.record(None, None), recording.Comparison(difference, 3), recording.Run([report], record)),
        *(dmlemu.trace(device), watch, desc.layout("x"), buffer.map_picture(), desc.layout("x").tensors[0]),
        pictures.Cells("u0 'values': 256 bytes", "the view", 64, (), ()),
        *(device.context.checks, *device.context.checks, checks.Names(device)),
        *(shaders.root_signature, shaders.pipeline, shaders.signature),
        d3d12.create_root_signature_deserializer(signature_bytes(d3d12.RootSignatureDesc())),
        d3d12.create_versioned_root_signature_deserializer(signature_bytes(d3d12.RootSignatureDesc1())),
        session.keep(device.create_command_list(0, list_type, device.create_command_allocator(list_type))),
    ]


def signature_bytes(desc: d3d12.RootSignatureDesc | d3d12.RootSignatureDesc1) -> bytes:
    versions = d3d12.RootSignatureVersion
    version = versions.VERSION_1_0 if isinstance(desc, d3d12.RootSignatureDesc) else versions.VERSION_1_1
    made = d3d12.VersionedRootSignatureDesc(version, desc)
    return bytes(d3d12.serialize_versioned_root_signature(made))


QUERIES = d3d12.QueryHeapDesc(count=4)


@pytest.mark.dmlemu(expect=["*"])  # objects that are made and not used
def test_every_public_object_has_a_short_repr(tmp_path: Path) -> None:
    with Session() as session:
        objects = one_of_each(session, tmp_path)
        missing = {each for each in public_classes() if not any(isinstance(it, each) for it in objects)}
        assert not missing
        for it in objects:
            text = repr(it)
            assert len(text) < 200 and "\n" not in text, text
            assert not re.search(r"0x[0-9a-f]{6}", text), "an address says nothing"
            assert type(it).__repr__ is not object.__repr__
        session.fence.wait(0)
    for it in objects:  # released: it still says what it was
        assert len(repr(it)) < 220


def test_completion_lists_what_can_be_called() -> None:
    with Session() as session:
        objects = (session, session.device, session.dml, session.list, session.queue, session.fence)
        for it in objects:
            assert all(
                callable(getattr(it, name)) for name in dir(it) if name.startswith(("create_", "get_"))
            )
    for module in MODULES:
        assert set(module.__all__) <= set(dir(module)), module.__name__
        assert all(hasattr(module, name) for name in module.__all__)
