"""C++ programs, unchanged, on the emulator: compiled with g++ against Debian's headers and our DirectML.h."""

from __future__ import annotations

import re
import shutil
import signal
import sys

import numpy as np
import pytest
from toolchain import DMLEMU, HERE, Built, libraries, needs_compiler, reported, run, run_alone

from dmlemu import dml
from dmlemu.session import Session

pytestmark = needs_compiler


def _identity() -> str:
    """What identity.cpp prints, computed by the same program in Python."""
    tensor = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 2, 3, 4])
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor, output_tensor=tensor, scale_bias=dml.ScaleBias(2.0, 1.0)
    )
    with Session() as session:
        values = np.float32(1.5) * np.arange(24, dtype=np.float32) - np.float32(7.0)
        compiled = session.compile(desc, "identity")
        source, output = session.upload("input", values), session.buffer("output", 96)
        session.use_descriptors(4)
        session.initialize(compiled)
        session.barrier()
        session.dispatch(compiled, [source], [output])
        found = session.read(output, np.uint32)
    rows = np.asarray(found).reshape(3, 8)
    return "".join(" ".join(f"{word:08x}" for word in row) + "\n" for row in rows)


@pytest.mark.parametrize("strictness", ["runtime", "debug", "strict"])
def test_identity_gives_the_bits_of_the_same_program_in_python(built: Built, strictness: str) -> None:
    done = run(*DMLEMU, "exec", "--strictness", strictness, built("identity"))
    assert (done.stdout, reported(done.stderr), done.returncode) == (_identity(), "", 0)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_identity_under_chaos(built: Built, seed: int) -> None:
    done = run(*DMLEMU, "exec", "--strict", "--chaos", str(seed), built("identity"))
    assert (done.stdout, done.returncode) == (_identity(), 0), done.stderr


def test_identity_without_dmlemu_exec(built: Built) -> None:
    """The libraries find the Python that they are installed in."""
    done = run_alone(built("identity"), PYTHONHOME="/nonexistent", PYTHONPATH="/nonexistent")
    assert (done.stdout, done.stderr, done.returncode) == (_identity(), "", 0)


def test_mistakes_are_reported_with_their_lines(built: Built) -> None:
    source = (HERE / "mistakes.cpp").read_text().splitlines()
    lines = {
        text.split("// ")[1]: number for number, text in enumerate(source, 1) if "// " in text and number > 2
    }
    done = run(*DMLEMU, "exec", "--strict", built("mistakes"))
    assert done.returncode == 1
    assert "COPY_RANGE [CopyBufferRegion]" in done.stderr
    assert f"at mistakes.cpp:{lines['a copy beyond the end']} in main\n" in done.stderr
    assert f"released at mistakes.cpp:{lines['the last Release']}" in done.stderr
    assert (
        "While calling ID3D12Resource::GetGPUVirtualAddress at "
        f"mistakes.cpp:{lines['use after Release']} in main\n" in done.stderr
    )
    assert (
        f"released at mistakes.cpp:{lines['a Release inside of a helper']} in main, through wrladapter.h:"
        in done.stderr
    )
    assert done.stderr.count("CreateGraphicsPipelineState is not emulated.\n  -") == 1


def test_refusals_give_their_hresults(built: Built) -> None:
    for strictness in ("runtime", "strict"):
        done = run(*DMLEMU, "exec", "--strictness", strictness, built("refusals"))
        assert done.stdout == "done\n", done.stdout + done.stderr
        assert "a bug of dmlemu" not in done.stderr


@pytest.mark.parametrize("strictness", ["runtime", "strict"])
def test_newer_versions_of_interfaces(built: Built, strictness: str) -> None:
    done = run(*DMLEMU, "exec", "--strictness", strictness, built("versions"))
    assert done.stdout == "done, 85 left\n", done.stdout + done.stderr
    for name in ("CreateRootSignatureFromSubobjectInLibrary", "DispatchGraph", "OpenExistingHeapFromAddress"):
        assert done.stderr.count(f"{name} is not emulated.\n  -") == 1
    mistakes = [line for line in done.stderr.splitlines() if line.startswith("D3D12 ERROR")]
    kinds = {line.split()[2] for line in mistakes}
    assert kinds <= {"OP_NOT_EMULATED", "RES_DESC", "HEAP_RANGE", "API_NULL_POINTER"}, done.stderr


def test_a_missing_python_is_said_once(built: Built) -> None:
    done = run_alone(built("identity"), DMLEMU_PYTHON="/nonexistent")
    assert done.returncode == 2
    assert "0x887A002D" in done.stderr
    assert done.stderr.count("DMLEMU_PYTHON names no Python") == 1


EXPORTS = HERE.parents[2] / "runtime" / "capi_c" / "exports.h"


