"""DxDispatch itself: its models print what ``dmlemu run`` prints of them, and its shaders are seen."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import processes
from conftest import Client, Done

LEVELS = ["runtime", "debug", "strict"]
DMLEMU = [sys.executable, "-m", "dmlemu"]
SHADERS = ["hlsl_add_fp16", "hlsl_add_fp32"]
KINDS = ("dml_", "hlsl_", "dmlSerializedGraph_")
"""Models of other kinds need ONNX Runtime and Windows' decoder of images."""


def models(client: Client) -> dict[str, Path]:
    folder = client.program.parents[1] / "DxDispatch" / "models"
    return {path.stem: path for path in sorted(folder.glob("*.json")) if path.name.startswith(KINDS)}


def lines(printed: str) -> list[str]:
    """Without the times of this machine."""
    return re.sub(r"[0-9.e-]+ ms median \(CPU\)", "CPU", printed).splitlines()


def run(client: Client, model: Path, strictness: str, **variables: str) -> Done:
    """Runs a model; nothing is reported, except what is no mistake, at strict."""
    file = client.folder / "reports.jsonl"
    file.unlink(missing_ok=True)
    done = client.run(model, strictness=strictness, DMLEMU_REPORT=str(file), **variables)
    assert done.status == 0 and not done.work.refusals, done.err
    reports = [json.loads(line) for line in file.read_text().splitlines()]
    assert {each["severity"] for each in reports} <= {"INFO"}, done.err
    return done


@pytest.mark.timeout(600)
@pytest.mark.parametrize("strictness", LEVELS)
def test_models_print_what_ours_prints(dxdispatch: Client, strictness: str) -> None:
    found = models(dxdispatch)
    assert len(found) >= 22 and set(SHADERS) < set(found)
    for path in found.values():
        ours = processes.run(
            [*DMLEMU, "run", path, "--strictness", strictness], timeout=60, cwd=dxdispatch.folder
        )
        theirs = run(dxdispatch, path, strictness)
        assert lines(theirs.out) == lines(ours.stdout) and "Resource" in ours.stdout, path.name
        assert sum(theirs.work.dispatches.values()) >= 1, path.name


@pytest.mark.parametrize("strictness", LEVELS)
@pytest.mark.parametrize("name", SHADERS)
def test_shaders_have_the_right_numbers(dxdispatch: Client, name: str, strictness: str) -> None:
    done = run(dxdispatch, models(dxdispatch)[name], strictness)
    assert "Resource 'Out': 2, 7, 6, 11, 2, 7" in done.out.splitlines()
    assert done.work.dispatches == {"pipeline state #1": 1}


def test_the_dispatch_of_a_shader_is_seen(dxdispatch: Client) -> None:
    """By its names, in the timeline, on the page, in the record and by the step debugger."""
    model = models(dxdispatch)["hlsl_add_fp32"]
    trace, page, record = (dxdispatch.folder / name for name in ("t.json", "p.html", "r.dmlrec"))
    files = {"DMLEMU_TRACE": str(trace), "DMLEMU_HTML": str(page), "DMLEMU_RECORD": str(record)}
    run(dxdispatch, model, "strict", **files)
    events = json.loads(trace.read_text())["traceEvents"]
    assert any(each["name"] == "Dispatch of pipeline state #1" for each in events)
    text = page.read_text()
    assert "Dispatch of pipeline state #1" in text and "inputA" in text
    told = processes.run([*DMLEMU, "replay", record], timeout=60)
    assert "Dispatch 0, 'CSMain' (compute shader)" in told.stdout + told.stderr
    step = [*DMLEMU, "step", "--script", "D", "--size", "120x40", dxdispatch.program, model]
    shown = processes.run(step, timeout=120, cwd=dxdispatch.folder).stdout
    for each in ("reads 'inputB': buffer 'B', bytes [0, 24)", "writes 'output': buffer 'Out', bytes [0, 24)"):
        assert each in shown