@pytest.mark.parametrize("mode", ["direct", ""])
def test_a_python_program_reaches_every_export(mode: str) -> None:
    exports = re.findall(r"EXPORT\((\w+), *\\?\s*\((.*?)\)", EXPORTS.read_text(encoding="utf-8"))
    names = {name: parameters.count(",") + 1 for name, parameters in exports}
    assert len(names) >= 15
    code = f"""
import ctypes
parts = {{"DXCore": "dxcore", "DXGI": "dxgi", "DML": "directml", "D3D12": "d3d12"}}
for name, count in {names}.items():
    part = next((part for word, part in parts.items() if word in name), "d3d12")
    export = getattr(ctypes.CDLL(f"{libraries()}/lib{{part}}.so"), name)
    export.restype = ctypes.c_uint32
    print(name, hex(export(*count * [None])))
"""
    done = run(sys.executable, "-c", code, DMLEMU_CAPI_MODE=mode)
    answers = dict(line.split() for line in done.stdout.splitlines())
    assert answers.keys() == names.keys() and done.returncode == 0
    assert "0x887a002d" not in answers.values()  # DXGI_ERROR_SDK_COMPONENT_MISSING
    assert answers["D3D12GetDebugInterface"] == "0x1"  # S_FALSE


def test_exec_keeps_the_status_of_the_program() -> None:
    assert run(*DMLEMU, "exec", "sh", "-c", "exit 7").returncode == 7
    assert run(*DMLEMU, "exec", "sh", "-c", "kill -9 $$").returncode == 137
    assert run(*DMLEMU, "exec", "/nonexistent").returncode == 127


@pytest.mark.parametrize("strictness", ["runtime", "strict"])
def test_native_threads_compute_the_right_values(built: Built, strictness: str) -> None:
    done = run(*DMLEMU, "exec", "--strictness", strictness, built("threads"), "8", "10", "60")
    assert (done.stdout, reported(done.stderr), done.returncode) == ("0 wrong of 80\n", "", 0)


def test_native_threads_share_lists_and_buffers_under_a_mutex(built: Built) -> None:
    done = run(*DMLEMU, "exec", "--strict", built("threads"), "8", "5", "60", "shared")
    assert (done.stdout, done.stderr, done.returncode) == ("0 wrong of 40\n", "", 0)


@pytest.mark.long
@pytest.mark.parametrize("shared", [[], ["shared"]], ids=["own", "shared"])
@pytest.mark.parametrize("options", [["--strictness", "runtime"], ["--strict"], ["--strict", "--chaos", "1"]])
def test_native_threads_for_a_minute(built: Built, options: list[str], shared: list[str]) -> None:
    done = run(*DMLEMU, "exec", *options, built("threads"), "8", "1000000", "60", *shared)
    assert (reported(done.stderr), done.returncode) == ("", 0), done.stdout
    wrong, computed = re.fullmatch(r"(\d+) wrong of (\d+)\n", done.stdout).groups()  # type: ignore[union-attr]
    assert wrong == "0" and int(computed) > 100


@pytest.mark.parametrize("options", [["--strictness", "runtime"], ["--strict"], ["--strict", "--chaos", "1"]])
def test_native_threads_take_turns_on_one_gpu(built: Built, options: list[str]) -> None:
    """Calls return between the dispatches of another thread's list; waits of several threads all end."""
    done = run(*DMLEMU, "exec", *options, built("turns"))
    lines = ["calls return during the list", "polls are short", "300 rounds", "done"]
    assert done.stdout.splitlines() == lines, done.stdout + done.stderr
    assert (reported(done.stderr), done.returncode) == ("", 0)


@pytest.mark.parametrize("strictness", ["runtime", "strict"])
def test_waits_for_what_another_native_thread_does(built: Built, strictness: str) -> None:
    done = run(*DMLEMU, "exec", "--strictness", strictness, built("waits"), "300")
    assert done.stdout == "1\n2\n3\n5\n"
    assert strictness == "runtime" or "FENCE_EVENT" in done.stderr  # the closed event
    assert "FENCE_NEVER" not in done.stderr


def test_a_wait_that_nothing_seems_to_end_is_reported(built: Built) -> None:
    done = run(*DMLEMU, "exec", "--strictness", "debug", built("waits"), "2600")
    assert done.stdout == "1\n2\n3\n5\n"
    assert "D3D12 MESSAGE FENCE_NEVER" in done.stderr


def test_break_stops_at_the_line_of_a_report(built: Built) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    gdb = ["gdb", "-q", "-batch", "-ex", "run", "-ex", "bt 2", "--args", str(built("mistakes"))]
    done = run(*DMLEMU, "exec", "--strict", "--break", *gdb)
    slot, line = [row for row in done.stdout.splitlines() if row.startswith("#")][:2]
    assert "ID3D12Fence_Signal" in slot
    source = (HERE / "mistakes.cpp").read_text().splitlines()
    number = next(i for i, text in enumerate(source, 1) if "use of the fence" in text)
    assert line.endswith(f"mistakes.cpp:{number}")


def test_dxcore_finds_the_adapter(built: Built) -> None:
    expected = (
        "1 adapter, factory shared, graphics 1\n"
        "dmlemu Virtual GPU, hardware 1, d311\n"
        "budget 8 GiB, used 1\n"
        "luid equal, adapter shared\n"
        "0 failures\n"
    )
    done = run(*DMLEMU, "exec", "--strictness", "runtime", built("dxcore"))
    assert done.stdout == expected
    assert done.stderr.count("::RegisterEventNotification is not emulated.\n  -") == 1
    done = run(*DMLEMU, "exec", "--strict", built("dxcore"))
    assert (done.stdout, done.returncode) == (expected, 1)
    for name in ("E_POINTER", "E_INVALIDARG", "DXGI_ERROR_INVALID_CALL"):
        assert f" {name}\n" in done.stderr
    assert "DXGI_ERROR_UNSUPPORTED" not in done.stderr  # programs ask so
    assert "DXCore ERROR API_SIZE [GetProperty]\nbufferSize (3) is not 16 or more.\n" in done.stderr


def test_debug_layer_and_message_callback(built: Built) -> None:
    done = run_alone(built("debug_layer"))
    assert (done.stdout, done.returncode) == (
        "called 1, on its thread 1, stored 2, identity 1, text 1\nthe callback took the mutex\n",
        0,
    )


def test_debug_interfaces_do_what_they_are_told(built: Built) -> None:
    done = run_alone(built("debug_interfaces"))
    assert (done.stdout, done.returncode) == ("0 failures\n", 0), done.stderr
    assert "D3D12 INFO: half of the work is done\nD3D12 " in done.stderr
    assert "D3D12 WARNING: of the program\n" in done.stderr
    assert "6 live objects of device #0: 1 command queue, " in done.stderr
    assert "\n  buffer 'alive' (created at program.h:" in done.stderr
    for muted in ("MEM_UNINIT_READ", "said by nobody", "CreateOperator"):
        assert muted not in done.stderr
    done = run(*DMLEMU, "exec", "--strictness", "debug", built("debug_interfaces"))
    assert done.stdout.endswith("\n2 failures\n")  # the level given outside wins
    assert "Gpu().device.As(&messages) is 0x0" in done.stdout and "found is 0x0" in done.stdout


@pytest.mark.parametrize("kind", ["severity", "category", "id", "none"])
def test_a_thread_stops_at_the_messages_that_the_program_names(built: Built, kind: str) -> None:
    done = run_alone(built("debug_interfaces"), kind)
    rest = ("not yet\n", -signal.SIGTRAP) if kind != "none" else ("not yet\nbehind it\n", 0)
    assert (done.stdout, done.returncode) == rest, done.stderr


def test_consequences_are_those_of_windows_whatever_is_looked_for(built: Built) -> None:
    expected = (
        "in place 2\n"
        "Close 0x80070057\nremoved 0x00000000\nClose again 0x80004005\nReset 0x00000000\n"
        "Close of an unknown barrier 0x80070057\n"
        "copied 8\n"
        "removed 0x887A0001\nCreateFence 0x887A0005\nremoved, of DirectML 0x887A0001\n"
    )
    for strictness in ("runtime", "debug", "strict"):
        done = run(*DMLEMU, "exec", "--strictness", strictness, built("consequences"))
        assert done.stdout == expected, strictness + done.stdout + done.stderr
        assert ("\n\n" in done.stderr) == (strictness != "runtime"), done.stderr  # behind each report
        assert done.stderr.startswith("dmlemu: a device was removed (") == (strictness == "runtime")
    for id in ("BIND_ALIAS", "COPY_RANGE", "LIST_CLOSED", "BARRIER_DESC", "STATE_BEFORE"):
        assert f" {id}" in done.stderr, done.stderr
    assert done.stderr.count("D3D12 ERROR COPY_RANGE") == 1  # and none for Close


def test_settings_without_effect_and_wrong_references_are_said_once(built: Built) -> None:
    done = run_alone(built("settings"))
    assert (done.stdout, done.returncode) == ("same 1, counted 1\n", 0), done.stderr
    flag = "DML_CREATE_DEVICE_FLAG_DEBUG on the Direct3D 12 device"
    for name in ("SetGPUBasedValidationFlags", flag):
        assert done.stderr.count(f"dmlemu: {name} has no effect: ") == 1
    assert done.stderr.count("DML ERROR OP_FIELD_RANGE [CreateOperator]") == 1
    assert done.stderr.count("[DIRECTML ERROR]: ") == 1
    assert done.stderr.count("D3D12 ERROR API_FOREIGN_POINTER [D3D12CreateDevice]") == 1
    source = (HERE / "settings.cpp").read_text().splitlines()
    number = next(i for i, text in enumerate(source, 1) if "once too often" in text)
    assert "Release is called once too often on device" in done.stderr
    assert f"While calling Release at settings.cpp:{number} in main\n" in done.stderr


def test_getters_in_c_know_what_changes_their_values(built: Built) -> None:
    done = run_alone(built("getters"))
    assert done.stdout == (
        "initializer of nothing 0 0, of one operator 2 2, of nothing 0\n"
        "32 32 32 32 bytes each\n"
        "before 0x00000000 0x00000000 0x00000000\n"
        "after a wrong call 0x00000000 0x80070057 0x00000000\n"
        "after RemoveDevice 0x887A0005 0x80070057 0x887A0005\n"
        "another one 0x887A0005\n"
    )
    assert (done.stderr, done.returncode) == ("", 0)
